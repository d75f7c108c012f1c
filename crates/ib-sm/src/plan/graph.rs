//! The discovered subnet as a graph for the routing engines.

use ib_topology::{Fabric, LinkRate, NodeId, NodeSpec};
use ib_types::{Lid, Lmc};
use ib_wire::mad::sm::PortInfo;

use crate::discovered_subnet::DiscoveredSubnet;

/// Returns the discovered subnet as a graph. Nodes that have not responded to all queries are left out.
pub(super) fn fabric(found: &DiscoveredSubnet) -> Fabric {
    let mut fabric = Fabric::new();
    let mut ids: Vec<Option<NodeId>> = vec![None; found.nodes().len()];
    for (index, node) in found.nodes() {
        let complete = if node.kind.is_switch() {
            node.switch.is_some() && found.is_end_port(index.at(0))
        } else {
            (0..=node.info.num_ports).any(|port| found.is_end_port(index.at(port)))
        };
        if !complete {
            continue;
        }
        let info = &node.info;
        let spec = NodeSpec {
            description: node.description.as_text().into_owned(),
            system_guid: info.system_image_guid,
            vendor_id: info.vendor_id,
            device_id: info.device_id,
            revision: info.revision,
            enhanced_port0: node.switch.is_some_and(|switch| switch.enhanced_port0),
            ..NodeSpec::new(node.kind, info.node_guid.to_string(), info.node_guid, info.num_ports)
        };
        // Adding the node cannot fail: no other node in `found` has its GUID, and end ports with a duplicate GUID are
        // left out.
        let Ok(id) = fabric.add_node(spec) else { continue };
        ids[index.0 as usize] = Some(id);
        for (number, port) in (0..=info.num_ports).zip(&node.ports) {
            let Some(port_info) = port.info.as_deref() else { continue };
            if !found.is_end_port(index.at(number)) {
                continue;
            }
            if fabric.set_port_guid(id, number, port.guid).is_ok() {
                let lid = Lid::unicast(port_info.lid.into()).ok();
                let lmc = Lmc::new(port_info.lmc).unwrap_or(Lmc::ZERO);
                fabric.set_lid(id, number, lid, lmc).expect("the port exists");
            }
        }
    }
    for (index, node) in found.nodes() {
        for (number, port) in (0..=node.info.num_ports).zip(&node.ports) {
            let Some(peer) = port.peer else { continue };
            let both = (ids[index.0 as usize], ids[peer.node.0 as usize]);
            let ((Some(one), Some(other)), Some(info)) = (both, port.info.as_deref()) else {
                continue;
            };
            // Each link is found from both ends, but added only once. A port that is cabled to itself is left out.
            let left_out = found.is_excluded(index.at(number)) || found.is_excluded(peer);
            if (index.at(number)) < peer && found.port(peer).info.is_some() && !left_out {
                let _ = fabric.connect((one, number), (other, peer.port), rate(info));
            }
        }
    }
    fabric
}

/// Returns the rate of the link at a port.
fn rate(info: &PortInfo) -> LinkRate {
    LinkRate {
        width: info.link_width_active.active().unwrap_or(LinkRate::DEFAULT.width),
        speed: info.active_speeds(None).active().unwrap_or(LinkRate::DEFAULT.speed),
    }
}
