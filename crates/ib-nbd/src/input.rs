//! Bytes that have come in and were not used yet.

/// Bytes in the order in which they have come, in one piece.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// How much room there is at least for what comes next.
const ROOM: usize = 64 << 10;

/// How much memory stays where nothing waits in it.
const IDLE: usize = 1 << 20;

impl Input {
    /// Returns room for bytes that come in: in the end for so many in all with those that wait, but memory is taken for no
    /// more than twice of what has come, whatever was announced.
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
            // Reserves the exact size, because the budget counts allocated bytes.
            self.bytes.reserve_exact(self.end + needed - self.bytes.len());
            self.bytes.resize(self.end + needed, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Returns the least length of the room for what comes next.
    fn needed(&self, wanted: usize) -> usize {
        let waiting = self.end - self.start;
        wanted.saturating_sub(waiting).min(waiting).max(ROOM)
    }

    /// Returns the memory that [`Input::room`] would take, in bytes.
    pub(super) fn growth(&self, wanted: usize) -> usize {
        (self.len() + self.needed(wanted)).saturating_sub(self.bytes.capacity())
    }

    /// So many bytes of the room have come in.
    pub(super) fn filled(&mut self, length: usize) {
        assert!(length <= self.bytes.len() - self.end, "no more than there was room for");
        self.end += length;
    }

    pub(super) fn waiting(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Returns a number of bytes; `None` as long as there are fewer.
    pub(super) fn peek<const N: usize>(&self) -> Option<&[u8; N]> {
        self.waiting().first_chunk()
    }

    /// Leaves bytes out that were used, and returns them.
    pub(super) fn take(&mut self, length: usize) -> &[u8] {
        let start = self.start;
        self.start += length;
        &self.bytes[start..self.start]
    }

    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Returns how much memory it has, in bytes.
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    /// Gives memory back that nothing waits in.
    pub(super) fn shrink(&mut self) {
        if self.start == self.end && self.bytes.capacity() > IDLE {
            *self = Self::default();
        }
    }
}
