//! Runs `ibfabric up` as a process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

#[expect(dead_code, reason = "these tests use only a part of the module")]
mod program;

use program::{Running, ibfabric, text};

/// Returns a unique value for the option --name.
fn name(test: &str) -> String {
    format!("up-test-{test}-{}", std::process::id())
}

fn up(name: &str, directory: &Path, words: &[&str]) -> Command {
    stack("up", name, directory, words)
}

fn self_test(name: &str, directory: &Path, words: &[&str]) -> Command {
    stack("selftest", name, directory, words)
}

fn stack(subcommand: &str, name: &str, directory: &Path, words: &[&str]) -> Command {
    let mut command = ibfabric(&[subcommand, "--name", name]);
    command.args(words).env("XDG_RUNTIME_DIR", directory).env("TMPDIR", directory);
    command
}

/// Starts `up`, and waits until it prints READY. Returns the process and the lines before READY.
fn ready(mut command: Command) -> (Running, Vec<String>) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program can be started");
    let lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
    let running = Running(child);
    let mut message = Vec::new();
    for line in lines.map_while(Result::ok) {
        if line == "READY" {
            return (running, message);
        }
        message.push(line);
    }
    panic!("`up` did not print READY: {message:?}");
}

/// Sends SIGINT, like Ctrl-C. Returns the exit status.
fn interrupt(mut running: Running) -> Option<i32> {
    let process = rustix::process::Pid::from_child(&running.0);
    rustix::process::kill_process(process, rustix::process::Signal::INT)
        .expect("the process exists");
    running.0.wait().expect("the process can be awaited").code()
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).expect("the directory can be read").count()
}

#[test]
fn self_test_of_a_sound_fabric_passes() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let words = ["--json", "--size", "32M"];
    let output = self_test(&name("tour"), directory.path(), &words)
        .output()
        .expect("the program can be started");
    let message = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{message}{}", text(&output.stderr));
    let report: Value = serde_json::from_str(&message).expect("the text is JSON");
    let checks = report["checks"].as_array().expect("the value is a list");
    let names: Vec<&str> = checks.iter().filter_map(|check| check["check"].as_str()).collect();
    assert_eq!(names, ["subnet", "routes", "names", "paths", "device", "capture"]);
    assert!(checks.iter().all(|check| check["good"] == true), "{message}");
    let [subnet, routes, names, paths, device, capture] =
        [0, 1, 2, 3, 4, 5].map(|check| &checks[check]["result"]);
    assert_eq!(*subnet, json!({"hosts": 32, "switches": 12, "not_up": 0}));
    assert_eq!(
        *routes,
        json!({
            "engine": "minhop", "lids": 44, "unreachable": 0, "credit_loops": 0, "switches": 12,
            "different_lfts": 0, "cut_off": 0,
        })
    );
    assert_eq!((&names["resolved"], &names["wrong"]), (&json!(32), &json!(0)));
    assert_eq!(*paths, json!({"requested": 100, "good": 100, "confirmed": 97}));
    assert_eq!((&device["bytes"], &device["paths"]), (&json!(32 << 20), &json!(2)));
    assert_eq!((&device["wrong"], &device["errors"]), (&json!(0), &json!(0)));
    let failed_over = |cut: usize| device["cuts"][cut]["cut"]["failed_over"].as_u64();
    assert!([0, 1].map(failed_over).iter().all(|count| *count > Some(0)), "{device}");
    // 32 MiB are at least 8192 packets of 4 KiB. They are transferred in both directions and captured at both ends.
    assert!(capture["packets"].as_u64() > Some(4 * 8192), "{capture}");
    assert_eq!(entries(directory.path()), 0, "no file remains");
}

