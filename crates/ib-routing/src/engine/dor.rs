//! Dimension order routing (DOR) for hypercubes and meshes.

use super::{Engine, EngineError, EngineKind, Routing, RoutingOptions, minhop};
use crate::subnet::Subnet;

/// The dor engine.
///
/// It uses the lowest of the least-hop ports, so packets traverse the dimensions in the order of
/// their ports. LIDs are balanced only over parallel links to one neighbour. If the fabric is
/// cabled as a hypercube or mesh, with the same pair of ports per dimension everywhere, the routes
/// are free of deadlock.
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
