//! [`UpperBits`]: restores the upper bits of transaction IDs, which simulators overwrite.

use std::collections::{BTreeMap, VecDeque};

use ib_wire::mad::TransactionId;

/// The number of lower bits of a transaction ID that belong to the client. Simulators overwrite the
/// upper bits with the client's number.
pub const OWN_BITS: u32 = 48;

/// Stores the upper bits of the last transaction IDs that a client has used.
///
/// If the upper bits are zero, as with nearly all clients, the transaction ID is not stored.
///
/// ```
/// use ib_link::UpperBits;
/// use ib_wire::mad::TransactionId;
///
/// let mut bits = UpperBits::new(16);
/// let whole = TransactionId(0xabcd_0000_0000_0042);
/// let kept = bits.strip(whole);
/// assert_eq!(kept, TransactionId(0x42));
/// assert_eq!(bits.restore(kept), whole);
/// ```
#[derive(Clone, Debug)]
pub struct UpperBits {
    limit: usize,
    known: BTreeMap<u64, u64>,
    /// The lower bits of the stored transaction IDs. The oldest is first.
    order: VecDeque<u64>,
}

impl UpperBits {
    /// Creates an empty table for `limit` transaction IDs, but at least one.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { limit, known: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Stores the upper bits of a transaction ID, and returns the ID with these bits zero.
    pub fn strip(&mut self, id: TransactionId) -> TransactionId {
        let own = Self::own(id);
        let upper = id.0 & !own.0;
        match self.known.get_mut(&own.0) {
            Some(known) => *known = upper,
            None if upper == 0 => {}
            None => {
                if self.order.len() >= self.limit
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.known.remove(&oldest);
                }
                self.known.insert(own.0, upper);
                self.order.push_back(own.0);
            }
        }
        own
    }

    /// Replaces the upper bits of a transaction ID by those that the client used, or by zero if
    /// they are unknown.
    #[must_use]
    pub fn restore(&self, id: TransactionId) -> TransactionId {
        let own = Self::own(id).0;
        TransactionId(own | self.known.get(&own).copied().unwrap_or(0))
    }

    /// Returns a transaction ID with the upper bits zero. The lower bits belong to the client.
    #[must_use]
    pub const fn own(id: TransactionId) -> TransactionId {
        TransactionId(id.0 & ((1 << OWN_BITS) - 1))
    }
}

#[cfg(test)]
mod tests;
