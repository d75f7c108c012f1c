use rustix::net::accept_with;

use super::*;

#[test]
fn refused_client_reads_the_reason() {
    let name = format!("seqpacket-test-{}", std::process::id());
    let listener = listen_at(&name, SocketFlags::empty()).expect("the name is not in use");
    // The server may close the connection before the client has sent its message, or without reading it.
    for is_early in [false, true] {
        let client = call(&name).expect("the server listens");
        let server = accept_with(&listener, SocketFlags::CLOEXEC).expect("a client has connected");
        if is_early {
            request(&client, &"hello", &[]).expect("sent");
        }
        send(&server, &"refused", &[]).expect("sent");
        drop(server);
        if !is_early {
            request(&client, &"hello", &[])
                .expect("the request succeeds even if the server has closed the connection");
        }
        match receive::<String>(&client).expect("the socket is readable") {
            Received::Message(text, files) => assert_eq!((&*text, files.len()), ("refused", 0)),
            _ => panic!("no message"),
        }
        assert!(matches!(receive::<String>(&client), Ok(Received::Disconnected)));
    }
}
