//! Options and exit statuses that all commands share.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::Directory;
use super::program::{Running, ibfabric, text};

fn run(words: &[&str]) -> Output {
    ibfabric(words).output().expect("the program can be started")
}

/// Returns the printed results and messages.
fn printed(output: &Output) -> (String, String) {
    (text(&output.stdout), text(&output.stderr))
}

/// Starts a simulator with an SM. Returns it with its name.
fn simulator(net: &str, test: &str) -> (Running, String) {
    let name = format!("global-{test}-{}", std::process::id());
    (Running::ready(ibfabric(&["sim", net, "--sm", "--name", &name])), name)
}

#[test]
fn quiet_prints_errors_only() {
    let directory = Directory::new();
    let net = directory.fabric(&["mesh", "2x2", "hosts=2"]);
    let route = ["route", &net, "--engine", "ftree,minhop"];
    let (results, notes) = printed(&run(&route));
    assert!(!results.is_empty() && notes.contains("ftree cannot route"), "{results}{notes}");
    for words in [[&["-q"], &route[..]].concat(), [&route[..], &["--quiet"]].concat()] {
        let output = run(&words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert_eq!(printed(&output), (String::new(), String::new()), "{words:?}");
    }
    let output = run(&["check", &net, "--lfts", "/none", "-q"]);
    let (results, errors) = printed(&output);
    assert_eq!((output.status.code(), &*results), (Some(2), ""));
    assert!(errors.contains("/none"), "{errors}");
    // A problem is reported by the exit status, and by the error if there is one.
    let output = run(&["route", &net, "--engine", "ftree,no_fallback", "-q"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""));
    assert!(text(&output.stderr).contains("ftree"), "{}", text(&output.stderr));
    // Data for standard output is not suppressed.
    let fabric = ["gen", "mesh", "2x2", "hosts=2"];
    assert_eq!(run(&[&fabric[..], &["-q"]].concat()).stdout, run(&fabric).stdout);
}

#[test]
fn verbose_beyond_details_prints_run_time() {
    let directory = Directory::new();
    let net = directory.fabric(&["mesh", "2x2", "hosts=2"]);
    let has_run_time = |words: &[&str]| {
        let output = run(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
        text(&output.stderr).contains("run time")
    };
    assert!(!has_run_time(&["route", &net]) && has_run_time(&["route", &net, "-v"]));
    assert!(has_run_time(&["-v", "route", &net]));
    // `-v` of the tracer prints all hops.
    let trace = ["tracer", "--sim", &net, "--all-pairs"];
    assert!(!has_run_time(&[&trace[..], &["-v"]].concat()));
    assert!(has_run_time(&[&trace[..], &["-vv"]].concat()));
    assert!(has_run_time(&[&["-v"], &trace[..], &["-vv"]].concat()));
}

#[test]
fn completions_are_those_of_the_documents() {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/completions");
    for (shell, file) in
        [("bash", "ibfabric.bash"), ("zsh", "_ibfabric"), ("fish", "ibfabric.fish")]
    {
        let expected = fs::read(documents.join(file)).expect("the file exists");
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stdout == expected, "{shell}: run `cargo xtask completions`");
    }
    assert_eq!(run(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn signals_before_the_end_have_their_exit_statuses() {
    let directory = Directory::new();
    let net = directory.fabric(&["mesh", "2x2", "hosts=2"]);
    let (_simulator, name) = simulator(&net, "signals");
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        // This SM waits until the master fails.
        let node = format!("--node={}", last_host(&name));
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_ibfabric"), "sm", "--attach"]);
        command.args([&name, &node, "--standby", "--once", "--name"]);
        let standby = format!("{name}-standby");
        let mut sm = command.arg(&standby).stderr(Stdio::null()).spawn().expect("env runs");
        let ctl = ["sm", "ctl", "--name", &standby, "status"];
        while !text(&run(&ctl).stdout).starts_with("standby") {
            assert_eq!(sm.try_wait().expect("the process can be awaited"), None);
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        kill_process(Pid::from_child(&sm), signal).expect("the process exists");
        assert_eq!(sm.wait().expect("the process can be awaited").code(), Some(status));
    }
}

/// Returns the name of the last host of a simulated fabric.
fn last_host(simulator: &str) -> String {
    let addresses = text(&run(&["sim", "ctl", "--name", simulator, "Addresses"]).stdout);
    let line = addresses.lines().last().expect("the fabric has hosts");
    line.split('"').nth(1).expect("the line has a name").to_owned()
}

#[test]
fn attach_without_name_uses_the_environment() {
    let directory = Directory::new();
    let net = directory.fabric(&["mesh", "2x2", "hosts=2"]);
    let (_simulator, name) = simulator(&net, "attach");
    let host = last_host(&name);
    for words in [
        &["tracer", "--all-pairs", "--no-agents", "--via", "sa", "--attach"][..],
        &["rdma", "devinfo", "--node", &host, "--attach"],
        &["run", "--env", "--node", &host, "--attach"],
        &["acme", "-A", "-D", &directory.path(""), "--node", &host, "--attach"],
    ] {
        let with_name = run(&[words, &[&*name]].concat());
        let mut command = ibfabric(words);
        let from_environment =
            command.env("IBSIM_SOCKNAME", &name).output().expect("the program can be started");
        for output in [with_name, from_environment] {
            assert_ne!(output.status.code(), Some(2), "{words:?}: {}", text(&output.stderr));
        }
        let mut command = ibfabric(words);
        command.env("IBSIM_SOCKNAME", "no-such-simulator");
        let output = command.output().expect("the program can be started");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains("no-such-simulator"), "{}", text(&output.stderr));
    }
}
