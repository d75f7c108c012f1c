//! `ibfabric capture list`, `start`, `change` and `stop`, on programs that run.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use ib_capture::{CaptureFile, Item};
use serde_json::Value;

fn ibfabric(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibfabric"));
    command.args(words);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A server at 127.0.0.1, and clients of it.
struct Server {
    child: Child,
    udp: String,
    port: String,
}

static NEXT: AtomicU16 = AtomicU16::new(0);

impl Server {
    fn start() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let udp = (22_000 + (std::process::id() % 18_000) as u16 + number).to_string();
        let port = (19_600 + number).to_string();
        let words = ["rdma", "serve", "--listen", "127.0.0.1", "--udp-port", &udp, "-p", &port];
        let mut child = ibfabric(&words).stdout(Stdio::piped()).spawn().expect("it runs");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "READY 127.0.0.1\n");
        Self { child, udp, port }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Returns a client that writes so often.
    fn client(&self, iters: u64, more: &[&str]) -> Command {
        let iters = iters.to_string();
        let fixed = ["rdma", "bw", "127.0.0.1", "--from", "127.0.0.2", "--udp-port", &self.udp];
        let what = ["-p", &self.port, "--op", "write", "-s", "8192", "-n", &iters];
        ibfabric(&[&fixed[..], &what, more].concat())
    }

    /// Asks about this server.
    fn capture(&self, words: &[&str], more: &[&str]) -> Output {
        let pid = self.pid();
        let all = [&["capture"], words, &["--pid", &pid, "--format", "json"], more].concat();
        ibfabric(&all).output().expect("it runs")
    }

    fn object(&self, words: &[&str], more: &[&str]) -> Value {
        let output = self.capture(words, more);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("an object")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().expect("it has ended");
    }
}

/// Returns how many packets each interface of a file has, and the remarks in it.
fn packets(path: &Path) -> (BTreeMap<String, u64>, Vec<String>) {
    let bytes = fs::read(path).expect("a file");
    let mut file = CaptureFile::new(&bytes[..], &[]).expect("a capture");
    let (mut counts, mut remarks) = (BTreeMap::new(), Vec::new());
    while let Some(item) = file.next_item().expect("whole blocks") {
        let Item::Frame(frame) = item else { continue };
        remarks.extend(frame.comments.iter().cloned());
        let interface = frame.interface;
        let name = file.interface(interface).and_then(|it| it.name.clone()).expect("a name");
        *counts.entry(name).or_default() += 1;
    }
    (counts, remarks)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// What became of packets is known of each queue pair.
fn check_counts(info: &Value) {
    let known = ["captured", "overwritten", "unwritten", "skipped"]
        .map(|key| number(&info[key]))
        .iter()
        .sum::<u64>();
    let all = number(&info["sent"]) + number(&info["received"]) + number(&info["lost"]);
    assert_eq!(known, all, "{info}");
    for (way, all) in [("sent_counts", "sent"), ("received_counts", "received")] {
        let way = &info[way];
        let known = ["captured", "overwritten", "unwritten", "skipped"]
            .map(|key| number(&way[key]))
            .iter()
            .sum::<u64>();
        assert_eq!(known, number(&info[all]), "{info}");
    }
}

#[test]
fn a_capture_of_a_running_server_has_all_that_it_counts() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("a.pcapng");
    let path = file.to_str().expect("a path");
    let server = Server::start();
    // Nobody is connected yet; whoever comes is captured.
    let started = server.object(&["start"], &["-w", path, "--payload", "64", "--ring", "65536"]);
    assert_eq!((&started["capture"], &started["file"]), (&1.into(), &path.into()));
    let client = server.client(3000, &["-q", "3"]).output().expect("it runs");
    assert!(client.status.success(), "{}", text(&client.stderr));
    // How far it is is told every now and then.
    let has_all = |listed: &Value| listed["programs"][0]["captures"][0]["queue_pairs"] == 4;
    let listed = wait(|| Some(server.object(&["list"], &[])).filter(has_all));
    let program = &listed["programs"][0];
    assert_eq!((&program["address"], &program["link"]), (&"127.0.0.1".into(), &"RoCEv2".into()));
    let stopped = server.object(&["stop"], &[]);
    check_counts(&stopped);
    let qps = stopped["qps"].as_array().expect("queue pairs");
    assert_eq!(qps.len(), 4, "three and that of management: {stopped}");
    let (found, _) = packets(&file);
    for qp in qps {
        check_counts(qp);
        let name = format!("qp {:#08x}", number(&qp["qpn"]));
        for (way, counts) in [("send", "sent_counts"), ("receive", "received_counts")] {
            let written = found.get(&format!("{name} {way}")).copied().unwrap_or(0);
            assert_eq!(written, number(&qp[counts]["captured"]), "{name} {way}");
        }
        if number(&qp["qpn"]) != 1 {
            // Two packets each, and a few again.
            let sent = number(&qp["received"]);
            assert!((6000..9000).contains(&sent), "{qp}");
        }
    }
    // The client knows when its messages were posted, the server only of its own.
    let again = server.capture(&["stop"], &[]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("nothing is captured"), "{}", text(&again.stderr));
}

