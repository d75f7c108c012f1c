//! Tests ibfabric's implementations of `MadLink` on ibsim and on `ibfabric sim`, with a real OpenSM.

use conformance::clients::server::Kind;
use conformance::links::{Scene, Setup};
use conformance::opensm::umad2sim;

use crate::{TaskResult, release_artifact, release_binary};

pub(crate) fn run() -> TaskResult {
    let debian = umad2sim()?;
    let own = release_artifact(&["--package", "ib-preload"], "ib_preload")?;
    let example = ["--package", "ib-umad", "--example", "umad_node_info"];
    let umad_program = release_artifact(&example, "umad_node_info")?;
    let ours = Kind::Ibfabric(release_binary()?);
    let (mut passed, mut failed) = (0, 0);
    for (simulator, preload, complete) in [
        (&Kind::Ibsim, &debian, false),
        (&Kind::Ibsim, &own, true),
        (&ours, &debian, false),
        (&ours, &own, true),
    ] {
        let library = preload.file_name().unwrap_or_default().display();
        eprintln!("{} and {library}", simulator.name());
        let scratch = tempfile::tempdir()?;
        let setup = Setup {
            simulator,
            preload,
            complete,
            umad_program: &umad_program,
            directory: scratch.path(),
        };
        for report in Scene::start(&setup)?.check() {
            eprintln!("  {report}");
            if report.fault.is_none() {
                passed += 1;
            } else {
                failed += 1;
            }
        }
    }
    eprintln!("{passed} passed, {failed} failed");
    if failed > 0 { Err("a check of a link failed".into()) } else { Ok(()) }
}
