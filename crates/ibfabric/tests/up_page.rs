//! Accesses the web page of `ibfabric up` in the same way as a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[expect(dead_code, reason = "these tests use only a part of the module")]
mod program;

use program::{Running, ibfabric, text};

const PATIENCE: Duration = Duration::from_secs(60);

/// A running `ibfabric up`, and the address of its web page.
struct Up {
    running: Running,
    name: String,
    port: u16,
    /// The secret prefix of all URL paths, including its slashes.
    token: String,
    nbd: String,
    _directory: tempfile::TempDir,
}

fn command(name: &str, directory: &Path, words: &[&str]) -> Command {
    let mut command = ibfabric(&["up", "--name", name, "--size", "16M"]);
    command.args(words).env("XDG_RUNTIME_DIR", directory).env("TMPDIR", directory);
    command
}

impl Up {
    fn start(test: &str, words: &[&str]) -> Self {
        let name = format!("page-test-{test}-{}", std::process::id());
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
        let mut command = command(&name, directory.path(), words);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program can be started");
        let lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
        let running = Running(child);
        let lines = lines.map_while(Result::ok).take_while(|line| line != "READY");
        let printed: Vec<String> = lines.collect();
        let after = |prefix: &str| printed.iter().position(|line| line.starts_with(prefix));
        assert!(after("page: ") < after("try:"), "{printed:?}");
        let page = printed[after("page: ").expect("`up` prints its page")].as_str();
        let place = page.strip_prefix("page: http://127.0.0.1:").expect("the page is on loopback");
        let (port, token) = place.split_once('/').expect("the URL has a path");
        let (port, token) = (port.parse().expect("the text is a port number"), format!("/{token}"));
        let nbd = format!("{}/ibfabric-{name}.nbd", directory.path().display());
        Self { running, name, port, token, nbd, _directory: directory }
    }

    /// Sends an HTTP request. Returns the connection from which the response is read.
    fn send(&self, method: &str, path: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("the time limit can be set");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {length}\r\n\r\n{body}",
            self.port
        )
        .expect("the peer accepts data");
        BufReader::new(stream)
    }

    fn request(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut answer = String::new();
        self.send(method, path, body)
            .read_to_string(&mut answer)
            .expect("the response is received");
        let (head, body) = answer.split_once("\r\n\r\n").expect("the response has a header");
        let status = head.split(' ').nth(1).expect("the header has a status");
        (status.parse().expect("the text is a number"), body.to_owned())
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.request("GET", &format!("{}api/{path}", self.token), "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).expect("the text is JSON")
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let path = format!("{}api/{path}", self.token);
        let (status, body) = self.request("POST", &path, &body.to_string());
        (status, serde_json::from_str(&body).expect("the text is JSON"))
    }

    /// Subscribes to the event stream of the page.
    fn listen(&self) -> Events {
        Events(self.send("GET", &format!("{}api/events", self.token), ""))
    }

    /// Returns the node indices of the hosts.
    fn hosts(&self) -> Vec<u64> {
        let fabric = self.get("fabric");
        let nodes = fabric["nodes"].as_array().expect("the value is a list").iter();
        nodes.filter(|node| node["kind"] == "host").filter_map(|node| node["id"].as_u64()).collect()
    }

    /// Sends SIGINT. Returns the exit status and the time until the exit.
    fn interrupt(&mut self) -> (Option<i32>, Duration) {
        let since = Instant::now();
        let process = rustix::process::Pid::from_child(&self.running.0);
        rustix::process::kill_process(process, rustix::process::Signal::INT)
            .expect("the process exists");
        (self.running.0.wait().expect("the process can be awaited").code(), since.elapsed())
    }
}

/// The event stream of the page. Each event contains the state of the fabric and of the SM.
struct Events(BufReader<TcpStream>);

