//! The PortInfo settings and P_Key tables of ports.

use ib_types::PKey;
use ib_wire::mad::sm::{CapabilityMask, MtuCode, PhysState, PortInfo, PortState};

use super::{Context, enforce};
use crate::discovered_subnet::{DiscoveredSubnet, PortIndex};
use crate::plan::Plan;
use crate::vls;

/// Returns the PortInfo to write to a port. `None` if no field changes, or if the SM does not configure the port. The
/// SM does not configure end ports without a LID, switch ports without a link, and ports with a duplicate GUID at
/// either end.
pub(super) fn wanted(
    port_index: PortIndex,
    plan: &Plan,
    context: &Context<'_>,
) -> Option<PortInfo> {
    let found = &*context.found;
    let port = found.port(port_index);
    let info = **port.info.as_ref()?;
    let peer = port.peer.and_then(|peer| found.port(peer).info.as_deref());
    let is_end_port = found.is_end_port(port_index);
    if !is_end_port && peer.is_none() || !is_managed(port_index, found) {
        return None;
    }
    let mut wanted = info;
    keep(&mut wanted);
    let kept = wanted;
    if is_end_port {
        address(&mut wanted, port_index, plan, context)?;
    }
    if let Some(peer) = peer {
        link(&mut wanted, peer, port_index, context);
    }
    let rises = may_activate(port_index, found) && info.port_state == PortState::INIT;
    if rises {
        wanted.port_state = PortState::ARMED;
    }
    (wanted != kept).then_some(wanted)
}

/// Returns true if the SM may activate the port. Such a port is not Active yet, and has a link or is an enhanced port
/// 0.
pub(super) fn may_activate(port_index: PortIndex, found: &DiscoveredSubnet) -> bool {
    let (node, port) = (found.node(port_index.node), found.port(port_index));
    let waits = port
        .info
        .as_ref()
        .is_some_and(|info| matches!(info.port_state, PortState::INIT | PortState::ARMED));
    let full_port0 =
        port_index.port == 0 && node.switch.as_ref().is_some_and(|switch| switch.enhanced_port0);
    waits && (full_port0 || port.peer.is_some()) && is_managed(port_index, found)
}

/// Returns false if the SM does not manage the port, because the port or its peer has a duplicate GUID.
fn is_managed(port_index: PortIndex, found: &DiscoveredSubnet) -> bool {
    let ends = [Some(port_index), found.port(port_index).peer];
    !ends.into_iter().flatten().any(|end| found.is_excluded(end))
}

/// The P_Key table that is planned for a port.
pub(super) struct WantedKeys {
    /// Blocks of the planned table. P_Keys that are already in the port's table keep their index, because programs
    /// refer to a P_Key by its index.
    pub(super) blocks: Vec<[PKey; 32]>,
    /// Number of keys that are left out because the table is full.
    pub(super) left_out: usize,
}

/// Returns the planned P_Key table of a port; `None` if the port has no table.
pub(super) fn p_keys(port_index: PortIndex, context: &Context<'_>) -> Option<WantedKeys> {
    let (found, partitions) = (&*context.found, &context.config.partitions);
    let (port, kind) = (found.port(port_index), found.node(port_index.node).kind);
    let own = found
        .own
        .is_some_and(|own| own.node == port_index.node && (own == port_index || kind.is_switch()));
    let mut wanted = partitions.keys(port.guid, kind, own);
    let first = partitions.first_key(&wanted);
    let mut tables = port.p_keys.clone();
    let slots: Vec<&mut PKey> = tables.iter_mut().flatten().collect();
    let mut slots = slots;
    if slots.is_empty() {
        return None;
    }
    // In the first pass, planned P_Keys that are already in the table keep their index. In the second pass, a planned
    // P_Key takes the index of an old P_Key that differs only in the membership bit.
    let mut left: Vec<usize> = (0..slots.len()).collect();
    for same in [|a: PKey, b: PKey| a == b, |a: PKey, b: PKey| a.partition() == b.partition()] {
        left.retain(|&at| {
            let found = wanted.iter().position(|&key| {
                // Index 0 is reserved for the P_Key of the partition with the flag `indx0`.
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

/// Sets the port state fields to "no change" and `client_reregister` to false. A write of PortInfo then neither changes
/// the state of the port nor requests reregistration.
pub(super) const fn keep(info: &mut PortInfo) {
    info.port_state = PortState::NO_CHANGE;
    info.phys_state = PhysState::NO_CHANGE;
    info.link_down_default_state = PhysState::NO_CHANGE;
    info.client_reregister = false;
}

/// Sets the fields that only end ports have. Returns `None` if the plan has no LID for the port or for the SM's port.
fn address(
    info: &mut PortInfo,
    port_index: PortIndex,
    plan: &Plan,
    context: &Context<'_>,
) -> Option<()> {
    let (config, found) = (context.config, &*context.found);
    let lids = |port_index| plan.end_ports.get(&found.port(port_index).guid);
    let &(lid, count) = lids(port_index)?;
    let own = found.own.expect("the configured subnet includes the SM's port");
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
    info.client_reregister = can && context.must_reregister(port_index);
    Some(())
}

/// Sets the fields that depend on the port at the other end of the link.
fn link(info: &mut PortInfo, peer: &PortInfo, port_index: PortIndex, context: &Context<'_>) {
    let (config, found) = (context.config, &*context.found);
    let mtu = info.mtu_cap.0.min(peer.mtu_cap.0);
    info.neighbor_mtu = MtuCode(mtu.max(MtuCode::MTU_256.0));
    if let Some(vls) = vls::operational_vls(port_index, config, found) {
        info.operational_vls = vls;
    }
    if let Some(qos) = &config.qos {
        info.vl_high_limit = qos.of(found.node(port_index.node).kind, port_index.port).high_limit;
    }
    info.local_phy_errors = config.local_phy_errors_threshold;
    info.overrun_errors = config.overrun_errors_threshold;
    if !found.node(port_index.node).kind.is_switch() {
        return;
    }
    if let Some((inbound, outbound)) = enforce::directions(port_index, context) {
        info.partition_enforcement_inbound = inbound;
        info.partition_enforcement_outbound = outbound;
    }
    let peer_place = found.port(port_index).peer.expect("`link` is called for linked ports");
    let to_switch = found.node(peer_place.node).kind.is_switch();
    (info.hoq_life, info.vl_stall_count) = if to_switch {
        (config.head_of_queue_lifetime, config.vl_stall_count)
    } else {
        (config.leaf_head_of_queue_lifetime, config.leaf_vl_stall_count)
    };
}