#[test]
fn what_is_captured_can_be_chosen_and_changed() {
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).to_str().expect("a path").to_owned();
    let server = Server::start();
    let none = server.object(&["start"], &["-w", &path("none"), "--peer", "127.0.0.77"]);
    let service = server.object(
        &["start"],
        &["-w", &path("service"), "--service", &server.port, "--opcode", "acknowledge"],
    );
    let mut client = server.client(1_000_000, &[]).stdout(Stdio::null()).spawn().expect("it runs");
    let connected = |listed: &Value| {
        listed["programs"][0]["qps"].as_array().is_some_and(|qps| {
            qps.iter().any(|qp| qp["state"] == "RTS" && number(&qp["messages"]) > 100)
        })
    };
    let listed = wait(|| Some(server.object(&["list"], &[])).filter(connected));
    let qp = &listed["programs"][0]["qps"][0];
    let qpn = number(&qp["qpn"]).to_string();
    assert_eq!((&qp["peer"], &qp["captured"]), (&"127.0.0.2".into(), &true.into()));
    assert_eq!(number(&qp["service_id"]) & 0xffff, server.port.parse::<u64>().expect("a port"));
    // Its messages are noted, traced or not.
    let listed = server.object(&["list"], &["--messages", &qpn]);
    let messages = listed["programs"][0]["messages"][0]["messages"].as_array().expect("some");
    assert!(messages.len() > 10, "{listed}");
    for message in messages {
        let of = |key: &str| &message[key];
        assert_eq!((of("operation"), of("status")), (&"rdma_write".into(), &"success".into()));
        assert_eq!((of("bytes"), of("packets")), (&8192.into(), &2.into()));
    }
    // One that is traced already stays where it is.
    let stopped = server.object(&["stop"], &[&service["capture"].to_string()]);
    check_counts(&stopped);
    assert!(number(&stopped["sent"]) > 0 && number(&stopped["received"]) == 0, "{stopped}");
    let one = server.object(
        &["start"],
        &["-w", &path("one"), "--qpn", &qpn, "--payload", "0", "--direction", "receive"],
    );
    wait(|| {
        let listed = server.object(&["list"], &[]);
        let captures = listed["programs"][0]["captures"].as_array().expect("captures").clone();
        captures
            .into_iter()
            .find(|it| it["capture"] == one["capture"] && number(&it["bytes"]) > 9000)
    });
    let changed = server.object(&["change"], &[&one["capture"].to_string(), "--payload", "32"]);
    assert_eq!(changed["capture"], one["capture"]);
    std::thread::sleep(Duration::from_millis(200));
    let stopped = server.object(&["stop"], &[&one["capture"].to_string()]);
    assert!(number(&stopped["sent"]) == 0 && number(&stopped["received"]) > 0, "{stopped}");
    let stopped = server.object(&["stop"], &[&none["capture"].to_string()]);
    let nothing = (number(&stopped["sent"]), number(&stopped["received"]));
    assert_eq!(nothing, (0, 0), "{stopped}");
    client.kill().expect("it runs");
    client.wait().expect("it has ended");
    let (found, _) = packets(Path::new(&path("service")));
    assert_eq!(found.len(), 1, "{found:?}");
    let bytes = fs::read(path("one")).expect("a file");
    let mut file = CaptureFile::new(&bytes[..], &[]).expect("a capture");
    let mut kept = Vec::new();
    while let Some(Item::Frame(frame)) = file.next_item().expect("whole blocks") {
        let port = frame.content.as_ref().map(|content| content.kept);
        // The port is not the usual one.
        kept.push((frame.captured, port.is_ok()));
    }
    let lengths: Vec<_> = kept.iter().map(|(captured, _)| *captured).collect();
    // The headers of a first packet, without and with 32 bytes.
    assert!(lengths.contains(&(42 + 28)) && lengths.contains(&(42 + 28 + 32)), "{lengths:?}");
}

