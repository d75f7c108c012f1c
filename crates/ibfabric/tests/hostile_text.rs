//! Text from peers is escaped in terminals, logs and JSON.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use ib_types::text::is_unsafe;

#[expect(dead_code, reason = "these tests use only a part of the module")]
mod program;

use program::{Running, ibfabric};

/// A node description with a character that reverses the direction of the following text. Fabric files and MADs can
/// contain such characters.
const HOSTILE: &str = "\u{202e}X";

/// Writes a fabric of two switches with one host each. All node descriptions contain [`HOSTILE`].
fn hostile_fabric(path: &Path) {
    let output = ibfabric(&["gen", "mesh", "2x1", "hosts=1"]).output().expect("the program runs");
    let mut text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    for name in ["host-0", "host-1", "sw-x0y0", "sw-x1y0"] {
        text = text.replace(&format!("\"{name}\""), &format!("\"{name}{HOSTILE}\""));
    }
    assert_eq!(text.matches(HOSTILE).count(), 4, "{text}");
    fs::write(path, text).expect("the file can be written");
}

/// Checks that the output of a command is safe for a terminal. Returns true if the output contains an escaped
/// character.
fn is_escaped(words: &[&str], output: &Output) -> bool {
    let printed = [&output.stdout[..], &output.stderr[..]].concat();
    let printed = String::from_utf8(printed).expect("the output is UTF-8");
    assert!(!printed.is_empty(), "{words:?} printed nothing");
    let raw = printed.chars().find(|&it| is_unsafe(it) && !matches!(it, '\n' | '\t'));
    assert_eq!(raw, None, "{words:?}: {printed:?}");
    ["\\u{202e}", "\\u202e", "\\u{1b}", "\\u001b"].iter().any(|escape| printed.contains(escape))
}

/// Runs a command. Checks that its output contains the hostile text, but only in escaped form.
fn shows_escaped(words: &[&str]) {
    let output = ibfabric(words).stdin(Stdio::null()).output().expect("the program runs");
    assert!(is_escaped(words, &output), "{words:?} shows no hostile text: {output:?}");
}

#[test]
fn node_descriptions_are_escaped() {
    let folder = tempfile::tempdir().expect("a temporary directory can be created");
    let fabric = folder.path().join("hostile.net");
    hostile_fabric(&fabric);
    let tables = folder.path().join("tables").display().to_string();
    let fabric = &*fabric.display().to_string();
    shows_escaped(&["route", fabric]);
    shows_escaped(&["route", fabric, "--json"]);
    shows_escaped(&["route", fabric, "--dump-dir", &tables]);
    let lfts = format!("{tables}/opensm-lfts.dump");
    shows_escaped(&["check", fabric, "--lfts", &lfts]);
    shows_escaped(&["check", fabric, "--lfts", &lfts, "--json"]);
    for words in [
        &["tracer", "--sim", fabric, "--all-pairs", "-v"][..],
        &["tracer", "--sim", fabric, "--all-pairs", "-v", "--json"],
        &["tracer", "--sim", fabric, "--all-pairs", "--via", "sa"],
        &["sm", "--sim", fabric, "--once", "-f", "stdout", "-V"],
        &["sim", "ctl", "--name", "no-such\u{1b}[31m", "Dump"],
    ] {
        let output = ibfabric(words).output().expect("the program runs");
        is_escaped(words, &output);
    }
}

#[test]
fn error_replies_of_simulator_are_escaped() {
    let folder = tempfile::tempdir().expect("a temporary directory can be created");
    let fabric = folder.path().join("hostile.net");
    hostile_fabric(&fabric);
    let name = format!("hostile-text-{}", std::process::id());
    let mut command = ibfabric(&["sim", &fabric.display().to_string(), "--name", &name]);
    command.stderr(Stdio::null());
    let _simulator = Running::ready(command);
    let node = format!("none\u{1b}[31m{HOSTILE}");
    shows_escaped(&["agent", "--attach", &name, "--node", &node]);
    shows_escaped(&["acm", "--attach", &name, "--node", &node]);
    shows_escaped(&["rdma", "ping", "host-0", "--attach", &name, "--node", &node]);
    shows_escaped(&["sim", "ctl", "--name", &name, &format!("Unlink \"{node}\"")]);
    let mut dump = ibfabric(&["sim", "ctl", "--name", &name, "Dump"]);
    is_escaped(&["Dump"], &dump.output().expect("the program runs"));
}

#[test]
fn arguments_in_error_messages_are_escaped() {
    let hostile = "none\u{1b}[31m\nibfabric: forged";
    for words in [
        &["route", hostile][..],
        &["check", hostile, "--lfts", hostile],
        &["acme", "-S", hostile, "-e"],
        &["capture", "read", hostile],
        &["rtrs", "ctl", "--socket", hostile, "list"],
        &["sm", "ctl", "--name", hostile, "status"],
    ] {
        let output = ibfabric(words).output().expect("the program runs");
        assert!(is_escaped(words, &output), "{words:?} shows no hostile text: {output:?}");
        assert!(
            !output.stderr.split(|&byte| byte == b'\n').any(|line| line == b"ibfabric: forged"),
            "{words:?}"
        );
    }
}
