//! Checks the cargo commands of documents without running them, since this test runs under cargo itself. The packages
//! and targets in these commands have to exist.
//!
//! Only the command `cargo run --package ibfabric -- …` is run: the test replaces it by the program that cargo built
//! for the test. For `cargo xtask`, a test of the package xtask checks the arguments.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns true for a cargo command that the test only checks and does not run.
pub(crate) fn is_chore(command: &str) -> bool {
    let words: Vec<&str> = words(command).collect();
    matches!(words.first(), Some(&("cargo" | ".ci/run"))) && words.get(1) != Some(&"run")
}

fn words(command: &str) -> impl Iterator<Item = &str> {
    let command = command.split(" #").next().unwrap_or(command);
    command.split_whitespace().skip_while(|word| word.contains('=') && !word.starts_with('-'))
}

/// Checks that the packages, tests, benchmarks and examples that a cargo command names exist.
pub(crate) fn check(root: &Path, command: &str) -> Result<(), String> {
    let mut words = words(command);
    if words.next() == Some(".ci/run") {
        return exists(&root.join(".ci/run"));
    }
    let chore = words.next().unwrap_or("");
    match chore {
        "xtask" => return exists(&root.join("xtask/src/main.rs")),
        "test" | "bench" | "build" | "install" | "clippy" => {}
        other => return Err(format!("found `cargo {other}`, expected a known cargo command")),
    }
    let (mut package, mut targets) = (root.to_owned(), vec![]);
    while let Some(word) = words.next() {
        match word {
            "--" => break,
            "--workspace" | "--release" | "--locked" => {}
            "-p" | "--package" => package = find(root, words.next().unwrap_or(""))?,
            "--path" => package = root.join(words.next().unwrap_or("")),
            "--test" => targets.push(("tests", words.next().unwrap_or(""))),
            "--bench" => targets.push(("benches", words.next().unwrap_or(""))),
            "--example" => targets.push(("examples", words.next().unwrap_or(""))),
            other => {
                return Err(format!("found the word `{other}` after cargo, expected an option"));
            }
        }
    }
    exists(&package.join("Cargo.toml"))?;
    for (directory, name) in targets {
        let file = package.join(directory).join(format!("{name}.rs"));
        exists(&file).or_else(|_| exists(&package.join(directory).join(name).join("main.rs")))?;
    }
    Ok(())
}

/// Returns the directory of a package.
fn find(root: &Path, name: &str) -> Result<PathBuf, String> {
    let line = format!("name = \"{name}\"");
    for rooms in ["crates", "tests", "."] {
        let directory = root.join(rooms).join(name);
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
        if manifest.lines().any(|found| found == line) {
            return Ok(directory);
        }
    }
    Err(format!("there is no package `{name}`"))
}

fn exists(path: &Path) -> Result<(), String> {
    if path.exists() { Ok(()) } else { Err(format!("{} does not exist", path.display())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_cargo_commands_exist() {
        let root = crate::root();
        for good in [
            "cargo test --workspace          # everything",
            "RTRS_RUNS=5000 cargo test -p ib-rtrs --test sessions",
            "cargo install --locked --path crates/ibfabric",
            ".ci/run",
        ] {
            assert!(is_chore(good), "{good}");
            assert_eq!(check(&root, good), Ok(()), "{good}");
        }
        for bad in [
            "cargo test -p ib-nothing",
            "cargo test -p ib-rtrs --test nothing",
            "cargo install --path crates/nothing",
            "cargo frobnicate",
            "cargo test --workplace",
        ] {
            assert!(check(&root, bad).is_err(), "{bad}");
        }
        assert!(!is_chore("cargo run --release --package ibfabric -- selftest"));
        assert!(!is_chore("ibfabric gen torus 4x4"));
    }
}
