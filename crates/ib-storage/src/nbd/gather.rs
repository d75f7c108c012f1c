//! What is sent from several places at once, memory that others may reach meanwhile among them.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use ib_block::Slice;

/// How many places are sent from at once.
const PLACES: usize = 64;

/// Sends what lies in some places, or a part of it, over a socket that does not block; returns how many bytes.
///
/// # Errors
/// Fails as the system does.
pub(super) fn send<'a>(
    socket: BorrowedFd<'_>,
    slices: impl Iterator<Item = Slice<'a>>,
) -> io::Result<usize> {
    let mut places = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PLACES];
    let mut count = 0;
    for (to, slice) in places.iter_mut().zip(slices) {
        let start = match slice {
            Slice::Bytes(bytes) => bytes.as_ptr().cast_mut(),
            Slice::Memory(memory, start, length) => {
                memory.place(start, length).map_err(io::Error::other)?
            }
        };
        *to = libc::iovec { iov_base: start.cast(), iov_len: slice.len() };
        count += 1;
    }
    // SAFETY: all zeros is a message without anything.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = places.as_mut_ptr();
    message.msg_iovlen = count as _;
    // SAFETY: the message and its places are there as long as the call lasts, which only reads from them: the slices are
    // borrowed for `'a`, and registered memory stays where it is as long as it is borrowed. Who writes to that at the same
    // time does it by atomics, and the system's copy is none of the language's reads.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
