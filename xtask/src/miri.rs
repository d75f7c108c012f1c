//! Runs, under Miri, the tests of the memory that HCAs and programs share. Miri detects data races. It also detects
//! accesses out of bounds, to freed memory, or with wrong alignment.

use std::process::{Command, Stdio};

use crate::{TaskResult, root};

/// Runs the tests of the module `memory` of `ib-hca`. If Miri is not installed, prints a message and succeeds.
pub(crate) fn run() -> TaskResult {
    let installed = Command::new("cargo")
        .args(["+nightly", "miri", "--version"])
        .current_dir(root())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !installed {
        eprintln!(
            "SKIPPED: Miri is not installed: `rustup toolchain install nightly --component miri,rust-src`"
        );
        return Ok(());
    }
    let status = Command::new("cargo")
        .args(["+nightly", "miri", "test", "--package", "ib-hca", "--lib", "memory::"])
        // This option disables Miri's weak memory emulation. The emulation does not support atomic accesses of two
        // sizes at one address, which RDMA atomics need.
        .env("MIRIFLAGS", "-Zmiri-disable-weak-memory-emulation")
        .current_dir(root())
        .status()?;
    if status.success() { Ok(()) } else { Err("Miri found an error".into()) }
}
