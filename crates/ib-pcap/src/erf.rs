//! Records of the Extensible Record Format (ERF), which carry native InfiniBand packets.
//!
//! ```text
//! 0                       8      9       10        12        14        16
//! +-----------------------+------+-------+---------+---------+---------+------
//! | time, 32.32 s, little | type | flags | length  |  lost   |  wire   | LRH …
//! |        endian         |  21  |       | (rlen)  | (lctr)  | (wlen)  |
//! +-----------------------+------+-------+---------+---------+---------+------
//! ```
//!
//! All fields but the time are big-endian. The record length (rlen) includes the header and is
//! rounded up to a multiple of 8. In capture files the record ends without this padding. The wire
//! length (wlen) is the size from the LRH to the VCRC. Source: Endace, "ERF Types Reference Guide",
//! type 21.

/// Header of an ERF record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErfHeader {
    /// Time in nanoseconds since 1970.
    pub time: u64,
    /// Record type, [`ErfHeader::INFINIBAND`].
    pub kind: u8,
    /// Port of the capture card, 0 to 3.
    pub port: u8,
    /// True if the packet is truncated.
    pub truncated: bool,
    /// True if the packet was received with an error.
    pub receive_error: bool,
    /// Number of packets lost since the previous record.
    pub lost: u16,
    /// Wire length in bytes, from the LRH to the VCRC.
    pub wire_length: u16,
}

/// The reason why an ERF record cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErfError {
    /// The record ends within its headers.
    #[error("the ERF record ends at byte {found}: expected {expected} bytes of headers")]
    Truncated {
        /// Minimum size of the headers in bytes.
        expected: usize,
        /// Size of the record in bytes.
        found: usize,
    },
    /// The record does not contain an InfiniBand packet.
    #[error("the ERF record's type at byte 8 is {found}: expected 21 (InfiniBand)")]
    Type {
        /// Record type.
        found: u8,
    },
}

impl ErfHeader {
    /// Size of the header in bytes, without extension headers.
    pub const LENGTH: usize = 16;

    /// Record type of native InfiniBand packets.
    pub const INFINIBAND: u8 = 21;

    const EXTENSION: u8 = 0x80;
    const EXTENSION_LENGTH: usize = 8;
    const VARYING_LENGTH: u8 = 0x04;
    const TRUNCATED: u8 = 0x08;
    const RECEIVE_ERROR: u8 = 0x10;

    /// Formats the header of a record that contains `captured` bytes of the packet.
    #[must_use]
    pub fn to_bytes(&self, captured: usize) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&to_fixed_point(self.time).to_le_bytes());
        bytes[8] = self.kind;
        bytes[9] = self.port & 3
            | Self::VARYING_LENGTH
            | if self.truncated { Self::TRUNCATED } else { 0 }
            | if self.receive_error { Self::RECEIVE_ERROR } else { 0 };
        let length = (Self::LENGTH + captured).next_multiple_of(8);
        let length = u16::try_from(length).unwrap_or(!7);
        bytes[10..12].copy_from_slice(&length.to_be_bytes());
        bytes[12..14].copy_from_slice(&self.lost.to_be_bytes());
        bytes[14..16].copy_from_slice(&self.wire_length.to_be_bytes());
        bytes
    }

    /// Parses an ERF record that contains an InfiniBand packet. Returns the record's header and the
    /// captured part of the packet. Skips extension headers and padding.
    ///
    /// # Errors
    /// Fails if the headers are truncated, or if the record type is not InfiniBand.
    pub fn parse(record: &[u8]) -> Result<(Self, &[u8]), ErfError> {
        let short = |expected| ErfError::Truncated { expected, found: record.len() };
        let head: &[u8; Self::LENGTH] = record.first_chunk().ok_or(short(Self::LENGTH))?;
        let kind = head[8] & !Self::EXTENSION;
        if kind != Self::INFINIBAND {
            return Err(ErfError::Type { found: kind });
        }
        let mut start = Self::LENGTH;
        let mut more = head[8] & Self::EXTENSION != 0;
        while more {
            let end = start + Self::EXTENSION_LENGTH;
            let extension = record.get(start..end).ok_or(short(end))?;
            more = extension[0] & Self::EXTENSION != 0;
            start = end;
        }
        let time = *head.first_chunk().expect("the header has 16 bytes");
        let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let header = Self {
            time: from_fixed_point(u64::from_le_bytes(time)),
            kind,
            port: head[9] & 3,
            truncated: head[9] & Self::TRUNCATED != 0,
            receive_error: head[9] & Self::RECEIVE_ERROR != 0,
            lost: word(12),
            wire_length: word(14),
        };
        let end = record.len().min(start + usize::from(header.wire_length));
        Ok((header, &record[start..end]))
    }
}

const BILLION: u64 = 1_000_000_000;

/// Converts nanoseconds to a 32.32 fixed-point number of seconds. Rounds up, so that the inverse
/// conversion returns the same nanoseconds. The seconds overflow in 2106.
fn to_fixed_point(nanoseconds: u64) -> u64 {
    let fraction = ((nanoseconds % BILLION) << 32).div_ceil(BILLION);
    ((nanoseconds / BILLION) << 32) | fraction
}

fn from_fixed_point(time: u64) -> u64 {
    let fraction = ((time & u64::from(u32::MAX)) * BILLION) >> 32;
    (time >> 32) * BILLION + fraction
}

#[cfg(test)]
mod tests;
