//! A table with all paths of a subnet.

use rayon::prelude::*;

use super::routes::Routes;
use crate::subnet::{EndPortId, SwitchId};

/// Number of shifts whose flows are counted together. A switch's paths for these shifts are adjacent in memory, so a
/// larger number lets more paths share a cache line. But each shift needs memory for its own counters.
pub(super) const TILE: usize = 8;

/// The integer type for the index of a link between switches. It has as few bytes as possible.
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

/// The links on the paths from several switches to all compute nodes, in the order of the shift patterns. Links to
/// hosts are left out.
pub(super) struct PathTable<I> {
    /// Maximum number of links per path.
    stride: usize,
    /// Number of paths stored for a source switch: one for each position in the order of compute nodes, then `TILE - 1`
    /// more. These repeat the paths to the first positions, so that the paths to [`TILE`] consecutive positions are
    /// always adjacent.
    positions: usize,
    /// The links of all paths, ordered by source switch, position, and place in the path. A link is stored as its index
    /// among the links between switches. Unused elements contain the index after the last link.
    links: Vec<I>,
}

/// Number of source switches whose paths a thread stores at a time.
const ROWS_AT_ONCE: usize = 32;

impl<I: Index> PathTable<I> {
    /// Follows all paths and stores them. Returns `None` if they need more than `memory` bytes.
    ///
    /// A path is empty if it does not reach its destination, or if the destination's element of `order` is `None`.
    pub(super) fn new(
        routes: &Routes<'_>,
        from: &[SwitchId],
        order: &[Option<EndPortId>],
        memory: usize,
    ) -> Option<Self> {
        // Four links per path are enough for trees of three levels. If a path is longer, the second attempt uses the
        // length of the longest path.
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

    /// Stores all paths, cut off after `stride` links, and returns the number of links of the longest path.
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
        // A group consists of the targets whose LFT entries are in the same cache line of each table.
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

    /// Returns the paths from the switch of a row to the nodes at the given position and at each position after it.
    pub(super) fn paths_to(&self, row: usize, position: usize) -> impl Iterator<Item = &[I]> {
        let links =
            &self.links[row * self.positions * self.stride..][..self.positions * self.stride];
        links[position * self.stride..].chunks_exact(self.stride)
    }
}
