//! The data that a read returns: owned bytes, or registered memory that a buffer pool has lent.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use ib_hca::Memory;

/// The data that a read returns.
#[derive(Debug)]
pub enum ReadData {
    /// Owned bytes.
    Bytes(Vec<u8>),
    /// Registered memory into which the data was received.
    Lent(Lent),
}

/// Buffers of registered memory that a pool has lent. Dropping a `Lent` returns the buffers to the pool.
#[derive(Debug)]
pub struct Lent {
    memory: Arc<Memory>,
    /// The buffers that hold the data, in the order of the data.
    parts: Vec<Part>,
    /// Length of each buffer of the pool in bytes.
    buffer_length: usize,
    returns: Sender<usize>,
}

/// A buffer that holds data from its first byte on.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The index of the buffer in its pool.
    pub slot: usize,
    /// Length of the data in bytes.
    pub length: usize,
}

/// A contiguous part of the data of a read.
#[derive(Clone, Copy, Debug)]
pub enum Slice<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// Registered memory, and the offset and length of the slice in bytes. Other threads or HCAs may be accessing this
    /// memory.
    Memory(&'a Memory, usize, usize),
}

impl ReadData {
    /// Returns the length of the data in bytes.
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

    /// Returns the data as one slice. Lent memory is copied, owned bytes are not.
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

    /// Returns the contiguous parts of the data, in order.
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
    /// Wraps buffers of `memory` that a pool has lent. The buffer with index `slot` starts at byte
    /// `slot * buffer_length`. When the `Lent` is dropped, it sends the index of each buffer to `returns`.
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
            // The send fails only if the pool no longer exists.
            self.returns.send(part.slot).ok();
        }
    }
}

impl<'a> Slice<'a> {
    /// Returns the length of the slice in bytes.
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

    /// Returns the slice without its first `skipped` bytes.
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

    /// Appends a copy of this slice's bytes to `bytes`.
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
