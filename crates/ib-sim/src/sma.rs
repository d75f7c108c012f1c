//! The subnet management agent of a node: what it answers to Get and Set, and to whom.
//!
//! | attribute | modifier |
//! |---|---|
//! | NodeDescription, NodeInfo, SwitchInfo | 0 |
//! | GUIDInfo | block of 8 |
//! | PortInfo, MlnxExtPortInfo | port; 0 is the arrival port of an adapter |
//! | P_KeyTable | bits 0–15 block of 32, bits 16–31 port of a switch |
//! | SLtoVLMappingTable | a switch: bits 8–15 arrival port, bits 0–7 leaving port |
//! | VLArbitrationTable | bits 16–31 part 1–4, bits 0–15 port |
//! | LinearForwardingTable | block of 64 |
//! | MulticastForwardingTable | bits 0–8 block of 32, bits 28–31 block of 16 ports |
//!
//! Any other attribute, and one that the kind of node does not have, is answered with status 0x000c;
//! a modifier or value that is out of range with 0x001c.

use std::time::Duration;

use ib_topology::{NodeId, PortId};
use ib_types::Guid;
use ib_wire::mad::sm::notice::{MKeyDetails, NoticeType};
use ib_wire::mad::sm::{
    CapabilityMask2, GuidInfo, LinearForwardingBlock, MulticastForwardingBlock,
    NodeDescription, NoticeDetails, PKeyTable, SlToVl, SwitchInfo, TrapNumber,
    VlArbitration,
};
use ib_wire::mad::{AttributeId, Mad, MadStatus, Method};

use crate::event::{Event, Timer};
use crate::port::p_key_capacity;
use crate::sim::Sim;

mod port_info;

/// What a request's M_Key allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Everything.
    Full,
    /// Reading everything but the key itself.
    WithoutKey,
    /// Nothing.
    Denied,
}

impl Sim {
    /// Answers a request that arrived at a port; `None` when its M_Key is wrong, which is not
    /// answered at all.
    pub(crate) fn subnet_management(
        &mut self,
        port: PortId,
        slid: u16,
        mad: &mut Mad,
    ) -> Option<MadStatus> {
        let access = self.check_m_key(port, slid, mad);
        if access == Access::Denied {
            return None;
        }
        if mad.base_version() != 1 || mad.0[2] != 1 {
            return Some(MadStatus::BAD_VERSION);
        }
        let result = if mad.method() == Method::SET {
            self.set_attribute(port, mad)
        } else {
            Ok(())
        };
        Some(match result.and_then(|()| self.get_attribute(port, mad, access)) {
            Ok(()) => MadStatus::OK,
            Err(status) => status,
        })
    }

    /// Judges the key of a request; IBTA volume 1, chapter 14.2.4.
    fn check_m_key(&mut self, port: PortId, slid: u16, mad: &Mad) -> Access {
        let end = self.end_port_of(port);
        let info = &mut self.port_mut(end).info;
        if info.m_key == 0 || info.m_key == mad.m_key() {
            if mad.method() == Method::SET {
                self.port_mut(end).lease_ends = None;
            }
            return Access::Full;
        }
        match (mad.method(), info.m_key_protect) {
            (Method::GET, 0) => return Access::Full,
            (Method::GET, 1) => return Access::WithoutKey,
            _ => {}
        }
        info.m_key_violations = info.m_key_violations.saturating_add(1);
        let (lease, lid) = (info.m_key_lease_period, info.lid);
        if lease > 0 && self.port(end).lease_ends.is_none() {
            let at = self.now() + Duration::from_secs(u64::from(lease));
            self.port_mut(end).lease_ends = Some(at);
            self.schedule(at, Event::Timer(Timer::Lease { port: end }));
        }
        let mut details = MKeyDetails::zeroed();
        (details.lid, details.slid) = (lid, slid);
        details.method = mad.method();
        details.attribute_id = mad.attribute_id();
        details.attribute_modifier = mad.attribute_modifier();
        details.m_key = mad.m_key();
        details.is_directed = mad.class() == ib_wire::mad::MgmtClass::SUBN_DIRECTED_ROUTE;
        if details.is_directed {
            let hops = mad.hop_count();
            details.path_truncated = usize::from(hops) > details.return_path.len();
            details.hops = hops & 0x3f;
            let path = &mad.return_path()[1..];
            for (hop, &number) in details.return_path.iter_mut().zip(path).take(hops.into()) {
                *hop = number;
            }
        }
        let what = (NoticeType::SECURITY, TrapNumber::BAD_M_KEY);
        self.raise(end, what, &NoticeDetails::MKey(details));
        Access::Denied
    }

