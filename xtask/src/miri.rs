//! The tests of the memory that adapters and programs share, under Miri: it sees every access out of
//! bounds, to freed memory and of a wrong alignment, and races of the atomic operations with others.

use std::process::{Command, Stdio};

use crate::{Chored, root};

/// Runs them; says so and succeeds when Miri is not installed.
pub(crate) fn run() -> Chored {
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
        // Its weak memory cannot have atomics of two sizes at one place, as numbers of RDMA atomics are.
        .env("MIRIFLAGS", "-Zmiri-disable-weak-memory-emulation")
        .current_dir(root())
        .status()?;
    if status.success() { Ok(()) } else { Err("Miri has found something".into()) }
}
