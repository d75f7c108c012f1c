//! What becomes of requests whose path has failed.
//!
//! A server that is no Linux kernel is asked first, over a healthy path, to fence the dead one: to have nothing of it
//! take effect any more. Only when it has confirmed that are its requests sent again; so none of them can overwrite
//! what was written after it. A kernel knows no such question: requests are sent again at once, and what the dead
//! path still does at the server is open.

use std::collections::VecDeque;

use ib_hca::{Data, SendOp};
use ib_types::Instant;
use ib_wire::rtrs::{Fence, MessageType};

use super::path::PathState;
use super::slots::Fate;
use super::{Client, ClientEvent, Completion, Failure, PathId, Stage, Timer};
use crate::Errno;
use crate::adapters::{AdapterId, Adapters};
use crate::address::PathAddress;
use crate::connection::{self, SetupError};

/// The deadline of all fences; no path has that number.
const FENCE_TIMER: (PathId, Timer) = (PathId(u32::MAX), Timer::Fence);

/// A dead path that the server is to fence.
#[derive(Debug)]
struct Dead {
    id: u32,
    uuid: [u8; 16],
    reconnects: u16,
    /// Requests that wait for it.
    slots: Vec<u16>,
    /// Whether no path was connected any more since.
    is_lost: bool,
    /// The path over which the server was asked.
    via: Option<PathId>,
    /// Until when it may take, since it was first asked.
    until: Option<Instant>,
    /// Until when a path is awaited over which it can be asked, since there are others only.
    alone: Option<Instant>,
}

/// Paths that are to be fenced.
#[derive(Debug, Default)]
pub(super) struct Fencing {
    dead: Vec<Dead>,
    next: u32,
    /// What the server has confirmed.
    pub(super) confirmed: VecDeque<u32>,
    /// Requests and paths that have failed and that nobody fences: the server may still be at work on what came over them.
    unfenced: Vec<(PathId, u16)>,
    /// Those of these paths that were removed: to be removed proves nothing, to be let in again with the same ends does.
    removed: Vec<(PathId, (AdapterId, PathAddress))>,
}

impl Client {
    /// A path has failed, or is not to be any more.
    pub(super) fn fail_path(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: PathId,
        why: Failure,
    ) {
        let most = self.config.max_reconnect_attempts;
        let Some(path) = self.path_mut(id) else { return };
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
            || why == Failure::Unwanted
            || most.is_some_and(|most| path.attempts >= most.max(u32::from(!was_up)))
            || self.stage == Stage::Closing;
        let is_given_up = is_final && why != Failure::Unwanted;
        let is_forgotten = why == Failure::Forgotten;
        self.tear_down(now, cx, id);
        let path = self.path_mut(id).expect("it was just there");
        path.state = if is_final { PathState::Disconnected } else { PathState::Waiting };
        path.is_given_up = is_given_up;
        if !is_final {
            let at = now + self.config.reconnect_delay + self.jitter();
            self.timers.set((id, Timer::Reconnect), (), at);
        }
        let retried = !is_final;
        self.events.push_back(ClientEvent::PathDown { path: id, why, retried });
        if was_up && self.up.is_empty() {
            self.is_lost = true;
            self.events.push_back(ClientEvent::Lost);
        }
        self.begin_next(now, cx);
        self.fail_over(now, cx, id, is_forgotten);
    }

    /// Until one path was connected, another begins the session when one has failed.
    fn begin_next(&mut self, now: Instant, cx: &mut impl Adapters) {
        let is_alone = self.paths.iter().flatten().all(|path| {
            !path.was_connected
                && !matches!(path.state, PathState::Connecting | PathState::Connected)
        });
        if self.stage != Stage::Opening || !is_alone {
            return;
        }
        let fresh = self.paths.iter_mut().flatten().find(|path| path.reconnects == 0);
        if let Some(path) = fresh.filter(|path| path.state == PathState::Disconnected) {
            path.is_first = true;
            let id = path.id;
            self.begin_path(now, cx, id);
        }
    }

