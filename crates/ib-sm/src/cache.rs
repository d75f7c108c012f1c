//! The unicast cache: keeps routes while hosts and leaf switches leave and return.
//!
//! Cached routes are valid on two conditions: the subnet has gained no node or link since they were computed, and no
//! missing node or link is on a route to a remaining port. Therefore the SM computes no routes when a host or leaf
//! switch leaves, and none when it returns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ib_routing::SwitchId;
use ib_types::{Guid, NodeKind};

use crate::discovered_subnet::DiscoveredSubnet;
use crate::plan::Plan;

/// One end of a link: node GUID and port number.
type End = (Guid, u8);

/// A plan, with the nodes and links of the subnet for which it was computed.
#[derive(Clone, Debug)]
pub(crate) struct UnicastCache {
    nodes: BTreeMap<Guid, (NodeKind, u8)>,
    links: BTreeMap<End, End>,
    rows: BTreeMap<Guid, SwitchId>,
    plan: Arc<Plan>,
}

impl UnicastCache {
    pub(crate) fn new(found: &DiscoveredSubnet, plan: &Arc<Plan>) -> Self {
        let nodes =
            found.nodes().map(|(_, node)| (node.info.node_guid, (node.kind, node.info.num_ports)));
        let rows = plan.switches.iter().enumerate();
        Self {
            nodes: nodes.collect(),
            links: links(found).collect(),
            rows: rows.map(|(row, &guid)| (guid, SwitchId(row as u16))).collect(),
            plan: Arc::clone(plan),
        }
    }

    /// Returns the plan.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    /// Returns true if the cached plan is valid for the discovered subnet.
    pub(crate) fn serves(&self, found: &DiscoveredSubnet) -> bool {
        let known = |guid: Guid| self.nodes.get(&guid);
        let same_nodes = found.nodes().all(|(_, node)| {
            known(node.info.node_guid) == Some(&(node.kind, node.info.num_ports))
                && (!node.kind.is_switch() || self.rows.contains_key(&node.info.node_guid))
        });
        let mut lids: Vec<u16> = Vec::new();
        for port_index in found.end_ports() {
            let Some(&(first, count)) = self.plan.end_ports.get(&found.port(port_index).guid)
            else {
                return false;
            };
            lids.extend(first.get()..first.get() + count);
        }
        let links_now: BTreeSet<End> = links(found).map(|(end, _)| end).collect();
        same_nodes
            && links(found).all(|(end, peer)| self.links.get(&end) == Some(&peer))
            && self.missing(found, &links_now).all(|(switch, port)| {
                let row = self.rows[&switch];
                let table = self.plan.routing.lfts.table(row);
                !lids.iter().any(|&lid| table.get(usize::from(lid)) == Some(&port))
            })
    }

    /// Returns the switch ports that have lost a link since the plan was computed. Ports of missing switches are left
    /// out.
    fn missing<'a>(
        &'a self,
        found: &'a DiscoveredSubnet,
        links_now: &'a BTreeSet<End>,
    ) -> impl Iterator<Item = End> + 'a {
        let ends = self.links.keys().copied();
        ends.filter(|end| !links_now.contains(end))
            .filter(|&(node, _)| found.find(node).is_some() && self.rows.contains_key(&node))
    }
}

/// Returns every link of a subnet twice, once from each end.
fn links(found: &DiscoveredSubnet) -> impl Iterator<Item = (End, End)> {
    found.nodes().flat_map(move |(_, node)| {
        let ports = (0..).zip(&node.ports);
        ports.filter_map(move |(number, port)| {
            let peer = port.peer?;
            let end = (node.info.node_guid, number);
            Some((end, (found.node(peer.node).info.node_guid, peer.port)))
        })
    })
}
