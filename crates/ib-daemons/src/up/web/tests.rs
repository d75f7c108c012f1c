use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant as WallClock};

use super::feed::MOST_LISTENERS;
use super::routes::LONGEST_BODY;
use super::serve::MOST_CONNECTIONS;
use super::*;

const FILES: &[File] = &[
    File { name: "", kind: "text/html; charset=utf-8", content: b"<p>page" },
    File { name: "app.css", kind: "text/css; charset=utf-8", content: b"p {}" },
];

const TIMEOUT: Duration = Duration::from_secs(20);

/// A response of the server.
#[derive(Debug)]
struct Response {
    status: u16,
    headers: Vec<String>,
    body: String,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.headers.iter().find_map(|line| line.strip_prefix(&*prefix))
    }

    /// Returns the error text in the body.
    fn error(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).expect("the body is JSON");
        body["error"].as_str().expect("the error is a string").to_owned()
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn web() -> Web {
    Web::start(loopback(0), FILES).expect("a port is free")
}

fn connect(web: &Web) -> TcpStream {
    let stream = TcpStream::connect(web.address).expect("the server listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("the socket accepts a read timeout");
    stream
}

/// Sends a request for `path`, which is relative to the token in the URL.
fn send(web: &Web, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
    let token = web.token.as_str();
    let length = body.len();
    let head = format!("{method} /{token}/{path} HTTP/1.1\r\nHost: localhost\r\n{headers}");
    let mut stream = connect(web);
    write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}")
        .expect("the server accepts data");
    stream
}

