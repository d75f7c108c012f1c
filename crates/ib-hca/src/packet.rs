//! Packets between engines and links: from the BTH to the end of the pad.

use ib_wire::packet::{Bth, Header, HeaderSet};

/// The longest packet: the largest payload, and the most headers before it.
pub const MAX_PACKET: usize = 4096 + 48;

/// A buffer that a packet is written into.
#[derive(Debug)]
pub(crate) struct Writer<'b> {
    buffer: &'b mut [u8],
    at: usize,
}

impl<'b> Writer<'b> {
    /// Starts at the beginning of a buffer of at least [`MAX_PACKET`] bytes.
    pub(crate) fn new(buffer: &'b mut [u8]) -> Self {
        assert!(buffer.len() >= MAX_PACKET, "a packet has up to {MAX_PACKET} bytes");
        Self { buffer, at: 0 }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.take(bytes.len()).copy_from_slice(bytes);
    }

    /// Returns the next bytes, to be filled.
    pub(crate) fn take(&mut self, length: usize) -> &mut [u8] {
        let start = self.at;
        self.at += length;
        &mut self.buffer[start..self.at]
    }

    /// Fills up to a multiple of four bytes with zeros.
    pub(crate) fn pad(&mut self) {
        let pad = self.at.wrapping_neg() & 3;
        self.take(pad).fill(0);
    }

    /// Starts at the beginning again.
    pub(crate) const fn restart(&mut self) {
        self.at = 0;
    }

    pub(crate) const fn len(&self) -> usize {
        self.at
    }

    /// Returns what was written.
    pub(crate) fn written(&self) -> &[u8] {
        &self.buffer[..self.at]
    }
}

/// A packet that has come in: its headers were found to be whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'p> {
    pub(crate) bth: Bth,
    headers: HeaderSet,
    extended: &'p [u8],
    pub(crate) payload: &'p [u8],
    /// All of it.
    pub(crate) bytes: &'p [u8],
}

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// They are too short for their headers, or their pad, or no multiple of four.
    Length,
    /// The operation code is none that is known.
    Opcode,
    /// The version of the transport is not 0.
    Version,
}

impl<'p> Packet<'p> {
    pub(crate) fn parse(bytes: &'p [u8]) -> Result<Self, Malformed> {
        let (bth, rest) = bytes.split_first_chunk().ok_or(Malformed::Length)?;
        let bth = Bth::parse(bth);
        if bth.transport_version != 0 {
            return Err(Malformed::Version);
        }
        let headers = bth.opcode.headers().ok_or(Malformed::Opcode)?;
        let length = headers.length();
        let pad = usize::from(bth.pad_count);
        if rest.len() < length + pad || !bytes.len().is_multiple_of(4) {
            return Err(Malformed::Length);
        }
        let (extended, payload) = rest.split_at(length);
        Ok(Self { bth, headers, extended, payload: &payload[..payload.len() - pad], bytes })
    }

    /// Returns a header that the operation has.
    pub(crate) fn header<const N: usize>(&self, header: Header) -> Option<&'p [u8; N]> {
        let at = self.headers.offset(header)?;
        self.extended.get(at..)?.first_chunk()
    }
}
