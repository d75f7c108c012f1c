//! What a read has read: bytes, or where they lie.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use ib_hca::Memory;

/// What a read has read.
#[derive(Debug)]
pub enum ReadData {
    /// Bytes of its own.
    Bytes(Vec<u8>),
    /// Registered memory, where they came in.
    Lent(Lent),
}

/// Pieces of registered memory, which go back to where they came from when this ends.
#[derive(Debug)]
pub struct Lent {
    memory: Arc<Memory>,
    /// In order.
    parts: Vec<Part>,
    /// How far the pieces are from each other.
    piece: usize,
    returns: Sender<usize>,
}

/// A piece, from its start on.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The slot of the store.
    pub slot: usize,
    /// Its length in bytes.
    pub length: usize,
}

/// Some of the bytes.
#[derive(Clone, Copy, Debug)]
pub enum Slice<'a> {
    /// They are here.
    Bytes(&'a [u8]),
    /// They are in memory that others may reach at the same time: from a place on, and how many.
    Memory(&'a Memory, usize, usize),
}

impl ReadData {
    /// Returns how many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Lent(lent) => lent.parts.iter().map(|part| part.length).sum(),
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes, which are copied where they are lent.
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

    /// Returns where the bytes are, in order.
    pub fn slices(&self) -> impl Iterator<Item = Slice<'_>> {
        let (bytes, lent) = match self {
            Self::Bytes(bytes) => (Some(Slice::Bytes(bytes)), None),
            Self::Lent(lent) => (None, Some(lent)),
        };
        let slice = |lent: &'_ Lent, part: &Part| (part.slot * lent.piece, part.length);
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
    /// Lends parts of a memory region. A part begins at byte `slot * piece`. When the data is dropped, its slot is returned
    /// over `returns`.
    #[must_use]
    pub const fn new(
        memory: Arc<Memory>,
        parts: Vec<Part>,
        piece: usize,
        returns: Sender<usize>,
    ) -> Self {
        Self { memory, parts, piece, returns }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        for part in &self.parts {
            // Where nobody is who lends any more, nothing has to go back.
            self.returns.send(part.slot).ok();
        }
    }
}

impl<'a> Slice<'a> {
    /// Returns how many bytes there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Memory(_, _, length) => *length,
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns those behind so many first ones, at most all.
    #[must_use]
    pub fn behind(self, skipped: usize) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Bytes(&bytes[skipped..]),
            Self::Memory(memory, start, length) => {
                Self::Memory(memory, start + skipped, length - skipped)
            }
        }
    }

    /// Appends them to others.
    pub fn append_to(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Bytes(own) => bytes.extend_from_slice(own),
            Self::Memory(memory, start, length) => {
                let at = bytes.len();
                bytes.resize(at + length, 0);
                memory.read(start, &mut bytes[at..]).expect("it lies within its memory");
            }
        }
    }
}
