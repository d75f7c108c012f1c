//! Tests the tracer on ibsim and on `ibfabric sim`, together with a real `ibtracert` and a real `ibping`.

use std::path::Path;
use std::time::Instant;

use conformance::opensm::umad2sim;
use conformance::sm::scene::Gear;
use conformance::tracer::cases;
use conformance::tracer::damaged::{self, Tally};

use crate::cases::Selection;
use crate::{TaskResult, release_artifact};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Runs a case with a deliberate error. The case has to report the difference that the error causes.
    #[arg(long, conflicts_with = "all")]
    self_test: bool,
    /// Damages N fabrics on a real ibsim with a real OpenSM, and half as many on `ibfabric sim`. Compares the
    /// results of the tracer and of `ibtracert` with the damage.
    #[arg(long, value_name = "N", conflicts_with_all = ["all", "self_test"])]
    damaged: Option<u64>,
    /// First seed of --damaged.
    #[arg(long, value_name = "SEED", requires = "damaged", default_value_t = 0)]
    first: u64,
}

pub(crate) fn run(Args { selection, self_test, damaged, first }: &Args) -> TaskResult {
    let gear = Gear {
        ibfabric: selection.ibfabric()?,
        debian: umad2sim()?,
        own: release_artifact(&["--package", "ib-preload"], "ib_preload")?,
    };
    let mut outputs = selection.outputs("tracer-")?;
    if let &Some(count) = damaged {
        let wrong = compare_damaged(&gear, (*first, count), outputs.path())?;
        if wrong > 0 {
            outputs.keep();
            return Err("the tracer reports more than it can prove".into());
        }
        return Ok(());
    }
    let mut list = cases(*self_test);
    list.retain(|case| selection.wants(&case.name()));
    if list.is_empty() {
        return Err("no case has that name".into());
    }
    let (mut passed, mut failed, mut checks) = (0, 0, 0);
    for (number, case) in list.iter().enumerate() {
        let begun = Instant::now();
        let (count, faults) =
            match case.run(&gear, &outputs.path().join(format!("case{number:03}"))) {
                Ok(checked) => (checked.checks, checked.faults),
                Err(error) => (0, vec![error.to_string()]),
            };
        checks += count;
        let good = match case.wrong {
            false => faults.is_empty(),
            true => faults.iter().any(|fault| fault.contains("first difference: ")),
        };
        *(if good { &mut passed } else { &mut failed }) += 1;
        let word = match (good, case.wrong) {
            (true, false) => "ok     ",
            (true, true) => "noticed",
            (false, _) => "FAILED ",
        };
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!("{word} {count:>4} checks {seconds:>5.1} s  {}", case.name());
        for fault in faults.iter().filter(|_| !good) {
            eprintln!("         {fault}");
        }
    }
    if failed > 0 {
        outputs.keep();
    }
    eprintln!("{checks} checks\n{passed} passed, {failed} failed");
    if failed > 0 { Err("a check of the tracer failed".into()) } else { Ok(()) }
}

/// Injects faults into fabrics on ibsim and on `ibfabric sim`, and traces paths. Returns how often the tracer was wrong
/// about a path.
fn compare_damaged(
    gear: &Gear,
    (first, count): (u64, u64),
    directory: &Path,
) -> Result<usize, Box<dyn std::error::Error>> {
    let mut wrong = 0;
    for (is_ibsim, name, count) in [(true, "ibsim", count), (false, "ibfabric sim", count / 2)] {
        let (mut tally, mut failed) = (Tally::default(), 0);
        let begun = Instant::now();
        for seed in first..first + count {
            let place = directory.join(format!("{}-{seed}", name.replace(' ', "-")));
            match damaged::trial(gear, is_ibsim, seed, &place) {
                Ok(trial) => tally += trial,
                Err(error) => {
                    failed += 1;
                    eprintln!("seed {seed} on {name}: {error}");
                }
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!(
            "{name}, OpenSM: {count} trials ({failed} could not be run), {} paths in {seconds:.0} s",
            tally.paths
        );
        eprintln!(
            "  {} paths cross a fault: {} good, {} bad, {} not proven; others: {} good, {} wrongly bad, {} \
             not proven",
            tally.damaged,
            tally.good_over_damage,
            tally.bad_over_damage,
            tally.unproven_over_damage,
            tally.sound_good,
            tally.innocents,
            tally.sound_unproven
        );
        eprintln!(
            "  ibtracert prints {} paths over a fault completely, and {} others incompletely; if both \
             differ on a path over a fault, the tracer is right {} times and ibtracert {} times",
            tally.shown_over_damage,
            tally.sound_not_shown,
            tally.tracer_right,
            tally.ibtracert_right
        );
        for error in tally.errors.iter().take(5) {
            eprintln!("  {error}");
        }
        wrong += tally.errors.len();
    }
    Ok(wrong)
}
