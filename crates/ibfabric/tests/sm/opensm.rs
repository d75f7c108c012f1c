//! Beside the real OpenSM, on the real ibsim: the same command line leaves the same files.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use conformance::clients::server::Kind;
use conformance::opensm::{first_adapter, umad2sim};

use super::lab::PROGRAM;

/// The files whose bytes are the same.
const DUMPS: [&str; 7] = [
    "opensm-lfts.dump",
    "opensm-lid-matrix.dump",
    "opensm.fdbs",
    "opensm.mcfdbs",
    "opensm-subnet.lst",
    "opensm-updn-roots.dump",
    "opensm-ftree-ca-order.dump",
];

/// The files whose lines are the same; OpenSM writes them in the order of a hash table.
const CACHE: [&str; 3] = ["guid2lid", "guid2mkey", "neighbors"];

/// Kinds of fabric, and options for them.
const CASES: [(&str, &[&str]); 7] = [
    ("mesh 3x3 hosts=2", &["-R", "minhop"]),
    ("mesh 3x3 hosts=2", &["-Rdor", "-l1"]),
    ("mesh 3x3 hosts=2", &["--port-shifting", "--lmc=2"]),
    ("mesh 3x3 hosts=2", &["-scatter-ports", "7"]),
    ("fat-tree 8", &["-routing_engine", "ftree,minhop", "-r"]),
    ("xgft 4,4,4 1,2,2", &["-R", "ftree"]),
    ("xgft 4,4,4 1,2,2", &["-R", "updn,minhop", "-z"]),
];

/// Runs a manager to its end on a new ibsim; its files are in the directory.
fn manage(program: &Path, net: &Path, directory: &Path, options: &[&str]) {
    fs::create_dir_all(directory).expect("made");
    let name = directory.file_name().expect("a name").to_string_lossy();
    let socket = format!("ibfabric-beside-{}-{name}", std::process::id());
    let simulator = Kind::Ibsim.start(net, directory, &socket).expect("ibsim runs");
    let text = fs::read_to_string(net).expect("text");
    let status = Command::new(program)
        .args(["-o", "--maxsmps", "32", "-D", "0x43", "-f", "osm.log"])
        .args(options)
        .current_dir(directory)
        .env("LD_PRELOAD", umad2sim().expect("it is installed"))
        .env("IBSIM_SOCKNAME", &socket)
        .env("SIM_HOST", first_adapter(&text).expect("there are hosts"))
        .env("OSM_TMP_DIR", directory)
        .env("OSM_CACHE_DIR", directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .expect("it runs");
    assert!(status.success(), "{} {options:?}", program.display());
    drop(simulator);
}

#[test]
#[ignore = "needs Debian's opensm, ibsim-utils and libumad2sim0"]
fn the_same_command_line_leaves_the_same_files() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let opensm = place.path().join("opensm");
    symlink(PROGRAM, &opensm).expect("linked");
    for (number, (kind, options)) in CASES.into_iter().enumerate() {
        let net = place.path().join(format!("net{number}"));
        let mut generate = Command::new(PROGRAM);
        generate.arg("gen").args(kind.split(' ')).args(["--speed", "EDR", "-o"]).arg(&net);
        assert!(generate.status().expect("it runs").success(), "{kind}");
        let of = |who: &str| place.path().join(format!("{who}{number}"));
        manage(Path::new("opensm"), &net, &of("real"), options);
        manage(&opensm, &net, &of("ours"), options);
        let read = |who, name: &str| fs::read_to_string(of(who).join(name)).ok();
        for name in DUMPS {
            assert_eq!(read("ours", name), read("real", name), "{kind} {options:?}: {name}");
        }
        for name in CACHE {
            let sorted = |who| {
                let text = read(who, name).expect("it is there");
                text.lines().map(str::to_owned).collect::<BTreeSet<_>>()
            };
            assert_eq!(sorted("ours"), sorted("real"), "{kind} {options:?}: {name}");
        }
    }
}