/// Waits until something is found.
fn wait<T>(mut find: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < end, "it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_stream_goes_to_a_pipe_until_its_reader_leaves() {
    let server = Server::start();
    let pid = server.pid();
    let words = ["capture", "start", "--pid", &pid, "-w", "-", "--payload", "0"];
    let mut command = ibfabric(&words);
    let mut stream =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut client = server.client(1_000_000, &[]).stdout(Stdio::null()).spawn().expect("it runs");
    let mut output = stream.stdout.take().expect("it is piped");
    let mut start = vec![0; 300_000];
    output.read_exact(&mut start).expect("so much comes");
    let mut file = CaptureFile::new(&start[..], &[]).expect("a capture");
    let mut count = 0;
    while let Ok(Some(_)) = file.next_item() {
        count += 1;
    }
    assert!(count > 1000, "{count}");
    // It stops to read, and the server goes on.
    let messages = || {
        let listed = server.object(&["list"], &[]);
        number(&listed["programs"][0]["qps"][0]["messages"])
    };
    let before = messages();
    wait(|| (messages() > before + 10_000).then_some(()));
    drop(output);
    let mut said = String::new();
    stream.stderr.take().expect("it is piped").read_to_string(&mut said).expect("text");
    let status = stream.wait().expect("it ends");
    assert!(status.success(), "{said}");
    // What was read of it counts as captured.
    let captured =
        said.split_once(" packets captured").and_then(|(before, _)| before.rsplit(' ').next());
    let captured: u64 = captured.and_then(|it| it.parse().ok()).expect("a number");
    assert!(captured > 1000, "{said}");
    assert!(said.contains("Broken pipe") && said.contains("overwritten"), "{said}");
    client.kill().expect("it runs");
    client.wait().expect("it has ended");
    let listed = server.object(&["list"], &[]);
    assert_eq!(listed["programs"][0]["captures"], Value::Array(Vec::new()));
}

#[test]
fn a_capture_ends_where_it_is_told_to_and_its_files_have_what_they_may_have() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("a.pcapng").to_str().expect("a path").to_owned();
    let server = Server::start();
    let limits = ["-a", "packets:2500", "-b", "packets:1000", "-b", "files:2", "--payload", "0"];
    server.object(&["start"], &[&["-w", &path][..], &limits].concat());
    let client = server.client(5000, &[]).output().expect("it runs");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let ended = wait(|| {
        let listed = server.object(&["list"], &[]);
        Some(listed["programs"][0]["captures"][0].clone()).filter(|it| it["ended"] == true)
    });
    assert_eq!((&ended["captured"], &ended["files"]), (&2500.into(), &3.into()));
    let stopped = server.object(&["stop"], &[]);
    check_counts(&stopped);
    let mut files: Vec<_> = fs::read_dir(place.path())
        .expect("a directory")
        .map(|it| it.expect("an entry").path())
        .collect();
    files.sort();
    let counts: Vec<u64> = files.iter().map(|file| packets(file).0.values().sum()).collect();
    assert_eq!(counts, [1000, 500], "{files:?}");
}

