//! Runs unmodified clients of ibsim on ibsim and on `ibfabric sim`, and compares their outputs.

use std::path::{Path, PathBuf};
use std::time::Instant;

use conformance::clients::fabrics::{ENGINES, FABRICS, Plan, hurt};
use conformance::clients::normal::{ALLOWED, ALLOWED_OF_LIBRARIES, difference};
use conformance::clients::server::Kind;
use conformance::clients::stage::{Record, Setup, StageError};
use conformance::clients::steps;
use conformance::opensm::umad2sim;
use ib_topology::Fabric;

use crate::TaskResult;
use crate::cases::{Selection, list_allowed};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Preloads this umad library into the clients of `ibfabric sim`, instead of Debian's libumad2sim.so. The library
    /// must return responses of several MADs completely; Debian's library truncates them.
    #[arg(long, value_name = "PATH")]
    with_preload: Option<PathBuf>,
    /// Compares ibsim with itself. In an additional case, one of the two fabrics lacks a link. This case passes if the
    /// outputs differ.
    #[arg(long, conflicts_with_all = ["with_preload", "binary"])]
    self_test: bool,
}

pub(crate) fn run(args: &Args) -> TaskResult {
    let library = umad2sim()?;
    let preload = match &args.with_preload {
        Some(path) => {
            path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?
        }
        None => library.clone(),
    };
    let selection = &args.selection;
    let under_test =
        if args.self_test { Kind::Ibsim } else { Kind::Ibfabric(selection.ibfabric()?) };
    let mut outputs = selection.outputs("ibsim-clients-")?;
    let harness = Harness {
        umad: &library,
        preload: &preload,
        complete: args.with_preload.is_some(),
        under_test: &under_test,
    };
    eprintln!("permitted differences:");
    // If the two simulators' clients use different umad libraries, more differences are permitted.
    let of_libraries = if harness.complete { ALLOWED_OF_LIBRARIES } else { &[] };
    list_allowed(ALLOWED.iter().chain(of_libraries));
    let wanted = |case: &Case<'_>| selection.wants(&case.name());
    let mut tally = Tally::default();
    let start = Instant::now();
    let mut number = 0;
    for plan in FABRICS.iter().filter(|plan| selection.all || !plan.long) {
        if args.self_test && !plan.fits_ibsim() {
            continue;
        }
        let fabric = plan.fabric()?;
        for engine in ENGINES {
            let case = Case { plan: *plan, engine, fabric: &fabric, changed: None };
            if !wanted(&case) {
                continue;
            }
            number += 1;
            tally.add(&case, &harness, &outputs.path().join(format!("case{number:03}")));
        }
    }
    let plan = FABRICS[0];
    let fabric = plan.fabric()?;
    let mut changed = fabric.clone();
    hurt(&mut changed);
    let case = Case { plan, engine: ENGINES[0], fabric: &fabric, changed: Some(&changed) };
    if args.self_test && wanted(&case) {
        tally.add(&case, &harness, &outputs.path().join("changed"));
    }
    let failed = tally.failed > 0;
    if failed {
        outputs.keep();
    }
    eprintln!(
        "{} outputs and {} checks in {:.0} s",
        tally.answers,
        tally.checks,
        start.elapsed().as_secs_f64()
    );
    eprintln!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.passed + tally.failed == 0 {
        return Err("no case has that name".into());
    }
    if failed { Err("responses differ from those of ibsim".into()) } else { Ok(()) }
}

/// A fabric, and OpenSM's routing engine.
struct Case<'a> {
    plan: Plan,
    engine: &'static str,
    fabric: &'a Fabric,
    /// A different fabric for the simulator under test. The run must then report differences.
    changed: Option<&'a Fabric>,
}

impl Case<'_> {
    fn name(&self) -> String {
        let mut name = format!("{} | {}", self.plan.name(), self.engine);
        if self.changed.is_some() {
            name += " | against a fabric that lacks a link";
        }
        name
    }
}

/// The parameters that all cases share.
struct Harness<'a> {
    umad: &'a Path,
    preload: &'a Path,
    complete: bool,
    under_test: &'a Kind,
}

type Outcome = Result<Record, StageError>;