    /// The lease of an M_Key ends: the port is not protected any more.
    pub(crate) fn lease_ends(&mut self, port: PortId) {
        let now = self.now();
        let state = self.port_mut(port);
        if state.lease_ends.is_some_and(|at| at <= now) {
            state.lease_ends = None;
            state.info.m_key_protect = 0;
        }
    }

    fn get_attribute(
        &mut self,
        port: PortId,
        mad: &mut Mad,
        access: Access,
    ) -> Result<(), MadStatus> {
        let (node, modifier) = (self.port(port).node, mad.attribute_modifier());
        match mad.attribute_id() {
            AttributeId::NODE_DESCRIPTION => mad.set_attribute(&self.node(node).description),
            AttributeId::NODE_INFO => {
                let guid = self.port(self.end_port_of(port)).guid;
                let info = self.node(node).info(self.port(port).number, guid);
                mad.set_attribute(&info);
            }
            AttributeId::SWITCH_INFO => {
                let switch = self.node(node).switch.as_ref();
                mad.set_attribute(&switch.ok_or(MadStatus::BAD_METHOD_ATTRIBUTE)?.info);
            }
            AttributeId::GUID_INFO => {
                let guids = self.guid_block(self.end_port_of(port), modifier)?;
                mad.set_attribute(&GuidInfo { guids });
            }
            AttributeId::PORT_INFO => {
                let target = self.selected_port(port, modifier & 0xff)?;
                let mut info = self.port(target).info;
                info.local_port = self.port(port).number;
                if access == Access::WithoutKey {
                    info.m_key = 0;
                }
                mad.set_attribute(&info);
            }
            AttributeId::MLNX_EXT_PORT_INFO => {
                let target = self.selected_port(port, modifier & 0xff)?;
                mad.set_attribute(&self.port(target).mellanox);
            }
            AttributeId::P_KEY_TABLE => {
                let (target, first) = self.p_key_block(port, modifier)?;
                let keys = std::array::from_fn(|index| self.port(target).p_key(first + index));
                mad.set_attribute(&PKeyTable { keys });
            }
            AttributeId::SL_TO_VL => {
                let (target, arrival) = self.sl_to_vl_table(port, modifier)?;
                let table = match &self.port(target).tables {
                    Some(tables) => tables.sl_to_vl[arrival],
                    None => crate::port::default_sl_to_vl(),
                };
                mad.set_attribute(&table);
            }
            AttributeId::VL_ARBITRATION => {
                let (target, block) = self.arbitration_block(port, modifier)?;
                let tables = self.port(target).tables.as_ref();
                let arbitration = tables.map_or_else(Default::default, |t| t.arbitration);
                mad.set_attribute(&arbitration.blocks[block]);
            }
            AttributeId::LINEAR_FORWARDING => {
                let block = self.linear_block(node, modifier)?;
                let switch = self.node(node).switch.as_ref().expect("seen above");
                mad.set_attribute(&LinearForwardingBlock { ports: switch.linear_block(block) });
            }
            AttributeId::MULTICAST_FORWARDING => {
                let (block, position) = self.multicast_block(node, modifier)?;
                let switch = self.node(node).switch.as_ref().expect("seen above");
                let masks = switch.multicast_block(block, position);
                mad.set_attribute(&MulticastForwardingBlock { masks });
            }
            _ => return Err(MadStatus::BAD_METHOD_ATTRIBUTE),
        }
        Ok(())
    }

