//! The state that all paths of a session share: the limits of the server, and the stage of the session.

use ib_wire::rtrs::ConnectResponse;

use super::event::Failure;

/// Limits of the requests to a server, from its connect responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of requests in flight.
    pub queue_depth: u16,
    /// Maximum length of the data of a request in bytes.
    pub max_io_size: u32,
    /// Maximum total length of the user's header and the RTRS message that follows it, in bytes.
    pub max_header_size: u32,
}

impl Limits {
    pub(super) const NONE: Self = Self { queue_depth: 0, max_io_size: 0, max_header_size: 0 };

    /// Returns the limits in a connect response. Fails if a limit is out of range, or if the chunks together have 4 GiB
    /// or more. Also fails if immediate data cannot hold each chunk number with each offset in the chunk.
    pub(super) fn of(response: &ConnectResponse) -> Result<Self, Failure> {
        /// Maximum header size that a server may offer, in bytes.
        const MAX_HEADER: u32 = 1 << 20;
        /// Minimum header size that a server may offer, in bytes.
        const MIN_HEADER: u32 = 64;
        let &ConnectResponse { queue_depth, max_io_size, max_header_size, .. } = response;
        let limits = Self { queue_depth, max_io_size, max_header_size };
        if queue_depth == 0 {
            return Err(Failure::Protocol("a connect response with a queue depth of 0"));
        }
        if max_io_size == 0 || !(MIN_HEADER..=MAX_HEADER).contains(&max_header_size) {
            return Err(Failure::Protocol("a connect response with invalid sizes of requests"));
        }
        let bits = u16::BITS - (queue_depth - 1).leading_zeros();
        let chunk = limits.chunk_size();
        if chunk > 1 << (28 - bits) || chunk * u64::from(queue_depth) > u64::from(u32::MAX) {
            return Err(Failure::Protocol(
                "a connect response with chunks beyond the range of immediate data",
            ));
        }
        Ok(limits)
    }

    pub(super) const fn chunk_size(&self) -> u64 {
        self.max_io_size as u64 + self.max_header_size as u64
    }
}

/// The stage in the life of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No path has been connected, or some path has neither been connected nor failed yet.
    Opening,
    /// A path has been connected, and each other path has been connected or has failed once.
    Open,
    /// The user has closed the session, and paths are being removed.
    Closing,
    /// All paths of the session are removed.
    Closed,
}

/// The state of a session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) uuid: [u8; 16],
    pub(super) stage: Stage,
    /// True if the last connected path was lost, or if the server has lost its state of the session. Reset when a path
    /// is connected.
    pub(super) is_lost: bool,
    /// The epoch: a random number that the server has drawn for this session; 0 if the server reports none.
    epoch: u32,
    limits: Option<Limits>,
}

impl Session {
    pub(super) const fn new(uuid: [u8; 16]) -> Self {
        Self { uuid, stage: Stage::Opening, is_lost: false, epoch: 0, limits: None }
    }

    /// Returns the limits of the server; `None` before the first connection.
    pub(super) const fn limits(&self) -> Option<Limits> {
        self.limits
    }

    /// Returns true if the session is closed or is being closed.
    pub(super) const fn is_ending(&self) -> bool {
        matches!(self.stage, Stage::Closing | Stage::Closed)
    }

    /// Adopts the limits of the first connection. Later connections must have the same queue depth and at least the
    /// same data length, so that requests in flight fit into the server's chunks.
    pub(super) fn agree(&mut self, offered: Limits) -> Result<(), Failure> {
        let limits = self.limits.get_or_insert(offered);
        let (found, expected) = (offered.queue_depth, limits.queue_depth);
        if found != expected {
            return Err(Failure::QueueDepth { found, expected });
        }
        let (found, expected) = (offered.max_io_size, limits.max_io_size);
        if found < expected {
            return Err(Failure::MaxIoSize { found, expected });
        }
        limits.max_header_size = limits.max_header_size.min(offered.max_header_size);
        Ok(())
    }

    /// Records the epoch with which a path was connected. Returns true if the server has restarted the session while
    /// the client considered another path connected.
    pub(super) const fn path_connected(&mut self, epoch: u32, has_others: bool) -> bool {
        let is_other = self.epoch != epoch && has_others;
        self.epoch = epoch;
        self.is_lost |= is_other;
        is_other
    }
}

#[cfg(test)]
mod tests;
