//! The bits of transactions that the fabric needs for itself and clients want to have back.

use std::collections::{BTreeMap, VecDeque};

use super::OWN_BITS;

/// For how many transactions of a client is remembered what stood in the upper bits. A request that
/// waits for its answer knows its own; these are for all that comes after the first datagram of it:
/// further segments, acknowledgements, copies, answers that are late.
const REMEMBERED: usize = 4096;

/// What stood in the upper bits of the transactions that a client used last.
///
/// Clients that leave them zero, which nearly all do, take no room here.
#[derive(Clone, Debug, Default)]
pub(crate) struct UpperBits {
    known: BTreeMap<u64, u64>,
    /// The lower bits of what is known, the oldest first.
    order: VecDeque<u64>,
}

impl UpperBits {
    /// Remembers the upper bits of a transaction.
    pub(super) fn remember(&mut self, transaction: u64) {
        let (own, upper) = (lower(transaction), transaction & !lower(u64::MAX));
        match self.known.get_mut(&own) {
            Some(known) => *known = upper,
            None if upper == 0 => {}
            None => {
                if self.order.len() >= REMEMBERED
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.known.remove(&oldest);
                }
                self.known.insert(own, upper);
                self.order.push_back(own);
            }
        }
    }

    /// Returns a transaction with the upper bits that its client gave it.
    pub(super) fn restore(&self, transaction: u64) -> u64 {
        let own = lower(transaction);
        own | self.known.get(&own).copied().unwrap_or(0)
    }
}

/// Returns the bits of a transaction that are the client's own.
pub(super) const fn lower(transaction: u64) -> u64 {
    transaction & ((1 << OWN_BITS) - 1)
}
