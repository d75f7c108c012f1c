//! The pass over all LIDs that collects the results of a check.
//!
//! LIDs are processed in batches of 64, because 64 LFT entries share a cache line and the search for least hops handles
//! 64 destinations at once. For each LID, the pass builds the forwarding tree from the LFT entries of all switches. It
//! then moves the packets of all sources along the tree together. So the cost per link does not depend on the number of
//! sources.

use rayon::prelude::*;

use super::Scope;
use super::dependency::TurnSink;
use super::distance::{Distances, MAX_DESTINATIONS, NO_COLUMN};
use super::hops::HopCounts;
use super::reach::{Cause, Judge, Reachability, Target};
use super::tree::{Fate, Tree};
use super::vls::VlRule;
use super::wiring::{Hop, Wiring};
use crate::hops::Graph;
use crate::layers::Layers;
use crate::lft::{Lfts, NO_PATH, UnknownEntries};
use crate::subnet::{Attachment, EndPort, Subnet, SwitchId};

/// The inputs of a check and data derived from them, which all threads only read.
pub(super) struct Pass<'a, L> {
    subnet: &'a Subnet<'a>,
    tables: Tables<'a>,
    vls: L,
    scope: Scope,
    samples: usize,
    /// Number of host ports at each switch.
    hosts: Vec<u32>,
    /// The switches with hosts, in ascending order.
    leaves: Vec<u16>,
    /// By switch: its position in `leaves`; [`NO_COLUMN`] if it has no hosts.
    column_of: Vec<u16>,
    /// By switch: port 0 and the ports to hosts, in ascending order.
    ins: Vec<Vec<u8>>,
}

/// The LFTs, and the links over which they forward packets.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    pub(super) lfts: &'a Lfts,
    pub(super) layers: &'a Layers,
    pub(super) wiring: &'a Wiring,
    pub(super) graph: &'a Graph,
    pub(super) unknown: Option<&'a UnknownEntries>,
}

/// Results of the pass for a set of LIDs.
pub(super) struct Findings<T> {
    pub(super) reach: Reachability,
    /// The LIDs that increase a count of [`Reachability::faults`], in ascending order.
    pub(super) failing: Vec<u16>,
    pub(super) hops: HopCounts,
    pub(super) turns: T,
    /// Number of routes over each channel.
    pub(super) routes: Vec<u32>,
}

/// The LIDs are split into at least this many parts per thread, for load balancing.
const PARTS_PER_THREAD: usize = 4;

/// Number of LIDs in a batch.
const BATCH: usize = MAX_DESTINATIONS;

impl<'a, L: VlRule> Pass<'a, L> {
    pub(super) fn new(
        subnet: &'a Subnet<'a>,
        tables: Tables<'a>,
        vls: L,
        scope: Scope,
        samples: usize,
    ) -> Self {
        let switches = subnet.switches().len();
        let mut ins = vec![vec![0]; switches];
        for port in subnet.end_ports() {
            if let Attachment::Port(switch, number) = port.attachment {
                ins[switch.index()].push(number);
            }
        }
        ins.iter_mut().for_each(|ports| ports.sort_unstable());
        let hosts: Vec<u32> = ins.iter().map(|ports| ports.len() as u32 - 1).collect();
        let leaves: Vec<u16> =
            (0..switches as u16).filter(|&switch| hosts[usize::from(switch)] > 0).collect();
        let mut column_of = vec![NO_COLUMN; switches];
        for (column, &switch) in (0..).zip(&leaves) {
            column_of[usize::from(switch)] = column;
        }
        Self { subnet, tables, vls, scope, samples, hosts, leaves, column_of, ins }
    }

    /// Checks all LIDs.
    pub(super) fn run<T: TurnSink>(&self) -> Findings<T> {
        let max_lid = usize::from(self.subnet.max_lid());
        let lids = |first: usize| (first..=max_lid.min(first + BATCH - 1)).map(|lid| lid as u16);
        let batches = (0..max_lid / BATCH + 1).into_par_iter();
        self.check(batches.map(|number| lids(number * BATCH).collect()))
    }

