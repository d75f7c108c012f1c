//! The hop matrix of ftree. Its base matrix has the hops of shortest paths. Deviations replace them by the hops of the
//! assigned routes.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::hops::{HopMatrix, LinkWeights, NO_HOPS};
use crate::subnet::{Subnet, SwitchId};

/// The hops of an assigned route from a switch over one of its ports to another switch. They replace the hops in the
/// base matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deviation {
    /// The switch from which the hops are counted.
    pub(super) at: SwitchId,
    /// The destination switch.
    pub(super) to: SwitchId,
    /// The port of the switch `at` over which packets leave.
    pub(super) port: u8,
    /// Number of hops of the route.
    pub(super) hops: u8,
}

/// Returns the base matrix with the deviations applied in the given order. `weights` are the link weights of the base
/// matrix.
pub(super) fn matrix(
    subnet: &Subnet<'_>,
    base: HopMatrix,
    weights: &LinkWeights,
    deviations: &[Deviation],
) -> HopMatrix {
    if deviations.is_empty() {
        return base;
    }
    let mut blocks: Vec<Vec<u8>> = (0..subnet.switches().len() as u16)
        .into_par_iter()
        .map(|from| block(subnet, &base, weights, SwitchId(from)))
        .collect();
    drop(base);
    for deviation in deviations {
        let stride = usize::from(subnet.switch(deviation.at).ports) + 1;
        let row = &mut blocks[deviation.at.index()][deviation.to.index() * stride..][..stride];
        row[usize::from(deviation.port)] = deviation.hops;
        row[0] = row[0].min(deviation.hops);
    }
    HopMatrix::explicit(subnet, blocks)
}

/// Returns the hops from a switch to all switches over each of its ports.
fn block(subnet: &Subnet<'_>, base: &HopMatrix, weights: &LinkWeights, from: SwitchId) -> Vec<u8> {
    let stride = usize::from(subnet.switch(from).ports) + 1;
    let mut block = vec![NO_HOPS; stride * subnet.switches().len()];
    let mut enter = |port: u8, source: SwitchId, weight: u8| {
        for (row, &hops) in block.chunks_exact_mut(stride).zip(base.least_row(source)) {
            row[usize::from(port)] = hops.saturating_add(weight);
        }
    };
    enter(0, from, 0);
    for (port, next, _) in subnet.switch_links(from) {
        enter(port, next, weights.get(from, port));
    }
    block
}
