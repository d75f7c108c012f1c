//! Checks that osmtest flows that pass with OpenSM also pass with `ibfabric sm`.

use std::time::Duration;

use super::pair::Pair;
use super::scene::{Checked, Outcome, Scene};
use crate::clients::fabrics::Plan;
use crate::clients::program::Question;
use crate::clients::stage::StageError;
use crate::clients::steps::{FLOWS, FULL_FLOWS, INVENTORY_FLOWS};

/// The result of a flow: whether it passed, and the last line of its output.
struct Flow {
    name: &'static str,
    passed: bool,
    said: String,
}

/// Runs the flows with OpenSM and with `ibfabric sm`, and compares the results.
///
/// Flows that need all MADs of a response run only if the umad library returns them.
///
/// # Errors
/// Fails if a program cannot be started.
pub fn run(pair: &Pair<'_>) -> Outcome {
    let whole = pair.umad == pair.gear.own;
    let ([theirs, ours], mut checked) = pair.look(|scene| flows(scene, pair.plan, whole))?;
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
        let (answer, kept) =
            scene.run_client(&Question { limit, ..Question::new(&line).on(&node) })?;
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
            format!("osmtest -f {name} passes with OpenSM, but fails with ibfabric sm: {said}")
        });
    }
    // Flows that fail with OpenSM are not compared. The flows in [`FLOWS`] must pass with OpenSM.
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
