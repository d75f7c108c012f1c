//! The unicast cache: routes that are kept while hosts and leaf switches come and go.
//!
//! Routes serve another state of the subnet as well when nothing is there that was not there when
//! they were made, and nothing that is missing lies on a way to a port that is left: then every
//! remaining way is what it was. So a host that reboots and a leaf switch that bounces cost no
//! computation, neither when they go nor when they come back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ib_routing::SwitchId;
use ib_types::{Guid, NodeKind};

use crate::found::Found;
use crate::plan::Plan;

/// A port: the GUID of its node and its number.
type End = (Guid, u8);

/// A plan, and the subnet that it was made for.
#[derive(Clone, Debug)]
pub(crate) struct UnicastCache {
    nodes: BTreeMap<Guid, (NodeKind, u8)>,
    links: BTreeMap<End, End>,
    rows: BTreeMap<Guid, SwitchId>,
    plan: Arc<Plan>,
}

impl UnicastCache {
    pub(crate) fn new(found: &Found, plan: &Arc<Plan>) -> Self {
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

    /// Returns true when the plan serves what was found now.
    pub(crate) fn serves(&self, found: &Found) -> bool {
        let known = |guid: Guid| self.nodes.get(&guid);
        let same_nodes = found.nodes().all(|(_, node)| {
            known(node.info.node_guid) == Some(&(node.kind, node.info.num_ports))
                && (!node.kind.is_switch() || self.rows.contains_key(&node.info.node_guid))
        });
        let mut lids: Vec<u16> = Vec::new();
        for place in found.end_ports() {
            let Some(&(first, count)) = self.plan.end_ports.get(&found.port(place).guid) else {
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

    /// Returns the ports of switches that are there, whose links are not.
    fn missing<'a>(
        &'a self,
        found: &'a Found,
        links_now: &'a BTreeSet<End>,
    ) -> impl Iterator<Item = End> + 'a {
        let ends = self.links.keys().copied();
        ends.filter(|end| !links_now.contains(end))
            .filter(|&(node, _)| found.find(node).is_some() && self.rows.contains_key(&node))
    }
}

/// Returns every link of a subnet from both of its ends.
fn links(found: &Found) -> impl Iterator<Item = (End, End)> {
    found.nodes().flat_map(move |(_, node)| {
        let ports = (0..).zip(&node.ports);
        ports.filter_map(move |(number, port)| {
            let peer = port.peer?;
            let end = (node.info.node_guid, number);
            Some((end, (found.node(peer.node).info.node_guid, peer.port)))
        })
    })
}