#[test]
fn a_trigger_keeps_what_was_before_the_end_of_a_queue_pair() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("a.pcapng");
    let path = file.to_str().expect("a path");
    let server = Server::start();
    let words = ["-w", path, "--trigger", "error", "--keep", "50", "--payload", "0"];
    server.object(&["start"], &words);
    let mut client = server.client(1_000_000, &["-m", "256"]);
    let mut client = client.stdout(Stdio::null()).spawn().expect("it runs");
    let running = |listed: &Value| {
        let qps = listed["programs"][0]["qps"].as_array().cloned().unwrap_or_default();
        qps.iter().any(|qp| number(&qp["messages"]) > 1000)
    };
    wait(|| running(&server.object(&["list"], &[])).then_some(()));
    let so_far = server.object(&["list"], &[]);
    assert_eq!(so_far["programs"][0]["captures"][0]["captured"], Value::from(0), "{so_far}");
    // Who disconnects ends the queue pair at the other side as well.
    Command::new("kill").arg(client.id().to_string()).status().expect("kill runs");
    client.wait().expect("it has ended");
    // Without an end that anybody tells of there is nothing to write.
    let stopped = server.object(&["stop"], &[]);
    check_counts(&stopped);
    assert_eq!(number(&stopped["captured"]), packets(&file).0.values().sum::<u64>());
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let place = tempfile::tempdir().expect("a directory");
    let inside = |name: &str| place.path().join(name).to_str().expect("a path").to_owned();
    let server = Server::start();
    let refused = |words: &[&str], expected: &str| {
        let output = server.capture(&["start"], words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
    };
    let message = format!("ibfabric: cannot create {}: No such file", inside("no/where"));
    refused(&["-w", &inside("no/where")], &message);
    refused(&["-w", &inside("a"), "--payload", "5000"], "expected a number of 0 to 4096");
    refused(&["-w", &inside("a"), "--ring", "100000"], "expected a power of two");
    refused(&["-w", &inside("a"), "-b", "files:3"], "expected also when another file begins");
    refused(&["-w", &inside("a"), "-b", "sizes:3"], "expected duration:S");
    for limit in ["files:3", "foo:2", "packets", "packets:x"] {
        let expected = "expected duration:S, filesize:KB or packets:N\n";
        refused(&["-w", &inside("a"), "-a", limit], expected);
    }
    for (option, limit) in [("-a", "packets:0"), ("-b", "duration:0"), ("-b", "files:0")] {
        refused(&["-w", &inside("a"), option, limit], &format!("`{limit}` is not more than 0"));
    }
    refused(&["-w", &inside("a"), "--peer", "nobody"], "expected an IP address, a GID or a LID");
    refused(&["-w", &inside("a"), "--opcode", "teleport"], "expected a code of 0 to 255");
    refused(&["-w", &inside("a"), "--trigger", "rain"], "expected error, retransmission or drop");
    refused(&["-w", &inside("a"), "--keep", "5"], "--trigger");
    refused(&["-w", "-", "-b", "packets:5"], "standard output is one stream");
    let output = server.capture(&["stop"], &["77"]);
    assert!(text(&output.stderr).contains("there is no capture 77"), "{}", text(&output.stderr));
    let output = server.capture(&["list"], &["--messages", "0xabcdef"]);
    assert!(text(&output.stderr).contains("no program has a queue pair 0xabcdef"));
    let output = ibfabric(&["capture", "list", "--pid", "1"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).starts_with("ibfabric: process 1 has no queue pairs that could be"),
        "{}",
        text(&output.stderr)
    );
    for words in [&["list"][..], &["start", "-w", "a"], &["stop"], &["change", "1"]] {
        let words = [&["capture"], words, &["--pid", "999999999"]].concat();
        let output = ibfabric(&words).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(text(&output.stderr), "ibfabric: there is no process 999999999\n");
    }
    let output = server.capture(&["list"], &["--messages", "1"]);
    let said = text(&output.stderr);
    assert!(said.contains("has datagrams") && said.contains("start --qpn 1"), "{said}");
    // A full disk ends the capture, and nothing else.
    server.object(&["start"], &["-w", "/dev/full"]);
    let client = server.client(100, &[]).output().expect("it runs");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let output = server.capture(&["stop"], &[]);
    let stopped: Value = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!(output.status.code(), Some(1));
    let error = stopped["error"].as_str().expect("an error");
    assert!(error.starts_with("/dev/full: byte 0: No space left"), "{error}");
    check_counts(&stopped);
    assert_eq!(number(&stopped["captured"]), 0);
}

