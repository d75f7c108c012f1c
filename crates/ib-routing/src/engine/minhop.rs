//! Routing by least hops, balanced over ports. This engine is the fallback of engine lists.

use ib_types::ServiceLevel;

use super::{Engine, EngineError, EngineKind, Routing, RoutingOptions};
use crate::fill::fill;
use crate::hops::HopMatrix;
use crate::layers::Layers;
use crate::subnet::Subnet;

/// The minhop engine, which corresponds to OpenSM's `-R minhop`.
///
/// For each LID, a switch uses one of its least-hop ports, and among these the port with the fewest LIDs so far. The
/// engine does not avoid deadlock: if the fabric has cycles, its routes can form a credit loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinHop;

impl Engine for MinHop {
    fn kind(&self) -> EngineKind {
        EngineKind::MinHop
    }

    fn route(&self, subnet: &Subnet<'_>, options: &RoutingOptions) -> Result<Routing, EngineError> {
        Ok(over_shortest_paths(subnet, options, self.kind()))
    }
}

/// Routes by least hops, for the engines minhop and dor.
pub(super) fn over_shortest_paths(
    subnet: &Subnet<'_>,
    options: &RoutingOptions,
    engine: EngineKind,
) -> Routing {
    let hops = HopMatrix::shortest(subnet, &options.link_weights(subnet));
    let lfts = fill(subnet, &hops, options, engine == EngineKind::Dor);
    Routing {
        engine,
        lfts,
        hops,
        layers: Layers::uniform(ServiceLevel::default()),
        roots: Vec::new(),
        ca_order: Vec::new(),
        notes: Vec::new(),
    }
}
