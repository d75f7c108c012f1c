//! Dimension order routing (DOR) for hypercubes and meshes.

use super::{Engine, EngineError, EngineKind, Routing, RoutingOptions, minhop};
use crate::subnet::Subnet;

/// The dor engine, which routes by dimension order.
///
/// Every switch uses the lowest of its least-hop ports, so packets traverse the dimensions in the order of their ports.
/// LIDs are balanced only over parallel links to the same neighbour. If a hypercube or mesh has the same pair of ports
/// per dimension everywhere, the routes cannot deadlock.
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
