//! Dimension order routing for hypercubes and meshes.

use super::{Engine, EngineError, EngineKind, Routing, RoutingOptions, minhop};
use crate::subnet::Subnet;

/// The dor engine.
///
/// Of the least-hop ports the lowest wins, so packets travel the dimensions in the order of the
/// ports that stand for them; LIDs are spread only over parallel links to one neighbour. When the
/// fabric is cabled as a hypercube or mesh, with one pair of ports per dimension throughout, the
/// routes are free of deadlock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dor;

impl Engine for Dor {
    fn kind(&self) -> EngineKind {
        EngineKind::Dor
    }

    fn route(&self, subnet: &Subnet<'_>, options: &RoutingOptions) -> Result<Routing, EngineError> {
        Ok(minhop::over_shortest_paths(subnet, options, self.kind()))
    }
}
