//! Send queue: work requests and the PSNs of their packets.
//!
//! A cursor points to the next packet to send. It moves forward when a packet is written, and after a loss back to the
//! first unacknowledged packet.

use std::collections::VecDeque;

use ib_types::{Instant, Psn};

use crate::work_request::{SendOp, SendWr};

/// A work request in the queue.
#[derive(Debug)]
pub(super) struct Wqe {
    pub(super) wr: SendWr,
    /// Message size in bytes.
    pub(super) length: u32,
    /// First PSN of the request; undefined until its first packet is sent.
    pub(super) first: Psn,
    /// Number of PSNs of the request; undefined until its first packet is sent.
    pub(super) packets: u32,
    pub(super) is_started: bool,
    /// Number of received READ response packets.
    pub(super) received: u32,
    /// True if the request is among the outstanding READs and atomics.
    is_outstanding: bool,
    /// True if all responses have arrived, or if the local operation has been executed.
    pub(super) is_done: bool,
    /// Time at which the request was posted.
    pub(super) posted: Instant,
    /// Time at which the first packet of the request was sent.
    pub(super) started: Instant,
}

impl Wqe {
    /// Returns the last PSN of the request.
    pub(super) const fn last(&self) -> Psn {
        self.first.wrapping_add(self.packets.wrapping_sub(1))
    }

    /// Returns true for atomic operations.
    pub(super) const fn is_atomic(&self) -> bool {
        matches!(self.wr.op, SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. })
    }

    /// Returns true for operations with response data: READs and atomics.
    pub(super) const fn is_read(&self) -> bool {
        matches!(self.wr.op, SendOp::Read { .. }) || self.is_atomic()
    }

    /// Returns true for operations without packets.
    pub(super) const fn is_local(&self) -> bool {
        matches!(
            self.wr.op,
            SendOp::BindWindow(_) | SendOp::LocalInvalidate { .. } | SendOp::Register(_)
        )
    }

    /// Returns true if the request was sent and its response data has not completely arrived.
    pub(super) const fn awaits_data(&self) -> bool {
        self.is_started && self.is_read() && !self.is_done
    }
}

/// One packet of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestPacket<'a> {
    pub(super) wqe: &'a Wqe,
    /// Index of the packet within the request.
    pub(super) index: u32,
    pub(super) psn: Psn,
}

/// Result of [`SendQueue::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AdvanceOutcome {
    /// PSN of the packet.
    pub(super) psn: Psn,
    /// True if the packet was a retransmission.
    pub(super) is_repeated: bool,
    /// True if the packet was the last of its request.
    pub(super) is_last: bool,
}

/// A send queue.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    wqes: VecDeque<Wqe>,
    /// The cursor: index of the request to which the next packet belongs, and number of this request's packets sent so
    /// far.
    cursor: usize,
    sent: u32,
    /// PSN of the next packet to send.
    pub(super) next: Psn,
    /// PSN of the oldest unacknowledged packet.
    pub(super) unacked: Psn,
    /// PSN of the first packet that has never been sent.
    pub(super) end: Psn,
    /// Number of outstanding READs and atomics.
    pub(super) outstanding_reads: u32,
}

impl SendQueue {
    /// Sets the PSN of the first packet.
    pub(super) const fn start(&mut self, psn: Psn) {
        (self.next, self.unacked, self.end) = (psn, psn, psn);
    }

    pub(super) fn len(&self) -> usize {
        self.wqes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wqes.is_empty()
    }

    /// Adds a request.
    pub(super) fn push(&mut self, wr: SendWr, length: u32, now: Instant) {
        self.wqes.push_back(Wqe {
            wr,
            length,
            first: Psn::truncated(0),
            packets: 0,
            is_started: false,
            received: 0,
            is_outstanding: false,
            is_done: false,
            posted: now,
            started: Instant::NEVER,
        });
    }

