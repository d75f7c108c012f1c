//! Failed paths and their requests: fences that the server has to confirm, and chunks that it may still use.

use std::collections::VecDeque;
use std::time::Duration;

use ib_types::Instant;
use ib_wire::rtrs::{Fence, MessageType};

use super::path::PathId;
use crate::adapters::AdapterId;
use crate::address::PathAddress;

/// The ends of a path: its HCA and its addresses.
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
    /// True if all paths were lost since.
    is_lost: bool,
    /// The path over which the server was requested to fence.
    via: Option<PathId>,
    /// Deadline of the confirmation, from the first request on.
    until: Option<Instant>,
    /// Deadline for a path over which the server can be requested, while only others are connected.
    alone: Option<Instant>,
}

/// A fence that the server has confirmed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fenced {
    /// The requests that have waited for it.
    pub(super) slots: Vec<u16>,
    /// True if all paths were lost since the path failed.
    pub(super) is_lost: bool,
}

/// The failed paths of a session. Every request of a failed path is either in one entry of `failed`, until that path is
/// fenced, or in `unfenced`, until a path with the same ends is connected.
#[derive(Debug, Default)]
pub(super) struct Fencing {
    failed: Vec<FailedPath>,
    last: u32,
    /// Numbers of fences that the server has confirmed, in order.
    pub(super) confirmed: VecDeque<u32>,
    /// Failed paths that the server does not fence, with their requests: it may still execute these.
    unfenced: Vec<(PathId, u16)>,
    /// Those of these paths that were removed. Only a path that the server has accepted with the same ends proves that the
    /// server has finished with them.
    removed: Vec<(PathId, PathEnds)>,
}

impl Fencing {
    /// Notes that a path has failed. `is_lost` is true if it was the last one.
    pub(super) fn path_failed(&mut self, id: PathId, is_lost: bool) {
        for path in &mut self.failed {
            path.is_lost |= is_lost;
            if path.via == Some(id) {
                path.via = None;
            }
        }
    }

    /// Adds the requests of a failed path that the server can fence.
    pub(super) fn await_fence(
        &mut self,
        uuid: [u8; 16],
        reconnects: u16,
        slots: Vec<u16>,
        is_lost: bool,
    ) {
        self.last = self.last.wrapping_add(1);
        let (via, until, alone) = (None, None, None);
        let fence = self.last;
        self.failed.push(FailedPath { fence, uuid, reconnects, slots, is_lost, via, until, alone });
    }

    /// Adds the requests of a failed path that the server does not fence.
    pub(super) fn add_unfenced(&mut self, id: PathId, slots: &[u16]) {
        self.unfenced.extend(slots.iter().map(|&index| (id, index)));
    }

    /// Returns the next fence to request over a path. `patience` limits the time until its confirmation.
    pub(super) fn request_over(
        &mut self,
        via: PathId,
        now: Instant,
        patience: Option<Duration>,
    ) -> Option<Fence> {
        let path = self.failed.iter_mut().find(|path| path.via.is_none())?;
        path.via = Some(via);
        path.alone = None;
        path.until = path.until.or(patience.map(|patience| now + patience));
        Some(Fence {
            message_type: MessageType::FENCE,
            id: path.fence,
            path_uuid: path.uuid,
            reconnects: path.reconnects,
        })
    }

    /// Limits the time until a path is connected over which fences can be requested.
    pub(super) fn await_path(&mut self, now: Instant, patience: Option<Duration>) {
        for path in self.failed.iter_mut().filter(|path| path.via.is_none()) {
            path.alone = path.alone.or(patience.map(|patience| now + patience));
        }
    }

    /// Returns the earliest deadline of a fence.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.failed.iter().flat_map(|path| path.until.into_iter().chain(path.alone)).min()
    }

    /// Returns the requests whose fences are late. Each is returned once; its fence stays outstanding.
    pub(super) fn take_late(&mut self, now: Instant) -> Vec<u16> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        self.stop_waiting(|path| is_due(path.until) || is_due(path.alone))
    }

    /// Returns all requests that wait for a fence. Their fences stay outstanding, without a deadline.
    pub(super) fn give_up(&mut self) -> Vec<u16> {
        self.stop_waiting(|_| true)
    }

    fn stop_waiting(&mut self, is_over: impl Fn(&FailedPath) -> bool) -> Vec<u16> {
        let mut slots = Vec::new();
        for path in self.failed.iter_mut().filter(|path| is_over(path)) {
            (path.until, path.alone) = (None, None);
            slots.extend(path.slots.iter().copied());
        }
        slots
    }

    /// Forgets all outstanding fences, and returns the requests that wait for them.
    pub(super) fn clear(&mut self) -> Vec<u16> {
        self.failed.drain(..).flat_map(|path| path.slots).collect()
    }

    /// Takes the confirmation of a fence; `None` if it is not outstanding.
    pub(super) fn confirm(&mut self, fence: u32) -> Option<Fenced> {
        let at = self.failed.iter().position(|path| path.fence == fence)?;
        let FailedPath { slots, is_lost, .. } = self.failed.remove(at);
        Some(Fenced { slots, is_lost })
    }

    /// Returns true if the server may still execute an earlier request with the chunk.
    pub(super) fn is_unfenced(&self, index: u16) -> bool {
        self.unfenced.iter().any(|&(_, it)| it == index)
    }

    /// Notes that a path was removed.
    pub(super) fn path_removed(&mut self, id: PathId, ends: PathEnds) {
        if self.unfenced.iter().any(|entry| entry.0 == id) {
            self.removed.push((id, ends));
        }
    }

    /// Notes that a path is connected: the server accepts it only after it has finished with earlier paths of the same ends.
    /// Returns the requests of these.
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
