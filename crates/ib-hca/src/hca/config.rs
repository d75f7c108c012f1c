//! Attributes and limits of an HCA.

use ib_link::Route;
use ib_types::{Gid, Guid, Mtu, Qpn};

use crate::error::CreateError;
use crate::table::{MOST, Table};

/// Attributes and limits of an HCA (`ibv_device_attr`, `ibv_port_attr`).
#[derive(Clone, Debug)]
pub struct HcaConfig {
    /// The GUID of the node.
    pub node_guid: Guid,
    /// The GIDs of the port, at least one.
    pub gids: Vec<Gid>,
    /// The active MTU of the port.
    pub active_mtu: Mtu,
    /// Maximum number of packets in flight per connection, 8 to 4,194,304.
    pub window: u32,
    /// Maximum number of objects of each of these kinds: PDs, CQs, SRQs, address handles, queue pairs.
    /// [`Self::max_qp`] also limits the number of queue pairs.
    pub max_objects: usize,
    /// Maximum number of memory regions.
    pub max_mr: usize,
    /// Maximum number of work requests in a queue.
    pub max_qp_wr: u32,
    /// Maximum number of SGEs of a work request.
    pub max_sge: u32,
    /// Maximum size of inline data in bytes.
    pub max_inline_data: u32,
    /// Maximum number of completions in a CQ.
    pub max_cqe: u32,
    /// The queue pair numbers that this HCA assigns. HCAs that share a port have disjoint blocks.
    pub qpns: QpnBlock,
}

impl HcaConfig {
    /// Returns a configuration with the given GUID and GIDs, and with default limits.
    #[must_use]
    pub const fn new(node_guid: Guid, gids: Vec<Gid>) -> Self {
        Self {
            node_guid,
            gids,
            active_mtu: Mtu::B4096,
            window: 128,
            max_objects: 1 << 17,
            max_mr: 1 << 18,
            max_qp_wr: 1 << 15,
            max_sge: 30,
            max_inline_data: 1024,
            max_cqe: 1 << 22,
            qpns: QpnBlock::ALL,
        }
    }

    /// Returns the maximum number of queue pairs: `max_objects`, or half of the QPNs in `qpns` if this is less. At
    /// least half of the QPNs are then free, so that a few random draws find a free one.
    #[must_use]
    pub fn max_qp(&self) -> usize {
        self.max_objects.min(self.qpns.count() / 2)
    }

    /// Checks that a table has room for one more object.
    pub(super) fn check_count<T>(
        &self,
        table: &Table<T>,
        objects: &'static str,
    ) -> Result<(), CreateError> {
        Self::check_room(table, objects, self.max_objects)
    }

    /// Checks that a table, which may have at most `most` objects, has room for one more object.
    pub(super) fn check_room<T>(
        table: &Table<T>,
        objects: &'static str,
        most: usize,
    ) -> Result<(), CreateError> {
        let most = most.min(MOST);
        if table.len() < most { Ok(()) } else { Err(CreateError::Full { objects, most }) }
    }

    /// Returns true if the source GID of a route is a GID of the port, or if the route has no GRH.
    pub(super) fn has_source(&self, route: &Route) -> bool {
        !route.is_global || self.gids.contains(&route.source)
    }
}

/// Checks that a requested value does not exceed its maximum.
pub(super) const fn check_limit(
    attribute: &'static str,
    found: u32,
    most: u32,
) -> Result<(), CreateError> {
    if found <= most { Ok(()) } else { Err(CreateError::Value { attribute, found, most }) }
}

/// A block of queue pair numbers with the same upper bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpnBlock {
    /// The upper bits that all numbers of the block have.
    upper: u8,
    /// Number of upper bits that are equal in all numbers of the block, 0 to 8.
    bits: u8,
}

impl QpnBlock {
    /// The block of all queue pair numbers.
    pub const ALL: Self = Self { upper: 0, bits: 0 };

    /// Returns the block of all 24-bit numbers whose upper `bits` bits are `upper`.
    ///
    /// # Panics
    /// Panics if `bits` exceeds 8, or `upper` does not fit into `bits` bits.
    #[must_use]
    pub const fn new(upper: u8, bits: u8) -> Self {
        assert!(
            bits <= 8 && (upper as u16) < 1 << bits,
            "`bits` is at most 8, and `upper` fits into `bits` bits"
        );
        Self { upper, bits }
    }

    /// Returns the number of queue pair numbers in the block.
    #[must_use]
    pub const fn count(self) -> usize {
        1 << (24 - self.bits)
    }

    /// Returns true if a number is in the block.
    #[must_use]
    pub const fn contains(self, qpn: Qpn) -> bool {
        qpn.get() >> (24 - self.bits) == self.upper as u32
    }

    /// Replaces the upper bits of `qpn` by those of the block.
    pub(super) fn number(self, qpn: Qpn) -> Qpn {
        let lower = (1 << (24 - self.bits)) - 1;
        Qpn::truncated(qpn.get() & lower | u32::from(self.upper) << (24 - self.bits))
    }
}
