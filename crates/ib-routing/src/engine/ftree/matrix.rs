//! The lid matrix after the walks.

use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use crate::hops::{HopMatrix, LinkWeights, NO_HOPS};
use crate::subnet::{Subnet, SwitchId};

/// The hops over a port as a walk found them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deviation {
    /// The switch of the port.
    pub(super) at: SwitchId,
    /// The switch that it leads to.
    pub(super) to: SwitchId,
    /// The port.
    pub(super) port: u8,
    /// The hops.
    pub(super) hops: u8,
}

/// Destinations are entered in blocks of this many, for which a row of the base matrix is read in
/// one go.
const BLOCK: usize = 64;

/// Returns the base matrix, of links with these weights, with the deviations entered, oldest
/// first.
pub(super) fn matrix(
    subnet: &Subnet<'_>,
    base: HopMatrix,
    weights: &LinkWeights,
    deviations: &[Deviation],
) -> HopMatrix {
    if deviations.is_empty() {
        return base;
    }
    let offset = HopMatrix::row_offsets(subnet);
    let width = offset[subnet.switches().len()] as usize;
    let mut rows = vec![NO_HOPS; subnet.switches().len() * width];
    rows.par_chunks_mut(width.max(1) * BLOCK).enumerate().for_each(|(block, rows)| {
        let mut enter = |from: SwitchId, port: u8, source: SwitchId, weight: u8| {
            let hops = &base.least_row(source)[block * BLOCK..];
            let slot = offset[from.index()] as usize + usize::from(port);
            for (row, &hops) in rows.chunks_exact_mut(width).zip(hops) {
                row[slot] = hops.saturating_add(weight);
            }
        };
        for from in subnet.switch_ids() {
            enter(from, 0, from, 0);
            for (port, next, _) in subnet.switch_links(from) {
                enter(from, port, next, weights.get(from, port));
            }
        }
    });
    drop(base);
    for deviation in deviations {
        let row = &mut rows[deviation.to.index() * width..][..width];
        let least = offset[deviation.at.index()] as usize;
        row[least + usize::from(deviation.port)] = deviation.hops;
        row[least] = row[least].min(deviation.hops);
    }
    HopMatrix::by_destination(subnet, rows)
}