    /// Returns the requests in the order in which they were posted.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Wqe> {
        self.wqes.iter()
    }

    /// Returns the oldest request in the queue.
    pub(super) fn front(&self) -> Option<&Wqe> {
        self.wqes.front()
    }

    /// Returns the oldest request in the queue.
    pub(super) fn front_mut(&mut self) -> Option<&mut Wqe> {
        self.wqes.front_mut()
    }

    /// Returns the request to which the next packet belongs.
    pub(super) fn current(&self) -> Option<&Wqe> {
        self.wqes.get(self.cursor)
    }

    /// Returns true if the oldest request is before the cursor, so that all its packets have been sent.
    pub(super) const fn has_passed(&self) -> bool {
        self.cursor > 0
    }

    /// Returns true if the oldest request is a local operation that has been executed.
    pub(super) fn has_done_local(&self) -> bool {
        self.cursor > 0 && self.wqes.front().is_some_and(|wqe| wqe.is_local() && wqe.is_done)
    }

    /// Returns the number of unacknowledged packets before the cursor.
    pub(super) const fn in_flight(&self) -> u32 {
        self.next.distance_from(self.unacked).unsigned_abs()
    }

    /// Marks the current request, a local operation, as executed. Returns the operation if it was not marked before.
    pub(super) fn start_local(&mut self) -> Option<&SendOp> {
        let wqe = &mut self.wqes[self.cursor];
        if wqe.is_done {
            return None;
        }
        (wqe.is_started, wqe.is_done) = (true, true);
        (wqe.first, wqe.packets) = (self.next, 0);
        Some(&wqe.wr.op)
    }

    /// Moves the cursor past the current request, which must be a local operation.
    pub(super) const fn pass_local(&mut self) {
        self.cursor += 1;
    }

    /// Assigns PSNs to the current request, unless it has PSNs. Returns the time at which the request was posted, if
    /// PSNs were assigned.
    #[inline]
    pub(super) fn start_current(&mut self, mtu: usize, now: Instant) -> Option<Instant> {
        let wqe = &mut self.wqes[self.cursor];
        if wqe.is_started {
            return None;
        }
        let packets = if wqe.is_atomic() { 1 } else { wqe.length.div_ceil(mtu as u32).max(1) };
        (wqe.is_started, wqe.first, wqe.packets) = (true, self.next, packets);
        wqe.started = now;
        Some(wqe.posted)
    }

    /// Returns the next packet of the current request. The request must have PSNs.
    #[inline]
    pub(super) fn next_packet(&self) -> RequestPacket<'_> {
        RequestPacket { wqe: &self.wqes[self.cursor], index: self.sent, psn: self.next }
    }

    /// Returns the last sent packet; `None` if its request has completed, or is a READ or atomic.
    pub(super) fn last_packet(&self) -> Option<RequestPacket<'_>> {
        let psn = self.next.wrapping_sub(1);
        let holds = |wqe: &&Wqe| {
            let is_sent = wqe.is_started && wqe.packets > 0 && !wqe.is_read();
            is_sent && !psn.is_before(wqe.first) && !wqe.last().is_before(psn)
        };
        let wqe = self.wqes.iter().find(holds)?;
        Some(RequestPacket { wqe, index: psn.distance_from(wqe.first).unsigned_abs(), psn })
    }

    /// Moves the cursor past the next packet, which has just been written.
    #[inline]
    pub(super) fn advance(&mut self) -> AdvanceOutcome {
        let wqe = &mut self.wqes[self.cursor];
        let psn = self.next;
        let is_repeated = psn.is_before(self.end);
        let is_last = if wqe.is_read() {
            self.outstanding_reads += u32::from(!wqe.is_outstanding);
            wqe.is_outstanding = true;
            self.next = wqe.first.wrapping_add(wqe.packets);
            true
        } else {
            self.next = self.next.wrapping_add(1);
            self.sent += 1;
            self.sent == wqe.packets
        };
        if self.end.is_before(self.next) {
            self.end = self.next;
        }
        if is_last {
            (self.cursor, self.sent) = (self.cursor + 1, 0);
        }
        AdvanceOutcome { psn, is_repeated, is_last }
    }

    /// Removes the oldest request from the queue.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Wqe> {
        let wqe = self.wqes.pop_front()?;
        self.outstanding_reads -= u32::from(wqe.is_outstanding);
        if self.cursor > 0 {
            self.cursor -= 1;
        } else {
            self.sent = 0;
        }
        Some(wqe)
    }

    /// Moves the cursor back to the packet with PSN `psn`. All packets from there on are retransmitted.
    pub(super) fn go_back(&mut self, psn: Psn) {
        self.next = psn;
        (self.cursor, self.sent, self.outstanding_reads) = (self.wqes.len(), 0, 0);
        for (index, wqe) in self.wqes.iter_mut().enumerate() {
            let is_behind = wqe.is_started && (wqe.packets == 0 || wqe.last().is_before(psn));
            wqe.is_outstanding &= is_behind;
            self.outstanding_reads += u32::from(wqe.is_outstanding);
            if is_behind || self.cursor < index {
                continue;
            }
            self.cursor = index;
            if wqe.is_started && wqe.is_read() {
                self.next = wqe.first.wrapping_add(wqe.received);
            } else if wqe.is_started {
                self.sent = psn.distance_from(wqe.first).unsigned_abs();
            }
        }
    }
}

#[cfg(test)]
mod tests;
