//! Failover: requests of failed paths are retransmitted over other paths, or they complete.
//!
//! Path fencing: over a connected path, the client asks a server of this project to execute no further request of the
//! failed path. The client retransmits only after the confirmation, so no earlier copy of a write can overwrite later
//! writes. A Linux server has no fences: the client retransmits at once, and the server may still execute the earlier
//! copies.

use ib_hca::{Data, SendOp};
use ib_types::Instant;

use super::fencing::Fenced;
use super::path::Path;
use super::path::PathState;
use super::session::SlotState;
use super::session::Stage;
use super::{Client, ClientEvent, Completion, Failure, Outcome, PathId, Timer};
use crate::connection::Adapters;
use crate::connection::{self, SetupError};

/// Key of the timer that expires at the earliest deadline of all fences. This timer belongs to no path, so the key has
/// a path number that no path has.
const FENCE_TIMER: (PathId, Timer) = (PathId(u32::MAX), Timer::Fence);

/// An event after which the requests of a failed path are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// The path has failed, and the server does not fence it.
    Unfenced,
    /// The server has confirmed the fence, but all paths were lost meanwhile, and `returns_lost` is set.
    FencedAfterLoss,
    /// The server has confirmed the fence.
    Fenced,
    /// The server has not confirmed the fence in time.
    FenceTimedOut,
    /// No path is connected, and the client reconnects no path.
    GivenUp,
    /// The session is closed.
    Closed,
}

/// A request of a failed path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FailedRequest {
    /// True if the request has already completed, but its chunk is still in use.
    is_ended: bool,
    /// True if the user has recalled the request: it then completes instead of being retransmitted.
    is_recalled: bool,
    /// True if another path is connected.
    has_path: bool,
}

/// The action for a request of a failed path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failover {
    /// Send the request over another path.
    Resend,
    /// Complete the request and free its chunk.
    End(Outcome),
    /// Complete the request, but keep its chunk in use: the server may still access it.
    Abandon(Outcome),
    /// Free the chunk of a completed request.
    FreeChunk,
    /// Keep the chunk of a completed request in use.
    KeepChunk,
}

/// Returns the action for a request of a failed path.
const fn decide(event: Event, request: FailedRequest) -> Failover {
    let FailedRequest { is_ended, is_recalled, has_path } = request;
    let can_resend = has_path && !is_recalled;
    match event {
        Event::FencedAfterLoss | Event::Fenced | Event::Closed if is_ended => Failover::FreeChunk,
        Event::Unfenced | Event::FenceTimedOut | Event::GivenUp if is_ended => Failover::KeepChunk,
        Event::Unfenced | Event::Fenced if can_resend => Failover::Resend,
        Event::FencedAfterLoss => Failover::End(Outcome::Fenced),
        Event::Fenced if is_recalled => Failover::End(Outcome::Fenced),
        Event::Fenced | Event::Closed => Failover::End(Outcome::Unknown),
        Event::Unfenced | Event::GivenUp => Failover::Abandon(Outcome::Unknown),
        Event::FenceTimedOut => Failover::Abandon(Outcome::TimedOut),
    }
}

impl Client {
    /// Fails a path, or closes it locally, for the reason `why`. Its requests fail over. The client then reconnects the
    /// path, unless `why`, the limit of attempts or the end of the session forbids it.
    pub(super) fn fail_path(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: PathId,
        why: Failure,
    ) {
        let most = self.config.max_reconnect_attempts;
        let Some(path) = self.paths.get_mut(id) else { return };
        let was_up = match path.state {
            PathState::Connected => true,
            PathState::Connecting => false,
            PathState::Waiting | PathState::Disconnected | PathState::Closing => return,
        };
        if !was_up {
            path.attempts += 1;
            path.stats.reconnects.failed += u64::from(path.was_connected);
        }
        let is_other = matches!(why, Failure::QueueDepth { .. } | Failure::MaxIoSize { .. });
        let is_final = is_other
            || why == Failure::ClosedLocally
            || most.is_some_and(|most| path.attempts >= most.max(u32::from(!was_up)))
            || self.session.stage == Stage::Closing;
        let is_given_up = is_final && why != Failure::ClosedLocally;
        let has_restarted = why == Failure::SessionRestarted;
        self.tear_down(now, cx, id);
        let path = self.paths.get_mut(id).expect("`tear_down` keeps the path");
        path.state = if is_final { PathState::Disconnected } else { PathState::Waiting };
        path.is_given_up = is_given_up;
        path.is_awaited &= was_up;
        if !is_final {
            let at = now + self.config.reconnect_delay + self.jitter();
            self.timers.set((id, Timer::Reconnect), (), at);
        }
        let retried = !is_final;
        self.events.push_back(ClientEvent::PathDown { path: id, why, retried });
        if was_up && self.paths.connected().is_empty() {
            self.session.is_lost = true;
            self.events.push_back(ClientEvent::Lost);
        }
        self.try_next_path(now, cx);
        self.open_session();
        self.fail_over(now, cx, id, has_restarted);
    }

