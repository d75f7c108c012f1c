//! Links: sending, arriving, credits, and what waits for them.
//!
//! A port sends one packet at a time, at the rate of its link, and the packet arrives as a whole
//! after the link's latency. Data needs room in the buffer of its lane at the other end; a switch
//! gives the room back once it has sent the packet on, an end port at once. Subnet management has
//! neither credits nor a queue without bounds: what does not fit is dropped.

use std::time::Duration;

use ib_topology::PortId;
use ib_types::Instant;
use ib_wire::mad::sm::{PhysState, PortState};

use crate::arbiter;
use crate::counters::ticks;
use crate::event::{Event, Timer};
use crate::fault::happens;
use crate::log::Entry;
use crate::loss::Loss;
use crate::packet::Packet;
use crate::port::{Arbitration, MANAGEMENT_LANE, Queues};
use crate::sim::Sim;

/// The unit of credits in bytes.
const BLOCK: usize = 64;

/// A packet on its way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) packet: Packet,
    /// Which of all packets it is.
    pub(crate) number: u64,
    /// The client's request that is lost when the packet is.
    pub(crate) request: Option<u32>,
    /// The switches that it passed.
    pub(crate) hops: u16,
    /// The lane of the link that it is on or waits for.
    pub(crate) lane: u8,
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
    port: PortId,
    lane: u8,
    blocks: u16,
    epoch: u32,
}

const fn blocks(bytes: usize) -> u16 {
    bytes.div_ceil(BLOCK) as u16
}

