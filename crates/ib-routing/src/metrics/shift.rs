//! Contention of shift patterns.

use rayon::prelude::*;

use super::routes::Routes;
use crate::check::wiring::Channel;
use crate::subnet::{EndPortId, SwitchId};

/// How much the flows of shift patterns get into each other's way.
///
/// In shift k, 1 ≤ k < n, the node at place i of the order sends to the one at place i + k modulo
/// n. The contention of a shift is the most flows over one directed link, hosts' own links
/// included; 1 is the best possible.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ShiftContention {
    /// The contention of the worst shift; 0 when there are fewer than two nodes.
    pub max: u32,
    /// The mean of all shifts.
    pub mean: f64,
}

/// Up to this much memory, in bytes, all paths are kept; beyond it they are followed anew for
/// every shift.
pub(super) const PATH_MEMORY: usize = 1 << 30;

pub(super) fn shift_contention(
    routes: &Routes<'_>,
    order: &[Option<EndPortId>],
    memory: usize,
) -> ShiftContention {
    if order.iter().flatten().count() < 2 {
        return ShiftContention::default();
    }
    let shifts = Shifts::new(routes, order, memory);
    let (max, total) = (1..order.len())
        .into_par_iter()
        .with_min_len(16)
        .map_init(|| vec![0; routes.channels()], |flows, shift| shifts.contention(shift, flows))
        .fold(|| (0, 0), |(max, total): (u32, u64), one| (max.max(one), total + u64::from(one)))
        .reduce(|| (0, 0), |a, b| (a.0.max(b.0), a.1 + b.1));
    ShiftContention { max, mean: total as f64 / (order.len() - 1) as f64 }
}

/// Consecutive places of the order whose nodes are at one switch.
struct Run {
    /// The switch, as a row of the path table.
    row: usize,
    first: usize,
    length: usize,
}

struct Shifts<'a> {
    routes: &'a Routes<'a>,
    order: &'a [Option<EndPortId>],
    /// The switches that nodes send through.
    switches: Vec<SwitchId>,
    runs: Vec<Run>,
    /// By switch, when there is memory for it.
    paths: Option<Vec<Paths>>,
}

/// The channels from one switch to all places of the order, one after the other.
struct Paths {
    channels: Vec<Channel>,
    /// Where the channels to each place start, and where the last ones end.
    first: Vec<u32>,
}

impl<'a> Shifts<'a> {
    fn new(routes: &'a Routes<'a>, order: &'a [Option<EndPortId>], memory: usize) -> Self {
        let entry = |node: &Option<EndPortId>| node.and_then(|port| routes.entry(port));
        let mut switches: Vec<SwitchId> = order.iter().filter_map(entry).collect();
        switches.sort_unstable();
        switches.dedup();
        let mut runs: Vec<Run> = Vec::new();
        for (place, switch) in order.iter().map(entry).enumerate() {
            let Some(row) = switch.and_then(|switch| switches.binary_search(&switch).ok()) else {
                continue;
            };
            match runs.last_mut() {
                Some(run) if run.row == row && run.first + run.length == place => run.length += 1,
                _ => runs.push(Run { row, first: place, length: 1 }),
            }
        }
        let mut shifts = Self { routes, order, switches, runs, paths: None };
        // A guess from one switch: the others' paths are about as long.
        let sample = shifts.switches.first().map(|&switch| shifts.paths_from(switch));
        let bytes = |paths: Paths| (paths.channels.len() + paths.first.len()) * size_of::<u32>();
        if sample.map_or(0, bytes) * shifts.switches.len() <= memory {
            let all = shifts.switches.par_iter().map(|&switch| shifts.paths_from(switch));
            shifts.paths = Some(all.collect());
        }
        shifts
    }

    fn paths_from(&self, switch: SwitchId) -> Paths {
        let mut paths = Paths { channels: Vec::new(), first: vec![0] };
        for node in self.order {
            if let Some(to) = *node {
                // What does not arrive takes nobody's bandwidth.
                self.routes.append(switch, to, &mut paths.channels);
            }
            paths.first.push(paths.channels.len() as u32);
        }
        paths
    }

    /// Returns the most flows over one link in a shift. `flows` is scratch, one per channel.
    fn contention(&self, shift: usize, flows: &mut [u16]) -> u32 {
        flows.fill(0);
        let places = self.order.len();
        let mut path = Vec::new();
        for run in &self.runs {
            let first = (run.first + shift) % places;
            let end = first + run.length;
            // A run may go over the end of the order and on from its start.
            for window in [first..end.min(places), 0..end.saturating_sub(places)] {
                let channels = if let Some(paths) = &self.paths {
                    let Paths { channels, first } = &paths[run.row];
                    &channels[first[window.start] as usize..first[window.end] as usize]
                } else {
                    path.clear();
                    for &to in self.order[window].iter().flatten() {
                        self.routes.append(self.switches[run.row], to, &mut path);
                    }
                    &path
                };
                for &channel in channels {
                    // There are fewer than 2^16 nodes, and each sends one flow.
                    let count = &mut flows[channel as usize];
                    *count = count.wrapping_add(1);
                }
            }
        }
        match flows.iter().max() {
            Some(&most) if most > 0 => u32::from(most),
            _ => u32::from(self.has_flows(shift)),
        }
    }

    /// Returns true when some node has a partner, even if only hosts' links are between them.
    fn has_flows(&self, shift: usize) -> bool {
        let partners = self.order.iter().cycle().skip(shift);
        self.order.iter().zip(partners).any(|(from, to)| from.is_some() && to.is_some())
    }
}
