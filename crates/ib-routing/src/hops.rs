//! The hop matrix: the hops from each switch to each other switch, over each of its ports.

use rayon::prelude::*;

use crate::subnet::{Subnet, SwitchId};

/// Number of hops to a destination that cannot be reached.
pub const NO_HOPS: u8 = 255;

/// Number of source switches that one breadth-first search handles: one for each bit of a `u64`.
const SOURCES: usize = 64;

/// The least hops from every switch to every other switch, and the hops over each of its ports.
#[derive(Clone, Debug)]
pub struct HopMatrix {
    switches: usize,
    /// The least hops, indexed by source switch and then by destination switch.
    least: Vec<u8>,
    through: Through,
}

#[derive(Clone, Debug)]
enum Through {
    /// The hops over a port are the weight of its link plus the least hops of the neighbour.
    Neighbours(LinkWeights),
    /// The hops over every port, as one byte list per source switch; see [`HopMatrix::explicit`].
    Explicit(Vec<Vec<u8>>),
    /// The class of each port, and the hops over the ports of each class, indexed by class and then by destination
    /// switch.
    ByClass(LinkClasses, Vec<u8>),
}

/// The weights of links in hops, by switch and output port. A link that is not listed has weight 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkWeights(std::collections::BTreeMap<(SwitchId, u8), u8>);

impl LinkWeights {
    /// Sets the weight of the link at a port. It applies to packets that leave through this port.
    pub fn set(&mut self, switch: SwitchId, port: u8, weight: u8) {
        self.0.insert((switch, port), weight);
    }

    /// Returns the weight of the link at a port.
    #[must_use]
    pub fn get(&self, switch: SwitchId, port: u8) -> u8 {
        if self.0.is_empty() { 1 } else { self.0.get(&(switch, port)).copied().unwrap_or(1) }
    }

    /// Returns true if all weights are 1.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.0.values().all(|&weight| weight == 1)
    }
}

impl HopMatrix {
    /// Computes the least hops between all switches.
    ///
    /// As in OpenSM, a destination at 255 hops or more is unreachable.
    #[must_use]
    pub fn shortest(subnet: &Subnet<'_>, weights: &LinkWeights) -> Self {
        let switches = subnet.switches().len();
        let mut least = vec![NO_HOPS; switches * switches];
        if weights.is_uniform() {
            let graph = Graph::new(subnet);
            least
                .par_chunks_mut(switches.max(1) * SOURCES)
                .enumerate()
                .for_each(|(batch, rows)| graph.breadth_first(batch * SOURCES, rows));
        } else {
            least.par_chunks_exact_mut(switches.max(1)).enumerate().for_each(|(source, row)| {
                weighted_row(subnet, weights, SwitchId(source as u16), row);
            });
        }
        Self { switches, least, through: Through::Neighbours(weights.clone()) }
    }

    /// Creates a matrix from the given hops from every switch, over each of its ports, to every switch.
    ///
    /// `through[s]` has one row for each destination switch. A row has one byte for each port of the switch `s`, from
    /// port 0 on: the hops over this port. The byte of port 0 is the minimum over all ports.
    ///
    /// # Panics
    /// Panics if the length of `through` or of an element does not match the subnet.
    #[must_use]
    pub fn explicit(subnet: &Subnet<'_>, through: Vec<Vec<u8>>) -> Self {
        let switches = subnet.switches().len();
        assert_eq!(through.len(), switches, "one block of hops per switch");
        let mut least = Vec::with_capacity(switches * switches);
        for (switch, block) in subnet.switches().iter().zip(&through) {
            let stride = usize::from(switch.ports) + 1;
            assert_eq!(block.len(), stride * switches, "one row per destination switch");
            least.extend(block.chunks_exact(stride).map(|row| row[0]));
        }
        Self { switches, least, through: Through::Explicit(through) }
    }

    /// Creates a matrix from the results of one search per destination switch.
    ///
    /// `rows` has one row per destination switch. A row contains the least hops from every switch, and then, for every
    /// class in `classes`, the hops over the ports of the class.
    pub(crate) fn by_class(subnet: &Subnet<'_>, classes: LinkClasses, rows: &[u8]) -> Self {
        let switches = subnet.switches().len();
        let width = switches + classes.count;
        assert_eq!(rows.len(), switches * width, "one row per destination switch");
        let mut least = vec![NO_HOPS; width * switches];
        transpose(rows, width, &mut least);
        let hops = least.split_off(switches * switches);
        Self { switches, least, through: Through::ByClass(classes, hops) }
    }

    /// Returns the least hops from one switch to another; [`NO_HOPS`] if there is no path.
    #[must_use]
    pub fn least(&self, from: SwitchId, to: SwitchId) -> u8 {
        self.least[from.index() * self.switches + to.index()]
    }

    /// Returns the least hops from a switch to all switches, in the order of the switches.
    #[must_use]
    pub fn least_row(&self, from: SwitchId) -> &[u8] {
        &self.least[from.index() * self.switches..][..self.switches]
    }

