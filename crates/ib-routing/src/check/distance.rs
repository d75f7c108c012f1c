//! Counts the least hops from the switches with hosts to up to 64 destination switches at once.

use crate::hops::Graph;

/// A breadth-first search for several destinations at once, with one bit per destination.
pub(super) struct Distances {
    reached: Vec<u64>,
    arriving: Vec<u64>,
    frontier: Vec<(u16, u64)>,
    touched: Vec<u16>,
    /// The least hops, at index `destination * width + column`; `u16::MAX` if there is no path. A column stands for a
    /// source switch.
    rows: Vec<u16>,
    width: usize,
}

/// Maximum number of destinations of a search.
pub(super) const MAX_DESTINATIONS: usize = 64;

/// Value in the argument `column_of` of [`Distances::measure`] for switches that are not sources.
pub(super) const NO_COLUMN: u16 = u16::MAX;

impl Distances {
    pub(super) fn new(switches: usize, columns: usize) -> Self {
        Self {
            reached: vec![0; switches],
            arriving: vec![0; switches],
            frontier: Vec::with_capacity(switches),
            touched: Vec::with_capacity(switches),
            rows: Vec::new(),
            width: columns,
        }
    }

    /// Counts the least hops to each of the switches `destinations`. `column_of` gives the column of each source switch
    /// in the result, or [`NO_COLUMN`] if the hops from the switch are not needed.
    pub(super) fn measure(&mut self, graph: &Graph, column_of: &[u16], destinations: &[u16]) {
        self.rows.clear();
        self.rows.resize(destinations.len() * self.width, u16::MAX);
        self.reached.fill(0);
        self.frontier.clear();
        for (index, &switch) in destinations.iter().enumerate() {
            self.reached[usize::from(switch)] = 1 << index;
            self.frontier.push((switch, 1 << index));
        }
        let mut hops = 0;
        while !self.frontier.is_empty() {
            self.record(column_of, hops);
            self.advance(graph);
            hops += 1;
        }
    }

    /// Returns the hops from the switch of each column to a destination; `u16::MAX` if there is no path.
    pub(super) fn row(&self, destination: usize) -> &[u16] {
        &self.rows[destination * self.width..][..self.width]
    }

    fn record(&mut self, column_of: &[u16], hops: u16) {
        for &(switch, bits) in &self.frontier {
            let column = column_of[usize::from(switch)];
            if column == NO_COLUMN {
                continue;
            }
            let mut left = bits;
            while left != 0 {
                let destination = left.trailing_zeros() as usize;
                self.rows[destination * self.width + usize::from(column)] = hops;
                left &= left - 1;
            }
        }
    }

    fn advance(&mut self, graph: &Graph) {
        for &(switch, bits) in &self.frontier {
            for &next in graph.neighbours(switch) {
                let new = bits & !self.reached[usize::from(next)];
                if new != 0 {
                    let arriving = &mut self.arriving[usize::from(next)];
                    if *arriving == 0 {
                        self.touched.push(next);
                    }
                    *arriving |= new;
                }
            }
        }
        self.frontier.clear();
        for switch in self.touched.drain(..) {
            let bits = std::mem::take(&mut self.arriving[usize::from(switch)]);
            self.reached[usize::from(switch)] |= bits;
            self.frontier.push((switch, bits));
        }
    }
}
