//! Multicast trees. The tree of each group connects its root, a switch, to every member over the fewest hops.
//!
//! The root is the switch with the fewest hops to all members in total. Every switch of the tree forwards a packet to
//! all its tree ports except the ingress port, so that each member gets the packet once.

use std::collections::BTreeMap;

use ib_types::Guid;
use ib_wire::mad::sm::MulticastForwardingBlock;

use crate::discovered_subnet::{DiscoveredSubnet, NodeIndex, PortIndex};

/// Egress port mask of one multicast LID at one switch: bit n mod 16 of word n / 16 stands for port n.
pub(crate) type Ports = [u16; 16];

/// The egress port masks of one switch, by multicast LID.
pub(crate) type Entries = BTreeMap<u16, Ports>;

const LIDS: u16 = MulticastForwardingBlock::LIDS;

/// The multicast forwarding tables of all switches, as far as the SM has written them: blocks by node GUID, block
/// number and position. Position n covers the 16 ports from port 16 × n on.
#[derive(Clone, Debug, Default)]
pub(crate) struct MulticastTables {
    known: BTreeMap<Guid, BTreeMap<(u16, u8), [u16; LIDS as usize]>>,
}

impl MulticastTables {
    /// Returns the content of a block; `None` if it is unknown, because the block was not written.
    pub(crate) fn block(&self, switch: Guid, at: (u16, u8)) -> Option<&[u16; LIDS as usize]> {
        self.known.get(&switch)?.get(&at)
    }

    pub(crate) fn set(&mut self, switch: Guid, at: (u16, u8), masks: [u16; LIDS as usize]) {
        self.known.entry(switch).or_default().insert(at, masks);
    }

    pub(crate) fn forget(&mut self, switch: Guid, at: (u16, u8)) {
        if let Some(blocks) = self.known.get_mut(&switch) {
            blocks.remove(&at);
        }
    }

    /// Forgets the multicast tables of all switches for which `keep` returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(Guid) -> bool) {
        self.known.retain(|&switch, _| keep(switch));
    }

    /// Returns the block number and the position (group of 16 ports) of each block that was written to a switch.
    pub(crate) fn blocks(&self, switch: Guid) -> impl Iterator<Item = (u16, u8)> {
        self.known.get(&switch).into_iter().flat_map(|blocks| blocks.keys().copied())
    }
}

/// Returns a block of a switch's multicast table. A block covers 32 multicast LIDs and 16 ports.
pub(crate) fn block(
    entries: Option<&Entries>,
    (block, position): (u16, u8),
) -> [u16; LIDS as usize] {
    let first = MulticastForwardingBlock::FIRST_LID + block * LIDS;
    let mut masks = [0; LIDS as usize];
    for (&mlid, ports) in entries.into_iter().flat_map(|it| it.range(first..=first + (LIDS - 1))) {
        masks[usize::from(mlid - first)] = ports[usize::from(position)];
    }
    masks
}

/// Returns the block number and the position (group of 16 ports) of each block that contains entries.
pub(crate) fn positions(entries: &Entries) -> impl Iterator<Item = (u16, u8)> {
    entries.iter().flat_map(|(&mlid, ports)| {
        let block = (mlid - MulticastForwardingBlock::FIRST_LID) / LIDS;
        (0..16u8).filter(|&at| ports[usize::from(at)] != 0).map(move |at| (block, at))
    })
}

/// Builder of the trees. It has the links between switches, and caches the breadth-first searches over them.
pub(crate) struct Trees<'a> {
    found: &'a DiscoveredSubnet,
    /// Switches in the order of their node indices.
    switches: Vec<NodeIndex>,
    /// For each node, its index in `switches`; `None` if the node is not a switch.
    numbers: Vec<Option<u32>>,
    /// For each switch, the index of its first link in `links`. The last item is the number of links.
    starts: Vec<usize>,
    links: Vec<Link>,
    searches: Vec<Option<Search>>,
    entries: BTreeMap<NodeIndex, Entries>,
}

/// A link from one switch to another.
#[derive(Clone, Copy, Debug)]
struct Link {
    to: u32,
    /// Port number at the other end of the link.
    to_port: u8,
}

/// A breadth-first search from one switch.
struct Search {
    /// Number of hops to each switch; [`UNREACHED`] if the switch was not reached.
    hops: Vec<u16>,
    /// For each switch, its port that leads towards the start of the search.
    back: Vec<u8>,
}

const UNREACHED: u16 = u16::MAX;

