//! Checks that the client of the ACM service builds for Windows.
//!
//! `cargo check` needs the target's standard library, but no linker. Nothing is run.

use std::path::Path;
use std::process::Command;

use crate::{TaskResult, root};

const TARGET: &str = "x86_64-pc-windows-gnu";

/// Checks the client and its tests. If the target is not installed, prints a message and succeeds.
pub(crate) fn run() -> TaskResult {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(root())
        .output()?;
    let libraries = String::from_utf8(output.stdout)?;
    if !Path::new(libraries.trim()).is_dir() {
        eprintln!("SKIPPED: the target is not installed: `rustup target add {TARGET}`");
        return Ok(());
    }
    let status = Command::new("cargo")
        .args(["clippy", "--package", "ib-acm", "--all-targets", "--all-features"])
        .args(["--target", TARGET, "--", "-D", "warnings"])
        .current_dir(root())
        .status()?;
    if status.success() { Ok(()) } else { Err("ib-acm does not build for Windows".into()) }
}
