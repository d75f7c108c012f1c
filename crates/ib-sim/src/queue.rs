//! What waits at a port: whose turn it is, and what waits for too long.

use std::time::Duration;

use ib_topology::PortId;
use ib_types::Instant;

use crate::arbiter;
use crate::counters::ticks;
use crate::event::{Event, Timer};
use crate::loss::Loss;
use crate::port::{Arbitration, MANAGEMENT_LANE, Queues};
use crate::sim::Sim;

/// The highest `HOQLife` and `LifeTimeValue` that limit anything.
const LONGEST_LIFE: u8 = 19;

impl Sim {
    /// Sends the next packet of an idle port, if there is one that may leave.
    pub(crate) fn serve(&mut self, port: PortId) {
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
        let Some(lane) = chosen else {
            let queues = self.port_mut(port).queues.as_mut().expect("something waits");
            queues.starved_since.get_or_insert(now);
            return;
        };
        self.end_starvation(port);
        let key = self.take_head(port, lane);
        if lane != MANAGEMENT_LANE {
            let length = self.flight(key).packet.length();
            let queues = self.port_mut(port).queues.as_mut().expect("something waited");
            queues.arbiter.sent(length);
            queues.dropped_in_sequence[usize::from(lane)] = 0;
        }
        self.transmit(port, key);
        self.tell_of_room(port);
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

    /// Counts the time for which there was something to send and no credit for it.
    fn end_starvation(&mut self, port: PortId) {
        let now = self.now();
        let state = self.port_mut(port);
        if let Some(since) = state.queues.as_mut().and_then(|queues| queues.starved_since.take()) {
            state.counters.xmit_wait += ticks(now.since(since));
        }
    }

    /// Takes all that waits at a port off it, lane by lane.
    pub(crate) fn take_waiting(&mut self, port: PortId) -> Vec<u32> {
        self.end_starvation(port);
        let queues = self.port_mut(port).queues.take();
        queues.into_iter().flat_map(|queues| queues.lanes.into_iter().flatten()).collect()
    }

    /// Takes the first packet of a lane.
    fn take_head(&mut self, port: PortId, lane: u8) -> u32 {
        let now = self.now();
        let queues = self.port_mut(port).queues.as_mut().expect("something waits");
        let queue = &mut queues.lanes[usize::from(lane)];
        let key = queue.pop_front().expect("the lane has a packet");
        if queue.is_empty() {
            queues.waiting &= !(1 << lane);
        } else {
            queues.head_since[usize::from(lane)] = now;
            self.watch_head(port, lane);
        }
        key
    }

    /// Sets a timer for the packet at the head of a lane of a switch, unless the lane has one: that
    /// one then looks again. It is not too late, since a packet never has to go before the one that
    /// stood ahead of it.
    pub(crate) fn watch_head(&mut self, port: PortId, lane: u8) {
        if lane == MANAGEMENT_LANE {
            return;
        }
        let (old_at, stale_at) = self.head_ends(port, lane);
        let Some(at) = old_at.into_iter().chain(stale_at).min() else { return };
        let (now, epoch) = (self.now(), self.port(port).epoch);
        let queues = self.port_mut(port).queues.as_mut().expect("something waits");
        if queues.watched >> lane & 1 == 0 {
            queues.watched |= 1 << lane;
            self.schedule(at.max(now), Event::Timer(Timer::HeadOfQueue { port, lane, epoch }));
        }
    }

    /// Returns when the packet at the head of a lane has been in its switch for as long as it may,
    /// and when it has been at the head for as long as it may; `None` where there is no limit.
    fn head_ends(&self, port: PortId, lane: u8) -> (Option<Instant>, Option<Instant>) {
        let state = self.port(port);
        let Some(switch) = &self.node(state.node).switch else { return (None, None) };
        let queues = state.queues.as_ref().expect("something waits");
        let limit = |life: u8| (life <= LONGEST_LIFE).then(|| lifetime(life));
        let head = self.flight(queues.lanes[usize::from(lane)][0]);
        let old_at = limit(switch.info.life_time).map(|limit| head.queued_at + limit);
        let head_since = queues.head_since[usize::from(lane)];
        (old_at, limit(state.info.hoq_life).map(|limit| head_since + limit))
    }

    /// Drops the packet at the head of a lane if it has been there, or in the switch, for too long.
    pub(crate) fn head_of_queue(&mut self, port: PortId, lane: u8, epoch: u32) {
        let now = self.now();
        let state = self.port_mut(port);
        let life = state.info.hoq_life;
        let Some(queues) = state.queues.as_mut().filter(|_| state.epoch == epoch) else { return };
        let index = usize::from(lane);
        queues.watched &= !(1 << lane);
        if queues.lanes[index].is_empty() {
            return;
        }
        let (old_at, stale_at) = self.head_ends(port, lane);
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if !is_due(stale_at) {
            if !is_due(old_at) {
                return self.watch_head(port, lane);
            }
            let key = self.take_head(port, lane);
            return self.drop_waiting(port, &[key], Loss::LifeTime(lane));
        }
        let state = self.port_mut(port);
        let queues = state.queues.as_mut().expect("something waits");
        let most = state.info.vl_stall_count;
        let count = &mut queues.dropped_in_sequence[index];
        *count = count.saturating_add(1);
        let stalls = most > 0 && *count >= most;
        let dropped: Vec<u32> = if stalls {
            *count = 0;
            queues.stalled_until[index] = now + lifetime(life) * 8;
            queues.waiting &= !(1 << lane);
            queues.lanes[index].drain(..).collect()
        } else {
            vec![self.take_head(port, lane)]
        };
        self.drop_waiting(port, &dropped, Loss::HeadOfQueue(lane));
    }

    /// Drops packets that were taken off a queue.
    fn drop_waiting(&mut self, port: PortId, dropped: &[u32], why: Loss) {
        if self.port(port).queues.as_ref().is_some_and(|queues| queues.waiting == 0) {
            self.end_starvation(port);
        }
        for &key in dropped {
            self.discard(port, key, why);
        }
        // The next one may be shorter, and there may be credit for it.
        self.serve(port);
    }
}

/// Returns the time that `HOQLife` or `LifeTimeValue` stands for; IBTA volume 1, chapter 18.2.5.4.
fn lifetime(life: u8) -> Duration {
    Duration::from_nanos(4096 << life.min(LONGEST_LIFE))
}

#[cfg(test)]
mod tests;
