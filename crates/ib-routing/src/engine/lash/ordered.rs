//! Puts all pairs of switches whose shortest paths follow an orientation into a layer.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::graph::DependencyGraph;
use super::network::{NONE, Network};
use super::orientation::Orientation;
use super::routes::Routes;
use crate::hops::NO_HOPS;

/// Load of a channel: the number of host ports that are reached over it, and the number of switches without hosts that
/// are reached over it. [`super::search`] counts a switch without hosts as one host port.
pub(super) type Load = [u32; 2];

/// Number of switches that a parallel job handles.
const JOB: usize = 64;

/// Value of [`Stretches::first`] for the destination itself. It is above the numbers of all stretches, so that any
/// stretch may come last on a path.
const ARRIVED: u8 = NONE - 1;

/// Assigns the layer to each pair of switches that has no layer yet, and whose shortest paths in both directions can
/// follow the orientation. Adds the paths of these pairs to the routes, and the turns of the paths to the graph.
///
/// If several channels from a switch follow the orientation, the one with the least `load` is chosen. Each choice adds
/// to the load of the chosen channel.
pub(super) fn place(
    network: &Network<'_>,
    orientation: &Orientation,
    layer: u8,
    routes: &mut Routes,
    layers: &mut [u8],
    load: &mut [Load],
    graph: &mut DependencyGraph<'_>,
) {
    let switches = network.switches();
    let stretches = Stretches::new(network, orientation, routes);
    let ways = stretches.choose(network, orientation, routes, load);
    let turns: Vec<AtomicBool> = (0..network.turns()).map(|_| AtomicBool::new(false)).collect();
    let rows = routes.rows_mut().par_chunks_exact_mut(switches);
    rows.zip(layers.par_chunks_exact_mut(switches)).enumerate().for_each_init(
        || vec![false; switches],
        |visited, (to, (slots, layers))| {
            visited.fill(false);
            visited[to] = true;
            for (from, slot) in layers.iter_mut().enumerate() {
                let open = *slot == NONE && network.joined(from, to);
                if !open || !stretches.joins(from, to) {
                    continue;
                }
                *slot = layer;
                follow(network, from, visited, slots, &turns, |switch| ways.slot(switch, to));
            }
        },
    );
    for (turn, taken) in turns.into_iter().enumerate() {
        if taken.into_inner() {
            graph.insert_ordered(turn);
        }
    }
}

/// Follows the route from the switch `from` to the destination, or to the first switch that an earlier call for this
/// destination has visited. Fills in the missing slots on this route, and marks its turns.
fn follow(
    network: &Network<'_>,
    from: usize,
    visited: &mut [bool],
    slots: &mut [u8],
    turns: &[AtomicBool],
    way: impl Fn(usize) -> u8,
) {
    let mut switch = from;
    let mut last = None;
    loop {
        if slots[switch] == NONE && !visited[switch] {
            slots[switch] = way(switch);
        }
        if let (Some(channel), true) = (last, slots[switch] != NONE) {
            turns[network.turn(channel, slots[switch])].store(true, Ordering::Relaxed);
        }
        if std::mem::replace(&mut visited[switch], true) {
            return;
        }
        let channel = network.channel(switch, slots[switch]);
        last = Some(channel);
        switch = network.head(channel);
    }
}

/// For every two switches: the latest stretch of the orientation in which a path from one to the other can start.
struct Stretches {
    switches: usize,
    /// Indexed by destination and switch: the stretch of a path's first channel. If several paths follow the
    /// orientation, the latest of their stretches; [`NONE`] if no path does.
    first: Vec<u8>,
}

impl Stretches {
    fn new(network: &Network<'_>, orientation: &Orientation, routes: &Routes) -> Self {
        let switches = network.switches();
        let mut first = vec![NONE; switches * switches];
        first.par_chunks_exact_mut(switches.max(1)).enumerate().for_each_init(
            || ByDistance::new(switches),
            |by_distance, (to, first)| {
                let distances = network.distances(to);
                let known = routes.to(to);
                first[to] = ARRIVED;
                for &switch in &by_distance.sort(distances)[1..] {
                    let switch = usize::from(switch);
                    if distances[switch] == NO_HOPS {
                        break;
                    }
                    let (channels, nearer) = (network.channels_of(switch), distances[switch] - 1);
                    let start = channels.start;
                    let in_order = |channel: usize| {
                        let stretch = orientation.stretch[channel];
                        let onward = first[network.head(channel)];
                        let ok = stretch != NONE && onward != NONE && stretch <= onward;
                        ok.then_some(stretch)
                    };
                    let latest = if known[switch] == NONE {
                        let nearer = |channel: &usize| distances[network.head(*channel)] == nearer;
                        channels.filter(nearer).filter_map(in_order).max()
                    } else {
                        in_order(start + usize::from(known[switch]))
                    };
                    first[switch] = latest.unwrap_or(NONE);
                }
            },
        );
        Self { switches, first }
    }

