//! How the daemon starts, in the background and not, and what it says when it cannot.

use std::fs;
use std::process::{Output, Stdio};

use crate::lab::{Daemon, Lab, signal, wait_for};

/// Runs a manager to its end; returns its exit status and what it said on standard error.
fn run(lab: &Lab, options: &[&str]) -> (Option<i32>, String) {
    let mut command = lab.command(options);
    let Output { status, stderr, .. } = command.stderr(Stdio::piped()).output().expect("it runs");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn what_keeps_it_from_the_background_is_said_and_logged() {
    let lab = Lab::start(&[]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let number = port.local_addr().expect("an address").port().to_string();
    let log = ["-B", "--log", "log", "--pidfile", "pid"];
    for (options, expected) in [
        (&["--metrics-port", number.as_str()][..], "cannot serve metrics on port "),
        (&["--root-guids", "none"], "--root-guids: cannot read none: "),
        (&["--guid-routing-order", "none"], "--guid-routing-order: cannot read none: "),
        (&["--pconfig", "none"], "--pconfig: cannot read none: "),
        (&["--node", "nobody"], "there is no such node"),
    ] {
        let (status, errors) = run(&lab, &[&log[..], options].concat());
        assert_eq!(status, Some(2), "{options:?}");
        assert_eq!(errors.matches(expected).count(), 1, "{options:?}: {errors}");
        let text = fs::read_to_string(lab.path("log")).expect("a log");
        assert!(text.contains(expected) && text.ends_with("Exiting SM\n"), "{text}");
        assert!(!lab.path("pid").exists(), "{options:?}");
        fs::remove_file(lab.path("log")).expect("removed");
    }
    let (status, errors) = run(&lab, &["-B", "--log", "missing/log"]);
    assert_eq!(status, Some(2));
    assert!(errors.contains("cannot log to missing/log: "), "{errors}");
}

#[test]
fn it_is_set_up_when_it_is_in_the_background() {
    let lab = Lab::start(&[]);
    let (status, errors) = run(&lab, &["-B", "--log", "log", "--pidfile", "pid"]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    let pid = fs::read_to_string(lab.path("pid")).expect("it is written before");
    let kill = |name: &str| {
        let mut command = std::process::Command::new("kill");
        command.args([name, pid.trim()]).stderr(Stdio::null());
        command.status().expect("it runs").success()
    };
    assert!(kill("-TERM"));
    wait_for("its end", || !lab.path("pid").exists());
    let text = fs::read_to_string(lab.path("log")).expect("a log");
    assert!(text.contains(" 0x80 -> ibfabric "), "{text}");
    wait_for("the last line", || {
        fs::read_to_string(lab.path("log")).is_ok_and(|text| text.ends_with("Exiting SM\n"))
    });
}

#[test]
fn a_simulator_that_ends_is_logged() {
    let mut lab = Lab::start(&[]);
    let mut daemon = Daemon::start(&lab, &["--log", "log", "--pidfile", "pid", "--sweep", "1"]);
    daemon.is_up(1);
    lab.simulator.end();
    let status = daemon.child.wait().expect("it ends");
    assert_eq!(status.code(), Some(2));
    let text = fs::read_to_string(lab.path("log")).expect("a log");
    let end: Vec<&str> = text.lines().rev().take(2).collect();
    assert!(end[0].ends_with("Exiting SM") && end[1].contains(" 0x01 -> "), "{text}");
    assert!(!lab.path("pid").exists());
}

#[test]
fn a_reason_is_said_once() {
    let lab = Lab::start(&[]);
    let (status, errors) = run(&lab, &["--once", "--engine", "updn,no_fallback"]);
    assert_eq!(status, Some(2));
    assert_eq!(errors.matches("no root switch").count(), 1, "{errors}");
}

#[test]
fn lines_that_are_discarded_reach_the_log() {
    let lab = Lab::start(&[]);
    fs::write(lab.path("a.txt"), "0xdead\n").expect("written");
    let options = ["--engine", "updn", "--root-guids", "a.txt", "--log", "log"];
    let mut daemon = Daemon::start(&lab, &options);
    daemon.is_up(1);
    signal(&daemon.child, "HUP");
    daemon.is_up(2);
    let status = daemon.ask(&["status"]);
    assert_eq!((&status["up"]["engine"], &status["requested"]), (&"minhop".into(), &"updn".into()));
    let refusal = &status["up"]["refusals"][0];
    assert_eq!(refusal["engine"], "updn");
    let text = String::from_utf8(daemon.ctl(&["status"]).stdout).expect("text");
    assert!(text.contains("updn cannot route this subnet: "), "{text}");
    daemon.end();
    let text = fs::read_to_string(lab.path("log")).expect("a log");
    for expected in [
        " 0x01 -> a.txt:1: found 0x000000000000dead, expected the GUID of ",
        " 0x01 -> updn cannot route this subnet: ",
        " 0x01 -> routed with minhop instead\n",
    ] {
        assert_eq!(text.matches(expected).count(), 1, "{expected} in {text}");
    }
    // Without a log it is said on standard error.
    let (_, errors) = run(&lab, &["--once", "--engine", "ftree"]);
    assert!(errors.contains("ftree cannot route this subnet: "), "{errors}");
}