/// Nonsense that comes over the socket is answered as such.
#[test]
fn nonsense_over_the_socket_harms_nobody() {
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send,
        socket,
    };
    let server = Server::start();
    let name = format!("ibfabric-capture-{}-0", server.pid());
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name");
    for nonsense in ["", "{", "{\"start\":{}}", "[1,2]", "\"describe\"", &"x".repeat(60_000)] {
        let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket");
        connect(&socket, &address).expect("it listens");
        send(&socket, nonsense.as_bytes(), SendFlags::NOSIGNAL).expect("it is taken");
        if nonsense.is_empty() {
            continue;
        }
        let mut answer = [0; 4096];
        let (length, _) = recv(&socket, &mut answer, RecvFlags::empty()).expect("an answer");
        assert!(text(&answer[..length]).contains("that is no question"), "{nonsense}");
    }
    // More than may ask at once; those who leave make room.
    let many: Vec<_> = (0..40)
        .map(|_| {
            let socket =
                socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket");
            connect(&socket, &address).expect("it listens");
            socket
        })
        .collect();
    drop(many);
    wait(|| server.capture(&["list"], &[]).status.success().then_some(()));
}

/// Many queue pairs at once, with rings that are much too small: for each of them everything is captured or counted,
/// and the file has what is said to be in it. `IBFABRIC_PACKETS` is how many packets there are at least.
#[test]
fn nothing_is_lost_without_being_counted() {
    const QPS: u64 = 16;
    let wanted =
        std::env::var("IBFABRIC_PACKETS").map_or(100_000, |it| it.parse().expect("a number"));
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("a.pcapng");
    let path = file.to_str().expect("a path");
    let server = Server::start();
    server.object(&["start"], &["-w", path, "--payload", "0", "--ring", "65536"]);
    // Each message has two packets.
    let iters = wanted / 2 / QPS + 1;
    let client = server.client(iters, &["-q", &QPS.to_string()]).output().expect("it runs");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let output = ibfabric(&["rdma", "devinfo", "--listen", "127.0.0.1", "--udp-port", &server.udp])
        .args(["--format", "json"])
        .output()
        .expect("it runs");
    let info: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let stopped = server.object(&["stop"], &[]);
    check_counts(&stopped);
    assert!(number(&stopped["received"]) >= wanted, "{stopped}");
    // What the adapter counts itself, whatever is traced.
    assert_eq!(stopped["sent"], info["counters"]["sent_packets"], "{info}");
    assert_eq!(stopped["received"], info["counters"]["received_packets"], "{info}");
    let qps = stopped["qps"].as_array().expect("queue pairs");
    assert_eq!(qps.len() as u64, QPS + 1);
    let (found, remarks) = packets(&file);
    check_losses(&file, &server.udp, &stopped);
    for qp in qps {
        check_counts(qp);
        let name = format!("qp {:#08x}", number(&qp["qpn"]));
        for (way, counts) in [("send", "sent_counts"), ("receive", "received_counts")] {
            let written = found.get(&format!("{name} {way}")).copied().unwrap_or(0);
            assert_eq!(written, number(&qp[counts]["captured"]), "{name} {way}");
        }
    }
    if number(&stopped["overwritten"]) > 0 {
        assert!(remarks.iter().any(|it| it.contains("before this one were overwritten")));
    }
    eprintln!(
        "{} captured, {} overwritten, of {}",
        stopped["captured"],
        stopped["overwritten"],
        number(&stopped["sent"]) + number(&stopped["received"])
    );
}

/// What a file tells to be missing is what `stop` has counted, for each queue pair and direction, and is told once;
/// so it is without what is counted at the end. Its packets are in the order of time.
fn check_losses(file: &Path, udp: &str, stopped: &Value) {
    let path = file.to_str().expect("a path");
    let read = |words: &[&str]| {
        let fixed = ["capture", "read", path, "--udp-port", udp];
        ibfabric(&[&fixed[..], words].concat()).output().expect("it runs")
    };
    let mut lost = BTreeMap::<String, u64>::new();
    let mut last = 0;
    let mut count = 0_u64;
    for line in text(&read(&["--format", "json"]).stdout).lines() {
        let frame: Value = serde_json::from_str(line).expect("an object");
        let name = frame["interface"].as_str().expect("a name").to_owned();
        *lost.entry(name).or_default() += number(&frame["lost"]);
        let time = frame["time"].as_str().expect("a time").replace('.', "");
        let time: u64 = time.parse().expect("a number");
        assert!(time >= last, "frame {} is before the one before it", frame["number"]);
        last = time;
        count += 1;
    }
    let mut told = 0;
    for qp in stopped["qps"].as_array().expect("queue pairs") {
        let name = format!("qp {:#08x}", number(&qp["qpn"]));
        for (way, counts) in [("send", "sent_counts"), ("receive", "received_counts")] {
            let name = format!("{name} {way}");
            let found = lost.get(&name).copied().unwrap_or(0);
            let overwritten = number(&qp[counts]["overwritten"]);
            // What is missing behind the last packet of a direction no packet can tell.
            assert!(found <= overwritten, "{name}: {found} of {overwritten}");
            told += found;
        }
    }
    let all = number(&stopped["overwritten"]);
    assert!(told * 2 >= all, "{told} of {all}");
    let said = text(&read(&["--count", &count.to_string()]).stderr);
    assert!(said.contains(&format!(" {told} missing in the capture")), "{said}");
    let said = text(&read(&[]).stderr);
    assert!(said.contains(&format!(" {all} missing in the capture")), "{said}");
}

