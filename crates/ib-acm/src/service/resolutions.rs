//! Addresses that an endpoint is resolving: their states, queues and time limits.

use std::collections::{BTreeMap, VecDeque};

use ib_types::{Gid, Instant};

use super::context::{Context, Timer};
use super::key::PathTarget;
use super::pending::PendingRequest;
use crate::Address;

/// State of an address resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResolutionState {
    /// The resolution waits in a queue.
    Queued,
    /// Waits for the check of the peer with this GID, which is the cached owner of the address.
    CheckingPeer { gid: Gid },
    /// Waits for a response to requests to the base group. `attempts` requests were sent.
    QueryingGroup { attempts: u32 },
    /// Waits for a path query, or for the comparison of service levels.
    QueryingPath,
}

/// Resolution of an address.
#[derive(Debug)]
pub(super) struct Resolution {
    pub(super) address: Address,
    pub(super) state: ResolutionState,
    /// Client requests that wait for the address. A background resolution has none.
    pub(super) requests: Vec<PendingRequest>,
    /// Path query that the resolution waits for.
    pub(super) path_query: Option<PathTarget>,
    /// Time at which the resolution fails.
    deadline: Instant,
    /// Time of the next attempt to query the base group, if an attempt is scheduled.
    retry: Option<Instant>,
    /// True if the resolution has left the queue.
    is_active: bool,
    /// True if no client request waited for the resolution when it left the queue.
    is_background: bool,
}

/// Step that the caller has to take after it has requested a resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// The caller does nothing, because the resolution is in progress.
    None,
    /// The caller starts queued resolutions.
    Dispatch,
    /// The caller queries the base group again for the resolution with this transaction ID.
    QueryGroup(u64),
}

/// Resolutions of an endpoint.
///
/// The number of active resolutions is limited. Background resolutions have a separate queue. Their limit is half the
/// limit of resolutions with client requests.
#[derive(Debug, Default)]
pub(super) struct Resolutions {
    by_tid: BTreeMap<u64, Resolution>,
    by_address: BTreeMap<Address, u64>,
    queue: VecDeque<u64>,
    background_queue: VecDeque<u64>,
    /// Number of active resolutions, including background resolutions.
    active: usize,
    active_background: usize,
    /// Resolutions that wait for the comparison of service levels.
    awaiting_comparison: Vec<u64>,
}

/// Completed resolutions are removed from a queue when its length exceeds this number plus twice the number of
/// resolutions.
const QUEUE_SLACK: usize = 64;

impl Resolutions {
    pub(super) fn get(&self, tid: u64) -> Option<&Resolution> {
        self.by_tid.get(&tid)
    }

    pub(super) fn get_mut(&mut self, tid: u64) -> Option<&mut Resolution> {
        self.by_tid.get_mut(&tid)
    }

