//! Our tracer on ibsim and on `ibfabric sim`, beside a real `ibtracert` and a real `ibping`.

use std::time::Instant;

use conformance::opensm::umad2sim;
use conformance::sm::scene::Gear;
use conformance::tracer::cases;

use crate::cases::Selection;
use crate::{Chored, release_artifact};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Runs a case in which something is wrong, which must fail and say what.
    #[arg(long, conflicts_with = "all")]
    self_test: bool,
}

pub(crate) fn run(Args { selection, self_test }: &Args) -> Chored {
    let gear = Gear {
        ibfabric: selection.ibfabric()?,
        debian: umad2sim()?,
        own: release_artifact(&["--package", "ib-umad-preload"], "ib_umad_preload")?,
    };
    let mut outputs = selection.outputs("tracer-")?;
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
            true => faults.iter().any(|fault| fault.contains("the first difference")),
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
    if failed > 0 { Err("the tracer does not do what it should".into()) } else { Ok(()) }
}
