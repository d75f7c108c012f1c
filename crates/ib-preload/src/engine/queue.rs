//! What lies in an open file for its program to read.

use ib_umad::abi::UmadHeader;
use ib_wire::mad::MAD_LENGTH;

use crate::errno::Errno;

/// A message for a program.
pub(super) struct Message {
    header: UmadHeader,
    body: Vec<u8>,
    received: bool,
}

impl Message {
    /// One that came.
    pub(super) const fn received(header: UmadHeader, body: Vec<u8>) -> Self {
        Self { header, body, received: true }
    }

    /// The beginning of a request that nobody answered.
    pub(super) fn unanswered(header: UmadHeader, start: &[u8; 24]) -> Self {
        Self { header, body: start.to_vec(), received: false }
    }

    /// Copies header and message into a buffer and returns their length.
    ///
    /// A buffer that is too small for the first 256 bytes is an `EINVAL`; one that is too small for
    /// a longer message gets those and is an `ENOSPC`.
    pub(super) fn copy_to(&self, header: usize, buffer: &mut [u8]) -> Result<usize, Errno> {
        let whole = header + self.body.len();
        let least = header + self.body.len().min(MAD_LENGTH);
        if buffer.len() < least {
            return Err(Errno::INVALID);
        }
        let length = if buffer.len() < whole { least } else { whole };
        buffer[..header].copy_from_slice(&self.header.to_bytes()[..header]);
        buffer[header..length].copy_from_slice(&self.body[..length - header]);
        if length == whole {
            Ok(whole)
        } else {
            debug_assert!(self.received, "only received messages are long");
            Err(Errno::NO_SPACE)
        }
    }
}