fn read(stream: TcpStream) -> Response {
    let mut reader = BufReader::new(stream);
    let mut lines = reader.by_ref().lines().map(|line| line.expect("the line is text"));
    let first = lines.next().expect("the response has a status line");
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let status = first
        .split(' ')
        .nth(1)
        .expect("the line has a status")
        .parse()
        .expect("the status is a number");
    let mut response = Response { status, headers, body: String::new() };
    let length = response
        .header("content-length")
        .map_or(0, |it| it.parse().expect("the length is a number"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body is complete");
    response.body = String::from_utf8(body).expect("the body is UTF-8");
    response
}

fn get(web: &Web, path: &str) -> Response {
    read(send(web, "GET", path, "", ""))
}

/// Sends bytes unchanged and returns the response.
fn raw(web: &Web, request: &str) -> Response {
    let mut stream = connect(web);
    stream.write_all(request.as_bytes()).expect("the server accepts data");
    read(stream)
}

/// Waits for the next request of a client.
fn next(web: &mut Web) -> Request {
    let since = WallClock::now();
    loop {
        ib_os::poll::wait(web.bell(), false, 1000).expect("the descriptor can be polled");
        web.silence();
        if let Some(request) = web.poll_request() {
            return request;
        }
        assert!(since.elapsed() < TIMEOUT, "no request arrives");
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = WallClock::now();
    while !is_so() {
        assert!(since.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Posts JSON that the server refuses without calling the event loop.
fn refused(web: &Web, path: &str, body: &str) -> (u16, String) {
    let response = read(send(web, "POST", path, "Content-Type: application/json\r\n", body));
    (response.status, response.error())
}

const UNKNOWN_PATH: &str =
    "no such path; the document about `ibfabric up` lists the paths of the API";

#[test]
fn all_responses_have_security_headers() {
    let web = web();
    let page = get(&web, "");
    assert_eq!((page.status, &*page.body), (200, "<p>page"));
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let style = get(&web, "app.css");
    assert_eq!(
        (style.status, style.header("content-type")),
        (200, Some("text/css; charset=utf-8"))
    );
    let missing = get(&web, "other.css");
    assert_eq!((missing.status, &*missing.error()), (404, UNKNOWN_PATH));
    let no_api = get(&web, "api/nothing/at/all");
    assert_eq!((no_api.status, &*no_api.error()), (404, UNKNOWN_PATH));
    // The path without a final slash redirects, since the page's links are relative to it.
    let short =
        raw(&web, &format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", web.token.as_str()));
    let place = format!("/{}/", web.token.as_str());
    assert_eq!((short.status, short.header("location")), (308, Some(&*place)));
    let wrong = raw(&web, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let other_host = raw(&web, "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
    let method = read(send(&web, "DELETE", "api/fabric", "", ""));
    assert_eq!((wrong.status, other_host.status, method.status), (404, 403, 405));
    for response in [page, style, missing, wrong, other_host, method] {
        for (name, value) in [
            (
                "content-security-policy",
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                 connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
                 frame-ancestors 'none'",
            ),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(response.header(name), Some(value), "{response:?}");
        }
    }
}

#[test]
fn wrong_token_is_not_found() {
    let mut web = web();
    let token = web.token.as_str().to_owned();
    assert_eq!(token.len(), 32);
    assert!(token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_ne!(token, self::web().token.as_str());
    let other = if token.starts_with('0') { "1" } else { "0" };
    let almost = [&format!("{other}{}", &token[1..]), &token[..31], &format!("{token}0"), ""];
    for wrong in almost {
        for path in ["", "api/fabric", "api/events", "app.css"] {
            let head = format!("GET /{wrong}/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let response = raw(&web, &head);
            assert_eq!((response.status, &*response.body), (404, ""), "{wrong}/{path}");
        }
    }
    assert!(web.poll_request().is_none() && web.listeners() == 0);
}

#[test]
fn requests_for_other_hosts_are_forbidden() {
    let web = web();
    let token = web.token.as_str();
    let get = |host: &str| raw(&web, &format!("GET /{token}/ HTTP/1.1\r\n{host}\r\n\r\n")).status;
    for own in ["127.0.0.1", "127.0.0.1:80", "localhost:1", "LocalHost", "[::1]", "[::1]:8080"] {
        assert_eq!(get(&format!("Host: {own}")), 200, "{own}");
    }
    for other in [
        "example.org",
        "localhost.example.org",
        "127.0.0.1.example.org",
        "127.0.0.2",
        "localhost:",
        "localhost:x",
        "[::2]",
        "",
    ] {
        assert_eq!(get(&format!("Host: {other}")), 403, "{other:?}");
    }
    assert_eq!(get("Accept: */*"), 403, "without a host");
    assert_eq!(get("Host: localhost\r\nHost: example.org"), 403);
    let whole = format!("GET http://example.org/{token}/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(raw(&web, &whole).status, 403);
}

#[test]
fn requests_become_calls_and_answers_become_responses() {
    let mut web = web();
    let json = "Content-Type: application/json; charset=utf-8\r\n";
    let query = PathQuery { from: 1, to: 2 };
    let resolve = Resolve { from: 3, to: "a name".to_owned() };
    for (method, path, body, call) in [
        ("GET", "api/fabric", "", ApiCall::Fabric),
        ("GET", "api/addresses", "", ApiCall::Addresses),
        ("GET", "api/load", "", ApiCall::Load),
        ("GET", "api/node?id=7", "", ApiCall::Node(7)),
        ("GET", "api/acm?id=8", "", ApiCall::Names(8)),
        ("GET", "api/path?from=1&to=2", "", ApiCall::Path(query)),
        ("GET", "api/rtrs", "", ApiCall::Device),
        ("GET", "api/exercise", "", ApiCall::Exercise),
        ("POST", "api/resolve", r#"{"from":3,"to":"a name"}"#, ApiCall::Resolve(resolve)),
        (
            "POST",
            "api/link",
            r#"{"link":4,"up":false}"#,
            ApiCall::Link(Link { link: 4, up: false }),
        ),
        ("POST", "api/exercise", r#"{"seconds":5}"#, ApiCall::Start(Start { seconds: 5 })),
    ] {
        let stream = send(&web, method, path, json, body);
        let request = next(&mut web);
        assert_eq!(request.call, call);
        request.answer(Answer::Json(Json::from_static(b"{\"a\":1}")));
        let response = read(stream);
        assert_eq!((response.status, &*response.body), (200, "{\"a\":1}"));
        assert_eq!(response.header("content-type"), Some("application/json"));
    }
}

#[test]
fn refusals_have_status_and_text_and_late_answers_a_thread() {
    let mut web = web();
    let mut respond = |answer: Answer| {
        let stream = send(&web, "GET", "api/load", "", "");
        next(&mut web).answer(answer);
        read(stream)
    };
    for (refusal, status) in [
        (Refusal::bad("a \"b\""), 400),
        (Refusal::not_found("no"), 404),
        (Refusal::conflict("not now"), 409),
    ] {
        let error = refusal.error().to_owned();
        assert_eq!(refusal.status(), status);
        let response = respond(refusal.into());
        assert_eq!((response.status, response.error()), (status, error));
    }
    let own = std::thread::current().id();
    let later = move || {
        assert_ne!(std::thread::current().id(), own);
        Ok(Json::from_static(b"[]"))
    };
    assert_eq!(respond(Answer::Later(Box::new(later))).body, "[]");
    let fails = || Err(Refusal::conflict("later"));
    assert_eq!(respond(Answer::Later(Box::new(fails))).status, 409);
    // If the event loop drops a request, the client gets status 503.
    let stream = send(&web, "GET", "api/load", "", "");
    drop(next(&mut web));
    assert_eq!(read(stream).status, 503);
}

#[test]
fn invalid_requests_are_not_passed_to_the_loop() {
    let mut web = web();
    for path in
        ["api/node", "api/node?id=x", "api/node?id=-1", "api/node?id=1&x=2", "api/path?from=1"]
    {
        let response = get(&web, path);
        assert_eq!(response.status, 400, "{path}");
        assert!(!response.error().is_empty());
    }
    for body in [
        "",
        "{}",
        "[]",
        r#"{"link":1}"#,
        r#"{"link":-1,"up":true}"#,
        r#"{"link":1,"up":true,"x":1}"#,
    ] {
        assert_eq!(refused(&web, "api/link", body).0, 400, "{body}");
    }
    for kind in ["", "Content-Type: text/plain\r\n", "Content-Type: application/jsonx\r\n"] {
        let response = read(send(&web, "POST", "api/link", kind, r#"{"link":1,"up":true}"#));
        assert_eq!(response.status, 415, "{kind}");
        assert!(response.error().contains("application/json"));
    }
    let long = format!("{{\"link\":1,\"up\":true{}}}", " ".repeat(LONGEST_BODY));
    assert_eq!(refused(&web, "api/link", &long).0, 413);
    let response = read(send(&web, "POST", "api/fabric", "", ""));
    assert_eq!((response.status, response.error().is_empty()), (405, false));
    assert!(web.poll_request().is_none());
}

/// A client that receives events.
struct EventStream(BufReader<TcpStream>);

impl EventStream {
    fn open(web: &Web) -> Self {
        let mut events = Self(BufReader::new(send(web, "GET", "api/events", "", "")));
        assert!(events.line().ends_with("200 OK"));
        while !events.line().is_empty() {}
        events
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("the server sends text");
        line.trim_end().to_owned()
    }

    /// Returns the data of the next event that has data.
    fn event(&mut self) -> serde_json::Value {
        loop {
            if let Some(data) = self.line().strip_prefix("data: ") {
                return serde_json::from_str(data).expect("the data is JSON");
            }
        }
    }
}

#[test]
fn listeners_get_states_and_each_log_line_once() {
    let web = web();
    for number in 0..150 {
        web.log(Instant::from_nanos(number * 1_000_000), &format!("line {number}"));
    }
    web.publish("\"time\":0");
    assert!(!web.has_newcomers());
    let mut events = EventStream::open(&web);
    wait_for("no listener", || web.listeners() == 1);
    assert!(web.has_newcomers() && !web.has_newcomers());
    // The listener does not get states that were published before it connected.
    web.publish("\"time\":1");
    let event = events.event();
    assert_eq!(event["time"], 1);
    let log = event["log"].as_array().expect("the value is a list");
    assert_eq!((log.len(), &log[0]), (100, &serde_json::json!([0.05, "line 50"])));
    web.log(Instant::from_nanos(0), "a \"quote\"");
    web.publish("\"time\":2");
    assert_eq!(events.event(), serde_json::json!({"time": 2, "log": [[0.0, "a \"quote\""]]}));
    web.publish("\"time\":3");
    assert_eq!(events.event()["log"], serde_json::json!([]));
    // Logs more lines than the server keeps.
    for number in 0..1005 {
        web.log(Instant::from_nanos(0), &format!("{}{number}", "ü".repeat(1000)));
    }
    web.publish("\"time\":4");
    let event = events.event();
    let log = event["log"].as_array().expect("the value is a list");
    assert_eq!(log.len(), 1001);
    assert_eq!(log[0], serde_json::json!([0.0, "5 lines before this were not kept"]));
    assert!(log[1][1].as_str().is_some_and(|line| line.len() <= 1000));
    // The server removes a disconnected listener at the next event at the latest.
    drop(events);
    wait_for("the listener is not removed", || {
        web.publish("\"time\":5");
        web.listeners() == 0
    });
}

#[test]
fn number_of_listeners_is_limited() {
    let web = web();
    let mut streams: Vec<EventStream> =
        (0..MOST_LISTENERS).map(|_| EventStream::open(&web)).collect();
    let response = get(&web, "api/events");
    assert_eq!(response.status, 503);
    assert!(response.error().contains("16"));
    assert_eq!(web.listeners(), MOST_LISTENERS);
    streams.pop();
    wait_for("no listener is removed", || {
        web.publish("\"time\":1");
        web.listeners() < MOST_LISTENERS
    });
    streams.push(EventStream::open(&web));
    assert_eq!(web.listeners(), MOST_LISTENERS);
}

#[test]
fn stalled_listener_does_not_block_others() {
    let web = web();
    let stalled = send(&web, "GET", "api/events", "", "");
    let mut events = EventStream::open(&web);
    wait_for("no two listeners", || web.listeners() == 2);
    // Publishes far more data than the sockets' buffers hold.
    let padding = "x".repeat(1 << 20);
    for time in 0..64 {
        web.publish(&format!("\"time\":{time},\"padding\":\"{padding}\""));
        assert!(events.event()["time"].as_u64() <= Some(time));
    }
    // Only the last state is kept for the stalled listener.
    assert_eq!(Arc::strong_count(&web.states.borrow()), 1);
    drop(stalled);
    wait_for("the listener is not removed", || web.listeners() == 1);
}

#[test]
fn number_of_connections_is_limited() {
    let web = web();
    let mut idle: Vec<TcpStream> = (0..MOST_CONNECTIONS).map(|_| connect(&web)).collect();
    // The server accepts connections in order, so the last one exceeds the maximum and is closed.
    let mut last = connect(&web);
    let mut byte = [0];
    assert!(matches!(last.read(&mut byte), Ok(0) | Err(_)), "the connection is not closed");
    assert!(idle.pop().is_some());
    wait_for("no connection is accepted", || {
        let mut stream = connect(&web);
        let token = web.token.as_str();
        let head = format!("GET /{token}/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).is_ok() && matches!(stream.read(&mut byte), Ok(1))
    });
}

#[test]
fn stop_does_not_wait_for_clients() {
    let mut web = web();
    let mut events = EventStream::open(&web);
    let waits = send(&web, "GET", "api/fabric", "", "");
    let request = next(&mut web);
    let stream = send(&web, "GET", "api/load", "", "");
    let (sender, receiver) = channel::<()>();
    next(&mut web).answer(Answer::Later(Box::new(move || {
        let _ = receiver.recv();
        Err(Refusal::conflict("too late"))
    })));
    let port = web.address.port();
    let since = WallClock::now();
    drop(web);
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    request.answer(Answer::Json(Json::new()));
    for mut stream in [waits, stream] {
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    }
    assert_eq!(events.line(), "");
    drop(sender);
    // When the server has stopped, its port is free again.
    wait_for("the port is taken", || Web::start(loopback(port), FILES).is_ok());
}

#[test]
fn port_in_use_is_an_error() {
    let web = web();
    let error = Web::start(web.address, FILES).expect_err("the port is in use");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(web.url().starts_with("http://127.0.0.1:") && web.url().ends_with('/'));
}
