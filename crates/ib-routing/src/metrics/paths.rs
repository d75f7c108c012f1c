//! All paths of a subnet in one table.

use rayon::prelude::*;

use super::routes::Routes;
use crate::subnet::{EndPortId, SwitchId};

/// Number of shifts counted at a time. The paths from a switch to consecutive positions are
/// adjacent, so more of them share a cache line; but each shift needs its own counters.
pub(super) const TILE: usize = 8;

/// Index of a link between switches, in as few bytes as possible.
pub(super) trait Index: Copy + Send + Sync {
    fn new(index: usize) -> Self;
    fn get(self) -> usize;
}

impl Index for u16 {
    fn new(index: usize) -> Self {
        Self::try_from(index).expect("u16 is used for fewer than 2^16 links")
    }

    fn get(self) -> usize {
        usize::from(self)
    }
}

impl Index for u32 {
    fn new(index: usize) -> Self {
        Self::try_from(index).expect("there are fewer than 2^32 links")
    }

    fn get(self) -> usize {
        self as usize
    }
}

/// The links between switches on the paths from some switches to the nodes of an order.
pub(super) struct PathTable<I> {
    /// Maximum number of links per path.
    stride: usize,
    /// Number of positions per row: those of the order, then its first ones again, so that a tile
    /// at the end needs no wrap-around.
    positions: usize,
    /// `[switch][position][link]`, padded with the number of links.
    links: Vec<I>,
}

/// Number of rows that a thread fills together.
const ROWS_AT_ONCE: usize = 32;

impl<I: Index> PathTable<I> {
    /// Follows all paths; `None` if they need more than `memory` bytes.
    ///
    /// A path is empty if it does not reach its destination, or if `order` has no end port there.
    pub(super) fn new(
        routes: &Routes<'_>,
        from: &[SwitchId],
        order: &[Option<EndPortId>],
        memory: usize,
    ) -> Option<Self> {
        // Enough for trees of three levels; otherwise the second attempt has the right length.
        let mut stride = 4;
        loop {
            let positions = order.len() + TILE - 1;
            if from.len() * positions * stride * size_of::<I>() > memory {
                return None;
            }
            let none = I::new(routes.switch_channels().len());
            let mut table =
                Self { stride, positions, links: vec![none; from.len() * positions * stride] };
            let longest = table.fill(routes, from, order);
            if longest <= stride {
                return Some(table);
            }
            stride = longest;
        }
    }

    /// Stores all paths that fit, and returns the number of links of the longest.
    fn fill(
        &mut self,
        routes: &Routes<'_>,
        from: &[SwitchId],
        order: &[Option<EndPortId>],
    ) -> usize {
        let lid = |port| routes.subnet.end_port(port).base_lid.index();
        let mut targets: Vec<(usize, EndPortId)> = order
            .iter()
            .enumerate()
            .filter_map(|(position, &port)| Some((position, port?)))
            .collect();
        targets.sort_by_key(|&(_, port)| lid(port));
        // LFT entries for the LIDs of a group share a cache line.
        let groups = || targets.chunk_by(|a, b| lid(a.1) / 64 == lid(b.1) / 64);

        let width = self.positions * self.stride;
        let fill_rows = |(rows, from): (&mut [I], &[SwitchId])| {
            let (mut path, mut longest) = (Vec::new(), 0);
            for group in groups() {
                for (row, &switch) in rows.chunks_exact_mut(width).zip(from) {
                    for &(position, to) in group {
                        path.clear();
                        routes.append(switch, to, &mut path);
                        longest = longest.max(path.len());
                        let slots = &mut row[position * self.stride..][..self.stride];
                        for (slot, &channel) in slots.iter_mut().zip(&path) {
                            *slot = I::new(routes.link_index(channel));
                        }
                    }
                }
            }
            for row in rows.chunks_exact_mut(width) {
                let (positions, again) = row.split_at_mut(order.len() * self.stride);
                for (slot, &link) in again.iter_mut().zip(positions.iter().cycle()) {
                    *slot = link;
                }
            }
            longest
        };
        let rows = self.links.par_chunks_mut((width * ROWS_AT_ONCE).max(1));
        rows.zip(from.par_chunks(ROWS_AT_ONCE)).map(fill_rows).max().unwrap_or(0)
    }

    /// Returns the paths from a switch (a row) to a position of the order and the following ones.
    pub(super) fn paths_to(&self, row: usize, position: usize) -> impl Iterator<Item = &[I]> {
        let links =
            &self.links[row * self.positions * self.stride..][..self.positions * self.stride];
        links[position * self.stride..].chunks_exact(self.stride)
    }
}
