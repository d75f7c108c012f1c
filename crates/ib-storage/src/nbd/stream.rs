//! The socket of an NBD client.

use std::io::{self, Read as _};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

use ib_block::Slice;
use ib_os::sockopt;

/// Size of the socket's send buffer in bytes. Responses of usual sizes fit as a whole, so that
/// neither client nor server is woken for a part of a response.
const SEND_BUFFER: usize = 512 << 10;

/// Maximum number of slices in one system call.
const SLICES: usize = 64;

#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub(super) fn prepare(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => {
                stream.set_nonblocking(true)?;
                // If the kernel refuses this size, a smaller send buffer works too. For TCP, the size
                // is not set, because that would disable the kernel's automatic sizing.
                sockopt::buffer(self.as_fd(), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER))
                    .ok();
            }
            Self::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
            }
        }
        Ok(())
    }

    pub(super) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(room),
            Self::Tcp(stream) => stream.read(room),
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }

    /// Sends bytes of the slices without blocking. Returns how many bytes were sent. During the call,
    /// other threads may write to the memory of the slices.
    pub(super) fn send<'a>(&self, slices: impl Iterator<Item = Slice<'a>>) -> io::Result<usize> {
        let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; SLICES];
        let mut count = 0;
        for (to, slice) in parts.iter_mut().zip(slices) {
            let start = match slice {
                Slice::Bytes(bytes) => bytes.as_ptr().cast_mut(),
                Slice::Memory(memory, start, length) => {
                    memory.pointer(start, length).map_err(io::Error::other)?
                }
            };
            *to = libc::iovec { iov_base: start.cast(), iov_len: slice.len() };
            count += 1;
        }
        // SAFETY: a `msghdr` of zeros is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = count as _;
        let socket = self.as_fd().as_raw_fd();
        // SAFETY: the system call only reads the slices. They are borrowed for `'a`, and registered
        // memory stays in place while it is borrowed. Other threads write to registered memory with
        // atomics, and a copy by the kernel is not a data race in Rust.
        let sent = unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}
