//! Reads pcapng and classic pcap.

mod classic;
mod options;
mod pcapng;

use std::io::Read;

use crate::error::ReadError;
use crate::format::{MAX_BLOCK, block};
use crate::model::{ByteOrder, Event, Interface};

/// Reads a capture file item by item.
///
/// All sizes in the file are checked. Blocks of unknown types are skipped and counted. The reader keeps only the
/// interfaces of the section and one block of at most 16 MiB in memory. If the file ends within a block, the reader
/// allocates memory only for the bytes that exist.
#[derive(Debug)]
pub struct Reader<R: Read> {
    input: Input<R>,
    format: Format,
    interfaces: Vec<Interface>,
    /// Time resolution and time offset of each interface.
    clocks: Vec<Clock>,
    skipped: u64,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    /// Format pcapng. If `started` is false, only the type of the first block was read.
    Pcapng { started: bool, order: ByteOrder },
    /// Format pcap. `started` counts the items returned before the packets (section and interface).
    /// `unit` is the time unit in nanoseconds.
    Classic { started: u8, order: ByteOrder, unit: u32 },
}

/// Time resolution and time offset of an interface.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// Option `if_tsresol`. The time unit is 10^-resolution seconds, or 2^-resolution if the upper
    /// bit is set.
    resolution: u8,
    /// Option `if_tsoffset`: seconds that are added to each time.
    offset: i64,
}

impl<R: Read> Reader<R> {
    /// Creates a reader, and detects the format of the stream.
    ///
    /// # Errors
    /// Fails if the stream fails, or if its magic number is unknown.
    pub fn new(input: R) -> Result<Self, ReadError> {
        let mut input = Input { stream: input, offset: 0, start: 0, bytes: Vec::new() };
        input.fill("the magic number", 4)?;
        let order = ByteOrder::Little;
        let format = match order.u32(&input.bytes) {
            block::SECTION => Format::Pcapng { started: false, order },
            magic => classic::format(magic).ok_or_else(|| ReadError::Value {
                what: "the magic number",
                offset: 0,
                expected: "that of pcapng or pcap".to_owned(),
                found: format!("0x{:08x}", magic.swap_bytes()),
            })?,
        };
        let (interfaces, clocks) = (Vec::new(), Vec::new());
        Ok(Self { input, format, interfaces, clocks, skipped: 0 })
    }

    /// Returns the interfaces of the current section that were read so far.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Returns the number of blocks that were skipped because their type is unknown.
    #[must_use]
    pub fn skipped_blocks(&self) -> u64 {
        self.skipped
    }

    /// Returns the number of bytes read, which is the offset of the next block.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.input.offset
    }

    /// Returns the next item; `None` at the end of the file.
    ///
    /// # Errors
    /// Fails if the stream fails or the file is inconsistent. After an error, the caller must not
    /// call this function again.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        match self.format {
            Format::Pcapng { .. } => self.next_block(),
            Format::Classic { started, order, unit } => self.next_record(started, order, unit),
        }
    }
}

/// A stream, and the position in it.
#[derive(Debug)]
struct Input<R> {
    stream: R,
    /// Number of bytes read so far.
    offset: u64,
    /// Offset in the stream of the first byte of `bytes`.
    start: u64,
    /// The bytes of the last item that was read.
    bytes: Vec<u8>,
}

impl<R: Read> Input<R> {
    /// Reads `length` bytes into `bytes`. Allocates memory only for bytes that the stream has.
    fn fill(&mut self, what: &'static str, length: usize) -> Result<(), ReadError> {
        if self.fill_or_end(what, length)? {
            return Ok(());
        }
        let (offset, expected) = (self.offset, length as u64);
        Err(ReadError::Truncated { what, offset, expected, found: 0 })
    }

    /// Reads `length` bytes into `bytes`. Returns false if the stream has ended before the first
    /// byte.
    fn fill_or_end(&mut self, what: &'static str, length: usize) -> Result<bool, ReadError> {
        self.start = self.offset;
        self.bytes.clear();
        self.extend(what, length)?;
        Ok(length == 0 || !self.bytes.is_empty())
    }

    /// Reads `length` bytes and appends them to `bytes`. If `bytes` is empty and the stream has
    /// ended, appends nothing. Otherwise fails if the stream ends too early.
    fn extend(&mut self, what: &'static str, length: usize) -> Result<(), ReadError> {
        let before = self.bytes.len();
        let expected = length as u64;
        self.stream
            .by_ref()
            .take(expected)
            .read_to_end(&mut self.bytes)
            .map_err(|source| ReadError::Io { offset: self.offset, source })?;
        let offset = self.offset;
        let found = (self.bytes.len() - before) as u64;
        self.offset += found;
        if found == expected || (found == 0 && before == 0) {
            return Ok(());
        }
        Err(ReadError::Truncated { what, offset, expected, found })
    }
}

/// Returns the error of a field with an invalid value.
#[allow(clippy::needless_pass_by_value, reason = "callers pass temporary values")]
fn wrong(
    what: &'static str,
    offset: u64,
    expected: impl ToString,
    found: impl ToString,
) -> ReadError {
    ReadError::Value { what, offset, expected: expected.to_string(), found: found.to_string() }
}

/// Returns `length`, the size of a block or record. Fails if this size exceeds [`MAX_BLOCK`].
fn bounded(what: &'static str, offset: u64, length: u32) -> Result<usize, ReadError> {
    let length = length as usize;
    if length > MAX_BLOCK {
        return Err(wrong(what, offset, format!("at most {MAX_BLOCK}"), length));
    }
    Ok(length)
}

#[cfg(test)]
mod tests;
