//! Placing pairs one by one, with a search for paths that close no cycle.

use super::dimensions::Dimensions;
use super::graph::{DependencyGraph, State};
use super::network::{NONE, Network};
use super::routes::Routes;

/// How many channels the search for one path may try.
const MOST_STEPS: usize = 64;

/// A search for shortest paths that fit into one layer.
///
/// It goes from switch to switch, backs up where a turn would close a cycle, and where a route is
/// known already it has to follow it. Turns that the layer has are tried before new ones, so
/// that as few as possible are added.
pub(super) struct PathSearch<'a> {
    network: &'a Network<'a>,
    dimensions: Option<&'a Dimensions>,
    graph: DependencyGraph<'a>,
    load: Vec<super::ordered::Load>,
    /// Where the path is, one step for each switch on it.
    steps: Vec<Step>,
    options: Vec<Choice>,
    /// The turns that the current pair added, with the channels on either side.
    added: Vec<(usize, usize, usize)>,
    /// The turns that did not go together with those.
    failed: Vec<(usize, usize, usize)>,
    /// The routes that the current pair would add: destination, switch and slot.
    found: Vec<(usize, usize, u8)>,
}

struct Step {
    switch: usize,
    /// The channel that the path came by.
    channel: Option<usize>,
    /// Where this step's choices begin among the options, and how many have been tried.
    first: usize,
    tried: usize,
    /// The number of added turns before this step.
    added: usize,
}

/// A way on: by rank of its turn, by dimension, by slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Choice {
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

    /// Returns the layer's graph.
    pub(super) fn graph(&self) -> &DependencyGraph<'a> {
        &self.graph
    }

    /// Returns the layer's graph.
    pub(super) fn into_graph(self) -> (DependencyGraph<'a>, Vec<super::ordered::Load>) {
        (self.graph, self.load)
    }

    /// Adds the paths of both directions between two switches to the layer, and to the routes;
    /// returns false, with both unchanged, when none were found that fit.
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
        // A turn that fails alone will fail every time; it need not be searched for again.
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
        let mut left = MOST_STEPS;
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

    /// Goes on to a switch and lists the ways on from there, the best first.
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

    /// Makes sure that the layer has a turn; false when that would close a cycle.
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
