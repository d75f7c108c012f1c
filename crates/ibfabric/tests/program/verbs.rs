//! Starts programs of libibverbs with `ibfabric run`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::ibfabric;

/// Returns the path of the preload library, which cargo builds with the tests.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test program is known");
    test.parent().expect("the path has a parent").join("libib_preload.so")
}

/// Returns true if a program is installed.
pub(crate) fn is_installed(program: &str) -> bool {
    let found = ["/usr/bin", "/usr/sbin"].iter().any(|at| Path::new(at).join(program).exists());
    if !found {
        assert!(
            std::env::var_os("IBFABRIC_ALL_PROGRAMS").is_none(),
            "IBFABRIC_ALL_PROGRAMS is set, but {program} is not installed"
        );
        eprintln!(
            "skipped: {program} is not installed (Debian: ibverbs-utils, rdmacm-utils, perftest, ucx-utils, openmpi-bin)"
        );
    }
    found
}

/// Returns the command that runs a program with the given port options.
pub(crate) fn on(port: &[&str], words: &[&str]) -> Command {
    let library = library();
    let library = library.to_str().expect("the path is UTF-8");
    ibfabric(&[&["run", "--library", library], port, &["--"], words].concat())
}
