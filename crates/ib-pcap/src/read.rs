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
/// All sizes in the file are checked. Blocks of unknown types are skipped and counted. The reader keeps the interfaces
/// of the section and one block of at most 16 MiB. It allocates no more memory for a block than the file has bytes.
#[derive(Debug)]
pub struct Reader<R: Read> {
    input: Input<R>,
    format: Format,
    interfaces: Vec<Interface>,
    /// Time resolution and offset of each interface.
    clocks: Vec<Clock>,
    skipped: u64,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    /// State before the first block: only the type of the section header has been read.
    Pcapng { started: bool, order: ByteOrder },
    /// Number of items before the packets, and number of nanoseconds per time unit.
    Classic { started: u8, order: ByteOrder, unit: u32 },
}

/// Time resolution and offset of an interface.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// Option `if_tsresol`: negative exponent of 10, or of 2 if the upper bit is set.
    resolution: u8,
    /// Option `if_tsoffset`, in seconds.
    offset: i64,
}

impl<R: Read> Reader<R> {
    /// Detects the format of the stream.
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

    /// Returns the interfaces of the section up to now.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Returns the number of skipped blocks of unknown types.
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
    /// Fails if the stream fails, and at the first inconsistency of the file. Do not continue after an error.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        match self.format {
            Format::Pcapng { .. } => self.next_block(),
            Format::Classic { started, order, unit } => self.next_record(started, order, unit),
        }
    }
}

/// A stream with its position.
#[derive(Debug)]
struct Input<R> {
    stream: R,
    /// Number of bytes read.
    offset: u64,
    /// Offset of `bytes`.
    start: u64,
    /// The bytes that were last read.
    bytes: Vec<u8>,
}

impl<R: Read> Input<R> {
    /// Reads a number of bytes; allocates memory as they arrive.
    fn fill(&mut self, what: &'static str, length: usize) -> Result<(), ReadError> {
        if self.fill_or_end(what, length)? {
            return Ok(());
        }
        let (offset, expected) = (self.offset, length as u64);
        Err(ReadError::Truncated { what, offset, expected, found: 0 })
    }

    /// Reads a number of bytes; returns false at the end of the stream.
    fn fill_or_end(&mut self, what: &'static str, length: usize) -> Result<bool, ReadError> {
        self.start = self.offset;
        self.bytes.clear();
        self.extend(what, length)?;
        Ok(length == 0 || !self.bytes.is_empty())
    }

    /// Reads a number of bytes and appends them; returns false at the end of the stream.
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

/// Returns the error of a field with a number.
#[allow(clippy::needless_pass_by_value, reason = "callers pass temporary values")]
fn wrong(
    what: &'static str,
    offset: u64,
    expected: impl ToString,
    found: impl ToString,
) -> ReadError {
    ReadError::Value { what, offset, expected: expected.to_string(), found: found.to_string() }
}

/// Returns the size of a block or a record if it is valid.
fn bounded(what: &'static str, offset: u64, length: u32) -> Result<usize, ReadError> {
    let length = length as usize;
    if length > MAX_BLOCK {
        return Err(wrong(what, offset, format!("at most {MAX_BLOCK}"), length));
    }
    Ok(length)
}

#[cfg(test)]
mod tests;
