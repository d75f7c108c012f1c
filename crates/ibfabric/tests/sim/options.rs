//! Checks options and input files of the simulator, and their errors.

use std::fs;
use std::process::{Command, Stdio};

use crate::lab::{PROGRAM, Simulator};

#[test]
fn unusable_input_is_rejected_with_line() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let net = place.path().join("net");
    let words = ["gen", "mesh", "2x2", "-o", net.to_str().expect("the path is UTF-8")];
    assert!(
        Command::new(PROGRAM).args(words).status().expect("the program can be started").success()
    );
    let cases = [
        (
            "script",
            "at 1ms unlink sw-x0y0[1]\nat 2 relink x\n",
            "bad:2:4: found \"2\", expected a time",
        ),
        (
            "script",
            "# nobody\nat 1ms unlink nobody\n",
            "bad:2: there is no node \"nobody\": expected the name",
        ),
        (
            "script",
            "at 1ms ignorelft sw-x0y0 9999\n",
            "bad:1: found block 9999, expected blocks of 64 LIDs, 0 to 767",
        ),
        ("script", "at 1ms fault sw-x0y0[1] loss=2\n", "bad:1:25:"),
        ("addresses", "0x1 10.0.0.1\n", "bad:1:1: found \"0x1\", expected the GUID"),
        ("replay", "hello\n", "bad:1: found \"hello\", expected \"ibfabric record 4\""),
        ("replay", "ibfabric record 4\nwith fabric 0\n", "bad:2: found \"with fabric 0\""),
        ("replay", "ibfabric record 4\n", "bad:2: found \"\", expected \"with fabric"),
        ("record", "", "--record bad: the file is used twice"),
    ];
    for (option, content, expected) in cases {
        fs::write(place.path().join("bad"), content).expect("the file can be written");
        // `--record` must not name the fabric file, because the simulator reads that file.
        let fabric = if option == "record" { "bad" } else { "net" };
        let output = Command::new(PROGRAM)
            .args(["sim", fabric, &format!("--{option}"), "bad"])
            .env("IBSIM_SOCKNAME", "never-opened")
            .current_dir(place.path())
            .output()
            .expect("the program can be started");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{content:?}: {printed}");
        assert!(printed.contains(expected), "{content:?}: {printed}");
    }
}

#[test]
fn conflicting_options_are_rejected() {
    for (words, expected) in [
        (&["--port", "0"][..], "expected 1 to 65335: clients use up to 200 ports after it"),
        (&["--port", "65336"], "expected 1 to 65335: clients use up to 200 ports after it"),
        (&["--log-level", "hops"], "the following required arguments were not provided:"),
        (&["--random-time", "1s"], "the following required arguments were not provided:"),
        (&["--name", "a", "--port", "7"], "'--name' cannot be used with '--port'"),
        (&["--name", "a", "--replay", "b"], "'--name' cannot be used with '--replay'"),
        (&["--port", "7", "--replay", "b"], "'--port <N>' cannot be used with '--replay <FILE>'"),
        (&["--addresses", "a", "--replay", "b"], "cannot be used with '--replay <FILE>'"),
        (&["--record", "a", "--replay", "b"], "cannot be used with '--replay <FILE>'"),
        (&["--name", ""], "found 0 bytes, expected a name of 1 to 80"),
        (&["--record", "-"], "--record -: expected a file"),
        (&["--script", "-"], "is used for two files"),
    ] {
        let output = Command::new(PROGRAM)
            .args(["sim", "-"])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .expect("the program can be started");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {printed}");
        assert!(printed.contains(expected), "{words:?}: {printed}");
    }
}

#[test]
fn socket_name_in_environment_is_no_conflict() {
    for words in [&["--replay", "nowhere"][..], &["--port", "65335", "--script", "nowhere"]] {
        let output = Command::new(PROGRAM)
            .args(["sim", "nowhere"])
            .args(words)
            .env("IBSIM_SOCKNAME", "lab")
            .output()
            .expect("the program can be started");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(printed.contains("nowhere: No such file"), "{words:?}: {printed}");
    }
}

#[test]
fn json_option_may_follow_command() {
    let simulator = Simulator::start(&[]);
    let format = ["--json"];
    let (stats, dump) = (["stats"], ["dump", "sw-x0y0[1]"]);
    for words in [
        [&stats[..], &format].concat(),
        [&format[..], &stats].concat(),
        [&dump[..], &format].concat(),
        ["dump", "--json", "sw-x0y0[1]"].to_vec(),
        [&format[..], &["--"], &dump].concat(),
    ] {
        let output = simulator.ctl(&words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        let answer: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("the text is JSON");
        assert_eq!(answer["ok"], true, "{words:?}");
    }
    let hyphen = simulator.ctl(&["--", "unlink", "-"]);
    let printed = String::from_utf8_lossy(&hyphen.stderr);
    assert!(printed.contains("there is no node \"-\""), "{printed}");
}
