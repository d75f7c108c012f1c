//! Tests NBD clients with ibfabric's block devices.

use std::fs;
use std::net::UdpSocket;
use std::process::Command;

use conformance::nbd::{CASES, Checked, PROGRAMS, libnbd};

use crate::cases::Selection;
use crate::{TaskResult, release_binary};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Fails if the source of libnbd is unavailable, instead of skipping libnbd's own tests.
    #[arg(long)]
    require: bool,
}

/// Name of the case that runs libnbd's own tests.
const LIBNBD: &str = "libnbd's own tests";

pub(crate) fn run(Args { selection, require }: &Args) -> TaskResult {
    for (program, package) in PROGRAMS {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output()?;
        if !found.status.success() {
            return Err(
                format!("program {program} not found: install Debian's package {package}").into()
            );
        }
    }
    let binary = release_binary()?;
    let mut outputs = selection.outputs("nbd-")?;
    let (mut passed, mut failed, mut checks) = (0, 0, 0);
    let mut tell = |name: &str, checked: &Checked| {
        checks += checked.checks;
        let verdict = if checked.faults.is_empty() { "ok" } else { "FAILED" };
        eprintln!("{name}: {} checks, {verdict}", checked.checks);
        for fault in &checked.faults {
            eprintln!("  {fault}");
        }
        *(if checked.faults.is_empty() { &mut passed } else { &mut failed }) += 1;
    };
    for case in CASES.iter().filter(|case| selection.wants(case.name)) {
        let directory = outputs.path().join(case.name.replace([' ', ','], "-"));
        fs::create_dir_all(&directory)?;
        tell(case.name, &conformance::nbd::run(case, &binary, &directory, free_port()?)?);
    }
    if selection.wants(LIBNBD) {
        let directory = outputs.path().join("libnbd");
        fs::create_dir_all(&directory)?;
        match libnbd::fetch(&directory) {
            Ok(source) => tell(LIBNBD, &libnbd::run(&source, &binary, &directory, free_port()?)?),
            Err(error) if !require => eprintln!("{LIBNBD}: skipped: {error}"),
            Err(error) => return Err(format!("cannot fetch libnbd: {error}").into()),
        }
    }
    if failed > 0 {
        outputs.keep();
    }
    eprintln!("{checks} checks, {passed} passed, {failed} failed");
    if failed > 0 { Err("a test of an NBD client failed".into()) } else { Ok(()) }
}

/// Returns a UDP port that is free at all loopback addresses that the tests use.
fn free_port() -> Result<u16, &'static str> {
    let free = |port: &u16| {
        (1..10).all(|last| UdpSocket::bind((format!("127.0.0.{last}").as_str(), *port)).is_ok())
    };
    (24_000..25_000).find(free).ok_or("found no free UDP port from 24000 to 24999")
}