    /// Returns the hops from a switch over one of its ports to another switch. For port 0, returns the minimum over all
    /// ports.
    #[must_use]
    pub fn through(&self, subnet: &Subnet<'_>, from: SwitchId, port: u8, to: SwitchId) -> u8 {
        match &self.through {
            Through::Explicit(blocks) => {
                let stride = usize::from(subnet.switch(from).ports) + 1;
                blocks[from.index()]
                    .get(to.index() * stride + usize::from(port))
                    .copied()
                    .filter(|_| usize::from(port) < stride)
                    .unwrap_or(NO_HOPS)
            }
            Through::Neighbours(_) | Through::ByClass(..) if port == 0 => self.least(from, to),
            Through::ByClass(classes, hops) => classes
                .of(from, port)
                .map_or(NO_HOPS, |class| hops[class * self.switches + to.index()]),
            Through::Neighbours(weights) => match subnet.peers(from).get(usize::from(port)) {
                Some(&crate::subnet::Peer::Switch(next, _)) => {
                    self.least(next, to).saturating_add(weights.get(from, port))
                }
                _ => NO_HOPS,
            },
        }
    }

    /// Puts into `sets` the least-hop ports of a switch towards every other switch. The set towards the switch itself
    /// is empty.
    pub(crate) fn least_hop_ports(&self, subnet: &Subnet<'_>, from: SwitchId, sets: &mut PortSets) {
        sets.reset(subnet.switch(from).ports);
        let least = self.least_row(from);
        match &self.through {
            Through::Neighbours(weights) => {
                for (port, next, _) in subnet.switch_links(from) {
                    sets.add_on_least(port, weights.get(from, port), self.least_row(next), least);
                }
            }
            Through::Explicit(blocks) => {
                let stride = usize::from(subnet.switch(from).ports) + 1;
                sets.add_rows(blocks[from.index()].chunks_exact(stride), least);
            }
            Through::ByClass(classes, hops) => {
                for (port, _, _) in subnet.switch_links(from) {
                    if let Some(class) = classes.of(from, port) {
                        let row = &hops[class * self.switches..][..self.switches];
                        sets.add_on_least(port, 0, row, least);
                    }
                }
            }
        }
        sets.clear_unreachable(from, least);
    }
}

/// The class of each port. The ports of a class have the same hops to every destination.
#[derive(Clone, Debug)]
pub(crate) struct LinkClasses {
    /// By switch: the index in `class` of the switch's first port.
    offset: Vec<u32>,
    /// The class of each port; `u32::MAX` if the port does not lead to a switch.
    class: Vec<u32>,
    count: usize,
}

impl LinkClasses {
    /// Creates `count` empty classes.
    pub(crate) fn new(subnet: &Subnet<'_>, count: usize) -> Self {
        let mut offset = vec![0];
        let mut next = 0;
        for switch in subnet.switches() {
            next += u32::from(switch.ports) + 1;
            offset.push(next);
        }
        Self { offset, class: vec![u32::MAX; next as usize], count }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds a port to a class.
    pub(crate) fn set(&mut self, switch: SwitchId, port: u8, class: u32) {
        self.class[self.offset[switch.index()] as usize + usize::from(port)] = class;
    }

    fn of(&self, switch: SwitchId, port: u8) -> Option<usize> {
        let range = self.offset[switch.index()] as usize..self.offset[switch.index() + 1] as usize;
        let class = *self.class[range].get(usize::from(port))?;
        (class != u32::MAX).then_some(class as usize)
    }
}

/// Transposes rows of `width` bytes into columns. Each parallel task fills as many columns as a cache line has bytes.
fn transpose(rows: &[u8], width: usize, columns: &mut [u8]) {
    const BLOCK: usize = 64;
    let height = rows.len() / width.max(1);
    columns.par_chunks_mut(height.max(1) * BLOCK).enumerate().for_each(|(block, columns)| {
        let first = block * BLOCK;
        let count = columns.len() / height;
        for (at, row) in rows.chunks_exact(width).enumerate() {
            for (column, &byte) in row[first..first + count].iter().enumerate() {
                columns[column * height + at] = byte;
            }
        }
    });
}

/// For one switch, the set of ports towards every destination switch.
///
/// Ports are grouped by eight. For each group, there is one byte per destination, with one bit for each port of the
/// group. The bytes of a group are adjacent, so a port is added to the sets of all destinations in one pass over them.
pub(crate) struct PortSets {
    switches: usize,
    groups: usize,
    bits: Vec<u8>,
}

impl PortSets {
    pub(crate) fn new(subnet: &Subnet<'_>) -> Self {
        Self { switches: subnet.switches().len(), groups: 0, bits: Vec::new() }
    }

    fn reset(&mut self, ports: u8) {
        self.groups = usize::from(ports) / 8 + 1;
        self.bits.clear();
        self.bits.resize(self.groups * self.switches, 0);
    }

