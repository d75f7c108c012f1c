//! Model of the part of the fabric that traces have queried: nodes, links and tables.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::{Guid, NodeKind};
use ib_wire::mad::sm::{LinearForwardingBlock, PortState};
use ib_wire::mad::smp;

use crate::path::{Hop, MAX_HOPS, NodeNumber, Stop};

const BLOCK: u16 = LinearForwardingBlock::LIDS;

/// The table entry for "no path".
const NO_PATH: u8 = 255;

/// A node.
#[derive(Clone, Debug)]
pub struct TracedNode {
    /// Node GUID.
    pub guid: Guid,
    /// The node type.
    pub kind: NodeKind,
    /// Number of external ports of the node.
    pub ports: u8,
    /// The node description.
    pub description: String,
    /// Egress ports of the directed route to the node. Empty for the local node, and if the model
    /// was built from SA records.
    pub route: Box<[u8]>,
    /// Ports with LIDs. A switch has LIDs only at port 0. At other nodes, these are the ports at which a path has
    /// arrived.
    pub(crate) ends: BTreeMap<u8, End>,
    pub(crate) links: BTreeMap<u8, Link>,
    /// `LinearFDBTop` of a switch.
    pub(crate) top: Option<u16>,
    pub(crate) blocks: Vec<Option<Box<[u8; BLOCK as usize]>>>,
}

/// A port with LIDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Port GUID.
    pub guid: Guid,
    /// The GID prefix.
    pub prefix: u64,
    /// The base LID.
    pub lid: u16,
    /// The LMC: the port has all LIDs that differ from the base LID only in this number of low bits.
    pub lmc: u8,
}

impl End {
    /// Returns true if a LID belongs to the port.
    #[must_use]
    pub const fn has(&self, lid: u16) -> bool {
        self.lid != 0 && lid >> self.lmc == self.lid >> self.lmc
    }

    /// Returns the highest LID of the port.
    #[must_use]
    pub const fn last_lid(&self) -> u16 {
        self.lid | ((1 << self.lmc) - 1)
    }
}

/// The far end of a port's link.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    /// Node and port at the far end, and the state of the near port.
    To(NodeNumber, u8, PortState),
    /// No node responds at the far end.
    Nowhere {
        /// The reason why no node responds, as a text.
        why: String,
        /// True if the near port itself reports that it is not Active.
        is_down: bool,
    },
}

/// The queried part of a fabric.
#[derive(Debug, Default)]
pub struct FabricModel {
    nodes: Vec<TracedNode>,
    /// Nodes by the GUID that they report. A duplicate GUID has several nodes.
    by_guid: BTreeMap<Guid, Vec<NodeNumber>>,
    /// The local node and port; `None` until they were queried.
    own: Option<(NodeNumber, u8)>,
    /// Facts that could not be read, and the reasons.
    pub(crate) unreadable: BTreeMap<Fact, String>,
    /// Blocks of multicast tables by node, block number and position. A position is a group of 16 ports.
    pub(crate) masks: BTreeMap<(NodeNumber, u16, u8), [u16; 32]>,
    /// By LID: the ports that report the LID.
    claims: BTreeMap<u16, Vec<(NodeNumber, u8)>>,
    /// Nodes with an inconsistent response, and a text about the contradiction in it.
    pub(crate) inconsistent: BTreeMap<NodeNumber, String>,
    /// Node and block number of the forwarding table blocks that were read a second time.
    pub(crate) confirmed: BTreeSet<(NodeNumber, u16)>,
    /// Switches whose forwarding tables changed between two readings, or could not be read again.
    pub(crate) changed: BTreeSet<NodeNumber>,
}

/// Result of following a path through the tables.
pub(crate) enum WalkResult {
    /// The path cannot be followed before this fact was queried.
    Needs(Fact),
    /// The path was followed to its end.
    Ended(Path),
}

/// A path through the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) hops: Vec<Hop>,
    pub(crate) stop: Stop,
}

impl FabricModel {
    /// Returns the node with this number.
    ///
    /// # Panics
    /// Panics if the number is from another model.
    #[must_use]
    pub fn node(&self, number: NodeNumber) -> &TracedNode {
        &self.nodes[number.0 as usize]
    }

    /// Returns the name of a node for messages: type, GUID and description.
    #[must_use]
    pub fn name(&self, number: NodeNumber) -> String {
        let node = self.node(number);
        format!("{} {} ('{}')", node.kind, node.guid, node.description)
    }

