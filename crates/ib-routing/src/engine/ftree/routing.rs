//! Determines the routes by walks, one target after the other.
//!
//! A walk starts at the switch of the target and leads away from it. When it steps to a switch, this switch gets the
//! port that leads back as its route. The walk climbs from rank to rank: first over the least loaded links, which is
//! the main path, and then over all others, because their switches also need a route. From every switch the walk
//! descends to all switches without a route, and does not climb again from there. So packets only go up and then down.
//! Links to siblings, i.e. to switches of the same rank, are tried after the links up, or after the links down in a
//! descent. In walks from I/O nodes, a limited number of upward turns is permitted: the walk goes one rank down and
//! climbs again. A switch is visited again only if its route becomes shorter.

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

/// The loads of all links, and the routes assigned so far.
pub(super) struct Router<'a> {
    subnet: &'a Subnet<'a>,
    /// The base matrix; `None` while the routes to CAs are determined.
    base: Option<Base<'a>>,
    groups: Vec<Group>,
    links: Vec<Link>,
    locals: Vec<Local>,
    /// By group: the kind of node at its far end.
    below: Vec<Below>,
    /// By position: an index in `groups`. When loads change, the groups of a switch in one direction are reordered
    /// among their positions.
    order: Vec<u32>,
    /// Output ports, indexed by LID and switch.
    rows: Vec<u8>,
    walk: Walk,
    /// Number of upward turns that all walks have made so far.
    turns: u64,
    deviations: Vec<Deviation>,
}

/// The base matrix: the hop matrix of all shortest paths. It is computed before the routes to switches are assigned.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    pub(super) hops: &'a HopMatrix,
    /// True if every link counts as one hop, so that walks along shortest paths find the hops of the matrix.
    pub(super) counts_links: bool,
}

/// The walk from the current target, with the routes that it has found so far.
struct Walk {
    target: Target,
    /// The output port of each switch towards the target.
    ports: Vec<u8>,
    /// The hops from each switch to the target.
    hops: Vec<u8>,
    /// By family of switches (see [`Local::family`]): the hops to the target from the switch of this family from which
    /// the walk has last descended. A descent from another switch of the family improves no route, unless that switch
    /// has fewer hops to the target.
    settled: Vec<u8>,
    /// True if the walk may turn upwards. Upward turns follow the order of the groups, so the groups are then ordered
    /// even at switches from which the walk assigns no route.
    turns: bool,
    /// True if hops that the walk finds may differ from the base matrix. If the matrix counts links, this is false
    /// until the first difference.
    deviates: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Adapter,
    /// A dummy in place of a missing compute node. It only adds to the loads of links.
    Dummy,
    Switch(SwitchId),
}

/// Number of LIDs, and of switches, in a block. Rows of output ports (one per LID) are transposed block by block into
/// forwarding tables (one per switch). A block fits into the cache.
const BLOCK: usize = 64;

/// Maximum number of upward turns of all walks. Their number grows exponentially with the permitted turns per path.
/// Tests use a lower limit.
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

    /// Determines the routes to the LID of a channel adapter port. `turns` is the permitted number of upward turns on a
    /// path.
    pub(super) fn route_adapter(&mut self, port: &AdapterPort, turns: u8) {
        self.start(Target::Adapter, port.switch, 1);
        self.walk.ports[port.switch.index()] = port.switch_port;
        self.walk.turns = turns > 0;
        self.climb(port.switch.index(), Climb { main: true, turns, hops: 1 });
        self.keep(self.subnet.end_port(port.end_port).base_lid);
    }

    /// Adds to the loads of links as if a leaf had one more compute node.
    pub(super) fn route_dummy(&mut self, leaf: SwitchId) {
        self.start(Target::Dummy, leaf, 1);
        self.climb(leaf.index(), Climb { main: true, turns: 0, hops: 1 });
    }

    /// Determines the routes to the LID of a switch, and records the hops that differ from the matrix `base`.
    pub(super) fn route_switch(&mut self, switch: SwitchId, base: Base<'a>) {
        self.base = Some(base);
        self.start(Target::Switch(switch), switch, 0);
        self.walk.ports[switch.index()] = 0;
        self.climb(switch.index(), Climb { main: false, turns: 0, hops: 0 });
        self.keep(self.subnet.switch_lid(switch));
    }

    /// Returns the hops from every switch to the target that was routed last.
    pub(super) fn hops(&self) -> &[u8] {
        &self.walk.hops
    }

    /// Returns true if the walks reached [`TURN_LIMIT`] and were stopped.
    pub(super) fn is_exhausted(&self) -> bool {
        self.turns > TURN_LIMIT
    }

    /// Adds a route that no walk assigned: sets the output port of the switch `at` for the LID of the switch `to`, and
    /// records the hops.
    pub(super) fn detour(&mut self, at: SwitchId, to: SwitchId, port: u8, hops: u8) {
        let row = self.subnet.switch_lid(to).index() * self.locals.len();
        self.rows[row + at.index()] = port;
        self.deviations.push(Deviation { at, to, port, hops });
    }

    /// Returns the output port of a switch for the LID of another switch.
    pub(super) fn port(&self, at: SwitchId, to: SwitchId) -> u8 {
        let row = self.subnet.switch_lid(to).index() * self.locals.len();
        self.rows[row + at.index()]
    }

    /// Returns the forwarding tables. Also returns the hops that differ from the base matrix, in the order in which the
    /// walks found them.
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

    /// Stores the output ports that the walk assigned as the routes to a LID.
    fn keep(&mut self, lid: Lid) {
        let row = lid.index() * self.locals.len();
        self.rows[row..row + self.locals.len()].copy_from_slice(&self.walk.ports);
    }
}
