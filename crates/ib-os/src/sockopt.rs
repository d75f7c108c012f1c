//! Socket options.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Sets a socket option to a number or to a structure.
pub fn set<T: Copy>(file: BorrowedFd<'_>, level: i32, name: i32, value: T) -> io::Result<()> {
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the call reads the live value that it is given.
    let result = unsafe {
        libc::setsockopt(file.as_raw_fd(), level, name, (&raw const value).cast(), length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets the size of a socket's send or receive buffer in bytes. Returns the size that the kernel reports afterwards.
///
/// `force` is the option for privileged processes, such as `SO_SNDBUFFORCE`; it ignores the system's limit. If setting
/// `force` fails, the option `name` is set instead, such as `SO_SNDBUF`.
pub fn buffer(file: BorrowedFd<'_>, (force, name, size): (i32, i32, usize)) -> io::Result<usize> {
    let wanted = i32::try_from(size).unwrap_or(i32::MAX);
    set(file, libc::SOL_SOCKET, force, wanted)
        .or_else(|_| set(file, libc::SOL_SOCKET, name, wanted))?;
    let mut got = 0;
    let mut length = size_of_val(&got) as libc::socklen_t;
    // SAFETY: the call writes the live number that it is given.
    let result = unsafe {
        let value = (&raw mut got).cast();
        libc::getsockopt(file.as_raw_fd(), libc::SOL_SOCKET, name, value, &raw mut length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(usize::try_from(got).unwrap_or(0)) }
}

/// Attaches a classic BPF program to a socket. The program filters each datagram before the kernel queues it.
pub fn attach_filter(file: BorrowedFd<'_>, program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: program.len() as libc::c_ushort,
        // The system call only reads the program, so it never uses the pointer for writing.
        filter: program.as_ptr().cast_mut(),
    };
    set(file, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
}