    /// Returns the addresses that are being resolved.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.by_address.keys()
    }

    /// Returns the resolution of this address, if it is querying the base group.
    pub(super) fn querying_group(&self, address: &Address) -> Option<u64> {
        let tid = *self.by_address.get(address)?;
        let state = self.by_tid.get(&tid)?.state;
        matches!(state, ResolutionState::QueryingGroup { .. }).then_some(tid)
    }

    /// Returns the resolutions that wait for the check of a peer.
    pub(super) fn checking_peer(&self, gid: Gid) -> Vec<u64> {
        let state = ResolutionState::CheckingPeer { gid };
        self.by_tid.iter().filter(|(_, it)| it.state == state).map(|(&tid, _)| tid).collect()
    }

    /// Queues the resolution of an address. If the address is being resolved already, adds the request to that
    /// resolution.
    pub(super) fn start(
        &mut self,
        cx: &mut Context<'_>,
        address: &Address,
        request: Option<PendingRequest>,
    ) -> NextStep {
        if let Some(&tid) = self.by_address.get(address) {
            let resolution = self.by_tid.get_mut(&tid).expect("both maps have the same entries");
            let is_first = request.is_some() && resolution.requests.is_empty();
            resolution.requests.extend(request);
            return if is_first { self.restart(cx, tid) } else { NextStep::None };
        }
        let tid = cx.random();
        let deadline = cx.now + cx.config().request_time_limit();
        match request {
            None => self.background_queue.push_back(tid),
            Some(_) => self.queue.push_back(tid),
        }
        let resolution = Resolution {
            address: address.clone(),
            state: ResolutionState::Queued,
            requests: request.into_iter().collect(),
            path_query: None,
            deadline,
            retry: None,
            is_active: false,
            is_background: false,
        };
        self.by_address.insert(address.clone(), tid);
        self.by_tid.insert(tid, resolution);
        cx.set_timer(deadline, Timer::Resolution(tid));
        NextStep::Dispatch
    }

    /// Grants a background resolution the full time limit and all attempts, because a client now requests the address.
    fn restart(&mut self, cx: &mut Context<'_>, tid: u64) -> NextStep {
        let deadline = cx.now + cx.config().request_time_limit();
        let Some(resolution) = self.by_tid.get_mut(&tid) else { return NextStep::None };
        let before = std::mem::replace(&mut resolution.deadline, deadline);
        cx.clear_timer(before, Timer::Resolution(tid));
        cx.set_timer(deadline, Timer::Resolution(tid));
        if !resolution.is_active {
            self.queue.push_back(tid);
            return NextStep::Dispatch;
        }
        match &mut resolution.state {
            ResolutionState::QueryingGroup { attempts } => {
                *attempts = 0;
                NextStep::QueryGroup(tid)
            }
            _ => NextStep::None,
        }
    }

    /// Removes and returns the next resolution from the queues. Returns `None` if the queues are empty, or if the
    /// limits of active resolutions are reached. The limit is `depth` for resolutions with client requests, and half
    /// of `depth` for background resolutions.
    pub(super) fn next(&mut self, depth: usize) -> Option<u64> {
        loop {
            let foreground = match self.active - self.active_background {
                active if active < depth => self.queue.pop_front(),
                _ => None,
            };
            let tid = foreground.or_else(|| match self.active_background {
                active if active < depth.div_ceil(2) => self.background_queue.pop_front(),
                _ => None,
            })?;
            // The queues can contain completed resolutions. A background resolution that a client requested while it
            // was queued is in `queue` and in `background_queue`.
            let Some(resolution) = self.by_tid.get_mut(&tid).filter(|it| !it.is_active) else {
                continue;
            };
            let is_background = resolution.requests.is_empty();
            if foreground.is_none() && !is_background {
                continue;
            }
            (resolution.is_active, resolution.is_background) = (true, is_background);
            self.active += 1;
            self.active_background += usize::from(is_background);
            return Some(tid);
        }
    }

    /// Schedules the next attempt to query the base group. Replaces an attempt that is already scheduled.
    pub(super) fn set_retry(&mut self, cx: &mut Context<'_>, tid: u64, at: Instant) {
        if let Some(resolution) = self.by_tid.get_mut(&tid) {
            let before = resolution.retry.replace(at);
            if let Some(before) = before.filter(|&before| before != resolution.deadline) {
                cx.clear_timer(before, Timer::Resolution(tid));
            }
        }
        cx.set_timer(at, Timer::Resolution(tid));
    }

    /// Returns true if the time limit of the resolution has expired.
    pub(super) fn is_expired(&self, tid: u64, now: Instant) -> bool {
        self.by_tid.get(&tid).is_some_and(|resolution| resolution.deadline <= now)
    }

    /// Makes a resolution wait for the comparison of service levels.
    pub(super) fn await_comparison(&mut self, tid: u64) {
        self.awaiting_comparison.push(tid);
    }

    /// Removes and returns the resolutions that wait for the comparison of service levels.
    pub(super) fn take_awaiting_comparison(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.awaiting_comparison)
    }

    /// Removes a completed resolution.
    pub(super) fn remove(&mut self, cx: &mut Context<'_>, tid: u64) -> Option<Resolution> {
        let resolution = self.by_tid.remove(&tid)?;
        self.by_address.remove(&resolution.address);
        self.active -= usize::from(resolution.is_active);
        self.active_background -= usize::from(resolution.is_background);
        for queue in [&mut self.queue, &mut self.background_queue] {
            if queue.len() > QUEUE_SLACK + 2 * self.by_tid.len() {
                queue.retain(|queued| self.by_tid.contains_key(queued));
            }
        }
        cx.clear_timer(resolution.deadline, Timer::Resolution(tid));
        Some(resolution)
    }

    /// Removes all resolutions and returns their client requests.
    pub(super) fn remove_all(&mut self) -> Vec<PendingRequest> {
        let resolutions = std::mem::take(self).by_tid;
        resolutions.into_values().flat_map(|resolution| resolution.requests).collect()
    }
}

#[cfg(test)]
impl Resolutions {
    /// Returns the number of all resolutions, and the number of active ones.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.by_tid.len(), self.active)
    }
}
