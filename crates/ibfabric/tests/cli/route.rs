//! Checks engines, options, input and output of `route`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::{Directory, ibfabric, route, text};

#[test]
fn route_json_has_documented_keys() {
    let directory = Directory::new();
    let net = directory.fabric(&["xgft", "4,4", "1,4"]);
    let (status, report) = route(&[&net, "--metrics"]);
    assert_eq!(status, Some(0));
    let keys = [
        "engine",
        "requested",
        "fallback",
        "switches",
        "hosts",
        "lids",
        "links",
        "max_hops",
        "unreachable",
        "credit_loops",
        "layers",
        "link_load",
        "effective_bisection",
        "shift_contention",
        "ms",
        "peak_rss_mb",
    ];
    for key in keys {
        assert!(!report[key].is_null(), "{key} is missing: {report}");
    }
    for key in ["load", "route", "check", "dump"] {
        assert!(report["ms"][key].is_number(), "ms.{key} is missing: {report}");
    }
    for key in ["max", "mean", "cv"] {
        assert!(report["link_load"][key].is_number(), "link_load.{key} is missing: {report}");
    }
    assert_eq!(report["switches"], 8);
    assert_eq!(report["hosts"], 16);
    assert_eq!(report["lids"], 24);
    assert_eq!(report["links"], 32);
    assert_eq!(report["max_hops"], 2);
    let (_, report) = route(&[&net]);
    assert!(report["effective_bisection"].is_null());
}

#[test]
fn credit_loop_is_printed_with_status_1() {
    let directory = Directory::new();
    let net = directory.fabric(&["torus", "4x4"]);
    let output = ibfabric(&["route", &net]);
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stdout);
    assert!(printed.contains("credit loop 1 of"), "{printed}");
    assert!(printed.contains("('sw-x0y0') port"), "{printed}");
    for engine in ["updn", "lash"] {
        let roots = directory.file("roots", "0x0002c90000200000\n");
        let (status, report) = route(&[&net, "--engine", engine, "--root-guids", &roots]);
        assert_eq!((status, &report["engine"]), (Some(0), &engine.into()), "{report}");
    }
    let mesh = directory.fabric(&["mesh", "4x4"]);
    assert_eq!(route(&[&mesh, "--engine", "dor"]).0, Some(0));
}

