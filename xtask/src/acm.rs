//! Our service of IB ACM, asked by a real `ib_acme` and by ours.

use conformance::acm::Scene;

use crate::Chored;
use crate::cases::Selection;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn run(Args { selection }: &Args) -> Chored {
    let ibfabric = selection.ibfabric()?;
    let mut outputs = selection.outputs("acm-")?;
    let mut scene = Scene::open(&ibfabric, outputs.path())?;
    scene.run()?;
    let (checks, faults) = (scene.checked.checks, &scene.checked.faults);
    for fault in faults {
        eprintln!("         {fault}");
    }
    if !faults.is_empty() {
        outputs.keep();
    }
    eprintln!("{} checks passed, {} failed", checks.saturating_sub(faults.len()), faults.len());
    if faults.is_empty() { Ok(()) } else { Err("ib_acme is not answered as by ibacm".into()) }
}
