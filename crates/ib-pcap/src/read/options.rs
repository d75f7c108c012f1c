//! Options at the end of a block.

use super::wrong;
use crate::error::ReadError;
use crate::format::option;
use crate::model::ByteOrder;

/// Iterator over the options of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options<'a> {
    order: ByteOrder,
    /// Remaining bytes.
    bytes: &'a [u8],
    /// Offset of the remaining bytes in the file.
    offset: u64,
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) code: u16,
    value: &'a [u8],
    order: ByteOrder,
    offset: u64,
}

impl<'a> Options<'a> {
    pub(super) fn new(order: ByteOrder, bytes: &'a [u8], offset: u64) -> Self {
        Self { order, bytes, offset }
    }

    /// Returns the next option; `None` after the last one. The option that marks the end can be
    /// missing.
    pub(super) fn next(&mut self) -> Result<Option<Field<'a>>, ReadError> {
        let (order, offset) = (self.order, self.offset);
        if self.bytes.is_empty() {
            return Ok(None);
        }
        // At least four bytes remain, because the sizes of all blocks and padded options are multiples of four.
        let code = order.u16(self.bytes);
        let length = usize::from(order.u16(&self.bytes[2..]));
        if code == option::END {
            if length != 0 {
                return Err(wrong("the length of the end of options", offset + 2, 0, length));
            }
            return Ok(None);
        }
        let rest = &self.bytes[4..];
        let padded = length.next_multiple_of(4);
        if padded > rest.len() {
            let expected = format!("at most {}, the rest of the block", rest.len());
            return Err(wrong("the length of an option", offset + 2, expected, length));
        }
        self.bytes = &rest[padded..];
        self.offset += 4 + padded as u64;
        Ok(Some(Field { code, value: &rest[..length], order, offset }))
    }
}

impl<'a> Field<'a> {
    pub(super) fn text(self) -> Result<&'a str, ReadError> {
        std::str::from_utf8(self.value).map_err(|error| {
            let at = self.offset + 4 + error.valid_up_to() as u64;
            let found = format!("0x{:02x}", self.value[error.valid_up_to()]);
            wrong("a byte of a text", at, "UTF-8", found)
        })
    }

    pub(super) fn u8(self) -> Result<u8, ReadError> {
        Ok(self.sized(1)?[0])
    }

    pub(super) fn u32(self) -> Result<u32, ReadError> {
        Ok(self.order.u32(self.sized(4)?))
    }

    pub(super) fn u64(self) -> Result<u64, ReadError> {
        Ok(self.order.u64(self.sized(8)?))
    }

    /// Returns a timestamp, which consists of two 32-bit words. In both byte orders, the upper word is first.
    pub(super) fn words(self) -> Result<u64, ReadError> {
        Ok(self.order.words(self.sized(8)?))
    }

    pub(super) fn offset(self) -> u64 {
        self.offset
    }

    fn sized(self, expected: usize) -> Result<&'a [u8], ReadError> {
        if self.value.len() == expected {
            return Ok(self.value);
        }
        let found = self.value.len();
        Err(wrong("the length of an option", self.offset + 2, expected, found))
    }
}