    /// Checks the given LIDs, which must be in ascending order.
    pub(super) fn run_some<T: TurnSink>(&self, lids: &[u16]) -> Findings<T> {
        self.check(lids.par_chunks(BATCH).map(<[u16]>::to_vec))
    }

    fn check<T: TurnSink>(
        &self,
        batches: impl IndexedParallelIterator<Item = Vec<u16>>,
    ) -> Findings<T> {
        // Merging the findings of a part costs time, so each thread gets only a few parts.
        let least = batches.len() / (PARTS_PER_THREAD * rayon::current_num_threads());
        batches
            .with_min_len(least.max(1))
            .fold(
                || Worker::new(self),
                |mut worker, lids| {
                    worker.check_batch(&lids);
                    worker
                },
            )
            .map(|worker| worker.found)
            // Findings are merged in the order of the batches, so the examples are those of the lowest LIDs.
            .reduce_with(|before, after| before.merge(after, self.samples))
            .unwrap_or_else(|| Findings::new(self.tables.wiring))
    }

    /// Counts the least hops from all switches with hosts to at most [`MAX_DESTINATIONS`] target switches.
    pub(super) fn measure(&self, distances: &mut Distances, targets: &[u16]) {
        distances.measure(self.tables.graph, &self.column_of, targets);
    }

    /// Returns a buffer for [`Self::measure`].
    pub(super) fn distances(&self) -> Distances {
        Distances::new(self.tables.wiring.switches(), self.leaves.len())
    }

    pub(super) const fn tables(&self) -> Tables<'a> {
        self.tables
    }

    /// Returns the switches with hosts.
    pub(super) fn leaves(&self) -> &[u16] {
        &self.leaves
    }
}

impl<T: TurnSink> Findings<T> {
    fn new(wiring: &Wiring) -> Self {
        Self {
            reach: Reachability::default(),
            failing: Vec::new(),
            hops: HopCounts::default(),
            turns: T::new(wiring),
            routes: vec![0; wiring.channels()],
        }
    }

    fn merge(mut self, later: Self, samples: usize) -> Self {
        self.reach.merge(later.reach, samples);
        self.failing.extend(later.failing);
        self.hops.merge(&later.hops);
        self.turns.merge(later.turns);
        for (ours, more) in self.routes.iter_mut().zip(&later.routes) {
            *ours += more;
        }
        self
    }
}

/// A LID, its port, and the switch of this port.
#[derive(Clone, Copy)]
struct Destination<'a> {
    lid: u16,
    port: &'a EndPort,
    /// The switch to which the port is linked, or whose port 0 it is.
    switch: SwitchId,
}

/// The findings and the buffers of a thread.
struct Worker<'p, L: VlRule, T> {
    pass: &'p Pass<'p, L>,
    found: Findings<T>,
    tree: Tree,
    distances: Distances,
    /// LFT entries, indexed by switch and by the LID's index in the batch.
    rows: Vec<u8>,
    /// LFT entries, indexed by the LID's index in the batch and by switch.
    table: Vec<u8>,
    /// By switch: the number of hosts whose packets to the current LID leave this switch.
    sources: Vec<u32>,
    /// By switch: the service levels and VLs of the packets to the current LID that leave this switch.
    sets: Vec<L::Set>,
}

impl<'p, L: VlRule, T: TurnSink> Worker<'p, L, T> {
    fn new(pass: &'p Pass<'p, L>) -> Self {
        let wiring = pass.tables.wiring;
        let switches = wiring.switches();
        Self {
            pass,
            found: Findings::new(wiring),
            tree: Tree::new(wiring),
            distances: pass.distances(),
            rows: vec![NO_PATH; BATCH * switches],
            table: vec![NO_PATH; BATCH * switches],
            sources: vec![0; switches],
            sets: vec![L::Set::default(); switches],
        }
    }

