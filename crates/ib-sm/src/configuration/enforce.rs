//! Partitions that switches enforce for their hosts: what a host may say and hear is checked where it
//! is plugged in.

use ib_types::PKey;

use super::{Context, Work, places};
use crate::config::PartEnforce;
use crate::fault::Fault;
use crate::found::Place;

/// The keys in a block.
const BLOCK: usize = 32;

/// Returns whether a port of a switch checks what comes in and what leaves; `None` for ports that the
/// manager has no say in.
pub(super) fn directions(place: Place, context: &Context<'_>) -> Option<(bool, bool)> {
    let switch = context.found.node(place.node).switch.filter(|_| place.port > 0)?;
    (switch.partition_enforcement_cap > 0).then(|| match keys(place, context) {
        Some(_) => context.config.part_enforce.directions(),
        None => (false, false),
    })
}

/// Returns the P_Keys that a switch lets pass at a port, by block: those of the host at its other end.
/// `None` where nothing is enforced, and where there are more keys than the port has room for.
pub(super) fn keys(place: Place, context: &Context<'_>) -> Option<Vec<[PKey; BLOCK]>> {
    let (keys, room) = wanted(place, context)?;
    if keys.len() > usize::from(room) {
        return None;
    }
    let mut blocks = vec![[PKey(0); BLOCK]; usize::from(room).div_ceil(BLOCK)];
    for (slot, key) in blocks.iter_mut().flatten().zip(keys) {
        *slot = key;
    }
    Some(blocks)
}

/// Returns the P_Keys of the host behind a port of a switch, and how many the port has room for; `None`
/// where nothing is enforced.
fn wanted(place: Place, context: &Context<'_>) -> Option<(Vec<PKey>, u16)> {
    let found = &*context.found;
    if context.config.part_enforce == PartEnforce::Off {
        return None;
    }
    let room = found.node(place.node).switch.filter(|_| place.port > 0)?.partition_enforcement_cap;
    let host = found.port(place).peer.filter(|peer| !found.node(peer.node).kind.is_switch())?;
    let keys = context.config.partitions.keys(
        found.port(host).guid,
        found.node(host.node).kind,
        found.own == Some(host),
    );
    Some((keys, room))
}

/// Returns the blocks that differ from what the switches hold, and names ports that have no room.
pub(super) fn work(context: &Context<'_>, faults: &mut Vec<Fault>) -> Vec<Work> {
    let mut work = Vec::new();
    for place in places(context.found) {
        let Some((keys, room)) = wanted(place, context) else { continue };
        if room > 0 && keys.len() > usize::from(room) {
            let what = format!(
                "has room to check {room} P_Keys, and the host there has {}: nothing is checked",
                keys.len()
            );
            faults.push(Fault::Inconsistent { at: context.found.name(place), what });
        }
        let Some(wanted) = self::keys(place, context) else { continue };
        let known = &context.found.port(place).p_keys;
        for (block, wanted) in (0..).zip(&wanted) {
            if known.get(usize::from(block)) != Some(wanted) {
                work.push(Work::PKeys { place, block });
            }
        }
    }
    work
}
