//! Bytes that are to be sent: words of the protocol, and buffers with data between them.

use std::collections::VecDeque;

/// How long data is at least that is sent from where it lies: what is shorter is copied behind the words before it, which costs
/// less than another piece does.
const LONG: usize = 16 << 10;

/// How long a piece of words gets before the next one begins: only whole ones are given back.
const WORDS: usize = 64 << 10;

#[derive(Debug)]
enum Piece {
    Words(Vec<u8>),
    Data(Vec<u8>),
}

impl Piece {
    const fn bytes(&self) -> &Vec<u8> {
        match self {
            Self::Words(bytes) | Self::Data(bytes) => bytes,
        }
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
    /// Buffers whose data was sent.
    used: Vec<Vec<u8>>,
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

    /// Sends data from the buffer that it lies in.
    pub(super) fn append(&mut self, data: Vec<u8>) {
        if data.len() < LONG {
            self.extend(&data);
            self.give_back(data);
        } else {
            self.length += data.len();
            self.pieces.push_back(Piece::Data(data));
        }
    }

    /// Takes a buffer that is not needed.
    pub(super) fn give_back(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 {
            self.used.push(buffer);
        }
    }

    pub(super) fn poll_used(&mut self) -> Option<Vec<u8>> {
        self.used.pop()
    }

    /// Returns how much memory is held, in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.spare.capacity()
            + self.pieces.iter().map(|piece| piece.bytes().capacity()).sum::<usize>()
    }

    pub(super) const fn len(&self) -> usize {
        self.length
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(self.sent).chain(std::iter::repeat(0));
        let pieces = self.pieces.iter().zip(starts).map(|(piece, start)| &piece.bytes()[start..]);
        pieces.filter(|piece| !piece.is_empty())
    }

    /// So many bytes were sent.
    pub(super) fn sent(&mut self, length: usize) {
        assert!(length <= self.length, "no more than there was");
        self.length -= length;
        self.sent += length;
        while let Some(first) = self.pieces.front().map(|piece| piece.bytes().len())
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
