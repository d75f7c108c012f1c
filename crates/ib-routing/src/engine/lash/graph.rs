//! The channel dependency graph of a layer, to which turns are added one by one without closing a cycle.

use super::network::Network;

/// Number of turns that a cycle search may visit even if the searches before it have used up the total effort.
const LEAST_EFFORT: usize = 64;

/// A graph without cycles. Its nodes are the channels, and its edges are the turns of a layer.
///
/// Channels have positions in a topological order. A turn that leads to a higher position is added without a search.
/// For any other turn, a search visits the channels between the positions of its two channels. Only the channels that
/// the search finds get new positions. Pearce and Kelly, "A Dynamic Topological Sort Algorithm for Directed Acyclic
/// Graphs", ACM Journal of Experimental Algorithmics 11, 2007.
pub(super) struct DependencyGraph<'n> {
    network: &'n Network<'n>,
    /// The position of each channel in the topological order.
    place: Vec<u32>,
    /// Whether each turn is in the graph, or was refused.
    states: Vec<State>,
    /// Number of turns that all searches together may visit. However, every search may visit at least [`LEAST_EFFORT`].
    effort: usize,
    /// Number of turns that all searches have visited so far.
    visited_turns: usize,
    seen: Vec<u32>,
    search: u32,
    ahead: Vec<u32>,
    behind: Vec<u32>,
    pending: Vec<u32>,
    places: Vec<u32>,
}

/// Whether a turn is in the graph, or was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// The turn is not in the graph, and may be tried.
    #[default]
    Absent,
    /// The turn is in the graph.
    Present,
    /// The turn is not in the graph, because it would close a cycle.
    Refused,
}

impl<'n> DependencyGraph<'n> {
    /// Returns a graph without turns. Its searches may visit `effort` turns in total.
    ///
    /// If `effort` is too small, a search can give up and refuse a turn that closes no cycle. A turn that closes a
    /// cycle is always refused.
    pub(super) fn new(network: &'n Network<'n>, effort: usize) -> Self {
        let channels = network.channels();
        Self {
            network,
            place: (0..channels as u32).collect(),
            states: vec![State::Absent; network.turns()],
            effort,
            visited_turns: 0,
            seen: vec![0; channels],
            search: 0,
            ahead: Vec::new(),
            behind: Vec::new(),
            pending: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Sets the positions of all channels. They must be the positions of another graph of the same network, or of an
    /// orientation.
    pub(super) fn with_places(mut self, place: Vec<u32>) -> Self {
        assert_eq!(place.len(), self.place.len(), "one place per channel");
        self.place = place;
        self
    }

    pub(super) fn state(&self, turn: usize) -> State {
        self.states[turn]
    }

    /// Returns the position of every channel.
    pub(super) fn into_places(self) -> Vec<u32> {
        self.place
    }

    /// Returns the number of turns that all searches have visited so far.
    pub(super) fn visited_turns(&self) -> usize {
        self.visited_turns
    }

    /// Adds a turn that leads to a channel with a higher position.
    pub(super) fn insert_ordered(&mut self, turn: usize) {
        self.states[turn] = State::Present;
    }

    /// Removes a turn.
    pub(super) fn remove(&mut self, turn: usize) {
        self.states[turn] = State::Absent;
    }

    /// Records that a turn would close a cycle.
    pub(super) fn refuse(&mut self, turn: usize) {
        self.states[turn] = State::Refused;
    }

    /// Lets all refused turns be tried again, which is necessary after turns were removed from the graph.
    pub(super) fn forget_refusals(&mut self) {
        for state in &mut self.states {
            if *state == State::Refused {
                *state = State::Absent;
            }
        }
    }

    /// Adds a turn from the channel `from` to the channel `to`, unless it would close a cycle. Returns true if the turn
    /// was added.
    pub(super) fn insert(&mut self, turn: usize, from: usize, to: usize) -> bool {
        if self.place[from] > self.place[to] && !self.make_room(from, to) {
            return false;
        }
        self.states[turn] = State::Present;
        true
    }

    /// Changes the positions of channels so that the channel `from` comes before the channel `to`. Returns false if
    /// `to` already leads to `from`, or if the search takes too long.
    fn make_room(&mut self, from: usize, to: usize) -> bool {
        let (low, high) = (self.place[to], self.place[from]);
        self.search += 1;
        let limit =
            self.visited_turns + self.effort.saturating_sub(self.visited_turns).max(LEAST_EFFORT);
        let found = self.look_ahead(to, from, high, limit) && self.look_behind(from, low, limit);
        if found {
            self.swap_places();
        }
        found
    }

    /// Collects the successors of `start` below the position `high`. Returns false if `goal` is among them, or if the
    /// search takes too long.
    fn look_ahead(&mut self, start: usize, goal: usize, high: u32, limit: usize) -> bool {
        self.ahead.clear();
        self.pending.clear();
        self.pending.push(start as u32);
        self.seen[start] = self.search;
        while let Some(channel) = self.pending.pop() {
            self.ahead.push(channel);
            let channel = channel as usize;
            let onward = self.network.channels_of(self.network.head(channel));
            for (turn, next) in self.network.turns_of(channel).zip(onward) {
                if self.states[turn] != State::Present {
                    continue;
                }
                self.visited_turns += 1;
                if next == goal || self.visited_turns > limit {
                    return false;
                }
                if self.place[next] < high && self.seen[next] != self.search {
                    self.seen[next] = self.search;
                    self.pending.push(next as u32);
                }
            }
        }
        true
    }

    /// Collects the predecessors of `start` above the position `low`. Returns false if the search takes too long.
    fn look_behind(&mut self, start: usize, low: u32, limit: usize) -> bool {
        self.behind.clear();
        self.pending.push(start as u32);
        self.seen[start] = self.search;
        while let Some(channel) = self.pending.pop() {
            self.behind.push(channel);
            let channel = channel as usize;
            let slot = self.network.slot(channel);
            for back in self.network.channels_of(self.network.tail(channel)) {
                let previous = self.network.reverse(back);
                let turn = self.network.turns_of(previous).start + slot;
                if self.states[turn] != State::Present {
                    continue;
                }
                self.visited_turns += 1;
                if self.visited_turns > limit {
                    return false;
                }
                if self.place[previous] > low && self.seen[previous] != self.search {
                    self.seen[previous] = self.search;
                    self.pending.push(previous as u32);
                }
            }
        }
        true
    }

    /// Redistributes the positions of the collected channels: the predecessors get the lowest ones, the successors the
    /// others.
    fn swap_places(&mut self) {
        let place = &mut self.place;
        for found in [&mut self.ahead, &mut self.behind] {
            found.sort_unstable_by_key(|&channel| place[channel as usize]);
        }
        let channels = || self.behind.iter().chain(&self.ahead).map(|&channel| channel as usize);
        self.places.clear();
        self.places.extend(channels().map(|channel| place[channel]));
        self.places.sort_unstable();
        for (channel, &new) in channels().zip(&self.places) {
            place[channel] = new;
        }
    }
}
