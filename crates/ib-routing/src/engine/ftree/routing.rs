//! The walks that assign routes, one target after the other.
//!
//! A walk starts at the switch of the target and leads away from it; every step assigns to the next
//! switch the port back. The walk climbs from rank to rank: first over the least loaded links for
//! the main path, then over all others, whose switches also need a route. From every switch it
//! descends to all switches without a route, and does not climb from these. So packets only go up
//! and then down. Towards I/O nodes, the walk may turn upwards a number of times. A switch is
//! visited again only on a shorter path.

use ib_types::Lid;
use rayon::iter::{IndexedParallelIterator, ParallelIterator};

use super::adapters::AdapterPort;
use super::groups::{Group, Groups, Link};
use super::indexing::Leaves;
use super::matrix::Deviation;
use super::ranking::Ranks;
use crate::hops::{HopMatrix, NO_HOPS};
use crate::lft::{Lfts, NO_PATH};
use crate::subnet::{Subnet, SwitchId};

mod state;
mod walk;

use state::{Below, Local, State};
use walk::Climb;

/// Loads of all links, and the routes so far.
pub(super) struct Router<'a> {
    subnet: &'a Subnet<'a>,
    /// The hop matrix before the walks to switches.
    base: Option<Base<'a>>,
    groups: Vec<Group>,
    links: Vec<Link>,
    locals: Vec<Local>,
    /// Per group.
    below: Vec<Below>,
    /// Groups by position; those of one switch and direction are reordered as their load changes.
    order: Vec<u32>,
    /// `[LID][switch]`: the output port.
    rows: Vec<u8>,
    walk: Walk,
    /// Number of upward turns of the walks so far.
    turns: u64,
    deviations: Vec<Deviation>,
}

/// The hop matrix before the walks to switches.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    pub(super) hops: &'a HopMatrix,
    /// True if it counts links, so that a walk along shortest paths agrees with it.
    pub(super) counts_links: bool,
}

/// State of the walk to a target.
struct Walk {
    target: Target,
    /// The output port of each switch to the target.
    ports: Vec<u8>,
    /// The hops of each switch to the target.
    hops: Vec<u8>,
    /// Per family of switches: the least hops at which no switch below needed a route.
    settled: Vec<u8>,
    /// True if the walk may turn upwards, and so depends on the order of groups that it does not
    /// use.
    turns: bool,
    /// True if the hops may differ from the base matrix from here on.
    deviates: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Adapter,
    /// A dummy that replaces a missing compute node; it only loads links.
    Dummy,
    Switch(SwitchId),
}

/// Rows are transposed into tables in blocks of this size, which fit into the cache.
const BLOCK: usize = 64;

/// Maximum number of upward turns. The number grows with the ports of a switch to the power of the
/// permitted turns per path. Tests use a lower limit.
const TURN_LIMIT: u64 = if cfg!(test) { 1_000_000 } else { 1_000_000_000 };

impl<'a> Router<'a> {
    pub(super) fn new(
        subnet: &'a Subnet<'a>,
        ranks: &Ranks,
        leaves: &Leaves,
        groups: Groups,
    ) -> Self {
        let switches = subnet.switches().len();
        let State { locals, below, families } = State::new(subnet, ranks, leaves, &groups);
        Self {
            subnet,
            base: None,
            order: (0..groups.groups.len() as u32).collect(),
            groups: groups.groups,
            links: groups.links,
            locals,
            below,
            rows: vec![NO_PATH; (usize::from(subnet.max_lid()) + 1) * switches],
            walk: Walk {
                target: Target::Dummy,
                ports: vec![NO_PATH; switches],
                hops: vec![NO_HOPS; switches],
                settled: vec![NO_HOPS; families],
                turns: false,
                deviates: false,
            },
            turns: 0,
            deviations: Vec::new(),
        }
    }

