//! Reading pcapng and classic pcap.

mod classic;
mod options;
mod pcapng;

use std::io::Read;

use crate::error::ReadError;
use crate::format::{MAX_BLOCK, block};
use crate::model::{ByteOrder, Event, Interface};

/// Reads a capture file event by event.
///
/// It is strict: what a file says of its own lengths must be true. Blocks that it does not know are
/// passed over and counted. It holds the interfaces of the section and one block, at most 16 MiB,
/// and takes no more memory for a block than the file has bytes for it.
#[derive(Debug)]
pub struct Reader<R: Read> {
    input: Input<R>,
    format: Format,
    interfaces: Vec<Interface>,
    /// How to read the times of each interface.
    clocks: Vec<Clock>,
    skipped: u64,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    /// Only the type of the first section header has been read.
    Pcapng { started: bool, order: ByteOrder },
    /// How many events came before the packets, and how many nanoseconds a unit of time has.
    Classic { started: u8, order: ByteOrder, unit: u32 },
}

/// What a unit of time is, and what is added to it.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// The option `if_tsresol`: an exponent of ten, or of two with the upper bit set, negative.
    resolution: u8,
    /// The option `if_tsoffset`, in seconds.
    offset: i64,
}

impl<R: Read> Reader<R> {
    /// Finds out which of the two formats the stream has.
    ///
    /// # Errors
    /// Returns an error of the stream, and one when it starts as neither.
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

    /// Returns the interfaces of the section so far, by their numbers.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Returns how many blocks of unknown types were passed over.
    #[must_use]
    pub fn skipped_blocks(&self) -> u64 {
        self.skipped
    }

    /// Returns how many bytes were read, which is where the next block starts.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.input.offset
    }

    /// Returns the next event; `None` at the end of the file.
    ///
    /// # Errors
    /// Returns an error of the stream, and the first contradiction within the file. After an error
    /// nothing sensible can be read.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        match self.format {
            Format::Pcapng { .. } => self.next_block(),
            Format::Classic { started, order, unit } => self.next_record(started, order, unit),
        }
    }
}

/// A stream that knows how far it was read.
#[derive(Debug)]
struct Input<R> {
    stream: R,
    /// How many bytes were read.
    offset: u64,
    /// Where the bytes start.
    start: u64,
    /// What was read last.
    bytes: Vec<u8>,
}

impl<R: Read> Input<R> {
    /// Reads as many bytes; the memory for them grows as they come.
    fn fill(&mut self, what: &'static str, length: usize) -> Result<(), ReadError> {
        if self.fill_or_end(what, length)? {
            return Ok(());
        }
        let (offset, expected) = (self.offset, length as u64);
        Err(ReadError::Truncated { what, offset, expected, found: 0 })
    }

    /// Reads as many bytes, or none at the end of the stream.
    fn fill_or_end(&mut self, what: &'static str, length: usize) -> Result<bool, ReadError> {
        self.start = self.offset;
        self.bytes.clear();
        self.extend(what, length)?;
        Ok(length == 0 || !self.bytes.is_empty())
    }

    /// Reads as many bytes after those that are there, or none at the end of the stream.
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

/// Makes the error of a number.
#[allow(clippy::needless_pass_by_value, reason = "callers pass what they have just made")]
fn wrong(
    what: &'static str,
    offset: u64,
    expected: impl ToString,
    found: impl ToString,
) -> ReadError {
    ReadError::Value { what, offset, expected: expected.to_string(), found: found.to_string() }
}

/// Returns a length if a block or a record may have it.
fn bounded(what: &'static str, offset: u64, length: u32) -> Result<usize, ReadError> {
    let length = length as usize;
    if length > MAX_BLOCK {
        return Err(wrong(what, offset, format!("at most {MAX_BLOCK}"), length));
    }
    Ok(length)
}

#[cfg(test)]
mod tests;
