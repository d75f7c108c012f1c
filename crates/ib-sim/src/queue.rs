//! The output queues of a port, one per VL.

use std::collections::VecDeque;
use std::time::Duration;

use ib_types::Instant;

use crate::arbiter::Arbiter;

/// The highest value of `HOQLife` and `LifeTimeValue` that means a limit; higher values mean no
/// limit.
const LONGEST_LIFE: u8 = 19;

/// The packets that wait to be sent by a port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    by_vl: [VecDeque<u32>; 16],
    /// VLs with packets, as a bit mask.
    waiting: u16,
    /// The time at which the packet at the head of each VL became the head.
    head_since: [Instant; 16],
    /// Time since which no waiting packet has credits; `None` if the port is not waiting for
    /// credits.
    starved_since: Option<Instant>,
    /// Number of consecutive drops at the head of each VL.
    consecutive_drops: [u8; 16],
    /// VLs with a running timer for the lifetime of the packet at the head, as a bit mask.
    watched: u16,
    /// Time at which the stall of each VL ends. A stalled VL drops all packets.
    stalled_until: [Instant; 16],
    arbiter: Arbiter,
}

impl Queues {
    /// Returns the VLs that have packets, as a bit mask.
    #[inline]
    pub(crate) const fn waiting(&self) -> u16 {
        self.waiting
    }

    /// Returns the number of packets of all VLs.
    pub(crate) fn len(&self) -> usize {
        if self.waiting == 0 { 0 } else { self.by_vl.iter().map(VecDeque::len).sum() }
    }

    /// Returns the number of packets of a VL.
    pub(crate) fn len_of(&self, vl: u8) -> usize {
        self.by_vl[usize::from(vl)].len()
    }

    /// Returns the packet at the head of a VL.
    #[inline]
    pub(crate) fn head(&self, vl: u8) -> Option<u32> {
        self.by_vl[usize::from(vl)].front().copied()
    }

    /// Adds a packet. Returns true if its VL was empty before.
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

    /// Removes the first packet of a VL. The VL has to have a packet.
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

    /// Removes and returns all packets, VL by VL.
    pub(crate) fn into_packets(self) -> Vec<u32> {
        self.by_vl.into_iter().flatten().collect()
    }

    /// Returns the arbiter, which chooses the VL that sends next.
    pub(crate) const fn arbiter(&mut self) -> &mut Arbiter {
        &mut self.arbiter
    }

    /// Records that the last chosen VL has sent a packet.
    pub(crate) fn sent(&mut self, vl: u8, bytes: usize) {
        self.arbiter.sent(bytes);
        self.end_drops(vl);
    }

    /// Resets the number of consecutive drops of a VL after a packet was sent.
    pub(crate) const fn end_drops(&mut self, vl: u8) {
        self.consecutive_drops[vl as usize] = 0;
    }

    /// Returns true while a VL is stalled and drops all packets.
    pub(crate) fn is_stalled(&self, vl: u8, now: Instant) -> bool {
        self.stalled_until[usize::from(vl)] > now
    }

    /// Returns the time since which no waiting packet has credits; `None` if the port is not
    /// waiting for credits.
    pub(crate) const fn starved_since(&self) -> Option<Instant> {
        self.starved_since
    }

    /// Records that no waiting packet has credits since `now`, unless an earlier time is already
    /// recorded.
    pub(crate) fn starve(&mut self, now: Instant) {
        self.starved_since.get_or_insert(now);
    }

    /// If the port is waiting for credits, lets the recorded wait begin at `now`.
    pub(crate) const fn restart_starvation(&mut self, now: Instant) {
        if self.starved_since.is_some() {
            self.starved_since = Some(now);
        }
    }

    /// Ends the wait for credits. Returns the time when it began; `None` if the port was not
    /// waiting for credits.
    pub(crate) const fn end_starvation(&mut self) -> Option<Instant> {
        self.starved_since.take()
    }

    /// Returns the time when the packet at the head of a VL exceeds `HOQLife`; `None` if there is
    /// no limit.
    pub(crate) fn head_expires(&self, vl: u8, hoq_life: u8) -> Option<Instant> {
        lifetime(hoq_life).map(|limit| self.head_since[usize::from(vl)] + limit)
    }

    /// Records that the lifetime timer of a VL is running. Returns true if it was not running before.
    pub(crate) const fn watch(&mut self, vl: u8) -> bool {
        let is_new = self.watched >> vl & 1 == 0;
        self.watched |= 1 << vl;
        is_new
    }

    /// Records that the lifetime timer of a VL has expired.
    pub(crate) const fn unwatch(&mut self, vl: u8) {
        self.watched &= !(1 << vl);
    }

    /// Counts a packet that is dropped at the head of a VL.
    ///
    /// After `stall_count` consecutive drops, the VL stalls for eight times `HOQLife`. If this drop
    /// begins a stall, all packets of the VL are removed and returned; otherwise, the result is
    /// `None`.
    pub(crate) fn stall(
        &mut self,
        vl: u8,
        stall_count: u8,
        hoq_life: u8,
        now: Instant,
    ) -> Option<Vec<u32>> {
        let index = usize::from(vl);
        let count = &mut self.consecutive_drops[index];
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

    /// Checks that the bit mask of VLs with packets matches the queues.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        for (vl, queue) in self.by_vl.iter().enumerate() {
            assert_eq!(self.waiting >> vl & 1 == 1, !queue.is_empty(), "VL {vl}");
        }
    }
}

/// Returns the duration that `HOQLife` or `LifeTimeValue` means (IBTA volume 1, chapter 18.2.5.4);
/// `None` if there is no limit.
pub(crate) fn lifetime(value: u8) -> Option<Duration> {
    (value <= LONGEST_LIFE).then(|| life(value))
}

const fn life(value: u8) -> Duration {
    let exponent = if value < LONGEST_LIFE { value } else { LONGEST_LIFE };
    Duration::from_nanos(4096 << exponent)
}

#[cfg(test)]
mod tests;
