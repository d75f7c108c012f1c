//! Links: sending, arriving, credits, and what waits for them.
//!
//! A port sends one packet at a time, at the rate of its link, and the packet arrives as a whole
//! after the link's latency. Data needs room in the buffer of its VL at the other end; a switch
//! gives the room back once it has sent the packet on, an end port at once. Subnet management has
//! neither credits nor a queue without bounds: what does not fit is dropped.

use std::time::Duration;

use ib_topology::PortId;
use ib_types::Instant;

use crate::client::RequestKey;
use crate::event::Event;
use crate::fault::happens;
use crate::log::Entry;
use crate::loss::Loss;
use crate::packet::{Packet, Payload};
use crate::port::MANAGEMENT_LANE;
use crate::sim::Sim;

/// The unit of credits in bytes.
const BLOCK: usize = 64;

/// How long a packet is held back at most where nobody has said it, in times of the longest packet of
/// the link.
const DEFAULT_HOLD: u128 = 8;

/// A packet on its way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    /// The port that has sent it first.
    pub(crate) from: PortId,
    pub(crate) packet: Packet,
    /// Which of all packets it is.
    pub(crate) number: u64,
    /// The client's request that is lost when the packet is.
    pub(crate) request: Option<RequestKey>,
    /// The switches that it passed.
    pub(crate) hops: u16,
    /// The VL of the link that it is on or waits for.
    pub(crate) lane: u8,
    /// Since when it has waited in the queue of a port, once it had to: a switch takes no time for
    /// what it passes on, so that is the time when it came.
    pub(crate) queued_at: Instant,
    /// The buffer that it stands in.
    pub(crate) holds: Option<Hold>,
    /// Whether a fault damaged it on its last link.
    pub(crate) damaged: bool,
    /// The number of the port by which it entered the node where it is.
    pub(crate) arrived_by: u8,
}

/// Room in the buffer of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) port: PortId,
    pub(crate) lane: u8,
    pub(crate) blocks: u16,
    pub(crate) epoch: u32,
    /// Where it is counted how many copies of the packet stand there; [`ALONE`] for one.
    pub(crate) shared: u32,
}

/// The packet has the room for itself.
const ALONE: u32 = u32::MAX;

/// Room that is given back when the last copy of a packet has left it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedHold {
    pub(crate) copies: u16,
    /// When the last of those that have a time to leave is gone.
    gone_at: Instant,
}

const fn blocks(bytes: usize) -> u16 {
    bytes.div_ceil(BLOCK) as u16
}

impl Sim {
    /// Makes a packet one that is on its way.
    pub(crate) fn launch(
        &mut self,
        from: PortId,
        packet: Packet,
        request: Option<RequestKey>,
    ) -> u32 {
        self.packets += 1;
        let number = self.packets;
        let flight = Flight {
            from,
            packet,
            number,
            request,
            hops: 0,
            lane: 0,
            queued_at: Instant::ZERO,
            holds: None,
            damaged: false,
            arrived_by: 0,
        };
        self.flights.insert(flight) as u32
    }

    #[inline]
    pub(crate) fn flight(&self, key: u32) -> &Flight {
        &self.flights[key as usize]
    }

    #[inline]
    pub(crate) fn flight_mut(&mut self, key: u32) -> &mut Flight {
        &mut self.flights[key as usize]
    }

    /// Takes a packet off its way at a port, and gives back the room that it had there.
    pub(crate) fn land(&mut self, key: u32) -> Flight {
        let flight = self.flights.remove(key as usize);
        if let Some(hold) = flight.holds {
            self.release(hold);
        }
        flight
    }

    /// Loses a packet at a port.
    pub(crate) fn lose(&mut self, port: PortId, key: u32, why: Loss) {
        let flight = self.land(key);
        self.port_mut(port).dropped += 1;
        self.stats.lose(why);
        self.log(Entry::Lost { port, packet: flight.number, why });
        self.tap_loss(port, &flight, why);
        self.note_loss(port, &flight, why);
        if let Some(request) = flight.request {
            self.fail(request);
        }
        if let Payload::Transport(bytes) = flight.packet.payload {
            self.give_buffer(bytes);
        }
        self.tell_of_room(port);
    }