#[test]
fn failed_engines_are_named_and_next_is_used() {
    let directory = Directory::new();
    let net = directory.fabric(&["torus", "4x4"]);
    let output = ibfabric(&["route", &net, "--engine", "ftree,updn", "--json"]);
    let errors = text(&output.stderr);
    assert!(errors.contains("ftree cannot route this subnet"), "{errors}");
    assert!(errors.contains("updn cannot route this subnet"), "{errors}");
    assert!(errors.contains("routed with minhop instead"), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("the text is JSON");
    assert_eq!(report["fallback"], true);
    assert_eq!(report["engine"], "minhop");
    assert_eq!(report["requested"], "ftree,updn");
    let output = ibfabric(&["route", &net, "--engine", "ftree,no_fallback"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no routing engine"), "{}", text(&output.stderr));
    for engine in ["ftree", "lash"] {
        let tree = directory.fabric(&["xgft", "4,4", "1,4"]);
        let (_, report) = route(&[&tree, "--engine", engine, "--lmc", "1"]);
        assert_eq!(report["engine"], "minhop", "{engine} has routed a subnet with an LMC");
    }
}

#[test]
fn unusable_input_has_status_2_and_names_line() {
    let directory = Directory::new();
    let cases: [(&str, &[u8], &str); 6] = [
        ("truncated", b"switchguid=0x1\nSwitch 4 \"a\"\n[1] \"b", "truncated:3:"),
        ("missing", b"switchguid=0x1\nSwitch 4 \"a\"\n[1] \"b\"[1]\n\n", "missing:3:"),
        ("latin1", b"Switch 4 \"\xe9\"\n", "latin1:1:11: found byte 0xe9, expected UTF-8 text"),
        ("ports", b"Switch 300 \"a\"\n", "ports:1:8: found `300`"),
        ("empty", b"", "empty:1:1: found no node in the file"),
        ("twice", b"Switch 4 \"a\"\n\nSwitch 4 \"a\"\n\n", "twice:3:"),
    ];
    for (name, content, expected) in cases {
        let file = directory.file(name, content);
        let output = ibfabric(&["route", &file]);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {errors}");
        assert!(errors.contains(expected), "{name}: {errors}");
        assert!(output.stdout.is_empty(), "{name}");
    }
    let output = ibfabric(&["route", &directory.path("nowhere")]);
    assert_eq!(output.status.code(), Some(2));
    let output = ibfabric(&["gen", "torus", "4xq"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("4xq"), "{}", text(&output.stderr));
    let net = directory.fabric(&["torus", "4x4"]);
    let output = ibfabric(&["route", &net, "--sm-port", "0x77"]);
    assert_eq!(output.status.code(), Some(2));
    let output = ibfabric(&["route", &net, "--engine", "sssp"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn cut_off_nodes_of_split_fabric_are_named() {
    let directory = Directory::new();
    let net = directory.file(
        "split",
        "switchguid=0x10\nSwitch 4 \"s1\"\n[1] \"h1\"[1]\n\n\
         switchguid=0x20\nSwitch 4 \"s2\"\n[1] \"h2\"[1]\n\n\
         hcaguids=0x100\nHca 1 \"h1\"\n[1] \"s1\"[1]\n\n\
         hcaguids=0x200\nHca 1 \"h2\"\n[1] \"s2\"[1]\n",
    );
    let output = ibfabric(&["route", &net]);
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stdout);
    assert!(printed.contains("cut off from the subnet manager: 2 nodes"), "{printed}");
    assert!(printed.contains("0x0000000000000020 's2'"), "{printed}");
    assert!(printed.contains("0x0000000000000200 'h2'"), "{printed}");
    let (status, report) = route(&[&net]);
    assert_eq!((status, report["cut_off"].as_array().map(Vec::len)), (Some(1), Some(2)));
}

#[test]
fn file_engine_loads_dumps_of_other_engines() {
    let directory = Directory::new();
    let net = directory.fabric(&["xgft", "4,4", "1,4"]);
    let (first, second) = (directory.path("first"), directory.path("second"));
    route(&[&net, "--engine", "ftree", "--dump-dir", &first]);
    let lfts = Path::new(&first).join("opensm-lfts.dump").display().to_string();
    let matrix = Path::new(&first).join("opensm-lid-matrix.dump").display().to_string();
    let words = ["--engine", "file", "-U", &lfts, "-M", &matrix, "--dump-dir", &second];
    let (status, report) = route(&[&[&*net], &words[..]].concat());
    assert_eq!((status, &report["engine"]), (Some(0), &"file".into()));
    for name in ["opensm-lfts.dump", "opensm-lid-matrix.dump"] {
        let of = |directory: &str| {
            fs::read(Path::new(directory).join(name)).expect("the file can be read")
        };
        assert!(of(&first) == of(&second), "{name} differs");
    }
}

#[test]
fn kept_lfts_change_only_if_necessary() {
    let directory = Directory::new();
    let net = directory.fabric(&["xgft", "6,6", "1,6"]);
    let (before, kept, anew) =
        (directory.path("before"), directory.path("kept"), directory.path("anew"));
    let guids = directory.path("before/guid2lid");
    route(&[&net, "--dump-dir", &before]);
    let lfts = Path::new(&before).join("opensm-lfts.dump").display().to_string();
    let damaged = directory.path("damaged");
    ibfabric(&["gen", "xgft", "6,6", "1,6", "--drop-links", "0.06", "-o", &damaged]);
    let (status, _) =
        route(&[&damaged, "--guid2lid", &guids, "--keep-lfts", &lfts, "--dump-dir", &kept]);
    assert_eq!(status, Some(0));
    route(&[&damaged, "--guid2lid", &guids, "--dump-dir", &anew]);
    let lines = |directory: &str| -> Vec<String> {
        let text = fs::read_to_string(Path::new(directory).join("opensm-lfts.dump"));
        text.expect("the file can be read").lines().map(str::to_owned).collect()
    };
    let changed =
        |other: &str| lines(&before).iter().zip(lines(other)).filter(|(a, b)| **a != *b).count();
    assert!(changed(&kept) > 0, "no LFT entry has changed, although links were removed");
    assert!(
        changed(&kept) * 2 < changed(&anew),
        "LFT entries changed: {} with --keep-lfts, {} without",
        changed(&kept),
        changed(&anew)
    );
}

#[test]
fn invalid_guid_file_lines_are_named_and_ignored() {
    let directory = Directory::new();
    let net = directory.fabric(&["mesh", "4x4"]);
    let roots = directory.file("roots", "# roots\n0x0002c90000200000\nrubbish\n");
    let output = ibfabric(&["route", &net, "--engine", "updn", "-a", &roots, "--json"]);
    let errors = text(&output.stderr);
    assert!(errors.contains("roots:3: found `rubbish`"), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("the text is JSON");
    assert_eq!(report["engine"], "updn");
}

#[test]
fn result_is_independent_of_threads_and_runs() {
    let directory = Directory::new();
    let net = directory.fabric(&["random", "switches=40", "ports=16", "hosts=4"]);
    for engine in ["minhop", "dor", "lash", "updn"] {
        let roots = directory.file("roots", "0x0002c90000200003\n");
        let dump = |threads: &str, name: &str| {
            let directory = directory.path(&format!("{engine}-{name}"));
            let words =
                [&*net, "--engine", engine, "-a", &roots, "--threads", threads, "--dump-dir"];
            let (_, report) = route(&[&words[..], &[&directory]].concat());
            assert_eq!(report["engine"], engine);
            let mut files: Vec<PathBuf> = fs::read_dir(&directory)
                .expect("the directory can be read")
                .map(|entry| entry.expect("the directory can be read").path())
                .collect();
            files.sort();
            files
                .iter()
                .map(|path| fs::read(path).expect("the file can be read"))
                .collect::<Vec<_>>()
        };
        let one = dump("1", "one");
        assert!(one == dump("4", "four") && one == dump("1", "again"), "{engine}");
    }
}

#[test]
fn fabric_is_read_from_standard_input() {
    let directory = Directory::new();
    let net = fs::read(directory.fabric(&["xgft", "3,3", "1,3"])).expect("the file can be read");
    let mut child = Command::new(env!("CARGO_BIN_EXE_ibfabric"))
        .args(["route", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    child
        .stdin
        .take()
        .expect("standard input is piped")
        .write_all(&net)
        .expect("the program reads its input");
    let output = child.wait_with_output().expect("the process can be awaited");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn json_without_usable_engine_has_no_engine() {
    let directory = Directory::new();
    let net = directory.fabric(&["torus", "4x4"]);
    let (status, report) = route(&[&net, "--engine", "ftree,no_fallback"]);
    assert_eq!(status, Some(1));
    assert!(report["engine"].is_null() && report["requested"] == "ftree,no_fallback", "{report}");
    assert_eq!(report["refusals"][0]["engine"], "ftree");
}

#[test]
fn options_unused_by_engine_are_named() {
    let directory = Directory::new();
    let net = directory.fabric(&["xgft", "4,4", "1,4"]);
    let roots = directory.file("roots", "0x0002c90000200000\n");
    let output = ibfabric(&["route", &net, "-a", &roots, "--port-shifting"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "ibfabric: --root-guids has no effect with minhop\n");
}

#[test]
fn lines_with_unknown_guids_are_ignored_and_named() {
    let directory = Directory::new();
    let net = directory.fabric(&["xgft", "4,4", "1,4"]);
    let weights =
        directory.file("weights", "0x77 1 2\n0x0002c90000200000 9 2\n0x0002c90000200000 1\n");
    let output = ibfabric(&["route", &net, "-w", &weights]);
    let errors = text(&output.stderr);
    assert_eq!(errors.matches("the line is discarded").count(), 3, "{errors}");
    assert!(errors.contains(":1: found 0x0000000000000077, expected the GUID of a switch"));
    assert!(errors.contains("expected a port of 1 to 8 and a weight of 1 to 255"), "{errors}");
}

#[test]
fn numbers_are_parsed_like_opensm() {
    let directory = Directory::new();
    let net = directory.fabric(&["xgft", "4,4", "1,4"]);
    assert_eq!(route(&[&net, "-l", "0x1"]).1["lids"], 16 * 2 + 8);
    let output = ibfabric(&["route", &net, "-l", "9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("expected an LMC of 0 to 7"));
}

#[test]
fn vl_mapping_determines_deadlocks() {
    let directory = Directory::new();
    let net = directory.fabric(&["torus", "5"]);
    let dumps = directory.path("dumps");
    let (status, report) = route(&[&net, "--engine", "lash", "--dump-dir", &dumps]);
    assert_eq!(status, Some(0), "{report}");
    let one_lane = " 0".repeat(16);
    let tables: String = (0..5)
        .map(|switch| {
            let head =
                format!("Switch 0x{:016x}, base LID 1, \"x\"\n", 0x2_c900_0020_0000u64 + switch);
            let pairs = (0..4).flat_map(|from| (0..4).map(move |out| (from, out)));
            pairs.fold(head, |text, (from, out)| format!("{text}{from} {out} :{one_lane}\n"))
        })
        .collect();
    let file = directory.file("sl2vl", tables);
    let (status, report) = route(&[&net, "--engine", "lash", "--sl2vl", &file]);
    assert_eq!(status, Some(1), "all service levels share one VL: {report}");
    let levels = format!("{dumps}/ibfabric-levels.dump");
    let lfts = format!("{dumps}/opensm-lfts.dump");
    let words = ["check", &net, "--lfts", &lfts, "--sl-file", &levels, "--sl2vl", &file];
    assert_eq!(ibfabric(&words).status.code(), Some(1));
    // minhop assigns no service levels, so this run removes the levels file that the run with lash has written.
    route(&[&net, "--engine", "minhop", "--dump-dir", &dumps]);
    assert!(!Path::new(&levels).exists());
}

#[test]
fn packets_without_vl_are_dropped() {
    let directory = Directory::new();
    let net = directory.fabric(&["mesh", "2"]);
    let tables: String = (0..2)
        .map(|switch| {
            let guid = 0x2_c900_0020_0000u64 + switch;
            let lanes = if switch == 1 { " 15".repeat(16) } else { " 0".repeat(16) };
            let pairs = (0..4).flat_map(|from| (0..4).map(move |out| (from, out)));
            let lines: String =
                pairs.map(|(from, out)| format!("{from} {out} :{lanes}\n")).collect();
            format!("Switch 0x{guid:016x}, base LID 1, \"x\"\n{lines}")
        })
        .collect();
    let file = directory.file("sl2vl", tables);
    let (status, report) = route(&[&net, "--sl2vl", &file]);
    assert_eq!((status, &report["unreachable"]), (Some(1), &2.into()), "{report}");
    let words = report["examples"]["unreachable"][0].as_str().expect("the value is a string");
    assert!(words.contains("discards SL 0 from port"), "{words}");
}

#[test]
fn garbage_list_names_at_most_20_lines() {
    let directory = Directory::new();
    let net = directory.fabric(&["xgft", "4,4", "1,4"]);
    let garbage = directory.file("garbage", "no GUID\n".repeat(100_000));
    let output = ibfabric(&["route", &net, "-R", "updn", "-a", &garbage]);
    let shown = text(&output.stderr);
    let named = shown.lines().filter(|line| line.contains("the line is discarded")).count();
    assert_eq!(named, 20, "{shown}");
    assert!(shown.contains("99980 more lines are discarded"), "{shown}");
}

#[test]
fn messages_in_a_fabric_file_are_reported() {
    let directory = Directory::new();
    let net = directory.fabric(&["mesh", "2x2", "--format", "ibnetdiscover"]);
    let whole = ibfabric(&["route", &net]);
    assert_eq!(whole.status.code(), Some(0), "{}", text(&whole.stderr));
    let message = "ibwarn: [917] mad_rpc: _do_madrpc failed; dport (Lid 3)";
    let before = fs::read_to_string(&net).expect("the file can be read");
    let (first, rest) = before.split_at(before.find("\n[").expect("a port is listed") + 1);
    fs::write(&net, format!("{message}\n{first}{message}\n{rest}"))
        .expect("the file can be written");
    let output = ibfabric(&["route", &net]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    // The line "read in …" contains durations, which differ from run to run.
    let results = |output: &Output| {
        let lines = text(&output.stdout);
        lines.lines().filter(|line| !line.starts_with("read in")).map(str::to_owned).collect()
    };
    let [found, expected]: [Vec<String>; 2] = [&output, &whole].map(results);
    assert_eq!(found, expected);
    let second = first.lines().count() + 2;
    let warning = |line| format!("ibfabric: {net}:{line}: ignored the message `{message}`\n");
    assert_eq!(errors, warning(1) + &warning(second));
}
