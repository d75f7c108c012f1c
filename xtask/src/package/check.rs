//! Runs the self-test of packages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::{Result, SELF_TEST, execute, output_of};

/// Runs the self-test of a static program as a user without privileges, in a root directory that contains only the
/// program.
pub(super) fn program(program: &Path) -> Result<()> {
    let empty = tempfile::tempdir()?;
    fs::set_permissions(empty.path(), fs::Permissions::from_mode(0o755))?;
    fs::copy(program, empty.path().join("ibfabric"))?;
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("chroot");
        command.arg("--userspec=65534:65534").arg(empty.path());
        command
    } else {
        // In a new user namespace without a mapping, the program runs as user 65534, as with `chroot` above.
        let mut command = Command::new("unshare");
        command.arg("--user").arg("--root").arg(empty.path());
        command
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let start = Instant::now();
    execute(command.arg("/ibfabric").args(SELF_TEST).env_clear().env("PATH", path))?;
    let size = fs::metadata(program)?.len();
    eprintln!(
        "the self-test in an empty root directory: {:.1} s; the program: {:.1} MB",
        start.elapsed().as_secs_f64(),
        size as f64 / 1e6,
    );
    Ok(())
}

/// Checks that `run` finds the preload library of the same directory tree, and that the library can be loaded.
pub(super) fn preload_library(tree: &Path) -> Result<()> {
    let library = fs::canonicalize(tree.join("lib/ibfabric/libib_preload.so"))?;
    let mut command = Command::new(tree.join("bin/ibfabric"));
    command.args(["run", "--roce", "127.0.0.1", "--env"]).env_remove("LD_PRELOAD");
    let environment = output_of(&mut command)?;
    let expected = format!("export LD_PRELOAD='{}'", library.display());
    if !environment.lines().any(|line| line == expected) {
        return Err(format!("ibfabric run: expected {expected}, found\n{environment}").into());
    }
    // The loader only warns about a library that it cannot load.
    let mut command = Command::new(tree.join("bin/ibfabric"));
    command.args(["run", "--roce", "127.0.0.1", "cat", "/proc/self/maps"]);
    let maps = output_of(&mut command)?;
    if maps.contains(&library.display().to_string()) {
        Ok(())
    } else {
        Err(format!("{}: the loader has not loaded the library", library.display()).into())
    }
}