/// Starts a program that has this argument, and lists it.
#[test]
fn arguments_of_any_bytes_harm_nobody() {
    use std::os::unix::ffi::OsStrExt;
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join(std::ffi::OsStr::from_bytes(b"a\xff\x1b[31m.pcapng"));
    let udp = (44_000 + std::process::id() % 4000).to_string();
    let words = ["rdma", "serve", "--listen", "127.0.0.1", "--udp-port", &udp, "-p", "19591"];
    let mut command = ibfabric(&words);
    let mut child =
        command.arg("--capture").arg(&file).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("it is piped"))
        .read_line(&mut line)
        .expect("a line");
    let pid = child.id().to_string();
    let output = ibfabric(&["capture", "list", "--pid", &pid]).output().expect("it runs");
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains("rdma serve"), "{said}");
    assert!(!said.lines().next().expect("a line").contains('\x1b'), "{said:?}");
    Command::new("kill").args(["-INT", &pid]).status().expect("kill runs");
    assert!(child.wait().expect("it ends").success());
}

/// A named pipe whose reader stops: the program ends when it is told to.
#[test]
fn a_named_pipe_that_nobody_reads_holds_nobody_up() {
    let place = tempfile::tempdir().expect("a directory");
    let pipe = place.path().join("pipe");
    let path = pipe.to_str().expect("a path");
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
    let server = Server::start();
    let output = server.capture(&["start"], &["-w", path]);
    assert_eq!(output.status.code(), Some(2), "nobody reads it yet: {}", text(&output.stderr));
    let reader = rustix::fs::open(
        path,
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK,
        rustix::fs::Mode::empty(),
    )
    .expect("a reader");
    server.object(&["start"], &["-w", path]);
    let client = server.client(5000, &[]).output().expect("it runs");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let before = Instant::now();
    let output = server.capture(&["stop"], &[]);
    assert!(before.elapsed() < Duration::from_secs(10));
    let stopped: Value = serde_json::from_slice(&output.stdout).expect("an object");
    check_counts(&stopped);
    assert!(
        stopped["error"].as_str().is_some_and(|why| why.contains("nobody has read")),
        "{stopped}"
    );
    drop(reader);
}

/// Files that are to be shorter than their heads have one packet each at least, and the capture can be stopped.
#[test]
fn files_that_are_too_short_for_their_heads_have_packets_all_the_same() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("a.pcapng").to_str().expect("a path").to_owned();
    let server = Server::start();
    let started = ["-w", &path, "-b", "filesize:1", "-b", "files:50", "-a", "packets:300"];
    server.object(&["start"], &started);
    let client = server.client(500, &["-q", "12"]).output().expect("it runs");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let stopped = server.object(&["stop"], &[]);
    check_counts(&stopped);
    let files: Vec<_> = fs::read_dir(place.path())
        .expect("a directory")
        .map(|it| it.expect("an entry").path())
        .collect();
    assert_eq!((files.len(), number(&stopped["captured"])), (50, 300), "{stopped}");
    for file in files {
        assert!(packets(&file).0.values().sum::<u64>() > 0);
    }
}

