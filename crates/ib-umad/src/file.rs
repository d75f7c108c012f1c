//! An open file, identified by its descriptor number. A preloaded library may emulate it, so the
//! number is passed only to `read`, `write`, `ioctl`, `poll` and `close`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use super::sysfs::c_path;
use ib_os::alarm::Alarm;

/// The lowest descriptor number of a file that libumad2sim emulates.
const EMULATED: i32 = 1024;

/// Interval in milliseconds at which a thread that waits for an emulated file checks whether its [`Alarm`] was rung.
const SLICE: i32 = 10;

/// An open file.
pub(super) struct File(i32);

impl File {
    pub(super) fn open(path: &Path, flags: i32) -> io::Result<Self> {
        let path = c_path(path)?;
        // SAFETY: the path ends with a zero byte. `open` needs no third argument without `O_CREAT`.
        let number = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
        if number < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(number)) }
    }

    /// Returns true if a preloaded library emulates the file.
    pub(super) fn is_emulated(&self) -> bool {
        // SAFETY: the call takes numbers only.
        self.0 >= EMULATED && unsafe { libc::fcntl(self.0, libc::F_GETFD) } < 0
    }

    /// Returns the file descriptor; `None` if a preloaded library emulates the file.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the file is open while it is borrowed.
        (!self.is_emulated()).then(|| unsafe { BorrowedFd::borrow_raw(self.0) })
    }

    pub(super) fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the call writes at most the length of the live buffer.
        result(unsafe { libc::read(self.0, bytes.as_mut_ptr().cast(), bytes.len()) })
    }

    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the call reads at most the length of the live buffer.
        result(unsafe { libc::write(self.0, bytes.as_ptr().cast(), bytes.len()) })
    }

    /// Executes an ioctl. The buffer must have the size that the ioctl number contains.
    pub(super) fn control(&self, request: u32, argument: &mut [u8]) -> io::Result<()> {
        debug_assert_eq!((request >> 16 & 0x3fff) as usize, argument.len());
        let argument = argument.as_mut_ptr();
        // SAFETY: the call reads and writes the live buffer, whose size the request contains.
        result(unsafe { libc::ioctl(self.0, request.into(), argument) } as isize).map(drop)
    }

    /// Waits until the file is readable, at most this many milliseconds.
    pub(super) fn wait(&self, milliseconds: i32) -> io::Result<()> {
        let mut polled = libc::pollfd { fd: self.0, events: libc::POLLIN, revents: 0 };
        // SAFETY: the call reads and writes only the live structure that it is given.
        match result(unsafe { libc::poll(&raw mut polled, 1, milliseconds) } as isize) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            result => result.map(drop),
        }
    }

    /// Waits until the file is readable or the alarm is rung, but at most this many milliseconds.
    pub(super) fn wait_alarmed(&self, milliseconds: i32, alarm: &Alarm) -> io::Result<()> {
        let bell = ib_os::poll::watched(alarm.as_fd(), false);
        if !self.is_emulated() {
            let own = libc::pollfd { fd: self.0, events: libc::POLLIN, revents: 0 };
            return ib_os::poll::wait_any(&mut [own, bell], milliseconds);
        }
        // A preloaded library cannot poll an emulated file together with other files. So this loop polls the file, and
        // checks the alarm after each `SLICE`.
        let mut left = milliseconds;
        loop {
            let mut polled = libc::pollfd { fd: self.0, events: libc::POLLIN, revents: 0 };
            // SAFETY: the call reads and writes only the live structure that it is given.
            let ready = unsafe { libc::poll(&raw mut polled, 1, left.min(SLICE)) };
            match result(ready as isize) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
                Err(error) => return Err(error),
                Ok(1..) => return Ok(()),
                Ok(0) => {}
            }
            let mut bells = [bell];
            ib_os::poll::wait_any(&mut bells, 0)?;
            left -= SLICE;
            if left <= 0 || bells[0].revents != 0 {
                return Ok(());
            }
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: this object owns the descriptor, and nothing uses the descriptor after the drop.
        unsafe { libc::close(self.0) };
    }
}

/// Converts the return value of a system call. On errors, libumad2sim returns a negative error number, but the system
/// returns -1 and sets `errno`.
fn result(value: isize) -> io::Result<usize> {
    match value {
        0.. => Ok(value as usize),
        -1 => Err(io::Error::last_os_error()),
        _ => Err(io::Error::from_raw_os_error(-value as i32)),
    }
}
