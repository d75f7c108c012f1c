//! All paths of a subnet side by side.

use rayon::prelude::*;

use super::routes::Routes;
use crate::subnet::{EndPortId, SwitchId};

/// How many shifts are counted at a time. The paths from one switch to consecutive places lie side
/// by side, so more of them share a cache line; but each shift needs counters of its own.
pub(super) const TILE: usize = 8;

/// A link's position among those between switches, in as few bytes as will do.
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
    /// The links that every path has room for.
    stride: usize,
    /// The places of a row: those of the order, then its first ones again, so that a tile that
    /// begins at its end needs no second look.
    places: usize,
    /// `[switch][place][link]`, filled up with the number of links, which stands for none.
    links: Vec<I>,
}

/// The rows that one thread fills together.
const ROWS_AT_ONCE: usize = 32;

impl<I: Index> PathTable<I> {
    /// Follows all paths; `None` when they do not fit into a memory of so many bytes.
    ///
    /// Paths that do not arrive are empty, as are those to dummies.
    pub(super) fn new(
        routes: &Routes<'_>,
        from: &[SwitchId],
        order: &[Option<EndPortId>],
        memory: usize,
    ) -> Option<Self> {
        // Long enough for trees of three levels; where it is not, the second try is.
        let mut stride = 4;
        loop {
            let places = order.len() + TILE - 1;
            if from.len() * places * stride * size_of::<I>() > memory {
                return None;
            }
            let none = I::new(routes.switch_channels().len());
            let mut table =
                Self { stride, places, links: vec![none; from.len() * places * stride] };
            let longest = table.fill(routes, from, order);
            if longest <= stride {
                return Some(table);
            }
            stride = longest;
        }
    }

    /// Enters all paths that there is room for and returns the number of links of the longest.
    fn fill(
        &mut self,
        routes: &Routes<'_>,
        from: &[SwitchId],
        order: &[Option<EndPortId>],
    ) -> usize {
        let lid = |port| routes.subnet.end_port(port).base_lid.index();
        let mut targets: Vec<(usize, EndPortId)> =
            order.iter().enumerate().filter_map(|(place, &port)| Some((place, port?))).collect();
        targets.sort_by_key(|&(_, port)| lid(port));
        // Entries for the LIDs of a group share a cache line in every switch's table.
        let groups = || targets.chunk_by(|a, b| lid(a.1) / 64 == lid(b.1) / 64);

        let width = self.places * self.stride;
        let fill_rows = |(rows, from): (&mut [I], &[SwitchId])| {
            let (mut path, mut longest) = (Vec::new(), 0);
            for group in groups() {
                for (row, &switch) in rows.chunks_exact_mut(width).zip(from) {
                    for &(place, to) in group {
                        path.clear();
                        routes.append(switch, to, &mut path);
                        longest = longest.max(path.len());
                        let slots = &mut row[place * self.stride..][..self.stride];
                        for (slot, &channel) in slots.iter_mut().zip(&path) {
                            *slot = I::new(routes.link_index(channel));
                        }
                    }
                }
            }
            for row in rows.chunks_exact_mut(width) {
                let (places, again) = row.split_at_mut(order.len() * self.stride);
                for (slot, &link) in again.iter_mut().zip(places.iter().cycle()) {
                    *slot = link;
                }
            }
            longest
        };
        let rows = self.links.par_chunks_mut((width * ROWS_AT_ONCE).max(1));
        rows.zip(from.par_chunks(ROWS_AT_ONCE)).map(fill_rows).max().unwrap_or(0)
    }

    /// Returns the paths from a switch, given by its row, to a place of the order and to those
    /// behind it.
    pub(super) fn paths_to(&self, row: usize, place: usize) -> impl Iterator<Item = &[I]> {
        let links = &self.links[row * self.places * self.stride..][..self.places * self.stride];
        links[place * self.stride..].chunks_exact(self.stride)
    }
}
