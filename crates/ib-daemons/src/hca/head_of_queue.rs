//! Limit of the time for which a full ring blocks the packets behind the first one.

use std::time::Duration;

use ib_types::Instant;

/// Time for which the first packet to a full ring waits. Afterwards, packets to this ring are dropped until the ring
/// has a free slot again. A process that takes no packets therefore delays other processes only once. `HOQLife` of
/// InfiniBand switches is a similar limit.
pub(super) const LIFETIME: Duration = Duration::from_millis(50);

/// State of the ring to one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeadOfQueue {
    /// Time of the first failed attempt to put a packet into the ring since the last successful one.
    full_since: Option<Instant>,
}

impl HeadOfQueue {
    /// Notes that a packet was put into the ring.
    pub(super) const fn note_put(&mut self) {
        self.full_since = None;
    }

    /// Notes that the ring was full. Returns true if the packet has to wait, false if it has to be dropped.
    pub(super) fn waits(&mut self, now: Instant) -> bool {
        now.since(*self.full_since.get_or_insert(now)) < LIFETIME
    }

    /// Returns the time from which packets are dropped; `None` if the ring was not full.
    pub(super) fn deadline(self) -> Option<Instant> {
        self.full_since.map(|since| since + LIFETIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_dropped_after_the_lifetime_until_the_ring_has_room() {
        let mut queue = HeadOfQueue::default();
        let start = Instant::ZERO + Duration::from_secs(1);
        assert_eq!(queue.deadline(), None);
        assert!(queue.waits(start));
        assert_eq!(queue.deadline(), Some(start + LIFETIME));
        assert!(queue.waits(start + (LIFETIME - Duration::from_nanos(1))));
        assert!(!queue.waits(start + LIFETIME));
        assert!(!queue.waits(start + Duration::from_secs(9)));
        queue.note_put();
        assert!(queue.waits(start + Duration::from_secs(9)));
    }
}
