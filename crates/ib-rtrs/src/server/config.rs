//! How a server works.

use std::time::Duration;

use crate::{Heartbeats, SharedKey, Transport};

/// How a server works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// How many requests a session may have at once, 1 to 8192.
    pub queue_depth: u16,
    /// The longest data of a request in bytes.
    pub max_io_size: u32,
    /// The longest header of a request, with the message behind it, in bytes, 64 to 65536.
    pub max_header_size: u32,
    /// Whether the key of a chunk opens it for one request only, after which the client gets another one. Without it a
    /// client can change what it has written while that is being processed.
    pub always_invalidate: bool,
    /// Whether clients of this project may have dead paths fenced.
    pub fence: bool,
    /// The key that clients have to know; `None` for none, as with Linux, whose clients know none.
    pub key: Option<SharedKey>,
    /// The most sessions.
    pub max_sessions: usize,
    /// How long a path may take to be connected.
    pub connect_timeout: Duration,
    /// How the end of the other side is noticed.
    pub heartbeats: Heartbeats,
    /// How packets are repeated.
    pub transport: Transport,
}

impl Default for ServerConfig {
    /// What Linux has: 512 requests of up to 124 KiB with headers of up to 4 KiB, of which keys change.
    fn default() -> Self {
        Self {
            queue_depth: 512,
            max_io_size: 126_976,
            max_header_size: 4096,
            always_invalidate: true,
            fence: true,
            key: None,
            max_sessions: 1024,
            connect_timeout: Duration::from_secs(60),
            heartbeats: Heartbeats::default(),
            transport: Transport::default(),
        }
    }
}

impl ServerConfig {
    /// Returns the size of a chunk in bytes.
    #[must_use]
    pub const fn chunk_size(&self) -> u32 {
        self.max_io_size.saturating_add(self.max_header_size)
    }

    /// Returns where in a session's memory that is put which the request in a chunk reads: behind all chunks.
    pub(super) fn read_place(&self, chunk: u16) -> usize {
        (usize::from(self.queue_depth) + usize::from(chunk)) * self.chunk_size() as usize
    }

    /// Returns it with values that immediate data and memory have room for: requests get shorter where they would be
    /// too long, and fewer where there would be too many.
    pub(super) fn sensible(mut self) -> Self {
        self.queue_depth = self.queue_depth.clamp(1, 8192);
        self.max_header_size = self.max_header_size.clamp(64, 65_536);
        let bits = u16::BITS - (self.queue_depth - 1).leading_zeros();
        let most = (1_u32 << (28 - bits)).min(u32::MAX / u32::from(self.queue_depth));
        self.max_header_size = self.max_header_size.min(most / 2);
        self.max_io_size = self.max_io_size.clamp(512, most - self.max_header_size);
        self
    }
}
