//! Packets in the form in which the HCA and links exchange them: from the BTH to the end of the pad.

use ib_wire::packet::{Bth, Header, HeaderSet};

/// Maximum size of a packet in bytes: a payload of 4096 bytes and 48 bytes of headers.
pub const MAX_PACKET: usize = 4096 + 48;

/// Writes a packet into a buffer.
#[derive(Debug)]
pub(crate) struct Writer<'b> {
    buffer: &'b mut [u8],
    length: usize,
    /// Copy of the headers and of the first payload bytes, for a packet trace. The trace reads this copy, because
    /// reading bytes that were just stored in the buffer would stall the processor.
    head: [u8; MOST_HEAD],
    /// Number of bytes in `head`; 0 if nothing was copied.
    head_length: usize,
    /// Number of payload bytes to copy; `None` if the packet is not traced.
    traced_payload: Option<usize>,
}

/// Maximum size in bytes of the headers in the copy for the packet trace.
const MOST_HEADERS: usize = 64;
/// Maximum size in bytes of the payload in the copy for the packet trace.
const MOST_PAYLOAD: usize = 128;
const MOST_HEAD: usize = MOST_HEADERS + MOST_PAYLOAD;

impl<'b> Writer<'b> {
    /// Creates a writer for a buffer of at least [`MAX_PACKET`] bytes.
    pub(crate) fn new(buffer: &'b mut [u8]) -> Self {
        assert!(
            buffer.len() >= MAX_PACKET,
            "the buffer has {} bytes: expected at least {MAX_PACKET}",
            buffer.len()
        );
        Self { buffer, length: 0, head: [0; MOST_HEAD], head_length: 0, traced_payload: None }
    }

    /// Sets the number of payload bytes that are copied for a packet trace; `None` for no copy.
    pub(crate) const fn set_traced_payload(&mut self, traced_payload: Option<usize>) {
        self.traced_payload = traced_payload;
    }

    /// Appends a copy of `bytes` to the packet.
    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.append(bytes.len()).copy_from_slice(bytes);
    }

    /// For a traced packet, appends the first payload bytes, which `read` provides, and copies these bytes and the
    /// headers for the trace. Returns the number of appended bytes, at most `length`. Does nothing and returns 0 if the
    /// packet is not traced.
    #[inline]
    pub(crate) fn put_traced<E>(
        &mut self,
        length: usize,
        read: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let Some(most) = self.traced_payload.filter(|_| self.length <= MOST_HEADERS) else {
            return Ok(0);
        };
        let length = length.min(most).min(MOST_PAYLOAD);
        // Both copies below have a fixed size, so each takes only a few instructions. Bytes copied beyond the headers
        // or the payload are overwritten later or never read.
        self.head[..MOST_HEADERS].copy_from_slice(&self.buffer[..MOST_HEADERS]);
        let payload = &mut self.head[self.length..];
        read(&mut payload[..length])?;
        let buffer = &mut self.buffer[self.length..];
        for (from, to) in payload[..MOST_PAYLOAD].chunks_exact(64).zip(buffer.chunks_exact_mut(64))
        {
            to.copy_from_slice(from);
        }
        self.length += length;
        self.head_length = self.length;
        Ok(length)
    }

    /// Returns the copied headers and first payload bytes, or the whole packet if nothing was copied.
    pub(crate) fn head(&self) -> &[u8] {
        if self.head_length == 0 { self.written() } else { &self.head[..self.head_length] }
    }

    /// Extends the packet by `length` bytes, and returns these bytes for the caller to fill.
    pub(crate) fn append(&mut self, length: usize) -> &mut [u8] {
        let start = self.length;
        self.length += length;
        &mut self.buffer[start..self.length]
    }

    /// Pads the packet with zeros to a multiple of 4 bytes.
    pub(crate) fn pad(&mut self) {
        let pad = self.length.wrapping_neg() & 3;
        self.append(pad).fill(0);
    }

    /// Discards the bytes written so far.
    pub(crate) const fn restart(&mut self) {
        (self.length, self.head_length) = (0, 0);
    }

    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    /// Returns the bytes written so far.
    pub(crate) fn written(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

/// A received packet whose headers are complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'p> {
    pub(crate) bth: Bth,
    headers: HeaderSet,
    extended: &'p [u8],
    pub(crate) payload: &'p [u8],
    /// The whole packet.
    pub(crate) bytes: &'p [u8],
}

/// Reason why bytes are not a valid packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParseError {
    /// The packet is too short for its headers and its pad, or its size is not a multiple of 4 bytes.
    Length,
    /// The opcode is unknown.
    Opcode,
    /// The transport version is not 0.
    Version,
}

impl<'p> Packet<'p> {
    pub(crate) fn parse(bytes: &'p [u8]) -> Result<Self, ParseError> {
        let (bth, rest) = bytes.split_first_chunk().ok_or(ParseError::Length)?;
        let bth = Bth::parse(bth);
        if bth.transport_version != 0 {
            return Err(ParseError::Version);
        }
        let headers = bth.opcode.headers().ok_or(ParseError::Opcode)?;
        let length = headers.length();
        let pad = usize::from(bth.pad_count);
        if rest.len() < length + pad || !bytes.len().is_multiple_of(4) {
            return Err(ParseError::Length);
        }
        let (extended, payload) = rest.split_at(length);
        Ok(Self { bth, headers, extended, payload: &payload[..payload.len() - pad], bytes })
    }

    /// Returns an extended header; `None` if the opcode has no such header.
    pub(crate) fn header<const N: usize>(&self, header: Header) -> Option<&'p [u8; N]> {
        let at = self.headers.offset(header)?;
        self.extended.get(at..)?.first_chunk()
    }
}