/// If a fabric has too few hosts for a block device, the self-test skips the device check. If a fabric has too few
/// hosts for a second path, the self-test cuts no path.
#[test]
fn self_test_skips_checks_of_small_fabrics() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    for (hosts, has_device) in [(1, false), (2, true), (4, true)] {
        let path = directory.path().join(format!("{hosts}.net"));
        let file = path.to_str().expect("the path is UTF-8");
        let kind = ["gen", "mesh", "1", &format!("hosts={hosts}"), "-o", file];
        assert!(ibfabric(&kind).status().expect("the program can be started").success());
        let words = [file, "--json", "--size", "4M"];
        let output = self_test(&name("small"), directory.path(), &words)
            .output()
            .expect("the program can be started");
        let message = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{hosts}: {message}");
        let report: Value = serde_json::from_str(&message).expect("the text is JSON");
        let device = &report["checks"][4]["result"];
        assert_eq!(device["bytes"] == json!(4 << 20), has_device, "{message}");
        assert_eq!(device["reason"].is_string(), !has_device, "{message}");
        let cuts = device["cuts"].as_array().map_or(0, Vec::len);
        assert_eq!(cuts, if hosts == 4 { 2 } else { 0 }, "{message}");
    }
}

/// If the fabric has no hosts, the self-test has no ports to test, and passes.
#[test]
fn self_test_of_a_fabric_without_hosts_passes() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let net = directory.path().join("none.net");
    let fabric = "Switch 4 \"one\"\n[1] \"two\"[1]\n\nSwitch 4 \"two\"\n[1] \"one\"[1]\n";
    std::fs::write(&net, fabric).expect("the file can be written");
    let words = [net.to_str().expect("the path is UTF-8"), "--json"];
    let output = self_test(&name("none"), directory.path(), &words)
        .output()
        .expect("the program can be started");
    let message = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{message}{}", text(&output.stderr));
    let report: Value = serde_json::from_str(&message).expect("the text is JSON");
    let result = |check: usize| &report["checks"][check]["result"];
    assert_eq!(result(2)["resolved"], 0);
    assert!(result(3)["reason"].is_string() && result(4)["reason"].is_string(), "{message}");
}

/// Writes two files and returns their paths: the net file of a fat tree, and a script. The script makes a leaf switch
/// forward packets differently from its LFT.
fn wrong(directory: &Path) -> [String; 2] {
    let [net, script] = ["tree.net", "wrong"].map(|name| directory.join(name));
    let [net, script] =
        [net, script].map(|path| path.to_str().expect("the path is UTF-8").to_owned());
    let made = ibfabric(&["gen", "fat-tree", "4", "2", "-o", &net]).status();
    assert!(made.expect("the program can be started").success());
    std::fs::write(&script, "at 0s Misroute \"leaf-0\" 3 4\n").expect("the file can be written");
    [net, script]
}

#[test]
fn self_test_finds_misrouted_packets() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let [net, script] = wrong(directory.path());
    let words = [&net, "--size", "1M", "--script", &script];
    let output = self_test(&name("wrong"), directory.path(), &words)
        .output()
        .expect("the program can be started");
    let message = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("FAILED paths") && message.contains("ok     device"), "{message}");
}

#[test]
fn closed_output_does_not_change_the_verdict() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let [net, script] = wrong(directory.path());
    let words = [&net, "--size", "64M", "--script", &script];
    let mut command = self_test(&name("unread"), directory.path(), &words);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program can be started");
    let mut first = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("standard output is piped"));
    lines.read_line(&mut first).expect("standard output can be read");
    assert!(first.starts_with("ok     subnet"), "{first}");
    // The directory contains the net file, the script and perhaps the NBD socket. All other files of `up` have no name,
    // so that no other process can replace them.
    assert_eq!(entries(directory.path()), 2 + usize::from(has_socket(directory.path())));
    drop(lines);
    assert_eq!(Running(child).0.wait().expect("the process can be awaited").code(), Some(1));
}

/// Returns whether the NBD socket exists.
fn has_socket(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).expect("the directory can be read");
    entries.flatten().any(|entry| entry.path().extension().is_some_and(|kind| kind == "nbd"))
}

