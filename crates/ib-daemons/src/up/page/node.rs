//! The details of a node: its ports, its LFT, and its roles in the fabric.

use std::collections::BTreeMap;

use ib_sim::{Addresses, Counters, Sim};
use ib_topology::{NodeId, PortId};
use ib_wire::mad::sm::PortState;
use serde::Serialize;

use super::acm;
use super::model::{Model, Rate, json, kind_word};
use crate::sim::Manager;
use crate::up::hosts::Hosts;
use crate::up::web::Json;

/// The response with the details of a node. The field names are JSON keys.
#[derive(Serialize)]
struct NodeResponse<'a> {
    id: u32,
    name: &'a str,
    guid: String,
    kind: &'static str,
    lid: u16,
    rank: u32,
    ports: Vec<Port>,
    lft: Vec<(usize, u8)>,
    acm: Option<acm::Summary>,
    roles: Vec<String>,
    values: Vec<(&'static str, String)>,
}

/// The response with all end ports. Each has the number of its node, its port number, its LID and its IP addresses.
#[derive(Serialize)]
struct EndPorts {
    ports: Vec<(u32, u8, u16, Vec<String>)>,
}

/// A port.
#[derive(Serialize)]
struct Port {
    port: u8,
    state: String,
    physical: String,
    lid: u16,
    #[serde(flatten)]
    rate: Option<Rate>,
    link: Option<u32>,
    peer: Option<(u32, u8)>,
    counters: BTreeMap<&'static str, u64>,
}

/// Data from which the details of a node are collected, in addition to the simulator and the model.
pub(super) struct NodeContext<'a> {
    pub(super) hosts: &'a Hosts,
    /// Ports of the block device's hosts: those of the client, then those of the server.
    pub(super) ends: &'a [Vec<PortId>; 2],
    pub(super) device: &'a str,
    pub(super) manager: Option<&'a Manager>,
    pub(super) addresses: &'a Addresses,
}

/// Returns the response with the details of a node.
pub(super) fn node((sim, model): (&Sim, &Model), context: &NodeContext<'_>, id: NodeId) -> Json {
    let spec = model.fabric.node(id);
    let end = model.end_port(id);
    let ports = model.fabric.ports_of(id).filter(|(_, port)| port.number > 0);
    let ports = ports.map(|(port, known)| {
        let info = sim.port_info(port);
        let state = match info.port_state {
            PortState::INIT => "Init".to_owned(),
            state => state.to_string(),
        };
        let peer = known.peer.map(|peer| model.fabric.port(peer));
        Port {
            port: known.number,
            state,
            physical: info.phys_state.to_string(),
            lid: info.lid,
            rate: peer.map(|_| Rate::of(known.rate)),
            link: model.link_of(port),
            peer: peer.map(|peer| (peer.node.0, peer.number)),
            counters: counters(&sim.counters(port)),
        }
    });
    let entries = sim.forwarding_table(id).iter().copied().enumerate();
    let service = end.and_then(|end| context.hosts.service(end));
    json(&NodeResponse {
        id: id.0,
        name: &spec.name,
        guid: spec.guid.to_string(),
        kind: kind_word(spec.kind),
        lid: end.map_or(0, |end| sim.port_info(end).lid),
        rank: model.rank(id),
        ports: ports.collect(),
        lft: entries.filter(|&(_, port)| port != 0xff).collect(),
        acm: service.map(|service| acm::Summary::of(service, sim.now())),
        roles: roles(sim, context, id),
        values: values(sim, model, context, id),
    })
}

/// Returns the response with the LIDs and IP addresses of all end ports.
pub(super) fn addresses(sim: &Sim, addresses: &Addresses) -> Json {
    let numbers = |node| if sim.is_switch(node) { 0..=0 } else { 1..=u8::MAX };
    let ports = sim.node_ids().flat_map(|node| {
        let ports = numbers(node).map_while(move |number| sim.find_port(node, number));
        ports.map(move |port| (node, port))
    });
    let ports = ports.map(|(node, port)| {
        let own = addresses.of(port).iter().map(ToString::to_string).collect();
        (node.0, sim.place(port).1, sim.port_info(port).lid, own)
    });
    json(&EndPorts { ports: ports.collect() })
}