    /// Adds a port to the sets of all destinations that have a shortest path over it.
    fn add_on_least(&mut self, port: u8, weight: u8, beyond: &[u8], least: &[u8]) {
        let bit = 1u8 << (port % 8);
        let group = &mut self.bits[usize::from(port) / 8 * self.switches..][..self.switches];
        for ((set, &beyond), &least) in group.iter_mut().zip(beyond).zip(least) {
            // If a destination is unreachable, `least` and the sum are both 255, so the port is added to its set.
            // `clear_unreachable` empties this set afterwards.
            *set |= if beyond.saturating_add(weight) == least { bit } else { 0 };
        }
    }

    fn add_rows<'a>(&mut self, rows: impl Iterator<Item = &'a [u8]>, least: &[u8]) {
        for (to, (row, &best)) in rows.zip(least).enumerate() {
            for (group, hops) in row.chunks(8).enumerate() {
                let set = hops
                    .iter()
                    .enumerate()
                    .fold(0, |set, (bit, &hops)| set | u8::from(hops == best) << bit);
                self.bits[group * self.switches + to] = set;
            }
            self.bits[to] &= !1;
        }
    }

    fn clear_unreachable(&mut self, from: SwitchId, least: &[u8]) {
        for group in self.bits.chunks_exact_mut(self.switches) {
            for (set, &least) in group.iter_mut().zip(least) {
                *set = if least == NO_HOPS { 0 } else { *set };
            }
            group[from.index()] = 0;
        }
    }

    /// Appends the ports towards a switch to `ports`, in ascending order.
    pub(crate) fn ports(&self, towards: SwitchId, ports: &mut Vec<u8>) {
        for group in 0..self.groups {
            let mut set = self.bits[group * self.switches + towards.index()];
            while set != 0 {
                ports.push((group * 8) as u8 + set.trailing_zeros() as u8);
                set &= set - 1;
            }
        }
    }
}

/// The neighbours of each switch, without parallel links, for breadth-first searches.
#[derive(PartialEq, Eq)]
pub(crate) struct Graph {
    first: Vec<u32>,
    next: Vec<u16>,
}

impl Graph {
    pub(crate) fn new(subnet: &Subnet<'_>) -> Self {
        let mut graph = Self { first: vec![0], next: Vec::new() };
        for id in subnet.switch_ids() {
            let start = graph.next.len();
            for (_, other, _) in subnet.switch_links(id) {
                if !graph.next[start..].contains(&other.0) {
                    graph.next.push(other.0);
                }
            }
            graph.first.push(graph.next.len() as u32);
        }
        graph
    }

    pub(crate) fn neighbours(&self, switch: u16) -> &[u16] {
        let (from, to) = (self.first[usize::from(switch)], self.first[usize::from(switch) + 1]);
        &self.next[from as usize..to as usize]
    }

    /// Searches from up to [`SOURCES`] consecutive switches at once, beginning with the switch `first`.
    ///
    /// `rows` gets one row per source switch: the hops from this switch to all switches.
    fn breadth_first(&self, first: usize, rows: &mut [u8]) {
        rows.fill(NO_HOPS);
        let switches = self.first.len() - 1;
        let mut seen = vec![0u64; switches];
        for (source, row) in rows.chunks_exact_mut(switches).enumerate() {
            row[first + source] = 0;
            seen[first + source] = 1 << source;
        }
        let mut front = seen.clone();
        let mut next = vec![0u64; switches];
        for hops in 1..NO_HOPS {
            let mut grown = 0;
            for (switch, (new, seen)) in next.iter_mut().zip(&mut seen).enumerate() {
                let near = self.neighbours(switch as u16).iter();
                *new = near.fold(0, |near, &other| near | front[usize::from(other)]) & !*seen;
                *seen |= *new;
                grown |= *new;
                let mut sources = *new;
                while sources != 0 {
                    rows[sources.trailing_zeros() as usize * switches + switch] = hops;
                    sources &= sources - 1;
                }
            }
            if grown == 0 {
                break;
            }
            std::mem::swap(&mut front, &mut next);
        }
    }
}

/// Computes the hops from one source by Dial's algorithm. The weight of a link, 1 to 255, is the weight of the port at
/// the switch nearer to the source.
fn weighted_row(subnet: &Subnet<'_>, weights: &LinkWeights, source: SwitchId, row: &mut [u8]) {
    row.fill(NO_HOPS);
    row[source.index()] = 0;
    let mut buckets: Vec<Vec<SwitchId>> = vec![Vec::new(); usize::from(NO_HOPS)];
    buckets[0].push(source);
    for distance in 0..NO_HOPS {
        for switch in std::mem::take(&mut buckets[usize::from(distance)]) {
            if row[switch.index()] != distance {
                continue;
            }
            for (port, other, _) in subnet.switch_links(switch) {
                let beyond = distance.saturating_add(weights.get(switch, port));
                if beyond < row[other.index()] {
                    row[other.index()] = beyond;
                    buckets[usize::from(beyond)].push(other);
                }
            }
        }
    }
}
