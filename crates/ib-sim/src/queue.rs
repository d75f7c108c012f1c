//! The output queues of a port, by VL.

use std::collections::VecDeque;
use std::time::Duration;

use ib_types::Instant;

use crate::arbiter::Arbiter;

/// The highest `HOQLife` and `LifeTimeValue` that limit anything.
const LONGEST_LIFE: u8 = 19;

/// What waits to leave by a port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    by_vl: [VecDeque<u32>; 16],
    /// The VLs whose queue is not empty, a bit each.
    waiting: u16,
    /// Since when the packet at the head is there, by VL.
    head_since: [Instant; 16],
    /// Since when there is something to send and no credit for it.
    starved_since: Option<Instant>,
    /// How many packets in sequence were dropped at the head, by VL.
    dropped_in_sequence: [u8; 16],
    /// The VLs whose head has a timer, a bit each.
    watched: u16,
    /// Time until which a stalled VL drops all packets, by VL.
    stalled_until: [Instant; 16],
    arbiter: Arbiter,
}

impl Queues {
    /// Returns the VLs with packets, a bit each.
    #[inline]
    pub(crate) const fn waiting(&self) -> u16 {
        self.waiting
    }

    /// Returns the number of packets, whatever their VLs.
    pub(crate) fn len(&self) -> usize {
        if self.waiting == 0 { 0 } else { self.by_vl.iter().map(VecDeque::len).sum() }
    }

    /// Returns the number of packets of a VL.
    pub(crate) fn len_of(&self, vl: u8) -> usize {
        self.by_vl[usize::from(vl)].len()
    }

    /// Returns the first packet of a VL.
    #[inline]
    pub(crate) fn head(&self, vl: u8) -> Option<u32> {
        self.by_vl[usize::from(vl)].front().copied()
    }

    /// Adds a packet; returns true if it is the first one of its VL.
    pub(crate) fn push(&mut self, vl: u8, key: u32, now: Instant) -> bool {
        let queue = &mut self.by_vl[usize::from(vl)];
        queue.push_back(key);
        let first = queue.len() == 1;
        self.waiting |= 1 << vl;
        if first {
            self.head_since[usize::from(vl)] = now;
        }
        first
    }

    /// Removes the first packet of a VL that has one.
    pub(crate) fn pop(&mut self, vl: u8, now: Instant) -> u32 {
        let queue = &mut self.by_vl[usize::from(vl)];
        let key = queue.pop_front().expect("the VL has a packet");
        if queue.is_empty() {
            self.waiting &= !(1 << vl);
        } else {
            self.head_since[usize::from(vl)] = now;
        }
        key
    }

    /// Removes all packets, VL by VL.
    pub(crate) fn into_packets(self) -> Vec<u32> {
        self.by_vl.into_iter().flatten().collect()
    }

    /// Returns the arbiter, which chooses the VL to serve.
    pub(crate) const fn arbiter(&mut self) -> &mut Arbiter {
        &mut self.arbiter
    }

    /// Takes note that the VL that was chosen last has sent a packet.
    pub(crate) fn sent(&mut self, vl: u8, bytes: usize) {
        self.arbiter.sent(bytes);
        self.end_drops(vl);
    }

    /// Takes note that a packet of a VL was sent: drops before it are not in sequence with later ones.
    pub(crate) const fn end_drops(&mut self, vl: u8) {
        self.dropped_in_sequence[vl as usize] = 0;
    }

    /// Returns true while a VL is stalled and drops all packets.
    pub(crate) fn is_stalled(&self, vl: u8, now: Instant) -> bool {
        self.stalled_until[usize::from(vl)] > now
    }

    /// Returns since when there is something to send and no credit for it.
    pub(crate) const fn starved_since(&self) -> Option<Instant> {
        self.starved_since
    }

    /// Takes note that there is no credit for anything, as of now if that is new.
    pub(crate) fn starve(&mut self, now: Instant) {
        self.starved_since.get_or_insert(now);
    }

    /// Counts a lack of credits from now on, if there is one.
    pub(crate) const fn restart_starvation(&mut self, now: Instant) {
        if self.starved_since.is_some() {
            self.starved_since = Some(now);
        }
    }

    /// Returns since when there was no credit, and ends that.
    pub(crate) const fn end_starvation(&mut self) -> Option<Instant> {
        self.starved_since.take()
    }

    /// Returns when the packet at the head of a VL has been there for as long as `HOQLife` allows;
    /// `None` if there is no limit.
    pub(crate) fn head_expires(&self, vl: u8, hoq_life: u8) -> Option<Instant> {
        lifetime(hoq_life).map(|limit| self.head_since[usize::from(vl)] + limit)
    }

    /// Takes note of a timer for the head of a VL; returns true unless there is one already.
    pub(crate) const fn watch(&mut self, vl: u8) -> bool {
        let is_new = self.watched >> vl & 1 == 0;
        self.watched |= 1 << vl;
        is_new
    }

    /// Takes note that the timer for the head of a VL has expired.
    pub(crate) const fn unwatch(&mut self, vl: u8) {
        self.watched &= !(1 << vl);
    }

    /// Counts a packet dropped at the head of a VL. After `stall_count` in sequence the VL stalls for
    /// eight times `HOQLife`: all its packets are removed and returned.
    pub(crate) fn stall(
        &mut self,
        vl: u8,
        stall_count: u8,
        hoq_life: u8,
        now: Instant,
    ) -> Option<Vec<u32>> {
        let index = usize::from(vl);
        let count = &mut self.dropped_in_sequence[index];
        *count = count.saturating_add(1);
        if stall_count == 0 || *count < stall_count {
            return None;
        }
        *count = 0;
        self.stalled_until[index] = now + life(hoq_life) * 8;
        self.waiting &= !(1 << vl);
        Some(self.by_vl[index].drain(..).collect())
    }

    /// Returns the packets of all VLs.
    #[cfg(test)]
    pub(crate) fn packets(&self) -> impl Iterator<Item = u32> {
        self.by_vl.iter().flatten().copied()
    }

    /// Checks that the bits of waiting VLs are those of the queues with packets.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        for (vl, queue) in self.by_vl.iter().enumerate() {
            assert_eq!(self.waiting >> vl & 1 == 1, !queue.is_empty(), "VL {vl}");
        }
    }
}

/// Returns the time that `HOQLife` or `LifeTimeValue` stands for; `None` if it limits nothing. IBTA
/// volume 1, chapter 18.2.5.4.
pub(crate) fn lifetime(value: u8) -> Option<Duration> {
    (value <= LONGEST_LIFE).then(|| life(value))
}

const fn life(value: u8) -> Duration {
    let exponent = if value < LONGEST_LIFE { value } else { LONGEST_LIFE };
    Duration::from_nanos(4096 << exponent)
}

#[cfg(test)]
mod tests;
