//! Tests `ibfabric sm` on ibsim and on `ibfabric sim`, with real clients and together with a real OpenSM.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use conformance::opensm::umad2sim;
use conformance::sm::allowed::{ALLOWED, ALSO};
use conformance::sm::cases::{Case, cases, wrong_cases};
use conformance::sm::scene::Gear;

use crate::cases::{Selection, list_allowed};
use crate::{TaskResult, release_artifact};

/// Number of threads that run cases. Each case that mostly waits runs in an additional thread.
const WORKERS: usize = 2;

/// Maximum number of faults of a case that are printed.
const SHOWN: usize = 12;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Runs cases with a deliberate error. Each case has to report the fault that the error causes.
    #[arg(long, conflicts_with = "all")]
    self_test: bool,
}

pub(crate) fn run(Args { selection, self_test }: &Args) -> TaskResult {
    let gear = Gear {
        ibfabric: selection.ibfabric()?,
        debian: umad2sim()?,
        own: release_artifact(&["--package", "ib-preload"], "ib_preload")?,
    };
    let mut outputs = selection.outputs("sm-")?;
    eprintln!("permitted differences of responses:");
    for (what, reason) in ALSO {
        eprintln!("  all: {what}: {reason}");
    }
    list_allowed(ALLOWED);
    let mut list = if *self_test { wrong_cases() } else { cases(selection.all) };
    list.retain(|case| selection.wants(&case.name()));
    if list.is_empty() {
        return Err("no case has that name".into());
    }
    let start = Instant::now();
    let tally = Mutex::new(Tally::default());
    let (waiting, busy): (Vec<_>, Vec<_>) =
        list.iter().enumerate().partition(|(_, case)| case.waits());
    let next = AtomicUsize::new(0);
    let one = |(number, case): &(usize, &Case)| {
        let begun = Instant::now();
        let place = outputs.path().join(format!("case{number:03}"));
        let result = run_case(case, &gear, &place);
        let seconds = begun.elapsed().as_secs_f64();
        tally
            .lock()
            .expect("no thread panics while it updates the counters")
            .add(case, &result, seconds);
    };
    std::thread::scope(|scope| {
        for case in &waiting {
            scope.spawn(|| one(case));
        }
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(case) = busy.get(next.fetch_add(1, Ordering::Relaxed)) {
                    one(case);
                }
            });
        }
    });
    let Tally { passed, failed, checks } = tally.into_inner()?;
    if failed > 0 {
        outputs.keep();
    }
    eprintln!("{checks} checks in {:.0} s", start.elapsed().as_secs_f64());
    eprintln!("{passed} passed, {failed} failed");
    if failed > 0 { Err("a check of the SM failed".into()) } else { Ok(()) }
}

/// The result of a case.
struct CaseResult {
    checks: usize,
    faults: Vec<String>,
    note: String,
}

fn run_case(case: &Case, gear: &Gear, place: &Path) -> CaseResult {
    match case.run(gear, place) {
        Ok(checked) => {
            CaseResult { checks: checked.checks, faults: checked.faults, note: checked.note }
        }
        Err(error) => {
            CaseResult { checks: 0, faults: vec![error.to_string()], note: String::new() }
        }
    }
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    checks: usize,
}

impl Tally {
    fn add(&mut self, case: &Case, result: &CaseResult, seconds: f64) {
        let CaseResult { checks, faults, note } = result;
        self.checks += checks;
        let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
        let line = format!("{checks:>4} checks {seconds:>5.1} s  {}{note}", case.name());
        let good = match case.must_say() {
            None => faults.is_empty(),
            Some(text) => faults.iter().any(|fault| fault.contains(text)),
        };
        if good {
            self.passed += 1;
            let word = if case.wrong.is_some() { "noticed" } else { "ok     " };
            eprintln!("{word}  {line}");
            return;
        }
        self.failed += 1;
        eprintln!("FAILED   {line}");
        for fault in faults.iter().take(SHOWN) {
            eprintln!("         {}", fault.replace('\n', "\n           "));
        }
        if faults.len() > SHOWN {
            eprintln!("         and {} more", faults.len() - SHOWN);
        }
        if let Some(text) = case.must_say() {
            eprintln!("         expected a fault that contains `{text}`");
        }
    }
}
