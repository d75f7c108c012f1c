//! Runs `ibfabric sim`, and checks its console, its files and its exit.

mod console;
mod full_disk;
mod lab;
mod options;
mod ports;
mod replay;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ib_ibsim::message::{Control, Request, TIMED_OUT, kind};
use ib_wire::mad::sm::NodeInfo;
use ib_wire::mad::{Mad, TransactionId};
use serde_json::Value;

use lab::{Client, PROGRAM, Simulator, node_info, request};

#[test]
fn client_gets_responses_and_loss_reports() {
    let simulator = Simulator::start(&[]);
    let client = Client::attach(&simulator.socket, 1).expect("the simulator accepts clients");
    client.send(&node_info(0xffff_1234_5678, &[1]), 0xffff);
    let answer = client.receive();
    let mad = Mad(answer.mad);
    assert_eq!((answer.status, mad.transaction_id()), (0, TransactionId(0xffff_1234_5678)));
    let info: NodeInfo = mad.attribute().expect("the response contains NodeInfo");
    assert_eq!((info.num_ports, info.local_port), (5, mad.return_path()[1]));
    // Port 200 of the switch does not exist, so the request times out.
    client.send(&node_info(7, &[1, 200]), 0xffff);
    let lost = client.receive();
    assert_eq!((lost.status, Mad(lost.mad)), (TIMED_OUT, node_info(7, &[1, 200])));
    // A request with the source LID of another port is rejected.
    let mad = node_info(8, &[1]);
    let forged = Request { slid: 777, ..request(&mad, 0xffff) };
    client.data.send(&forged.to_bytes()).expect("the message can be sent");
    let refused = client.receive();
    assert_eq!((refused.status, Mad(refused.mad)), (TIMED_OUT, mad));
    assert_eq!(simulator.json(&["stats"])["data"]["refused"]["forged"], 1);
    assert_eq!(client.query(kind::GET_GUID, &[]).kind, kind::GET_GUID);
    assert_eq!(client.query(77, &[]).kind, kind::ERROR);
    assert_eq!(client.query(kind::DISCONNECT, &[]).kind, kind::DISCONNECT);
}

#[test]
fn two_hundred_clients_are_served_and_garbage_counted() {
    let simulator = Simulator::start(&[]);
    let clients: Vec<Client> = (1..=210)
        .map(|id| Client::attach(&simulator.socket, id).expect("the simulator accepts clients"))
        .collect();
    for (number, client) in clients.iter().enumerate() {
        client.send(&node_info(number as u64, &[1]), 0xffff);
        client.data.send(&[0; 7]).expect("the message can be sent");
    }
    for (number, client) in clients.iter().enumerate() {
        let answer = client.receive();
        assert_eq!(Mad(answer.mad).transaction_id(), TransactionId(number as u64));
    }
    clients[0].control.send(&[1; 80]).expect("the message can be sent");
    // A control message that contains another client's number is rejected.
    let forged = Control::new(clients[1].number, kind::GET_PORT, &[]);
    clients[0].control.send(&forged.to_bytes()).expect("the message can be sent");
    let mut bytes = [0; Control::LENGTH];
    clients[0].control.recv(&mut bytes).expect("the response is received");
    assert_eq!(Control::parse(&bytes).expect("the message is well-formed").kind, kind::ERROR);
    let stats = simulator.json(&["stats"]);
    assert_eq!(stats["data"]["clients"], 210);
    assert_eq!(stats["data"]["refused"]["malformed"], 211);
    assert_eq!(stats["data"]["refused"]["forged"], 1);
    assert_eq!(simulator.json(&["attached"])["data"].as_array().map(Vec::len), Some(210));
}

