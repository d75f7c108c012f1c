//! [`UpperBits`]: restores the upper bits of transaction IDs, which simulators overwrite.

use std::collections::{BTreeMap, VecDeque};

use ib_wire::mad::TransactionId;

/// The number of lower bits of a transaction ID that a client may use. Simulators store the client
/// in the other bits.
pub const OWN_BITS: u32 = 48;

/// The upper bits of the last transaction IDs of a client.
///
/// Transaction IDs whose upper bits are zero, as those of nearly all clients, use no memory.
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
    /// The lower bits of the stored transaction IDs, oldest first.
    order: VecDeque<u64>,
}

impl UpperBits {
    /// Creates an empty table for `limit` transaction IDs with upper bits, at least one.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { limit, known: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Stores the upper bits of a transaction ID and returns the ID without them.
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

    /// Returns a transaction ID with the upper bits that the client has used; zero if they are
    /// unknown. The current upper bits are ignored.
    #[must_use]
    pub fn restore(&self, id: TransactionId) -> TransactionId {
        let own = Self::own(id).0;
        TransactionId(own | self.known.get(&own).copied().unwrap_or(0))
    }

    /// Returns the lower bits of a transaction ID, which belong to the client.
    #[must_use]
    pub const fn own(id: TransactionId) -> TransactionId {
        TransactionId(id.0 & ((1 << OWN_BITS) - 1))
    }
}

#[cfg(test)]
mod tests;
