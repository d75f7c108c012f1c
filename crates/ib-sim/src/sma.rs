//! The subnet management agent (SMA) of a node. It handles Get and Set of these attributes:
//!
//! | attribute | modifier |
//! |---|---|
//! | NodeDescription, NodeInfo, SwitchInfo | 0 |
//! | GUIDInfo | number of a block of 8 GUIDs |
//! | PortInfo, `MlnxExtPortInfo` | port; on an HCA, 0 is the port at which the request arrives |
//! | `P_KeyTable` | bits 0–15: number of a block of 32 P_Keys; bits 16–31: port of a switch |
//! | `SLtoVLMappingTable` | on a switch: bits 8–15 ingress port, bits 0–7 egress port |
//! | `VLArbitrationTable` | bits 16–31: half of the low- (1, 2) or high-priority table (3, 4); bits 0–15: port |
//! | `LinearForwardingTable` | number of a block of 64 LIDs |
//! | `MulticastForwardingTable` | bits 0–8: number of a block of 32 LIDs; bits 28–31: number of a group of 16 ports |
//!
//! The status of the response is 0x000c for other attributes, for attributes that this kind of node
//! does not have, and for a Set of NodeDescription or NodeInfo. The status is 0x001c for modifiers
//! and values out of range.

use ib_topology::PortId;
use ib_wire::mad::sm::{GuidInfo, LinearForwardingBlock, MulticastForwardingBlock, PKeyTable};
use ib_wire::mad::{Attribute, AttributeId, Mad, MadStatus, Method};

use crate::fabric::FabricState;
use crate::network::Network;

mod m_key;
mod port_info;
mod tables;

pub(crate) use m_key::{Access, check_m_key, lease_ends};

/// Changes a request that has arrived at a port into the response. Returns the status of the
/// response; `None` if the M_Key is wrong, since such requests get no response.
pub(crate) fn answer(
    net: &mut Network,
    port: PortId,
    slid: u16,
    mad: &mut Mad,
) -> Option<MadStatus> {
    let access = check_m_key(net, port, slid, mad);
    if access == Access::Denied {
        return None;
    }
    if mad.base_version() != 1 || mad.0[2] != 1 {
        return Some(MadStatus::BAD_VERSION);
    }
    let result = if mad.method() == Method::SET { set(net, port, mad) } else { Ok(()) };
    Some(match result.and_then(|()| get(&net.fabric, port, mad, access)) {
        Ok(()) => MadStatus::OK,
        Err(status) => status,
    })
}

/// Writes the requested attribute into the response.
fn get(fabric: &FabricState, port: PortId, mad: &mut Mad, access: Access) -> Result<(), MadStatus> {
    let (node, modifier) = (fabric.node_of(port), mad.attribute_modifier());
    match mad.attribute_id() {
        AttributeId::NODE_DESCRIPTION => mad.set_attribute(&node.description),
        AttributeId::NODE_INFO => mad.set_attribute(&fabric.node_info(port)),
        AttributeId::SWITCH_INFO => mad.set_attribute(&tables::switch(node)?.info),
        AttributeId::GUID_INFO => {
            let guids = tables::guid_block(fabric.port(fabric.end_port_of(port)), modifier)?;
            mad.set_attribute(&GuidInfo { guids });
        }
        AttributeId::PORT_INFO => {
            let target = fabric.selected_port(port, modifier & 0xff)?;
            let mut info = fabric.port(target).info;
            info.local_port = fabric.port(port).number;
            if access == Access::WithoutKey {
                info.m_key = 0;
            }
            mad.set_attribute(&info);
        }
        AttributeId::MLNX_EXT_PORT_INFO => {
            let target = fabric.selected_port(port, modifier & 0xff)?;
            mad.set_attribute(&fabric.port(target).mellanox);
        }
        AttributeId::P_KEY_TABLE => {
            let (target, first) = tables::p_key_block(fabric, port, modifier)?;
            let keys = std::array::from_fn(|index| fabric.port(target).p_key(first + index));
            mad.set_attribute(&PKeyTable { keys });
        }
        AttributeId::SL_TO_VL => {
            let (target, arrival) = tables::sl_to_vl_table(fabric, port, modifier)?;
            let table = match &fabric.port(target).tables {
                Some(tables) => tables.sl_to_vl[arrival],
                None => crate::port::default_sl_to_vl(),
            };
            mad.set_attribute(&table);
        }
        AttributeId::VL_ARBITRATION => {
            let (target, block) = tables::arbitration_block(fabric, port, modifier)?;
            let tables = fabric.port(target).tables.as_ref();
            let arbitration = tables.map_or_else(Default::default, |t| t.arbitration);
            mad.set_attribute(&arbitration.blocks[block]);
        }
        AttributeId::LINEAR_FORWARDING => {
            let switch = tables::switch(node)?;
            let block = tables::linear_block(switch, modifier)?;
            // A switch that ignores a write responds as if it had written the block.
            if mad.method() != Method::SET || !switch.ignores(block) {
                mad.set_attribute(&LinearForwardingBlock { ports: switch.linear_block(block) });
            }
        }
        AttributeId::MULTICAST_FORWARDING => {
            let switch = tables::switch(node)?;
            let (block, position) = tables::multicast_block(node.ports, switch, modifier)?;
            let masks = switch.multicast_block(block, position);
            mad.set_attribute(&MulticastForwardingBlock { masks });
        }
        _ => return Err(MadStatus::BAD_METHOD_ATTRIBUTE),
    }
    Ok(())
}

