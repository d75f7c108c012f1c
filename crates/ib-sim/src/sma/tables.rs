//! Returns and writes the tables of a node that the attribute modifier of a request selects, after
//! range checks.

use ib_topology::PortId;
use ib_types::Guid;
use ib_wire::mad::MadStatus;
use ib_wire::mad::sm::{LinearForwardingBlock, MulticastForwardingBlock, SwitchInfo};

use crate::fabric::FabricState;
use crate::node::{Node, Switch};
use crate::port::{Port, p_key_capacity};

/// Returns the switch state of a node. Fails if the node is not a switch.
pub(super) fn switch(node: &Node) -> Result<&Switch, MadStatus> {
    node.switch.as_deref().ok_or(MadStatus::BAD_METHOD_ATTRIBUTE)
}

/// Returns the switch state of a node for writing. Fails if the node is not a switch.
pub(super) fn switch_mut(node: &mut Node) -> Result<&mut Switch, MadStatus> {
    node.switch.as_deref_mut().ok_or(MadStatus::BAD_METHOD_ATTRIBUTE)
}

/// Returns a block of the GUID table of a port.
pub(super) fn guid_block(port: &Port, block: u32) -> Result<[Guid; 8], MadStatus> {
    if block >= u32::from(port.info.guid_cap).div_ceil(8) {
        return Err(MadStatus::BAD_FIELD);
    }
    let further = port.tables.as_ref().map_or(&[][..], |tables| &tables.guids);
    let all = |index: usize| match index {
        0 => port.guid,
        index => further.get(index - 1).copied().unwrap_or(Guid(0)),
    };
    Ok(std::array::from_fn(|index| all(block as usize * 8 + index)))
}

/// Writes a block of the GUID table of a port.
pub(super) fn set_guid_block(
    fabric: &mut FabricState,
    port: PortId,
    block: u32,
    guids: &[Guid; 8],
) -> Result<(), MadStatus> {
    let capacity = usize::from(fabric.port(port).info.guid_cap);
    if block as usize >= capacity.div_ceil(8) {
        return Err(MadStatus::BAD_FIELD);
    }
    let first = block as usize * 8;
    let own = &mut fabric.tables_mut(port).guids;
    // The first GUID of the table is the port GUID, which is read-only.
    for (index, &guid) in (first..capacity).zip(guids).filter(|&(index, _)| index > 0) {
        if own.len() < index {
            own.resize(index, Guid(0));
        }
        own[index - 1] = guid;
    }
    Ok(())
}

/// Returns the port whose P_Key table a modifier selects, and the index of the first P_Key in the
/// selected block.
pub(super) fn p_key_block(
    fabric: &FabricState,
    port: PortId,
    modifier: u32,
) -> Result<(PortId, usize), MadStatus> {
    let kind = fabric.node_of(port).kind;
    let target = if kind.is_switch() { fabric.selected_port(port, modifier >> 16)? } else { port };
    let capacity = p_key_capacity(kind, fabric.port(target).number);
    let first = (modifier & 0xffff) * 32;
    if first >= u32::from(capacity) {
        return Err(MadStatus::BAD_FIELD);
    }
    Ok((target, first as usize))
}

/// Returns the port whose SL-to-VL table a modifier selects, and the index of the table at this
/// port.
pub(super) fn sl_to_vl_table(
    fabric: &FabricState,
    port: PortId,
    modifier: u32,
) -> Result<(PortId, usize), MadStatus> {
    let node = fabric.node_of(port);
    if !node.kind.is_switch() {
        return Ok((port, 0));
    }
    let (arrival, leaving) = (modifier >> 8 & 0xff, modifier & 0xff);
    // Bits 16–31 of the modifier are used only with SwitchInfo:OptimizedSLtoVLMappingProgramming, which is not
    // supported.
    if modifier >> 16 != 0 || arrival > u32::from(node.ports) {
        return Err(MadStatus::BAD_FIELD);
    }
    Ok((fabric.selected_port(port, leaving)?, arrival as usize))
}

/// Returns the port whose VL arbitration table a modifier selects, and the index of the selected
/// block.
pub(super) fn arbitration_block(
    fabric: &FabricState,
    port: PortId,
    modifier: u32,
) -> Result<(PortId, usize), MadStatus> {
    let (part, number) = (modifier >> 16, modifier & 0xffff);
    let target = fabric.selected_port(port, number)?;
    let info = &fabric.port(target).info;
    let entries = match part {
        1 | 2 => info.vl_arbitration_low_cap,
        3 | 4 => info.vl_arbitration_high_cap,
        _ => return Err(MadStatus::BAD_FIELD),
    };
    if part % 2 == 0 && entries <= 32 {
        return Err(MadStatus::BAD_FIELD);
    }
    Ok((target, part as usize - 1))
}

/// Returns the LFT block that a modifier selects.
pub(super) fn linear_block(switch: &Switch, modifier: u32) -> Result<u16, MadStatus> {
    if modifier >= u32::from(switch.info.linear_fdb_cap.div_ceil(LinearForwardingBlock::LIDS)) {
        return Err(MadStatus::BAD_FIELD);
    }
    Ok(modifier as u16)
}

/// Returns the MFT block that a modifier selects, and the number of the selected group of 16 ports.
pub(super) fn multicast_block(
    ports: u8,
    switch: &Switch,
    modifier: u32,
) -> Result<(u16, u8), MadStatus> {
    let (block, position) = MulticastForwardingBlock::from_modifier(modifier);
    let blocks = switch.info.multicast_fdb_cap.div_ceil(MulticastForwardingBlock::LIDS);
    if block >= blocks || position > ports / 16 {
        return Err(MadStatus::BAD_FIELD);
    }
    Ok((block, position))
}

/// Writes the writable fields of SwitchInfo. Returns true if this changed `LinearFDBTop`.
pub(super) fn set_switch_info(
    switch: &mut Switch,
    ports: u8,
    to: &SwitchInfo,
) -> Result<bool, MadStatus> {
    let info = &mut switch.info;
    if to.linear_fdb_top >= info.linear_fdb_cap && to.linear_fdb_top != 0 {
        return Err(MadStatus::BAD_FIELD);
    }
    let defaults = [to.default_multicast_primary_port, to.default_multicast_not_primary_port];
    if defaults.iter().any(|&port| port != 0xff && port > ports) {
        return Err(MadStatus::BAD_FIELD);
    }
    let top = std::mem::replace(&mut info.linear_fdb_top, to.linear_fdb_top);
    info.default_port = to.default_port;
    [info.default_multicast_primary_port, info.default_multicast_not_primary_port] = defaults;
    info.life_time = to.life_time;
    if to.port_state_change {
        info.port_state_change = false;
    }
    Ok(top != to.linear_fdb_top)
}
