//! The channel dependency graph of a layer, to which turns are added one by one without closing a cycle.

use super::network::Network;

/// Number of turns that a cycle search may visit even if the searches before it have used up the total effort.
const LEAST_EFFORT: usize = 64;

/// A graph without cycles. Its nodes are the channels. Its edges are the turns of a layer, i.e. the pairs of channels
/// that follow each other on a path of the layer.
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
    /// By channel: the number of the search that last found the channel.
    seen: Vec<u32>,
    /// Number of the current search.
    search: u32,
    /// Result of [`Self::look_ahead`].
    ahead: Vec<u32>,
    /// Result of [`Self::look_behind`].
    behind: Vec<u32>,
    /// Channels that the current search has found, and whose turns it has not visited yet.
    pending: Vec<u32>,
    /// Buffer of [`Self::swap_places`].
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
    /// The turn is not in the graph, because it would close a cycle or the search for a cycle gave up.
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

    /// Sets the position of each channel in the topological order. The positions must come from another graph of the
    /// same network ([`Self::into_places`]) or from `Orientation::place`.
    pub(super) fn with_places(mut self, place: Vec<u32>) -> Self {
        assert_eq!(place.len(), self.place.len(), "one position per channel");
        self.place = place;
        self
    }

    pub(super) fn state(&self, turn: usize) -> State {
        self.states[turn]
    }

    /// Returns the position of every channel in the topological order.
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

    /// Records that a turn is refused.
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

    /// Adds a turn from the channel `from` to the channel `to`. Returns false and does not add the turn if it would
    /// close a cycle, or if the search for a cycle gives up.
    pub(super) fn insert(&mut self, turn: usize, from: usize, to: usize) -> bool {
        if self.place[from] > self.place[to] && !self.make_room(from, to) {
            return false;
        }
        self.states[turn] = State::Present;
        true
    }

    /// Changes the positions of channels so that the channel `from` comes before the channel `to`. Returns false if
    /// turns of the graph lead from `to` to `from`, or if the search visits too many turns.
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

    /// Collects `start` and its successors at positions below `high` in `ahead`. Returns false if `goal` is a
    /// successor, or if `visited_turns` exceeds `limit`.
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

    /// Collects `start` and its predecessors at positions above `low` in `behind`. Returns false if `visited_turns`
    /// exceeds `limit`.
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

    /// Redistributes the positions of the channels in `behind` and `ahead`: those in `behind` get the lowest positions,
    /// those in `ahead` get the others.
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