    /// Sends the requests of a dead path again, as soon as that may be.
    fn fail_over(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId, is_forgotten: bool) {
        let slots = self.slots.on(id);
        let Some(path) = self.path_mut(id) else { return };
        path.inflight = 0;
        path.stats.failed_over += slots.len() as u64;
        let (fences, uuid, reconnects) = (path.fences(), path.uuid, path.reconnects);
        let is_lost = self.is_lost || is_forgotten;
        for dead in &mut self.fencing.dead {
            dead.is_lost |= is_lost;
            if dead.via == Some(id) {
                dead.via = None;
            }
        }
        for &index in &slots {
            self.forget_key(cx, index);
            self.slots.get_mut(index).expect("it is taken").fate = Fate::Held;
        }
        if fences && !slots.is_empty() {
            self.fencing.next = self.fencing.next.wrapping_add(1);
            let id = self.fencing.next;
            let (via, until, alone) = (None, None, None);
            let dead = Dead { id, uuid, reconnects, slots, is_lost, via, until, alone };
            self.fencing.dead.push(dead);
        } else {
            self.fencing.unfenced.extend(slots.iter().map(|&index| (id, index)));
            self.send_again(now, cx, slots, false);
        }
        self.send_fences(now, cx);
    }

    /// Has nobody write to where a request reads to.
    pub(super) fn forget_key(&mut self, cx: &mut impl Adapters, index: u16) {
        let Some(slot) = self.slots.get(index) else { return };
        let Some(local) = slot.opened else { return };
        if let Some(adapter) = cx.get(self.locals[local].adapter) {
            self.take_data(adapter.hca, index, false);
        }
    }

    /// Asks the server to fence dead paths, over one that is healthy.
    pub(super) fn send_fences(&mut self, now: Instant, cx: &mut impl Adapters) {
        let mut paths = self.paths.iter().flatten();
        let up = paths.find(|path| path.state == PathState::Connected && path.fences());
        let patience = self.config.fence_timeout;
        let Some(path) = up else {
            // Whoever is there now does not fence: it is another program than before, so nobody will ever say.
            if self.paths.iter().flatten().any(|path| path.state == PathState::Connected) {
                for dead in self.fencing.dead.iter_mut().filter(|dead| dead.via.is_none()) {
                    dead.alone = dead.alone.or(patience.map(|patience| now + patience));
                }
                self.await_fences();
            }
            return;
        };
        let (id, qp, adapter) = (path.id, path.connections[0].qp, path.spec.adapter);
        for dead in self.fencing.dead.iter_mut().filter(|dead| dead.via.is_none()) {
            let fence = Fence {
                message_type: MessageType::FENCE,
                id: dead.id,
                path_uuid: dead.uuid,
                reconnects: dead.reconnects,
            };
            let data = Data::Inline(Box::new(fence.to_bytes()));
            let Some(adapter) = cx.get(adapter) else { break };
            dead.via = Some(id);
            dead.alone = None;
            dead.until = dead.until.or(patience.map(|patience| now + patience));
            let sent = connection::send(adapter.hca, now, qp, SendOp::Send { imm: None }, data);
            if let Err(error) = sent {
                self.failed.push_back((id, SetupError::from(error).into()));
                break;
            }
        }
        self.await_fences();
    }

    fn await_fences(&mut self) {
        let dead = self.fencing.dead.iter();
        match dead.flat_map(|dead| dead.until.into_iter().chain(dead.alone)).min() {
            Some(until) => self.timers.set(FENCE_TIMER, (), until),
            None => self.timers.stop(FENCE_TIMER),
        }
    }

    /// Ends the requests of paths that the server takes too long to fence. Their chunks stay taken: the server may still be
    /// at work in them.
    pub(super) fn give_up_fences(&mut self, now: Instant) {
        let mut late = Vec::new();
        for dead in &mut self.fencing.dead {
            let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
            if is_due(dead.until) || is_due(dead.alone) {
                (dead.until, dead.alone) = (None, None);
                late.extend(dead.slots.iter().copied());
            }
        }
        late.into_iter().for_each(|index| self.abandon(index, Errno::ETIMEDOUT));
        self.await_fences();
    }

    /// Ends a request that has waited. Its chunk stays taken: the server may still be at work in it.
    fn abandon(&mut self, index: u16, errno: Errno) {
        let id = self.slots.id(index);
        let Some(slot) = self.slots.get_mut(index).filter(|it| it.fate == Fate::Held) else {
            return;
        };
        slot.fate = Fate::Abandoned;
        let (user, cpu) = (slot.user, slot.cpu);
        let completion = Completion { id, user, errno, is_fenced: false, is_answer: false, cpu };
        self.completions.push_back(completion);
    }

    /// Gives the chunk of a request back that has ended; where nobody fences the paths that it was on, once the server has
    /// done with those: what it still does for the request, it does with what is in the chunk then.
    pub(super) fn give_back(&mut self, index: u16) {
        if self.fencing.unfenced.iter().any(|&(_, it)| it == index) {
            self.slots.get_mut(index).expect("it is taken").fate = Fate::Abandoned;
        } else {
            self.slots.give_back(index);
        }
    }

