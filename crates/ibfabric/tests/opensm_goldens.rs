//! Checks that forwarding tables equal those of OpenSM. For each case of the conformance tests, a file has the
//! checksum of the dump that the real OpenSM wrote.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use conformance::routing::{Case, cases};

const GOLDENS: &str = include_str!("../../../tests/conformance/goldens/opensm-lfts.txt");

/// Returns the checksum of OpenSM's LFT dump for each case. The keys are the names of the cases.
fn goldens() -> BTreeMap<&'static str, u32> {
    GOLDENS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (sum, name) = line.split_once(' ').expect("the line contains a space");
            (name, u32::from_str_radix(sum, 16).expect("the checksum is hexadecimal"))
        })
        .collect()
}

fn sum_of(case: &Case) -> u32 {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let prepared = case.prepare(directory.path()).expect("the files of the case can be written");
    let dumps = directory.path().join("dumps");
    let output = Command::new(env!("CARGO_BIN_EXE_ibfabric"))
        .arg("route")
        .arg(&prepared.net)
        .args(&prepared.ibfabric)
        .args(["--json", "--dump-dir"])
        .arg(&dumps)
        .output()
        .expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(2), "{}: {errors}", case.name());
    let dump = fs::read(dumps.join("opensm-lfts.dump")).expect("the dump file can be read");
    crc32fast::hash(&dump)
}

/// Compares the tables with OpenSM's for all cases whose list of engines starts with `engine`.
fn compare(engine: &str) {
    let goldens = goldens();
    let ours: Vec<Case> =
        cases().into_iter().filter(|case| case.engine.starts_with(engine)).collect();
    assert!(!ours.is_empty(), "no case for {engine}");
    let differing: Vec<String> = ours
        .iter()
        .filter(|case| goldens.get(case.name().as_str()) != Some(&sum_of(case)))
        .map(Case::name)
        .collect();
    assert!(differing.is_empty(), "these tables differ from those of OpenSM: {differing:#?}");
}

#[test]
fn minhop_tables_equal_opensm() {
    compare("minhop");
}

#[test]
fn updn_tables_equal_opensm() {
    compare("updn");
}

#[test]
fn dor_tables_equal_opensm() {
    compare("dor");
}

#[test]
fn ftree_tables_equal_opensm() {
    compare("ftree");
}

#[test]
fn tables_from_files_equal_opensm() {
    compare("file");
}

#[test]
fn cases_and_goldens_correspond() {
    let names: Vec<String> = cases().iter().map(Case::name).collect();
    let mut sorted = names.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), names.len(), "two cases have the same name");
    let goldens: Vec<String> = goldens().into_keys().map(str::to_owned).collect();
    assert_eq!(sorted, goldens);
    assert!(names.len() >= 40);
}