#[test]
fn capture_rejects_input_files_and_blocking_pipes() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let [net, script] = wrong(directory.path());
    let pipe = directory.path().join("pipe").to_str().expect("the path is UTF-8").to_owned();
    assert!(
        Command::new("mkfifo").arg(&pipe).status().expect("the program can be started").success()
    );
    let before = std::fs::read(&net).expect("the file can be read");
    let cases: [(&str, &[&str], &str); 6] = [
        ("up", &[&net, "-w", &net], "the file is used twice"),
        ("selftest", &[&net, "-w", &net], "the file is used twice"),
        ("up", &[&net, "--script", &script, "--pcap", &script], "the file is used twice"),
        ("up", &["-", "--script", "-"], "standard input, is used for two files"),
        ("up", &[&net, "--pcap", &pipe], "cannot capture into"),
        ("selftest", &[&net, "--pcap", &pipe], "found a pipe or a socket, expected a file"),
    ];
    for (subcommand, words, expected) in cases {
        let mut command = stack(subcommand, &name("files"), directory.path(), words);
        let output = command.stdin(Stdio::null()).output().expect("the program can be started");
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {why}");
        assert!(why.contains(expected) && why.lines().count() == 1, "{words:?}: {why}");
    }
    assert_eq!(std::fs::read(&net).expect("the file can be read"), before);
}

#[test]
fn clients_attach_and_exit_removes_all_files() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let name = name("stay");
    let (running, message) = ready(up(&name, directory.path(), &["--size", "8M"]));
    assert!(message.iter().any(|line| line.contains("ACM services at 32 hosts")), "{message:?}");
    // A second `up` with the same `--socket` fails.
    let second = up(&name, directory.path(), &[]).output().expect("the program can be started");
    let why = text(&second.stderr);
    assert!(second.status.code() == Some(2) && why.contains("--name"), "{why}");
    // The tracer can use the simulator of a running `up`. Another process can attach an HCA to the port of an embedded
    // host. This HCA then replaces the host's HCA.
    let traced = ibfabric(&["tracer", &format!("--attach={name}"), "--all-pairs"]).output();
    let traced = traced.expect("the program can be started");
    assert!(traced.status.success(), "{}", text(&traced.stdout));
    let place = ["--attach", &name, "--node", "H-0002c90000100010"];
    let info = ibfabric(&[&["rdma", "devinfo"], &place[..]].concat())
        .output()
        .expect("the program can be started");
    assert!(info.status.success(), "{}", text(&info.stderr));
    // Other processes cannot attach to the ports that the paths of disk0 use.
    let place = ["--attach", &name, "--node", "H-0002c90000100000"];
    let info = ibfabric(&[&["rdma", "devinfo"], &place[..]].concat())
        .output()
        .expect("the program can be started");
    let why = text(&info.stderr);
    assert!(!info.status.success() && why.contains("disk0"), "{why}");
    assert_eq!(entries(directory.path()), 1, "only the NBD socket exists");
    assert_eq!(interrupt(running), Some(0));
    assert_eq!(entries(directory.path()), 0, "no file remains");
}

#[test]
fn unusable_options_fail_with_one_line() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let empty = directory.path().join("empty.net");
    std::fs::write(&empty, "").expect("the file can be written");
    let taken = directory.path().join("taken");
    std::fs::write(&taken, "somebody's").expect("the file can be written");
    let words_of = |path: &Path| path.to_str().expect("the path is UTF-8").to_owned();
    for (words, why) in [
        (vec![words_of(&empty)], "empty.net"),
        (vec!["/none.net".to_owned()], "/none.net"),
        (vec!["--size".to_owned(), "100".to_owned()], "512"),
        (vec!["--nbd".to_owned(), words_of(&taken)], "--nbd"),
        (vec!["--nbd".to_owned(), "/none/at/all".to_owned()], "/none/at/all"),
        (vec!["--pcap".to_owned(), "/none/at/all".to_owned()], "/none/at/all"),
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = up(&name("bad"), directory.path(), &words)
            .output()
            .expect("the program can be started");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {message}");
        assert!(message.contains(why) && message.lines().count() == 1, "{words:?}: {message}");
    }
    assert_eq!(std::fs::read_to_string(&taken).expect("the file can be read"), "somebody's");
}