    /// Returns the number of queried nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the local node, and the port of this node at which traces start.
    #[must_use]
    pub const fn own(&self) -> Option<(NodeNumber, u8)> {
        self.own
    }

    /// Returns the GUID and LIDs of a port. All ports of a switch have the GUID and LIDs of its port 0. Returns `None`
    /// if they are unknown.
    #[must_use]
    pub fn end(&self, (node, port): (NodeNumber, u8)) -> Option<&End> {
        let known = self.node(node);
        known.ends.get(if known.kind.is_switch() { &0 } else { &port })
    }

    /// Returns the port of a node at which the directed route to the node arrives.
    pub(crate) fn arrival_port(&self, number: NodeNumber) -> Option<u8> {
        let (last, before) = self.node(number).route.split_last()?;
        self.nodes.iter().filter(|node| *node.route == *before).find_map(|node| {
            match node.links.get(last) {
                Some(&Link::To(next, enters, _)) if next == number => Some(enters),
                _ => None,
            }
        })
    }

    /// Returns the ports that report a LID.
    pub(crate) fn claimants(&self, lid: u16) -> &[(NodeNumber, u8)] {
        self.claims.get(&lid).map_or(&[], Vec::as_slice)
    }

    /// Sets the GUID and LIDs of a port. For a switch, the caller must pass port 0.
    pub(crate) fn set_end(&mut self, (node, port): (NodeNumber, u8), end: End) {
        self.node_mut(node).ends.insert(port, end);
        if end.lid == 0 {
            return;
        }
        for lid in end.lid..=end.last_lid() {
            let claims = self.claims.entry(lid).or_default();
            if !claims.contains(&(node, port)) {
                claims.push((node, port));
            }
        }
    }

    pub(crate) fn node_mut(&mut self, number: NodeNumber) -> &mut TracedNode {
        &mut self.nodes[number.0 as usize]
    }

    /// Returns the nodes that report a GUID, in the order of discovery.
    pub(crate) fn find(&self, guid: Guid) -> &[NodeNumber] {
        self.by_guid.get(&guid).map_or(&[], Vec::as_slice)
    }

    /// Returns another node with the same GUID, if any.
    pub(crate) fn duplicate_of(&self, number: NodeNumber) -> Option<NodeNumber> {
        let all = self.find(self.node(number).guid);
        all.iter().copied().find(|&other| other != number).filter(|_| all.len() > 1)
    }

    pub(crate) fn add(&mut self, node: TracedNode) -> NodeNumber {
        let number = NodeNumber(self.nodes.len() as u32);
        self.by_guid.entry(node.guid).or_default().push(number);
        self.nodes.push(node);
        number
    }

    pub(crate) const fn set_own(&mut self, own: (NodeNumber, u8)) {
        self.own = Some(own);
    }

    pub(crate) fn set_block(&mut self, node: NodeNumber, block: u16, ports: [u8; BLOCK as usize]) {
        let blocks = &mut self.node_mut(node).blocks;
        let place = usize::from(block);
        if blocks.len() <= place {
            blocks.resize(place + 1, None);
        }
        blocks[place] = Some(Box::new(ports));
    }

    /// Returns true if `ports` equals the forwarding table block in the model.
    pub(crate) fn is_block(&self, node: NodeNumber, block: u16, ports: &[u8]) -> bool {
        let known = self.node(node).blocks.get(usize::from(block)).and_then(Option::as_ref);
        known.is_some_and(|known| known[..] == *ports)
    }

    /// Follows a path to `lid`, and returns the first table block to read a second time. `None` if every block on the
    /// path was read twice. The switch at the end of the path is included.
    pub(crate) fn unconfirmed(&self, path: &Path, lid: u16) -> Option<Fact> {
        let last = path.hops.last().map(|hop| hop.node);
        let nodes = path.hops.iter().map(|hop| hop.from).chain(last);
        nodes.filter(|&node| self.node(node).kind.is_switch()).find_map(|node| {
            let block = lid / BLOCK;
            let is_read = matches!(self.node(node).blocks.get(usize::from(block)), Some(Some(_)));
            let is_open = is_read && !self.confirmed.contains(&(node, block));
            is_open.then_some(Fact::Reread { node, block })
        })
    }

