//! Checks how `ibfabric sim ctl` selects the simulator, prints replies, and reports the locations of errors.

use std::io::{Read as _, Write};
use std::net::UdpSocket;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ibfabric::cli::sim::CONSOLE;

use crate::lab::{PROGRAM, Simulator};

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn dump_shows_active_faults_and_forged_values() {
    let simulator = Simulator::start(&[]);
    // `dump` prints active faults as commands. The commands contain the name that the switch has in the fabric file,
    // not its node description sw-x0y0.
    let forged = [
        "Misroute \"S-0002c90000200000\" 2 1",
        "IgnoreLft \"S-0002c90000200000\" 0 7",
        "Fault \"S-0002c90000200000\"[1] loss=0.3 delay=10us",
        "Error \"S-0002c90000200000\"[1] 2.5 21",
        "Flap \"S-0002c90000200000\"[1] 1s 3600s 3",
        "Unlink \"S-0002c90000200000\"[3]",
    ];
    let key = "MKey \"S-0002c90000200000\" 0x55 2";
    for command in forged.iter().chain([&key]) {
        assert_eq!(simulator.ctl(&[command]).status.code(), Some(0), "{command}");
    }
    let text = shown(&simulator.ctl(&["dump", "sw-x0y0"]));
    let in_force: Vec<&str> =
        text.lines().filter_map(|line| line.trim_start().strip_prefix("in force: ")).collect();
    assert_eq!(in_force, forged, "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "  in force: Misroute \"S-0002c90000200000\" 2 1");
    assert!(lines[3].contains(" sm lid 0 m_key 0x0000000000000055 protect 2"), "{text}");
    assert_eq!(lines[5], "      in force: Fault \"S-0002c90000200000\"[1] loss=0.3 delay=10us");
    let node = &simulator.json(&["dump", "sw-x0y0"])["data"][0];
    assert_eq!(node["in_force"], serde_json::json!(forged[..2]));
    assert_eq!(node["ports"][1]["in_force"], serde_json::json!(forged[2..5]));
    assert_eq!(node["ports"][3]["in_force"], serde_json::json!(forged[5..]));
    assert_eq!(node["ports"][5]["in_force"], serde_json::json!([]));
    assert_eq!(node["ports"][0]["m_key"], "0x0000000000000055");
    assert_eq!(node["ports"][0]["m_key_protect"], 2);
    let one = shown(&simulator.ctl(&["dump", "sw-x0y0[3]"]));
    assert!(one.contains("in force: Unlink") && !one.contains("Fault"), "{one}");
    for command in ["misroute sw-x0y0 none", "ignorelft sw-x0y0 none", "relink sw-x0y0[3]"] {
        assert_eq!(simulator.ctl(&[command]).status.code(), Some(0), "{command}");
    }
    let text = shown(&simulator.ctl(&["dump", "sw-x0y0"]));
    assert_eq!(text.matches("in force").count(), 3, "{text}");
}

#[test]
fn logged_commands_can_be_repeated() {
    let simulator = Simulator::start(&["--log", "log"]);
    let fault = "fault sw-x0y0[1] LOSS=.5 reorder=1 held=1500us";
    assert_eq!(simulator.ctl(&[fault]).status.code(), Some(0));
    // The simulator replies before it writes the log, so the test reads the log until it contains the command.
    let find = |count: usize| {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let log = simulator.file("log");
            let commands = log.lines().filter_map(|line| line.split_once(" command "));
            let commands: Vec<_> = commands.map(|(_, command)| command.to_owned()).collect();
            if commands.len() >= count {
                return commands;
            }
            assert!(Instant::now() < deadline, "{log}");
        }
    };
    let logged = find(1);
    assert_eq!(logged, ["Fault \"sw-x0y0\"[1] loss=0.5 reorder=1 held=1500us"]);
    assert_eq!(simulator.ctl(&[&logged[0]]).status.code(), Some(0));
    assert_eq!(find(2), [logged.clone(), logged].concat());
}

#[test]
fn misplaced_console_command_names_sim_ctl() {
    let commands = CONSOLE.lines().filter(|line| !line.starts_with(' '));
    let words = commands.filter_map(|line| line.split_whitespace().next());
    let mut count = 0;
    for word in words {
        let expected = format!("expected a fabric, or `ibfabric sim ctl {word} ...`");
        for line in [
            &[&*word.to_ascii_lowercase()][..],
            &[word, "sw-x0y0[1]", "loss=1"],
            &["--name", "lab", word, "--json"],
        ] {
            let output = Command::new(PROGRAM)
                .arg("sim")
                .args(line)
                .output()
                .expect("the program can be started");
            let printed = printed(&output);
            assert_eq!(output.status.code(), Some(2), "{line:?}: {printed}");
            assert!(printed.contains(&expected), "{line:?}: {printed}");
        }
        count += 1;
    }
    assert!(count > 0, "CONSOLE lists no command");
    let output = Command::new(PROGRAM)
        .args(["sim", "nowhere", "else"])
        .output()
        .expect("the program can be started");
    assert!(!printed(&output).contains("ibfabric sim ctl"), "{}", printed(&output));
}

