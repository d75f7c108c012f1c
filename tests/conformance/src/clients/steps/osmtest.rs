//! Flows of osmtest against OpenSM on the simulator.

use super::{Duration, Question, Stage, StageError, fs};

/// The flows that pass with Debian's umad library on Debian's ibsim: creation of an inventory, event forwarding,
/// quality of service, traps 64 and 65.
pub const FLOWS: [&str; 4] = ["c", "e", "q", "t"];

/// The flows whose responses have several MADs: services, multicast.
pub const FULL_FLOWS: [&str; 2] = ["s", "m"];

/// The flows that compare the fabric with the inventory: `a` runs all validation tests, `v` only validates the
/// inventory. The inventory contains only paths between base LIDs. Therefore these flows fail if the LMC is not 0.
pub const INVENTORY_FLOWS: [&str; 2] = ["a", "v"];

/// Runs the flows that must pass. If the preloaded umad library returns complete responses, more flows must pass.
pub(super) fn run(stage: &mut Stage<'_>) -> Result<(), StageError> {
    let mut flows = FLOWS.to_vec();
    if stage.setup.plan.flood {
        flows.push("f");
    }
    if stage.setup.complete {
        flows.extend(FULL_FLOWS);
        if stage.setup.plan.lmc == 0 {
            flows.extend(INVENTORY_FLOWS);
        }
    }
    let (node, directory) = (stage.actors.second.name.clone(), stage.seat.directory.clone());
    let inventory = directory.join("inventory");
    for flow in flows {
        let log = directory.join(format!("osmtest-{flow}.log"));
        let line = format!("osmtest -f {flow} -i {} -l {}", inventory.display(), log.display());
        let limit = Duration::from_secs(60);
        let question = Question { limit, ..Question::new(&line).on(&node) };
        let (answer, kept) = stage.run_client(&question)?;
        let passed = answer.code == Some(0) && answer.output.contains("\" PASS");
        stage.check(passed, || {
            let said = answer.output.lines().chain(answer.errors.lines()).last().unwrap_or("");
            format!("{question} failed: {said} ({})", kept.display())
        });
    }
    if stage.setup.complete {
        let text = fs::read_to_string(&inventory).unwrap_or_default();
        let found = text.matches("DEFINE_NODE").count();
        let expected = stage.setup.fabric.node_count();
        stage.check(found == expected, || {
            format!("osmtest's inventory has {found} of {expected} nodes")
        });
    }
    Ok(())
}