/// Returns the roles of a node, such as SM, and client or server of the block device.
fn roles(sim: &Sim, context: &NodeContext<'_>, id: NodeId) -> Vec<String> {
    let mut roles = Vec::new();
    let manager = context.manager.and_then(|manager| sim.client_port(manager.client()));
    if manager.is_some_and(|port| sim.place(port).0 == id) {
        roles.push("subnet manager".to_owned());
    }
    for (word, ports) in ["client", "server"].into_iter().zip(context.ends) {
        for (path, &port) in ports.iter().enumerate() {
            if sim.place(port).0 == id {
                roles.push(format!("{} {word} path {path}", context.device));
            }
        }
    }
    roles
}

/// Returns properties of a node for which [`NodeResponse`] has no field, such as the description and the GID. Each is a
/// label with a value.
fn values(
    sim: &Sim,
    model: &Model,
    context: &NodeContext<'_>,
    id: NodeId,
) -> Vec<(&'static str, String)> {
    let spec = model.fabric.node(id);
    let mut values = vec![("description", spec.description.clone())];
    if let Some(end) = model.end_port(id) {
        let link = sim.link_port(end);
        values.push(("GID", link.gid().to_string()));
        values.push(("LID of the subnet manager", link.sm_lid.to_string()));
        let addresses = context.addresses.of(end).iter().map(ToString::to_string);
        let addresses = addresses.collect::<Vec<_>>().join(" ");
        values.extend((!addresses.is_empty()).then_some(("IP addresses", addresses)));
    }
    values.push(("system GUID", spec.system_guid.to_string()));
    values
}

/// Returns the counters of a port under the names that `perfquery` prints.
fn counters(counters: &Counters) -> BTreeMap<&'static str, u64> {
    let named = counters.named().into_iter();
    named.map(|(name, count)| (display_name(name), count)).collect()
}

fn display_name(name: &'static str) -> &'static str {
    match name {
        "xmit_data" => "PortXmitData",
        "rcv_data" => "PortRcvData",
        "xmit_packets" => "PortXmitPkts",
        "rcv_packets" => "PortRcvPkts",
        "unicast_xmit_packets" => "PortUnicastXmitPkts",
        "unicast_rcv_packets" => "PortUnicastRcvPkts",
        "multicast_xmit_packets" => "PortMulticastXmitPkts",
        "multicast_rcv_packets" => "PortMulticastRcvPkts",
        "xmit_wait" => "PortXmitWait",
        "symbol_errors" => "SymbolErrorCounter",
        "link_recoveries" => "LinkErrorRecoveryCounter",
        "link_downed" => "LinkDownedCounter",
        "rcv_errors" => "PortRcvErrors",
        "rcv_remote_physical_errors" => "PortRcvRemotePhysicalErrors",
        "rcv_switch_relay_errors" => "PortRcvSwitchRelayErrors",
        "xmit_discards" => "PortXmitDiscards",
        "xmit_constraint_errors" => "PortXmitConstraintErrors",
        "rcv_constraint_errors" => "PortRcvConstraintErrors",
        "local_link_integrity_errors" => "LocalLinkIntegrityErrors",
        "excessive_buffer_overruns" => "ExcessiveBufferOverrunErrors",
        "vl15_dropped" => "VL15Dropped",
        "qp1_dropped" => "QP1Dropped",
        "local_physical_errors" => "PortLocalPhysicalErrors",
        "malformed_packet_errors" => "PortMalformedPktErrors",
        "buffer_overrun_errors" => "PortBufferOverrunErrors",
        "dlid_mapping_errors" => "PortDLIDMappingErrors",
        "vl_mapping_errors" => "PortVLMappingErrors",
        "looping_errors" => "PortLoopingErrors",
        "inactive_discards" => "PortInactiveDiscards",
        "neighbor_mtu_discards" => "PortNeighborMTUDiscards",
        "lifetime_discards" => "PortSwLifetimeLimitDiscards",
        "hoq_life_discards" => "PortSwHOQLifetimeLimitDiscards",
        other => other,
    }
}

#[cfg(test)]
mod tests;
