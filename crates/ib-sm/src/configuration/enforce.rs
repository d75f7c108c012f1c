//! Partition enforcement: at the ports of hosts, switches check the P_Keys of packets.

use ib_types::PKey;

use super::{Context, Write, all_ports};
use crate::config::PartEnforce;
use crate::discovered_subnet::PortIndex;
use crate::fault::Fault;

/// Number of P_Keys in a block.
const BLOCK: usize = 32;

/// Returns whether a switch port has to check inbound packets and outbound packets. `None` for port 0 and for switches
/// that cannot check P_Keys.
pub(super) fn directions(port_index: PortIndex, context: &Context<'_>) -> Option<(bool, bool)> {
    let switch = context.found.node(port_index.node).switch.filter(|_| port_index.port > 0)?;
    (switch.partition_enforcement_cap > 0).then(|| match keys(port_index, context) {
        Some(_) => context.config.part_enforce.directions(),
        None => (false, false),
    })
}

/// Returns the blocks of P_Keys that a switch port enforces: those of the host at the other end of the link. `None` if
/// the port does not enforce partitions, or if the keys do not fit into its table.
pub(super) fn keys(port_index: PortIndex, context: &Context<'_>) -> Option<Vec<[PKey; BLOCK]>> {
    let (keys, room) = wanted(port_index, context)?;
    if keys.len() > usize::from(room) {
        return None;
    }
    let mut blocks = vec![[PKey(0); BLOCK]; usize::from(room).div_ceil(BLOCK)];
    for (slot, key) in blocks.iter_mut().flatten().zip(keys) {
        *slot = key;
    }
    Some(blocks)
}

/// Returns the P_Keys of the host at a switch port, and the number of P_Keys that the switch port's table can hold.
/// `None` if the port does not enforce partitions.
fn wanted(port_index: PortIndex, context: &Context<'_>) -> Option<(Vec<PKey>, u16)> {
    let found = &*context.found;
    if context.config.part_enforce == PartEnforce::Off {
        return None;
    }
    let room = found
        .node(port_index.node)
        .switch
        .filter(|_| port_index.port > 0)?
        .partition_enforcement_cap;
    let host =
        found.port(port_index).peer.filter(|peer| !found.node(peer.node).kind.is_switch())?;
    let keys = context.config.partitions.keys(
        found.port(host).guid,
        found.node(host.node).kind,
        found.own == Some(host),
    );
    Some((keys, room))
}

/// Returns writes for the P_Key blocks that differ from those in the switches. Adds a fault for each port whose table
/// is too small.
pub(super) fn work(context: &Context<'_>, faults: &mut Vec<Fault>) -> Vec<Write> {
    let mut work = Vec::new();
    for port_index in all_ports(context.found) {
        let Some((keys, room)) = wanted(port_index, context) else { continue };
        if room > 0 && keys.len() > usize::from(room) {
            let what = format!(
                "can check {room} P_Keys, but its host has {}: nothing is checked",
                keys.len()
            );
            faults.push(Fault::Inconsistent { at: context.found.name(port_index), what });
        }
        let Some(wanted) = self::keys(port_index, context) else { continue };
        let known = &context.found.port(port_index).p_keys;
        for (block, wanted) in (0..).zip(&wanted) {
            if known.get(usize::from(block)) != Some(wanted) {
                work.push(Write::PKeys { port_index, block });
            }
        }
    }
    work
}
