//! The walks that hand out routes, one target after the other.
//!
//! A walk starts at the target's switch and leads away from the target; every step gives the
//! switch that it reaches the port back. It climbs from rank to rank: over the least loaded links
//! for the main path, and then over all others, whose switches merely need some route. From every
//! switch where it is, it descends to all that has no route yet, and what it reached by descending
//! does not climb. So packets only go up and then down, except towards I/O nodes, for which the
//! walk may turn upwards a number of times. A switch is reached again only by a shorter way.

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

use state::Local;
use walk::Climb;

/// The loads of all links, and the routes so far.
pub(super) struct Router<'a> {
    subnet: &'a Subnet<'a>,
    /// The lid matrix that the walks start from.
    base: &'a HopMatrix,
    /// Whether that counts links, so that a walk along shortest paths agrees with it.
    base_counts_links: bool,
    groups: Vec<Group>,
    links: Vec<Link>,
    locals: Vec<Local>,
    /// Groups by position: those of one switch and direction change places as they are loaded.
    order: Vec<u32>,
    /// `[LID][switch]`: the output port. The row of LID 0 is the dummies'.
    rows: Vec<u8>,
    walk: Walk,
    /// How many times walks turned upwards.
    turns: u64,
    deviations: Vec<Deviation>,
}

/// What is known of the walk to one target.
struct Walk {
    target: Target,
    /// Where the target's row starts.
    row: usize,
    /// The hops of each switch to the target.
    hops: Vec<u8>,
    /// Per family of switches: the fewest hops at which nothing below one needed a route.
    settled: Vec<u8>,
    /// Whether the walk may turn upwards and so depends on the order of groups that it does not
    /// use.
    turns: bool,
    /// Whether the hops may differ from the base matrix from here on.
    deviates: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Adapter,
    /// A compute node that a leaf has less than others; only loads remain of it.
    Dummy,
    Switch(SwitchId),
}

/// More turns upwards than this are refused: their number grows with the ports of a switch to the
/// power of the turns that one path may make.
const TURN_LIMIT: u64 = 100_000_000;

impl<'a> Router<'a> {
    pub(super) fn new(
        subnet: &'a Subnet<'a>,
        ranks: &Ranks,
        leaves: &Leaves,
        groups: Groups,
        (base, base_counts_links): (&'a HopMatrix, bool),
    ) -> Self {
        let switches = subnet.switches().len();
        let (locals, families) = state::locals(subnet, ranks, leaves, &groups);
        Self {
            subnet,
            base,
            base_counts_links,
            order: (0..groups.groups.len() as u32).collect(),
            groups: groups.groups,
            links: groups.links,
            locals,
            rows: vec![NO_PATH; (usize::from(subnet.max_lid()) + 1) * switches],
            walk: Walk {
                target: Target::Dummy,
                row: 0,
                hops: vec![NO_HOPS; switches],
                settled: vec![NO_HOPS; families],
                turns: false,
                deviates: false,
            },
            turns: 0,
            deviations: Vec::new(),
        }
    }

    /// Routes the LID of a channel adapter port, whose paths may turn upwards a number of times.
    pub(super) fn route_adapter(&mut self, port: &AdapterPort, turns: u8) {
        let lid = self.subnet.end_port(port.end_port).base_lid.get();
        self.start(Target::Adapter, lid, port.switch, 1);
        self.rows[self.walk.row + port.switch.index()] = port.switch_port;
        self.walk.turns = turns > 0;
        self.climb(port.switch.index(), Climb { main: true, turns, hops: 1 });
    }

    /// Loads the links as a further compute node on a leaf would.
    pub(super) fn route_dummy(&mut self, leaf: SwitchId) {
        self.start(Target::Dummy, 0, leaf, 1);
        self.climb(leaf.index(), Climb { main: true, turns: 0, hops: 1 });
        let row = self.walk.row;
        self.rows[row..row + self.locals.len()].fill(NO_PATH);
    }

    /// Routes the LID of a switch.
    pub(super) fn route_switch(&mut self, switch: SwitchId) {
        let lid = self.subnet.switch_lid(switch).get();
        self.start(Target::Switch(switch), lid, switch, 0);
        self.rows[self.walk.row + switch.index()] = 0;
        self.climb(switch.index(), Climb { main: false, turns: 0, hops: 0 });
    }

    /// Returns the hops of every switch to the target that was routed last.
    pub(super) fn hops(&self) -> &[u8] {
        &self.walk.hops
    }

    /// Returns true when the walks turned upwards too many times, and were cut short.
    pub(super) fn is_exhausted(&self) -> bool {
        self.turns > TURN_LIMIT
    }

    /// Gives a switch the port for a switch LID that no walk gave it.
    pub(super) fn detour(&mut self, at: SwitchId, to: SwitchId, port: u8, hops: u8) {
        let row = usize::from(self.subnet.switch_lid(to).get()) * self.locals.len();
        self.rows[row + at.index()] = port;
        self.deviations.push(Deviation { at, to, port, hops });
    }

    /// Returns the port of a switch for another's LID.
    pub(super) fn port(&self, at: SwitchId, to: SwitchId) -> u8 {
        let row = usize::from(self.subnet.switch_lid(to).get()) * self.locals.len();
        self.rows[row + at.index()]
    }

    /// Returns the tables, and where the hops differ from the base matrix, oldest first.
    pub(super) fn finish(self) -> (Lfts, Vec<Deviation>) {
        /// Switches per block: what a cache line holds of a row.
        const BLOCK: usize = 64;
        let mut lfts = Lfts::new(self.subnet);
        let switches = self.locals.len();
        let rows = &self.rows;
        lfts.par_tables_mut().chunks(BLOCK).enumerate().for_each(|(block, mut tables)| {
            for (lid, row) in rows.chunks_exact(switches).enumerate() {
                let ports = &row[block * BLOCK..];
                for (table, &port) in tables.iter_mut().zip(ports) {
                    table[lid] = port;
                }
            }
        });
        (lfts, self.deviations)
    }

    fn start(&mut self, target: Target, lid: u16, from: SwitchId, hops: u8) {
        let walk = &mut self.walk;
        walk.target = target;
        walk.row = usize::from(lid) * self.locals.len();
        walk.hops.fill(NO_HOPS);
        walk.hops[from.index()] = hops;
        walk.settled.fill(NO_HOPS);
        walk.turns = false;
        walk.deviates = matches!(target, Target::Switch(_)) && !self.base_counts_links;
    }
}
