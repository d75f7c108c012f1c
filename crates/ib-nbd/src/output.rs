//! The output queue of a connection. It contains headers of the protocol and the data of reads.

use std::collections::VecDeque;

use ib_block::data::{ReadData, Slice};

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
    /// Data that was sent and now returns to the owner of the session.
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

    /// Appends the data of a read. Long or lent data is not copied.
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