    /// If no path of the session has ever been connected, connects the next path that was not tried yet.
    fn try_next_path(&mut self, now: Instant, cx: &mut impl Adapters) {
        let is_alone = self.paths.iter().all(|path| {
            !path.was_connected
                && !matches!(path.state, PathState::Connecting | PathState::Connected)
        });
        if self.session.stage != Stage::Opening || !is_alone {
            return;
        }
        let fresh = self.paths.iter_mut().find(|path| path.reconnects == 0);
        if let Some(path) = fresh.filter(|path| path.state == PathState::Disconnected) {
            path.is_first = true;
            let id = path.id;
            self.start_connecting(now, cx, id);
        }
    }

    /// Handles the requests of a failed path. If the server fences the path, the requests wait for the fence.
    fn fail_over(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId, has_restarted: bool) {
        let slots = self.slots.on(id);
        let Some(path) = self.paths.get_mut(id) else { return };
        path.inflight = 0;
        path.stats.failed_over += slots.len() as u64;
        let (fences, uuid, reconnects) = (path.fences(), path.uuid, path.reconnects);
        let is_lost = self.session.is_lost || has_restarted;
        self.fencing.path_failed(id, is_lost);
        for &index in &slots {
            self.close_read_region(cx, index);
            self.slots.get_mut(index).expect("requests have slots").state = SlotState::Held;
        }
        if fences && !slots.is_empty() {
            self.fencing.await_fence(uuid, reconnects, slots, is_lost);
        } else {
            self.fencing.add_unfenced(id, &slots);
            self.fail_over_requests(now, cx, slots, Event::Unfenced);
        }
        self.send_fences(now, cx);
    }

    /// Invalidates the key of a READ, so that the server can no longer write to the memory region of the READ.
    pub(super) fn close_read_region(&mut self, cx: &mut impl Adapters, index: u16) {
        let Some(slot) = self.slots.get(index) else { return };
        let Some(local) = slot.opened else { return };
        if let Some(adapter) = cx.get(self.registrations.get(local).adapter) {
            self.take_data(adapter.hca, index, false);
        }
    }

    /// Sends fence requests for the failed paths over a connected path.
    pub(super) fn send_fences(&mut self, now: Instant, cx: &mut impl Adapters) {
        let up = self.paths.iter().find(|it| it.state == PathState::Connected && it.fences());
        let timeout = self.config.fence_timeout;
        let Some(path) = up else {
            // The connected paths do not support fences. The requests wait for another path, but not indefinitely.
            if !self.paths.connected().is_empty() {
                self.fencing.await_path(now, timeout);
                self.await_fences();
            }
            return;
        };
        let (id, qp, adapter) = (path.id, path.connections[0].qp, path.spec.adapter);
        if let Some(adapter) = cx.get(adapter) {
            while let Some(fence) = self.fencing.request_over(id, now, timeout) {
                let data = Data::Inline(Box::new(fence.to_bytes()));
                let sent = connection::send(adapter.hca, now, qp, SendOp::Send { imm: None }, data);
                if let Err(error) = sent {
                    self.failed.push_back((id, SetupError::from(error).into()));
                    break;
                }
            }
        }
        self.await_fences();
    }

    fn await_fences(&mut self) {
        match self.fencing.deadline() {
            Some(until) => self.timers.set(FENCE_TIMER, (), until),
            None => self.timers.stop(FENCE_TIMER),
        }
    }

