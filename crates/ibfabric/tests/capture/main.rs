//! Tests `ibfabric capture list`, `start`, `change` and `stop` with running programs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use ib_capture::{CaptureFile, Item};
use serde_json::Value;

mod losses;
#[path = "../program/mod.rs"]
mod program;
mod refused;
mod several;
mod storage;

use program::{Running, ibfabric, text};

/// An RDMA server at 127.0.0.1, and the ports at which clients reach it.
struct Server {
    process: Running,
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
        Self { process: Running::ready(ibfabric(&words)), udp, port }
    }

    fn pid(&self) -> String {
        self.process.0.id().to_string()
    }

    /// Returns the command of a client that sends `iters` RDMA WRITEs.
    fn client(&self, iters: u64, more: &[&str]) -> Command {
        let iters = iters.to_string();
        let fixed = ["rdma", "bw", "127.0.0.1", "--from", "127.0.0.2", "--udp-port", &self.udp];
        let what = ["-p", &self.port, "--op", "write", "-s", "8192", "-n", &iters];
        ibfabric(&[&fixed[..], &what, more].concat())
    }

    /// Runs a `capture` subcommand on this server.
    fn capture(&self, words: &[&str], more: &[&str]) -> Output {
        let pid = self.pid();
        let all = [&["capture"], words, &["--pid", &pid, "--json"], more].concat();
        ibfabric(&all).output().expect("the program can be started")
    }

    fn object(&self, words: &[&str], more: &[&str]) -> Value {
        let output = self.capture(words, more);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("the text is JSON")
    }
}

/// Returns the number of packets per interface of a capture file, and the comments of all packets.
fn packets(path: &Path) -> (BTreeMap<String, u64>, Vec<String>) {
    let bytes = fs::read(path).expect("the file can be read");
    let mut file = CaptureFile::new(&bytes[..], &[]).expect("the file is a capture");
    let (mut counts, mut remarks) = (BTreeMap::new(), Vec::new());
    while let Some(item) = file.next_item().expect("all blocks are complete") {
        let Item::Frame(frame) = item else { continue };
        remarks.extend(frame.comments.iter().cloned());
        let interface = frame.interface;
        let name = file
            .interface(interface)
            .and_then(|it| it.name.clone())
            .expect("the interface has a name");
        *counts.entry(name).or_default() += 1;
    }
    (counts, remarks)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Checks that the packet counts of a capture or of a queue pair add up.
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
fn capture_has_all_counted_packets() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let file = place.path().join("a.pcapng");
    let path = file.to_str().expect("the path is UTF-8");
    let server = Server::start();
    // The capture starts before a client connects, and includes queue pairs that are created later.
    let started =
        server.object(&["start"], &["-w", path, "--payload", "64", "--buffer-size", "65536"]);
    assert_eq!((&started["capture"], &started["file"]), (&1.into(), &path.into()));
    let client = server.client(3000, &["-q", "3"]).output().expect("the program can be started");
    assert!(client.status.success(), "{}", text(&client.stderr));
    // The counts of a running capture are updated only periodically, so the test waits for them.
    let has_all = |listed: &Value| listed["programs"][0]["captures"][0]["queue_pairs"] == 4;
    let listed = wait(|| Some(server.object(&["list"], &[])).filter(has_all));
    let program = &listed["programs"][0];
    assert_eq!((&program["address"], &program["link"]), (&"127.0.0.1".into(), &"RoCEv2".into()));
    let stopped = server.object(&["stop"], &[]);
    check_counts(&stopped);
    let qps = stopped["qps"].as_array().expect("the value is a list");
    assert_eq!(qps.len(), 4, "expected three RC queue pairs and queue pair 1: {stopped}");
    let (found, _) = packets(&file);
    for qp in qps {
        check_counts(qp);
        let name = format!("qp {:#08x}", number(&qp["qpn"]));
        for (way, counts) in [("send", "sent_counts"), ("receive", "received_counts")] {
            let written = found.get(&format!("{name} {way}")).copied().unwrap_or(0);
            assert_eq!(written, number(&qp[counts]["captured"]), "{name} {way}");
        }
        if number(&qp["qpn"]) != 1 {
            // The queue pair receives 3000 messages of two packets each, and possibly retransmitted packets.
            let sent = number(&qp["received"]);
            assert!((6000..9000).contains(&sent), "{qp}");
        }
    }
    // A stopped capture cannot be stopped again.
    let again = server.capture(&["stop"], &[]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("nothing is captured"), "{}", text(&again.stderr));
}