impl<'a> Trees<'a> {
    pub(crate) fn new(found: &'a DiscoveredSubnet) -> Self {
        let switches = found.nodes().filter(|(_, node)| node.kind.is_switch());
        let switches: Vec<NodeIndex> = switches.map(|(node, _)| node).collect();
        let mut numbers = vec![None; found.nodes().len()];
        for (number, node) in (0..).zip(&switches) {
            numbers[node.0 as usize] = Some(number);
        }
        let (mut starts, mut links) = (vec![0], Vec::new());
        for &node in &switches {
            let peers = found.node(node).ports.iter().filter_map(|port| port.peer);
            links.extend(peers.filter_map(|peer| {
                Some(Link { to: numbers[peer.node.0 as usize]?, to_port: peer.port })
            }));
            starts.push(links.len());
        }
        let searches = switches.iter().map(|_| None).collect();
        Self { found, switches, numbers, starts, links, searches, entries: BTreeMap::new() }
    }

    /// Returns the multicast table entries of all switches in the trees.
    pub(crate) fn finish(self) -> BTreeMap<NodeIndex, Entries> {
        self.entries
    }

    /// Adds the tree of a group. Members that are not linked to a switch are left out.
    pub(crate) fn add(&mut self, mlid: u16, members: &[PortIndex]) {
        let mut left = self.attached(members);
        // If the subnet is split into parts, each part gets its own tree.
        while let Some(&first) = left.keys().next() {
            let root = self.root(first, &left);
            let hops = &self.search(root).hops;
            let reached = left.keys().copied().filter(|&at| hops[at as usize] != UNREACHED);
            for switch in reached.collect::<Vec<u32>>() {
                for port in left.remove(&switch).unwrap_or_default() {
                    self.set(mlid, switch, port);
                }
                let mut at = switch;
                while at != root {
                    let up = self.search(root).back[at as usize];
                    let parent = self.found.port(self.switches[at as usize].at(up)).peer;
                    let parent = parent.expect("tree ports have a link");
                    self.set(mlid, at, up);
                    at = self.numbers[parent.node.0 as usize].expect("the parent is a switch");
                    self.set(mlid, at, parent.port);
                }
            }
        }
    }

    /// Returns the switches to which the members are attached, with the switch ports of the members.
    fn attached(&self, members: &[PortIndex]) -> BTreeMap<u32, Vec<u8>> {
        let mut attached: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for &member in members {
            let at = match self.found.node(member.node).kind.is_switch() {
                true => Some(member.node.at(0)),
                false => self.found.port(member).peer,
            };
            if let Some(at) = at
                && let Some(switch) = self.numbers[at.node.0 as usize]
            {
                attached.entry(switch).or_default().push(at.port);
            }
        }
        attached
    }

    fn set(&mut self, mlid: u16, switch: u32, port: u8) {
        let node = self.switches[switch as usize];
        let ports = self.entries.entry(node).or_default().entry(mlid).or_default();
        ports[usize::from(port / 16)] |= 1 << (port % 16);
    }

    /// Returns the root of the tree. It is the switch reachable from `from` that has the fewest hops to all members'
    /// switches in total. Among several such switches, the root is the one with the lowest node index.
    fn root(&mut self, from: u32, members: &BTreeMap<u32, Vec<u8>>) -> u32 {
        if members.len() == 1 {
            return from;
        }
        let met = self.search(from).hops.iter().map(|&hops| (hops != UNREACHED).then_some(0));
        let mut sums: Vec<Option<u64>> = met.collect();
        for (&member, ports) in members {
            if sums[member as usize].is_some() {
                let hops = &self.search(member).hops;
                for (sum, &hops) in sums.iter_mut().zip(hops) {
                    *sum = sum.map(|sum| sum + u64::from(hops) * ports.len() as u64);
                }
            }
        }
        let sums = (0..).zip(sums).filter_map(|(at, sum)| Some((sum?, at)));
        sums.min().map_or(from, |(_, at)| at)
    }

    /// Returns the breadth-first search from a switch. Runs it if it is not cached.
    fn search(&mut self, from: u32) -> &Search {
        if self.searches[from as usize].is_none() {
            self.searches[from as usize] = Some(self.run(from));
        }
        self.searches[from as usize].as_ref().expect("the search was stored above")
    }

    fn run(&self, from: u32) -> Search {
        let count = self.switches.len();
        let mut search = Search { hops: vec![UNREACHED; count], back: vec![0; count] };
        let mut queue = Vec::with_capacity(count);
        search.hops[from as usize] = 0;
        queue.push(from);
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            let hops = search.hops[at as usize] + 1;
            for link in &self.links[self.starts[at as usize]..self.starts[at as usize + 1]] {
                let known = &mut search.hops[link.to as usize];
                if *known == UNREACHED {
                    *known = hops;
                    search.back[link.to as usize] = link.to_port;
                    queue.push(link.to);
                }
            }
        }
        search
    }
}