    /// A path is removed, of which nobody knows whether the server has done with it.
    pub(super) fn keep_unfenced(&mut self, id: PathId, ends: (AdapterId, PathAddress)) {
        if self.fencing.unfenced.iter().any(|entry| entry.0 == id) {
            self.fencing.removed.push((id, ends));
        }
    }

    /// A path is connected: the server has done with what it was before, as it lets none in beside itself.
    pub(super) fn end_unfenced(&mut self, id: PathId) {
        self.end_unfenced_of(id);
        let Some(path) = self.path(id) else { return };
        let ends = (path.spec.adapter, path.spec.address);
        let again: Vec<_> = self.fencing.removed.extract_if(.., |it| it.1 == ends).collect();
        again.into_iter().for_each(|(id, _)| self.end_unfenced_of(id));
    }

    fn end_unfenced_of(&mut self, id: PathId) {
        let of_path = |entry: &mut (PathId, u16)| entry.0 == id;
        let ended: Vec<_> = self.fencing.unfenced.extract_if(.., of_path).collect();
        for (_, index) in ended {
            if self.slots.get(index).is_some_and(|slot| slot.fate == Fate::Abandoned) {
                self.give_back(index);
            }
        }
    }

    /// Sends again what has waited for a fence.
    pub(super) fn take_fenced(&mut self, now: Instant, cx: &mut impl Adapters) {
        while let Some(id) = self.fencing.confirmed.pop_front() {
            let Some(at) = self.fencing.dead.iter().position(|dead| dead.id == id) else {
                continue;
            };
            let dead = self.fencing.dead.remove(at);
            self.await_fences();
            if dead.is_lost && self.config.returns_lost {
                dead.slots.into_iter().for_each(|index| self.abort(index, true));
            } else {
                self.send_again(now, cx, dead.slots, true);
            }
        }
    }

    /// Sends requests over other paths; those for which there is none fail, and those that were recalled. Unless their path was fenced, their chunks stay
    /// taken then.
    fn send_again(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        slots: Vec<u16>,
        is_fenced: bool,
    ) {
        for index in slots {
            let Some(slot) = self.slots.get(index) else { continue };
            let (cpu, is_abandoned) = (slot.cpu, slot.fate == Fate::Abandoned);
            let is_recalled = slot.is_recalled;
            if slot.is_recalled && is_fenced {
                self.abort(index, true);
                continue;
            }
            match self.choose(cpu) {
                Some(path) if !is_abandoned && !is_recalled => {
                    self.send_over(now, cx, index, path);
                }
                _ if is_fenced => self.abort(index, false),
                _ => self.abandon(index, Errno::ECONNABORTED),
            }
        }
    }

    /// Ends a request of which it is not known what was done, or is still being done; one that has ended before gives its
    /// chunk back.
    fn abort(&mut self, index: u16, is_fenced: bool) {
        let Some(slot) = self.slots.get(index) else { return };
        let (user, cpu, is_abandoned) = (slot.user, slot.cpu, slot.fate == Fate::Abandoned);
        let (id, errno) = (self.slots.id(index), Errno::ECONNABORTED);
        self.give_back(index);
        if is_abandoned {
            return;
        }
        self.completions.push_back(Completion {
            id,
            user,
            errno,
            is_fenced,
            is_answer: false,
            cpu,
        });
    }

    /// Ends the requests that wait for a fence when no path will be connected again by itself. Somebody may connect one
    /// nevertheless: the fences are asked for then, and chunks stay taken until the server has confirmed.
    pub(super) fn give_up(&mut self) {
        let mut paths = self.paths.iter().flatten();
        let is_over =
            |path: &super::Path| matches!(path.state, PathState::Disconnected | PathState::Closing);
        let is_ending = matches!(self.stage, Stage::Closing | Stage::Closed);
        let is_given_up = paths.clone().any(|path| path.is_given_up);
        if !paths.all(|path| is_over(path)) || !(is_ending || is_given_up) {
            return;
        }
        if is_ending {
            for dead in std::mem::take(&mut self.fencing.dead) {
                dead.slots.into_iter().for_each(|index| self.abort(index, false));
            }
        } else {
            let mut waiting = Vec::new();
            for dead in &mut self.fencing.dead {
                (dead.until, dead.alone) = (None, None);
                waiting.extend(dead.slots.iter().copied());
            }
            waiting.into_iter().for_each(|index| self.abandon(index, Errno::ECONNABORTED));
        }
        self.await_fences();
    }
}
