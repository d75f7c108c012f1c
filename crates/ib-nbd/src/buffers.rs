//! The input buffer and the output queue of a connection.

use std::collections::VecDeque;

use ib_block::data::{ReadData, Slice};

/// A contiguous buffer of bytes that were received and not processed yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// Minimum free space in bytes that [`Input::room`] returns.
const ROOM: usize = 64 << 10;

/// Maximum size in bytes of an empty buffer that [`Input::shrink`] keeps.
const IDLE: usize = 1 << 20;

impl Input {
    /// Returns the free space for input. `wanted` is the number of bytes that the buffer must hold before the next
    /// message can be processed.
    ///
    /// One call allocates at most [`ROOM`] bytes, or the number of unprocessed bytes if this is more. So the buffer
    /// grows with the data that has arrived, not with the length that a client announces.
    pub(super) fn room(&mut self, wanted: usize) -> &mut [u8] {
        let needed = self.needed(wanted);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.bytes.len() - self.end < needed && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.bytes.len() - self.end < needed {
            // The buffer grows by exactly the needed size, since the memory budget counts allocated bytes.
            self.bytes.reserve_exact(self.end + needed - self.bytes.len());
            self.bytes.resize(self.end + needed, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Returns the minimum length in bytes of the free space that [`Input::room`] returns for the same `wanted`.
    fn needed(&self, wanted: usize) -> usize {
        let waiting = self.end - self.start;
        wanted.saturating_sub(waiting).min(waiting).max(ROOM)
    }

    /// Returns the number of bytes that [`Input::room`] would allocate.
    pub(super) fn growth(&self, wanted: usize) -> usize {
        (self.len() + self.needed(wanted)).saturating_sub(self.bytes.capacity())
    }

    /// Records that the first `length` bytes of the free space were filled with input.
    pub(super) fn filled(&mut self, length: usize) {
        assert!(length <= self.bytes.len() - self.end, "input must fit into the free space");
        self.end += length;
    }

    pub(super) fn waiting(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Returns the first `N` bytes without removing them; `None` if there are fewer.
    pub(super) fn peek<const N: usize>(&self) -> Option<&[u8; N]> {
        self.waiting().first_chunk()
    }

    /// Removes and returns the first `length` bytes.
    pub(super) fn take(&mut self, length: usize) -> &[u8] {
        let start = self.start;
        self.start += length;
        &self.bytes[start..self.start]
    }

    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Returns the allocated size in bytes.
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    /// Frees the buffer if it is empty and large.
    pub(super) fn shrink(&mut self) {
        if self.start == self.end && self.bytes.capacity() > IDLE {
            *self = Self::default();
        }
    }
}

/// Data of at least this length is sent without a copy. Shorter data is copied behind the headers, which costs less
/// than sending it as a slice of its own.
const MIN_UNCOPIED: usize = 16 << 10;

/// A buffer of headers that has reached this length in bytes gets no more headers. A buffer is freed or reused only
/// after all its bytes were sent, so this limit bounds the memory of sent headers.
const MAX_HEADERS: usize = 64 << 10;

#[derive(Debug)]
enum Piece {
    Headers(Vec<u8>),
    Data(ReadData),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Headers(bytes) => bytes.len(),
            Self::Data(data) => data.len(),
        }
    }

    /// Returns the bytes of this piece of the output as slices, in order.
    fn slices(&self) -> impl Iterator<Item = Slice<'_>> {
        let (words, data) = match self {
            Self::Headers(bytes) => (Some(Slice::Bytes(bytes)), None),
            Self::Data(data) => (None, Some(data)),
        };
        words.into_iter().chain(data.into_iter().flat_map(ReadData::slices))
    }
}

/// The bytes that are to be sent, in order.
#[derive(Debug, Default)]
pub(super) struct Output {
    pieces: VecDeque<Piece>,
    /// Number of bytes of the first piece that were sent already.
    sent: usize,
    /// Total number of unsent bytes.
    length: usize,
    /// Data that was sent or need not be sent, and returns to the owner of the session.
    used: Vec<ReadData>,
    /// An empty buffer, which the next headers use.
    spare: Vec<u8>,
}

impl Output {
    pub(super) fn extend(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.length += bytes.len();
        if let Some(Piece::Headers(words)) = self.pieces.back_mut()
            && words.len() < MAX_HEADERS
        {
            return words.extend_from_slice(bytes);
        }
        let mut words = std::mem::take(&mut self.spare);
        words.extend_from_slice(bytes);
        self.pieces.push_back(Piece::Headers(words));
    }

    /// Appends the data of a read. [`ReadData::Lent`], and data of at least [`MIN_UNCOPIED`] bytes, is not copied.
    pub(super) fn append(&mut self, data: ReadData) {
        if let ReadData::Bytes(bytes) = &data
            && bytes.len() < MIN_UNCOPIED
        {
            self.extend(bytes);
            self.give_back(data);
        } else {
            self.length += data.len();
            self.pieces.push_back(Piece::Data(data));
        }
    }

    /// Queues data that was sent or need not be sent, so that it returns to the owner of the session.
    pub(super) fn give_back(&mut self, data: ReadData) {
        if !matches!(&data, ReadData::Bytes(bytes) if bytes.capacity() == 0) {
            self.used.push(data);
        }
    }

    pub(super) fn poll_used(&mut self) -> Option<ReadData> {
        self.used.pop()
    }

    /// Returns the allocated size in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let held = |piece: &Piece| match piece {
            Piece::Headers(bytes) => bytes.capacity(),
            Piece::Data(data) => data.len(),
        };
        self.spare.capacity() + self.pieces.iter().map(held).sum::<usize>()
    }

    pub(super) const fn len(&self) -> usize {
        self.length
    }

    pub(super) fn slices(&self) -> impl Iterator<Item = Slice<'_>> {
        let mut sent = self.sent;
        let slices = self.pieces.iter().flat_map(Piece::slices).map(move |slice| {
            let gone = sent.min(slice.len());
            sent -= gone;
            slice.behind(gone)
        });
        slices.filter(|slice| !slice.is_empty())
    }

    /// Removes the first `length` bytes, which were sent.
    pub(super) fn sent(&mut self, length: usize) {
        assert!(length <= self.length, "sent bytes must have been in the output");
        self.length -= length;
        self.sent += length;
        while let Some(first) = self.pieces.front().map(Piece::len)
            && self.sent >= first
        {
            self.sent -= first;
            match self.pieces.pop_front() {
                Some(Piece::Headers(mut words)) if words.capacity() <= 4 * MAX_HEADERS => {
                    words.clear();
                    self.spare = words;
                }
                Some(Piece::Data(data)) => self.give_back(data),
                Some(Piece::Headers(_)) | None => {}
            }
        }
    }
}