/// If the fabric consists of two halves without a link between them, the self-test fails.
#[test]
fn self_test_finds_cut_off_nodes() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let net = directory.path().join("cut.net");
    let half = |switch: &str, one: &str, two: &str| {
        format!(
            "Switch 4 \"{switch}\"\n[1] \"{one}\"[1]\n[2] \"{two}\"[1]\n\n\
             Hca 1 \"{one}\"\n[1] \"{switch}\"[1]\n\nHca 1 \"{two}\"\n[1] \"{switch}\"[2]\n\n"
        )
    };
    let fabric = half("s", "a", "b") + &half("t", "c", "d");
    std::fs::write(&net, fabric).expect("the file can be written");
    let words = [net.to_str().expect("the path is UTF-8"), "--size", "1M"];
    let output = self_test(&name("cut"), directory.path(), &words)
        .output()
        .expect("the program can be started");
    let message = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{message}{}", text(&output.stderr));
    assert!(message.contains("FAILED routes") && message.contains("3 nodes cut off"), "{message}");
    assert!(message.contains("FAILED subnet") && message.contains("3 without a LID"), "{message}");
}

/// Returns whether a process ignores SIGINT.
fn ignores_interrupts(process: u32) -> bool {
    let status =
        std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process exists");
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .expect("the status has SigIgn");
    u64::from_str_radix(mask.trim(), 16).expect("the mask is hexadecimal") >> 1 & 1 == 1
}

/// After SIGINT at any time, at most one error line is printed, no temporary file remains, and the capture file is
/// complete.
#[test]
fn ctrl_c_exits_cleanly_at_any_time() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let packets = directory.path().join("packets.pcapng");
    for (number, after) in [0, 20, 50, 100, 200, 400, 1000, 2500].into_iter().enumerate() {
        for (subcommand, words) in [("selftest", &[][..]), ("up", &["--size", "8M", "--no-http"])] {
            let write = ["--pcap", packets.to_str().expect("the path is UTF-8")];
            // Shells start background processes with SIGINT ignored, so `env` restores the default action of SIGINT.
            let name = name(&format!("end{number}"));
            let up = stack(subcommand, &name, directory.path(), words);
            let mut command = Command::new("env");
            command
                .arg("--default-signal=INT")
                .arg(up.get_program())
                .args(up.get_args())
                .args(write);
            command.envs(up.get_envs().filter_map(|(key, value)| Some((key, value?))));
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let child = command.spawn().expect("the program can be started");
            while ignores_interrupts(child.id()) {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(after));
            let process = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(process, rustix::process::Signal::INT)
                .expect("the process exists");
            let output = child.wait_with_output().expect("the process can be awaited");
            let out = text(&output.stdout);
            // Besides the error line, `up` prints the number of captured packets on standard error.
            let is_count = |line: &&str| line.contains(" packets captured, ");
            let message = text(&output.stderr);
            let message: Vec<&str> = message.lines().filter(|line| !is_count(line)).collect();
            let message = message.join("\n");
            let case = format!("{subcommand} after {after} ms: {:?} {out}{message}", output.status);
            // Before the signal handler is installed, the signal kills the process, which has no files yet.
            let expected: &[_] = match subcommand {
                "selftest" if message.is_empty() => &[None],
                "selftest" => &[Some(130)],
                _ if message.is_empty() => &[None, Some(0)],
                _ => &[Some(130)],
            };
            assert!(expected.contains(&output.status.code()), "{case}");
            assert!(message.lines().count() <= 1, "{case}");
            let reasons = ["the self-test was interrupted", "before it was READY"];
            assert!(message.is_empty() || reasons.iter().any(|it| message.contains(it)), "{case}");
            if output.status.code().is_some() && packets.metadata().is_ok_and(|it| it.len() > 0) {
                let read = ["capture", "read", write[1], "--count", "1"];
                let read = ibfabric(&read).output().expect("the program can be started");
                assert!(read.status.success(), "{case}{}", text(&read.stderr));
            }
            std::fs::remove_file(&packets).ok();
            assert_eq!(entries(directory.path()), 0, "{case}");
        }
    }
}
