//! Packets between engines and links: from the BTH to the end of the pad.

use ib_wire::packet::{Bth, Header, HeaderSet};

/// The longest packet: the largest payload, and the most headers before it.
pub const MAX_PACKET: usize = 4096 + 48;

/// A buffer that a packet is written into.
#[derive(Debug)]
pub(crate) struct Writer<'b> {
    buffer: &'b mut [u8],
    at: usize,
    /// A copy of the start of the packet, where a trace wants it: the buffer cannot be read until what is gathered
    /// into it has arrived there.
    start: [u8; MOST_START],
    kept: usize,
    /// Whether it is wanted, and with how many bytes of the payload.
    keeps: Option<usize>,
}

/// How long the headers of a packet are at most, and how much of the payload is kept apart with them.
const MOST_HEADERS: usize = 64;
const MOST_PAYLOAD: usize = 128;
const MOST_START: usize = MOST_HEADERS + MOST_PAYLOAD;

impl<'b> Writer<'b> {
    /// Starts at the beginning of a buffer of at least [`MAX_PACKET`] bytes.
    pub(crate) fn new(buffer: &'b mut [u8]) -> Self {
        assert!(buffer.len() >= MAX_PACKET, "a packet has up to {MAX_PACKET} bytes");
        Self { buffer, at: 0, start: [0; MOST_START], kept: 0, keeps: None }
    }

    /// Has the headers of what is written from now on kept apart, with so many bytes of the payload, or not.
    pub(crate) const fn keep_start(&mut self, keeps: Option<usize>) {
        self.keeps = keeps;
    }

    /// Writes a header.
    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.take(bytes.len()).copy_from_slice(bytes);
    }

    /// Writes the start of the payload, as much of `length` bytes as is to be kept apart, which `read` gets; returns
    /// how much that was. The headers, which were written before, are kept apart with it.
    #[inline]
    pub(crate) fn put_kept<E>(
        &mut self,
        length: usize,
        read: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let Some(most) = self.keeps.filter(|_| self.at <= MOST_HEADERS) else { return Ok(0) };
        let length = length.min(most).min(MOST_PAYLOAD);
        // Copies of fixed lengths are a few instructions; what is too much of them is written over.
        self.start[..MOST_HEADERS].copy_from_slice(&self.buffer[..MOST_HEADERS]);
        let start = &mut self.start[self.at..];
        read(&mut start[..length])?;
        let buffer = &mut self.buffer[self.at..];
        for (from, to) in start[..MOST_PAYLOAD].chunks_exact(64).zip(buffer.chunks_exact_mut(64)) {
            to.copy_from_slice(from);
        }
        self.at += length;
        self.kept = self.at;
        Ok(length)
    }

    /// Returns the start of what was written, as far as it was kept apart; all of it where it was not.
    pub(crate) fn start(&self) -> &[u8] {
        if self.kept == 0 { self.written() } else { &self.start[..self.kept] }
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
        (self.at, self.kept) = (0, 0);
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
