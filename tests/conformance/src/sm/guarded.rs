//! A port with an M_Key that the SM does not know.

use super::ours::Options;
use super::scene::{Scene, patient};
use crate::clients::expect;
use crate::clients::fabrics::Plan;
use crate::clients::server::Order;
use crate::clients::stage::StageError;

const KEY: u64 = 0x1234_5678_9abc_def0;

/// The lowest protection level at which the port cannot be read without the M_Key. At level 1, the port can be read but
/// not written without the M_Key.
pub const READ: u8 = 2;

/// Sets an M_Key with the protection level `level` at the port of the last HCA, and brings the fabric up. If `level` is
/// 0, sets no M_Key.
///
/// # Errors
/// Fails if a program cannot be started, or if the SM does not come up.
pub fn run(scene: &mut Scene<'_>, plan: Plan, level: u8) -> Result<(), StageError> {
    let fabric = scene.fabric;
    let last = fabric.nodes().filter(|(_, node)| !node.kind.is_switch()).last();
    let Some((id, node)) = last else { return Err(StageError::NoActors) };
    let port = fabric.ports_of(id).find(|(_, port)| port.peer.is_some());
    let Some((_, port)) = port else { return Err(StageError::NoActors) };
    let routes = expect::directed_routes(
        fabric,
        expect::seat_port(fabric, &scene.seat.node).ok_or(StageError::NoActors)?,
    );
    let route = routes.get(&id).ok_or(StageError::NoActors)?.clone();
    if level > 0 {
        scene.order(Order::MKey(&node.name, port.number, KEY, level))?;
    }
    let mut ours = scene.manage(&Options::default())?;

    let said = ours.output();
    let guid = node.guid.to_string();
    // If the SM cannot read a node, its output names the node by the directed route to it.
    let named = said.lines().any(|line| line.contains(&guid) || line.contains(&route));
    scene.check(named, || {
        format!("expected the guarded port {guid} in the output of the SM: {said}")
    });

    // From level `READ` on, the port responds only to requests that contain the M_Key.
    let key = format!("{KEY:#x}");
    let number = port.number;
    let (answer, kept) =
        scene.run_client(&patient(&format!("smpquery -D portinfo {route} {number}")))?;
    scene.check((answer.code == Some(0)) == (level < READ), || {
        format!(
            "without the M_Key, the port must respond at level 1 and not at level 2 ({})",
            kept.display()
        )
    });
    let line = format!("smpquery -y {key} -D portinfo {route} {number}");
    let (answer, kept) = scene.run_client(&patient(&line))?;
    let found = ["LinkState", "Lid"].map(|name| expect::field(&answer.output, name));
    scene.check(found == [Some("Initialize"), Some("0")], || {
        format!("the guarded port was configured: {found:?} ({})", kept.display())
    });

    let (answer, kept) = scene.run_client(&patient("iblinkinfo"))?;
    let active = expect::link_ends(&answer.output, plan.speed);
    let ends = 2 * fabric.link_count();
    // The protected end of the link is not active. The other end may be inactive, too.
    scene.check((ends - 2..ends).contains(&active), || {
        format!("iblinkinfo shows {active} of {ends} link ends as active ({})", kept.display())
    });
    let lids = scene.lids()?;
    let without: Vec<_> = lids.iter().filter(|&(_, &lid)| lid == 0).map(|(guid, _)| guid).collect();
    scene.check(without.iter().all(|&&guid| guid == port.guid), || {
        format!("ports without a LID: {without:?}")
    });
    scene.check(ours.is_alive(), || format!("ibfabric sm has ended unexpectedly: {said}"));
    Ok(())
}
