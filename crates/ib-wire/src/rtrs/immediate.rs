//! The immediate data of RTRS: four bits that say what it is, and 28 that say more.
//!
//! ```text
//! request     0 | chunk, then the offset of the message in it: as many bits as chunks need, and the rest
//! response    1 | error number (9) | chunk (19)
//! response    2 | the same, after a SEND that has invalidated a remote key
//! heartbeat   8 | zero;   its answer   9 | zero
//! ```

use std::fmt;

/// Immediate data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Immediate(pub u32);

/// What immediate data says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// A request was written into a chunk; [`Immediate::chunk_and_offset`] splits the payload.
    Request {
        /// Chunk and offset.
        payload: u32,
    },
    /// A request was answered.
    Response {
        /// A SEND that has invalidated a remote key came before.
        has_invalidated: bool,
        /// An error number of Linux, 0 to 511; 0 for none.
        error: u16,
        /// The chunk of the request, 19 bits.
        chunk: u32,
    },
    /// A sign of life.
    Heartbeat {
        /// Zero.
        payload: u32,
    },
    /// The answer to one.
    HeartbeatAcknowledgement {
        /// Zero.
        payload: u32,
    },
    /// Something that nobody has named.
    Other {
        /// The upper four bits.
        kind: u8,
        /// The others.
        payload: u32,
    },
}

const PAYLOAD: u32 = 28;
const CHUNK: u32 = 19;

impl Immediate {
    /// A sign of life.
    pub const HEARTBEAT: Self = Self(8 << PAYLOAD);
    /// The answer to one.
    pub const HEARTBEAT_ACKNOWLEDGEMENT: Self = Self(9 << PAYLOAD);

    /// Makes immediate data of what it says; bits that do not fit are dropped.
    #[must_use]
    pub const fn new(meaning: Meaning) -> Self {
        let (kind, payload) = match meaning {
            Meaning::Request { payload } => (0, payload),
            Meaning::Response { has_invalidated, error, chunk } => {
                let error = (error as u32 & 0x1ff) << CHUNK;
                (1 + has_invalidated as u32, error | chunk & ((1 << CHUNK) - 1))
            }
            Meaning::Heartbeat { payload } => (8, payload),
            Meaning::HeartbeatAcknowledgement { payload } => (9, payload),
            Meaning::Other { kind, payload } => (kind as u32 & 15, payload),
        };
        Self(kind << PAYLOAD | payload & ((1 << PAYLOAD) - 1))
    }

    /// Returns what it says.
    #[must_use]
    pub const fn meaning(self) -> Meaning {
        let payload = self.0 & ((1 << PAYLOAD) - 1);
        match (self.0 >> PAYLOAD) as u8 {
            0 => Meaning::Request { payload },
            kind @ (1 | 2) => Meaning::Response {
                has_invalidated: kind == 2,
                error: (payload >> CHUNK) as u16,
                chunk: payload & ((1 << CHUNK) - 1),
            },
            8 => Meaning::Heartbeat { payload },
            9 => Meaning::HeartbeatAcknowledgement { payload },
            kind => Meaning::Other { kind, payload },
        }
    }

    /// Returns that of a request whose message is at an offset of a chunk, for a server with so many
    /// chunks; bits that do not fit are dropped.
    #[must_use]
    pub const fn request(queue_depth: u16, chunk: u32, offset: u32) -> Self {
        let bits = offset_bits(queue_depth);
        let payload = ((chunk as u64) << bits) as u32 | offset & ((1 << bits) - 1);
        Self::new(Meaning::Request { payload })
    }

    /// Splits the payload of a request for a server with so many chunks.
    #[must_use]
    pub const fn chunk_and_offset(payload: u32, queue_depth: u16) -> (u32, u32) {
        let bits = offset_bits(queue_depth);
        (payload >> bits, payload & ((1 << bits) - 1))
    }
}

/// Returns how many bits the offset has: what the number of a chunk leaves of 28.
const fn offset_bits(queue_depth: u16) -> u32 {
    let last = queue_depth.saturating_sub(1);
    PAYLOAD - (u16::BITS - last.leading_zeros())
}

impl fmt::Display for Immediate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.meaning() {
            Meaning::Request { payload } => write!(f, "request 0x{payload:07x}"),
            Meaning::Response { error, chunk, has_invalidated } => {
                let after = if has_invalidated { " after invalidation" } else { "" };
                write!(f, "response{after}, chunk {chunk}, error {error}")
            }
            Meaning::Heartbeat { .. } => f.write_str("heartbeat"),
            Meaning::HeartbeatAcknowledgement { .. } => f.write_str("heartbeat acknowledgement"),
            Meaning::Other { kind, payload } => write!(f, "type {kind}, 0x{payload:07x}"),
        }
    }
}