    fn to(&self, destination: usize) -> &[u8] {
        &self.first[destination * self.switches..][..self.switches]
    }

    /// Returns true if paths between two switches follow the orientation in both directions.
    fn joins(&self, a: usize, b: usize) -> bool {
        self.to(a)[b] != NONE && self.to(b)[a] != NONE
    }

    /// Chooses the next channel from every switch to every destination. Skips a destination if the switch already has a
    /// route to it, or if no path from the switch to it follows the orientation.
    fn choose(
        &self,
        network: &Network<'_>,
        orientation: &Orientation,
        routes: &Routes,
        load: &mut [Load],
    ) -> NextSlots {
        let switches = self.switches;
        // The choices of a switch depend only on the loads of its own channels, so switches are processed in parallel.
        let mut jobs = Vec::new();
        let mut rest = load;
        for start in (0..switches).step_by(JOB) {
            let end = (start + JOB).min(switches);
            let channels = network.channels_of(start).start..network.channels_of(end - 1).end;
            let (own, others) = rest.split_at_mut(channels.len());
            jobs.push((start..end, channels.start, own));
            rest = others;
        }
        let slots = jobs.into_par_iter().map(|(own, first_channel, load)| {
            let mut slots = vec![NONE; own.len() * switches];
            for to in 0..switches {
                let (distances, first, known) = (network.distances(to), self.to(to), routes.to(to));
                let hosts = network.hosts(to);
                let class = usize::from(hosts == 0);
                let weight = hosts.max(1);
                for (switch, slot) in own.clone().zip(&mut slots[to * own.len()..]) {
                    let stretch = first[switch];
                    if switch == to || known[switch] != NONE || stretch == NONE {
                        continue;
                    }
                    let channels = network.channels_of(switch);
                    let start = channels.start;
                    let in_order = channels.filter(|&channel| {
                        let head = network.head(channel);
                        distances[head] + 1 == distances[switch]
                            && orientation.stretch[channel] == stretch
                            && first[head] != NONE
                            && stretch <= first[head]
                    });
                    // Among equally loaded channels, the first one from the slot `begin` on is chosen. This slot varies
                    // from switch to switch, so that routes to the same destination join only near the destination.
                    let degree = network.neighbours(switch).len();
                    let begin = network.slot(network.reverse(start)) % degree;
                    let turn = |channel| (channel - start + degree - begin) % degree;
                    let best = in_order.min_by_key(|&channel| {
                        (load[channel - first_channel][class], turn(channel))
                    });
                    let best = best.expect("a path along the orientation has a first channel");
                    load[best - first_channel][class] += weight;
                    *slot = (best - start) as u8;
                }
            }
            slots
        });
        NextSlots { switches, slots: slots.collect() }
    }
}

/// The slot of the chosen next channel from every switch to every destination. Each parallel job has its own list,
/// which is indexed by destination and then by the switch within the job.
struct NextSlots {
    switches: usize,
    slots: Vec<Vec<u8>>,
}

impl NextSlots {
    fn slot(&self, switch: usize, to: usize) -> u8 {
        let own = JOB.min(self.switches - switch / JOB * JOB);
        self.slots[switch / JOB][to * own + switch % JOB]
    }
}

/// Sorts switches by their distance from a destination, with one bucket per distance.
struct ByDistance {
    sorted: Vec<u16>,
    ends: Vec<u32>,
}

impl ByDistance {
    fn new(switches: usize) -> Self {
        Self { sorted: vec![0; switches], ends: Vec::new() }
    }

    fn sort(&mut self, distances: &[u8]) -> &[u16] {
        self.ends.clear();
        self.ends.resize(usize::from(NO_HOPS) + 2, 0);
        for &distance in distances {
            self.ends[usize::from(distance) + 1] += 1;
        }
        for distance in 1..self.ends.len() {
            self.ends[distance] += self.ends[distance - 1];
        }
        for (switch, &distance) in distances.iter().enumerate() {
            let end = &mut self.ends[usize::from(distance)];
            self.sorted[*end as usize] = switch as u16;
            *end += 1;
        }
        &self.sorted
    }
}
