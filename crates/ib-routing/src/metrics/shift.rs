//! Contention of shift patterns between compute nodes.

use rayon::prelude::*;

use super::paths::{Index, PathTable, TILE};
use super::routes::Routes;
use crate::subnet::{EndPortId, SwitchId};

/// Contention of shift patterns between compute nodes.
///
/// An order of n nodes has the shifts 1 to n - 1. In shift k, the node at position i sends to the node at position i +
/// k modulo n. The contention of a shift is the maximum number of flows over a directed link, including host links. The
/// optimum is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ShiftContention {
    /// Contention of the worst shift; 0 if there are fewer than two nodes.
    pub max: u32,
    /// Mean of the contention of all shifts.
    pub mean: f64,
}

/// Maximum memory in bytes for storing all paths. If the paths need more memory, they are not stored but followed for
/// every shift.
pub(super) const PATH_MEMORY: usize = 1 << 28;

pub(super) fn shift_contention(
    routes: &Routes<'_>,
    order: &[Option<EndPortId>],
    memory: usize,
    advance: &(dyn Fn(usize) + Sync),
) -> ShiftContention {
    if order.iter().flatten().count() < 2 {
        return ShiftContention::default();
    }
    let shifts = Shifts::new(routes, order);
    let width = routes.switch_channels().len();
    let per_shift = if width < usize::from(u16::MAX) {
        shifts.all::<u16>(memory, advance)
    } else {
        shifts.all::<u32>(memory, advance)
    };
    let total: u64 = per_shift.iter().copied().map(u64::from).sum();
    ShiftContention {
        max: per_shift.iter().copied().max().unwrap_or(0),
        mean: total as f64 / per_shift.len() as f64,
    }
}

struct Shifts<'a> {
    routes: &'a Routes<'a>,
    order: &'a [Option<EndPortId>],
    /// The switches to which the nodes are attached, in ascending order.
    switches: Vec<SwitchId>,
    /// For each node that is attached to a switch: its position in the order, and the index of the switch in
    /// `switches`.
    senders: Vec<(usize, usize)>,
}

impl<'a> Shifts<'a> {
    fn new(routes: &'a Routes<'a>, order: &'a [Option<EndPortId>]) -> Self {
        let entries: Vec<(usize, SwitchId)> = order
            .iter()
            .enumerate()
            .filter_map(|(place, node)| Some((place, routes.entry((*node)?)?)))
            .collect();
        let mut switches: Vec<SwitchId> = entries.iter().map(|&(_, switch)| switch).collect();
        switches.sort_unstable();
        switches.dedup();
        let row = |switch| {
            switches.binary_search(&switch).expect("`switches` contains the switch of every entry")
        };
        let mut senders: Vec<_> =
            entries.iter().map(|&(place, switch)| (place, row(switch))).collect();
        // Nodes on the same switch become adjacent in `senders`, so that rows of the path table are read one after the
        // other.
        senders.sort_by_key(|&(_, row)| row);
        Self { routes, order, switches, senders }
    }

    /// Returns the contention of every shift, from shift 1 on.
    fn all<I: Index>(&self, memory: usize, advance: &(dyn Fn(usize) + Sync)) -> Vec<u32> {
        let table = PathTable::<I>::new(self.routes, &self.switches, self.order, memory);
        let width = self.routes.switch_channels().len();
        (1..self.order.len())
            .into_par_iter()
            .step_by(TILE)
            .map_init(Vec::new, |flows: &mut Vec<u16>, first| {
                let count = TILE.min(self.order.len() - first);
                // The last counter of each shift belongs to no link: it counts the unused elements of stored paths.
                flows.clear();
                flows.resize(count * (width + 1), 0);
                match &table {
                    Some(table) => self.count_stored(table, first, flows),
                    None => self.count_followed(first, flows),
                }
                advance(count);
                let contention = |(shift, flows): (usize, &[u16])| {
                    // A maximum over copied values compiles to vector instructions; over references, it is slower.
                    match flows[..width].iter().copied().fold(0, u16::max) {
                        0 => u32::from(self.has_flows(shift)),
                        most => u32::from(most),
                    }
                };
                (first..).zip(flows.chunks_exact(width + 1)).map(contention).collect::<Vec<_>>()
            })
            .flatten_iter()
            .collect()
    }

    fn count_stored<I: Index>(&self, table: &PathTable<I>, first: usize, flows: &mut [u16]) {
        let width = self.routes.switch_channels().len() + 1;
        for &(place, row) in &self.senders {
            let partner = (place + first) % self.order.len();
            let paths = table.paths_to(row, partner);
            for (flows, path) in flows.chunks_exact_mut(width).zip(paths) {
                for link in path {
                    // There are fewer than 2^16 nodes, and each sends one flow, so no link's counter wraps around. The
                    // last counter, which belongs to no link, can wrap around.
                    let count = &mut flows[link.get()];
                    *count = count.wrapping_add(1);
                }
            }
        }
    }

    fn count_followed(&self, first: usize, flows: &mut [u16]) {
        let width = self.routes.switch_channels().len() + 1;
        let mut path = Vec::new();
        for (shift, flows) in (first..).zip(flows.chunks_exact_mut(width)) {
            for &(place, row) in &self.senders {
                path.clear();
                if let Some(to) = self.order[(place + shift) % self.order.len()] {
                    // A flow whose packets are lost is counted on no link between switches.
                    self.routes.append(self.switches[row], to, &mut path);
                }
                for &channel in &path {
                    flows[self.routes.link_index(channel)] += 1;
                }
            }
        }
    }

    /// Returns true if any node sends to a partner in this shift, even to a partner on the same switch.
    fn has_flows(&self, shift: usize) -> bool {
        let partners = self.order.iter().cycle().skip(shift);
        self.order.iter().zip(partners).any(|(from, to)| from.is_some() && to.is_some())
    }
}
