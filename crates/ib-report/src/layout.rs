//! Where each switch is drawn.
//!
//! | module | draws |
//! |---|---|
//! | `rows` | trees: a row per rank, the switches of a pod together |
//! | `grid` | meshes, tori and hypercubes whose ports are cabled alike everywhere |
//! | `circle` | everything else: on a circle, neighbours close together |
//!
//! Lengths are in units of which switches next to each other are [`PITCH`] apart.

use ib_routing::{Subnet, SwitchId};

use crate::graph::Graph;

mod circle;
mod grid;
mod rows;

/// The distance of two switches next to each other.
pub(crate) const PITCH: f64 = 10.0;

/// The distance of two rows of a tree. Rows are scaled apart from columns, so it only has to be
/// fine enough for bent links.
const ROW: f64 = 100.0;

/// How a fabric is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A row per rank.
    Rows,
    /// Rows and columns of a mesh or torus.
    Grid,
    /// A circle.
    Circle,
}

impl Shape {
    /// Returns the name that the script knows.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Grid => "grid",
            Self::Circle => "circle",
        }
    }
}

/// A place for every switch.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    /// By switch: to the right and down.
    pub(crate) places: Vec<(f64, f64)>,
    /// By switch: its rank above the hosts; empty without rows.
    pub(crate) ranks: Vec<usize>,
}

impl Layout {
    /// Finds the layout that suits a subnet; the roots of the engine help where it is not clear
    /// which way is up.
    pub(crate) fn new(subnet: &Subnet<'_>, roots: &[SwitchId]) -> Self {
        let graph = Graph::new(subnet);
        let ranked = |ranks: Vec<usize>| {
            let places = rows::places(&graph, &ranks);
            Self { shape: Shape::Rows, places, ranks }
        };
        let flat = |shape, places| Self { shape, places, ranks: Vec::new() };
        if let Some(ranks) = rows::ranks_by_hosts(&graph, roots) {
            return ranked(ranks);
        }
        let first = graph.place.iter().position(|&place| place == 0).unwrap_or(0);
        match grid::find(subnet, first) {
            Some(grid::Found::Grid(places)) => flat(Shape::Grid, places),
            Some(grid::Found::Ring(order)) => flat(Shape::Circle, circle::in_order(&order)),
            None => match rows::ranks_by_roots(&graph, roots) {
                Some(ranks) => ranked(ranks),
                None => flat(Shape::Circle, circle::places(&graph)),
            },
        }
    }

    /// Returns how far the middle of a link is pulled aside, so that it does not run through the
    /// switches between its ends: to the right when it is upright, else down.
    pub(crate) fn bend(&self, from: usize, to: usize) -> f64 {
        let ((from_x, from_y), (to_x, to_y)) = (self.places[from], self.places[to]);
        let (across, down) = ((to_x - from_x).abs(), (to_y - from_y).abs());
        let straight = across > 0.5 && down > 0.5;
        let next = across.max(down) < 1.5 * PITCH;
        match self.shape {
            Shape::Rows if down < 0.5 => -0.5 * ROW,
            Shape::Grid if !straight && !next => {
                // Links that start side by side are bent apart, so that they can be told apart.
                let start = from_x.min(to_x).max(from_y.min(to_y)) / PITCH;
                -(0.6 + 0.13 * (start % 4.0)) * PITCH
            }
            Shape::Rows | Shape::Grid | Shape::Circle => 0.0,
        }
    }

    /// Returns the rows from the top down: where each is, its rank and how many switches it has.
    pub(crate) fn rows(&self) -> Vec<(f64, usize, usize)> {
        let ranks = self.ranks.iter().max().map_or(0, |&top| top + 1);
        (0..ranks)
            .rev()
            .map(|rank| {
                let switches = self.ranks.iter().filter(|&&other| other == rank).count();
                (rows::height(ranks - 1, rank), rank, switches)
            })
            .collect()
    }

    /// Returns by switch how much room its name has: the distance to the next switch of its row,
    /// at most two steps.
    pub(crate) fn rooms(&self) -> Vec<f64> {
        let mut rooms = vec![PITCH; self.places.len()];
        if self.shape != Shape::Rows {
            return rooms;
        }
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_by(|&a, &b| {
            (self.ranks[a].cmp(&self.ranks[b])).then(self.places[a].0.total_cmp(&self.places[b].0))
        });
        rooms.fill(2.0 * PITCH);
        for pair in order.windows(2).filter(|pair| self.ranks[pair[0]] == self.ranks[pair[1]]) {
            let distance = self.places[pair[1]].0 - self.places[pair[0]].0;
            for &switch in pair {
                rooms[switch] = distance.min(rooms[switch]);
            }
        }
        rooms
    }

    /// Returns the width and height that all switches take up.
    pub(crate) fn extent(&self) -> (f64, f64) {
        let span = |values: &dyn Fn(&(f64, f64)) -> f64| {
            let (low, high) = self
                .places
                .iter()
                .map(values)
                .fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)));
            (high - low).max(0.0)
        };
        (span(&|place| place.0), span(&|place| place.1))
    }
}

#[cfg(test)]
mod tests;
