//! The settings of ports.

use ib_wire::mad::sm::{CapabilityMask, MtuCode, PhysState, PortInfo, PortState, VlCap};

use super::Context;
use crate::found::{Found, Place};
use crate::plan::Plan;

/// Returns what a port is to be written; `None` when nothing has to change, and for ports that have
/// neither LIDs nor a link.
pub(super) fn wanted(place: Place, plan: &Plan, context: &Context<'_>) -> Option<PortInfo> {
    let found = &*context.found;
    let port = found.port(place);
    let info = **port.info.as_ref()?;
    let peer = port.peer.and_then(|peer| found.port(peer).info.as_deref());
    let is_end_port = found.is_end_port(place);
    if !is_end_port && peer.is_none() {
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
    waits && (full_port0 || port.peer.is_some())
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
    info.client_reregister = context.reregister && can;
    Some(())
}

/// Sets what ports with a link have.
fn link(info: &mut PortInfo, peer: &PortInfo, place: Place, context: &Context<'_>) {
    let (config, found) = (context.config, &*context.found);
    let mtu = info.mtu_cap.0.min(peer.mtu_cap.0);
    info.neighbor_mtu = MtuCode(mtu.max(MtuCode::MTU_256.0));
    let lanes = info.vl_cap.0.min(peer.vl_cap.0).min(config.max_op_vls.0);
    info.operational_vls = VlCap(lanes.max(VlCap::VL0.0));
    info.local_phy_errors = config.local_phy_errors_threshold;
    info.overrun_errors = config.overrun_errors_threshold;
    if !found.node(place.node).kind.is_switch() {
        return;
    }
    let peer_place = found.port(place).peer.expect("it has a link");
    let to_switch = found.node(peer_place.node).kind.is_switch();
    (info.hoq_life, info.vl_stall_count) = if to_switch {
        (config.head_of_queue_lifetime, config.vl_stall_count)
    } else {
        (config.leaf_head_of_queue_lifetime, config.leaf_vl_stall_count)
    };
}
