//! The subnet management agent of a node: what it answers to Get and Set, and to whom.
//!
//! | attribute | modifier |
//! |---|---|
//! | NodeDescription, NodeInfo, SwitchInfo | 0 |
//! | GUIDInfo | block of 8 |
//! | PortInfo, `MlnxExtPortInfo` | port; 0 is the arrival port of an adapter |
//! | `P_KeyTable` | bits 0–15 block of 32, bits 16–31 port of a switch |
//! | `SLtoVLMappingTable` | a switch: bits 8–15 arrival port, bits 0–7 leaving port |
//! | `VLArbitrationTable` | bits 16–31 part 1–4, bits 0–15 port |
//! | `LinearForwardingTable` | block of 64 |
//! | `MulticastForwardingTable` | bits 0–8 block of 32, bits 28–31 block of 16 ports |
//!
//! Any other attribute, one that the kind of node does not have, and a Set of NodeDescription or
//! NodeInfo is answered with status 0x000c; a modifier or value that is out of range with 0x001c.

use ib_topology::PortId;
use ib_wire::mad::sm::{
    GuidInfo, LinearForwardingBlock, MulticastForwardingBlock, PKeyTable, SlToVl, SwitchInfo,
    VlArbitration,
};
use ib_wire::mad::{AttributeId, Mad, MadStatus, Method};

use crate::sim::Sim;

mod m_key;
mod port_info;
mod tables;

pub(crate) use m_key::Access;

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
        let result =
            if mad.method() == Method::SET { self.set_attribute(port, mad) } else { Ok(()) };
        Some(match result.and_then(|()| self.get_attribute(port, mad, access)) {
            Ok(()) => MadStatus::OK,
            Err(status) => status,
        })
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
                // A switch that ignores a write answers as if it had done it.
                if mad.method() != Method::SET || !switch.ignores(block) {
                    mad.set_attribute(&LinearForwardingBlock { ports: switch.linear_block(block) });
                }
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
                self.wake_port(target);
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
                if !switch.ignores(block) && switch.set_linear_block(block, &entries.ports) {
                    self.route_changes += 1;
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
}

#[cfg(test)]
mod tests;
