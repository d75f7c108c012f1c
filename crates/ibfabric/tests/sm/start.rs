//! Starts the SM in the foreground and in the background, and checks the errors that it prints and logs.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::lab::{Daemon, Lab, PROGRAM, signal, wait_for};

/// Runs an SM until it exits. Returns its exit status and standard error.
fn run(lab: &Lab, options: &[&str]) -> (Option<i32>, String) {
    let mut command = lab.command(options);
    let Output { status, stderr, .. } =
        command.stderr(Stdio::piped()).output().expect("the program can be started");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn daemon_startup_failure_is_printed_and_logged() {
    let lab = Lab::start(&[]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a TCP port is free");
    let address = port.local_addr().expect("the socket is bound").to_string();
    let log = ["-B", "--log", "log", "--pidfile", "pid"];
    for (options, expected) in [
        (&["--metrics", address.as_str()][..], "cannot serve metrics at 127.0.0.1:"),
        (&["--root-guids", "none"], "--root-guids: cannot read none: "),
        (&["--guid-routing-order", "none"], "--guid-routing-order: cannot read none: "),
        (&["--pconfig", "none"], "--pconfig: cannot read none: "),
        (&["--node", "nobody"], "there is no such node"),
    ] {
        let (status, errors) = run(&lab, &[&log[..], options].concat());
        assert_eq!(status, Some(2), "{options:?}");
        assert_eq!(errors.matches(expected).count(), 1, "{options:?}: {errors}");
        let text = fs::read_to_string(lab.path("log")).expect("the file can be read");
        assert!(text.contains(expected) && text.ends_with("Exiting SM\n"), "{text}");
        assert!(!lab.path("pid").exists(), "{options:?}");
        fs::remove_file(lab.path("log")).expect("the file can be removed");
    }
    let (status, errors) = run(&lab, &["-B", "--log", "missing/log"]);
    assert_eq!(status, Some(2));
    assert!(errors.contains("cannot log to missing/log: "), "{errors}");
}

#[test]
fn daemon_is_ready_when_it_detaches() {
    let lab = Lab::start(&[]);
    let (status, errors) = run(&lab, &["-B", "--log", "log", "--pidfile", "pid"]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    let pid = fs::read_to_string(lab.path("pid")).expect("the SM has written its PID");
    let kill = |name: &str| {
        let mut command = Command::new("kill");
        command.args([name, pid.trim()]).stderr(Stdio::null());
        command.status().expect("the program can be started").success()
    };
    assert!(kill("-TERM"));
    wait_for("the exit of the SM", || !lab.path("pid").exists());
    let text = fs::read_to_string(lab.path("log")).expect("the file can be read");
    assert!(text.contains(" 0x80 -> ibfabric "), "{text}");
    wait_for("the last log line", || {
        fs::read_to_string(lab.path("log")).is_ok_and(|text| text.ends_with("Exiting SM\n"))
    });
}

#[test]
fn second_sigterm_ends_a_computing_sm() {
    let lab = Lab::start(&[]);
    let fabric = lab.path("torus.net");
    let mut generate = Command::new(PROGRAM);
    generate.args(["gen", "torus", "24x24", "hosts=2", "-o"]).arg(&fabric);
    assert!(generate.status().expect("the program can be started").success());
    let mut sm = Command::new(PROGRAM);
    sm.args(["sm", "-R", "lash", "--once", "--sim"]).arg(&fabric);
    let mut child = sm.stderr(Stdio::null()).spawn().expect("the program can be started");
    let stat = format!("/proc/{}/stat", child.id());
    wait_for("one second of CPU time", || {
        let stat = fs::read_to_string(&stat).expect("the process has not exited");
        let user_ticks = stat.split(' ').nth(13).and_then(|ticks| ticks.parse().ok());
        user_ticks.is_some_and(|ticks: u64| ticks > 100)
    });
    while child.try_wait().expect("the process can be awaited").is_none() {
        signal(&child, "TERM");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(child.wait().expect("the process can be awaited").signal(), Some(15));
}

#[test]
fn exit_of_simulator_is_logged() {
    let mut lab = Lab::start(&[]);
    let mut daemon = Daemon::start(&lab, &["--log", "log", "--pidfile", "pid", "--sweep", "1"]);
    daemon.is_up(1);
    lab.simulator.end();
    let status = daemon.child.wait().expect("the process can be awaited");
    assert_eq!(status.code(), Some(2));
    let text = fs::read_to_string(lab.path("log")).expect("the file can be read");
    let end: Vec<&str> = text.lines().rev().take(2).collect();
    assert!(end[0].ends_with("Exiting SM") && end[1].contains(" 0x01 -> "), "{text}");
    assert!(!lab.path("pid").exists());
}

#[test]
fn startup_failure_is_printed_once() {
    let lab = Lab::start(&[]);
    let (status, errors) = run(&lab, &["--once", "--engine", "updn,no_fallback"]);
    assert_eq!(status, Some(2));
    assert_eq!(errors.matches("no root switch").count(), 1, "{errors}");
}

#[test]
fn discarded_lines_are_logged() {
    let lab = Lab::start(&[]);
    fs::write(lab.path("a.txt"), "0xdead\n").expect("the file can be written");
    let options = ["--engine", "updn", "--root-guids", "a.txt", "--log", "log"];
    let mut daemon = Daemon::start(&lab, &options);
    daemon.is_up(1);
    signal(&daemon.child, "HUP");
    daemon.is_up(2);
    let status = daemon.query(&["status"]);
    assert_eq!((&status["up"]["engine"], &status["requested"]), (&"minhop".into(), &"updn".into()));
    let refusal = &status["up"]["refusals"][0];
    assert_eq!(refusal["engine"], "updn");
    let text = String::from_utf8(daemon.ctl(&["status"]).stdout).expect("the output is UTF-8");
    assert!(text.contains("updn cannot route this subnet: "), "{text}");
    daemon.end();
    let text = fs::read_to_string(lab.path("log")).expect("the file can be read");
    // The log has each of these messages once: the unknown GUID in `a.txt`, the failure of updn, and the engine that
    // replaces updn. Only the beginnings of the first two messages are compared.
    for expected in [
        " 0x01 -> a.txt:1: found 0x000000000000dead, expected the GUID of ",
        " 0x01 -> updn cannot route this subnet: ",
        " 0x01 -> routed with minhop instead\n",
    ] {
        assert_eq!(text.matches(expected).count(), 1, "expected {expected:?} once in {text}");
    }
    // If no log is configured, the SM prints the failure of an engine on standard error.
    let (_, errors) = run(&lab, &["--once", "--engine", "ftree"]);
    assert!(errors.contains("ftree cannot route this subnet: "), "{errors}");
}

#[test]
fn log_has_fabric_events() {
    let lab = Lab::start(&[]);
    let mut daemon = Daemon::start(&lab, &["--log", "log", "-vvv"]);
    daemon.is_up(1);
    lab.run_command("unlink \"H-0002c90000100002\"[1]");
    wait_for("the trap", || daemon.query(&["status"])["up"]["nodes"] == 7);
    lab.run_command("relink \"H-0002c90000100002\"[1]");
    wait_for("the trap", || daemon.query(&["status"])["up"]["nodes"] == 8);
    daemon.end();
    let text = fs::read_to_string(lab.path("log")).expect("the file can be read");
    for expected in [
        " 0x02 -> Heavy sweep: the SM starts\n",
        " 0x04 -> Discovered new port with GUID:",
        " 0x02 -> 8 nodes, 4 switches, 8 LIDs, routed with minhop; 0 unreachable, 0 credit loops\n",
        " 0x04 -> explored in ",
        " 0x02 -> Received Generic Notice type:1 num:128 (",
        " reported changes\n",
        " 0x02 -> Removed port with GUID:0x0002c90000100003 LID range [",
        " 0x02 -> Removed link between ",
        " 0x02 -> Discovered new port with GUID:0x0002c90000100003 LID range [",
        " 0x02 -> Discovered new link between ",
        " 0x08 -> The SM is discovering\n",
        " 0x20 -> sends ",
        " 0x20 -> received ",
    ] {
        assert!(text.contains(expected), "expected {expected:?} in {text}");
    }
}

#[test]
fn standby_is_reported() {
    let lab = Lab::start(&["--sm"]);
    let mut daemon = Daemon::start(&lab, &["--node", "host-3", "--log", "log"]);
    daemon.is_in("standby");
    let output = daemon.ctl(&["sweep"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("this SM is in standby; the master is 0x"), "{errors}");
    assert_eq!(daemon.query(&["status"])["managers"][0]["state"], "master");
    daemon.end();
    // An SM of higher priority takes over the subnet, and the other SM becomes standby.
    let daemon = Daemon::start(&lab, &["--node", "host-3", "--priority", "5"]);
    daemon.is_in("master");
    wait_for("standby", || lab.query_manager(&["status"])["state"] == "standby");
    let status = lab.query_manager(&["status"]);
    assert_eq!(status["managers"][0]["state"], "master", "{status}");
    assert!(status["up"].is_null(), "{status}");
}

#[test]
fn configured_port_is_used() {
    let lab = Lab::start(&[]);
    let own = "0x0002c90000100001";
    let (status, errors) = run(&lab, &["--once", "--guid", own]);
    assert_eq!(status, Some(0), "{errors}");
    let (status, errors) = run(&lab, &["--once", "--guid", "0x0002c90000100003"]);
    assert_eq!(status, Some(2));
    let expected = format!("--guid: found 0x0002c90000100003, expected {own}");
    assert!(errors.contains(&expected), "{errors}");
    let here = |options: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(["sm", "--sim", "net", "--once", "--log", "stdout"]).args(options);
        let output =
            command.current_dir(lab.place.path()).output().expect("the program can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&output.stdout) + &text(&output.stderr)
    };
    let other = "Managing from port GUID 0x0002c90000100003\n";
    assert!(here(&["--guid", "0x0002c90000100003"]).contains(other));
    assert!(here(&["--node", "H-0002c90000100002"]).contains(other));
    assert!(here(&["--node", "nope"]).contains("--node nope: the fabric has no such node"));
    assert!(here(&["--guid", "0xdead"]).contains("no end port has this GUID"));
    // The name of the simulator may follow `--attach` as a separate word.
    let mut command = Command::new(PROGRAM);
    command.args(["sm", "--attach", &lab.socket, "-o"]);
    assert_eq!(command.output().expect("the program can be started").status.code(), Some(0));
}
