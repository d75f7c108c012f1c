//! The settings of ports.

use ib_types::PKey;
use ib_wire::mad::sm::{CapabilityMask, MtuCode, PhysState, PortInfo, PortState};

use super::{Context, enforce};
use crate::found::{Found, Place};
use crate::plan::Plan;
use crate::vls;

/// Returns what a port is to be written; `None` when nothing has to change, and for ports that have
/// neither LIDs nor a link.
pub(super) fn wanted(place: Place, plan: &Plan, context: &Context<'_>) -> Option<PortInfo> {
    let found = &*context.found;
    let port = found.port(place);
    let info = **port.info.as_ref()?;
    let peer = port.peer.and_then(|peer| found.port(peer).info.as_deref());
    let is_end_port = found.is_end_port(place);
    if !is_end_port && peer.is_none() || !is_managed(place, found) {
        return None;
    }
    let mut wanted = info;
    keep(&mut wanted);
    let kept = wanted;
    if is_end_port {
        address(&mut wanted, place, plan, context)?;
    }
    if let Some(peer) = peer {
        link(&mut wanted, peer, place, context);
    }
    let rises = may_activate(place, found) && info.port_state == PortState::INIT;
    if rises {
        wanted.port_state = PortState::ARMED;
    }
    (wanted != kept).then_some(wanted)
}

/// Returns true for a port that the manager brings into service: one with a link, and a full port 0 of
/// a switch.
pub(super) fn may_activate(place: Place, found: &Found) -> bool {
    let (node, port) = (found.node(place.node), found.port(place));
    let waits = port
        .info
        .as_ref()
        .is_some_and(|info| matches!(info.port_state, PortState::INIT | PortState::ARMED));
    let full_port0 =
        place.port == 0 && node.switch.as_ref().is_some_and(|switch| switch.enhanced_port0);
    waits && (full_port0 || port.peer.is_some()) && is_managed(place, found)
}

/// Returns false for a port that is left out, and at the other end of whose link there is one.
fn is_managed(place: Place, found: &Found) -> bool {
    let ends = [Some(place), found.port(place).peer];
    !ends.into_iter().flatten().any(|end| found.is_left_out(end))
}

/// The P_Keys that a port shall have.
pub(super) struct WantedKeys {
    /// By block. Those that it has already stay where they are: programs know them by their place.
    pub(super) blocks: Vec<[PKey; 32]>,
    /// How many it has no room for.
    pub(super) left_out: usize,
}

/// Returns the P_Keys that a port shall have; `None` for a port that holds none.
pub(super) fn p_keys(place: Place, context: &Context<'_>) -> Option<WantedKeys> {
    let (found, partitions) = (&*context.found, &context.config.partitions);
    let (port, kind) = (found.port(place), found.node(place.node).kind);
    let own =
        found.own.is_some_and(|own| own.node == place.node && (own == place || kind.is_switch()));
    let mut wanted = partitions.keys(port.guid, kind, own);
    let first = partitions.first_key(&wanted);
    let mut tables = port.p_keys.clone();
    let slots: Vec<&mut PKey> = tables.iter_mut().flatten().collect();
    let mut slots = slots;
    if slots.is_empty() {
        return None;
    }
    // A membership that changes stays at its place, too.
    let mut left: Vec<usize> = (0..slots.len()).collect();
    for same in [|a: PKey, b: PKey| a == b, |a: PKey, b: PKey| a.partition() == b.partition()] {
        left.retain(|&at| {
            let found = wanted.iter().position(|&key| {
                // The first place is for the key that shall stand there.
                same(key, *slots[at]) && (at > 0 || first.is_none_or(|first| first == key))
            });
            if let Some(found) = found {
                *slots[at] = wanted.remove(found);
            }
            found.is_none()
        });
    }
    for at in left {
        *slots[at] = PKey(0);
    }
    if let Some(first) = first
        && let Some(at) = wanted.iter().position(|&key| key == first)
    {
        wanted.remove(at);
        *slots[0] = first;
    }
    let mut left = wanted.into_iter();
    for slot in slots.iter_mut().filter(|slot| slot.partition() == 0) {
        **slot = left.next().unwrap_or(PKey(0));
    }
    let left_out = left.len();
    Some(WantedKeys { blocks: tables, left_out })
}

/// Makes settings that change no state when they are written.
pub(super) const fn keep(info: &mut PortInfo) {
    info.port_state = PortState::NO_CHANGE;
    info.phys_state = PhysState::NO_CHANGE;
    info.link_down_default_state = PhysState::NO_CHANGE;
    info.client_reregister = false;
}

/// Sets what ports with LIDs have. `None` when the plan has no LIDs for the port.
fn address(info: &mut PortInfo, place: Place, plan: &Plan, context: &Context<'_>) -> Option<()> {
    let (config, found) = (context.config, &*context.found);
    let lids = |place| plan.end_ports.get(&found.port(place).guid);
    let &(lid, count) = lids(place)?;
    let own = found.own.expect("the own port was found");
    let own = if found.node(own.node).kind.is_switch() { own.node.at(0) } else { own };
    let &(manager, _) = lids(own)?;
    info.lid = lid.get();
    info.lmc = count.trailing_zeros() as u8;
    info.master_sm_lid = manager.get();
    info.master_sm_sl = 0;
    info.gid_prefix = config.subnet_prefix;
    info.m_key = config.m_key;
    info.m_key_lease_period = config.m_key_lease_period;
    info.m_key_protect = config.m_key_protection_level;
    info.subnet_timeout = config.subnet_timeout;
    let can = info.capability_mask.contains(CapabilityMask::CLIENT_REREGISTRATION);
    info.client_reregister = can && context.reregisters(place);
    Some(())
}

/// Sets what ports with a link have.
fn link(info: &mut PortInfo, peer: &PortInfo, place: Place, context: &Context<'_>) {
    let (config, found) = (context.config, &*context.found);
    let mtu = info.mtu_cap.0.min(peer.mtu_cap.0);
    info.neighbor_mtu = MtuCode(mtu.max(MtuCode::MTU_256.0));
    if let Some(vls) = vls::operational_vls(place, config, found) {
        info.operational_vls = vls;
    }
    if let Some(qos) = &config.qos {
        info.vl_high_limit = qos.of(found.node(place.node).kind, place.port).high_limit;
    }
    info.local_phy_errors = config.local_phy_errors_threshold;
    info.overrun_errors = config.overrun_errors_threshold;
    if !found.node(place.node).kind.is_switch() {
        return;
    }
    if let Some((inbound, outbound)) = enforce::directions(place, context) {
        info.partition_enforcement_inbound = inbound;
        info.partition_enforcement_outbound = outbound;
    }
    let peer_place = found.port(place).peer.expect("it has a link");
    let to_switch = found.node(peer_place.node).kind.is_switch();
    (info.hoq_life, info.vl_stall_count) = if to_switch {
        (config.head_of_queue_lifetime, config.vl_stall_count)
    } else {
        (config.leaf_head_of_queue_lifetime, config.leaf_vl_stall_count)
    };
}
