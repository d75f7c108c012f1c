//! The lid matrix after the walks.

use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use crate::hops::{HopMatrix, NO_HOPS};
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

/// Returns the base matrix, of links with these weights, with the deviations entered, oldest
/// first.
pub(super) fn matrix(
    subnet: &Subnet<'_>,
    base: HopMatrix,
    weight: impl Fn(SwitchId, u8) -> u8 + Sync,
    deviations: &[Deviation],
) -> HopMatrix {
    if deviations.is_empty() {
        return base;
    }
    let offset = HopMatrix::row_offsets(subnet);
    let width = offset[subnet.switches().len()] as usize;
    let mut rows = vec![NO_HOPS; subnet.switches().len() * width];
    rows.par_chunks_exact_mut(width.max(1)).enumerate().for_each(|(to, row)| {
        let to = SwitchId(to as u16);
        for from in subnet.switch_ids() {
            let slots = &mut row[offset[from.index()] as usize..offset[from.index() + 1] as usize];
            slots[0] = base.least(from, to);
            for (port, next, _) in subnet.switch_links(from) {
                slots[usize::from(port)] = base.least(next, to).saturating_add(weight(from, port));
            }
        }
    });
    for deviation in deviations {
        let row = &mut rows[deviation.to.index() * width..][..width];
        let least = offset[deviation.at.index()] as usize;
        row[least + usize::from(deviation.port)] = deviation.hops;
        row[least] = row[least].min(deviation.hops);
    }
    HopMatrix::by_destination(subnet, rows)
}