impl Events {
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        while self.0.read_line(&mut line).is_ok_and(|length| length > 0) {
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).expect("the text is JSON"));
            }
            line.clear();
        }
        None
    }

    /// Waits for an event whose state satisfies the condition.
    fn wait_for(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let state = self.next().expect("up keeps running");
            if is_so(&state) {
                return state;
            }
            assert!(since.elapsed() < PATIENCE, "{what}: {state}");
        }
    }
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().expect("the value is an object").keys().map(String::as_str).collect()
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn links(path: &Value) -> Vec<u64> {
    let hops = path["hops"].as_array().expect("the value is a list");
    hops.iter().filter_map(|hop| hop["link"].as_u64()).collect()
}

#[test]
fn cut_link_is_routed_around_and_returns() {
    let mut up = Up::start("cut", &[]);
    let hosts = up.hosts();
    assert_eq!(hosts.len(), 32);
    let way = format!("path?from={}&to={}", hosts[0], hosts[31]);
    let before = up.get(&way);
    assert_eq!((&before["error"], links(&before).len()), (&Value::Null, 4));
    let link = links(&before)[1];
    let mut events = up.listen();
    let first = events.next().expect("the stream has an event");
    assert_eq!(
        keys(&first),
        ["down", "log", "missing", "routes", "since", "sm", "time", "traffic"]
    );
    assert_eq!(
        keys(&first["sm"]),
        ["alarms", "followed", "last", "lid", "node", "state", "sweeps", "up"]
    );
    assert_eq!((&first["down"], &first["sm"]["state"]), (&json!([]), &json!("MASTER")));
    assert_eq!(first["sm"]["up"], true);
    assert!(first["log"].as_array().is_some_and(|log| !log.is_empty()), "{first}");
    assert_eq!(up.post("link", &json!({"link": link, "up": false})), (200, json!({})));
    let (status, again) = up.post("link", &json!({"link": link, "up": false}));
    assert!(status == 409 && again["error"].as_str().is_some_and(|why| why.contains("cable")));
    let is_logged = |state: &Value| state["log"].to_string().contains("command Unlink");
    let cut =
        events.wait_for("the link is not down", |it| it["down"] == json!([link]) || is_logged(it));
    assert!(is_logged(&cut), "{cut}");
    let around = wait_for("the path still uses the cut link", || {
        let path = up.get(&way);
        (path["error"].is_null() && !links(&path).contains(&link)).then_some(path)
    });
    assert_ne!(around["routes"], before["routes"]);
    let down =
        events.wait_for("no event has the new routes", |it| it["routes"] == around["routes"]);
    assert_eq!(down["down"], json!([link]));
    let since = down["since"][0].as_f64().expect("the value is a number");
    assert!(
        since > 0.0 && since <= down["time"].as_f64().expect("the value is a number"),
        "{down}"
    );
    assert_eq!(down["missing"], json!([]), "every node is reached over other links");
    // `ibfabric sim ctl` can also control the embedded simulator.
    let console = ibfabric(&["sim", "ctl", "--name", &up.name, "dump"]).output();
    assert!(console.expect("the program can be started").status.success());
    let load = up.get("load");
    assert_eq!(load["load"][link as usize], json!([0, 0]));
    assert_eq!(up.post("link", &json!({"link": link, "up": true})), (200, json!({})));
    events.wait_for("the link is not up", |it| it["down"] == json!([]));
    // If a host's only link is cut, the host is reported as missing.
    let last = links(&before)[3];
    assert_eq!(up.post("link", &json!({"link": last, "up": false})), (200, json!({})));
    let cut = events.wait_for("the host's link is not down", |it| it["down"] == json!([last]));
    assert_eq!(cut["missing"], json!([[hosts[31], cut["since"][0]]]));
    assert!(cut["since"][0].as_f64() > Some(since), "{cut}");
    // An open event stream does not delay the exit.
    let (status, took) = up.interrupt();
    assert_eq!(status, Some(0));
    assert!(took < Duration::from_secs(5), "{took:?}");
    while events.next().is_some() {}
}

