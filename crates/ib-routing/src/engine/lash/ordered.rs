//! Placing the pairs whose shortest paths follow an orientation, all at once.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::graph::DependencyGraph;
use super::network::{NONE, Network};
use super::orientation::Orientation;
use super::routes::Routes;
use crate::hops::NO_HOPS;

/// The end ports that a channel leads to, by class of destination: those with hosts first.
pub(super) type Load = [u32; 2];

/// How many switches choose their ways in one job.
const JOB: usize = 64;

/// The stretch of the destination itself, which comes after all others.
const ARRIVED: u8 = NONE - 1;

/// Gives the layer to every open pair that can be joined by shortest paths in the order of the
/// orientation both ways, adds the routes that this takes, and enters their turns into the graph.
///
/// Where several ways are in order, the one is taken that leads over the least loaded channel.
/// `load` counts the end ports that every channel leads to.
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

/// Follows the way from a switch up to where it was followed before; fills in the slots that are
/// missing and marks the turns.
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

/// How late in the orientation the way from every switch to every other can begin.
struct Stretches {
    switches: usize,
    /// `[destination][switch]`: the last stretch that a path in order can start with; [`NONE`]
    /// when none is in order.
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

    /// Tells whether paths of both directions are in order.
    fn joins(&self, a: usize, b: usize) -> bool {
        self.to(a)[b] != NONE && self.to(b)[a] != NONE
    }

    /// Chooses the way on from every switch to every destination that has none but could.
    fn choose(
        &self,
        network: &Network<'_>,
        orientation: &Orientation,
        routes: &Routes,
        load: &mut [Load],
    ) -> Ways {
        let switches = self.switches;
        // A switch's choices only depend on its own channels' load, so switches are independent.
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
                    // Among equals, switches start at different slots, so that what comes from
                    // many of them for one destination does not meet before it must.
                    let degree = network.neighbours(switch).len();
                    let begin = network.slot(network.reverse(start)) % degree;
                    let turn = |channel| (channel - start + degree - begin) % degree;
                    let best = in_order.min_by_key(|&channel| {
                        (load[channel - first_channel][class], turn(channel))
                    });
                    let best = best.expect("a path in order starts somewhere");
                    load[best - first_channel][class] += weight;
                    *slot = (best - start) as u8;
                }
            }
            slots
        });
        Ways { switches, slots: slots.collect() }
    }
}

/// The ways on that were chosen, by job, `[destination][switch of the job]`.
struct Ways {
    switches: usize,
    slots: Vec<Vec<u8>>,
}

impl Ways {
    fn slot(&self, switch: usize, to: usize) -> u8 {
        let own = JOB.min(self.switches - switch / JOB * JOB);
        self.slots[switch / JOB][to * own + switch % JOB]
    }
}

/// Sorts switches by their distance, in buckets.
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
