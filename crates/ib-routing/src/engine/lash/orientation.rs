//! Orientations: orders of the channels that many shortest paths follow.
//!
//! Assume a fixed order of all channels. Paths whose next channel always comes later in this order cannot form a
//! dependency cycle. This module combines two such orders:
//!
//! * Up*/down*: switches are numbered by a breadth-first search from a root. A channel leads up if it leads to a lower
//!   number, and down if it leads to a higher number. Channels that lead up come first, sorted by the number of the
//!   switch that they leave, in descending order. Then come channels that lead down, in ascending order.
//! * Dimension order: all channels of dimension 0 come first, then all channels of dimension 1, and so on.
//!
//! Each dimension has its own up*/down* order. There, the search numbers the coordinates of the dimension instead of
//! switches, starting at the coordinate of the root. A graph without dimensions is treated as one dimension whose
//! coordinates are the switches.
//!
//! On a cycle of switches, no path that follows this order passes through the switch opposite to the root. So
//! different roots exclude different paths.

use super::dimensions::Dimensions;
use super::network::{NONE, Network};

/// An order of the channels, which is divided into stretches. A stretch consists of all channels that lead up, or down,
/// in one dimension. Within a stretch, shortest paths always follow the order.
pub(super) struct Orientation {
    /// The stretch of each channel: up or down in one dimension. [`NONE`] for channels between switches with the same
    /// coordinate, which no path may use.
    pub(super) stretch: Vec<u8>,
    /// The position of each channel in the order.
    pub(super) place: Vec<u32>,
}

impl Orientation {
    /// Returns the orientation for a root. In a mirrored orientation, channels to higher numbers lead up, and channels
    /// to lower numbers lead down.
    pub(super) fn new(
        network: &Network<'_>,
        dimensions: Option<&Dimensions>,
        root: usize,
        mirrored: bool,
    ) -> Self {
        let mut stretch = vec![NONE; network.channels()];
        let mut keys = vec![(NONE, 0); network.channels()];
        for dimension in 0..dimensions.map_or(1, Dimensions::count) {
            let axis = Axis::new(network, dimensions, dimension);
            let numbers = axis.numbers(root);
            for channel in axis.channels() {
                let from = numbers[axis.coordinate(network.tail(channel))];
                let to = numbers[axis.coordinate(network.head(channel))];
                if from == to {
                    continue;
                }
                let down = (to > from) != mirrored;
                stretch[channel] = (2 * dimension) as u8 + u8::from(down);
                // Channels to lower numbers are sorted by `from` in descending order, channels to higher numbers in
                // ascending order.
                keys[channel] = (stretch[channel], if to < from { -from } else { from });
            }
        }
        let mut order: Vec<usize> = (0..network.channels()).collect();
        order.sort_by_key(|&channel| keys[channel]);
        let mut place = vec![0; network.channels()];
        for (rank, channel) in order.into_iter().enumerate() {
            place[channel] = rank as u32;
        }
        Self { stretch, place }
    }
}

/// A dimension of a grid, or the whole network if `grid` is `None`.
struct Axis<'a> {
    network: &'a Network<'a>,
    grid: Option<(&'a Dimensions, usize)>,
}

impl<'a> Axis<'a> {
    fn new(network: &'a Network<'a>, dimensions: Option<&'a Dimensions>, dimension: usize) -> Self {
        Self { network, grid: dimensions.map(|dimensions| (dimensions, dimension)) }
    }

    fn coordinate(&self, switch: usize) -> usize {
        self.grid.map_or(switch, |(grid, axis)| grid.coordinates(axis)[switch] as usize)
    }

    fn channels(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.network.channels()).filter(|&channel| {
            self.grid.is_none_or(|(grid, dimension)| grid.of_channel(channel) == dimension)
        })
    }

    /// Numbers the coordinates by a breadth-first search from the coordinate of switch `root`.
    fn numbers(&self, root: usize) -> Vec<i64> {
        let count = (0..self.network.switches()).map(|switch| self.coordinate(switch)).max();
        let count = count.map_or(0, |highest| highest + 1);
        let mut joined: Vec<Vec<usize>> = vec![Vec::new(); count];
        for channel in self.channels() {
            let from = self.coordinate(self.network.tail(channel));
            joined[from].push(self.coordinate(self.network.head(channel)));
        }
        let mut numbers = vec![0; count];
        let mut seen = vec![false; count];
        let mut next = 0;
        let starts = std::iter::once(self.coordinate(root)).chain(0..count);
        for start in starts {
            let mut queue = std::collections::VecDeque::new();
            if !std::mem::replace(&mut seen[start], true) {
                queue.push_back(start);
            }
            while let Some(coordinate) = queue.pop_front() {
                numbers[coordinate] = next;
                next += 1;
                for &other in &joined[coordinate] {
                    if !std::mem::replace(&mut seen[other], true) {
                        queue.push_back(other);
                    }
                }
            }
        }
        numbers
    }
}
