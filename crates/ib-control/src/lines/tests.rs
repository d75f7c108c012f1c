use super::*;

#[test]
fn requests_get_replies_in_order() {
    let base = format!("ibfabric-console-{}", std::process::id());
    let mut server = LineServer::bind(&base).expect("the name is free");
    assert!(LineServer::bind(&base).is_err(), "the name is in use");
    let client = std::thread::spawn(move || {
        let mut client = LineClient::connect(&base).expect("the server listens");
        let long = client.exchange("one two").expect("the server replies");
        (long.len(), client.exchange("three").expect("the server replies"))
    });
    let key = loop {
        if let Some(&key) = server.accept().first() {
            break key;
        }
        std::thread::yield_now();
    };
    let mut seen = Vec::new();
    while seen.len() < 2 {
        match server.next_line(key) {
            Received::Line(line) => {
                let answer = if seen.is_empty() { "x".repeat(300_000) } else { "short".to_owned() };
                server.answer(key, &answer);
                seen.push(line);
            }
            Received::Pending => std::thread::yield_now(),
            Received::Closed => panic!("a connected client is reported as closed"),
        }
    }
    assert_eq!(seen, ["one two", "three"]);
    // The client reads the last reply and then disconnects.
    let ended = (0..5000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        server.next_line(key) == Received::Closed
    });
    assert!(ended, "the server detects the disconnect");
    assert_eq!(client.join().expect("no panic"), (300_000, "short".to_owned()));
}

/// Connects a client to a server. Returns the client's socket, and the key of the connection if the server accepts it.
fn connect(base: &str, server: &mut LineServer) -> (UnixStream, Option<usize>) {
    let stream = UnixStream::connect_addr(&name(base).expect("the name is valid"))
        .expect("the server listens");
    (stream, server.accept().first().copied())
}

#[test]
fn stalled_client_does_not_block_others() {
    let base = format!("ibfabric-console-slow-{}", std::process::id());
    let mut server = LineServer::bind(&base).expect("the name is free");
    let (mut slow, slow_key) = connect(&base, &mut server);
    let (mut quick, quick_key) = connect(&base, &mut server);
    let (slow_key, quick_key) = (slow_key.expect("accepted"), quick_key.expect("accepted"));
    slow.write_all(b"one\ntwo\n").expect("the socket accepts the line");
    assert_eq!(server.next_line(slow_key), Received::Line("one".to_owned()));
    server.answer(slow_key, &"x".repeat(1_000_000));
    assert_eq!(
        server.next_line(slow_key),
        Received::Pending,
        "the client has not read the whole reply"
    );
    quick.write_all(b"three\n").expect("the socket accepts the line");
    assert_eq!(server.next_line(quick_key), Received::Line("three".to_owned()));
    let mut taken = 0;
    while taken <= 1_000_000 {
        let mut bytes = [0; 65_536];
        match server.next_line(slow_key) {
            Received::Pending => taken += slow.read(&mut bytes).expect("the server replies"),
            Received::Line(line) => {
                assert_eq!(line, "two");
                let left = 1_000_001 - taken;
                slow.read_exact(&mut vec![0; left]).expect("the rest of the reply arrives");
                taken += left;
            }
            Received::Closed => panic!("a connected client is reported as closed"),
        }
    }
    assert_eq!(taken, 1_000_001);
}

#[test]
fn client_of_a_full_server_reads_the_refusal() {
    let base = format!("ibfabric-console-refused-{}", std::process::id());
    let mut server = LineServer::bind(&base).expect("the name is free");
    let _kept: Vec<_> = (0..MOST).map(|_| connect(&base, &mut server)).collect();
    let mut client = LineClient::connect(&base).expect("the server listens");
    assert!(server.accept().is_empty());
    // The server has disconnected before the client sends its request.
    let answer = client.exchange("status").expect("the server sends a refusal");
    let expected = refusal("too many control connections: 64 are open, the maximum");
    assert_eq!(answer, expected.trim_end());
    let error = client.exchange("status").expect_err("the connection is closed").kind();
    assert_eq!(error, io::ErrorKind::BrokenPipe);
}

#[test]
fn refusals_are_sent_and_counted() {
    let base = format!("ibfabric-console-full-{}", std::process::id());
    let mut server = LineServer::bind(&base).expect("the name is free");
    let kept: Vec<_> = (0..MOST).map(|_| connect(&base, &mut server)).collect();
    assert!(kept.iter().all(|(_, key)| key.is_some()));
    let (mut stream, key) = connect(&base, &mut server);
    assert_eq!((key, server.refused()), (None, 1));
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("the server sends a reason and closes the connection");
    assert!(answer.starts_with("{\"ok\":false") && answer.contains("too many"), "{answer}");
    let (mut stream, key) = kept.into_iter().next().expect("`kept` is not empty");
    let writer = std::thread::spawn(move || {
        // The write may fail, since the server closes the connection before it has read all data.
        let _ = stream.write_all(&[b'x'; LONGEST + 5000]);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    });
    let key = key.expect("the server has accepted the client");
    while server.next_line(key) != Received::Closed {
        std::thread::yield_now();
    }
    server.close(key);
    assert_eq!(server.refused(), 2);
    let answer = writer.join().expect("no panic");
    assert!(answer.contains("too long"), "{answer}");
}

#[test]
fn thread_serves_several_clients() {
    let base = format!("ibfabric-console-thread-{}", std::process::id());
    let server = LineServer::bind(&base).expect("the name is free");
    server.serve(|line| line.repeat(100_000)).expect("a thread can be created");
    let mut idle = LineClient::connect(&base).expect("the server listens");
    let mut one = LineClient::connect(&base).expect("the server listens");
    for line in ["a", "bc"] {
        assert_eq!(one.exchange(line).expect("the server replies").len(), 100_000 * line.len());
    }
    drop(one);
    assert_eq!(idle.exchange("d").expect("the server replies").len(), 100_000);
}
