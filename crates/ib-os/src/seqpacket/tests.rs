use rustix::net::accept_with;

use super::*;

#[test]
fn refused_client_reads_the_reason() {
    let name = format!("seqpacket-test-{}", std::process::id());
    let listener = listen_at(&name, SocketFlags::empty()).expect("a free name");
    // The server may close the connection before the client has sent its message, or without reading it.
    for is_early in [false, true] {
        let client = call(&name).expect("it listens");
        let server = accept_with(&listener, SocketFlags::CLOEXEC).expect("a client");
        if is_early {
            request(&client, &"hello", &[]).expect("sent");
        }
        send(&server, &"refused", &[]).expect("sent");
        drop(server);
        if !is_early {
            request(&client, &"hello", &[])
                .expect("the request succeeds even if the server has closed the connection");
        }
        match receive::<String>(&client).expect("a message") {
            Received::Message(text, files) => assert_eq!((&*text, files.len()), ("refused", 0)),
            _ => panic!("no message"),
        }
        assert!(matches!(receive::<String>(&client), Ok(Received::Disconnected)));
    }
}
