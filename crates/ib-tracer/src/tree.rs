//! The tree of a multicast group: where the multicast tables send what a port sends to the group.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_types::Guid;
use ib_wire::mad::sm::{MulticastForwardingBlock, PortState};
use ib_wire::mad::smp;

use crate::atlas::{Atlas, Link, NodeNumber};
use crate::facts::Fact;
use crate::trace::{Hop, Verdict};

/// Where packets to a multicast LID go from a port.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The LID.
    pub mlid: u16,
    /// The port that sends.
    pub start: (NodeNumber, u8),
    /// Every link that a packet takes, those nearer to the start first.
    pub branches: Vec<Branch>,
}

/// A link that packets to a group take.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The link; where nobody answers behind it, both of its ends are the near one.
    pub hop: Hop,
    /// How many links there are before it.
    pub depth: usize,
    /// What becomes of the packets behind it.
    pub end: BranchEnd,
    /// What the agent behind it says.
    pub verdict: Verdict,
}

/// What becomes of packets behind a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchEnd {
    /// They are delivered to the adapter or router that they enter.
    Delivered,
    /// The switch sends them on by these ports, 0 for its own; none when it drops them.
    Sent(Vec<u8>),
    /// The switch has got them already by another link: whatever is behind it gets them twice, and
    /// where that leads in a circle again and again.
    Again,
    /// Nobody answers behind the port, or the link carries no data.
    Broken(String),
}

/// The most nodes that a tree is followed through: each has at least one of the 49,151 unicast LIDs.
const MOST_NODES: usize = 49_151;

/// The ports of a mask.
const PORTS: u8 = 16;

impl Tree {
    /// Follows the multicast tables from a port; `Err` with what has to be asked first.
    pub(crate) fn grow(
        atlas: &Atlas,
        start: (NodeNumber, u8),
        mlid: u16,
    ) -> Result<Vec<Branch>, Vec<Fact>> {
        let mut branches = Vec::new();
        let mut missing = Vec::new();
        let mut seen: BTreeSet<NodeNumber> = BTreeSet::new();
        let mut queue: VecDeque<(NodeNumber, u8, usize)> = VecDeque::new();
        if atlas.node(start.0).kind.is_switch() {
            seen.insert(start.0);
            let ports = outputs(atlas, start, mlid, &mut missing);
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
                verdict: Verdict::NotAsked,
            };
            let (node, enters) = match atlas.node(from).links.get(&out) {
                // Whoever answers for more nodes than there are LIDs, or so far away, is not followed.
                None if atlas.nodes() > MOST_NODES
                    || atlas.node(from).route.len() >= usize::from(smp::MAX_HOPS) =>
                {
                    branches.push(broken("it is too far away to be asked".to_owned()));
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
            let end = if !atlas.node(node).kind.is_switch() {
                BranchEnd::Delivered
            } else if seen.insert(node) {
                let ports = outputs(atlas, (node, enters), mlid, &mut missing);
                queue.extend(ports.iter().map(|&port| (node, port, depth + 1)));
                BranchEnd::Sent(ports)
            } else {
                BranchEnd::Again
            };
            let hop = Hop { from, out, node, enters };
            branches.push(Branch { hop, depth, end, verdict: Verdict::NotAsked });
        }
        if missing.is_empty() { Ok(branches) } else { Err(missing) }
    }

    /// Returns how often each port gets what is sent to the group, by port GUID. A switch's own port
    /// is its port 0.
    #[must_use]
    pub fn deliveries(&self, atlas: &Atlas) -> BTreeMap<Guid, usize> {
        let mut deliveries = BTreeMap::new();
        for branch in &self.branches {
            let delivers = match &branch.end {
                BranchEnd::Delivered => true,
                BranchEnd::Sent(ports) => ports.contains(&0),
                BranchEnd::Again | BranchEnd::Broken(_) => false,
            };
            let end = atlas.end((branch.hop.node, branch.hop.enters)).filter(|_| delivers);
            if let Some(end) = end {
                *deliveries.entry(end.guid).or_insert(0) += 1;
            }
        }
        deliveries
    }

    /// Returns the branches by which a switch gets packets once more.
    pub fn doubles(&self) -> impl Iterator<Item = &Branch> {
        self.branches.iter().filter(|branch| branch.end == BranchEnd::Again)
    }
}

/// Returns the ports by which a switch sends what comes in by a port to a group, as far as its table is
/// known.
fn outputs(
    atlas: &Atlas,
    (node, enters): (NodeNumber, u8),
    mlid: u16,
    missing: &mut Vec<Fact>,
) -> Vec<u8> {
    const LIDS: u16 = MulticastForwardingBlock::LIDS;
    let place = mlid - MulticastForwardingBlock::FIRST_LID;
    let (block, row) = (place / LIDS, usize::from(place % LIDS));
    let ports = atlas.node(node).ports;
    let mut outputs = Vec::new();
    for position in 0..=ports / PORTS {
        let fact = Fact::Multicast { node, block, position };
        match atlas.masks.get(&(node, block, position)) {
            Some(masks) => {
                let numbers = (0..PORTS).filter(|bit| masks[row] >> bit & 1 != 0);
                outputs.extend(numbers.map(|bit| position * PORTS + bit));
            }
            // A table that cannot be read sends nowhere, for all that is known.
            None if atlas.lacking.contains_key(&fact) => {}
            None => missing.push(fact),
        }
    }
    outputs.retain(|&port| port != enters && port <= ports);
    outputs
}
