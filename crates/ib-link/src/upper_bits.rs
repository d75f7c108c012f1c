//! The upper bits of transactions, which a simulator needs for itself and its clients want to have
//! back.

use std::collections::{BTreeMap, VecDeque};

use ib_wire::mad::TransactionId;

/// How many of a transaction's bits, the lowest ones, are its client's own where a simulator writes
/// in the others who asked.
pub const OWN_BITS: u32 = 48;

/// What stood in the upper bits of the transactions that a client used last.
///
/// Clients that leave them zero, which nearly all do, take no room here.
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
    /// The lower bits of what is known, the oldest first.
    order: VecDeque<u64>,
}

impl UpperBits {
    /// Returns an empty memory of so many transactions whose upper bits are not zero, at least one.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { limit, known: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Remembers the upper bits of a transaction and returns it without them.
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

    /// Returns a transaction with the upper bits that its client gave it; zero where they are not
    /// known any more. What stands in them now does not matter.
    #[must_use]
    pub fn restore(&self, id: TransactionId) -> TransactionId {
        let own = Self::own(id).0;
        TransactionId(own | self.known.get(&own).copied().unwrap_or(0))
    }

    /// Returns the bits of a transaction that are the client's own.
    #[must_use]
    pub const fn own(id: TransactionId) -> TransactionId {
        TransactionId(id.0 & ((1 << OWN_BITS) - 1))
    }
}

#[cfg(test)]
mod tests;