#[test]
fn console_changes_and_shows_the_fabric() {
    let simulator = Simulator::start(&[]);
    let port = |number: usize| {
        let dump = simulator.json(&["dump", "sw-x0y0"]);
        dump["data"][0]["ports"][number].clone()
    };
    assert_eq!(port(1)["state"], "Initialize");
    let peer = format!("\"{}\"", port(1)["peer"]["node"].as_str().expect("the value is a string"));
    let output = simulator.ctl(&["unlink", "sw-x0y0[1]"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((port(1)["state"].clone(), port(1)["peer"].is_null()), ("Down".into(), true));
    assert_eq!(simulator.ctl(&["relink", "sw-x0y0[1]"]).status.code(), Some(0));
    assert_eq!(port(1)["state"], "Initialize");
    let counters = simulator.json(&["counters", "sw-x0y0[1]"]);
    assert_eq!(counters["data"]["link_downed"], 1);
    let addresses = simulator.json(&["addresses"]);
    assert_eq!(addresses["data"].as_array().map(Vec::len), Some(4));
    let host =
        format!("\"{}\"", addresses["data"][0]["node"].as_str().expect("the value is a string"));
    let one = simulator.json(&["dump", "sw-x0y0[1]"]);
    assert_eq!(one["data"][0]["ports"].as_array().map(Vec::len), Some(1));
    assert_eq!(one["data"][0]["ports"][0], port(1));
    for (words, expected) in [
        (&["unlink", "nobody[1]"][..], "there is no node \"nobody\""),
        (&["unlink", "sw-x0y0[9]"], "has no port 9: expected 0 to 5"),
        (&["frobnicate"], "found \"frobnicate\", expected Link, Unlink"),
        (&["link", "sw-x0y0[1]", &format!("{peer}[1]")], "has a cable already"),
        (&["route", "1", "2"], "no end port has LID 1"),
        (&["frobnicate"], "Quit or help"),
        (&["stats", "extra"], "found \"extra\", expected nothing after stats"),
        (&["quit", "now"], "found \"now\", expected nothing after quit"),
        (&["dump", "sw-x0y0[77]"], "has no port 77: expected 0 to 5"),
        (&["addresses", "sw-x0y0[1]"], "\"sw-x0y0\"[1] is a switch port: expected an HCA"),
        (&["addresses", "sw-x0y0"], "\"sw-x0y0\" is a switch port: expected an HCA"),
        (&["addresses", &format!("{host}[7]")], "has no port 7: expected 1 to 1"),
        (&["unlink", "sw-x0y0[0]"], "has no port 0: expected 1 to 5"),
        (&["fault", "sw-x0y0[0]", "loss=0.5"], "has no port 0: expected 1 to 5"),
    ] {
        let output = simulator.ctl(words);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {printed}");
        assert!(printed.contains(expected), "{words:?}: {printed}");
    }
    let quit = simulator.ctl(&["quit"]);
    assert_eq!(quit.status.code(), Some(0));
}

#[test]
fn failed_script_step_is_reported_with_line_and_time() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let script = place.path().join("script");
    fs::write(&script, "# twice\nat 1ms unlink sw-x0y0[1]\nat 2ms unlink sw-x0y0[1]\n")
        .expect("the file can be written");
    let script = script.to_str().expect("the path is UTF-8");
    let simulator = Simulator::start(&["--script", script]);
    let deadline = Instant::now() + Duration::from_secs(20);
    while simulator.json(&["stats"])["data"]["failed_steps"] != 1 {
        assert!(Instant::now() < deadline, "the failed step is not counted in time");
    }
    let (code, printed) = simulator.end("-TERM");
    assert_eq!(code, Some(0));
    let location = format!("ibfabric: {script}:3: at ");
    assert!(printed.starts_with(&location), "{printed}");
    let rest = "Unlink \"sw-x0y0\"[1] failed: \"sw-x0y0\"[1] has no cable to pull: expected";
    assert!(printed.contains(rest), "{printed}");
}

#[test]
fn quit_stops_simulator_and_name_is_exclusive() {
    for signal in ["-TERM", "-INT"] {
        let simulator = Simulator::start(&[]);
        let again = Command::new(PROGRAM)
            .args(["sim", "net", "--name", &simulator.socket])
            .current_dir(simulator.place.path())
            .output()
            .expect("the program can be started");
        assert_eq!(again.status.code(), Some(2));
        let printed = String::from_utf8_lossy(&again.stderr).into_owned();
        assert!(printed.contains("cannot listen on"), "{printed}");
        assert_eq!(simulator.end(signal), (Some(0), String::new()));
    }
    let nobody = Command::new(PROGRAM)
        .args(["sim", "ctl", "--name", "nobody-listens-here", "stats"])
        .output()
        .expect("the program can be started");
    assert_eq!(nobody.status.code(), Some(2));
}

#[test]
fn stalled_console_does_not_block_others() {
    let simulator = Simulator::start(&[]);
    let client = Client::attach(&simulator.socket, 1).expect("the simulator accepts clients");
    let name = SocketAddr::from_abstract_name(format!("{}:console", simulator.socket));
    let mut console =
        UnixStream::connect_addr(&name.expect("the name is valid")).expect("the simulator listens");
    // The replies to these requests exceed the socket buffer.
    let request = "{\"command\":\"dump\"}\n";
    console.write_all(request.repeat(400).as_bytes()).expect("the peer accepts data");
    let start = Instant::now();
    for transaction in 0..50 {
        client.send(&node_info(transaction, &[1]), 0xffff);
        client.receive();
    }
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    let mut answers = BufReader::new(console);
    for _ in 0..400 {
        let mut line = String::new();
        answers.read_line(&mut line).expect("the response is received");
        let answer: Value = serde_json::from_str(&line).expect("the response is JSON");
        assert_eq!(answer["ok"], true);
    }
}

#[test]
fn closed_capture_pipe_does_not_stop_simulator() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let net = place.path().join("net");
    let words = ["gen", "mesh", "2x2", "-o", net.to_str().expect("the path is UTF-8")];
    assert!(
        Command::new(PROGRAM).args(words).status().expect("the program can be started").success()
    );
    let socket = format!("ibfabric-test-{}-pcap", std::process::id());
    let mut child = Command::new(PROGRAM)
        .args(["sim", net.to_str().expect("the path is UTF-8"), "--name", &socket, "--pcap", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut printed = String::new();
    let mut errors = BufReader::new(child.stderr.take().expect("standard error is piped"));
    errors.read_line(&mut printed).expect("the program prints a line");
    assert_eq!(printed, "READY\n");
    let client = Client::attach(&socket, 1).expect("the simulator accepts clients");
    client.send(&node_info(1, &[1]), 0xffff);
    client.receive();
    let stdout = child.stdout.take().expect("standard output is piped");
    let mut reader = ib_pcap::Reader::new(stdout).expect("standard output is a capture");
    while !matches!(
        reader.next_event().expect("the capture is well-formed"),
        Some(ib_pcap::Event::Packet(_))
    ) {}
    drop(reader);
    let reader = std::thread::spawn(move || {
        let mut printed = String::new();
        errors.read_line(&mut printed).expect("the program prints a line");
        printed
    });
    // If another test forks, its child process keeps the read end of the pipe open for a short time. So the client
    // sends requests until the simulator prints the error.
    let mut transaction = 2;
    while !reader.is_finished() {
        client.send(&node_info(transaction, &[1]), 0xffff);
        client.receive();
        transaction += 1;
    }
    let printed = reader.join().expect("the thread does not panic");
    let expected = "ibfabric: the reader of the capture has disconnected: the capture stops\n";
    assert_eq!(printed, expected);
    client.send(&node_info(transaction, &[1]), 0xffff);
    client.receive();
    child.kill().expect("the program is running");
    child.wait().expect("the process can be awaited");
}
