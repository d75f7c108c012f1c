//! Links: transmission, arrival, credits and output queues.
//!
//! A port sends one packet at a time, at the rate of its link. The whole packet arrives after the
//! latency of the link. A data packet needs buffer space of its VL at the other end. A switch frees
//! the space when it has forwarded the packet; an end port frees it at once. SMPs need no credits.
//! Their queue is bounded: surplus SMPs are dropped.

use std::time::Duration;

use ib_topology::PortId;
use ib_types::Instant;

use super::Network;
use crate::event::{Event, Timer};
use crate::fault::happens;
use crate::flight::{BufferSpace, Flight, blocks};
use crate::log::Entry;
use crate::loss::Loss;
use crate::packet::MANAGEMENT_VL;
use crate::queue::lifetime;

/// By default, reordered packets are delayed by at most the transmission time of this many packets
/// of maximum length.
const DEFAULT_REORDER_PACKETS: u128 = 8;

/// When at most this many packets remain in the output queue of an open port,
/// [`Sim::next_open`](crate::Sim::next_open) returns the port.
pub(crate) const LOW_WATERMARK: usize = 8;

impl Network {
    /// Removes a packet from the network, and frees its buffer space.
    pub(crate) fn land(&mut self, key: u32) -> Flight {
        let flight = self.flights.remove(key);
        if let Some(hold) = flight.holds {
            self.release(hold, self.now());
        }
        flight
    }

    /// Adds a packet to the output queue of a port.
    pub(super) fn enqueue(&mut self, port: PortId, key: u32, vl: u8) {
        self.flights.get_mut(key).vl = vl;
        let now = self.now();
        let state = self.fabric.port(port);
        if vl == MANAGEMENT_VL {
            if !state.is_up() {
                return self.discard(port, key, Loss::LinkDown);
            }
        } else if !state.sends_data() {
            let why = if state.is_up() { Loss::NotActive } else { Loss::LinkDown };
            return self.discard(port, key, why);
        } else if vl >= state.data_vls() {
            let level = self.flights.get(key).packet.sl.get();
            return self.discard(port, key, Loss::NoVl(level));
        }
        if let Some(queues) = &state.queues
            && vl != MANAGEMENT_VL
            && queues.is_stalled(vl, now)
        {
            return self.discard(port, key, Loss::HeadOfQueue(vl));
        }
        let idle = state.busy_until <= now && !state.armed;
        let nothing_waits = state.queues.as_ref().is_none_or(|queues| queues.waiting() == 0);
        if idle && nothing_waits && self.has_credit(port, key, vl) {
            if let Some(queues) = &mut self.fabric.port_mut(port).queues {
                queues.end_drops(vl);
            }
            return self.transmit(port, key);
        }
        self.flights.get_mut(key).queued_at = now;
        let state = self.fabric.port_mut(port);
        let queues = state.queues.get_or_insert_default();
        if vl == MANAGEMENT_VL && queues.len_of(vl) >= self.limits.management_buffer {
            return self.drop_management(port, key);
        }
        let first = queues.push(vl, key, now);
        if !idle && !state.armed {
            self.arm(port);
        }
        if first {
            self.watch_head(port, vl);
        }
        if idle {
            // The port is idle because other waiting packets lack credits. The new packet may have
            // credits on its VL.
            self.serve(port);
        }
    }

    /// Schedules an event for the end of the current transmission of a port.
    fn arm(&mut self, port: PortId) {
        let state = self.fabric.port_mut(port);
        state.armed = true;
        let (at, epoch) = (state.busy_until, state.epoch);
        self.clock.schedule(at, Event::Sent { port, epoch });
    }

    /// Drops an SMP for which the output queue of a port has no space.
    ///
    /// An SMP that has arrived over a link is counted by VL15Dropped of the port at which it
    /// arrived (IBTA volume 1, chapter 16.1.3.5). An SMP that the node itself sends is not counted.
    fn drop_management(&mut self, port: PortId, key: u32) {
        match self.flights.get(key).arrived_by {
            0 => self.discard(port, key, Loss::ManagementOverflow),
            number => {
                let arrival = self.fabric.port_id(self.fabric.port(port).node, number);
                self.fabric.port_mut(arrival).counters.vl15_dropped += 1;
                self.lose(arrival, key, Loss::ManagementOverflow);
            }
        }
    }

    /// Returns true if a port has the credits to send a packet.
    fn has_credit(&self, port: PortId, key: u32, vl: u8) -> bool {
        if vl == MANAGEMENT_VL {
            return true;
        }
        let needed = u32::from(blocks(self.flights.get(key).packet.length()));
        match &self.fabric.port(port).credits {
            Some(credits) => credits[usize::from(vl)] >= needed,
            None => true,
        }
    }

