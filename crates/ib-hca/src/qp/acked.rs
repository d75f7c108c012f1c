//! What comes back to a send queue: acknowledgements, data that was read, silence.

use std::time::Duration;

use ib_types::Psn;
use ib_wire::packet::{Acknowledgement, Aeth, AtomicAckEth, Header, NakCode, Operation, Position};

use super::core::{Core, Cx};
use super::send::SendQueue;
use crate::counters::Drop;
use crate::objects::{SendOp, WcStatus};
use crate::packet::Packet;
use crate::region::AccessFlags;

/// How often a request is repeated whose number of retries is not limited.
const FOR_EVER: u8 = 7;

/// The queue has failed: its first request with this status.
pub(super) type Failed = WcStatus;

impl SendQueue {
    /// Takes a response.
    pub(super) fn handle(
        &mut self,
        core: &Core,
        cx: &mut Cx<'_>,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), Failed> {
        let psn = packet.bth.psn;
        let is_known = !psn.is_before(self.unacked) && psn.is_before(self.end);
        if !is_known {
            // What was acknowledged before, or what nobody has sent.
            cx.counters.drop(if psn.is_before(self.unacked) { Drop::Duplicate } else { Drop::Psn });
            return Ok(());
        }
        match operation {
            Operation::Acknowledge => {
                let aeth = packet.header(Header::Aeth).map(Aeth::parse);
                let Some(aeth) = aeth else { return Ok(()) };
                self.handle_acknowledgement(core, cx, psn, aeth.syndrome.decode())
            }
            Operation::AtomicAcknowledge => self.handle_atomic(core, cx, packet),
            _ => self.handle_read(core, cx, operation, packet),
        }
    }

    fn handle_acknowledgement(
        &mut self,
        core: &Core,
        cx: &mut Cx<'_>,
        psn: Psn,
        acknowledgement: Acknowledgement,
    ) -> Result<(), Failed> {
        match acknowledgement {
            Acknowledgement::Ack(_) => {
                if self.acknowledge(core, cx, psn) {
                    return Ok(());
                }
                // What was read before has got lost.
                self.missing(core, cx.now, psn)
            }
            Acknowledgement::RnrNak(timer) => {
                if !self.acknowledge(core, cx, psn.wrapping_sub(1)) {
                    return self.missing(core, cx.now, psn);
                }
                if self.pause.is_some() || !psn.is_before(self.next) {
                    // A duplicate: the request has not been retransmitted since the first one.
                    cx.counters.drop(Drop::Duplicate);
                    return Ok(());
                }
                cx.counters.rnr_naks_received += 1;
                if self.rnr_left == 0 {
                    return Err(WcStatus::RnrRetryExcErr);
                }
                if core.attributes.rnr_retry != FOR_EVER {
                    self.rnr_left -= 1;
                }
                self.go_back(psn);
                self.pause = Some(cx.now + Duration::from_nanos(timer.nanoseconds()));
                self.deadline = None;
                Ok(())
            }
            Acknowledgement::Nak(NakCode::SEQUENCE) => {
                cx.counters.sequence_naks_received += 1;
                // It names what is missing, so everything before has arrived.
                self.acknowledge(core, cx, psn.wrapping_sub(1));
                self.missing(core, cx.now, psn)
            }
            Acknowledgement::Nak(code) => {
                let status = match code {
                    NakCode::INVALID_REQUEST => WcStatus::RemInvReqErr,
                    NakCode::REMOTE_ACCESS => WcStatus::RemAccessErr,
                    NakCode::REMOTE_OPERATIONAL => WcStatus::RemOpErr,
                    _ => {
                        cx.counters.drop(Drop::Syndrome);
                        return Ok(());
                    }
                };
                if !self.acknowledge(core, cx, psn.wrapping_sub(1)) {
                    return self.missing(core, cx.now, psn);
                }
                Err(status)
            }
            Acknowledgement::Reserved(_) => {
                cx.counters.drop(Drop::Syndrome);
                Ok(())
            }
        }
    }

    /// Ends what a sequence number acknowledges. Returns false when data that was to come before has not.
    fn acknowledge(&mut self, core: &Core, cx: &mut Cx<'_>, psn: Psn) -> bool {
        let before = self.unacked;
        let mut whole = true;
        while let Some(head) = self.wqes.front() {
            if !head.begun || head.count > 0 && psn.is_before(head.last()) {
                break;
            }
            if head.count > 0 && head.is_read() && !head.done {
                whole = false;
                break;
            }
            self.pop(core, cx, WcStatus::Success);
        }
        let reached = match self.wqes.front() {
            // No further than what has come of a READ.
            Some(head) if head.begun && head.is_read() => head.first.wrapping_add(head.received),
            _ => psn.wrapping_add(1),
        };
        let reached =
            if psn.wrapping_add(1).is_before(reached) { psn.wrapping_add(1) } else { reached };
        let packets = reached.distance_from(before);
        if packets > 0 {
            self.time(psn, cx.now);
            self.unacked = reached;
            if self.next.is_before(reached) {
                // What had been sent before it was sent again has arrived after all.
                self.go_back(reached);
            }
            self.reset_retries(core);
            self.grow(core, packets.unsigned_abs());
            self.rearm(core, cx.now);
        }
        whole
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, cx: &mut Cx<'_>) -> Result<(), Failed> {
        if self.pause.is_some_and(|until| until <= cx.now) {
            self.pause = None;
        }
        if self.probe.is_some_and(|at| at <= cx.now) {
            self.handle_probe(cx.now);
        }
        self.handle_loss(cx)
    }

