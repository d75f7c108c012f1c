//! Tests with programs on the host, without a guest.

use std::process::Command;
use std::time::{Duration, Instant};

use super::Running;
use crate::error::RunError;

const LIMIT: Duration = Duration::from_secs(10);

fn shell(script: &str) -> Running {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Running::on_host(command, script.to_owned()).unwrap()
}

#[test]
fn result_has_both_output_streams_and_the_status() {
    let finished = shell("echo a; echo b >&2; exit 3").wait(LIMIT).unwrap();
    assert_eq!((finished.status, &*finished.output), (3, "a\nb\n"));
    assert!(!finished.success());
}

#[test]
fn signal_n_is_reported_as_status_128_plus_n() {
    assert_eq!(shell("kill -TERM $$").wait(LIMIT).unwrap().status, 143);
    let running = shell("echo begun; sleep 1000 & wait");
    running.until("begun", LIMIT).unwrap();
    assert_eq!(running.kill().unwrap().status, 137);
}

#[test]
fn command_over_its_time_limit_is_killed_with_its_children() {
    let start = Instant::now();
    let running = shell("echo slow; sleep 1000 & wait");
    running.until("slow", LIMIT).unwrap();
    match running.wait(Duration::from_millis(10)) {
        Err(RunError::Timeout { output, .. }) => assert_eq!(output, "slow\n"),
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() < LIMIT);
}

#[test]
fn exit_before_the_text_differs_from_a_timeout() {
    let early = shell("echo no; exit 4").until("yes", LIMIT);
    assert!(matches!(early, Err(RunError::Early { status: 4, .. })), "{early:?}");
    let silent = shell("sleep 1000").until("yes", Duration::from_millis(10));
    assert!(matches!(silent, Err(RunError::Timeout { .. })), "{silent:?}");
}
