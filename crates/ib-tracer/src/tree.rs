//! Multicast trees: the links that a packet from a port to a multicast group takes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_types::Guid;
use ib_wire::mad::sm::{MulticastForwardingBlock, PortState};
use ib_wire::mad::smp;

use crate::fabric_model::Fact;
use crate::fabric_model::{FabricModel, Link};
use crate::path::{Hop, NodeNumber};
use crate::trace::Verdict;

/// The tree of a multicast LID, from a sending port.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The multicast LID.
    pub mlid: u16,
    /// The port from which the packets are sent.
    pub start: (NodeNumber, u8),
    /// All links that a packet takes, in ascending distance from the start.
    pub branches: Vec<Branch>,
}

/// A link of a multicast tree.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The link. If no node responds at its far end, both ends are the near port.
    pub hop: Hop,
    /// Number of links between the start of the tree and this link.
    pub depth: usize,
    /// Fate of packets at the far end of the link.
    pub end: BranchEnd,
    /// Verdict on the link. It is derived from probes to the node at the far end.
    pub verdict: Verdict,
}

/// Fate of packets at the far end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchEnd {
    /// The packets are delivered to an HCA or router.
    Delivered,
    /// A switch forwards the packets out of these ports, where 0 is its management port. The list is
    /// empty if the switch drops the packets.
    Sent(Vec<u8>),
    /// The link leads to a switch that also receives the packets over another link. The switch forwards
    /// both copies, so further nodes get duplicates; in a forwarding loop, repeatedly.
    Duplicate,
    /// The packets do not arrive at the far end of the link, or the node there cannot be queried. The text
    /// contains the reason.
    Broken(String),
}

/// Maximum number of nodes in a tree: the number of unicast LIDs, because each node has at least one.
const MAX_NODES: usize = 49_151;

/// Number of ports in a port mask.
const PORTS: u8 = 16;

impl Tree {
    /// Follows the multicast tables from a port. Fails with the facts that have to be queried first.
    pub(crate) fn grow(
        model: &FabricModel,
        start: (NodeNumber, u8),
        mlid: u16,
    ) -> Result<Vec<Branch>, Vec<Fact>> {
        let mut branches = Vec::new();
        let mut missing = Vec::new();
        let mut seen: BTreeSet<NodeNumber> = BTreeSet::new();
        let mut queue: VecDeque<(NodeNumber, u8, usize)> = VecDeque::new();
        if model.node(start.0).kind.is_switch() {
            seen.insert(start.0);
            let ports = outputs(model, start, mlid, &mut missing);
            queue.extend(ports.into_iter().map(|port| (start.0, port, 0)));
        } else {
            queue.push_back((start.0, start.1, 0));
        }
        while let Some((from, out, depth)) = queue.pop_front() {
            if out == 0 {
                continue;
            }
            let broken = |why: String| Branch {
                hop: Hop { from, out, node: from, enters: out },
                depth,
                end: BranchEnd::Broken(why),
                verdict: Verdict::NotProbed,
            };
            let (node, enters) = match model.node(from).links.get(&out) {
                // No further link is followed if there are more nodes than LIDs, or if the directed route would be too
                // long.
                None if model.nodes() > MAX_NODES
                    || model.node(from).route.len() >= usize::from(smp::MAX_HOPS) =>
                {
                    branches.push(broken("no directed route reaches the next node".to_owned()));
                    continue;
                }
                None => {
                    missing.push(Fact::Link { node: from, port: out });
                    continue;
                }
                Some(Link::Nowhere { why, .. }) => {
                    branches.push(broken(why.clone()));
                    continue;
                }
                Some(&Link::To(_, _, state)) if state != PortState::ACTIVE => {
                    branches.push(broken(format!("the port is in state {state}")));
                    continue;
                }
                Some(&Link::To(node, enters, _)) => (node, enters),
            };
            let end = if !model.node(node).kind.is_switch() {
                BranchEnd::Delivered
            } else if seen.insert(node) {
                let ports = outputs(model, (node, enters), mlid, &mut missing);
                queue.extend(ports.iter().map(|&port| (node, port, depth + 1)));
                BranchEnd::Sent(ports)
            } else {
                BranchEnd::Duplicate
            };
            let hop = Hop { from, out, node, enters };
            branches.push(Branch { hop, depth, end, verdict: Verdict::NotProbed });
        }
        if missing.is_empty() { Ok(branches) } else { Err(missing) }
    }

    /// Returns the number of copies of a packet that each port receives, by port GUID. For a switch, it is the number
    /// that its port 0 receives.
    #[must_use]
    pub fn deliveries(&self, model: &FabricModel) -> BTreeMap<Guid, usize> {
        let mut deliveries = BTreeMap::new();
        for branch in &self.branches {
            let delivers = match &branch.end {
                BranchEnd::Delivered => true,
                BranchEnd::Sent(ports) => ports.contains(&0),
                BranchEnd::Duplicate | BranchEnd::Broken(_) => false,
            };
            let end = model.end((branch.hop.node, branch.hop.enters)).filter(|_| delivers);
            if let Some(end) = end {
                *deliveries.entry(end.guid).or_insert(0) += 1;
            }
        }
        deliveries
    }

    /// Returns the links over which a switch receives duplicates.
    pub fn duplicates(&self) -> impl Iterator<Item = &Branch> {
        self.branches.iter().filter(|branch| branch.end == BranchEnd::Duplicate)
    }
}

/// Returns the egress ports of a switch for multicast packets that arrive at a port, as far as the table of the switch
/// is known.
fn outputs(
    model: &FabricModel,
    (node, enters): (NodeNumber, u8),
    mlid: u16,
    missing: &mut Vec<Fact>,
) -> Vec<u8> {
    const LIDS: u16 = MulticastForwardingBlock::LIDS;
    let place = mlid - MulticastForwardingBlock::FIRST_LID;
    let (block, row) = (place / LIDS, usize::from(place % LIDS));
    let ports = model.node(node).ports;
    let mut outputs = Vec::new();
    for position in 0..=ports / PORTS {
        let fact = Fact::Multicast { node, block, position };
        match model.masks.get(&(node, block, position)) {
            Some(masks) => {
                let numbers = (0..PORTS).filter(|bit| masks[row] >> bit & 1 != 0);
                outputs.extend(numbers.map(|bit| position * PORTS + bit));
            }
            // A table that could not be read is treated as empty.
            None if model.unreadable.contains_key(&fact) => {}
            None => missing.push(fact),
        }
    }
    outputs.retain(|&port| port != enters && port <= ports);
    outputs
}
