//! `ibfabric capture correlate` reads the files that `ibfabric rdma --pcap` writes at both ends.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::Value;

mod program;

use program::{Running, ibfabric, text};

fn name(path: &Path) -> &str {
    path.to_str().expect("names of temporary files are UTF-8")
}

static NEXT: AtomicU16 = AtomicU16::new(0);

/// The capture files of a client and its server, and the UDP port that both have used.
struct Captures {
    client: PathBuf,
    server: PathBuf,
    udp: String,
}

impl Captures {
    fn of(directory: &Path, words: &[&str], connections: &str) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let udp = (50_000 + (std::process::id() % 5_000) as u16 + number).to_string();
        let port = (18_700 + number).to_string();
        let path = |name: &str| directory.join(format!("{name}-{number}.pcapng"));
        let (client, server) = (path("client"), path("server"));
        let common = ["--udp-port", &udp, "-p", &port, "--pcap-ring", "16777216", "--pcap"];
        let fixed = ["rdma", "serve", "--listen", "127.0.0.1", "--exit-after", connections];
        let command = ibfabric(&[&fixed[..], &common, &[name(&server)]].concat());
        let mut serving = Running::ready(command);
        let (command, rest) =
            words.split_first().expect("the words begin with a subcommand of `rdma`");
        let fixed = ["rdma", command, "127.0.0.1", "--from", "127.0.0.2"];
        let all = [&fixed[..], rest, &common, &[name(&client)]].concat();
        let output = ibfabric(&all).output().expect("the program runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(serving.0.wait().expect("the process can be awaited").success());
        Self { client, server, udp }
    }

    fn correlate(&self, more: &[&str]) -> Output {
        let files = [name(&self.client), name(&self.server)];
        let fixed = ["capture", "correlate", files[0], files[1], "--udp-port", &self.udp];
        ibfabric(&[&fixed[..], more].concat()).output().expect("the program runs")
    }

