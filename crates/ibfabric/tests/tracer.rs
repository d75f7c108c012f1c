//! Runs `ibfabric tracer --sim`, which simulates the fabric in its own process.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ibfabric"))
        .args(words)
        .output()
        .expect("the program can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A temporary directory that contains the net file of a two-level fat tree.
struct Directory(TempDir);

impl Directory {
    fn new() -> Self {
        let this = Self(tempfile::tempdir().expect("a temporary directory can be created"));
        let output = run(&["gen", "xgft", "4,4", "1,4", "-o", &this.path("net")]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        this
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn file(&self, name: &str, content: &str) -> String {
        fs::write(self.path(name), content).expect("the file can be written");
        self.path(name)
    }

    /// Runs the tracer on the tree; returns exit status, standard output and standard error.
    fn trace(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let net = self.path("net");
        let output = run(&[&["tracer", "--sim", &net][..], words].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn json(&self, words: &[&str]) -> (Option<i32>, Value) {
        let (code, out, errors) = self.trace(&[words, &["--json"]].concat());
        (code, serde_json::from_str(&out).unwrap_or_else(|_| panic!("no JSON: {out} {errors}")))
    }
}

/// Returns the LID of the last host, which is the highest host LID.
fn last_lid(directory: &Directory) -> String {
    let (code, found) = directory.json(&["--all-pairs", "-v"]);
    assert_eq!(code, Some(0));
    let lids = found["traces"]
        .as_array()
        .expect("the value is a list")
        .iter()
        .filter_map(|it| it["lid"].as_u64());
    lids.max().expect("at least one trace has a LID").to_string()
}

#[test]
fn exactly_one_destination_is_required() {
    let directory = Directory::new();
    for (words, expected) in [
        (&[][..], "required"),
        (&["-l", "5", "-g", "fe80::1"], "cannot be used with"),
        (&["-l", "0"], "1 to 49151"),
        (&["-l", "0xc000"], "1 to 49151"),
        (&["-l", "x"], "1 to 49151"),
        (&["-g", "x"], "invalid value"),
        (&["-l", "5", "-t", "0"], "not in 1..=600000"),
        (&["-l", "5", "--sl", "16"], "0 to 15"),
        (&["-l", "5", "--from", "nobody"], "expected a LID"),
        (&["--mlid", "5"], "49152 to 65534"),
    ] {
        let (code, out, errors) = directory.trace(words);
        assert_eq!((code, &*out), (Some(2), ""), "{words:?}: {errors}");
        assert!(errors.contains(expected), "{words:?}: {errors}");
    }
}

#[test]
fn path_is_printed_by_hop_and_validated() {
    let directory = Directory::new();
    let lid = last_lid(&directory);
    let (code, out, _) = directory.trace(&["-l", &lid]);
    assert!(out.starts_with(&format!("LID {lid}: path validated")), "{out}");
    assert!(code == Some(0) && out.ends_with("4 hops\n"), "{out}");
    let (code, out, _) = directory.trace(&["-l", &lid, "-v", "--ports", "both"]);
    // The output has the source, two lines for each of four hops (the hop and its evidence), the result, and the
    // MAD counts.
    assert_eq!((code, out.lines().count()), (Some(0), 11), "{out}");
    assert!(out.starts_with("from ca ") && out.contains("  1  [1] -> [1] switch "), "{out}");
    let (code, found) = directory.json(&["-l", &lid, "--reverse"]);
    assert_eq!((code, &found["pairs"], &found["good"]), (Some(0), &2.into(), &2.into()));
    let hop = &found["traces"][0]["hops"][3];
    assert_eq!((&hop["kind"], &hop["verdict"]), (&"ca".into(), &"validated".into()));
    let (code, out, _) = directory.trace(&["-l", &lid, "--format", "ibtracert"]);
    assert_eq!(code, Some(0));
    assert!(out.lines().last().is_some_and(|line| line.starts_with("To ca {0x")), "{out}");
}

#[test]
fn ineffective_options_are_rejected() {
    let directory = Directory::new();
    for format in [&["--json"][..], &["--format", "ibtracert"]] {
        let (code, _, errors) =
            directory.trace(&[&["-l", "5", "--ports", "both"], format].concat());
        assert_eq!(code, Some(2));
        assert!(errors.contains("--ports both is for text"), "{errors}");
    }
    let (code, out, _) = directory.trace(&["--mlid", "0xc777"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("no port is reached: the group does not exist"), "{out}");
}

#[test]
fn unreachable_destination_is_reported_with_hop() {
    let directory = Directory::new();
    let (code, out, _) = directory.trace(&["-l", "999"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("has no entry for LID 999"), "{out}");
    let (code, _, errors) = directory.trace(&["--mgid", "ff12:401b:ffff::77"]);
    assert_eq!(code, Some(2), "{errors}");
    let pairs = directory.file("pairs", "1 2\n# nothing\n3 x\n");
    let (code, _, errors) = directory.trace(&["--pairs", &pairs]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("pairs:3: 'x': expected a LID"), "{errors}");
    let pairs = directory.file("pairs", "1 2 3\n");
    let (_, _, errors) = directory.trace(&["--pairs", &pairs]);
    assert!(errors.contains("pairs:1: found 3 words, expected the two ends"), "{errors}");
}

#[test]
fn misrouting_switch_is_named_with_both_ports() {
    let directory = Directory::new();
    let lid = last_lid(&directory);
    let (_, found) = directory.json(&["-l", &lid]);
    let hops = &found["traces"][0]["hops"];
    let (switch, out) = (&hops[0], hops[1]["out"].as_u64().expect("the value is a number"));
    let (name, next) = (switch["name"].as_str().expect("the value is a string"), &hops[1]);
    let other = if out == 8 { 7 } else { out + 1 };
    let lie = directory.file("lie", &format!("# a lie\nMisroute \"{name}\" {out} {other}\n"));
    let (code, found) = directory.json(&["-l", &lid, "--commands", &lie, "-t", "20"]);
    assert_eq!(code, Some(1));
    let printed = found["traces"][0]["result"].as_str().expect("the value is a string").to_owned();
    let next = next["guid"].as_str().expect("the value is a string");
    assert!(printed.contains(&format!("hop 2, switch {next}")), "{printed}");
    assert!(printed.contains(&format!("behind port {out} of switch")), "{printed}");
    let both = format!(
        "the preceding switch sends packets out of port {other}, expected out of port {out}"
    );
    assert!(printed.contains(&both), "{printed}");
    let hop = &found["traces"][0]["hops"][1];
    assert_eq!((&hop["left_by"], &hop["out"]), (&other.into(), &out.into()), "{hop}");
    let expected = json!([{"guid": switch["guid"], "name": name, "port": out, "paths": 1}]);
    assert_eq!(found["bad_ports"], expected);
    let bad = directory.file("bad", "Misroute nobody 1 2\n");
    let (code, _, errors) = directory.trace(&["-l", &lid, "--commands", &bad]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("bad:1:"), "{errors}");
}

#[test]
fn path_without_probes_is_not_proven() {
    let directory = Directory::new();
    let lid = last_lid(&directory);
    let (code, out, _) = directory.trace(&["-l", &lid, "--no-agents"]);
    assert_eq!(code, Some(3), "{out}");
    let (code, found) = directory.json(&["-l", &lid, "--no-agents"]);
    assert_eq!((code, &found["traces"][0]["judgement"]), (Some(3), &"not_proven".into()));
    assert_eq!((&found["good"], &found["not_proven"]), (&0.into(), &1.into()));
}

#[test]
fn bad_path_prints_its_evidence_in_one_line() {
    let directory = Directory::new();
    let lid = last_lid(&directory);
    let (_, found) = directory.json(&["-l", &lid]);
    let hops = &found["traces"][0]["hops"];
    let (name, out) =
        (hops[0]["name"].as_str().expect("the value is a string"), hops[1]["out"].as_u64());
    let out = out.expect("the value is a number");
    let lie = directory.file("lie", &format!("Misroute \"{name}\" {out} {}\n", out % 8 + 1));
    let (code, printed, _) = directory.trace(&["-l", &lid, "--commands", &lie, "-t", "20"]);
    assert_eq!(code, Some(1), "{printed}");
    let evidence: Vec<&str> = printed.lines().filter(|line| line.contains("evidence: ")).collect();
    assert_eq!(evidence.len(), 1, "{printed}");
    assert!(evidence[0].contains("combined-route probes through"), "{printed}");
}

#[test]
fn error_probability_is_between_0_and_1() {
    let directory = Directory::new();
    for wrong in ["0", "1", "-1", "x", "nan"] {
        let option = format!("--error-probability={wrong}");
        let (code, _, errors) = directory.trace(&["-l", "5", &option]);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains("above 0 and below 1"), "{errors}");
    }
}
