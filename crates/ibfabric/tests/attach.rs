//! Tests `ibfabric rdma` processes that attach their HCAs to ports of the simulator, `ibfabric sim`.

use std::io::{BufRead, BufReader};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType};
use serde_json::{Value, json};

mod program;

use program::{Running, ibfabric, text};

impl Running {
    fn start(words: &[&str]) -> Self {
        Self::ready(ibfabric(words))
    }

    /// Sends a signal, and waits until the process has exited.
    fn signal(&mut self, name: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.expect("kill runs").success());
        self.0.wait().expect("the process can be awaited");
    }
}

/// A simulator of a fat tree, and the simulator's name, which its option `--name` sets.
struct Lab {
    simulator: Running,
    name: String,
    directory: tempfile::TempDir,
}

impl Lab {
    fn start(name: &str, more: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
        let fabric = directory.path().join("fabric.net");
        let path = fabric.to_str().expect("the path is UTF-8");
        let made = ibfabric(&["gen", "fat-tree", "4", "-o", path])
            .status()
            .expect("the program can be started");
        assert!(made.success());
        let name = format!("attach-test-{name}-{}", std::process::id());
        let fixed = ["sim", path, "--name", &name, "--sm", "--mtu", "4096"];
        let simulator = Running::start(&[&fixed, more].concat());
        Self { simulator, name, directory }
    }

    fn server(&self, node: &str, more: &[&str]) -> Running {
        let fixed = ["rdma", "serve", "--attach", &self.name, "--node", node];
        Running::start(&[&fixed, more].concat())
    }

    fn client(&self, words: &[&str]) -> Output {
        let (program, rest) =
            words.split_first().expect("the words begin with a subcommand of `rdma`");
        let fixed = ["rdma", program, "--attach", &self.name];
        ibfabric(&[&fixed, rest].concat()).output().expect("the program can be started")
    }

    /// Runs a client; returns its JSON output.
    fn measured(&self, words: &[&str]) -> Value {
        let output = self.client(&[words, &["--json"]].concat());
        let object = serde_json::from_slice(&output.stdout);
        let object =
            object.unwrap_or_else(|_| panic!("no JSON from {words:?}: {}", text(&output.stderr)));
        assert_eq!(output.status.code(), Some(0), "{object}");
        object
    }

