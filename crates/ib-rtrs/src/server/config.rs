//! The configuration of a server.

use std::time::Duration;

use crate::{Heartbeats, SharedKey, Transport};

/// The configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Maximum number of requests in flight per session, 1 to 8192.
    pub queue_depth: u16,
    /// Maximum length of the data of a request in bytes.
    pub max_io_size: u32,
    /// Maximum total length of the user's header and the RTRS message that follows it, in bytes, 64 to 65536.
    pub max_header_size: u32,
    /// True if the key of a chunk is valid for one request only; each response then has a new key. If false, a client
    /// can change the data of a request while the server executes the request.
    pub always_invalidate: bool,
    /// True if clients of this project may fence failed paths; see [`ClientConfig::fence`](crate::ClientConfig::fence).
    pub fence: bool,
    /// The shared key: the server accepts only clients that prove that they have it. If `None`, the server accepts
    /// clients without proof, for example Linux.
    pub key: Option<SharedKey>,
    /// Maximum number of sessions.
    pub max_sessions: usize,
    /// Timeout of connecting a path.
    pub connect_timeout: Duration,
    /// Heartbeats by which the server detects dead clients.
    pub heartbeats: Heartbeats,
    /// Timeouts and retries of the queue pairs.
    pub transport: Transport,
}

impl Default for ServerConfig {
    /// The default values are those of Linux: 512 requests of up to 124 KiB with headers of up to 4 KiB, and a new key
    /// for each request.
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

    /// Returns the offset at which a chunk's READ data is stored in the memory of a session. READ data is stored after
    /// all chunks.
    pub(super) fn read_offset(&self, chunk: u16) -> usize {
        (usize::from(self.queue_depth) + usize::from(chunk)) * self.chunk_size() as usize
    }

    /// Limits queue depth and lengths. The 28-bit payload of immediate data can then address each byte of all chunks,
    /// whose total size fits in 32 bits.
    pub(super) fn clamped(mut self) -> Self {
        self.queue_depth = self.queue_depth.clamp(1, 8192);
        self.max_header_size = self.max_header_size.clamp(64, 65_536);
        let bits = u16::BITS - (self.queue_depth - 1).leading_zeros();
        let most = (1_u32 << (28 - bits)).min(u32::MAX / u32::from(self.queue_depth));
        self.max_header_size = self.max_header_size.min(most / 2);
        self.max_io_size = self.max_io_size.clamp(512, most - self.max_header_size);
        self
    }
}