    /// Routes the LID of a channel adapter port, whose paths may turn upwards `turns` times.
    pub(super) fn route_adapter(&mut self, port: &AdapterPort, turns: u8) {
        self.start(Target::Adapter, port.switch, 1);
        self.walk.ports[port.switch.index()] = port.switch_port;
        self.walk.turns = turns > 0;
        self.climb(port.switch.index(), Climb { main: true, turns, hops: 1 });
        self.keep(self.subnet.end_port(port.end_port).base_lid);
    }

    /// Loads the links like a further compute node on a leaf.
    pub(super) fn route_dummy(&mut self, leaf: SwitchId) {
        self.start(Target::Dummy, leaf, 1);
        self.climb(leaf.index(), Climb { main: true, turns: 0, hops: 1 });
    }

    /// Routes the LID of a switch, and records the hops that differ from a hop matrix.
    pub(super) fn route_switch(&mut self, switch: SwitchId, base: Base<'a>) {
        self.base = Some(base);
        self.start(Target::Switch(switch), switch, 0);
        self.walk.ports[switch.index()] = 0;
        self.climb(switch.index(), Climb { main: false, turns: 0, hops: 0 });
        self.keep(self.subnet.switch_lid(switch));
    }

    /// Returns the hops of every switch to the last routed target.
    pub(super) fn hops(&self) -> &[u8] {
        &self.walk.hops
    }

    /// Returns true if the walks reached [`TURN_LIMIT`] and were stopped.
    pub(super) fn is_exhausted(&self) -> bool {
        self.turns > TURN_LIMIT
    }

    /// Sets the port of a switch for a switch LID to which no walk assigned a route.
    pub(super) fn detour(&mut self, at: SwitchId, to: SwitchId, port: u8, hops: u8) {
        let row = self.subnet.switch_lid(to).index() * self.locals.len();
        self.rows[row + at.index()] = port;
        self.deviations.push(Deviation { at, to, port, hops });
    }

    /// Returns the port of a switch for the LID of another switch.
    pub(super) fn port(&self, at: SwitchId, to: SwitchId) -> u8 {
        let row = self.subnet.switch_lid(to).index() * self.locals.len();
        self.rows[row + at.index()]
    }

    /// Returns the tables, and the hops that differ from the base matrix, oldest first.
    pub(super) fn finish(self) -> (Lfts, Vec<Deviation>) {
        let mut lfts = Lfts::new(self.subnet);
        let switches = self.locals.len();
        let rows = &self.rows;
        lfts.par_tables_mut().chunks(BLOCK).enumerate().for_each(|(block, mut tables)| {
            let first = block * BLOCK;
            for (lids, rows) in rows.chunks(BLOCK * switches).enumerate() {
                let mut square = [[NO_PATH; BLOCK]; BLOCK];
                for (line, row) in square.iter_mut().zip(rows.chunks_exact(switches)) {
                    line[..tables.len()].copy_from_slice(&row[first..first + tables.len()]);
                }
                for (index, table) in tables.iter_mut().enumerate() {
                    let entries = &mut table[lids * BLOCK..];
                    for (entry, line) in entries.iter_mut().zip(&square) {
                        *entry = line[index];
                    }
                }
            }
        });
        (lfts, self.deviations)
    }

    fn start(&mut self, target: Target, from: SwitchId, hops: u8) {
        let walk = &mut self.walk;
        walk.target = target;
        walk.ports.fill(NO_PATH);
        walk.hops.fill(NO_HOPS);
        walk.hops[from.index()] = hops;
        walk.settled.fill(NO_HOPS);
        walk.turns = false;
        walk.deviates = self.base.is_some_and(|base| !base.counts_links);
    }

    /// Stores the ports that the walk assigned for a LID.
    fn keep(&mut self, lid: Lid) {
        let row = lid.index() * self.locals.len();
        self.rows[row..row + self.locals.len()].copy_from_slice(&self.walk.ports);
    }
}