    /// Checks a batch of LIDs.
    fn check_batch(&mut self, lids: &[u16]) {
        let subnet = self.pass.subnet;
        let destinations: Vec<Destination<'p>> = lids
            .iter()
            .filter_map(|&lid| {
                let port = subnet.end_port(subnet.lid_owner(lid)?);
                // LIDs of two hosts that are linked directly are skipped: no LFT forwards their packets.
                Some(Destination { lid, port, switch: port.attachment.switch()? })
            })
            .collect();
        self.copy_tables(&destinations);
        let mut targets: Vec<u16> =
            destinations.iter().filter(|to| !to.port.is_switch()).map(|to| to.switch.0).collect();
        targets.sort_unstable();
        targets.dedup();
        self.pass.measure(&mut self.distances, &targets);
        for (column, to) in destinations.into_iter().enumerate() {
            self.check_lid(to, column);
            if let (false, Ok(row)) = (to.port.is_switch(), targets.binary_search(&to.switch.0)) {
                self.measure_routes(to, row);
            }
        }
    }

    fn copy_tables(&mut self, destinations: &[Destination<'_>]) {
        let (switches, lfts) = (self.pass.tables.wiring.switches(), self.pass.tables.lfts);
        // The LFT entries are copied in two steps: first to one row per switch (`rows`), then to one column per LID
        // (`table`). So memory reads do not depend on each other.
        for (id, row) in self.pass.subnet.switch_ids().zip(self.rows.chunks_exact_mut(BATCH)) {
            let table = lfts.table(id);
            for (entry, to) in row.iter_mut().zip(destinations) {
                *entry = table[usize::from(to.lid)];
            }
        }
        let columns = self.table.chunks_exact_mut(switches.max(1)).take(destinations.len());
        for (place, column) in columns.enumerate() {
            for (entry, row) in column.iter_mut().zip(self.rows.chunks_exact(BATCH)) {
                *entry = row[place];
            }
        }
    }

    fn check_lid(&mut self, to: Destination<'_>, column: usize) {
        let Self { pass, found, tree, .. } = self;
        let wiring = pass.tables.wiring;
        let entries = &self.table[column * wiring.switches()..][..wiring.switches()];
        let said = found.reach.faults();
        let owner = pass.subnet.lid_owner(to.lid).expect("every destination LID belongs to a port");
        let mut loops = false;
        tree.grow(wiring, entries, owner, |ring| {
            loops = true;
            found.reach.add_loop(to.lid, ring, entries, pass.samples);
        });
        found.reach.lids += 1;
        found.reach.looping_lids += usize::from(loops);
        if !(0..entries.len()).all(|switch| tree.arrives(switch)) {
            let target = if to.port.is_switch() {
                Target::Switch(to.switch)
            } else {
                Target::HostAt(to.switch)
            };
            let judge = Judge { wiring, unknown: pass.tables.unknown, samples: pass.samples };
            found.reach.add_failures(&judge, tree, entries, to.lid, target, &pass.hosts);
        }
        if self.pass.scope.hosts_send_to(to.port.is_switch()) {
            self.start_packets(to, column);
            self.push_packets(to.lid, column);
        }
        if self.found.reach.faults() != said {
            self.found.failing.push(to.lid);
        }
    }

    /// Sets `sources` to the number of hosts at each switch, and `sets` to the packets that start there: the packets of
    /// these hosts and, depending on the scope, of port 0.
    fn start_packets(&mut self, to: Destination<'_>, column: usize) {
        let Self { pass, found, tree, table, sources, sets, .. } = self;
        let entries = &table[column * sets.len()..][..sets.len()];
        sets.fill(L::Set::default());
        let is_switch = to.port.is_switch();
        if is_switch {
            // Only routes between hosts are counted, so a LID of a switch has no sources.
            sources.fill(0);
        } else {
            sources.copy_from_slice(&pass.hosts);
            sources[to.switch.index()] -= 1;
        }
        let with_port_0 = pass.scope.switches_send_to(is_switch);
        let mut start = |switch: usize| {
            let to_host = tree.arrives(switch) && entries[switch] != 0;
            if tree.next(switch).is_some() || to_host {
                let id = SwitchId(switch as u16);
                let ins = &pass.ins[switch][usize::from(!with_port_0)..];
                let level = pass.tables.layers.level(id, to.switch);
                let (set, out) = (&mut sets[switch], entries[switch]);
                let discarded = if id == to.switch {
                    let others = ins.iter().copied().filter(|&port| port != to.number());
                    let others: Vec<u8> = others.collect();
                    pass.vls.start(set, id, &others, out, level)
                } else {
                    pass.vls.start(set, id, ins, out, level)
                };
                // Packets that enter a forwarding loop were already counted as unreachable.
                if let (Some(from), false) =
                    (discarded, matches!(tree.fate(switch), Fate::Loops(_)))
                {
                    let cause = Cause::Discarded { at: id, ports: (from, out), level };
                    found.reach.add_lost(id, sources[switch], to.lid, cause, pass.samples);
                }
            }
        };
        if with_port_0 {
            (0..entries.len()).for_each(start);
        } else {
            pass.leaves.iter().for_each(|&leaf| start(usize::from(leaf)));
        }
    }

    /// Adds `sources` and `sets` of each switch to those of its next switch, up to the roots of the forwarding trees.
    /// Counts the routes over each channel, and collects the turns.
    fn push_packets(&mut self, lid: u16, column: usize) {
        let Self { pass, found, tree, table, sources, sets, .. } = self;
        let wiring = pass.tables.wiring;
        let entries = &table[column * sets.len()..][..sets.len()];
        for switch in tree.towards_roots() {
            let (count, set) = (sources[switch], sets[switch]);
            if count == 0 && set == L::Set::default() {
                continue;
            }
            let channel = wiring.channel(switch, entries[switch]);
            if tree.arrives(switch) {
                found.routes[channel as usize] += count;
            }
            let Some(next) = tree.next(switch).map(usize::from) else { continue };
            sources[next] += count;
            let onward = tree.next(next).is_some();
            let to_host = L::DISCARDS && !onward && tree.arrives(next) && entries[next] != 0;
            if onward || to_host {
                let turn_at = (channel, entries[next]);
                let turns = &mut found.turns;
                let discarded = pass.vls.pass(&mut sets[next], set, turn_at, |before, after| {
                    if onward {
                        turns.add(before, after, channel, entries[next]);
                    }
                });
                if let (Some(level), Hop::Switch(_, from)) = (discarded, wiring.hop(channel)) {
                    let at = SwitchId(next as u16);
                    let cause = Cause::Discarded { at, ports: (from, entries[next]), level };
                    found.reach.add_lost(at, count, lid, cause, pass.samples);
                }
            }
        }
    }

    /// Counts the hops of all routes from hosts to the destination `to`. `row` is the index of the destination's switch
    /// in `distances`.
    fn measure_routes(&mut self, to: Destination<'_>, row: usize) {
        let Self { pass, found, tree, distances, .. } = self;
        for (&leaf, &least) in pass.leaves.iter().zip(distances.row(row)) {
            let routes = pass.hosts[usize::from(leaf)] - u32::from(leaf == to.switch.0);
            if let Fate::Arrives(hops) = tree.fate(usize::from(leaf)) {
                found.hops.add(hops, least, u64::from(routes));
            }
        }
    }
}

impl Destination<'_> {
    /// For a LID of a host, returns the switch port to which the host is linked. For a LID of a switch, returns 0.
    fn number(&self) -> u8 {
        match self.port.attachment {
            Attachment::Port(_, number) => number,
            Attachment::Management(_) | Attachment::Direct => 0,
        }
    }
}