    /// Completes the requests of failed paths that the server has not fenced in time.
    pub(super) fn give_up_fences(&mut self, now: Instant, cx: &mut impl Adapters) {
        let late = self.fencing.take_late(now);
        self.fail_over_requests(now, cx, late, Event::FenceTimedOut);
        self.await_fences();
    }

    /// Frees the chunk of a completed request. If the request was also sent over failed paths that the server does not
    /// fence, the chunk remains in use: the server may still execute an earlier copy with the data in the chunk.
    pub(super) fn give_back(&mut self, index: u16) {
        if self.fencing.is_unfenced(index) {
            self.slots.get_mut(index).expect("requests have slots").state = SlotState::Abandoned;
        } else {
            self.slots.give_back(index);
        }
    }

    /// Handles a connected path: frees the chunks of completed requests that were sent earlier over this path, or over
    /// a removed path between the same endpoints. The server accepts the path only after it has finished with these
    /// requests.
    pub(super) fn end_unfenced(&mut self, id: PathId) {
        let Some(path) = self.paths.get(id) else { return };
        let ends = (path.spec.adapter, path.spec.address);
        for index in self.fencing.path_connected(id, ends) {
            if self.slots.get(index).is_some_and(|slot| slot.state == SlotState::Abandoned) {
                self.give_back(index);
            }
        }
    }

    /// Handles the confirmations of fences.
    pub(super) fn handle_fenced(&mut self, now: Instant, cx: &mut impl Adapters) {
        while let Some(fence) = self.fencing.confirmed.pop_front() {
            let Some(Fenced { slots, is_lost }) = self.fencing.confirm(fence) else { continue };
            self.await_fences();
            let is_returned = is_lost && self.config.returns_lost;
            let event = if is_returned { Event::FencedAfterLoss } else { Event::Fenced };
            self.fail_over_requests(now, cx, slots, event);
        }
    }

    /// Depending on `event`, retransmits or completes the requests of a failed path.
    fn fail_over_requests(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        slots: Vec<u16>,
        event: Event,
    ) {
        for index in slots {
            let Some(slot) = self.slots.get(index) else { continue };
            let (cpu, is_recalled) = (slot.cpu, slot.is_recalled);
            let is_ended = slot.state == SlotState::Abandoned;
            let request = FailedRequest {
                is_ended,
                is_recalled,
                has_path: !self.paths.connected().is_empty(),
            };
            match decide(event, request) {
                Failover::Resend => {
                    let path = self.choose(cpu).expect("a path is connected");
                    self.send_over(now, cx, index, path);
                }
                Failover::End(outcome) => {
                    self.complete(index, outcome);
                    self.give_back(index);
                }
                Failover::Abandon(outcome) => {
                    self.complete(index, outcome);
                    self.slots.get_mut(index).expect("requests have slots").state =
                        SlotState::Abandoned;
                }
                Failover::FreeChunk => self.give_back(index),
                Failover::KeepChunk => {}
            }
        }
    }

    /// Queues the completion of a request.
    fn complete(&mut self, index: u16, outcome: Outcome) {
        let Some(slot) = self.slots.get(index) else { return };
        let (user, cpu, id) = (slot.user, slot.cpu, self.slots.id(index));
        self.completions.push_back(Completion { id, user, outcome, cpu });
    }

    /// Completes the requests that wait for a fence, if the client does not reconnect paths: the session is closing, or
    /// the client has given up after failures. The chunks of these requests remain in use until the server has confirmed
    /// the fences. The client requests the confirmation over the next path that the user reconnects.
    pub(super) fn give_up(&mut self, now: Instant, cx: &mut impl Adapters) {
        let is_over =
            |path: &Path| matches!(path.state, PathState::Disconnected | PathState::Closing);
        let is_ending = self.session.is_ending();
        let is_given_up = self.paths.iter().any(|path| path.is_given_up);
        if !self.paths.iter().all(is_over) || !(is_ending || is_given_up) {
            return;
        }
        let (slots, event) = if is_ending {
            (self.fencing.clear(), Event::Closed)
        } else {
            (self.fencing.give_up(), Event::GivenUp)
        };
        self.fail_over_requests(now, cx, slots, event);
        self.await_fences();
    }
}

#[cfg(test)]
mod tests;