#[test]
fn errors_on_standard_input_name_their_lines() {
    let simulator = Simulator::start(&[]);
    let run = |format: &[&str]| {
        let mut child = Command::new(PROGRAM)
            .args(["sim", "ctl", "--name", &simulator.socket])
            .args(format)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let text =
            b"# a remark\n\nroute 1 2\nunlink sw-x0y0[1]\nunlink nobody\nrelink sw-x0y0[1]\n";
        child
            .stdin
            .take()
            .expect("standard input is piped")
            .write_all(text)
            .expect("the program reads its input");
        child.wait_with_output().expect("the process can be awaited")
    };
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<String> = printed(&output).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "ibfabric: stdin:3: no end port has LID 1");
    assert!(lines[1].starts_with("ibfabric: stdin:5: there is no node \"nobody\""), "{lines:?}");
    assert_eq!(lines.len(), 2);
    let output = run(&["--json"]);
    let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    let answers: Vec<serde_json::Value> =
        answers.map(|answer| answer.expect("the output is JSON")).collect();
    let places: Vec<_> = answers.iter().map(|answer| (&answer["line"], &answer["ok"])).collect();
    let expected = serde_json::json!([[3, false], [4, true], [5, false], [6, true]]);
    assert_eq!(serde_json::json!(places), expected);
    assert!(
        simulator.json(&["stats"]).get("line").is_none(),
        "a command of the command line has no line number"
    );
}

#[test]
fn console_finds_udp_simulator_like_clients() {
    let port = {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a UDP port is free");
        socket.local_addr().expect("the socket is bound").port()
    };
    let (simulator, port) = (Simulator::on_port(port), port.to_string());
    let run = |words: &[&str], environment: &[(&str, &str)]| {
        let mut command = Command::new(PROGRAM);
        for name in ["IBSIM_SOCKNAME", "IBSIM_SERVER_NAME", "IBSIM_SERVER_PORT"] {
            command.env_remove(name);
        }
        command.args(["sim", "ctl"]).args(words).arg("attached");
        command.envs(environment.iter().copied()).output().expect("the program can be started")
    };
    let (here, number) = (("IBSIM_SERVER_NAME", "127.0.0.1"), ("IBSIM_SERVER_PORT", &*port));
    let elsewhere = ("IBSIM_SOCKNAME", "nobody-has-this-name");
    for (words, environment) in [
        (&["--port", &port][..], &[][..]),
        (&["--port", &port], &[elsewhere]),
        (&["--name", &port], &[]),
        (&[], &[here, number]),
        (&[], &[here, number, elsewhere]),
        (&[], &[("IBSIM_SERVER_NAME", "localhost"), number]),
    ] {
        let output = run(words, environment);
        let printed = printed(&output);
        assert_eq!(output.status.code(), Some(0), "{words:?} {environment:?}: {printed}");
    }
    for (words, environment, expected) in [
        // Like clients, `sim ctl` ignores IBSIM_SERVER_PORT unless IBSIM_SERVER_NAME is set.
        (
            &[][..],
            &[elsewhere, number][..],
            "no simulator listens on @nobody-has-this-name:console",
        ),
        (&[], &[elsewhere], "; --name NAME or --port N selects another one"),
        (&["--name", "nobody-has-this-name"], &[here, number], "on @nobody-has-this-name:"),
        (&[], &[("IBSIM_SERVER_NAME", "192.0.2.7"), number], "expected this machine"),
        (&[], &[here, ("IBSIM_SERVER_PORT", "x")], "IBSIM_SERVER_PORT is \"x\": expected a port"),
        (&["--name", "a", "--port", "7"], &[], "'--name <NAME>' cannot be used with '--port"),
        (&["--port", "0"], &[], "expected 1 to 65335"),
    ] {
        let output = run(words, environment);
        let printed = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?} {environment:?}: {printed}");
        assert!(printed.contains(expected), "{words:?} {environment:?}: {printed}");
    }
    assert_eq!(simulator.end("-TERM").0, Some(0));
}

#[test]
fn addresses_follow_changed_guids() {
    let simulator = Simulator::start(&[]);
    let first = || simulator.json(&["addresses", "host-0"])["data"][0]["addresses"][1].clone();
    assert_ne!(first(), "fd69:6266:6162::77");
    assert_eq!(simulator.ctl(&["guid host-0[1] 0x77"]).status.code(), Some(0));
    assert_eq!(first(), "fd69:6266:6162::77");
}

#[test]
fn console_serves_again_after_descriptors_ran_out() {
    let simulator = Simulator::with_descriptors(40);
    let name = format!("{}:console", simulator.socket);
    let address = SocketAddr::from_abstract_name(name).expect("the name is valid");
    let clients: Vec<UnixStream> =
        (0..100).filter_map(|_| UnixStream::connect_addr(&address).ok()).collect();
    assert!(clients.len() > 40);
    std::thread::sleep(Duration::from_millis(300));
    drop(clients);
    let mut client = UnixStream::connect_addr(&address).expect("the simulator listens");
    client.set_read_timeout(Some(Duration::from_secs(10))).expect("the timeout is not zero");
    client.write_all(b"\"stats\"\n").expect("the message can be sent");
    let mut reply = [0; 1];
    client.read_exact(&mut reply).expect("the simulator replies in time");
}
