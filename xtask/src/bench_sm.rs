//! Compares how fast OpenSM and `ibfabric sm` bring a fabric up on ibsim, in alternating runs. Also measures
//! `ibfabric sm` with the fabric simulated in its own process.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use conformance::clients::manager::{Manager, Options};
use conformance::clients::program::Seat;
use conformance::clients::server::Kind;
use conformance::clients::stage::socket_name;
use conformance::opensm::{first_adapter, umad2sim};
use conformance::sm::ours::{self, Ours};
use serde_json::Value;

use crate::bench::{LARGE, SMALL, machine, median, version, write_fabric, write_section};
use crate::{TaskResult, release_binary};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of runs of each SM; the medians are compared.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u16).range(1..=99))]
    runs: u16,
    /// Does not write the results to docs/benchmarks.md.
    #[arg(long)]
    dry: bool,
}

const HEADING: &str = "## Subnet manager";

const HEAD: &str = "\
`cargo xtask bench sm` writes this section. The benchmark measures the time from the SM's start to SUBNET UP (minhop, OpenSM with `-D 0x03`,
no dumps).

* *on ibsim*: OpenSM and `ibfabric sm` run alternately, each with a separate ibsim process. OpenSM runs once with its default window of 4
  outstanding SMPs and once with `--maxsmps 32`. `ibfabric sm` runs with its default window of 64 outstanding SMPs.
* *within one process*: `ibfabric sm --sim FABRIC --once` simulates the fabric itself. In these rows, *up* includes the time to read the
  fabric file.
* *ratio*: *up* divided by the *up* of OpenSM with its default window.
* *check*: the part of *up* in which `ibfabric sm` checks the routes.
* *memory*: the peak resident set size of `ibfabric sm`, which includes the simulated fabric.

| fabric | where | manager | up | ratio | check | memory |
|---|---|---|---|---|---|---|
";

/// An SM that is measured on ibsim.
#[derive(Clone, Copy)]
enum BenchedSm {
    OpenSm(u8),
    Ours,
}

impl BenchedSm {
    fn name(self) -> String {
        match self {
            Self::OpenSm(4) => "OpenSM".to_owned(),
            Self::OpenSm(window) => format!("OpenSM `--maxsmps {window}`"),
            Self::Ours => "ibfabric sm".to_owned(),
        }
    }
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

pub(crate) fn run(args: &Args) -> TaskResult {
    let (library, binary) = (umad2sim()?, release_binary()?);
    let scratch = tempfile::tempdir()?;
    let mut table = format!("{HEADING}\n{HEAD}");
    let mut add = |line: String| {
        eprint!("{line}");
        table.push_str(&line);
    };
    let net = scratch.path().join("small");
    write_fabric(SMALL, &net)?;
    let all = [BenchedSm::OpenSm(4), BenchedSm::OpenSm(32), BenchedSm::Ours];
    let mut times = all.map(|_| Vec::new());
    for round in 0..usize::from(args.runs) {
        // Each iteration runs each SM once, and starts with the next SM, so that the order favours no SM.
        for at in (0..all.len()).map(|place| (place + round) % all.len()) {
            let directory = tempfile::tempdir_in(scratch.path())?;
            times[at].push(on_ibsim(all[at], &net, directory.path(), (&library, &binary))?);
        }
    }
    let medians = times.map(median);
    for (which, up) in all.iter().zip(medians) {
        let ratio = up / medians[0];
        add(format!(
            "| `{SMALL}` | on ibsim | {} | {up:.2} s | {ratio:.2} | – | – |\n",
            which.name()
        ));
    }
    for (name, kind) in [("small", SMALL), ("large", LARGE)] {
        let net = scratch.path().join(name);
        write_fabric(kind, &net)?;
        let runs: Vec<Run> =
            (0..args.runs).map(|_| in_process(&binary, &net)).collect::<Result<_>>()?;
        let of = |pick: fn(&Run) -> f64| median(runs.iter().map(pick).collect());
        add(format!(
            "| `{kind}` | within one process | ibfabric sm | {:.2} s | – | {:.2} s | {:.0} MB |\n",
            of(|run| run.up),
            of(|run| run.check),
            of(|run| run.peak),
        ));
    }
    let (opensm, rustc) = (version("opensm", "--version"), version("rustc", "--version"));
    writeln!(table, "\nMedians of {} runs on {}, {opensm}; {rustc}.", args.runs, machine())?;
    if !args.dry {
        write_section(Some(HEADING), &table)?;
    }
    Ok(())
}

/// Brings up a fabric on ibsim. Returns the time in seconds.
fn on_ibsim(
    which: BenchedSm,
    net: &Path,
    directory: &Path,
    (library, binary): (&Path, &Path),
) -> Result<f64> {
    let limit = Duration::from_secs(600);
    let socket = socket_name();
    let server = Kind::Ibsim.start(net, directory, &socket)?;
    let node = first_adapter(&fs::read_to_string(net)?)
        .ok_or("the fabric has no channel adapter")?
        .to_owned();
    let seat = Seat { socket, preload: library.to_owned(), node, directory: directory.to_owned() };
    let up = match which {
        BenchedSm::OpenSm(window) => {
            let options = Options { window, limit, ..Options::default() };
            Manager::start(&seat, directory, &options)?.elapsed
        }
        BenchedSm::Ours => {
            let started = Instant::now();
            let mut ours = Ours::launch(binary, &seat, directory, &ours::Options::default())?;
            ours.comes_up(limit)?;
            started.elapsed()
        }
    };
    match server.stop() {
        Some(fault) => Err(fault.into()),
        None => Ok(up.as_secs_f64()),
    }
}

/// The results of `ibfabric sm --sim`, which simulates the fabric in its own process: seconds, and MB of memory.
struct Run {
    up: f64,
    check: f64,
    peak: f64,
}

fn in_process(binary: &Path, net: &Path) -> Result<Run> {
    let started = Instant::now();
    let output =
        Command::new(binary).args(["sm", "--sim"]).arg(net).args(["--once", "--json"]).output()?;
    let up = started.elapsed().as_secs_f64();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(
            format!("ibfabric sm --sim {}: {}: {said}", net.display(), output.status).into()
        );
    }
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let check = report["ms"]["check"].as_f64().ok_or("the report has no ms.check")? / 1e3;
    let peak = report["peak_rss_mb"].as_f64().ok_or("the report has no peak_rss_mb")?;
    Ok(Run { up, check, peak })
}
