//! The data of a read: bytes, or lent registered memory.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use ib_hca::Memory;

/// The data of a read.
#[derive(Debug)]
pub enum ReadData {
    /// Owned bytes.
    Bytes(Vec<u8>),
    /// Registered memory into which the data was received.
    Lent(Lent),
}

/// Buffers of registered memory, which are returned to their pool when this is dropped.
#[derive(Debug)]
pub struct Lent {
    memory: Arc<Memory>,
    /// The buffers with data, in order.
    parts: Vec<Part>,
    /// Length of a buffer in bytes.
    buffer_length: usize,
    returns: Sender<usize>,
}

/// The data in one buffer, from its start.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The index of the buffer in its pool.
    pub slot: usize,
    /// Length of the data in bytes.
    pub length: usize,
}

/// A part of the data.
#[derive(Clone, Copy, Debug)]
pub enum Slice<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// Offset and length in memory that other threads or HCAs may access.
    Memory(&'a Memory, usize, usize),
}

impl ReadData {
    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Lent(lent) => lent.parts.iter().map(|part| part.length).sum(),
        }
    }

    /// Returns true if the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes. Lent memory is copied.
    #[must_use]
    pub fn copied(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Bytes(bytes) => Cow::Borrowed(bytes),
            Self::Lent(_) => {
                let mut bytes = Vec::with_capacity(self.len());
                self.slices().for_each(|slice| slice.append_to(&mut bytes));
                Cow::Owned(bytes)
            }
        }
    }

    /// Returns the parts of the data, in order.
    pub fn slices(&self) -> impl Iterator<Item = Slice<'_>> {
        let (bytes, lent) = match self {
            Self::Bytes(bytes) => (Some(Slice::Bytes(bytes)), None),
            Self::Lent(lent) => (None, Some(lent)),
        };
        let slice = |lent: &'_ Lent, part: &Part| (part.slot * lent.buffer_length, part.length);
        let lent = lent.into_iter().flat_map(move |lent| {
            lent.parts.iter().map(move |part| {
                let (start, length) = slice(lent, part);
                Slice::Memory(&lent.memory, start, length)
            })
        });
        bytes.into_iter().chain(lent)
    }
}

impl Default for ReadData {
    fn default() -> Self {
        Self::Bytes(Vec::new())
    }
}

impl From<Vec<u8>> for ReadData {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl Lent {
    /// Lends buffers of a memory region. The data of a part starts at byte `slot * buffer_length`. When this is dropped, the
    /// slots are sent over `returns`.
    #[must_use]
    pub const fn new(
        memory: Arc<Memory>,
        parts: Vec<Part>,
        buffer_length: usize,
        returns: Sender<usize>,
    ) -> Self {
        Self { memory, parts, buffer_length, returns }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        for part in &self.parts {
            // The pool may have been dropped.
            self.returns.send(part.slot).ok();
        }
    }
}

impl<'a> Slice<'a> {
    /// Returns the length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Memory(_, _, length) => *length,
        }
    }

    /// Returns true if the length is 0.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Skips the first bytes.
    ///
    /// # Panics
    /// Panics if `skipped` exceeds the length.
    #[must_use]
    pub fn behind(self, skipped: usize) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Bytes(&bytes[skipped..]),
            Self::Memory(memory, start, length) => {
                Self::Memory(memory, start + skipped, length - skipped)
            }
        }
    }

    /// Appends a copy of the bytes to a buffer.
    pub fn append_to(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Bytes(own) => bytes.extend_from_slice(own),
            Self::Memory(memory, start, length) => {
                let at = bytes.len();
                bytes.resize(at + length, 0);
                memory.read(start, &mut bytes[at..]).expect("a slice is within its memory");
            }
        }
    }
}
