//! What a modifier says of the tables of a node, and its bounds.

use ib_topology::{NodeId, PortId};
use ib_types::Guid;
use ib_wire::mad::MadStatus;
use ib_wire::mad::sm::{LinearForwardingBlock, MulticastForwardingBlock, SwitchInfo};

use crate::port::p_key_capacity;
use crate::sim::Sim;

impl Sim {
    /// Returns the port that a modifier names; on anything but a switch 0 is the arrival port.
    pub(crate) fn selected_port(&self, port: PortId, number: u32) -> Result<PortId, MadStatus> {
        let node = self.port(port).node;
        let hop = self.hop_node(node);
        if number == 0 && !hop.kind.is_switch() {
            return Ok(port);
        }
        let number = u8::try_from(number).ok().filter(|&number| number <= hop.ports);
        number.map(|number| self.port_id(node, number)).ok_or(MadStatus::BAD_FIELD)
    }

    pub(super) fn guid_block(&self, port: PortId, block: u32) -> Result<[Guid; 8], MadStatus> {
        let state = self.port(port);
        if block >= u32::from(state.info.guid_cap).div_ceil(8) {
            return Err(MadStatus::BAD_FIELD);
        }
        let further = state.tables.as_ref().map_or(&[][..], |tables| &tables.guids);
        let all = |index: usize| match index {
            0 => state.guid,
            index => further.get(index - 1).copied().unwrap_or(Guid(0)),
        };
        Ok(std::array::from_fn(|index| all(block as usize * 8 + index)))
    }

    pub(super) fn set_guid_block(
        &mut self,
        port: PortId,
        block: u32,
        guids: &[Guid; 8],
    ) -> Result<(), MadStatus> {
        let capacity = usize::from(self.port(port).info.guid_cap);
        if block as usize >= capacity.div_ceil(8) {
            return Err(MadStatus::BAD_FIELD);
        }
        let first = block as usize * 8;
        let node = self.node(self.port(port).node);
        let (kind, ports) = (node.kind, node.ports);
        let own = &mut self.port_mut(port).tables_mut(kind, ports).guids;
        // The first GUID is the port's own and cannot be written.
        for (index, &guid) in (first..capacity).zip(guids).filter(|&(index, _)| index > 0) {
            if own.len() < index {
                own.resize(index, Guid(0));
            }
            own[index - 1] = guid;
        }
        Ok(())
    }

    pub(super) fn p_key_block(
        &self,
        port: PortId,
        modifier: u32,
    ) -> Result<(PortId, usize), MadStatus> {
        let node = self.node(self.port(port).node);
        let target =
            if node.kind.is_switch() { self.selected_port(port, modifier >> 16)? } else { port };
        let capacity = p_key_capacity(node.kind, self.port(target).number);
        let first = (modifier & 0xffff) * 32;
        if first >= u32::from(capacity) {
            return Err(MadStatus::BAD_FIELD);
        }
        Ok((target, first as usize))
    }

    pub(super) fn sl_to_vl_table(
        &self,
        port: PortId,
        modifier: u32,
    ) -> Result<(PortId, usize), MadStatus> {
        let node = self.node(self.port(port).node);
        if !node.kind.is_switch() {
            return Ok((port, 0));
        }
        let (arrival, leaving) = (modifier >> 8 & 0xff, modifier & 0xff);
        // The optimised forms are not offered by SwitchInfo:OptimizedSLtoVLMappingProgramming.
        if modifier >> 16 != 0 || arrival > u32::from(node.ports) {
            return Err(MadStatus::BAD_FIELD);
        }
        Ok((self.selected_port(port, leaving)?, arrival as usize))
    }

    pub(super) fn arbitration_block(
        &self,
        port: PortId,
        modifier: u32,
    ) -> Result<(PortId, usize), MadStatus> {
        let (part, number) = (modifier >> 16, modifier & 0xffff);
        let target = self.selected_port(port, number)?;
        let info = &self.port(target).info;
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

    pub(super) fn linear_block(&self, node: NodeId, modifier: u32) -> Result<u16, MadStatus> {
        let switch = self.node(node).switch.as_ref().ok_or(MadStatus::BAD_METHOD_ATTRIBUTE)?;
        if modifier >= u32::from(switch.info.linear_fdb_cap.div_ceil(LinearForwardingBlock::LIDS)) {
            return Err(MadStatus::BAD_FIELD);
        }
        Ok(modifier as u16)
    }

    pub(super) fn multicast_block(
        &self,
        node: NodeId,
        modifier: u32,
    ) -> Result<(u16, u8), MadStatus> {
        let state = self.node(node);
        let switch = state.switch.as_ref().ok_or(MadStatus::BAD_METHOD_ATTRIBUTE)?;
        let (block, position) = MulticastForwardingBlock::from_modifier(modifier);
        let blocks = switch.info.multicast_fdb_cap.div_ceil(MulticastForwardingBlock::LIDS);
        if block >= blocks || position > state.ports / 16 {
            return Err(MadStatus::BAD_FIELD);
        }
        Ok((block, position))
    }

    pub(super) fn set_switch_info(
        &mut self,
        node: NodeId,
        to: &SwitchInfo,
    ) -> Result<(), MadStatus> {
        let ports = self.node(node).ports;
        let switch = self.node_mut(node).switch.as_mut().ok_or(MadStatus::BAD_METHOD_ATTRIBUTE)?;
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
        self.route_changes += u64::from(top != to.linear_fdb_top);
        Ok(())
    }
}
