//! Messages in the queue of an open file.

use ib_umad::abi::UmadHeader;
use ib_wire::mad::MAD_LENGTH;

use crate::errno::Errno;

/// A message that the program will read.
pub(super) struct Message {
    header: UmadHeader,
    body: Vec<u8>,
    received: bool,
}

impl Message {
    /// Creates a message that has arrived from the fabric.
    pub(super) const fn received(header: UmadHeader, body: Vec<u8>) -> Self {
        Self { header, body, received: true }
    }

    /// Creates the report that a request has got no response. The report contains the first 24
    /// bytes of the request.
    pub(super) fn unanswered(header: UmadHeader, start: &[u8; 24]) -> Self {
        Self { header, body: start.to_vec(), received: false }
    }

    /// Copies umad header and message into a buffer. Returns the number of copied bytes.
    ///
    /// # Errors
    /// Fails with `EINVAL` if the buffer is too small for the first 256 bytes. Fails with `ENOSPC`
    /// if the buffer is too small for the rest; the first 256 bytes are then copied.
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
            debug_assert!(self.received, "a message of more than 256 bytes must be a received one");
            Err(Errno::NO_SPACE)
        }
    }
}
