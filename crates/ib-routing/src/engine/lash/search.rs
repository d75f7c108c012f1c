//! Puts pairs of switches into a layer one by one. For each pair, a search finds paths whose turns close no cycle in
//! the channel dependency graph of the layer.

use super::dimensions::Dimensions;
use super::graph::{DependencyGraph, State};
use super::network::{NONE, Network};
use super::routes::Routes;

/// If the search for a path has tried this many channels, it gives up.
const MAX_STEPS: usize = 64;

/// A search for shortest paths that close no cycle in the channel dependency graph of a layer.
///
/// The search proceeds from switch to switch, and goes back one switch if every next turn would close a cycle. If a
/// switch already has a route to the destination, the search follows this route. Turns that are in the layer are tried
/// before new turns, so that few turns are added.
pub(super) struct PathSearch<'a> {
    network: &'a Network<'a>,
    dimensions: Option<&'a Dimensions>,
    graph: DependencyGraph<'a>,
    load: Vec<super::ordered::Load>,
    /// The current path, one step per switch.
    steps: Vec<Step>,
    options: Vec<Choice>,
    /// The turns that were added for the current pair, each with the channels before and after the turn.
    added: Vec<(usize, usize, usize)>,
    /// The turns that were refused while the layer contained turns added for the current pair, each with the channels
    /// before and after the turn.
    failed: Vec<(usize, usize, usize)>,
    /// The steps found for the current pair in both directions, each as destination, switch and slot of the next
    /// switch.
    found: Vec<(usize, usize, u8)>,
}

struct Step {
    switch: usize,
    /// The channel over which the path reached the switch; `None` at the path's first switch.
    channel: Option<usize>,
    /// Index in `options` of the first possible next channel from this switch.
    first: usize,
    /// Number of elements of `options` that were already tried, from `first` on.
    tried: usize,
    /// Number of turns in `added` when the path reached this switch.
    added: usize,
}

/// A possible next channel. Lower choices are tried first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Choice {
    /// Rank of the turn to this channel: 0 if the layer contains the turn, 1 if it does not, 2 if the turn was refused.
    /// Also 0 if the path starts with this channel, or if the switch already has a route and thus no other choice.
    rank: u8,
    dimension: u8,
    load: u32,
    slot: u8,
}

impl<'a> PathSearch<'a> {
    pub(super) fn new(
        network: &'a Network<'a>,
        dimensions: Option<&'a Dimensions>,
        graph: DependencyGraph<'a>,
        load: Vec<super::ordered::Load>,
    ) -> Self {
        Self {
            network,
            dimensions,
            graph,
            load,
            steps: Vec::new(),
            options: Vec::new(),
            added: Vec::new(),
            failed: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Returns the channel dependency graph of the layer.
    pub(super) fn graph(&self) -> &DependencyGraph<'a> {
        &self.graph
    }

    /// Returns the channel dependency graph of the layer, and the load of each channel.
    pub(super) fn into_graph(self) -> (DependencyGraph<'a>, Vec<super::ordered::Load>) {
        (self.graph, self.load)
    }

    /// Adds paths between two switches in both directions to the layer and to `routes`. If the search finds no such
    /// paths, returns false and adds nothing.
    pub(super) fn place(&mut self, routes: &mut Routes, a: usize, b: usize) -> bool {
        self.added.clear();
        self.failed.clear();
        self.found.clear();
        if self.find(routes, a, b) && self.find(routes, b, a) {
            for &(to, switch, slot) in &self.found {
                if routes.to(to)[switch] == NONE {
                    self.load[self.network.channel(switch, slot)][0] +=
                        self.network.hosts(to).max(1);
                }
                routes.to_mut(to)[switch] = slot;
            }
            return true;
        }
        self.drop_added(0);
        // Tries the failed turns again, now without the turns that were added for this pair. A turn that still closes a
        // cycle will always close one, so it is refused from now on.
        for &(turn, from, to) in &self.failed {
            if self.graph.state(turn) == State::Absent {
                if self.graph.insert(turn, from, to) {
                    self.graph.remove(turn);
                } else {
                    self.graph.refuse(turn);
                }
            }
        }
        false
    }

    fn find(&mut self, routes: &Routes, from: usize, to: usize) -> bool {
        self.steps.clear();
        self.options.clear();
        self.enter(routes, to, from, None);
        let mut left = MAX_STEPS;
        while let Some(step) = self.steps.last_mut() {
            let (switch, channel) = (step.switch, step.channel);
            let (first, added) = (step.first, step.added);
            let choice = self.options.get(first + step.tried).copied();
            step.tried += 1;
            self.drop_added(added);
            let Some(Choice { slot, .. }) = choice.filter(|_| left > 0) else {
                self.steps.pop();
                self.options.truncate(first);
                self.found.pop_if(|_| !self.steps.is_empty());
                continue;
            };
            left -= 1;
            let onward = self.network.channel(switch, slot);
            if !channel.is_none_or(|channel| self.take(channel, onward, slot)) {
                continue;
            }
            self.found.push((to, switch, slot));
            let next = self.network.head(onward);
            if next == to {
                return true;
            }
            self.enter(routes, to, next, Some(onward));
        }
        false
    }

    /// Proceeds to a switch and lists the possible next channels, the best one first.
    fn enter(&mut self, routes: &Routes, to: usize, switch: usize, channel: Option<usize>) {
        let first = self.options.len();
        let known = routes.to(to)[switch];
        if known == NONE {
            let distances = self.network.distances(to);
            for (slot, &next) in self.network.neighbours(switch).iter().enumerate() {
                if distances[usize::from(next)] + 1 == distances[switch] {
                    let choice = self.choice(switch, channel, slot as u8);
                    self.options.push(choice);
                }
            }
            self.options[first..].sort_unstable();
        } else {
            self.options.push(Choice { rank: 0, dimension: 0, load: 0, slot: known });
        }
        let added = self.added.len();
        self.steps.push(Step { switch, channel, first, tried: 0, added });
    }

    fn choice(&self, switch: usize, channel: Option<usize>, slot: u8) -> Choice {
        let rank =
            channel.map_or(0, |channel| match self.graph.state(self.network.turn(channel, slot)) {
                State::Present => 0,
                State::Absent => 1,
                State::Refused => 2,
            });
        let onward = self.network.channel(switch, slot);
        let dimension = self.dimensions.map_or(0, |grid| grid.of_channel(onward) as u8);
        let load = self.load[onward][0];
        Choice { rank, dimension, load, slot }
    }

    /// Adds the turn from `channel` to `onward` to the layer, unless the layer already contains it. Returns false if
    /// the turn would close a cycle. `slot` is the slot of `onward`.
    fn take(&mut self, channel: usize, onward: usize, slot: u8) -> bool {
        let turn = self.network.turn(channel, slot);
        match self.graph.state(turn) {
            State::Present => true,
            State::Refused => false,
            State::Absent if self.graph.insert(turn, channel, onward) => {
                self.added.push((turn, channel, onward));
                true
            }
            State::Absent => {
                if self.added.is_empty() {
                    self.graph.refuse(turn);
                } else {
                    self.failed.push((turn, channel, onward));
                }
                false
            }
        }
    }

    fn drop_added(&mut self, keep: usize) {
        for (turn, ..) in self.added.drain(keep..) {
            self.graph.remove(turn);
        }
    }
}
