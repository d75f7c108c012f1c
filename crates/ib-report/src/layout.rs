//! The position of each switch in the drawing.
//!
//! | module | draws |
//! |---|---|
//! | `rows` | trees: a row per rank, the switches of a pod together |
//! | `grid` | meshes, tori and hypercubes whose ports are cabled alike everywhere |
//! | `circle` | all other fabrics: a circle with neighbours close together |
//!
//! Coordinates have an arbitrary unit: the usual distance between neighbouring switches is [`PITCH`] units.

use ib_routing::{Subnet, SwitchId};

use crate::graph::Graph;

mod circle;
mod grid;
mod rows;

/// Distance between neighbouring switches.
pub(crate) const PITCH: f64 = 10.0;

/// Distance between two rows of a tree. Rows and columns are scaled separately, so the value only affects how finely
/// curves are drawn.
const ROW: f64 = 100.0;

/// The shape of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One row per rank.
    Rows,
    /// Rows and columns of a mesh, torus or hypercube.
    Grid,
    /// A circle.
    Circle,
}

impl Shape {
    /// Returns the name of the shape in the JSON data for the page's script.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Grid => "grid",
            Self::Circle => "circle",
        }
    }
}

/// The shape of the drawing, and the position of every switch.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    /// By switch: its coordinates, to the right and down.
    pub(crate) places: Vec<(f64, f64)>,
    /// By switch: its rank, from 0 at the bottom. Empty if the layout has no rows.
    pub(crate) ranks: Vec<usize>,
}

impl Layout {
    /// Selects the layout of a subnet. If the hosts do not determine the ranks of a tree, the distances from `roots`
    /// determine them. `roots` are the root switches of the routing engine.
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

    /// Returns how far the middle of a link is drawn from the straight line between its ends, so that the link does not
    /// cross other switches. Positive values are to the right for vertical links, and downwards for all others.
    pub(crate) fn bend(&self, from: usize, to: usize) -> f64 {
        let ((from_x, from_y), (to_x, to_y)) = (self.places[from], self.places[to]);
        let (across, down) = ((to_x - from_x).abs(), (to_y - from_y).abs());
        let straight = across > 0.5 && down > 0.5;
        let next = across.max(down) < 1.5 * PITCH;
        match self.shape {
            Shape::Rows if down < 0.5 => -0.5 * ROW,
            Shape::Grid if !straight && !next => {
                // Long links that begin at neighbouring switches get different offsets, so that they do not overlap.
                let start = from_x.min(to_x).max(from_y.min(to_y)) / PITCH;
                -(0.6 + 0.13 * (start % 4.0)) * PITCH
            }
            Shape::Rows | Shape::Grid | Shape::Circle => 0.0,
        }
    }

    /// Returns the rows from the top down, each with its vertical position, rank and number of switches.
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

    /// Returns the width for the name of each switch: the distance to the nearest switch of its row, at most twice
    /// [`PITCH`]. In layouts without ranks, the width is [`PITCH`].
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

    /// Returns the width and height of the layout.
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