    /// Returns the first switch on a path that is in `changed`. The switch at the end of the path is included.
    pub(crate) fn changed_on(&self, path: &Path) -> Option<NodeNumber> {
        let last = path.hops.last().map(|hop| hop.node);
        path.hops.iter().map(|hop| hop.from).chain(last).find(|node| self.changed.contains(node))
    }

    /// Follows the path to a LID from a port, through the forwarding tables.
    pub(crate) fn walk(&self, start: (NodeNumber, u8), lid: u16) -> WalkResult {
        let mut hops: Vec<Hop> = Vec::new();
        let (mut at, mut port) = start;
        let stop = loop {
            let node = self.node(at);
            if self.end((at, port)).is_some_and(|end| end.has(lid)) {
                break Stop::Arrived;
            }
            let out = if node.kind.is_switch() {
                match self.entry(at, lid) {
                    Entry::Needs(fact) => return WalkResult::Needs(fact),
                    Entry::Port(out) => out,
                    Entry::Stop(stop) => break stop,
                }
            } else if hops.is_empty() {
                port
            } else {
                break Stop::WrongPort { node: at, port };
            };
            if hops.len() == MAX_HOPS {
                break Stop::TooFar { at };
            }
            match node.links.get(&out) {
                // The next node is too far away for a directed route.
                None if node.route.len() >= usize::from(smp::MAX_HOPS) => {
                    break Stop::TooFar { at };
                }
                None => return WalkResult::Needs(Fact::Link { node: at, port: out }),
                Some(Link::Nowhere { why, is_down }) => {
                    let (why, is_down) = (why.clone(), *is_down);
                    break Stop::Unlinked { at, port: out, why, is_down };
                }
                Some(&Link::To(_, _, state)) if state != PortState::ACTIVE => {
                    break Stop::NotActive { at, port: out, state };
                }
                Some(&Link::To(next, enters, _)) => {
                    hops.push(Hop { from: at, out, node: next, enters });
                    // The path has visited this switch before. The switch uses the same table entry again, so this is a
                    // loop.
                    let again = hops[..hops.len() - 1].iter().position(|hop| hop.from == next);
                    if let Some(first) = again.filter(|_| self.node(next).kind.is_switch()) {
                        break Stop::Loop { first };
                    }
                    (at, port) = (next, enters);
                }
            }
        };
        WalkResult::Ended(Path { hops, stop })
    }

    /// Returns the port out of which a switch sends packets to a LID, according to its table.
    pub(crate) fn entry(&self, at: NodeNumber, lid: u16) -> Entry {
        let node = self.node(at);
        let fact = Fact::Block { node: at, block: lid / BLOCK };
        if let Some(why) = self.unreadable.get(&fact) {
            return Entry::Stop(Stop::NoTable { at, why: why.clone() });
        }
        if node.top.is_some_and(|top| lid > top) {
            return Entry::Stop(Stop::NoEntry { at });
        }
        let block = node.blocks.get(usize::from(lid / BLOCK)).and_then(Option::as_ref);
        match block.map(|ports| ports[usize::from(lid % BLOCK)]) {
            None => Entry::Needs(fact),
            Some(NO_PATH) => Entry::Stop(Stop::NoEntry { at }),
            Some(0) => Entry::Stop(Stop::NotHere { at }),
            Some(port) if port > node.ports => Entry::Stop(Stop::NoSuchPort { at, port }),
            Some(port) => Entry::Port(port),
        }
    }
}

/// Result of looking up a LID in the table of a switch.
pub(crate) enum Entry {
    Needs(Fact),
    Port(u8),
    Stop(Stop),
}

/// The source from which a client queries facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FactSource {
    /// The nodes themselves, over directed routes.
    #[default]
    DirectedRoutes,
    /// SA records of links, ports and tables. The client compares them with the reports of the nodes.
    SaRecords,
}

/// A fact about the fabric that a trace depends on: a node, a link, or a block of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fact {
    /// The local node and port.
    Own,
    /// The node at the other end of a port's link.
    Link { node: NodeNumber, port: u8 },
    /// A block of a forwarding table.
    Block { node: NodeNumber, block: u16 },
    /// A block of a forwarding table, which is read a second time to detect changes.
    Reread { node: NodeNumber, block: u16 },
    /// A block of a multicast table. `position` selects a group of 16 ports.
    Multicast { node: NodeNumber, block: u16, position: u8 },
}
