//! Errors of parsing and building packets.

use super::Opcode;

/// The reason why a packet cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The packet ends within a header, the pad or a checksum.
    #[error("the packet ends at byte {found}, within {what} (bytes {offset} to {expected})")]
    Truncated {
        /// The name of the header or other part that is truncated.
        what: &'static str,
        /// The byte offset in the packet at which the truncated part begins.
        offset: usize,
        /// The byte offset at which the truncated part would end, which is the minimum length of the packet.
        expected: usize,
        /// The length of the packet in bytes.
        found: usize,
    },
    /// A length field contradicts the length of the packet.
    #[error("{what} at byte {offset} is {found}: expected {expected}")]
    Length {
        /// The name of the length field.
        what: &'static str,
        /// The byte offset of the field in the packet.
        offset: usize,
        /// The value that fits the length of the packet, in the unit of the field.
        expected: usize,
        /// The value of the field in the packet.
        found: usize,
    },
    /// The number of bytes from the BTH to the end of the packet is not a multiple of 4.
    #[error(
        "the packet has {found} bytes from the BTH at byte {offset} to the end: expected a multiple of 4"
    )]
    NotWords {
        /// The byte offset of the BTH in the packet.
        offset: usize,
        /// The number of bytes from the BTH to the end of the packet.
        found: usize,
    },
    /// A field has an unsupported value.
    #[error("{what} at byte {offset} is {found}: expected {expected}")]
    Value {
        /// The name of the field.
        what: &'static str,
        /// The byte offset of the field in the packet.
        offset: usize,
        /// The supported values, as text of the error message.
        expected: &'static str,
        /// The value of the field in the packet.
        found: u32,
    },
    /// A checksum field differs from the checksum computed from the packet.
    #[error("{what} at byte {offset} is 0x{found:x}: expected 0x{expected:x}")]
    Checksum {
        /// `ICRC` or `VCRC`.
        what: &'static str,
        /// The byte offset of the field in the packet.
        offset: usize,
        /// The checksum computed from the packet.
        expected: u32,
        /// The value of the checksum field in the packet.
        found: u32,
    },
}

/// The reason why a packet cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A header that the opcode requires was not set.
    #[error("{opcode} needs the header {header}, which was not given")]
    MissingHeader {
        /// The opcode.
        opcode: Opcode,
        /// The name of the missing header.
        header: &'static str,
    },
    /// A header was set that the opcode does not have.
    #[error("{opcode} has no header {header}, but one was given")]
    ExtraHeader {
        /// The opcode.
        opcode: Opcode,
        /// The name of the header that the opcode does not have.
        header: &'static str,
    },
    /// The LRH of a native packet is missing, or a RoCEv2 packet has an LRH or a GRH.
    #[error("{found}: expected {expected}")]
    Framing {
        /// Text of the error message: the LRH or GRH that is missing or must not be set.
        found: &'static str,
        /// Text of the error message: the headers that the native or RoCEv2 packet must have.
        expected: &'static str,
    },
    /// The packet is longer than `Builder::MAX_NATIVE` or `Builder::MAX_ROCE`.
    #[error("the packet has {found} bytes: expected at most {limit}")]
    TooLong {
        /// The length of the packet in bytes.
        found: usize,
        /// The maximum length in bytes of a packet of this kind, native or RoCEv2.
        limit: usize,
    },
    /// The buffer is shorter than the packet.
    #[error("the buffer has {found} bytes: expected at least {expected}")]
    Buffer {
        /// The length of the packet in bytes.
        expected: usize,
        /// The length of the buffer in bytes.
        found: usize,
    },
}
