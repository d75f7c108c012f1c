//! Runs the program, and checks its standard output, standard error and exit status.

mod global;
#[path = "../program/mod.rs"]
mod program;
mod route;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn ibfabric(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ibfabric")).args(words).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

/// A temporary directory for generated fabrics and other files of a test.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory can be created"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).expect("the file can be written");
        path
    }

    fn fabric(&self, words: &[&str]) -> String {
        let path = self.path("net");
        let output = ibfabric(&[&["gen"], words, &["-o", &path]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        path
    }
}

/// Runs `route`; returns the exit status and the JSON output.
fn route(words: &[&str]) -> (Option<i32>, Value) {
    let output = ibfabric(&[&["route"], words, &["--json"]].concat());
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no JSON: {}", text(&output.stderr)));
    (output.status.code(), report)
}

#[test]
fn dumps_pass_check_and_damaged_dumps_fail() {
    let directory = Directory::new();
    let net = directory.fabric(&["torus", "5x5", "hosts=2"]);
    let dumps = directory.path("dumps");
    let (status, report) = route(&[&net, "--engine", "lash", "--dump-dir", &dumps]);
    assert_eq!((status, &report["engine"]), (Some(0), &"lash".into()));
    let lfts = Path::new(&dumps).join("opensm-lfts.dump").display().to_string();
    let levels = Path::new(&dumps).join("ibfabric-levels.dump").display().to_string();
    let check = |words: &[&str]| ibfabric(&[&["check", &net, "--lfts"], words].concat());
    let output = check(&[&lfts, "--sl-file", &levels]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    // Without --sl-file, all packets use one service level, and the same tables can cause a deadlock.
    assert_eq!(check(&[&lfts]).status.code(), Some(1));
    // In the damaged file, the entry for LID 1 of one switch names port 200, which the switch does not have.
    let good = fs::read_to_string(&lfts).expect("the file can be read");
    let at = good.find("\n0x0001 ").expect("an LFT has an entry for LID 1") + 1;
    let damaged = format!("{}0x0001 200{}", &good[..at], &good[at + 10..]);
    let damaged = directory.file("damaged", damaged);
    let output = check(&[&damaged, "--sl-file", &levels]);
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stdout);
    assert!(printed.contains("pairs of a switch and a LID that are broken"), "{printed}");
    // A file that is truncated within a line is malformed. If it is truncated at the end of a line, it lacks entries.
    let cut = good[..good.len() * 3 / 4].rfind('\n').expect("the file has lines") + 1;
    let broken = directory.file("broken", &good[..cut + 4]);
    assert_eq!(check(&[&broken, "--sl-file", &levels]).status.code(), Some(2));
    let cut = directory.file("cut", &good[..cut]);
    let output = check(&[&cut, "--sl-file", &levels, "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
    let shown = text(&output.stderr);
    assert!(shown.contains(": the table of switch ") && shown.contains("cut: line "), "{shown}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("the text is JSON");
    assert_eq!(report["unreachable"], 0);
    assert!(report["not_judged"].as_u64().is_some_and(|pairs| pairs > 0), "{report}");
    assert!(report["examples"]["not_judged"][0].is_string());
}

#[test]
fn both_formats_of_gen_describe_the_same_fabric() {
    let directory = Directory::new();
    for kind in [&["torus", "3x3", "hosts=2"][..], &["dragonfly", "a=4", "p=2", "h=2"]] {
        let (ibsim, other) = (directory.path("ibsim"), directory.path("ibnetdiscover"));
        ibfabric(&[&["gen"], kind, &["-o", &ibsim]].concat());
        ibfabric(&[&["gen"], kind, &["-o", &other, "--format", "ibnetdiscover"]].concat());
        let (a, b) = (route(&[&ibsim]).1, route(&[&other]).1);
        for key in ["switches", "hosts", "lids", "links", "link_load", "credit_loops"] {
            assert_eq!(a[key], b[key], "{key}");
        }
    }
    let printed = ibfabric(&["gen", "hypercube", "3", "--speed", "XDR", "--width", "2x"]);
    assert!(text(&printed.stdout).contains("2xXDR"), "{}", text(&printed.stdout));
}

#[test]
fn closed_pipe_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ibfabric"))
        .args(["gen", "torus", "16x16x4", "hosts=4"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the process can be awaited");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn example_fabrics_equal_output_of_gen() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let readme = fs::read_to_string(examples.join("README.md")).expect("the file can be read");
    let mut checked = 0;
    for line in readme.lines().filter_map(|line| line.strip_prefix("ibfabric gen ")) {
        let (words, file) = line.split_once(" -o ").expect("the command names its output file");
        let words: Vec<&str> = words.split(' ').collect();
        let made = ibfabric(&[&["gen"], &words[..]].concat());
        let committed = fs::read(examples.join(file)).expect("the file can be read");
        assert!(
            made.stdout == committed,
            "{file} differs from the output of `ibfabric gen {}`",
            words.join(" ")
        );
        checked += 1;
    }
    assert!(checked >= 3);
}

#[test]
fn dash_names_standard_streams() {
    let directory = Directory::new();
    let net = directory.fabric(&["mesh", "3x3"]);
    let output = ibfabric(&["gen", "mesh", "3x3", "-o", "-"]);
    assert_eq!(output.stdout, fs::read(&net).expect("the file can be read"));
    let output = ibfabric(&["check", "-", "--lfts", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("is used for two files"));
}

#[test]
fn strict_requires_every_switch_to_reach_every_lid() {
    let directory = Directory::new();
    let net = directory.fabric(&["xgft", "4,4", "1,4"]);
    let dumps = directory.path("dumps");
    assert_eq!(route(&[&net, "--dump-dir", &dumps]).0, Some(0));
    let whole =
        fs::read_to_string(format!("{dumps}/opensm-lfts.dump")).expect("the file can be read");
    // The last switch in the file is a spine. Removes its entries for the LIDs of other spines.
    let spines = whole.rfind("Unicast lids").expect("the file has tables");
    let (head, block) = whole.split_at(spines);
    let own = block
        .split("switch Lid ")
        .nth(1)
        .expect("the table names the LID of its switch")
        .split(' ')
        .next()
        .expect("`split` returns at least one part");
    let own = format!("0x{:04x} ", own.parse::<u16>().expect("the text is a number"));
    let keep = |line: &&str| !line.contains("'spine") || line.starts_with(&own);
    let block: Vec<&str> =
        block.lines().filter(|line| !line.starts_with("0x") || keep(line)).collect();
    let file = directory.file("lfts", format!("{head}{}\n", block.join("\n")));
    let status = |words: &[&str]| {
        let output = ibfabric(&[&["check", &net, "--lfts", &file], words].concat());
        (output.status.code(), text(&output.stdout))
    };
    let (code, printed) = status(&[]);
    assert!(code == Some(0) && printed.contains("all hosts from everywhere"), "{printed}");
    let (code, printed) = status(&["--strict"]);
    assert!(code == Some(1) && printed.contains("has no entry"), "{printed}");
}

#[test]
fn check_uses_lids_of_the_fabric_file() {
    let directory = Directory::new();
    let net = directory.fabric(&["xgft", "2,2", "1,2"]);
    let dumps = directory.path("dumps");
    assert_eq!(route(&[&net, "--dump-dir", &dumps]).0, Some(0));
    let lfts =
        fs::read_to_string(format!("{dumps}/opensm-lfts.dump")).expect("the file can be read");
    let list = format!("{dumps}/opensm-subnet.lst");
    let check = |fabric: &str, tables: &str| {
        let file = directory.file("tables", tables);
        let output = ibfabric(&["check", fabric, "--lfts", &file]);
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(check(&list, &lfts).0, Some(0));
    // In the tables, LID 3 is replaced by LID 0x33. The subnet list contains LIDs, so `check` reports a problem. The
    // net file contains no LIDs, so `check` assumes that the tables belong to another assignment of LIDs.
    let moved = lfts.replace("\n0x0003 ", "\n0x0033 ");
    assert_eq!(check(&list, &moved).0, Some(1));
    let (code, errors) = check(&net, &moved);
    assert!(code == Some(0) && errors.contains("another LID in this subnet: 4"), "{errors}");
    let twice = lfts.replacen("\n0x0003 ", "\n0x0004 ", 1);
    let (code, errors) = check(&net, &twice);
    assert!(code == Some(0) && errors.contains("line 5: LID 0x0004 is port GUID "), "{errors}");
    assert_eq!(check(&net, "").0, Some(2), "an empty file is not rejected");
}

#[test]
fn unwritable_help_has_status_2() {
    for words in [&["--help"][..], &["--version"], &["rdma", "bw", "--help"], &["help"]] {
        let full =
            fs::File::options().write(true).open("/dev/full").expect("the file can be opened");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ibfabric"));
        let output = command.args(words).stdout(full).output().expect("the program can be started");
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {shown}");
        assert!(shown.contains("No space left"), "{words:?}: {shown}");
        let whole = ibfabric(words);
        assert_eq!(whole.status.code(), Some(0), "{words:?}");
        assert!(!whole.stdout.is_empty());
    }
}

#[test]
fn interrupt_before_ready_fails() {
    let directory = Directory::new();
    let net = directory.fabric(&["xgft", "32,32", "1,32"]);
    let name = format!("cli-test-{}", std::process::id());
    let nbd = directory.path("nbd");
    for words in [
        &["sim", &net, "--sm", "--name", &name][..],
        &["up", &net, "--no-http", "--name", &name, "--nbd", &nbd],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ibfabric"));
        let piped = command.args(words).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = piped.spawn().expect("the program can be started");
        std::thread::sleep(std::time::Duration::from_millis(150));
        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, rustix::process::Signal::INT)
            .expect("the process exists");
        let output = child.wait_with_output().expect("the process can be awaited");
        // The exit status is 0 if and only if the program printed READY before it received the signal.
        let was_ready = text(&output.stdout).contains("READY");
        assert_eq!(output.status.code() == Some(0), was_ready, "{words:?}");
    }
}

#[test]
fn absurd_numbers_and_endless_files_are_refused() {
    let directory = Directory::new();
    let net = directory.fabric(&["xgft", "2,2", "1,2"]);
    let cases: [(&[&str], &str); 4] = [
        (
            &["rtrs", "serve", "--export", "a=mem:1M", "--busy-poll-us", "99999999999"],
            "--busy-poll-us",
        ),
        (&["rdma", "serve", "--busy-poll-us", "60000000"], "--busy-poll-us"),
        (&["sim", &net, "--random-faults", "18446744073709551615"], "--random-faults"),
        (
            &[
                "rtrs",
                "serve",
                "--listen",
                "127.0.0.1",
                "--export",
                "a=mem:1M",
                "--key-file",
                "/dev/zero",
            ],
            "/dev/zero",
        ),
    ];
    for (words, subject) in cases {
        let output = ibfabric(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains(subject), "{words:?}: {}", text(&output.stderr));
    }
}