    fn json(&self, more: &[&str]) -> Value {
        let output = self.correlate(&[&["--json"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("the text is JSON")
    }
}

#[test]
fn captures_of_both_ends_agree() {
    let directory = tempfile::tempdir().unwrap();
    for (words, connections, messages) in [
        (&["lat", "--op", "send", "-s", "9000", "-n", "100"][..], "1", 200),
        (&["bw", "--op", "write", "-s", "20000", "-n", "60", "-q", "2"], "2", 120),
        (&["bw", "--op", "read", "-s", "20000", "-n", "60"], "1", 60),
    ] {
        let captures = Captures::of(directory.path(), words, connections);
        let page = directory.path().join("page.html");
        let found = captures.json(&["--messages", "--html", name(&page)]);
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}"));
        assert_eq!(found["overwritten"], 0, "{}", found["files"]);
        assert_eq!(found["captured"], found["sent"]);
        // Each packet has arrived, or a full socket buffer dropped it and the sender retransmitted it.
        let packets = &found["packets"];
        assert_eq!(packets["received_only"], 0, "{packets}");
        assert!(number(&packets["sent_only"]) <= number(&packets["sent_again"]), "{packets}");
        let all = 2.0 * number(&packets["matched"]) + number(&packets["sent_only"]);
        assert_eq!(all, number(&found["captured"]), "{packets}");
        // Both processes use the same clock, so the estimated offset is close to 0.
        let clock = &found["clock"];
        assert_eq!(clock["state"], "estimated", "{clock}");
        let uncertainty = number(&clock["uncertainty_us"]);
        assert!(number(&clock["offset_us"]).abs() <= uncertainty + 20.0, "{clock}");
        let pairs = found["pairs"].as_array().unwrap();
        let connected = pairs.iter().filter(|pair| pair["from"]["qpn"] != 1);
        let mut count = 0;
        for message in connected.flat_map(|pair| pair["list"].as_array().unwrap()) {
            let part = |name: &str| number(&message[format!("{name}_us")]);
            let sum = part("wire") + part("receive") + part("completion");
            assert!((sum - part("in_flight")).abs() < 0.01, "{message}");
            assert!(part("wire") >= -2.0 * uncertainty && part("receive") >= 0.0, "{message}");
            assert!((part("queue") + sum - part("total")).abs() < 0.01, "{message}");
            count += 1;
        }
        assert_eq!((count, &found["incomplete"]), (messages, &Value::from(0)), "{words:?}");
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains("Messages over time") && !page.contains("{{"));
    }
}

#[test]
fn times_between_events_and_lists_are_printed() {
    let directory = tempfile::tempdir().unwrap();
    let captures = Captures::of(directory.path(), &["lat", "--op", "send", "-n", "50"], "1");
    let found = captures.json(&[]);
    let pairs = found["pairs"].as_array().unwrap();
    let of_client =
        |pair: &&Value| pair["from"]["qpn"] != 1 && pair["from"]["address"] == "127.0.0.2";
    let pair = pairs.iter().find(of_client).expect("the client has sent packets");
    let [from, to] = [&pair["from"]["qpn"], &pair["to"]["qpn"]].map(|qpn| qpn.as_u64().unwrap());
    let (came, went) = (format!("qp {to} receive SEND"), format!("qp {to:#x} send SEND"));
    let found = captures.json(&["--from", &came, "--to", &went, "--qpn", &from.to_string()]);
    let timing = &found["timing"];
    assert!(timing["from_events"].as_u64() >= Some(48), "{timing}");
    assert!(timing["latency_us"]["p50"].as_f64() >= Some(0.0), "{timing}");
    assert_eq!(found["pairs"].as_array().unwrap().len(), 2);
    let output = captures.correlate(&["--messages"]);
    let printed = text(&output.stdout);
    assert!(
        printed.contains("clocks: file 2 is") && printed.contains("\nmessages 127.0.0.2 qp"),
        "{printed}"
    );
    // The capture contains no ATOMIC event.
    let output = captures.correlate(&["--from", &came, "--to", &format!("qp {to} send ATOMIC")]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let output = captures.correlate(&["--qpn", "3"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let printed = text(&output.stdout);
    assert!(
        printed.contains("the requested queue pairs have no connection in the files"),
        "{printed}"
    );
    assert!(!printed.contains("the time at which requests were posted"), "{printed}");
    // Two copies of one file contain the packets of one end only, so nothing can be matched.
    let one = name(&captures.client);
    let words = ["capture", "correlate", one, one, "--udp-port", &captures.udp];
    let output = ibfabric(&words).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("note: both files are the same capture"),
        "{}",
        text(&output.stdout)
    );
    // If no queue pair of the files is selected, the page states that it draws no messages.
    let page = directory.path().join("page.html");
    let server = name(&captures.server);
    let words = ["capture", "correlate", one, server, "--html", name(&page), "--qpn", "3"];
    ibfabric(&[&words[..], &["--udp-port", &captures.udp]].concat()).output().unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Messages over time") && page.contains("0 messages drawn"), "{page}");
    assert!(page.contains("no message was captured completely"));
    // A file is rejected if it is cut off within a packet, was captured on another UDP port, is not a capture, or is
    // missing. Invalid options are rejected as well.
    let cut = directory.path().join("cut.pcapng");
    let bytes = std::fs::read(&captures.client).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2 + 1]).unwrap();
    let foreign = directory.path().join("foreign");
    std::fs::write(&foreign, "these are no packets").unwrap();
    for (words, expected) in [
        (&["capture", "correlate", name(&cut)][..], "cut.pcapng: byte "),
        (&["capture", "correlate", one], "no RDMA packets among "),
        (&["capture", "correlate", name(&foreign)], "foreign: byte 0"),
        (&["capture", "correlate", "/nowhere"], "cannot read /nowhere: "),
        (&["capture", "correlate", one, "--from", "qp 1 send"], "--to <EVENT>"),
        (
            &["capture", "correlate", one, "--from", "qp 1 send", "--to", "file 2 qp 1 send"],
            "--to 'file 2 qp 0x000001 send': there is one file only, expected FILE2",
        ),
        (
            &["capture", "correlate", one, "--from", "qp 1", "--to", "qp 1 send"],
            "expected `qp NUMBER send`",
        ),
        (
            &["capture", "correlate", one, "--qpn", "0x1000000"],
            "expected a number of 0 to 0xffffff",
        ),
    ] {
        let output = ibfabric(words).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {errors}");
        assert!(errors.contains(expected), "{words:?}: {errors}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
}