    /// Puts a packet into the queue of a port; it leaves when its turn comes.
    pub(crate) fn enqueue(&mut self, port: PortId, key: u32, lane: u8) {
        self.flight_mut(key).lane = lane;
        let now = self.now();
        let state = self.port(port);
        if lane == MANAGEMENT_LANE {
            if !state.is_up() {
                return self.discard(port, key, Loss::LinkDown);
            }
        } else if !state.sends_data() {
            let why = if state.is_up() { Loss::NotActive } else { Loss::LinkDown };
            return self.discard(port, key, why);
        } else if lane >= state.lanes() {
            let level = self.flight(key).packet.sl.get();
            return self.discard(port, key, Loss::NoLane(level));
        }
        let state = self.port(port);
        if let Some(queues) = &state.queues
            && lane != MANAGEMENT_LANE
            && queues.stalled_until[usize::from(lane)] > now
        {
            return self.discard(port, key, Loss::HeadOfQueue(lane));
        }
        let idle = state.busy_until <= now && !state.armed;
        let nothing_waits = state.queues.as_ref().is_none_or(|queues| queues.waiting == 0);
        if idle && nothing_waits && self.has_credit(port, key, lane) {
            if let Some(queues) = &mut self.port_mut(port).queues {
                queues.dropped_in_sequence[usize::from(lane)] = 0;
            }
            return self.transmit(port, key);
        }
        self.flight_mut(key).queued_at = now;
        let most = self.options.management_buffer;
        let state = self.port_mut(port);
        let queues = state.queues.get_or_insert_default();
        let queue = &mut queues.lanes[usize::from(lane)];
        if lane == MANAGEMENT_LANE && queue.len() >= most {
            return self.drop_management(port, key);
        }
        queue.push_back(key);
        let first = queue.len() == 1;
        queues.waiting |= 1 << lane;
        if first {
            queues.head_since[usize::from(lane)] = now;
        }
        if !idle && !state.armed {
            state.armed = true;
            let (at, epoch) = (state.busy_until, state.epoch);
            self.schedule(at, Event::Sent { port, epoch });
        }
        if first {
            self.watch_head(port, lane);
        }
        if idle {
            // Others wait for credits; this one may not have to.
            self.serve(port);
        }
    }

    /// Drops a packet of subnet management for which there is no room at the port that it was to
    /// leave by. One that came over a link is counted where it came in, as IBTA volume 1, chapter
    /// 16.1.3.5 has it for VL15Dropped; one that the node has made has never come in.
    fn drop_management(&mut self, port: PortId, key: u32) {
        match self.flight(key).arrived_by {
            0 => self.discard(port, key, Loss::ManagementOverflow),
            number => {
                let arrival = self.port_id(self.port(port).node, number);
                self.port_mut(arrival).counters.vl15_dropped += 1;
                self.lose(arrival, key, Loss::ManagementOverflow);
            }
        }
    }

    /// Drops a packet that cannot leave by a port.
    pub(crate) fn discard(&mut self, port: PortId, key: u32, why: Loss) {
        let counters = &mut self.port_mut(port).counters;
        counters.xmit_discards += 1;
        match why {
            Loss::LinkDown | Loss::LinkWentDown | Loss::NotActive => {
                counters.inactive_discards += 1;
            }
            Loss::TooLong => counters.neighbor_mtu_discards += 1,
            Loss::LifeTime(_) => counters.lifetime_discards += 1,
            Loss::HeadOfQueue(_) => counters.hoq_life_discards += 1,
            _ => {}
        }
        self.lose(port, key, why);
    }

    /// Returns true when the other end has room for a packet.
    pub(crate) fn has_credit(&self, port: PortId, key: u32, lane: u8) -> bool {
        if lane == MANAGEMENT_LANE {
            return true;
        }
        let needed = u32::from(blocks(self.flight(key).packet.length()));
        match &self.port(port).credits {
            Some(credits) => credits[usize::from(lane)] >= needed,
            None => true,
        }
    }

