//! TAP devices. The process reads and writes the Ethernet frames of such a network interface.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// Maximum length of an interface name in bytes.
const MAX_NAME: usize = libc::IFNAMSIZ - 1;

/// A TAP device. When it is dropped, its network interface is removed. The interface may be moved into another network
/// namespace.
#[derive(Debug)]
pub struct Tap(OwnedFd);

impl Tap {
    /// Creates a network interface in the network namespace of the calling thread. The interface is down and has no
    /// address.
    ///
    /// # Errors
    /// Fails if the name is too long or in use, or if the process does not have CAP_NET_ADMIN.
    pub fn create(name: &str) -> io::Result<Self> {
        if name.is_empty() || name.len() > MAX_NAME || name.contains('\0') {
            let why = format!("interface name {name:?}: expected 1 to {MAX_NAME} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero byte, and without O_CREAT there is no third argument.
        let file = unsafe { libc::open(c"/dev/net/tun".as_ptr(), flags) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the file was just opened and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        // SAFETY: the structure consists of numbers, so all bits zero are a valid value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the call reads and writes the live structure that it is given.
        let result =
            unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(file)) }
    }

    /// Reads the next frame that the network interface sends.
    ///
    /// # Errors
    /// Fails with [`io::ErrorKind::WouldBlock`] if no frame is queued.
    pub fn read(&self, frame: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.0, frame)?)
    }

    /// Writes a frame, which the network interface receives.
    ///
    /// # Errors
    /// Fails if the network interface is down or its queue is full.
    pub fn write(&self, frame: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.0, frame)?;
        Ok(())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_interface_names_are_refused() {
        for name in ["", "a-name-of-16-byt", "a\0b"] {
            let error = Tap::create(name).expect_err("the name is invalid");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
    }
}