impl Harness<'_> {
    /// Runs the case concurrently on ibsim and on the simulator under test. If ibsim cannot read the fabric, the case
    /// runs only on the latter.
    fn run(&self, case: &Case<'_>, place: &Path) -> (Option<Outcome>, Outcome) {
        let real = Kind::Ibsim;
        let setup = |server, preload, complete, fabric, name| Setup {
            plan: case.plan,
            fabric,
            server,
            preload,
            complete,
            mixed: self.complete,
            engine: case.engine,
            directory: place.join(name),
        };
        let ours = case.changed.unwrap_or(case.fabric);
        let first = setup(&real, self.umad, false, case.fabric, "ibsim");
        let second = setup(self.under_test, self.preload, self.complete, ours, "under-test");
        let stage = if case.engine == ENGINES[0] { steps::thorough } else { steps::brief };
        if !case.plan.fits_ibsim() {
            return (None, stage(&second).and_then(|found| alone(found, &first)));
        }
        std::thread::scope(|scope| {
            let first = scope.spawn(|| stage(&first));
            let second = stage(&second);
            (Some(first.join().expect("the thread does not panic")), second)
        })
    }
}

/// Returns the results of a case that runs only on the simulator under test, because ibsim does not support the fabric.
/// Records a fault if ibsim supports it after all.
fn alone(mut found: Record, ibsim: &Setup<'_>) -> Outcome {
    found.checks += 1;
    if !steps::complains(ibsim)? {
        found
            .faults
            .push("ibsim supports the fabric, so the case must also run on ibsim".to_owned());
    }
    Ok(found)
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    answers: usize,
    checks: usize,
}

impl Tally {
    fn add(&mut self, case: &Case<'_>, harness: &Harness<'_>, place: &Path) {
        let start = Instant::now();
        let (first, second) = harness.run(case, place);
        let mut faults = Vec::new();
        let expected = first.and_then(|outcome| taken(outcome, &Kind::Ibsim, &mut faults));
        let found = taken(second, harness.under_test, &mut faults);
        if let (Some(expected), Some(found)) = (&expected, &found) {
            compare(expected, found, harness.complete, &mut faults);
        }
        let answers = found.as_ref().map_or(0, |record| record.entries.len());
        let checks = found.as_ref().map_or(0, |record| record.checks);
        let engine = found.as_ref().map_or("none", |record| record.engine.as_str());
        self.answers += answers;
        self.checks += checks;
        let seconds = start.elapsed().as_secs_f64();
        let fell_back = match engine == case.engine {
            true => String::new(),
            false => format!(" (routed with {engine})"),
        };
        let line = format!(
            "{answers:>4} outputs {checks:>3} checks {seconds:>5.1} s  {}{fell_back}",
            case.name()
        );
        let must_fail = case.changed.is_some();
        if faults.is_empty() != must_fail {
            self.passed += 1;
            let word = if must_fail { "noticed" } else { "same   " };
            eprintln!("{word}  {line}");
            return;
        }
        self.failed += 1;
        eprintln!("DIFFERS  {line}");
        let shown = 12;
        for fault in faults.iter().take(shown) {
            eprintln!("         {}", fault.replace('\n', "\n           "));
        }
        if faults.len() > shown {
            eprintln!("         and {} more", faults.len() - shown);
        }
        if must_fail {
            eprintln!("         expected differences, because the fabrics differ");
        }
    }
}

/// Moves the failed checks of a stage to `faults`. Returns the stage's results, or `None` if an error has ended the
/// stage.
fn taken(outcome: Outcome, server: &Kind, faults: &mut Vec<String>) -> Option<Record> {
    match outcome {
        Ok(mut record) => {
            let own = record.faults.drain(..);
            faults.extend(own.map(|fault| format!("on {}: {fault}", server.name())));
            Some(record)
        }
        Err(error) => {
            faults.push(format!("on {}: {error}", server.name()));
            None
        }
    }
}

fn compare(expected: &Record, found: &Record, complete: bool, faults: &mut Vec<String>) {
    // With `--with-preload`, responses that Debian's library truncates are not compared, because the other library
    // returns them completely.
    let pairs = expected.entries.iter().zip(&found.entries);
    for (a, b) in pairs.filter(|(a, _)| !(complete && a.many)) {
        if a.command != b.command {
            let difference = format!(
                "the commands differ: `{}` on ibsim, `{}` on the simulator under test",
                a.command, b.command
            );
            faults.push(difference);
            return;
        }
        if let Some(difference) = difference(&a.text, &b.text) {
            faults.push(format!(
                "{}\n{difference}\nwhole outputs: {} and {}",
                a.command,
                a.kept.display(),
                b.kept.display()
            ));
        }
    }
    if expected.entries.len() != found.entries.len() {
        let counts = (expected.entries.len(), found.entries.len());
        faults.push(format!(
            "{} outputs on ibsim, {} on the simulator under test",
            counts.0, counts.1
        ));
    }
}
