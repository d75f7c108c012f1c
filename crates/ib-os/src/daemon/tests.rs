use super::*;

#[test]
fn a_service_manager_is_told_at_a_path() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("bound");
    tell(path.as_os_str().as_bytes(), "READY=1").expect("told");
    let mut bytes = [0; 64];
    let length = socket.recv(&mut bytes).expect("received");
    assert_eq!(&bytes[..length], b"READY=1");
}

#[test]
fn a_service_manager_is_told_by_an_abstract_name() {
    let name = format!("ibfabric-notify-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let socket = UnixDatagram::bind_addr(&address).expect("bound");
    tell(format!("@{name}").as_bytes(), "STATUS=up").expect("told");
    let mut bytes = [0; 64];
    let length = socket.recv(&mut bytes).expect("received");
    assert_eq!(&bytes[..length], b"STATUS=up");
}

#[test]
fn a_service_manager_that_has_gone_is_an_error() {
    assert!(tell(b"/nonexistent/notify", "READY=1").is_err());
}
