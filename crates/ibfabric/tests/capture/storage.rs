//! Captures packets of block device programs, and of the hosts that `up` simulates.

use super::*;

/// An RTRS server with two HCAs, its UDP port and its RDMA CM port. Other tests use other ports.
struct Storage {
    process: Running,
    ports: [String; 2],
}

impl Storage {
    fn start(more: &[&str]) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let udp = (22_000 + (std::process::id() % 18_000) as u16 + number).to_string();
        let ports = [udp, (19_600 + number).to_string()];
        let listen = ["rtrs", "serve", "--listen", "127.0.0.1", "--listen", "127.0.0.3"];
        let what = ["--export", "disk0=mem:16M", "--udp-port", &ports[0], "-p", &ports[1]];
        let process = Running::ready(ibfabric(&[&listen[..], &what, more].concat()));
        Self { process, ports }
    }

    fn client(&self, words: &[&str], more: &[&str]) -> Command {
        let paths = ["--path", "127.0.0.2@127.0.0.1", "--path", "127.0.0.4@127.0.0.3"];
        let what = ["--device", "disk0", "--udp-port", &self.ports[0], "-p", &self.ports[1]];
        ibfabric(&[words, &paths, &what, more].concat())
    }
}

fn listed(process: &Running) -> Vec<Value> {
    let pid = process.0.id().to_string();
    let output = ibfabric(&["capture", "list", "--pid", &pid, "--json"]).output();
    let output = output.expect("the program can be started");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let listed: Value = serde_json::from_slice(&output.stdout).expect("the text is JSON");
    listed["programs"].as_array().expect("the value is a list").clone()
}

/// Runs a `capture` subcommand on a program.
fn captures(process: &Running, words: &[&str]) -> Value {
    let pid = process.0.id().to_string();
    let all = [&["capture"], words, &["--pid", &pid, "--json"]].concat();
    let output = ibfabric(&all).output().expect("the program can be started");
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the text is JSON")
}

fn end(mut process: Running) -> Option<i32> {
    let pid = rustix::process::Pid::from_child(&process.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("the process exists");
    process.0.wait().expect("the process can be awaited").code()
}

/// Returns the HCAs whose connected queue pairs have packets in the given file.
fn adapters_in(path: &Path) -> Vec<String> {
    let (counts, _) = packets(path);
    let of_data = counts.keys().filter(|name| !name.contains("qp 0x000001 "));
    let mut names: Vec<String> =
        of_data.filter_map(|name| Some(name.split_once(" qp 0x")?.0.to_owned())).collect();
    names.dedup();
    names
}

#[test]
fn rtrs_serve_and_bench_are_captured_at_all_hcas() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = |name: &str| place.path().join(name).to_str().expect("the path is UTF-8").to_owned();
    let (server, started, own) = (path("server"), path("started"), path("bench"));
    let storage = Storage::start(&["--pcap", &server, "--pcap-payload", "0"]);
    let words = ["--rw", "randrw", "--runtime", "3", "--pcap", &own, "--pcap-payload", "16"];
    let bench = storage.client(&["rtrs", "bench"], &words).stderr(Stdio::piped()).spawn();
    let bench = Running(bench.expect("the program can be started"));
    // Both paths carry requests: each has completed more messages than the connection setup needs.
    let is_busy = |qp: &Value| qp["messages"].as_u64().is_some_and(|it| it > 16);
    let have_requests = |adapters: &Vec<Value>| {
        let busy = |it: &Value| it["qps"].as_array().is_some_and(|qps| qps.iter().any(is_busy));
        adapters.len() == 2 && adapters.iter().all(busy)
    };
    let adapters = wait(|| Some(listed(&storage.process)).filter(have_requests));
    assert_eq!(adapters[0]["address"], "127.0.0.1");
    assert_eq!(adapters[1]["address"], "127.0.0.3");
    // The capture of the option --pcap has all queue pairs until it is stopped. Only then can another capture have
    // them.
    assert!(adapters[1]["qps"][0]["captured"].as_bool().expect("the value is a boolean"));
    let number = captures(&storage.process, &["start", "-w", &started])["capture"].to_string();
    let first = captures(&storage.process, &["stop", "1"]);
    check_counts(&first);
    assert!(number_of(&first, "captured") > 0, "{first}");
    std::thread::sleep(Duration::from_millis(300));
    let second = captures(&storage.process, &["stop", &number]);
    check_counts(&second);
    for file in [&server, &started] {
        assert_eq!(adapters_in(Path::new(file)), ["127.0.0.1", "127.0.0.3"], "{file}");
    }
    let mut bench = bench;
    assert!(bench.0.wait().expect("the process can be awaited").success());
    assert_eq!(adapters_in(Path::new(&own)), ["127.0.0.2", "127.0.0.4"]);
    assert_eq!(end(storage.process), Some(0));
}