    fn set_attribute(&mut self, port: PortId, mad: &Mad) -> Result<(), MadStatus> {
        const WRONG: &str = "the attribute was looked at";
        let (node, modifier) = (self.port(port).node, mad.attribute_modifier());
        match mad.attribute_id() {
            AttributeId::NODE_DESCRIPTION => {
                let mask = self.port(self.end_port_of(port)).info.capability_mask2;
                if !mask.contains(CapabilityMask2::SET_NODE_DESCRIPTION) {
                    return Err(MadStatus::BAD_METHOD_ATTRIBUTE);
                }
                let description: NodeDescription = mad.attribute().expect(WRONG);
                self.node_mut(node).description = description;
            }
            AttributeId::SWITCH_INFO => {
                let info: SwitchInfo = mad.attribute().expect(WRONG);
                self.set_switch_info(node, &info)?;
            }
            AttributeId::GUID_INFO => {
                let info: GuidInfo = mad.attribute().expect(WRONG);
                self.set_guid_block(self.end_port_of(port), modifier, &info.guids)?;
            }
            AttributeId::PORT_INFO => {
                let target = self.selected_port(port, modifier & 0xff)?;
                self.set_port_info(target, &mad.attribute().expect(WRONG))?;
            }
            AttributeId::MLNX_EXT_PORT_INFO => {
                let target = self.selected_port(port, modifier & 0xff)?;
                self.set_mellanox(target, &mad.attribute().expect(WRONG));
            }
            AttributeId::P_KEY_TABLE => {
                let (target, first) = self.p_key_block(port, modifier)?;
                let table: PKeyTable = mad.attribute().expect(WRONG);
                let (kind, ports) = (self.node(node).kind, self.node(node).ports);
                let tables = self.port_mut(target).tables_mut(kind, ports);
                for (own, key) in tables.p_keys[first..].iter_mut().zip(table.keys) {
                    *own = key;
                }
            }
            AttributeId::SL_TO_VL => {
                let (target, arrival) = self.sl_to_vl_table(port, modifier)?;
                let table: SlToVl = mad.attribute().expect(WRONG);
                let (kind, ports) = (self.node(node).kind, self.node(node).ports);
                self.port_mut(target).tables_mut(kind, ports).sl_to_vl[arrival] = table;
            }
            AttributeId::VL_ARBITRATION => {
                let (target, block) = self.arbitration_block(port, modifier)?;
                let entries: VlArbitration = mad.attribute().expect(WRONG);
                let (kind, ports) = (self.node(node).kind, self.node(node).ports);
                let tables = self.port_mut(target).tables_mut(kind, ports);
                tables.arbitration.blocks[block] = entries;
            }
            AttributeId::LINEAR_FORWARDING => {
                let block = self.linear_block(node, modifier)?;
                let entries: LinearForwardingBlock = mad.attribute().expect(WRONG);
                let switch = self.node_mut(node).switch.as_mut().expect("seen above");
                if !switch.lies.ignores_all && !switch.lies.ignored_blocks.contains(&block) {
                    switch.set_linear_block(block, &entries.ports);
                }
            }
            AttributeId::MULTICAST_FORWARDING => {
                let (block, position) = self.multicast_block(node, modifier)?;
                let entries: MulticastForwardingBlock = mad.attribute().expect(WRONG);
                let switch = self.node_mut(node).switch.as_mut().expect("seen above");
                switch.set_multicast_block(block, position, &entries.masks);
            }
            _ => return Err(MadStatus::BAD_METHOD_ATTRIBUTE),
        }
        Ok(())
    }

    /// Returns the port that a modifier names; on anything but a switch 0 is the arrival port.
    pub(crate) fn selected_port(&self, port: PortId, number: u32) -> Result<PortId, MadStatus> {
        let node = self.node(self.port(port).node);
        if number == 0 && !node.kind.is_switch() {
            return Ok(port);
        }
        if number > u32::from(node.ports) {
            return Err(MadStatus::BAD_FIELD);
        }
        Ok(PortId(node.first_port + number))
    }