    fn console(&self, words: &[&str]) -> String {
        let fixed = ["sim", "ctl", "--name", &self.name];
        let output =
            ibfabric(&[&fixed, words].concat()).output().expect("the program can be started");
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Waits until the output of a console command contains the given text.
    fn await_line(&self, words: &[&str], expected: &str) {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let printed = self.console(words);
            if printed.contains(expected) {
                return;
            }
            assert!(Instant::now() < end, "`{expected}` is missing: {printed}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn processes_exchange_data_by_any_peer_name() {
    let lab = Lab::start("data", &[]);
    let server = lab.server("host-2", &["--rping", "--ucmatose"]);
    let info = lab.measured(&["devinfo", "--node", "host-2"]);
    let port = &info["fabric"];
    assert_eq!((&info["running"], &port["active"]), (&true.into(), &true.into()), "{info}");
    assert_eq!(info["active_mtu"], 4096);
    let (lid, gid) =
        (port["lid"].to_string(), info["gids"][0].as_str().expect("the value is a string"));
    let address = port["addresses"][0].as_str().expect("the value is a string");
    let node = port["node"].as_str().expect("the value is a string");
    let numbered = format!("{node}:1");
    for peer in ["host-2", node, &numbered, &lid, gid, address] {
        let what = ["bw", "--node", "host-5", peer, "-s", "300000", "-n", "50", "-q", "2"];
        let found = lab.measured(&what);
        assert_eq!((&found["mtu"], &found["iters"]), (&4096.into(), &50.into()), "{found}");
    }
    for op in ["send", "write", "read"] {
        lab.measured(&["bw", "--node", "host-5", "host-2", "--op", op, "-s", "65536", "-n", "100"]);
        let found = lab.measured(&["lat", "--node", "host-5", "host-2", "--op", op, "-n", "200"]);
        assert!(found["latency_us"]["p50"].as_f64() > Some(0.0), "{found}");
    }
    let found = lab.measured(&["ping", "--node", "host-5", "host-2", "-S", "3000"]);
    assert_eq!((&found["pings"], &found["wrong"]), (&10.into(), &0.into()));
    let output = lab.client(&["cmatose", "--node", "host-7", "host-2"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let info = lab.measured(&["devinfo", "--node", "host-2"]);
    let counters = &info["counters"];
    assert!(counters["without_icrc"].as_u64() > Some(1000), "{info}");
    assert_eq!(counters["icrc_verified"], 0);
    assert!(lab.console(&["attached"]).contains(&format!("adapter at \"{node}\"[1]")));
    assert!(lab.console(&["stats"]).contains("refused.malformed 0"));
    drop(server);
}

#[test]
fn pingpong_exchanges_qpns_over_tcp() {
    let lab = Lab::start("pingpong", &[]);
    let port = (20_000 + std::process::id() % 12_000).to_string();
    let fixed = ["-p", &port, "-n", "300", "-s", "9000", "-c", "--attach", &lab.name];
    let words = [&["rdma", "pingpong", "--node", "host-1"], &fixed[..]].concat();
    let mut server =
        ibfabric(&words).stdout(Stdio::piped()).spawn().expect("the program can be started");
    let mut line = String::new();
    let output = server.stdout.as_mut().expect("standard output is piped");
    BufReader::new(output).read_line(&mut line).expect("the program prints a line");
    assert!(line.contains("local address: LID 0x00") && !line.contains("LID 0x0000"), "{line}");
    let words = [&["rdma", "pingpong", "--node", "host-6", "127.0.0.1"], &fixed[..]].concat();
    let client = ibfabric(&words).output().expect("the program can be started");
    assert!(text(&client.stdout).contains("300 iters in"), "{}", text(&client.stderr));
    assert!(server.wait().expect("the process can be awaited").success());
}

#[test]
fn port_goes_down_with_hca_and_up_with_next() {
    let lab = Lab::start("death", &[]);
    let mut server = lab.server("host-2", &[]);
    let small = ["bw", "--node", "host-5", "host-2", "-n", "10"];
    lab.measured(&small);
    server.signal("KILL");
    lab.await_line(&["dump", "host-2"], "Down");
    let output = lab.client(&small);
    assert_eq!(output.status.code(), Some(2));
    assert!(!output.stderr.is_empty());
    // When another HCA attaches to the port, the SM activates the port again.
    let mut server = lab.server("host-2", &[]);
    lab.measured(&small);
    // If the server exits cleanly, its HCA detaches, but the port remains up.
    server.signal("TERM");
    assert!(!lab.console(&["attached"]).contains("adapter"));
    assert!(!lab.console(&["dump", "host-2"]).contains("Down"));
}

#[test]
fn clients_exit_with_simulator_or_peer() {
    let mut lab = Lab::start("end", &[]);
    let server = lab.server("host-2", &[]);
    let endless = |lab: &Lab| {
        let words = ["rdma", "bw", "--attach", &lab.name, "--node", "host-5", "host-2"];
        let mut command = ibfabric(&[&words[..], &["-n", "100000000"]].concat());
        let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
        Running(child.expect("the program can be started"))
    };
    let fails = |mut client: Running, expected: &str| {
        let end = Instant::now() + Duration::from_secs(60);
        let status = loop {
            match client.0.try_wait().expect("the process can be awaited") {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
            assert!(Instant::now() < end, "the client does not exit");
        };
        let mut printed = String::new();
        std::io::Read::read_to_string(
            client.0.stderr.as_mut().expect("standard error is piped"),
            &mut printed,
        )
        .expect("the output is UTF-8");
        assert_eq!(status.code(), Some(2), "{printed}");
        assert!(printed.contains(expected), "{printed}");
    };
    let client = endless(&lab);
    lab.await_line(&["attached"], "00a\"[1]");
    std::thread::sleep(Duration::from_millis(300));
    drop(server);
    // The server was killed, so the client's request fails when its retries are exhausted.
    fails(client, "RetryExcErr");
    // A server that exits cleanly disconnects its clients.
    for program in [&["lat", "--op", "send", "-n", "100000000"][..], &["ping", "-C", "100000000"]] {
        let server = lab.server("host-2", &["--rping"]);
        let words = [
            &["rdma", program[0], "--attach", &lab.name, "--node", "host-5", "host-2"],
            &program[1..],
        ];
        let mut command = ibfabric(&words.concat());
        let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
        let client = Running(child.expect("the program can be started"));
        lab.await_line(&["attached"], "00a\"[1]");
        std::thread::sleep(Duration::from_millis(300));
        let mut server = server;
        server.signal("TERM");
        fails(client, "has disconnected");
    }
    let _server = lab.server("host-2", &[]);
    let client = endless(&lab);
    lab.await_line(&["attached"], "00a\"[1]");
    lab.simulator.signal("KILL");
    fails(client, "has disconnected");
}

#[test]
fn rejected_clients_get_the_reason() {
    let lab = Lab::start("refuse", &[]);
    let _server = lab.server("host-2", &[]);
    let bw = |node: &str, peer: &str| {
        let output = lab.client(&["bw", "--node", node, peer, "-n", "10"]);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    assert!(bw("host-2", "host-3").contains("has an HCA already"));
    assert!(bw("nobody", "host-3").contains("there is no port \"nobody\""));
    assert!(bw("host-2:9", "host-3").contains("there is no port \"host-2:9\""));
    assert!(bw("host-3", "nobody").contains("nobody: expected NODE"));
    assert!(bw("host-3", "192.0.2.1").contains("192.0.2.1: expected NODE"));
    let alone = bw("host-3", "host-4");
    assert!(alone.contains("does not respond") || alone.contains("refuses"), "{alone}");
    let output = ibfabric(&["rdma", "bw", "host-2"]).output().expect("the program can be started");
    assert!(text(&output.stderr).contains("--attach"), "{}", text(&output.stderr));
    let words = ["rdma", "bw", "--attach", "attach-test-nobody", "host-2"];
    let output = ibfabric(&words).output().expect("the program can be started");
    assert!(text(&output.stderr).contains("no simulator listens"), "{}", text(&output.stderr));
}

/// The simulator disconnects a client that sends malformed messages.
#[test]
fn malformed_messages_do_not_affect_other_clients() {
    let lab = Lab::start("nonsense", &[]);
    let _server = lab.server("host-2", &[]);
    let address =
        SocketAddr::from_abstract_name(format!("{}:data", lab.name)).expect("the name is valid");
    // The socket has the type `SOCK_SEQPACKET`, so a stream socket cannot connect to it.
    assert!(UnixStream::connect_addr(&address).is_err());
    let say = |message: &[u8]| {
        let socket = net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)
            .expect("the socket can be created");
        let name = format!("{}:data", lab.name);
        let address =
            SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("the name is valid");
        net::connect(&socket, &address).expect("the simulator listens");
        net::send(&socket, message, SendFlags::NOSIGNAL).expect("the peer accepts data");
        let mut answer = vec![0; 65_536];
        let (length, _) = net::recv(&socket, &mut answer[..], RecvFlags::empty())
            .expect("the response is received");
        text(&answer[..length])
    };
    let hello = |version: u32, classes: &[u8]| {
        let hello =
            json!({ "hello": { "version": version, "node": "host-3", "classes": classes } });
        say(hello.to_string().as_bytes())
    };
    assert!(hello(1, &[7]).contains("found version 1 of the protocol, expected 5"));
    assert!(hello(5, &[1, 2, 3, 4, 5, 6, 7, 8, 9]).contains("9 classes"));
    assert!(hello(5, &[7]).contains("welcome"));
    assert_eq!(say(b"nonsense"), "");
    assert_eq!(say(&[b'x'; 65_000]), "");
    assert_eq!(say(b"\"bye\""), "");
    let resolve =
        say(json!({ "resolve": { "number": 7, "name": "host-2" } }).to_string().as_bytes());
    assert!(resolve.contains("resolved") && resolve.contains("\"number\":7"), "{resolve}");
    let serve = say(json!({ "serve": { "number": 3, "class": 7 } }).to_string().as_bytes());
    assert!(serve.contains("\"number\":3") && serve.contains("the process has no HCA"), "{serve}");
    lab.measured(&["bw", "--node", "host-5", "host-2", "-n", "10"]);
    assert!(lab.console(&["stats"]).contains("refused.malformed 2"));
}

#[test]
fn hca_traffic_is_recorded_and_replayed() {
    let record = std::env::temp_dir().join(format!("attach-test-{}.record", std::process::id()));
    let record = record.to_str().expect("the path is UTF-8");
    let logs = tempfile::tempdir().expect("a temporary directory can be created");
    let log = |name: &str| logs.path().join(name).to_str().expect("the path is UTF-8").to_owned();
    let (first, second) = (log("first"), log("second"));
    let script = log("script");
    std::fs::write(&script, "at 0.2s Fault \"host-2\" loss=0.01 duplicate=0.01 reorder=0.01\n")
        .expect("the file can be written");
    let words = ["--record", record, "--log", &first, "--log-level", "hops", "--script", &script];
    let more = [&words[..], &["--agents"]].concat();
    let mut lab = Lab::start("record", &more);
    let mut server = lab.server("host-2", &[]);
    lab.measured(&["bw", "--node", "host-5", "host-2", "-n", "30"]);
    lab.measured(&["lat", "--node", "host-6", "host-2", "-n", "50"]);
    server.signal("KILL");
    lab.await_line(&["dump", "host-2"], "Down");
    let _server = lab.server("host-2", &[]);
    lab.measured(&["bw", "--node", "host-5", "host-2", "-n", "30", "--op", "read"]);
    lab.simulator.signal("TERM");
    let fabric = lab.directory.path().join("fabric.net");
    let fabric = fabric.to_str().expect("the path is UTF-8");
    let words =
        ["sim", fabric, "--mtu", "4096", "--agents", "--replay", record, "--script", &script];
    let words = [&words[..], &["--log", &second, "--log-level", "hops"]].concat();
    let output = ibfabric(&words).output().expect("the program can be started");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let [first, second] =
        [&first, &second].map(|path| std::fs::read_to_string(path).expect("the file can be read"));
    assert!(first.lines().count() > 1000);
    assert!(first == second, "the replay has another log than the recording");
    std::fs::remove_file(record).expect("the file exists");
}

#[test]
fn fabric_losses_are_in_capture_of_sender() {
    let lab = Lab::start("lost", &[]);
    let server = lab.server("host-1", &[]);
    for fault in ["\"leaf-0\"[2] loss=0.02", "\"leaf-0\"[1] corrupt=0.02"] {
        lab.console(&[&format!("Fault {fault}")]);
    }
    let file = lab.directory.path().join("a.pcapng");
    let path = file.to_str().expect("the path is UTF-8");
    let sent = ["bw", "--node", "host-5", "host-1", "-s", "65536", "-n", "300", "--pcap", path];
    let found = lab.measured(&sent);
    assert!(found["retransmits"].as_u64() > Some(0), "{found}");
    drop(server);
    let bytes = std::fs::read(&file).expect("the file can be read");
    let mut file = ib_capture::CaptureFile::new(&bytes[..], &[]).expect("the file is a capture");
    let mut lost = 0;
    while let Some(item) = file.next_item().expect("all blocks are complete") {
        let ib_capture::Item::Frame(frame) = item else { continue };
        assert!(frame.content.is_ok(), "{frame:?}");
        lost += frame.comments.iter().filter(|it| it.starts_with("lost: at ")).count();
    }
    assert!(lost > 10, "{lost}");
    // The capture records the losses of packets that the client sent. The simulator's counters also include the losses
    // of packets that were sent to the client.
    let stats: Value =
        serde_json::from_str(&lab.console(&["stats", "--json"])).expect("the text is JSON");
    let all = ["fault", "damaged"].map(|why| stats["data"]["lost"][why].as_u64().unwrap_or(0));
    assert!(lost as u64 <= all.iter().sum(), "{stats}");
}