#[test]
fn filters_apply_and_can_be_changed() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = |name: &str| place.path().join(name).to_str().expect("the path is UTF-8").to_owned();
    let server = Server::start();
    let none = server.object(&["start"], &["-w", &path("none"), "--peer", "127.0.0.77"]);
    let service = server.object(
        &["start"],
        &["-w", &path("service"), "--service", &server.port, "--opcode", "acknowledge"],
    );
    let mut client = server
        .client(1_000_000, &[])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program can be started");
    let connected = |listed: &Value| {
        listed["programs"][0]["qps"].as_array().is_some_and(|qps| {
            qps.iter().any(|qp| qp["state"] == "RTS" && number(&qp["messages"]) > 100)
        })
    };
    let listed = wait(|| Some(server.object(&["list"], &[])).filter(connected));
    let qp = &listed["programs"][0]["qps"][0];
    let qpn = number(&qp["qpn"]).to_string();
    assert_eq!((&qp["peer"], &qp["captured"]), (&"127.0.0.2".into(), &true.into()));
    assert_eq!(
        number(&qp["service_id"]) & 0xffff,
        server.port.parse::<u64>().expect("the text is a port number")
    );
    // A queue pair records its last messages even if no capture includes it.
    let listed = server.object(&["list"], &["--messages", &qpn]);
    let messages =
        listed["programs"][0]["messages"][0]["messages"].as_array().expect("the value is a list");
    assert!(messages.len() > 10, "{listed}");
    for message in messages {
        let of = |key: &str| &message[key];
        assert_eq!((of("operation"), of("status")), (&"rdma_write".into(), &"success".into()));
        assert_eq!((of("bytes"), of("packets")), (&8192.into(), &2.into()));
    }
    // A queue pair is in at most one capture. After the capture `service` has stopped, the capture `one` can include
    // the queue pair.
    let stopped = server.object(&["stop"], &[&service["capture"].to_string()]);
    check_counts(&stopped);
    assert!(number(&stopped["sent"]) > 0 && number(&stopped["received"]) == 0, "{stopped}");
    let one = server.object(
        &["start"],
        &["-w", &path("one"), "--qpn", &qpn, "--payload", "0", "--direction", "receive"],
    );
    wait(|| {
        let listed = server.object(&["list"], &[]);
        let captures =
            listed["programs"][0]["captures"].as_array().expect("the value is a list").clone();
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
    client.kill().expect("the process exists");
    client.wait().expect("the process can be awaited");
    let (found, _) = packets(Path::new(&path("service")));
    assert_eq!(found.len(), 1, "{found:?}");
    let bytes = fs::read(path("one")).expect("the file can be read");
    let mut file = CaptureFile::new(&bytes[..], &[]).expect("the file is a capture");
    let mut kept = Vec::new();
    while let Some(Item::Frame(frame)) = file.next_item().expect("all blocks are complete") {
        let port = frame.content.as_ref().map(|content| content.kept);
        // The frames are not decoded as RoCEv2, since their UDP port is neither 4791 nor given to `CaptureFile`.
        kept.push((frame.captured, port.is_ok()));
    }
    let lengths: Vec<_> = kept.iter().map(|(captured, _)| *captured).collect();
    // Before the command `change`, the first packet of a message is captured without payload. After it, the packet is
    // captured with 32 bytes of payload.
    assert!(lengths.contains(&(42 + 28)) && lengths.contains(&(42 + 28 + 32)), "{lengths:?}");
}

/// Waits until `find` returns a value.
fn wait<T>(mut find: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < end, "the expected state is not reached in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn autostop_and_file_limits_are_exact() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = place.path().join("a.pcapng").to_str().expect("the path is UTF-8").to_owned();
    let server = Server::start();
    let limits = ["-a", "packets:2500", "-b", "packets:1000", "-b", "files:2", "--payload", "0"];
    server.object(&["start"], &[&["-w", &path][..], &limits].concat());
    let client = server.client(5000, &[]).output().expect("the program can be started");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let ended = wait(|| {
        let listed = server.object(&["list"], &[]);
        Some(listed["programs"][0]["captures"][0].clone()).filter(|it| it["ended"] == true)
    });
    assert_eq!((&ended["captured"], &ended["files"]), (&2500.into(), &3.into()));
    let stopped = server.object(&["stop"], &[]);
    check_counts(&stopped);
    let mut files: Vec<_> = fs::read_dir(place.path())
        .expect("the directory can be read")
        .map(|it| it.expect("the directory can be read").path())
        .collect();
    files.sort();
    let counts: Vec<u64> = files.iter().map(|file| packets(file).0.values().sum()).collect();
    assert_eq!(counts, [1000, 500], "{files:?}");
}

#[test]
fn trigger_keeps_packets_before_queue_pair_failure() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let file = place.path().join("a.pcapng");
    let path = file.to_str().expect("the path is UTF-8");
    let server = Server::start();
    let words = ["-w", path, "--trigger", "error", "--keep", "50", "--payload", "0"];
    server.object(&["start"], &words);
    let mut client = server.client(1_000_000, &["-m", "256"]);
    let mut client = client.stdout(Stdio::null()).spawn().expect("the program can be started");
    let running = |listed: &Value| {
        let qps = listed["programs"][0]["qps"].as_array().cloned().unwrap_or_default();
        qps.iter().any(|qp| number(&qp["messages"]) > 1000)
    };
    wait(|| running(&server.object(&["list"], &[])).then_some(()));
    let so_far = server.object(&["list"], &[]);
    assert_eq!(so_far["programs"][0]["captures"][0]["captured"], Value::from(0), "{so_far}");
    // The client gets SIGTERM and disconnects, which also ends the queue pair of the server.
    Command::new("kill").arg(client.id().to_string()).status().expect("kill runs");
    client.wait().expect("the process can be awaited");
    // The file contains as many packets as the capture has counted.
    let stopped = server.object(&["stop"], &[]);
    check_counts(&stopped);
    assert_eq!(number(&stopped["captured"]), packets(&file).0.values().sum::<u64>());
}

/// A client that is stopped by a signal disconnects before it exits.
#[test]
fn interrupted_client_leaves_no_queue_pair() {
    let server = Server::start();
    let mut client = server
        .client(1_000_000_000, &[])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let connected = |is_wanted: bool| {
        let listed = server.object(&["list"], &[]);
        let qps = listed["programs"][0]["qps"].as_array().cloned().unwrap_or_default();
        (qps.iter().any(|qp| number(&qp["messages"]) > 100) == is_wanted).then_some(())
    };
    wait(|| connected(true));
    Command::new("kill").arg(client.id().to_string()).status().expect("kill runs");
    assert_eq!(client.wait().expect("the process can be awaited").code(), Some(143));
    wait(|| connected(false));
    let listed = server.object(&["list"], &[]);
    assert_eq!(listed["programs"][0]["qps"], Value::Array(Vec::new()), "{listed}");
}
