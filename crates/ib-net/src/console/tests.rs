use super::*;

#[test]
fn lines_are_asked_and_answered() {
    let base = format!("ibfabric-console-{}", std::process::id());
    let mut server = ConsoleServer::bind(&base).expect("a free name");
    assert!(ConsoleServer::bind(&base).is_err(), "the name is in use");
    let client = std::thread::spawn(move || {
        let mut client = ConsoleClient::connect(&base).expect("somebody listens");
        let long = client.ask("one\ntwo").expect("an answer");
        (long.len(), client.ask("three").expect("an answer"))
    });
    let key = loop {
        if let Some(&key) = server.accept().first() {
            break key;
        }
        std::thread::yield_now();
    };
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let (lines, ended) = server.read(key);
        assert!(!ended, "the client still asks");
        for line in lines {
            let answer = if seen.is_empty() { "x".repeat(300_000) } else { "short".to_owned() };
            server.answer(key, &answer).expect("the client reads");
            seen.push(line);
        }
    }
    assert_eq!(seen, ["one two", "three"]);
    assert_eq!(client.join().expect("no panic"), (300_000, "short".to_owned()));
    let ended = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        server.read(key).1
    });
    assert!(ended, "the end of the connection is seen");
}