impl Sim {
    /// Makes a packet one that is on its way.
    pub(crate) fn launch(&mut self, packet: Packet, request: Option<u32>) -> u32 {
        self.packets += 1;
        let number = self.packets;
        let flight = Flight {
            packet,
            number,
            request,
            hops: 0,
            lane: 0,
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
        if let Some(request) = flight.request {
            self.fail(request);
        }
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
        let idle = state.busy_until <= now && !state.armed;
        let nothing_waits = state.queues.as_ref().is_none_or(|queues| queues.waiting == 0);
        if idle && nothing_waits && self.has_credit(port, key, lane) {
            return self.transmit(port, key);
        }
        let (most, number) = (self.options.management_buffer, self.flight(key).number);
        let state = self.port_mut(port);
        if let Some(queues) = &mut state.queues
            && queues.stalled_until[usize::from(lane)] > now
        {
            return self.discard(port, key, Loss::HeadOfQueue(lane));
        }
        let queues = state.queues.get_or_insert_default();
        let queue = &mut queues.lanes[usize::from(lane)];
        if lane == MANAGEMENT_LANE && queue.len() >= most {
            state.counters.vl15_dropped += 1;
            return self.lose(port, key, Loss::ManagementOverflow);
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
            self.watch_head(port, lane, (key, number));
        }
        if idle {
            // Others wait for credits; this one may not have to.
            self.serve(port);
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
            Loss::HeadOfQueue(_) => counters.hoq_life_discards += 1,
            _ => {}
        }
        self.lose(port, key, why);
    }

    /// Returns true when the other end has room for a packet.
    fn has_credit(&self, port: PortId, key: u32, lane: u8) -> bool {
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
    fn transmit(&mut self, port: PortId, key: u32) {
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
        let hold = (lane != MANAGEMENT_LANE)
            .then_some(Hold { port: peer, lane, blocks: blocks(length), epoch });
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
            let most = faults.held_back.as_nanos().max(1) as usize;
            arrives += Duration::from_nanos(self.rng.below(most) as u64 + 1);
        }
        self.schedule(arrives, Event::Arrive { port: peer, flight: key, epoch });
    }

    /// Gives back room in a buffer now.
    pub(crate) fn release(&mut self, hold: Hold) {
        let now = self.now();
        self.release_at(hold, now);
    }

    /// Gives back room in a buffer at a moment; the sender hears of it later.
    fn release_at(&mut self, hold: Hold, at: Instant) {
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

    /// Sends the next packet of an idle port, if there is one that may leave.
    fn serve(&mut self, port: PortId) {
        let now = self.now();
        let state = self.port(port);
        let waiting = state.queues.as_ref().map_or(0, |queues| queues.waiting);
        if state.armed || state.busy_until > now || waiting == 0 {
            return;
        }
        let ready = (0..16u8)
            .filter(|&lane| waiting >> lane & 1 == 1)
            .filter(|&lane| {
                let queues = state.queues.as_ref().expect("something waits");
                let head = queues.lanes[usize::from(lane)][0];
                self.has_credit(port, head, lane)
            })
            .fold(0u16, |mask, lane| mask | 1 << lane);
        let chosen = if ready >> MANAGEMENT_LANE & 1 == 1 {
            Some(MANAGEMENT_LANE)
        } else {
            self.arbitrate(port, ready)
        };
        let state = self.port_mut(port);
        let queues = state.queues.as_mut().expect("something waits");
        let Some(lane) = chosen else {
            queues.starved_since.get_or_insert(now);
            return;
        };
        if let Some(since) = queues.starved_since.take() {
            state.counters.xmit_wait += ticks(now.since(since));
        }
        let key = self.take_head(port, lane);
        if lane != MANAGEMENT_LANE {
            let length = self.flight(key).packet.length();
            let queues = self.port_mut(port).queues.as_mut().expect("something waited");
            queues.arbiter.sent(length);
            queues.dropped_in_sequence[usize::from(lane)] = 0;
        }
        self.transmit(port, key);
        let state = self.port_mut(port);
        if state.queues.as_ref().is_some_and(|queues| queues.waiting != 0) {
            state.armed = true;
            let (at, epoch) = (state.busy_until, state.epoch);
            self.schedule(at, Event::Sent { port, epoch });
        }
    }

    fn arbitrate(&mut self, port: PortId, ready: u16) -> Option<u8> {
        let state = self.port_mut(port);
        let tables = state.tables.as_ref().map_or_else(Arbitration::default, |t| t.arbitration);
        let entries = (state.info.vl_arbitration_high_cap, state.info.vl_arbitration_low_cap);
        let limit = state.info.vl_high_limit;
        let queues: &mut Queues = state.queues.as_mut().expect("something waits");
        let arbiter: &mut arbiter::State = &mut queues.arbiter;
        arbiter.choose(&tables, entries, limit, ready)
    }

    /// Takes the first packet of a lane.
    fn take_head(&mut self, port: PortId, lane: u8) -> u32 {
        let now = self.now();
        let queues = self.port_mut(port).queues.as_mut().expect("something waits");
        let queue = &mut queues.lanes[usize::from(lane)];
        let key = queue.pop_front().expect("the lane has a packet");
        let next = queue.front().copied();
        match next {
            Some(next) => {
                queues.head_since[usize::from(lane)] = now;
                let number = self.flight(next).number;
                self.watch_head(port, lane, (next, number));
            }
            None => queues.waiting &= !(1 << lane),
        }
        key
    }

    /// Sets a timer for the packet at the head of a lane of a switch.
    fn watch_head(&mut self, port: PortId, lane: u8, (flight, number): (u32, u64)) {
        let state = self.port(port);
        let life = state.info.hoq_life;
        if lane == MANAGEMENT_LANE || life > 19 || !self.node(state.node).kind.is_switch() {
            return;
        }
        let at = self.now() + hoq_life(life);
        let number = number as u32;
        self.schedule(at, Event::Timer(Timer::HeadOfQueue { port, lane, flight, number }));
    }

    /// Drops the packet at the head of a lane if it is still the one that was there.
    pub(crate) fn head_of_queue(&mut self, port: PortId, lane: u8, (key, number): (u32, u32)) {
        let now = self.now();
        let state = self.port(port);
        let Some(queues) = &state.queues else { return };
        let head = queues.lanes[usize::from(lane)].front() == Some(&key);
        let life = hoq_life(state.info.hoq_life);
        if !head
            || self.flight(key).number as u32 != number
            || now.since(queues.head_since[usize::from(lane)]) < life
        {
            return;
        }
        if state.busy_until > now {
            // Another lane is being served: the packet is not stuck, it waits for its turn.
            let at = state.busy_until + Duration::from_nanos(1);
            self.schedule(at, Event::Timer(Timer::HeadOfQueue { port, lane, flight: key, number }));
            return;
        }
        let key = self.take_head(port, lane);
        let state = self.port_mut(port);
        let most = state.info.vl_stall_count;
        let queues = state.queues.as_mut().expect("something waited");
        let count = &mut queues.dropped_in_sequence[usize::from(lane)];
        *count = count.saturating_add(1);
        let stalls = most > 0 && *count >= most;
        if stalls {
            *count = 0;
            queues.stalled_until[usize::from(lane)] = now + life * 8;
        }
        let rest: Vec<u32> = if stalls {
            queues.waiting &= !(1 << lane);
            queues.lanes[usize::from(lane)].drain(..).collect()
        } else {
            Vec::new()
        };
        self.discard(port, key, Loss::HeadOfQueue(lane));
        for key in rest {
            self.discard(port, key, Loss::HeadOfQueue(lane));
        }
    }

    /// Brings a link up or down, as the state of its two ends asks for.
    pub(crate) fn update_link(&mut self, port: PortId) {
        let Some(peer) = self.port(port).cable else { return };
        let wanted = [port, peer].iter().all(|&end| {
            let state = self.port(end);
            self.node(state.node).powered && state.info.phys_state != PhysState::DISABLED
        });
        let is_up = self.port(port).is_up();
        let rate = self.negotiate(port, peer);
        let wanted = wanted && rate.is_some();
        if wanted != is_up {
            if let Some(rate) = rate.filter(|_| wanted) {
                for end in [port, peer] {
                    self.port_mut(end).set_active(rate);
                }
            }
            for end in [port, peer] {
                self.switch_link(end, wanted);
            }
            for end in [port, peer] {
                self.tell_link(end);
            }
        }
    }

    /// Takes a link down, and up again if nothing keeps it down.
    pub(crate) fn retrain(&mut self, port: PortId) {
        let Some(peer) = self.port(port).cable else { return };
        if self.port(port).is_up() {
            for end in [port, peer] {
                self.switch_link(end, false);
            }
        }
        self.update_link(port);
    }

    /// Pulls the cable out of a port, at both ends.
    pub(crate) fn unplug(&mut self, port: PortId) -> Option<PortId> {
        let peer = self.port(port).cable?;
        let was_up = self.port(port).is_up();
        for end in [port, peer] {
            if was_up {
                self.switch_link(end, false);
            }
            self.port_mut(end).cable = None;
        }
        if was_up {
            for end in [port, peer] {
                self.tell_link(end);
            }
        }
        Some(peer)
    }

    /// Plugs a cable in between two free ports.
    pub(crate) fn plug(&mut self, one: PortId, other: PortId) {
        self.port_mut(one).cable = Some(other);
        self.port_mut(other).cable = Some(one);
        self.update_link(one);
    }

    /// Changes one end of a link, with all that was under way on it.
    fn switch_link(&mut self, port: PortId, up: bool) {
        self.log(Entry::Link { port, up });
        let powered = self.node(self.port(port).node).powered;
        let now = self.now();
        let state = self.port_mut(port);
        state.epoch = state.epoch.wrapping_add(1);
        state.credits = None;
        state.busy_until = now;
        state.armed = false;
        if up {
            state.info.phys_state = PhysState::LINK_UP;
        } else {
            if powered {
                state.counters.link_downed += 1;
            }
            if state.info.phys_state != PhysState::DISABLED {
                state.info.phys_state = PhysState::POLLING;
            }
        }
        let waiting = state.queues.take();
        self.set_state(port, if up { PortState::INIT } else { PortState::DOWN });
        for key in waiting.into_iter().flat_map(|queues| queues.lanes.into_iter().flatten()) {
            self.discard(port, key, Loss::LinkWentDown);
        }
    }

    /// A switch tells its manager that a link has changed.
    fn tell_link(&mut self, port: PortId) {
        let node = self.port(port).node;
        if let Some(switch) = &mut self.node_mut(node).switch {
            switch.info.port_state_change = true;
            self.trap_link_state(node);
        }
    }
}

/// Returns how long a packet may stand at the head of a queue.
fn hoq_life(life: u8) -> Duration {
    Duration::from_nanos(4096 << life.min(19))
}
