use super::*;

/// Any free port of the loopback device.
const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Starts a server whose page is `up 1`, sends a request to it, and returns the response.
fn request(request: &str) -> String {
    let server = PageServer::bind(LOOPBACK).expect("a port is free");
    let address = server.address().expect("the listener has an address");
    server.serve(|| "up 1\n".to_owned()).expect("a thread can be created");
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.write_all(request.as_bytes()).expect("the socket accepts the request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the response can be read");
    answer
}

#[test]
fn get_returns_the_page() {
    let answer = request("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\r\nContent-Length: 5\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nup 1\n"), "{answer}");
}

#[test]
fn head_returns_no_page() {
    let answer = request("HEAD /metrics?all HTTP/1.0\r\n\r\n");
    assert!(answer.contains("Content-Length: 5"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[test]
fn other_paths_and_methods_are_errors() {
    assert!(request("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(request("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(request("\r\n\r\n").starts_with("HTTP/1.1 405 "));
}

#[test]
fn idle_clients_do_not_block_others() {
    let server = PageServer::bind(LOOPBACK).expect("a port is free");
    let address = server.address().expect("the listener has an address");
    server.serve(|| "up 1\n".to_owned()).expect("a thread can be created");
    let silent: Vec<TcpStream> =
        (0..80).map(|_| TcpStream::connect(address).expect("the server listens")).collect();
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(CLIENT_TIMEOUT / 2)).expect("the socket accepts a read timeout");
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("the socket accepts the request");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("the client is served before the idle clients time out");
    assert!(answer.ends_with("up 1\n"), "{answer}");
    drop(silent);
}
