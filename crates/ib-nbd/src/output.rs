//! Bytes that are to be sent: words of the protocol, and buffers with data between them.

use std::collections::VecDeque;

use ib_block::data::{ReadData, Slice};

/// How long data is at least that is sent from where it lies: what is shorter is copied behind the words before it, which costs
/// less than another piece does.
const LONG: usize = 16 << 10;

/// How long a piece of words gets before the next one begins: only whole ones are given back.
const WORDS: usize = 64 << 10;

#[derive(Debug)]
enum Piece {
    Words(Vec<u8>),
    Data(ReadData),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Words(bytes) => bytes.len(),
            Self::Data(data) => data.len(),
        }
    }

    /// Returns where the bytes are, in order.
    fn slices(&self) -> impl Iterator<Item = Slice<'_>> {
        let (words, data) = match self {
            Self::Words(bytes) => (Some(Slice::Bytes(bytes)), None),
            Self::Data(data) => (None, Some(data)),
        };
        words.into_iter().chain(data.into_iter().flat_map(ReadData::slices))
    }
}

/// Bytes in the order in which they are to be sent.
#[derive(Debug, Default)]
pub(super) struct Output {
    pieces: VecDeque<Piece>,
    /// How many bytes of the first piece were sent.
    sent: usize,
    /// How many there are in all that were not.
    length: usize,
    /// Data that was sent.
    used: Vec<ReadData>,
    /// A buffer for words.
    spare: Vec<u8>,
}

impl Output {
    pub(super) fn extend(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.length += bytes.len();
        if let Some(Piece::Words(words)) = self.pieces.back_mut()
            && words.len() < WORDS
        {
            return words.extend_from_slice(bytes);
        }
        let mut words = std::mem::take(&mut self.spare);
        words.extend_from_slice(bytes);
        self.pieces.push_back(Piece::Words(words));
    }

    /// Sends data from where it lies.
    pub(super) fn append(&mut self, data: ReadData) {
        if let ReadData::Bytes(bytes) = &data
            && bytes.len() < LONG
        {
            self.extend(bytes);
            self.give_back(data);
        } else {
            self.length += data.len();
            self.pieces.push_back(Piece::Data(data));
        }
    }

    /// Takes data that is not needed.
    pub(super) fn give_back(&mut self, data: ReadData) {
        if !matches!(&data, ReadData::Bytes(bytes) if bytes.capacity() == 0) {
            self.used.push(data);
        }
    }

    pub(super) fn poll_used(&mut self) -> Option<ReadData> {
        self.used.pop()
    }

    /// Returns how much memory is held, in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let held = |piece: &Piece| match piece {
            Piece::Words(bytes) => bytes.capacity(),
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

    /// So many bytes were sent.
    pub(super) fn sent(&mut self, length: usize) {
        assert!(length <= self.length, "no more than there was");
        self.length -= length;
        self.sent += length;
        while let Some(first) = self.pieces.front().map(Piece::len)
            && self.sent >= first
        {
            self.sent -= first;
            match self.pieces.pop_front() {
                Some(Piece::Words(mut words)) if words.capacity() <= 4 * WORDS => {
                    words.clear();
                    self.spare = words;
                }
                Some(Piece::Data(data)) => self.give_back(data),
                Some(Piece::Words(_)) | None => {}
            }
        }
    }
}
