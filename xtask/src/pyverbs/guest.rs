//! Runs the tests of pyverbs on the kernel's soft RoCE in a guest, and keeps the list of the tests that pass there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use interop::{Guest, GuestOptions};

use super::{Failed, Outcome, PYTHON, RUNNER, Result, counts, parse, reasons};
use crate::root;

/// The list of tests that pass on soft RoCE.
pub(super) const PASSED: &str = "tests/conformance/pyverbs-rxe.txt";

const HEAD: &str = "\
# Tests of pyverbs (Debian's python3-pyverbs 44.0) that pass on soft RoCE (rxe) of Linux 6.1, in a guest.
# Written by: cargo xtask conformance pyverbs --guest
";

/// Python script that writes Python, pyverbs and the tests into a tar archive.
const PACK: &str = include_str!("pack.py");

/// Maximum duration of the tests.
const LIMIT: Duration = Duration::from_secs(900);

/// Runs the tests in `tests` in a guest, prints the results, and writes the list of tests that pass.
pub(super) fn run(tests: &Path, directory: &Path) -> Result<()> {
    let results = results(tests, directory)?;
    let mut text = HEAD.to_owned();
    for (name, _) in results.iter().filter(|(_, it)| it.outcome == "passed") {
        text.push_str(name);
        text.push('\n');
    }
    fs::write(root().join(PASSED), text)?;
    eprintln!("soft RoCE: {}", counts(&results));
    eprint!("{}", reasons(&results));
    for (name, it) in results.iter().filter(|(_, it)| it.outcome == "failed") {
        eprintln!("  failed: {name}: {}", it.reason);
    }
    eprintln!("wrote {PASSED}");
    Ok(())
}

/// Returns the names of the tests that pass on soft RoCE, from the list.
pub(super) fn passed() -> Result<BTreeSet<String>> {
    let path = root().join(PASSED);
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("{}: {error}; write it with --guest", path.display()))?;
    Ok(text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect())
}

fn results(tests: &Path, directory: &Path) -> Result<BTreeMap<String, Outcome>> {
    fs::write(tests.join("run.py"), RUNNER)?;
    let disk = directory.join("disk");
    let packed = Command::new(PYTHON).args(["-c", PACK]).args([&disk, tests]).status()?;
    if !packed.success() {
        return Err(format!("packing Python for the guest: {packed}").into());
    }
    let options = GuestOptions { disk: Some(disk), memory: 1024, ..GuestOptions::default() };
    let guest = Guest::boot(&options)?;
    // GID 1 is the IPv4 address of the guest. Without the option, the tests choose a GID at random.
    let command = "tar -x -f /dev/vda -C / && cd /pyverbs && \
                   { python3 run.py /pyverbs /results --dev rxe0 --gid 1 >/log 2>&1; cat /results; }";
    let finished = guest.run(command, LIMIT);
    fs::write(directory.join("console"), guest.console())?;
    let log = guest.run("tail -n 60 /log", Duration::from_secs(20))?.output;
    fs::write(directory.join("log"), &log)?;
    let finished = finished.map_err(|error| format!("{error}\n{log}"))?;
    if !finished.success() {
        return Err(Failed::from(finished.output));
    }
    parse(&finished.output)
}