    fn guid_block(&self, port: PortId, block: u32) -> Result<[Guid; 8], MadStatus> {
        let state = self.port(port);
        if block * 8 >= u32::from(state.info.guid_cap) {
            return Err(MadStatus::BAD_FIELD);
        }
        let further = state.tables.as_ref().map_or(&[][..], |tables| &tables.guids);
        let all = |index: usize| match index {
            0 => state.guid,
            index => further.get(index - 1).copied().unwrap_or(Guid(0)),
        };
        Ok(std::array::from_fn(|index| all(block as usize * 8 + index)))
    }

    fn set_guid_block(
        &mut self,
        port: PortId,
        block: u32,
        guids: &[Guid; 8],
    ) -> Result<(), MadStatus> {
        let capacity = usize::from(self.port(port).info.guid_cap);
        let first = block as usize * 8;
        if first >= capacity {
            return Err(MadStatus::BAD_FIELD);
        }
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

    fn p_key_block(&self, port: PortId, modifier: u32) -> Result<(PortId, usize), MadStatus> {
        let node = self.node(self.port(port).node);
        let target = if node.kind.is_switch() {
            self.selected_port(port, modifier >> 16)?
        } else {
            port
        };
        let capacity = p_key_capacity(node.kind, self.port(target).number);
        let first = (modifier & 0xffff) * 32;
        if first >= u32::from(capacity) {
            return Err(MadStatus::BAD_FIELD);
        }
        Ok((target, first as usize))
    }

    fn sl_to_vl_table(&self, port: PortId, modifier: u32) -> Result<(PortId, usize), MadStatus> {
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

    fn arbitration_block(&self, port: PortId, modifier: u32) -> Result<(PortId, usize), MadStatus> {
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

    fn linear_block(&self, node: NodeId, modifier: u32) -> Result<u16, MadStatus> {
        let switch = self.node(node).switch.as_ref().ok_or(MadStatus::BAD_METHOD_ATTRIBUTE)?;
        if modifier >= u32::from(switch.info.linear_fdb_cap / LinearForwardingBlock::LIDS) {
            return Err(MadStatus::BAD_FIELD);
        }
        Ok(modifier as u16)
    }

    fn multicast_block(&self, node: NodeId, modifier: u32) -> Result<(u16, u8), MadStatus> {
        let state = self.node(node);
        let switch = state.switch.as_ref().ok_or(MadStatus::BAD_METHOD_ATTRIBUTE)?;
        let (block, position) = MulticastForwardingBlock::from_modifier(modifier);
        let blocks = switch.info.multicast_fdb_cap.div_ceil(MulticastForwardingBlock::LIDS);
        if block >= blocks || position > state.ports / 16 {
            return Err(MadStatus::BAD_FIELD);
        }
        Ok((block, position))
    }

    fn set_switch_info(&mut self, node: NodeId, to: &SwitchInfo) -> Result<(), MadStatus> {
        let ports = self.node(node).ports;
        let switch =
            self.node_mut(node).switch.as_mut().ok_or(MadStatus::BAD_METHOD_ATTRIBUTE)?;
        let info = &mut switch.info;
        if to.linear_fdb_top >= info.linear_fdb_cap && to.linear_fdb_top != 0 {
            return Err(MadStatus::BAD_FIELD);
        }
        let defaults = [to.default_multicast_primary_port, to.default_multicast_not_primary_port];
        if defaults.iter().any(|&port| port != 0xff && port > ports) {
            return Err(MadStatus::BAD_FIELD);
        }
        info.linear_fdb_top = to.linear_fdb_top;
        info.default_port = to.default_port;
        [info.default_multicast_primary_port, info.default_multicast_not_primary_port] = defaults;
        info.life_time = to.life_time;
        if to.port_state_change {
            info.port_state_change = false;
        }
        Ok(())
    }
}