    /// Sends a packet; the port is idle and the other end has room.
    pub(crate) fn transmit(&mut self, port: PortId, key: u32) {
        let now = self.now();
        let flight = self.flight(key);
        let (lane, length) = (flight.lane, flight.packet.length());
        let (multicast, dlid, number) =
            (flight.packet.is_multicast(), flight.packet.dlid, flight.number);
        self.log(Entry::Hop { port, packet: number, lane, dlid, arrives: false });
        let buffer = self.options.lane_buffer / BLOCK as u32;
        let latency = self.latency;
        let state = self.port_mut(port);
        state.counters.sent(length, multicast);
        let sent = now + Duration::from_nanos(state.nanos(length));
        state.busy_until = sent;
        let peer = state.cable.expect("only a port with a cable sends");
        if lane != MANAGEMENT_LANE {
            let credits = state.credits.get_or_insert_with(|| Box::new([buffer; 15]));
            credits[usize::from(lane)] -= u32::from(blocks(length));
        }
        let faulty = state.faults.is_some();
        let epoch = self.port(peer).epoch;
        let hold = (lane != MANAGEMENT_LANE).then_some(Hold {
            port: peer,
            lane,
            blocks: blocks(length),
            epoch,
            shared: ALONE,
        });
        let left = std::mem::replace(&mut self.flight_mut(key).holds, hold);
        if let Some(left) = left {
            self.release_at(left, sent);
        }
        let arrives = sent + Duration::from_nanos(latency);
        if faulty {
            return self.transmit_with_faults(port, key, (peer, epoch), arrives);
        }
        self.schedule(arrives, Event::Arrive { port: peer, flight: key, epoch });
    }

    fn transmit_with_faults(
        &mut self,
        port: PortId,
        key: u32,
        (peer, epoch): (PortId, u32),
        mut arrives: Instant,
    ) {
        let faults = self.port(port).faults.clone().expect("the port has faults");
        arrives += faults.delay;
        if happens(&mut self.rng, faults.loss) {
            self.port_mut(peer).counters.symbol_errors += 1;
            return self.lose(peer, key, Loss::Fault);
        }
        if happens(&mut self.rng, faults.corruption) {
            self.flight_mut(key).damaged = true;
        }
        if happens(&mut self.rng, faults.duplication) {
            // The copy is nobody's request, and needs no room of its own.
            let mut copy = self.flight(key).clone();
            (copy.request, copy.holds) = (None, None);
            let copy = self.flights.insert(copy) as u32;
            self.schedule(arrives, Event::Arrive { port: peer, flight: copy, epoch });
        }
        if happens(&mut self.rng, faults.reordering) {
            let most = match faults.held_back.as_nanos() {
                0 => {
                    u128::from(self.port(port).nanos(self.port(port).longest_packet()))
                        * DEFAULT_HOLD
                }
                most => most,
            } as usize;
            arrives += Duration::from_nanos(self.rng.below(most) as u64 + 1);
        }
        self.schedule(arrives, Event::Arrive { port: peer, flight: key, epoch });
    }

    /// Has a packet share the room in which it stands with copies of itself, so many in all.
    pub(crate) fn share_room(&mut self, key: u32, copies: usize) {
        let now = self.now();
        let entry = self.shared.vacant_entry();
        let number = entry.key() as u32;
        if let Some(hold) = &mut self.flights[key as usize].holds {
            hold.shared = number;
            entry.insert(SharedHold { copies: copies as u16, gone_at: now });
        }
    }

    /// Gives back room in a buffer now.
    pub(crate) fn release(&mut self, hold: Hold) {
        let now = self.now();
        self.release_at(hold, now);
    }

    /// Gives back room in a buffer at a moment; the sender hears of it later.
    fn release_at(&mut self, hold: Hold, mut at: Instant) {
        if hold.shared != ALONE {
            let shared = &mut self.shared[hold.shared as usize];
            shared.copies -= 1;
            shared.gone_at = shared.gone_at.max(at);
            if shared.copies > 0 {
                return;
            }
            at = self.shared.remove(hold.shared as usize).gone_at;
        }
        let state = self.port(hold.port);
        if state.epoch != hold.epoch {
            return;
        }
        let Some(sender) = state.cable else { return };
        let epoch = self.port(sender).epoch;
        let at = at + Duration::from_nanos(self.latency);
        let (lane, blocks) = (hold.lane, hold.blocks);
        self.schedule(at, Event::Credit { port: sender, lane, blocks, epoch });
    }

    /// A port has heard of room at the other end.
    pub(crate) fn credit(&mut self, port: PortId, (lane, blocks): (u8, u16), epoch: u32) {
        let state = self.port_mut(port);
        if state.epoch != epoch {
            return;
        }
        if let Some(credits) = &mut state.credits {
            credits[usize::from(lane)] += u32::from(blocks);
        }
        self.serve(port);
    }

    /// A port has sent a packet.
    pub(crate) fn sent(&mut self, port: PortId, epoch: u32) {
        let state = self.port_mut(port);
        if state.epoch != epoch {
            return;
        }
        state.armed = false;
        self.serve(port);
    }
}

#[cfg(test)]
mod tests;
