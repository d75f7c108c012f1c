//! Identifiers of endpoints, and destinations of SA path queries.

use ib_types::{Gid, PKey};

use crate::port::PortId;

/// Identifies an endpoint: a port and a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct EndpointKey {
    pub(super) port: PortId,
    /// P_Key without the membership bit.
    partition: u16,
}

impl EndpointKey {
    pub(super) const fn new(port: PortId, p_key: PKey) -> Self {
        Self { port, partition: p_key.0 & 0x7fff }
    }

    /// Returns true if the endpoint is in the default partition.
    pub(super) const fn is_default(self) -> bool {
        self.partition == 0x7fff
    }
}

/// Destination of an SA path query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathTarget {
    /// The port with this GID.
    Gid(Gid),
    /// This LID, one of the LIDs of a port.
    Lid(u16),
}
