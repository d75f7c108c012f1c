//! Builds the Debian package.

use std::process::Command;

use crate::{TaskResult, root};

/// Builds the package.
pub(crate) fn run() -> TaskResult {
    let cargo = |words: &[&str]| -> TaskResult {
        let status = Command::new("cargo").args(words).current_dir(root()).status()?;
        if status.success() { Ok(()) } else { Err(format!("cargo {}: {status}", words[0]).into()) }
    };
    if Command::new("cargo").args(["deb", "--version"]).output()?.status.code() != Some(0) {
        return Err("cargo-deb is not installed: run `cargo install --locked cargo-deb`".into());
    }
    let packages = ["ibfabric", "ib-preload", "ib-acm-capi"];
    let words = packages.iter().flat_map(|package| ["--package", package]);
    let words: Vec<&str> =
        ["build", "--locked", "--profile", "dist"].into_iter().chain(words).collect();
    cargo(&words)?;
    cargo(&["deb", "--package", "ibfabric", "--profile", "dist", "--no-build"])
}
