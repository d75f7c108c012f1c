//! Balances the numbers of pairs of switches between the layers.

use super::first_fit::{Turn, collect_turns, insert_all};
use super::graph::DependencyGraph;
use super::network::{NONE, Network};
use super::routes::{Layout, Routes};

/// If the balancing of a fabric has visited this many turns, it stops.
const EFFORT: usize = 1 << 24;

/// Moves pairs from fuller layers to emptier ones. No layer gets a cycle, and no layer is added.
///
/// Afterwards, no single pair can move to a layer that has at least two pairs fewer than its present layer. On large
/// fabrics, the balancing may stop earlier, after [`EFFORT`] turns.
pub(super) fn balance(network: &Network<'_>, layout: &mut Layout) {
    if layout.count() < 2 {
        return;
    }
    let mut balancer = Balancer::new(network, layout);
    while balancer.step() {}
    let switches = network.switches();
    let finished = balancer.shelves.into_iter();
    let (pairs, orders): (Vec<_>, Vec<_>) =
        finished.map(|shelf| (shelf.pairs, shelf.graph.into_places())).unzip();
    for (layer, pairs) in pairs.into_iter().enumerate() {
        for (a, b) in pairs {
            let (a, b) = (usize::from(a), usize::from(b));
            layout.layers[a * switches + b] = layer as u8;
            layout.layers[b * switches + a] = layer as u8;
        }
    }
    layout.orders = orders;
}

struct Balancer<'a> {
    network: &'a Network<'a>,
    routes: &'a Routes,
    shelves: Vec<Layer<'a>>,
    /// Results of attempts to move pairs, indexed by source layer and then by target layer.
    tried: Vec<Vec<Tried>>,
    effort_left: usize,
    turns: Vec<Turn>,
    added: Vec<Turn>,
}

/// Result of attempts to move pairs from a source layer to a target layer.
#[derive(Clone, Copy, Default)]
struct Tried {
    /// Number of pairs at the start of the source layer's `pairs` that do not fit into the target layer.
    pairs: usize,
    /// [`Layer::losses`] of the target layer during the attempts. If the target layer has lost further pairs since
    /// then, all pairs are tried again.
    losses: usize,
}

/// A layer and its pairs of switches.
struct Layer<'a> {
    graph: DependencyGraph<'a>,
    /// By turn: number of the layer's paths that make this turn.
    uses: Vec<u32>,
    pairs: Vec<(u16, u16)>,
    /// Number of pairs that were removed from the layer.
    losses: usize,
    /// The value of `losses` when [`DependencyGraph::forget_refusals`] was last called for `graph`.
    fresh_at: usize,
}

impl<'a> Balancer<'a> {
    fn new(network: &'a Network<'a>, layout: &'a Layout) -> Self {
        let switches = network.switches();
        let mut shelves: Vec<Layer<'a>> = layout
            .orders
            .iter()
            .map(|order| Layer {
                graph: DependencyGraph::new(network, EFFORT).with_places(order.clone()),
                uses: vec![0; network.turns()],
                pairs: Vec::new(),
                losses: 0,
                fresh_at: 0,
            })
            .collect();
        let mut turns = Vec::new();
        for a in 0..switches {
            for b in a + 1..switches {
                let layer = layout.layers[a * switches + b];
                if layer == NONE {
                    continue;
                }
                let shelf = &mut shelves[usize::from(layer)];
                shelf.pairs.push((a as u16, b as u16));
                collect_turns(network, &layout.routes, a, b, &mut turns);
                for &(turn, ..) in &turns {
                    shelf.uses[turn] += 1;
                    shelf.graph.insert_ordered(turn);
                }
            }
        }
        let tried = vec![vec![Tried::default(); shelves.len()]; shelves.len()];
        Self {
            network,
            routes: &layout.routes,
            shelves,
            tried,
            effort_left: EFFORT,
            turns,
            added: Vec::new(),
        }
    }

    /// Moves pairs from one layer to another. Tries the fullest layer first as the source, and for each source the
    /// emptiest layer first as the target. Returns false if no pair can move.
    fn step(&mut self) -> bool {
        let mut order: Vec<usize> = (0..self.shelves.len()).collect();
        order.sort_by_key(|&layer| self.shelves[layer].pairs.len());
        for &from in order.iter().rev() {
            for &to in &order {
                if self.surplus(from, to) > 0 && self.move_pairs(from, to) {
                    return true;
                }
            }
        }
        false
    }

    /// Returns the number of pairs that should move from layer `from` to layer `to`.
    fn surplus(&self, from: usize, to: usize) -> usize {
        let total: usize = self.shelves.iter().map(|shelf| shelf.pairs.len()).sum();
        let (full, empty) = (self.shelves[from].pairs.len(), self.shelves[to].pairs.len());
        if full < empty + 2 {
            return 0;
        }
        // Neither layer should cross the average number of pairs per layer: pairs would then have to move back.
        let average = total / self.shelves.len();
        full.saturating_sub(average).min(average.saturating_sub(empty)).max(1)
    }

    /// Moves pairs from layer `from` to layer `to`. Returns true if any pair was moved.
    fn move_pairs(&mut self, from: usize, to: usize) -> bool {
        let losses = self.shelves[to].losses;
        if self.tried[from][to].losses != losses {
            self.tried[from][to] = Tried { pairs: 0, losses };
        }
        let start = self.tried[from][to].pairs;
        let surplus = self.surplus(from, to);
        let mut pairs = std::mem::take(&mut self.shelves[from].pairs);
        let (mut kept, mut next) = (start, start);
        if start < pairs.len() {
            self.shelves[to].refresh();
        }
        while next < pairs.len() && next - kept < surplus && self.effort_left > 0 {
            let (a, b) = (usize::from(pairs[next].0), usize::from(pairs[next].1));
            collect_turns(self.network, self.routes, a, b, &mut self.turns);
            let before = self.shelves[to].graph.visited_turns();
            let fits = self.shelves[to].take(pairs[next], &self.turns, &mut self.added);
            let cost = self.shelves[to].graph.visited_turns() - before + self.turns.len() + 1;
            self.effort_left = self.effort_left.saturating_sub(cost);
            if fits {
                self.shelves[from].give(&self.turns);
                for tried in self.tried[from].iter_mut().filter(|tried| tried.pairs > kept) {
                    tried.pairs -= 1;
                }
            } else {
                pairs[kept] = pairs[next];
                kept += 1;
            }
            next += 1;
        }
        self.tried[from][to].pairs = kept;
        pairs.drain(kept..next);
        self.shelves[from].pairs = pairs;
        next > kept
    }
}

impl Layer<'_> {
    /// Lets the graph try its refused turns again if pairs were removed from the layer since the last call.
    fn refresh(&mut self) {
        if self.fresh_at != self.losses {
            self.graph.forget_refusals();
            self.fresh_at = self.losses;
        }
    }

    fn take(&mut self, pair: (u16, u16), turns: &[Turn], added: &mut Vec<Turn>) -> bool {
        if !insert_all(&mut self.graph, turns, added) {
            return false;
        }
        for &(turn, ..) in turns {
            self.uses[turn] += 1;
        }
        self.pairs.push(pair);
        true
    }

    fn give(&mut self, turns: &[Turn]) {
        for &(turn, ..) in turns {
            self.uses[turn] -= 1;
            if self.uses[turn] == 0 {
                self.graph.remove(turn);
            }
        }
        self.losses += 1;
    }
}
