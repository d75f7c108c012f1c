//! Runs many real programs at the same time on `ibfabric up`, while links are cut and restored.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use conformance::opensm::umad2sim;
use conformance::up::{ManyClients, PACKAGE, PROGRAMS};
use ib_topology::generate::{self, Kind};
use ib_topology::{Format, write};

use crate::{TaskResult, release_binary};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// For how many seconds programs are run while links are cut.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    seconds: u64,
    /// Number of concurrent programs.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    clients: u16,
    /// Parameters of the fat tree, as for `ibfabric gen fat-tree`.
    #[arg(long, value_name = "K LEVELS", default_value = "8 2")]
    tree: String,
    /// Seed that selects which links are cut.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Library to preload into every second client, instead of Debian's libumad2sim.so.
    #[arg(long, value_name = "LIBRARY")]
    with_preload: Option<PathBuf>,
    /// Tests this program instead of building ibfabric.
    #[arg(long, value_name = "PROGRAM")]
    binary: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> TaskResult {
    for program in PROGRAMS {
        if Command::new(program).arg("--version").output().is_err() {
            return Err(
                format!("program {program} not found: install Debian's package {PACKAGE}").into()
            );
        }
    }
    let preload = umad2sim()?;
    let binary = args.binary.clone().map_or_else(release_binary, Ok)?;
    let words: Vec<&str> = args.tree.split_whitespace().collect();
    let kind = Kind::parse("fat-tree", &words)?;
    let fabric = generate::generate(&kind, &generate::Options::default())?;
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("tree.net");
    write(&fabric, Format::Ibsim, &mut fs::File::create(&file)?)?;
    // The path must be absolute, because the clients run in a different directory.
    let other = args.with_preload.as_deref().map(|library| {
        fs::canonicalize(library).map_err(|error| format!("{}: {error}", library.display()))
    });
    let other = other.transpose()?;
    let outcome = conformance::up::run(&ManyClients {
        binary: &binary,
        preload: &preload,
        other: other.as_deref(),
        fabric: (&fabric, &file),
        clients: args.clients.into(),
        time: Duration::from_secs(args.seconds),
        seed: args.seed,
    })?;
    let [before, after] = outcome.memory.map(|bytes| bytes >> 20);
    eprintln!(
        "{} programs at once for {} s: {} runs, {} of them failed, {} deadlocked in libumad2sim, \
         {} links cut; memory {before} MiB after a quarter of the time, {after} MiB at the end",
        args.clients, args.seconds, outcome.runs, outcome.refused, outcome.locked, outcome.cuts
    );
    for fault in &outcome.faults {
        eprintln!("  {fault}");
    }
    let verdict = if outcome.faults.is_empty() { "0 failed" } else { "1 failed" };
    eprintln!("{} passed, {verdict}", u8::from(outcome.faults.is_empty()));
    if outcome.faults.is_empty() { Ok(()) } else { Err("a check of up failed".into()) }
}
