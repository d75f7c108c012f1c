//! The channel dependency graph of a layer, kept free of cycles turn by turn.

use super::network::Network;

/// How many turns a search for a cycle may always look at.
const LEAST_EFFORT: usize = 64;

/// The channels of a layer as nodes and its turns as edges, without a cycle.
///
/// Every channel has a place such that all turns lead to higher places. A turn that already does
/// costs nothing; another starts a search between the two places and moves only what it finds
/// there. Pearce and Kelly, "A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs",
/// ACM Journal of Experimental Algorithmics 11, 2007.
pub(super) struct DependencyGraph<'n> {
    network: &'n Network<'n>,
    /// By channel.
    place: Vec<u32>,
    /// By turn.
    states: Vec<State>,
    /// How many turns all searches may look at before each is held to [`LEAST_EFFORT`], and how
    /// many they have looked at.
    effort: usize,
    looked_at: usize,
    seen: Vec<u32>,
    search: u32,
    ahead: Vec<u32>,
    behind: Vec<u32>,
    pending: Vec<u32>,
    places: Vec<u32>,
}

/// What is known of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// It is not in the graph, and nobody has tried lately.
    #[default]
    Absent,
    /// It is in the graph.
    Present,
    /// It is not in the graph, which has a path that it would close to a cycle.
    Refused,
}

impl<'n> DependencyGraph<'n> {
    /// Returns a graph without turns whose searches may look at `effort` turns in all.
    ///
    /// With less than was needed, turns are refused that would close no cycle; never the other way
    /// round.
    pub(super) fn new(network: &'n Network<'n>, effort: usize) -> Self {
        let channels = network.channels();
        Self {
            network,
            place: (0..channels as u32).collect(),
            states: vec![State::Absent; network.turns()],
            effort,
            looked_at: 0,
            seen: vec![0; channels],
            search: 0,
            ahead: Vec::new(),
            behind: Vec::new(),
            pending: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Starts with the places of another graph over the same network or of an orientation.
    pub(super) fn with_places(mut self, place: Vec<u32>) -> Self {
        assert_eq!(place.len(), self.place.len(), "one place per channel");
        self.place = place;
        self
    }

    pub(super) fn state(&self, turn: usize) -> State {
        self.states[turn]
    }

    /// Returns the place of every channel.
    pub(super) fn into_places(self) -> Vec<u32> {
        self.place
    }

    /// Returns how many turns the searches have looked at.
    pub(super) fn looked_at(&self) -> usize {
        self.looked_at
    }

    /// Takes a turn that is known to lead to a higher place.
    pub(super) fn insert_ordered(&mut self, turn: usize) {
        self.states[turn] = State::Present;
    }

    /// Takes a turn out.
    pub(super) fn remove(&mut self, turn: usize) {
        self.states[turn] = State::Absent;
    }

    /// Notes that a turn closes a cycle, so that [`Self::state`] can tell.
    pub(super) fn refuse(&mut self, turn: usize) {
        self.states[turn] = State::Refused;
    }

    /// Forgets which turns were refused, after others were taken out.
    pub(super) fn forget_refusals(&mut self) {
        for state in &mut self.states {
            if *state == State::Refused {
                *state = State::Absent;
            }
        }
    }

    /// Takes a turn unless it would close a cycle; returns whether it did.
    pub(super) fn insert(&mut self, turn: usize, from: usize, to: usize) -> bool {
        if self.place[from] > self.place[to] && !self.make_room(from, to) {
            return false;
        }
        self.states[turn] = State::Present;
        true
    }

    /// Rearranges the places such that `from` comes before `to`, if that can be.
    fn make_room(&mut self, from: usize, to: usize) -> bool {
        let (low, high) = (self.place[to], self.place[from]);
        self.search += 1;
        let limit = self.looked_at + self.effort.saturating_sub(self.looked_at).max(LEAST_EFFORT);
        let found = self.look_ahead(to, from, high, limit) && self.look_behind(from, low, limit);
        if found {
            self.swap_places();
        }
        found
    }

    /// Collects what follows `start` up to a place; false when `goal` is among it.
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
                self.looked_at += 1;
                if next == goal || self.looked_at > limit {
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

    /// Collects what leads to `start` from a place on; false when that takes too long.
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
                self.looked_at += 1;
                if self.looked_at > limit {
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

    /// Hands the places of both collections out again, those behind first.
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