#[test]
fn events_use_the_words_of_the_page() {
    let up = Up::start("shapes", &[]);
    let fabric = up.get("fabric");
    assert_eq!(keys(&fabric), ["engine", "links", "name", "nodes", "socket"]);
    assert_eq!((&fabric["name"], &fabric["engine"]), (&json!("fat-tree 8 2"), &json!("auto")));
    assert_eq!(fabric["socket"], *up.name);
    let hosts = up.hosts();
    let load = up.get("load");
    assert_eq!(keys(&load), ["engine", "load", "max", "routes"]);
    assert_eq!((&load["max"], &load["load"][0]), (&json!(31), &json!([31, 31])));
    let host = up.get(&format!("node?id={}", hosts[0]));
    let expected =
        ["acm", "guid", "id", "kind", "lft", "lid", "name", "ports", "rank", "roles", "values"];
    assert_eq!(keys(&host), expected);
    assert_eq!(host["roles"], json!(["subnet manager", "disk0 client path 0"]));
    assert!(host["acm"]["lines"].is_u64());
    let port = &host["ports"][0];
    let expected = [
        "counters",
        "gbit",
        "generation",
        "lid",
        "link",
        "peer",
        "physical",
        "port",
        "speed",
        "state",
        "width",
    ];
    assert_eq!(keys(port), expected);
    assert_eq!((&port["state"], &port["physical"]), (&json!("Active"), &json!("LinkUp")));
    assert!(port["counters"]["PortXmitData"].as_u64() > Some(0));
    let addresses = up.get("addresses");
    let ports = addresses["ports"].as_array().expect("the value is a list");
    assert_eq!(ports.len(), 44, "expected one end port of each node");
    let own = ports.iter().find(|port| port[0] == hosts[0]).expect("the list has the host");
    assert_eq!((&own[1], &own[2]), (&json!(1), &host["lid"]));
    assert!(own[3][0].as_str().is_some_and(|it| it.parse::<std::net::IpAddr>().is_ok()), "{own}");
    let switch = up.get("node?id=0");
    assert_eq!((&switch["kind"], &switch["acm"]), (&json!("switch"), &Value::Null));
    assert_eq!(switch["lft"].as_array().map(Vec::len), Some(44), "expected the LID of each node");
    let last = fabric["nodes"][hosts[31] as usize]["name"].as_str().expect("the value is a string");
    let (status, found) = up.post("resolve", &json!({"from": hosts[0], "to": last}));
    assert_eq!((status, keys(&found)), (200, vec!["microseconds", "path"]));
    let path = up.get(&format!("path?from={}&to={}", hosts[0], hosts[31]));
    assert_eq!([&found["path"]["slid"], &found["path"]["dlid"]], [&path["slid"], &path["dlid"]]);
    let gid = found["path"]["dgid"].as_str().expect("the value is a string");
    let (_, by_gid) = up.post("resolve", &json!({"from": hosts[0], "to": gid}));
    assert_eq!(by_gid["path"]["dlid"], found["path"]["dlid"]);
    let names = up.get(&format!("acm?id={}", hosts[0]));
    assert_eq!(keys(&names), ["addresses", "counters", "destinations", "endpoints"]);
    let known = names["destinations"].as_array().expect("the value is a list").iter();
    let known = known.filter(|it| it["to"] == *last.to_lowercase()).collect::<Vec<_>>();
    assert_eq!(keys(known[0]), ["age", "gid", "kind", "lid", "sl", "state", "to"]);
    assert_eq!((&known[0]["lid"], &known[0]["state"]), (&path["dlid"], &json!("resolved")));
    for (path, body, expected) in [
        ("resolve", json!({"from": 0, "to": last}), 404),
        ("resolve", json!({"from": hosts[0], "to": ""}), 400),
        ("resolve", json!({"from": hosts[0], "to": "nobody"}), 404),
        ("link", json!({"link": 100_000, "up": true}), 404),
        ("link", json!({"link": 0, "up": true}), 409),
        ("exercise", json!({"seconds": 0}), 400),
    ] {
        let (status, answer) = up.post(path, &body);
        assert_eq!(status, expected, "{path} {body}: {answer}");
        assert!(answer["error"].as_str().is_some_and(|why| !why.is_empty() && !why.contains('\n')));
    }
    let page = up.request("GET", &up.token, "");
    assert!(page.0 == 200 && page.1.to_lowercase().starts_with("<!doctype html>"), "{page:?}");
}