fn number_of(info: &Value, key: &str) -> u64 {
    number(&info[key])
}

#[test]
fn one_hca_of_a_server_is_captured_alone() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = place.path().join("a").to_str().expect("the path is UTF-8").to_owned();
    let storage = Storage::start(&[]);
    captures(&storage.process, &["start", "-w", &path, "--device", "127.0.0.3"]);
    let bench = storage
        .client(&["rtrs", "bench"], &["--runtime", "0.5"])
        .output()
        .expect("the program can be started");
    assert!(bench.status.success(), "{}", text(&bench.stderr));
    captures(&storage.process, &["stop"]);
    assert_eq!(adapters_in(Path::new(&path)), ["127.0.0.3"]);
}

#[test]
fn nbd_is_listed_and_captured() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = |name: &str| place.path().join(name).to_str().expect("the path is UTF-8").to_owned();
    let storage = Storage::start(&[]);
    let words = ["--socket", &path("nbd"), "--pcap", &path("own")];
    let nbd = Running::ready(storage.client(&["nbd"], &words));
    let adapters = listed(&nbd);
    assert_eq!(adapters.len(), 2);
    assert_eq!(adapters[0]["captures"].as_array().map(Vec::len), Some(1));
    assert_eq!(end(nbd), Some(0));
    assert_eq!(adapters_in(Path::new(&path("own"))), ["127.0.0.2", "127.0.0.4"]);
}

#[test]
fn hosts_of_up_are_listed_and_captured() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = |name: &str| place.path().join(name).to_str().expect("the path is UTF-8").to_owned();
    let name = format!("capture-test-{}", std::process::id());
    let words = ["up", "--no-http", "--name", &name, "--size", "16M", "--nbd", &path("nbd")];
    let mut up = ibfabric(&[&words[..], &["--pcap", &path("own")]].concat());
    let mut child = up.stdout(Stdio::piped()).spawn().expect("the program can be started");
    let lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
    let up = Running(child);
    let mut lines = lines.map_while(Result::ok);
    assert!(lines.any(|line| line == "READY"));
    let adapters = listed(&up);
    assert_eq!(adapters.len(), 32, "each host has one HCA");
    let connected = |it: &&Value| it["qps"].as_array().is_some_and(|qps| qps.iter().any(is_rc));
    fn is_rc(qp: &Value) -> bool {
        qp["type"] == "RC" && qp["captured"] == true
    }
    assert_eq!(adapters.iter().filter(connected).count(), 4, "expected both ends of two paths");
    let started = captures(&up, &["start", "-w", &path("started")]);
    assert!(
        started["waits"].as_str().is_some_and(|why| why.contains("already captured by capture 1"))
    );
    let own = captures(&up, &["stop", "1"]);
    check_counts(&own);
    assert_eq!(adapters_in(Path::new(&path("own"))).len(), 4);
    captures(&up, &["stop", "2"]);
    assert_eq!(end(up), Some(0));
}

#[test]
fn file_of_another_capture_is_rejected() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = place.path().join("a").to_str().expect("the path is UTF-8").to_owned();
    let (one, other) = (Server::start(), Server::start());
    one.object(&["start"], &["-w", &path]);
    let output = other.capture(&["start"], &["-w", &path]);
    assert_eq!(output.status.code(), Some(2));
    let client = other.client(10, &["--pcap", &path]).output().expect("the program can be started");
    assert_eq!(client.status.code(), Some(2));
    let client = one.client(10, &[]).output().expect("the program can be started");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let stopped = one.object(&["stop"], &[]);
    let (found, _) = packets(Path::new(&path));
    assert_eq!(found.values().sum::<u64>(), number_of(&stopped, "captured"));
}

#[test]
fn full_disk_keeps_all_whole_packets() {
    const KIB: u64 = 300;
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = place.path().join("a").to_str().expect("the path is UTF-8").to_owned();
    let server = Server::start();
    let client = server.client(100, &["--pcap", &path]);
    let words: Vec<_> = client.get_args().map(|word| word.to_string_lossy()).collect();
    let program = env!("CARGO_BIN_EXE_ibfabric");
    let script = format!("trap '' XFSZ; ulimit -f {KIB}; exec '{program}' {}", words.join(" "));
    let output =
        Command::new("bash").args(["-c", &script]).output().expect("the program can be started");
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("File too large"), "{printed}");
    let length = fs::metadata(&path).expect("the file exists").len();
    // The next packet did not fit. A packet takes at most 4400 bytes of the file.
    assert!((KIB * 1024 - 4400..=KIB * 1024).contains(&length), "{length}");
    let (found, _) = packets(Path::new(&path));
    assert!(found.values().sum::<u64>() > KIB / 5, "{found:?}");
}
