//! Path fencing: failed paths that the server has to fence, their requests, and chunks that the server may still use.

use std::collections::VecDeque;
use std::time::Duration;

use ib_types::Instant;
use ib_wire::rtrs::{Fence, MessageType};

use super::path::PathId;
use crate::address::PathAddress;
use crate::connection::AdapterId;

/// The endpoints of a path: the local HCA, and the addresses of client and server.
pub(super) type PathEnds = (AdapterId, PathAddress);

/// A failed path that the server has to fence.
#[derive(Debug)]
struct FailedPath {
    /// The number of the fence.
    fence: u32,
    uuid: [u8; 16],
    reconnects: u16,
    /// The requests that wait for the fence.
    slots: Vec<u16>,
    /// True if the session has lost all of its paths, either when this path failed or since then.
    is_lost: bool,
    /// The connected path over which the fence was requested.
    via: Option<PathId>,
    /// Deadline of the confirmation. It is set when the fence is first requested.
    until: Option<Instant>,
    /// Deadline for connecting a path over which the fence can be requested. It is set when paths are connected, but
    /// none of them supports fences.
    path_deadline: Option<Instant>,
}

/// A fence that the server has confirmed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fenced {
    /// The requests that have waited for the fence.
    pub(super) slots: Vec<u16>,
    /// True if the session has lost all of its paths, either when the fenced path failed or before the confirmation.
    pub(super) is_lost: bool,
}

/// The failed paths of a session, and their requests.
///
/// If the server fences a failed path, the requests of this path are in `failed` until the server has confirmed the
/// fence. Otherwise they are in `unfenced` until a path between the same endpoints is connected.
#[derive(Debug, Default)]
pub(super) struct Fencing {
    failed: Vec<FailedPath>,
    last: u32,
    /// Numbers of the fences whose confirmation has arrived, but is not handled yet, in the order of arrival.
    pub(super) confirmed: VecDeque<u32>,
    /// Requests on failed paths of a server that does not support fencing. The server may still execute these
    /// requests.
    unfenced: Vec<(PathId, u16)>,
    /// Removed paths whose requests are in `unfenced`. Only a new path between the same endpoints proves that the
    /// server has finished with these requests.
    removed: Vec<(PathId, PathEnds)>,
}

impl Fencing {
    /// Handles the failure of a path: fences that were requested over it must be requested again. `is_lost` is true if
    /// all paths of the session were lost.
    pub(super) fn path_failed(&mut self, id: PathId, is_lost: bool) {
        for path in &mut self.failed {
            path.is_lost |= is_lost;
            if path.via == Some(id) {
                path.via = None;
            }
        }
    }

    /// Records a failed path that the server can fence, with the slots of the requests that wait for the fence.
    pub(super) fn await_fence(
        &mut self,
        uuid: [u8; 16],
        reconnects: u16,
        slots: Vec<u16>,
        is_lost: bool,
    ) {
        self.last = self.last.wrapping_add(1);
        let (via, until, path_deadline) = (None, None, None);
        let fence = self.last;
        self.failed.push(FailedPath {
            fence,
            uuid,
            reconnects,
            slots,
            is_lost,
            via,
            until,
            path_deadline,
        });
    }

    /// Records the slots of requests that were in flight on a failed path that the server does not fence.
    pub(super) fn add_unfenced(&mut self, id: PathId, slots: &[u16]) {
        self.unfenced.extend(slots.iter().map(|&index| (id, index)));
    }

    /// Returns the next fence to request over a path. The confirmation has to arrive within `timeout`.
    pub(super) fn request_over(
        &mut self,
        via: PathId,
        now: Instant,
        timeout: Option<Duration>,
    ) -> Option<Fence> {
        let path = self.failed.iter_mut().find(|path| path.via.is_none())?;
        path.via = Some(via);
        path.path_deadline = None;
        path.until = path.until.or(timeout.map(|timeout| now + timeout));
        Some(Fence {
            message_type: MessageType::FENCE,
            id: path.fence,
            path_uuid: path.uuid,
            reconnects: path.reconnects,
        })
    }

    /// Starts the time limit for connecting a path over which fences can be requested.
    pub(super) fn await_path(&mut self, now: Instant, timeout: Option<Duration>) {
        for path in self.failed.iter_mut().filter(|path| path.via.is_none()) {
            path.path_deadline = path.path_deadline.or(timeout.map(|timeout| now + timeout));
        }
    }

    /// Returns the earliest deadline of all fences.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.failed.iter().flat_map(|path| path.until.into_iter().chain(path.path_deadline)).min()
    }

    /// Returns the requests whose fences have timed out. Each request is returned once. The fences remain outstanding.
    pub(super) fn take_late(&mut self, now: Instant) -> Vec<u16> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        self.stop_waiting(|path| is_due(path.until) || is_due(path.path_deadline))
    }

    /// Returns all requests that wait for a fence. The fences remain outstanding, without a deadline.
    pub(super) fn give_up(&mut self) -> Vec<u16> {
        self.stop_waiting(|_| true)
    }

    fn stop_waiting(&mut self, is_over: impl Fn(&FailedPath) -> bool) -> Vec<u16> {
        let mut slots = Vec::new();
        for path in self.failed.iter_mut().filter(|path| is_over(path)) {
            (path.until, path.path_deadline) = (None, None);
            slots.extend(path.slots.iter().copied());
        }
        slots
    }

    /// Removes all outstanding fences, and returns the requests that wait for them.
    pub(super) fn clear(&mut self) -> Vec<u16> {
        self.failed.drain(..).flat_map(|path| path.slots).collect()
    }

    /// Handles the confirmation of a fence. Returns the requests that have waited for it; `None` if the fence is not
    /// outstanding.
    pub(super) fn confirm(&mut self, fence: u32) -> Option<Fenced> {
        let at = self.failed.iter().position(|path| path.fence == fence)?;
        let FailedPath { slots, is_lost, .. } = self.failed.remove(at);
        Some(Fenced { slots, is_lost })
    }

    /// Returns true if a request in the chunk `index` was sent over a failed path that the server does not fence. The
    /// server may still execute this request.
    pub(super) fn is_unfenced(&self, index: u16) -> bool {
        self.unfenced.iter().any(|&(_, it)| it == index)
    }

    /// Records the endpoints of a removed path if some of its requests are in `unfenced`.
    pub(super) fn path_removed(&mut self, id: PathId, ends: PathEnds) {
        if self.unfenced.iter().any(|entry| entry.0 == id) {
            self.removed.push((id, ends));
        }
    }

    /// Handles a connected path. Returns the requests in `unfenced` that were sent earlier over this path, or over a
    /// removed path between the same endpoints.
    ///
    /// The server has finished with these requests, because otherwise it would not have accepted the path. So their
    /// chunks can be reused.
    pub(super) fn path_connected(&mut self, id: PathId, ends: PathEnds) -> Vec<u16> {
        let again = self.removed.extract_if(.., |it| it.1 == ends).map(|(id, _)| id);
        let mut ended = Vec::new();
        for id in [id].into_iter().chain(again) {
            let of_path = self.unfenced.extract_if(.., |entry| entry.0 == id);
            ended.extend(of_path.map(|(_, index)| index));
        }
        ended
    }
}

#[cfg(test)]
mod tests;
