//! Our service of IB ACM, asked by a real `ib_acme` and by ours.

use conformance::acm::Scene;
use conformance::acm::umad::{self, ManagedBy, Place};
use conformance::clients::server::Kind;
use conformance::opensm::umad2sim;

use crate::cases::Selection;
use crate::{Chored, release_artifact};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn run(Args { selection }: &Args) -> Chored {
    let ibfabric = selection.ibfabric()?;
    let mut outputs = selection.outputs("acm-")?;
    let (mut checks, mut faults) = (0, Vec::new());
    if selection.wants("services") {
        let directory = outputs.path().join("services");
        std::fs::create_dir(&directory)?;
        let mut scene = Scene::open(&ibfabric, &directory)?;
        scene.run()?;
        checks += scene.checked.checks;
        faults.append(&mut scene.checked.faults);
    }
    // Under umad: real and own libraries, simulators and managers.
    let debian = umad2sim()?;
    let own = release_artifact(&["--package", "ib-umad-preload"], "ib_umad_preload")?;
    let ours = Kind::Ibfabric(ibfabric.clone());
    for (name, simulator, preload, manager) in [
        ("umad-ibsim-opensm", &Kind::Ibsim, &debian, ManagedBy::OpenSm),
        ("umad-ibsim-ours", &Kind::Ibsim, &debian, ManagedBy::Ours),
        ("umad-ours-opensm", &ours, &own, ManagedBy::OpenSm),
        ("umad-ours-ours", &ours, &debian, ManagedBy::Ours),
    ] {
        if !selection.wants(name) {
            continue;
        }
        let directory = outputs.path().join(name);
        std::fs::create_dir(&directory)?;
        let (ibfabric, directory) = (&ibfabric, &directory);
        let place = Place { ibfabric, simulator, preload, manager, directory };
        let mut scene = umad::Scene::open(&place)?;
        scene.run()?;
        eprintln!("{name}: {} checks", scene.checked.checks);
        checks += scene.checked.checks;
        faults.extend(scene.checked.faults.iter().map(|fault| format!("{name}: {fault}")));
    }
    for fault in &faults {
        eprintln!("         {fault}");
    }
    if !faults.is_empty() {
        outputs.keep();
    }
    eprintln!("{} checks passed, {} failed", checks.saturating_sub(faults.len()), faults.len());
    if faults.is_empty() { Ok(()) } else { Err("ib_acme is not answered as by ibacm".into()) }
}
