//! Checks the options `--record` and `--replay` of `ibfabric sim`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::lab::{Client, PROGRAM, Simulator, node_info};

#[test]
fn replay_log_equals_recorded_log() {
    let options = [
        "--seed",
        "5",
        "--log",
        "log",
        "--log-level",
        "hops",
        "--record",
        "record",
        "--pcap",
        "pcap",
        "--random-faults",
        "30",
        "--random-time",
        "400ms",
    ];
    let simulator = Simulator::start(&options);
    let client = Client::attach(&simulator.socket, 1).expect("the simulator accepts clients");
    for transaction in 0..200 {
        client.send(&node_info(transaction, &[1, transaction as u8 % 6]), 0xffff);
        client.receive();
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(simulator.ctl(&["unlink", "sw-x1y0"]).status.code(), Some(0));
    // Commands that fail are recorded and logged, too.
    assert_eq!(simulator.ctl(&["unlink", "sw-x1y0"]).status.code(), Some(1));
    assert_eq!(simulator.ctl(&["power", "nobody", "off"]).status.code(), Some(1));
    drop(client);
    let place = simulator.place.path().to_owned();
    let process = simulator.child.id().to_string();
    assert!(
        Command::new("kill").arg(&process).status().expect("the program can be started").success()
    );
    let mut simulator = simulator;
    assert_eq!(simulator.child.wait().expect("the process can be awaited").code(), Some(0));
    let words = [
        "sim",
        "net",
        "--seed",
        "5",
        "--log",
        "again",
        "--log-level",
        "hops",
        "--replay",
        "record",
        "--random-faults",
        "30",
        "--random-time",
        "400ms",
    ];
    let output = Command::new(PROGRAM)
        .args(words)
        .current_dir(&place)
        .output()
        .expect("the program can be started");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let log = simulator.file("log");
    assert!(
        log.contains("link down") && log.contains("arrives"),
        "the log has link failures and packets"
    );
    assert_eq!(log, simulator.file("again"));
    let other = words.map(|word| if word == "5" { "6" } else { word });
    let output = Command::new(PROGRAM)
        .args(other)
        .current_dir(&place)
        .output()
        .expect("the program can be started");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        printed.contains("record:3: found \"with seed 5\", expected \"with seed 6\""),
        "{printed}"
    );
    assert_eq!(log.matches("command Unlink \"sw-x1y0\"\n").count(), 2);
    assert!(log.contains("nobody"));
    let capture = fs::read(place.join("pcap")).expect("the file can be read");
    let mut reader = ib_pcap::Reader::new(&capture[..]).expect("the file is a capture");
    let mut packets = 0;
    while let Some(event) = reader.next_event().expect("the capture is complete") {
        packets += u32::from(matches!(event, ib_pcap::Event::Packet(_)));
    }
    assert!(packets > 200, "{packets} packets");
}

/// Replays the file `record` of a directory, on the fabric that the directory's file `net` describes. Returns the exit
/// status and standard error.
fn replay(place: &Path, record: &str) -> (Option<i32>, String) {
    let words = ["sim", "net", "--replay", record];
    let output = Command::new(PROGRAM)
        .args(words)
        .current_dir(place)
        .output()
        .expect("the program can be started");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn replay_fails_if_a_command_has_another_result() {
    let simulator = Simulator::start(&["--record", "record"]);
    for code in [0, 1] {
        assert_eq!(simulator.ctl(&["unlink", "sw-x1y0"]).status.code(), Some(code));
    }
    let place = simulator.place.path().to_owned();
    let process = simulator.child.id().to_string();
    assert!(
        Command::new("kill").arg(&process).status().expect("the program can be started").success()
    );
    let mut simulator = simulator;
    assert_eq!(simulator.child.wait().expect("the process can be awaited").code(), Some(0));
    assert_eq!(replay(&place, "record"), (Some(0), String::new()));
    let record = simulator.file("record");
    for (line, changed, expected) in [
        (
            "\ndone unlink",
            "\nfailed unlink",
            "expected a command that fails: it succeeded in the replay",
        ),
        (
            "\nfailed unlink",
            "\ndone unlink",
            "expected a command that succeeds: it failed in the replay",
        ),
    ] {
        assert_eq!(record.matches(line).count(), 1, "{record}");
        fs::write(place.join("changed"), record.replace(line, changed))
            .expect("the file can be written");
        let (code, printed) = replay(&place, "changed");
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn replay_requires_identical_fabric() {
    let net = "vendid=0x2c9\ndevid=0x1003\nsysimgguid=0x6000\ncaguid=0x6001\nCa 1 \"a\" # \"one\"\n\
               [1] \"s\"[1] s=7 e=7\t# lid 0 lmc 0 \"\" lid 0 4xNDR\n\nswitchguid=0x7001\nSwitch 4 \"s\" # \"two\" enhanced port 0 lid 3\n\
               [1] \"a\"[1] s=7 e=7\t# lid 0 4xNDR\n";
    let mut simulator = Simulator::of(net, &["--record", "record"]);
    let process = simulator.child.id().to_string();
    assert!(
        Command::new("kill").arg(&process).status().expect("the program can be started").success()
    );
    assert_eq!(simulator.child.wait().expect("the process can be awaited").code(), Some(0));
    let place = simulator.place.path();
    assert_eq!(replay(place, "record"), (Some(0), String::new()));
    for (part, other) in [
        ("vendid=0x2c9", "vendid=0x2c8"),
        ("devid=0x1003", "devid=0x1004"),
        ("sysimgguid=0x6000", "sysimgguid=0x6002"),
        ("\"one\"", "\"eins\""),
        ("enhanced port 0", "base port 0"),
        ("s=7 e=7", "s=6 e=6"),
    ] {
        assert!(net.contains(part));
        let changed = net.replace(part, other);
        let changed = if part == "s=7 e=7" { changed.replace("4xNDR", "4xHDR") } else { changed };
        fs::write(place.join("net"), changed).expect("the file can be written");
        let (code, printed) = replay(place, "record");
        assert_eq!(code, Some(2), "{other}: {printed}");
        assert!(printed.contains("record:2: found \"with fabric"), "{other}: {printed}");
    }
}
