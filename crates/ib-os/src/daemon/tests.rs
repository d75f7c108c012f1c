use super::*;

#[test]
fn service_manager_is_notified_at_a_path() {
    let place = tempfile::tempdir().expect("a directory can be created");
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("bound");
    send_message(path.as_os_str().as_bytes(), "READY=1").expect("sent");
    let mut bytes = [0; 64];
    let length = socket.recv(&mut bytes).expect("received");
    assert_eq!(&bytes[..length], b"READY=1");
}

#[test]
fn service_manager_is_notified_at_an_abstract_name() {
    let name = format!("ibfabric-notify-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("the name fits");
    let socket = UnixDatagram::bind_addr(&address).expect("bound");
    send_message(format!("@{name}").as_bytes(), "STATUS=up").expect("sent");
    let mut bytes = [0; 64];
    let length = socket.recv(&mut bytes).expect("received");
    assert_eq!(&bytes[..length], b"STATUS=up");
}

#[test]
fn missing_service_manager_is_an_error() {
    assert!(send_message(b"/nonexistent/notify", "READY=1").is_err());
}
