//! Sends or receives several datagrams with one system call: `recvmmsg(2)` and `sendmmsg(2)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Maximum number of datagrams per system call.
pub const BATCH: usize = 16;

/// Buffers for datagrams that have at most `SIZE` bytes.
pub struct Batch<const SIZE: usize> {
    buffers: Box<[[u8; SIZE]; BATCH]>,
    lengths: [usize; BATCH],
}

impl<const SIZE: usize> Default for Batch<SIZE> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const SIZE: usize> Batch<SIZE> {
    /// Creates an empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self { buffers: Box::new([[0; SIZE]; BATCH]), lengths: [0; BATCH] }
    }

    /// Receives at most [`BATCH`] datagrams and returns their number; 0 if none has arrived.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let mut vectors = self
            .buffers
            .each_mut()
            .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: SIZE });
        let mut headers = vectors.each_mut().map(header);
        // SAFETY: the headers point to `BATCH` live buffers of `SIZE` bytes each, which nothing else uses during the
        // call. The call gets no address, control data or timeout.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        }
        for (length, header) in self.lengths.iter_mut().zip(&headers) {
            // For a truncated datagram, `length` exceeds the size of the buffer, so that `datagram` returns `None`.
            let cut = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            *length = if cut { SIZE + 1 } else { header.msg_len as usize };
        }
        Ok(count as usize)
    }

    /// Returns a datagram of the last `receive` call; `None` if it was longer than `SIZE` bytes.
    pub fn datagram(&self, index: usize) -> Option<&[u8]> {
        self.buffers[index].get(..self.lengths[index])
    }
}

/// Sends at most [`BATCH`] datagrams over a connected socket. Returns how many were sent; 0 if the receiver's buffer is
/// full.
pub fn send<const SIZE: usize>(
    socket: BorrowedFd<'_>,
    datagrams: &[[u8; SIZE]],
) -> io::Result<usize> {
    let count = datagrams.len().min(BATCH);
    if count == 0 {
        return Ok(0);
    }
    let mut vectors: [libc::iovec; BATCH] = std::array::from_fn(|index| libc::iovec {
        // The system call only reads the buffers, so it never uses the pointers for writing.
        iov_base: datagrams[index.min(count - 1)].as_ptr().cast_mut().cast(),
        iov_len: SIZE,
    });
    let mut headers = vectors.each_mut().map(header);
    // SAFETY: the first `count` headers point to live buffers of `SIZE` bytes, which the call reads.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count as libc::c_uint,
            (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
        )
    };
    if sent < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
            _ => Err(error),
        };
    }
    Ok(sent as usize)
}

/// Returns the header of a datagram whose only buffer is `vector`.
pub fn header(vector: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: all bits zero are a valid `mmsghdr`: null pointers and zero lengths.
    let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_iov = vector;
    header.msg_hdr.msg_iovlen = 1;
    header
}

#[cfg(test)]
mod tests;
