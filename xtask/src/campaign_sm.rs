//! `campaign sm`: checks that all hosts with a physical path are reachable, and that all credit loops are reported.

use std::path::Path;
use std::time::Duration;

use conformance::opensm::umad2sim;
use conformance::sm::reach::{Managed, Tally, run as run_on_ibsim};
use conformance::sm::scene::Gear;

use crate::campaign::seeds;
use crate::{TaskResult, release_artifact};

/// One in this many runs uses a real ibsim, first with `ibfabric sm` and then with OpenSM.
const ONE_IN: u64 = 10;

pub(crate) fn run(first: u64, runs: u64) -> TaskResult {
    let on_ibsim = runs / ONE_IN;
    let name = "cabled_hosts_stay_reachable";
    seeds("ib-sm", "subnet", name, ("SM_REACH", first, runs - on_ibsim))?;
    let name = "credit_loops_are_reported_on_the_vls_in_use";
    seeds("ib-sm", "subnet", name, ("SM_LANES", first, (runs * 2).div_ceil(5)))?;
    if on_ibsim == 0 {
        return Ok(());
    }
    let gear = Gear {
        ibfabric: release_artifact(&["--package", "ibfabric"], "ibfabric")?,
        debian: umad2sim()?,
        own: release_artifact(&["--package", "ib-preload"], "ib_preload")?,
    };
    let place = tempfile::tempdir()?;
    let mut failed = 0;
    for (managed, name) in [(Managed::Ours, "ibfabric sm"), (Managed::OpenSm, "OpenSM")] {
        let mut all = Tally::default();
        for seed in first..first + on_ibsim {
            let directory = place.path().join(format!("{name}-{seed}"));
            all.merge(run_one(&gear, seed, managed, &directory)?);
        }
        print(name, on_ibsim, &mut all);
        if managed == Managed::Ours {
            failed = all.dead.len() + all.silent_loops.len();
        }
    }
    if failed > 0 {
        Err("hosts remain unreachable, or a credit loop was not reported".into())
    } else {
        Ok(())
    }
}

fn run_one(
    gear: &Gear,
    seed: u64,
    managed: Managed,
    directory: &Path,
) -> Result<Tally, Box<dyn std::error::Error>> {
    std::fs::create_dir_all(directory)?;
    Ok(run_on_ibsim(gear, seed, managed, directory)?)
}

fn print(name: &str, runs: u64, all: &mut Tally) {
    all.settled_after.sort_unstable();
    let times = &all.settled_after;
    let at = |part: usize| times.get(times.len() * part / 100).map_or(0.0, Duration::as_secs_f64);
    let longest = times.last().map_or(0.0, Duration::as_secs_f64);
    eprintln!(
        "{name} on ibsim: {runs} runs, {} events, {} pairs checked: unreachable pairs after {} events, a credit \
         loop on one VL after {} events ({} of these events without an alarm); settled after {:.1} s \
         (median), {:.1} s (95 %), {longest:.1} s (longest)",
        all.events,
        all.pairs,
        all.dead.len(),
        all.loops,
        all.silent_loops.len(),
        at(50),
        at(95),
    );
    for fault in all.dead.iter().chain(&all.silent_loops).take(10) {
        eprintln!("  {fault}");
    }
}
