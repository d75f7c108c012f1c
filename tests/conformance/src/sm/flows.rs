//! What passes of osmtest with OpenSM passes with ours.

use std::path::Path;
use std::time::Duration;

use super::ours;
use super::scene::{Checked, Gear, Outcome, Scene};
use crate::clients::fabrics::Plan;
use crate::clients::manager;
use crate::clients::program::Question;
use crate::clients::server::Kind;
use crate::clients::stage::StageError;
use crate::clients::steps::{FLOWS, FULL_FLOWS, INVENTORY_FLOWS};

/// How a flow went: whether it passed, and what was said last.
struct Flow {
    name: &'static str,
    passed: bool,
    said: String,
}

/// Runs the flows with OpenSM and with ours, each on a simulator of its own.
///
/// With `whole` the clients have the library that hands them whole answers, and the flows that need it
/// are run as well. With `managed` false nobody manages our side, which must be noticed.
///
/// # Errors
/// Fails when a program cannot be run.
pub fn run(
    gear: &Gear,
    kind: &Kind,
    plan: Plan,
    (whole, managed): (bool, bool),
    directory: &Path,
) -> Outcome {
    let fabric = plan.fabric().map_err(|error| StageError::Recipe(error.into()))?;
    let library = if whole { &gear.own } else { &gear.debian };
    let theirs = || {
        let mut scene = Scene::open(gear, kind, &fabric, library, &directory.join("opensm"))?;
        let options = manager::Options { lmc: plan.lmc, ..manager::Options::default() };
        let opensm = scene.manage_by_opensm(&options)?;
        let flows = flows(&mut scene, plan, whole)?;
        drop(opensm);
        Ok::<_, StageError>((flows, scene.close()))
    };
    let ours = || {
        let mut scene = Scene::open(gear, kind, &fabric, library, &directory.join("ours"))?;
        let options = ours::Options { lmc: plan.lmc, ..ours::Options::default() };
        let mut ours = scene.manage(&options)?;
        if !managed {
            drop(ours);
            return Ok((flows(&mut scene, plan, whole)?, scene.close()));
        }
        let flows = flows(&mut scene, plan, whole)?;
        scene.check(ours.is_alive(), || format!("ibfabric sm died: {}", ours.said()));
        drop(ours);
        Ok::<_, StageError>((flows, scene.close()))
    };
    let (theirs, ours) = std::thread::scope(|scope| {
        let theirs = scope.spawn(theirs);
        let ours = ours();
        (theirs.join().expect("a scene does not panic"), ours)
    });
    let ((theirs, mut checked), (ours, own)) = (theirs?, ours?);
    checked.checks += own.checks;
    checked.faults.extend(own.faults);
    compare(&theirs, &ours, &mut checked);
    Ok(checked)
}

fn flows(scene: &mut Scene<'_>, plan: Plan, whole: bool) -> Result<Vec<Flow>, StageError> {
    let mut names = FLOWS.to_vec();
    if plan.flood {
        names.push("f");
    }
    if whole {
        names.extend(FULL_FLOWS);
        if plan.lmc == 0 {
            names.extend(INVENTORY_FLOWS);
        }
    }
    let adapters = scene.fabric.nodes().filter(|(_, node)| !node.kind.is_switch());
    let node = adapters.map(|(_, node)| node.name.clone()).nth(1).ok_or(StageError::NoActors)?;
    let work = scene.seat.directory.clone();
    let inventory = work.join("inventory");
    let mut flows = Vec::new();
    for name in names {
        let log = work.join(format!("osmtest-{name}.log"));
        let line = format!("osmtest -f {name} -i {} -l {}", inventory.display(), log.display());
        let limit = Duration::from_secs(120);
        let (answer, kept) = scene.hear(&Question { limit, ..Question::new(&line).on(&node) })?;
        let passed = answer.code == Some(0) && answer.output.contains("\" PASS");
        let last = answer.output.lines().chain(answer.errors.lines()).last().unwrap_or_default();
        flows.push(Flow { name, passed, said: format!("{last} ({})", kept.display()) });
    }
    Ok(flows)
}

fn compare(theirs: &[Flow], ours: &[Flow], checked: &mut Checked) {
    let mut passed = String::new();
    for (their, our) in theirs.iter().zip(ours) {
        if their.passed {
            passed.push_str(their.name);
        }
        checked.check(our.passed || !their.passed, || {
            let Flow { name, said, .. } = our;
            format!("osmtest -f {name} passes with OpenSM, and not with ours: {said}")
        });
    }
    // Flows that pass with nobody show nothing.
    checked.check(FLOWS.iter().all(|flow| passed.contains(flow)), || {
        let failed: Vec<String> = theirs
            .iter()
            .filter(|flow| !flow.passed)
            .map(|f| format!("{}: {}", f.name, f.said))
            .collect();
        format!("osmtest does not pass with OpenSM: {}", failed.join("\n"))
    });
    checked.note = format!("flows {passed}");
}