#[test]
fn load_generator_shows_device_and_paths() {
    let up = Up::start("exercise", &[]);
    let before = up.get("rtrs");
    assert_eq!(keys(&before), ["device", "nbd", "paths", "programs", "size"]);
    assert_eq!((&before["device"], &before["size"]), (&json!("disk0"), &json!(16 << 20)));
    assert_eq!((&before["nbd"], &before["programs"]), (&json!(up.nbd), &json!(0)));
    assert_eq!(before["paths"].as_array().map(Vec::len), Some(2));
    assert_eq!(up.get("exercise"), json!({"running": false, "done": 0, "errors": 0}));
    assert_eq!(up.post("exercise", &json!({"seconds": 2})).0, 200);
    assert_eq!(up.post("exercise", &json!({"seconds": 2})).0, 409);
    let mut events = up.listen();
    let busy = events.wait_for("the links carry no traffic", |state| {
        let traffic = state["traffic"].as_array().expect("the value is a list");
        traffic.iter().any(|link| link[1].as_u64() > Some(1_000_000))
    });
    assert_eq!(busy["down"], json!([]));
    let done = wait_for("the load generator does not end", || {
        Some(up.get("exercise")).filter(|it| it["running"] == false)
    });
    assert!(done["done"].as_u64() > Some(32 << 20) && done["errors"] == 0, "{done}");
    let after = up.get("rtrs");
    let mut bytes = 0;
    for path in after["paths"].as_array().expect("the value is a list") {
        let expected = [
            "failovers",
            "from",
            "in_flight",
            "index",
            "latency",
            "read_bytes",
            "reads",
            "reconnects",
            "state",
            "to",
            "write_bytes",
            "writes",
        ];
        assert_eq!(keys(path), expected);
        assert_eq!((&path["state"], &path["in_flight"]), (&json!("connected"), &json!(0)));
        let latency = &path["latency"];
        assert_eq!(keys(latency), ["buckets", "max", "p50", "p99", "unit"]);
        let buckets = latency["buckets"].as_array().expect("the value is a list").iter();
        let counted: u64 = buckets.filter_map(|bucket| bucket[1].as_u64()).sum();
        let [reads, writes] =
            ["reads", "writes"].map(|key| path[key].as_u64().expect("the value is a number"));
        assert_eq!(counted, reads + writes);
        let [half, most, max] =
            ["p50", "p99", "max"].map(|key| latency[key].as_f64().expect("the value is a number"));
        assert!(0.0 < half && half <= most && most <= max, "{latency}");
        bytes += ["read_bytes", "write_bytes"]
            .map(|key| path[key].as_u64().expect("the value is a number"))
            .iter()
            .sum::<u64>();
    }
    assert!(Some(bytes) >= done["done"].as_u64());
}

/// The client reads and writes this many bytes at the end of the device.
const PART: u64 = 1 << 20;

/// An NBD client that uses the device.
struct Program {
    stream: UnixStream,
    size: u64,
}