    /// Takes data that was read.
    fn handle_read(
        &mut self,
        core: &Core,
        cx: &mut Cx<'_>,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), Failed> {
        let psn = packet.bth.psn;
        let waits = |wqe: &super::send::Wqe| wqe.begun && wqe.is_read() && !wqe.done;
        let Some(place) = self.wqes.iter().position(waits) else {
            cx.counters.drop(Drop::Response);
            return Ok(());
        };
        let wqe = &self.wqes[place];
        let (expected, first) = (wqe.first.wrapping_add(wqe.received), wqe.first);
        if psn.is_before(expected) {
            cx.counters.drop(Drop::Duplicate);
            return Ok(());
        }
        if psn != expected {
            // One before it is missing.
            cx.counters.drop(Drop::Psn);
            return self.missing(core, cx.now, psn);
        }
        let mtu = core.mtu();
        let done = wqe.received as usize * mtu;
        let length = (wqe.length as usize - done).min(mtu);
        let is_last = wqe.received + 1 == wqe.count;
        let fits = matches!(wqe.wr.op, SendOp::Read { .. })
            && packet.payload.len() == length
            && matches!(operation.position(), Position::Last | Position::Only) == is_last;
        if !fits {
            cx.counters.drop(Drop::Response);
            return Ok(());
        }
        // It says as well that all before has arrived.
        if !self.acknowledge(core, cx, first.wrapping_sub(1)) {
            return Ok(());
        }
        self.scatter(core, cx, done, packet.payload)?;
        let Some(wqe) = self.wqes.front_mut() else { return Ok(()) };
        wqe.received += 1;
        wqe.done = is_last;
        self.came_in(core, cx, psn);
        Ok(())
    }

    fn handle_atomic(
        &mut self,
        core: &Core,
        cx: &mut Cx<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Failed> {
        let psn = packet.bth.psn;
        let Some(original) = packet.header(Header::AtomicAckEth).map(AtomicAckEth::parse) else {
            return Ok(());
        };
        let waits = |wqe: &super::send::Wqe| wqe.begun && wqe.is_read() && !wqe.done;
        let wqe = self.wqes.iter().find(|wqe| waits(wqe));
        let Some(wqe) = wqe.filter(|wqe| !matches!(wqe.wr.op, SendOp::Read { .. })) else {
            cx.counters.drop(Drop::Response);
            return Ok(());
        };
        if psn != wqe.first {
            cx.counters.drop(Drop::Psn);
            if wqe.first.is_before(psn) {
                return self.missing(core, cx.now, psn);
            }
            return Ok(());
        }
        if !self.acknowledge(core, cx, psn.wrapping_sub(1)) {
            return Ok(());
        }
        // In the order of bytes of the machine, as it stands in the other side's memory.
        self.scatter(core, cx, 0, &original.original.to_ne_bytes())?;
        let Some(wqe) = self.wqes.front_mut() else { return Ok(()) };
        (wqe.received, wqe.done) = (1, true);
        self.came_in(core, cx, psn);
        Ok(())
    }

    /// Data of the first request has come in.
    fn came_in(&mut self, core: &Core, cx: &mut Cx<'_>, psn: Psn) {
        if self.wqes.front().is_some_and(|wqe| wqe.done) {
            self.acknowledge(core, cx, psn);
            self.complete_local(core, cx);
            return;
        }
        self.time(psn, cx.now);
        self.unacked = psn.wrapping_add(1);
        if self.next.is_before(self.unacked) {
            self.go_back(self.unacked);
        }
        self.reset_retries(core);
        self.grow(core, 1);
        self.rearm(core, cx.now);
    }

    /// Puts data into the memory of the first request.
    fn scatter(&self, core: &Core, cx: &Cx<'_>, start: usize, bytes: &[u8]) -> Result<(), Failed> {
        let Some(wqe) = self.wqes.front() else { return Ok(()) };
        super::scatter(core, cx, wqe.wr.data.sges(), start, bytes)
            .map(drop)
            .map_err(|()| WcStatus::LocProtErr)
    }
}

/// What memory has to allow that data is put into.
pub(super) const WRITES: AccessFlags = AccessFlags::LOCAL_WRITE;
