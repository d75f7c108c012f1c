//! Compares how fast OpenSM brings a fabric up on ibsim and on `ibfabric sim`, in alternating runs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use conformance::clients::manager::{Manager, Options};
use conformance::clients::process::Usage;
use conformance::clients::program::Seat;
use conformance::clients::server::Kind;
use conformance::clients::stage::socket_name;
use conformance::opensm::{first_adapter, umad2sim};

use crate::bench::{LARGE, SMALL, machine, median, version, write_fabric, write_section};
use crate::{TaskResult, release_binary};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of runs on each simulator; the medians are compared.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u16).range(1..=99))]
    runs: u16,
    /// Measures only the fabrics whose name contains this text, and does not write the results to docs/benchmarks.md.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Measures only ibsim, and does not write the results to docs/benchmarks.md.
    #[arg(long)]
    ibsim_alone: bool,
}

/// The maximum numbers of outstanding SMPs: OpenSM's default, and a number for large fabrics.
const WINDOWS: [u8; 2] = [4, 32];

const HEADING: &str = "## Simulator";

const HEAD: &str = "\
`cargo xtask bench sim` writes this section. OpenSM (minhop, `-D 0x03`, no dumps) runs alternately on ibsim and on `ibfabric sim`. Both
simulators load the same fabric. OpenSM connects to both simulators through Debian's libumad2sim.

* *window*: the maximum number of outstanding SMPs, as set by OpenSM's option `--maxsmps` [default: 4].
* *up*: the time from OpenSM's start to SUBNET UP in its log. OpenSM spends most of *up* on computation.
* *discovery*, *computation*, *programming*: the three parts of *up* according to OpenSM's log. *discovery* ends when OpenSM is master. *computation* ends
  when OpenSM has computed the tables. OpenSM sends almost no MADs during *computation*. *programming* ends when OpenSM logs SUBNET UP.
* *CPU*: the user and system time that the simulator has used from its own start to SUBNET UP.
* *memory*: the peak resident set size of the simulator.

| fabric | window | simulator | up | discovery | computation | programming | CPU | memory |
|---|---|---|---|---|---|---|---|---|
";

/// The results of a bring-up, in seconds and MB.
struct Run {
    up: f64,
    phases: [f64; 3],
    cpu: f64,
    peak: f64,
}

pub(crate) fn run(args: &Args) -> TaskResult {
    let library = umad2sim()?;
    let mut simulators = vec![Kind::Ibsim];
    if !args.ibsim_alone {
        simulators.push(Kind::Ibfabric(release_binary()?));
    }
    let scratch = tempfile::tempdir()?;
    let mut table = format!("{HEADING}\n{HEAD}");
    let wanted = |kind: &str| args.only.as_ref().is_none_or(|text| kind.contains(text.as_str()));
    if ![SMALL, LARGE].into_iter().any(wanted) {
        return Err(format!("--only: neither `{SMALL}` nor `{LARGE}` contains this text").into());
    }
    for kind in [SMALL, LARGE].into_iter().filter(|kind| wanted(kind)) {
        let net = scratch.path().join("net");
        write_fabric(kind, &net)?;
        for window in WINDOWS {
            let mut runs: Vec<Vec<Run>> = simulators.iter().map(|_| Vec::new()).collect();
            for round in 0..usize::from(args.runs) {
                // Runs the simulators alternately, so that a change of the machine's speed affects both. Each round
                // starts with the next simulator.
                for place in 0..simulators.len() {
                    let at = (place + round) % simulators.len();
                    let (simulator, runs) = (&simulators[at], &mut runs[at]);
                    let directory = tempfile::tempdir_in(scratch.path())?;
                    runs.push(bring_up(simulator, &net, (directory.path(), window), &library)?);
                }
            }
            for (simulator, runs) in simulators.iter().zip(&runs) {
                let line = line((kind, window), simulator, runs);
                eprint!("{line}");
                table.push_str(&line);
            }
        }
    }
    let (opensm, rustc) = (version("opensm", "--version"), version("rustc", "--version"));
    writeln!(table, "\nMedians of {} runs on {}, {opensm}; {rustc}.", args.runs, machine())?;
    if args.only.is_none() && !args.ibsim_alone {
        write_section(Some(HEADING), &table)?;
    }
    Ok(())
}

fn bring_up(
    simulator: &Kind,
    net: &Path,
    (directory, window): (&Path, u8),
    library: &Path,
) -> Result<Run, Box<dyn std::error::Error>> {
    let socket = socket_name();
    let server = simulator.start(net, directory, &socket)?;
    let text = fs::read_to_string(net)?;
    let node = first_adapter(&text).ok_or("the fabric has no channel adapter")?.to_owned();
    let seat = Seat { socket, preload: library.to_owned(), node, directory: directory.to_owned() };
    let limit = Duration::from_secs(600);
    let options = Options { window, limit, ..Options::default() };
    let manager = Manager::start(&seat, directory, &options)?;
    let Usage { cpu, peak } = server.usage().ok_or("the simulator has exited too early")?;
    let up = manager.elapsed.as_secs_f64();
    let phases = manager.phases().ok_or("OpenSM's log does not contain the times of its phases")?;
    let phases = phases.map(|phase| phase.as_secs_f64());
    drop(manager);
    match server.stop() {
        Some(fault) => Err(fault.into()),
        None => Ok(Run { up, phases, cpu: cpu.as_secs_f64(), peak: peak as f64 / 1e6 }),
    }
}

fn line((kind, window): (&str, u8), simulator: &Kind, runs: &[Run]) -> String {
    let of = |pick: fn(&Run) -> f64| median(runs.iter().map(pick).collect());
    format!(
        "| `{kind}` | {window} | {} | {:.1} s | {:.2} s | {:.1} s | {:.2} s | {:.2} s | {:.0} MB |\n",
        simulator.name(),
        of(|run| run.up),
        of(|run| run.phases[0]),
        of(|run| run.phases[1]),
        of(|run| run.phases[2]),
        of(|run| run.cpu),
        of(|run| run.peak),
    )
}
