//! Runs `ibfabric rdma` between two addresses of the loopback device.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::Value;

mod program;

use program::{Running, ibfabric, text};

fn rdma(words: &[&str]) -> Command {
    let mut command = ibfabric(&["rdma"]);
    command.args(words);
    command
}

fn run(words: &[&str]) -> Output {
    rdma(words).output().expect("the program runs")
}

/// A server at 127.0.0.1, on UDP and service ports that are unique in this process.
struct Server {
    _process: Running,
    udp: String,
    port: String,
}

static NEXT: AtomicU16 = AtomicU16::new(0);

impl Server {
    fn start(more: &[&str]) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let udp = (20_000 + (std::process::id() % 12_000) as u16 + number).to_string();
        let port = (18_600 + number).to_string();
        let fixed = ["serve", "--listen", "127.0.0.1", "--udp-port", &udp, "-p", &port];
        let command = rdma(&[&fixed, more].concat());
        Self { _process: Running::ready(command), udp, port }
    }

    /// Runs a client; returns its exit status and its JSON output.
    fn client(&self, words: &[&str]) -> (Option<i32>, Value) {
        let fixed = ["--from", "127.0.0.2", "--udp-port", &self.udp, "--json"];
        let output = run(&[words, &fixed].concat());
        let object = serde_json::from_slice(&output.stdout);
        (output.status.code(), object.unwrap_or_else(|_| panic!("{}", text(&output.stderr))))
    }
}

#[test]
fn messages_writes_and_reads_are_measured() {
    let server = Server::start(&[]);
    for op in ["send", "write", "read"] {
        for size in ["1", "65536"] {
            let what = ["127.0.0.1", "-p", &server.port, "--op", op, "-s", size, "-n", "200"];
            let (code, found) = server.client(&[&["bw"], &what[..], &["-q", "2"]].concat());
            assert_eq!((code, &found["icrc_errors"]), (Some(0), &0.into()), "{found}");
            assert!(found["gbit_per_s"].as_f64() > Some(0.0), "{found}");
            assert!(found["messages_per_s"].as_f64() > Some(0.0), "{found}");
            let (code, found) = server.client(&[&["lat"], &what[..]].concat());
            let latency = &found["latency_us"];
            assert_eq!(code, Some(0));
            assert!(latency["p50"].as_f64() <= latency["p99"].as_f64(), "{found}");
            assert!(latency["min"].as_f64() > Some(0.0), "{found}");
        }
    }
    for (op, size) in [("write-imm", "65536"), ("fetch-add", "8"), ("compare-swap", "8")] {
        let what = ["bw", "127.0.0.1", "-p", &server.port, "--op", op, "-s", size, "-n", "2000"];
        let (code, found) = server.client(&what);
        assert_eq!((code, &found["op"]), (Some(0), &op.into()), "{found}");
        let refused = run(&["lat", "127.0.0.1", "--op", op]);
        assert_eq!(refused.status.code(), Some(2));
    }
    // `devinfo` prints the counters of the running server.
    let devinfo = ["devinfo", "--from", "127.0.0.1", "--udp-port", &server.udp];
    let output = run(&[&devinfo[..], &["--json"]].concat());
    let found: Value = serde_json::from_slice(&output.stdout).expect("the text is JSON");
    assert_eq!((&found["running"], &found["dropped"]["icrc"]), (&true.into(), &0.into()));
    assert!(found["counters"]["received_packets"].as_u64() > Some(2000), "{found}");
    let output = run(&[&devinfo[..], &["-v"]].concat());
    assert!(text(&output.stdout).contains("ICRC checked:"), "{}", text(&output.stdout));
}

#[test]
fn pings_return_unchanged() {
    let port = "7199";
    let server = Server::start(&["--rping", "--rping-port", port]);
    let (code, found) = server.client(&["ping", "127.0.0.1", "-p", port, "-C", "20", "-S", "3000"]);
    assert_eq!((code, &found["pings"], &found["wrong"]), (Some(0), &20.into(), &0.into()));
}

#[test]
fn pingpong_exchanges_messages() {
    let udp = (45_000 + std::process::id() % 5_000).to_string();
    let common = ["pingpong", "--udp-port", &udp, "-p", "18599", "-n", "300", "-s", "9000", "-c"];
    let mut server = rdma(&[&common[..], &["--from", "127.0.0.1"]].concat());
    let mut server = server.stdout(Stdio::piped()).spawn().expect("the program runs");
    let mut line = String::new();
    let output = server.stdout.as_mut().expect("standard output is piped");
    BufReader::new(output).read_line(&mut line).expect("the program prints a line");
    assert!(line.contains("local address"), "{line}");
    let client = run(&[&common[..], &["--from", "127.0.0.2", "127.0.0.1"]].concat());
    assert!(text(&client.stdout).contains("300 iters in"), "{}", text(&client.stderr));
    assert!(server.wait().expect("the process can be awaited").success());
}

#[test]
fn failures_are_reported_with_reason() {
    for (words, code, expected) in [
        (&["bw"][..], 2, "required"),
        (&["bw", "127.0.0.1", "-m", "1000"], 2, "expected 256, 512, 1024, 2048 or 4096"),
        (&["bw", "127.0.0.1", "-s", "2000000000"], 2, "expected a number of 0 to 1073741824"),
        (&["bw", "127.0.0.1", "--op", "fetch-add", "-s", "64"], 2, "changes 8 bytes"),
        (&["bw", "127.0.0.1", "--op", "write-imm", "--perftest"], 2, "send, write or read"),
        (&["lat", "127.0.0.1", "-q", "2"], 2, "latency is measured on one queue pair"),
        (&["lat", "127.0.0.1", "-s", "0"], 2, "expected 1 or more"),
        (&["devinfo", "--from", "192.0.2.1"], 2, "no network interface has the address"),
        (
            &["pingpong", "127.0.0.1", "--from", "127.0.0.2", "-p", "1", "--udp-port", "44999"],
            2,
            "calling 127.0.0.1",
        ),
        (&["ping", "127.0.0.1"], 2, "cannot connect to itself: expected --from ADDR"),
    ] {
        let output = run(words);
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {printed}");
        assert!(printed.contains(expected), "{words:?}: {printed}");
    }
    // No server listens on service port 9.
    let server = Server::start(&[]);
    let fixed = ["--from", "127.0.0.2", "--udp-port", &server.udp];
    let output = run(&[&["ping", "127.0.0.1", "-p", "9"], &fixed[..]].concat());
    assert_eq!(output.status.code(), Some(2));
    let printed = text(&output.stderr);
    assert!(printed.contains("127.0.0.1:9 refuses the connection"), "{printed}");
}
