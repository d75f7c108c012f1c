//! What can be wrong with a packet.

use super::Opcode;

/// Why bytes are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The bytes end within something that must be there.
    #[error("the packet ends at byte {found}, within {what} (bytes {offset} to {expected})")]
    Truncated {
        /// What is cut off.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// Where it ends: the number of bytes that are needed.
        expected: usize,
        /// The number of bytes that there are.
        found: usize,
    },
    /// A length does not fit what is there.
    #[error("{what} at byte {offset} is {found}: expected {expected}")]
    Length {
        /// The field.
        what: &'static str,
        /// Where it stands.
        offset: usize,
        /// The value that would fit, in the field's unit.
        expected: usize,
        /// The value.
        found: usize,
    },
    /// The bytes from the BTH on are no multiple of four.
    #[error("{found} bytes from byte {offset} to the end: expected a multiple of 4")]
    NotWords {
        /// Where the BTH starts.
        offset: usize,
        /// The number of bytes from there.
        found: usize,
    },
    /// A field has a value that this reader cannot go on from.
    #[error("{what} at byte {offset} is {found}: expected {expected}")]
    Value {
        /// The field.
        what: &'static str,
        /// Where it stands.
        offset: usize,
        /// What would do.
        expected: &'static str,
        /// The value.
        found: u32,
    },
    /// A checksum is not the one of the bytes.
    #[error("{what} at byte {offset} is 0x{found:x}: expected 0x{expected:x}")]
    Checksum {
        /// ICRC or VCRC.
        what: &'static str,
        /// Where it stands.
        offset: usize,
        /// The checksum of the bytes.
        expected: u32,
        /// What the packet says.
        found: u32,
    },
}

/// Why headers and a payload are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A header that the operation needs was not given.
    #[error("{opcode} needs the header {header}, which was not given")]
    MissingHeader {
        /// The operation.
        opcode: Opcode,
        /// The header's name.
        header: &'static str,
    },
    /// A header was given that the operation does not have.
    #[error("{opcode} has no header {header}, but one was given")]
    ExtraHeader {
        /// The operation.
        opcode: Opcode,
        /// The header's name.
        header: &'static str,
    },
    /// A packet of one kind was asked for with the headers of another.
    #[error("{found}: expected {expected}")]
    Framing {
        /// What was given or not given.
        found: &'static str,
        /// What the kind of packet needs.
        expected: &'static str,
    },
    /// The packet would be longer than its length fields can say.
    #[error("the packet has {found} bytes: expected at most {limit}")]
    TooLong {
        /// The length in bytes.
        found: usize,
        /// The longest there can be.
        limit: usize,
    },
    /// The buffer is too small.
    #[error("the buffer has {found} bytes: expected at least {expected}")]
    Buffer {
        /// The length of the packet.
        expected: usize,
        /// The length of the buffer.
        found: usize,
    },
}