/// A capture has the same number in two programs: the number is enough where only one has it.
#[test]
fn a_number_that_one_program_alone_has_is_enough() {
    // Other tests have servers of their own, whose captures have smaller numbers.
    const NUMBER: u64 = 75;
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).to_str().expect("a path").to_owned();
    let (one, other) = (Server::start(), Server::start());
    let number = NUMBER.to_string();
    for number in 1..=NUMBER {
        let started = other.object(&["start"], &["-w", &path("b"), "--qpn", "77"]);
        if number < NUMBER {
            other.object(&["stop"], &[&started["capture"].to_string()]);
        }
    }
    let changed =
        ibfabric(&["capture", "change", &number, "--payload", "0"]).output().expect("it runs");
    assert!(changed.status.success(), "{}", text(&changed.stderr));
    let stopped = ibfabric(&["capture", "stop", &number]).output().expect("it runs");
    assert!(text(&stopped.stdout).contains(&format!("capture {number}: ")), "{}", text(&stopped.stderr));
    drop(one);
}

/// Whoever is ended by a signal ends its connections.
#[test]
fn a_client_that_is_ended_leaves_no_queue_pair_behind() {
    let server = Server::start();
    let mut client =
        server.client(1_000_000_000, &[]).stderr(Stdio::piped()).spawn().expect("it runs");
    let connected = |is_wanted: bool| {
        let listed = server.object(&["list"], &[]);
        let qps = listed["programs"][0]["qps"].as_array().cloned().unwrap_or_default();
        (qps.iter().any(|qp| number(&qp["messages"]) > 100) == is_wanted).then_some(())
    };
    wait(|| connected(true));
    Command::new("kill").arg(client.id().to_string()).status().expect("kill runs");
    assert_eq!(client.wait().expect("it ends").code(), Some(2));
    wait(|| connected(false));
    let listed = server.object(&["list"], &[]);
    assert_eq!(listed["programs"][0]["qps"], Value::Array(Vec::new()), "{listed}");
}

/// What a program captures of itself is a part of its answer.
#[test]
fn a_program_whose_own_capture_is_not_written_says_so() {
    let server = Server::start();
    let output = server.client(10, &["--capture", "/dev/full"]).output().expect("it runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("/dev/full: byte 0: No space left") && !output.stdout.is_empty(),
        "{said}"
    );
    let words = ["rdma", "bw", "127.0.0.1", "--udp-port", &server.udp, "-p", &server.port];
    let output = ibfabric(&words).output().expect("it runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("would talk to itself; expected --from ADDR"), "{said}");
}

/// Whoever asks for what is captured already gets it when the other one stops; a file is written once.
#[test]
fn captures_do_not_get_in_each_others_way() {
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).to_str().expect("a path").to_owned();
    let server = Server::start();
    let first = server.object(&["start"], &["-w", &path("a")]);
    assert_eq!(first["waits"], Value::Null, "management datagrams are captured");
    let output = server.capture(&["start"], &["-w", &path("b"), "--qpn", "1"]);
    let second: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let said = text(&output.stderr);
    assert!(
        said.contains("capture 2: all queue pairs that fit now, 1, are held by capture 1"),
        "{said}"
    );
    let output = server.capture(&["start"], &["-w", &path("e"), "--qpn", "0x77"]);
    let said = text(&output.stderr);
    assert!(said.contains("capture 3: no queue pair fits now"), "{said}");
    server.object(&["stop"], &["3"]);
    let output = server.capture(&["start"], &["-w", &path("a")]);
    assert!(text(&output.stderr).contains("capture 1 writes it"), "{}", text(&output.stderr));
    server.object(&["stop"], &[&first["capture"].to_string()]);
    let client = server.client(10, &[]).output().expect("it runs");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let stopped = server.object(&["stop"], &[&second["capture"].to_string()]);
    assert!(number(&stopped["captured"]) > 4, "the connection's datagrams: {stopped}");
    // Many that have ended are told in parts, and there is an end to how many there may be.
    for number in 0..64 {
        let file = path(&format!("c{number}"));
        server.object(&["start"], &["-w", &file, "-a", "packets:1", "--qpn", "77"]);
    }
    let output = server.capture(&["start"], &["-w", &path("d")]);
    assert!(text(&output.stderr).contains("64 captures are there"), "{}", text(&output.stderr));
    let listed = server.object(&["list"], &[]);
    assert_eq!(listed["programs"][0]["captures"].as_array().map(Vec::len), Some(64));
    let output = server.capture(&["stop"], &[]);
    assert_eq!(text(&output.stdout).lines().count(), 64);
}