/// Writes the attribute of a Set into the fabric. If this is impossible, returns the status for the response.
fn set(net: &mut Network, port: PortId, mad: &Mad) -> Result<(), MadStatus> {
    let fabric = &mut net.fabric;
    let (node, modifier) = (fabric.port(port).node, mad.attribute_modifier());
    match mad.attribute_id() {
        AttributeId::SWITCH_INFO => {
            let ports = fabric.node(node).ports;
            let switch = tables::switch_mut(fabric.node_mut(node))?;
            if tables::set_switch_info(switch, ports, &written(mad))? {
                fabric.count_route_change();
            }
        }
        AttributeId::GUID_INFO => {
            let info: GuidInfo = written(mad);
            tables::set_guid_block(fabric, fabric.end_port_of(port), modifier, &info.guids)?;
        }
        AttributeId::PORT_INFO => {
            let target = fabric.selected_port(port, modifier & 0xff)?;
            port_info::set(net, target, &written(mad))?;
        }
        AttributeId::MLNX_EXT_PORT_INFO => {
            let target = fabric.selected_port(port, modifier & 0xff)?;
            port_info::set_mellanox(fabric.port_mut(target), &written(mad));
        }
        AttributeId::P_KEY_TABLE => {
            let (target, first) = tables::p_key_block(fabric, port, modifier)?;
            let table: PKeyTable = written(mad);
            for (own, key) in fabric.tables_mut(target).p_keys[first..].iter_mut().zip(table.keys) {
                *own = key;
            }
            net.open_ports.wake(target);
        }
        AttributeId::SL_TO_VL => {
            let (target, arrival) = tables::sl_to_vl_table(fabric, port, modifier)?;
            fabric.tables_mut(target).sl_to_vl[arrival] = written(mad);
        }
        AttributeId::VL_ARBITRATION => {
            let (target, block) = tables::arbitration_block(fabric, port, modifier)?;
            fabric.tables_mut(target).arbitration.blocks[block] = written(mad);
        }
        AttributeId::LINEAR_FORWARDING => {
            let switch = tables::switch_mut(fabric.node_mut(node))?;
            let block = tables::linear_block(switch, modifier)?;
            let entries: LinearForwardingBlock = written(mad);
            if !switch.ignores(block) && switch.set_linear_block(block, &entries.ports) {
                fabric.count_route_change();
            }
        }
        AttributeId::MULTICAST_FORWARDING => {
            let ports = fabric.node(node).ports;
            let switch = tables::switch_mut(fabric.node_mut(node))?;
            let (block, position) = tables::multicast_block(ports, switch, modifier)?;
            let entries: MulticastForwardingBlock = written(mad);
            switch.set_multicast_block(block, position, &entries.masks);
        }
        _ => return Err(MadStatus::BAD_METHOD_ATTRIBUTE),
    }
    Ok(())
}

/// Returns the attribute in a Set whose attribute ID is that of `A`.
fn written<A: Attribute>(mad: &Mad) -> A {
    mad.attribute().expect("the MAD has the attribute ID of `A`")
}

#[cfg(test)]
mod tests;
