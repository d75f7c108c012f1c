//! Ground truth of a trial: follows paths hop by hop through the simulator's tables and cables.

use std::collections::{BTreeMap, BTreeSet};

use ib_topology::NodeId;
use ib_wire::mad::sm::PortState;

use super::faults::{Injected, Proxied, peer};
use super::reading::{Ports, Report};
use crate::lab::Lab;

/// Maximum number of hops of a path.
const MAX_HOPS: usize = 64;

/// Ground truth of a trial: the host that had each LID before the faults were injected, and the injected faults.
pub(crate) struct Truth<'a> {
    hosts: BTreeMap<u16, NodeId>,
    injected: Option<&'a Injected>,
}

/// A path according to the tables.
pub(crate) struct Path {
    /// For each hop: the egress port, and the node to which its cable leads.
    pub(crate) hops: Vec<((NodeId, u8), Option<NodeId>)>,
    /// True if a port of the path is misrouted or loses all packets, or if the path does not reach its destination LID.
    pub(crate) is_over_a_fault: bool,
}

impl Truth<'_> {
    /// Records which host has each LID before the faults are injected.
    pub(crate) fn of_lids(lab: &Lab) -> Self {
        let nodes: Vec<NodeId> = lab.sim.node_ids().collect();
        let hosts = nodes.iter().filter(|&&node| !lab.sim.is_switch(node));
        Self { hosts: hosts.map(|&node| (lab.lid(node), node)).collect(), injected: None }
    }

    pub(crate) fn with_faults(self, injected: &Injected) -> Truth<'_> {
        Truth { hosts: self.hosts, injected: Some(injected) }
    }

    fn injected(&self) -> &Injected {
        self.injected.expect("faults were injected")
    }

    /// Follows the tables to the LID `to`, from the host that had the LID `from` before the faults were injected.
    pub(crate) fn path(&self, lab: &Lab, from: u16, to: u16) -> Path {
        let faults = self.injected();
        let mut hops = Vec::new();
        let (mut node, mut out) = (self.hosts[&from], 1);
        let mut is_over_a_fault = false;
        let arrived = loop {
            let link = (node, out);
            let port = lab.sim.find_port(node, out);
            let is_up =
                port.is_some_and(|port| lab.sim.port_info(port).port_state == PortState::ACTIVE);
            let next = peer(lab, link);
            hops.push((link, next.map(|(node, _)| node)));
            is_over_a_fault |= faults.misrouted.contains_key(&link);
            is_over_a_fault |= faults.dead.contains_key(&link);
            let Some((next, enters)) = next.filter(|_| is_up) else { break false };
            let end = if lab.sim.is_switch(next) { 0 } else { enters };
            let end = lab.sim.find_port(next, end).expect("cables lead to existing ports");
            if lab.sim.has_lid(end, to) {
                break true;
            }
            if !lab.sim.is_switch(next) || hops.len() > MAX_HOPS {
                break false;
            }
            let table = lab.sim.forwarding_table(next);
            let entry = table.get(usize::from(to)).copied().unwrap_or(255);
            if entry == 255 || entry == 0 {
                break false;
            }
            (node, out) = (next, entry);
        };
        Path { hops, is_over_a_fault: is_over_a_fault || !arrived }
    }

    /// Returns the faults on a path.
    pub(crate) fn faults_on(&self, path: &Path) -> BTreeSet<usize> {
        let all = self.injected();
        let mut found = BTreeSet::new();
        for (place, next) in &path.hops {
            found.extend(all.misrouted.get(place).map(|&(_, index)| index));
            found.extend(all.dead.get(place));
            found.extend(all.lossy.get(place));
            found.extend(all.cables.get(place));
            if let Some(node) = next {
                found.extend(all.guids.get(node));
                found.extend(all.lids.get(node));
                found.extend(all.proxied.get(node).map(|(_, index)| index));
            }
        }
        found
    }

    /// Returns the faults that justify a report; `None` if the reported port or node is healthy.
    pub(crate) fn guilty(
        &self,
        lab: &Lab,
        report: &Report,
        path: &Path,
    ) -> Option<BTreeSet<usize>> {
        let all = self.injected();
        let mut found = BTreeSet::new();
        let node_faults = |found: &mut BTreeSet<usize>, node: NodeId| {
            found.extend(all.guids.get(&node));
            found.extend(all.lids.get(&node));
            found.extend(all.proxied.get(&node).map(|(_, index)| index));
        };
        match report {
            Report::Forwarding { link: Ports { from, .. } } => {
                found.extend(all.misrouted.get(from).map(|&(_, index)| index));
            }
            Report::Inconsistent { link: Ports { to, .. } } => {
                if let Some((node, _)) = to {
                    let silent = [Proxied::SilentAgent, Proxied::SilentNode];
                    let proxied = all.proxied.get(node);
                    let proxied = proxied.filter(|(what, _)| !silent.contains(what));
                    found.extend(proxied.map(|(_, index)| index));
                    found.extend(all.lids.get(node));
                    found.extend(all.guids.get(node));
                }
            }
            Report::Duplicate { link, what } => {
                let mut nodes = vec![link.from.0];
                nodes.extend(link.to.map(|(node, _)| node));
                nodes.extend(path.hops.iter().filter_map(|(_, next)| *next));
                nodes.iter().for_each(|&node| node_faults(&mut found, node));
                // The text of the report names a duplicate GUID. The report is justified if a fault gave this GUID to
                // any node.
                for (&node, &index) in &all.guids {
                    if what.contains(&lab.guid(node).to_string()) {
                        found.insert(index);
                    }
                }
                let lids = all.lids.iter().map(|(&node, &index)| (lab.lid(node), index));
                let foreign = all.proxied.values().filter_map(|&(what, index)| match what {
                    Proxied::ForeignLid(lid) => Some((lid, index)),
                    _ => None,
                });
                for (lid, index) in lids.chain(foreign) {
                    if what.contains(&format!("LID {lid} ")) {
                        found.insert(index);
                    }
                }
            }
            Report::Record { link } => {
                found.extend(all.cables.get(&link.from));
                node_faults(&mut found, link.from.0);
                let behind = link.to.or_else(|| peer(lab, link.from));
                if let Some((node, _)) = behind {
                    node_faults(&mut found, node);
                }
            }
            Report::Cable { from } => {
                found.extend(all.cables.get(from));
                let port = lab.sim.find_port(from.0, from.1)?;
                let is_up = lab.sim.port_info(port).port_state == PortState::ACTIVE;
                if found.is_empty() && is_up {
                    return None;
                }
                return Some(found);
            }
            Report::Table => {
                // The report does not name the node whose table is wrong. A fault of any node that the path reaches
                // justifies the report.
                for &(_, next) in &path.hops {
                    next.into_iter().for_each(|node| node_faults(&mut found, node));
                }
                if found.is_empty() && !path.is_over_a_fault {
                    return None;
                }
                return Some(found);
            }
            Report::Lid { node } => {
                found.extend(all.lids.get(node));
                let proxied = all.proxied.get(node);
                found.extend(proxied.map(|(_, index)| index));
            }
        }
        (!found.is_empty()).then_some(found)
    }
}