    /// Sends a packet over the link of a port. The port has to be idle, and to have the credits.
    fn transmit(&mut self, port: PortId, key: u32) {
        let now = self.now();
        let flight = self.flights.get(key);
        let (vl, length) = (flight.vl, flight.packet.length());
        let (multicast, dlid, packet) =
            (flight.packet.is_multicast(), flight.packet.dlid, flight.number);
        self.log(Entry::Hop { port, packet, vl, dlid, arrives: false });
        let state = self.fabric.port_mut(port);
        state.counters.sent(length, multicast);
        let sent = now + Duration::from_nanos(state.nanos(length));
        state.busy_until = sent;
        let peer = state.cable.expect("only a port with a cable sends");
        if vl != MANAGEMENT_VL {
            let buffer = self.limits.vl_blocks;
            let credits = state.credits.get_or_insert_with(|| Box::new([buffer; 15]));
            credits[usize::from(vl)] -= u32::from(blocks(length));
        }
        let faulty = state.faults.is_some();
        let epoch = self.fabric.port(peer).epoch;
        let hold = (vl != MANAGEMENT_VL).then(|| BufferSpace::new(peer, vl, length, epoch));
        if let Some(left) = std::mem::replace(&mut self.flights.get_mut(key).holds, hold) {
            self.release(left, sent);
        }
        let mut arrives = sent + self.limits.latency;
        if faulty {
            match self.apply_faults(port, peer, key, arrives) {
                Some(later) => arrives = later,
                None => return,
            }
        }
        self.clock.schedule(arrives, Event::Arrive { port: peer, flight: key, epoch });
    }

    /// Applies the faults of a port to a packet that it sends. Returns the time at which the packet
    /// arrives; `None` if the packet is lost.
    fn apply_faults(
        &mut self,
        port: PortId,
        peer: PortId,
        key: u32,
        mut arrives: Instant,
    ) -> Option<Instant> {
        let faults = self.fabric.port(port).faults.clone().expect("the port has faults");
        arrives += faults.delay;
        if happens(&mut self.rng, faults.loss) {
            self.fabric.port_mut(peer).counters.symbol_errors += 1;
            self.lose(peer, key, Loss::Fault);
            return None;
        }
        if happens(&mut self.rng, faults.corruption) {
            self.flights.get_mut(key).damaged = true;
        }
        if happens(&mut self.rng, faults.duplication) {
            // The duplicate occupies no buffer space.
            let copy = self.flights.copy(key);
            self.flights.get_mut(copy).holds = None;
            let epoch = self.fabric.port(peer).epoch;
            self.clock.schedule(arrives, Event::Arrive { port: peer, flight: copy, epoch });
        }
        if happens(&mut self.rng, faults.reordering) {
            let state = self.fabric.port(port);
            let most = match faults.held_back.as_nanos() {
                0 => u128::from(state.nanos(state.longest_packet())) * DEFAULT_REORDER_PACKETS,
                most => most,
            } as usize;
            arrives += Duration::from_nanos(self.rng.below(most) as u64 + 1);
        }
        Some(arrives)
    }

    /// Records that a packet leaves its buffer space at the given time. When the space is free,
    /// credits are sent, which reach the sender after the latency of the link.
    pub(crate) fn release(&mut self, hold: BufferSpace, at: Instant) {
        let Some(at) = self.flights.free_at(hold, at) else { return };
        let state = self.fabric.port(hold.port);
        if state.epoch != hold.epoch {
            return;
        }
        let Some(sender) = state.cable else { return };
        let epoch = self.fabric.port(sender).epoch;
        let BufferSpace { vl, blocks, .. } = hold;
        let at = at + self.limits.latency;
        self.clock.schedule(at, Event::Credit { port: sender, vl, blocks, epoch });
    }

    /// Processes credits that arrive at a port.
    pub(crate) fn credit(&mut self, port: PortId, vl: u8, blocks: u16, epoch: u32) {
        let state = self.fabric.port_mut(port);
        if state.epoch != epoch {
            return;
        }
        if let Some(credits) = &mut state.credits {
            credits[usize::from(vl)] += u32::from(blocks);
        }
        self.serve(port);
    }

    /// Processes the end of a packet's transmission: the port sends its next packet.
    pub(crate) fn sent(&mut self, port: PortId, epoch: u32) {
        let state = self.fabric.port_mut(port);
        if state.epoch != epoch {
            return;
        }
        state.armed = false;
        self.serve(port);
    }