impl Program {
    fn connect(path: &Path) -> Self {
        let mut stream = UnixStream::connect(path).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("the time limit can be set");
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).expect("the server sends a greeting");
        assert!(greeting.starts_with(b"NBDMAGIC"));
        // The client sends its flags and the option NBD_OPT_EXPORT_NAME.
        let mut hello = 3_u32.to_be_bytes().to_vec();
        hello.extend(b"IHAVEOPT");
        hello.extend(1_u32.to_be_bytes());
        hello.extend(0_u32.to_be_bytes());
        stream.write_all(&hello).expect("the peer accepts data");
        let mut device = [0; 10];
        stream.read_exact(&mut device).expect("the server sends the size of the device");
        let size = u64::from_be_bytes(*device.first_chunk().expect("the array has 10 bytes"));
        Self { stream, size }
    }

    fn request(&mut self, kind: u16, (offset, length): (u64, u64), data: &[u8]) {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend([0; 2]);
        request.extend(kind.to_be_bytes());
        request.extend([0; 8]);
        request.extend(offset.to_be_bytes());
        request.extend((length as u32).to_be_bytes());
        request.extend(data);
        self.stream.write_all(&request).expect("the peer accepts data");
        let mut answer = [0; 16];
        self.stream.read_exact(&mut answer).expect("the server responds");
        assert_eq!(answer[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
    }

    fn read(&mut self, offset: u64, length: u64) -> Vec<u8> {
        self.request(0, (offset, length), &[]);
        let mut data = vec![0; length as usize];
        self.stream.read_exact(&mut data).expect("the server sends the data");
        data
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        self.request(1, (offset, data.len() as u64), data);
    }
}

/// The load generator does not start while a client uses the device. When a client connects, the load generator first
/// restores the device's contents.
#[test]
fn clients_have_priority_over_load_generator() {
    let up = Up::start("programs", &[]);
    let connect = || Program::connect(Path::new(&up.nbd));
    let mut program = connect();
    let size = program.size;
    let old: Vec<u8> = (0..PART).map(|at| (at % 249) as u8).collect();
    program.write(size - PART, &old);
    assert_eq!(program.read(size - PART, PART), old);
    drop(program);
    wait_for("the client still counts as connected", || {
        (up.post("exercise", &json!({"seconds": 500})).0 == 200).then_some(())
    });
    // After this number of bytes, the load generator has overwritten the whole device.
    let enough = |done: &u64| *done > 40 << 20;
    wait_for("the load generator does not begin", || {
        up.get("exercise")["done"].as_u64().filter(enough)
    });
    let mut program = connect();
    assert_eq!(program.read(size - PART, PART), old);
    assert_eq!(up.get("exercise")["running"], false);
    assert_eq!(up.get("exercise")["errors"], 0);
    let (status, why) = up.post("exercise", &json!({"seconds": 1}));
    assert!(status == 409 && why["error"].as_str().is_some_and(|why| why.contains("NBD")), "{why}");
    assert_eq!(up.get("rtrs")["programs"], 1);
    drop(program);
    wait_for("the client still counts as connected", || {
        (up.post("exercise", &json!({"seconds": 1})).0 == 200).then_some(())
    });
}

#[test]
fn requests_from_other_origins_are_rejected() {
    let up = Up::start("others", &[]);
    for path in ["/", "/0123456789abcdef0123456789abcdef/", "/index.html"] {
        assert_eq!(up.request("GET", path, ""), (404, String::new()));
    }
    let mut stream = TcpStream::connect(("127.0.0.1", up.port)).expect("the server listens");
    let path = format!("{}api/fabric", up.token);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n")
        .expect("the peer accepts data");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the response is received");
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    // A second process cannot use the same HTTP port.
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let (name, address) = (format!("{}-2", up.name), format!("127.0.0.1:{}", up.port));
    let second = command(&name, directory.path(), &["--http", &address])
        .output()
        .expect("the program can be started");
    let printed = text(&second.stderr);
    assert_eq!((second.status.code(), printed.lines().count()), (Some(2), 1), "{printed}");
    assert!(printed.contains(&address) && printed.contains("--http"), "{printed}");
    assert_eq!(std::fs::read_dir(directory.path()).expect("the directory can be read").count(), 0);
}

#[test]
fn page_is_optional() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let name = format!("none-test-{}", std::process::id());
    let mut command = command(&name, directory.path(), &["--no-http"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program can be started");
    let lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
    let _running = Running(child);
    let lines = lines.map_while(Result::ok).take_while(|line| line != "READY");
    let printed: Vec<String> = lines.collect();
    assert!(printed.iter().any(|line| line == "try:"), "{printed:?}");
    assert!(!printed.iter().any(|line| line.contains("page")), "{printed:?}");
    for words in [
        &["selftest", "--http", "127.0.0.1"][..],
        &["up", "--no-http", "--http", "127.0.0.1"],
        &["up", "--http", "0.0.0.0"],
    ] {
        let refused = ibfabric(words).output().expect("the program can be started");
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
    }
}
