//! Immediate data of RTRS, which consists of a type of 4 bits and a payload of 28 bits.
//!
//! ```text
//! request        0 | chunk index (bits: as many as the queue depth needs) | offset in the chunk
//! response       1 | error number (9 bits) | chunk index (19 bits)
//! response       2 | error number (9 bits) | chunk index (19 bits); after a SEND with invalidate
//! heartbeat      8 | zero
//! heartbeat ack  9 | zero
//! ```

use std::fmt;

/// The immediate data of an RTRS packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Immediate(pub u32);

/// Decoded immediate data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImmediateKind {
    /// The client has written a request into a chunk.
    Request {
        /// The chunk and the offset of the message in it; see [`Immediate::chunk_and_offset`].
        payload: u32,
    },
    /// The server has completed a request.
    Response {
        /// True if the server has invalidated an R_Key of the client with a SEND with invalidate.
        has_invalidated: bool,
        /// A Linux error number, 0 to 511; 0 for success.
        error: u16,
        /// The index of the chunk that contained the request, 19 bits.
        chunk: u32,
    },
    /// A heartbeat.
    Heartbeat {
        /// The payload, which Linux and ibfabric set to zero.
        payload: u32,
    },
    /// The acknowledgement of a heartbeat.
    HeartbeatAcknowledgement {
        /// The payload, which Linux and ibfabric set to zero.
        payload: u32,
    },
    /// Immediate data of unknown type.
    Other {
        /// The type: the upper four bits.
        kind: u8,
        /// The payload: the lower 28 bits.
        payload: u32,
    },
}

/// The number of bits of the payload.
const PAYLOAD: u32 = 28;
/// The number of bits of the chunk index in a response.
const CHUNK: u32 = 19;

impl Immediate {
    /// A heartbeat.
    pub const HEARTBEAT: Self = Self(8 << PAYLOAD);
    /// The acknowledgement of a heartbeat.
    pub const HEARTBEAT_ACKNOWLEDGEMENT: Self = Self(9 << PAYLOAD);

    /// Encodes immediate data. Drops bits that do not fit into their field.
    #[must_use]
    pub const fn new(kind: ImmediateKind) -> Self {
        let (kind, payload) = match kind {
            ImmediateKind::Request { payload } => (0, payload),
            ImmediateKind::Response { has_invalidated, error, chunk } => {
                let error = (error as u32 & 0x1ff) << CHUNK;
                (1 + has_invalidated as u32, error | chunk & ((1 << CHUNK) - 1))
            }
            ImmediateKind::Heartbeat { payload } => (8, payload),
            ImmediateKind::HeartbeatAcknowledgement { payload } => (9, payload),
            ImmediateKind::Other { kind, payload } => (kind as u32 & 15, payload),
        };
        Self(kind << PAYLOAD | payload & ((1 << PAYLOAD) - 1))
    }

    /// Decodes the immediate data.
    #[must_use]
    pub const fn kind(self) -> ImmediateKind {
        let payload = self.0 & ((1 << PAYLOAD) - 1);
        match (self.0 >> PAYLOAD) as u8 {
            0 => ImmediateKind::Request { payload },
            kind @ (1 | 2) => ImmediateKind::Response {
                has_invalidated: kind == 2,
                error: (payload >> CHUNK) as u16,
                chunk: payload & ((1 << CHUNK) - 1),
            },
            8 => ImmediateKind::Heartbeat { payload },
            9 => ImmediateKind::HeartbeatAcknowledgement { payload },
            kind => ImmediateKind::Other { kind, payload },
        }
    }

    /// Encodes the immediate data of a request whose message is at byte `offset` of chunk `chunk`.
    /// `queue_depth` is the number of chunks of the server. Drops bits that do not fit into their
    /// field.
    #[must_use]
    pub const fn request(queue_depth: u16, chunk: u32, offset: u32) -> Self {
        let bits = offset_bits(queue_depth);
        let payload = ((chunk as u64) << bits) as u32 | offset & ((1 << bits) - 1);
        Self::new(ImmediateKind::Request { payload })
    }

    /// Splits the payload of a request into the chunk and the offset of the message. `queue_depth`
    /// is the number of chunks of the server.
    #[must_use]
    pub const fn chunk_and_offset(payload: u32, queue_depth: u16) -> (u32, u32) {
        let bits = offset_bits(queue_depth);
        (payload >> bits, payload & ((1 << bits) - 1))
    }
}

/// Returns the number of bits of an offset: 28 minus the number of bits of a chunk index.
const fn offset_bits(queue_depth: u16) -> u32 {
    let last = queue_depth.saturating_sub(1);
    PAYLOAD - (u16::BITS - last.leading_zeros())
}

impl fmt::Display for Immediate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            ImmediateKind::Request { payload } => write!(f, "request 0x{payload:07x}"),
            ImmediateKind::Response { error, chunk, has_invalidated } => {
                let after = if has_invalidated { " after invalidation" } else { "" };
                write!(f, "response{after}, chunk {chunk}, error {error}")
            }
            ImmediateKind::Heartbeat { .. } => f.write_str("heartbeat"),
            ImmediateKind::HeartbeatAcknowledgement { .. } => {
                f.write_str("heartbeat acknowledgement")
            }
            ImmediateKind::Other { kind, payload } => write!(f, "type {kind}, 0x{payload:07x}"),
        }
    }
}