    /// If a port is idle, sends the next packet for which it has credits.
    fn serve(&mut self, port: PortId) {
        let now = self.now();
        let state = self.fabric.port(port);
        let Some(queues) = &state.queues else { return };
        let waiting = queues.waiting();
        if state.armed || state.busy_until > now || waiting == 0 {
            return;
        }
        let ready = (0..16u8)
            .filter(|&vl| waiting >> vl & 1 == 1)
            .filter(|&vl| queues.head(vl).is_some_and(|head| self.has_credit(port, head, vl)))
            .fold(0u16, |mask, vl| mask | 1 << vl);
        let state = self.fabric.port_mut(port);
        let Some(vl) = state.choose_vl(ready) else {
            if let Some(queues) = &mut state.queues {
                queues.starve(now);
            }
            return;
        };
        state.end_starvation(now);
        let key = self.take_head(port, vl);
        if vl != MANAGEMENT_VL {
            let length = self.flights.get(key).packet.length();
            if let Some(queues) = &mut self.fabric.port_mut(port).queues {
                queues.sent(vl, length);
            }
        }
        self.transmit(port, key);
        self.notify_free_space(port);
        if self.fabric.port(port).queues.as_ref().is_some_and(|queues| queues.waiting() != 0) {
            self.arm(port);
        }
    }

    /// Removes the first packet of a VL. The VL has to have a packet.
    fn take_head(&mut self, port: PortId, vl: u8) -> u32 {
        let now = self.now();
        let queues =
            self.fabric.port_mut(port).queues.as_mut().expect("the port has waiting packets");
        let key = queues.pop(vl, now);
        if queues.head(vl).is_some() {
            self.watch_head(port, vl);
        }
        key
    }

    /// Starts a timer for the lifetime of the packet at the head of a VL of a switch port, unless
    /// the VL already has a timer.
    ///
    /// A timer that was started for an earlier head also serves the new head: when it expires, the
    /// new head is checked. This is early enough, because a packet never expires before the packet
    /// ahead of it.
    fn watch_head(&mut self, port: PortId, vl: u8) {
        if vl == MANAGEMENT_VL {
            return;
        }
        let (old_at, stale_at) = self.head_ends(port, vl);
        let Some(at) = old_at.into_iter().chain(stale_at).min() else { return };
        let (now, state) = (self.now(), self.fabric.port_mut(port));
        let epoch = state.epoch;
        if state.queues.as_mut().is_some_and(|queues| queues.watch(vl)) {
            self.clock.schedule(at.max(now), Event::Timer(Timer::HeadOfQueue { port, vl, epoch }));
        }
    }

    /// Returns the times at which the packet at the head of a VL exceeds the switch lifetime limit
    /// and the head-of-queue lifetime limit. `None` means that there is no limit.
    fn head_ends(&self, port: PortId, vl: u8) -> (Option<Instant>, Option<Instant>) {
        let state = self.fabric.port(port);
        let Some(switch) = &self.fabric.node(state.node).switch else { return (None, None) };
        let queues = state.queues.as_ref().expect("the port has waiting packets");
        let head = self.flights.get(queues.head(vl).expect("the VL has a packet"));
        let old_at = lifetime(switch.info.life_time).map(|limit| head.queued_at + limit);
        (old_at, queues.head_expires(vl, state.info.hoq_life))
    }

    /// Drops the packet at the head of a VL if it has exceeded a lifetime limit.
    pub(crate) fn head_of_queue(&mut self, port: PortId, vl: u8, epoch: u32) {
        let now = self.now();
        let state = self.fabric.port_mut(port);
        let Some(queues) = state.queues.as_mut().filter(|_| state.epoch == epoch) else { return };
        queues.unwatch(vl);
        if queues.head(vl).is_none() {
            return;
        }
        let (old_at, stale_at) = self.head_ends(port, vl);
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if !is_due(stale_at) {
            if !is_due(old_at) {
                return self.watch_head(port, vl);
            }
            let key = self.take_head(port, vl);
            return self.drop_waiting(port, &[key], Loss::LifeTime(vl));
        }
        let state = self.fabric.port_mut(port);
        let (stall_count, life) = (state.info.vl_stall_count, state.info.hoq_life);
        let queues = state.queues.as_mut().expect("the port has waiting packets");
        let stalled = queues.stall(vl, stall_count, life, now);
        let dropped = stalled.unwrap_or_else(|| vec![self.take_head(port, vl)]);
        self.drop_waiting(port, &dropped, Loss::HeadOfQueue(vl));
    }

    /// Drops packets that were removed from the output queue of a port.
    fn drop_waiting(&mut self, port: PortId, dropped: &[u32], why: Loss) {
        let now = self.now();
        let state = self.fabric.port_mut(port);
        if state.queues.as_ref().is_some_and(|queues| queues.waiting() == 0) {
            state.end_starvation(now);
        }
        for &key in dropped {
            self.discard(port, key, why);
        }
        // The new head of a VL can be shorter than the dropped packet, so that the credits suffice
        // to send it.
        self.serve(port);
    }

    /// If few packets remain in the output queue of an open port, lets
    /// [`Sim::next_open`](crate::Sim::next_open) return the port.
    pub(super) fn notify_free_space(&mut self, port: PortId) {
        if !self.open_ports.is_empty() && self.fabric.port(port).waiting() <= LOW_WATERMARK {
            self.open_ports.wake(port);
        }
    }
}

#[cfg(test)]
mod tests;
