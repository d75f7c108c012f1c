//! The input buffer of a connection. It holds received bytes that were not processed yet.

/// A contiguous buffer of bytes that were received and not processed yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// The buffer offers at least this many bytes of free space for further input.
const ROOM: usize = 64 << 10;

/// If an empty buffer is larger than this, it is freed.
const IDLE: usize = 1 << 20;

impl Input {
    /// Returns the free space for input. `wanted` is the number of bytes that the buffer must hold before the next
    /// message can be processed.
    ///
    /// One call allocates at most [`ROOM`] bytes, or as many bytes as the buffer already holds if these are more. So a
    /// client cannot make the server allocate memory for data that it has only announced.
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
