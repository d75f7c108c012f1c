//! Programs that use block devices over NBD.

use std::fs;
use std::net::UdpSocket;
use std::process::Command;

use conformance::nbd::{CASES, PROGRAMS};

use crate::cases::Selection;
use crate::{Chored, release_binary};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn run(Args { selection }: &Args) -> Chored {
    for (program, package) in PROGRAMS {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output()?;
        if !found.status.success() {
            return Err(
                format!("there is no {program}: it is in Debian's package {package}").into()
            );
        }
    }
    let binary = release_binary()?;
    let mut outputs = selection.outputs("nbd-")?;
    let (mut passed, mut failed, mut checks) = (0, 0, 0);
    for case in CASES.iter().filter(|case| selection.wants(case.name)) {
        let directory = outputs.path().join(case.name.replace([' ', ','], "-"));
        fs::create_dir_all(&directory)?;
        let free = |port: &u16| {
            (1..4).all(|last| UdpSocket::bind((format!("127.0.0.{last}").as_str(), *port)).is_ok())
        };
        let port = (24_000..25_000).find(free).ok_or("no port of UDP is free")?;
        let checked = conformance::nbd::run(case, &binary, &directory, port)?;
        checks += checked.checks;
        let verdict = if checked.faults.is_empty() { "ok" } else { "FAILED" };
        eprintln!("{}: {} checks, {verdict}", case.name, checked.checks);
        for fault in &checked.faults {
            eprintln!("  {fault}");
        }
        *(if checked.faults.is_empty() { &mut passed } else { &mut failed }) += 1;
    }
    if failed > 0 {
        outputs.keep();
    }
    eprintln!("{checks} checks, {passed} passed, {failed} failed");
    if failed > 0 { Err("a program over NBD failed".into()) } else { Ok(()) }
}
