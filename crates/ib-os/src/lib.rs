//! Thin wrappers of Linux system calls for the event loops of links and daemons.
//!
//! The wrappers cover polling, wake-ups from other threads, timers, signals, local sockets and background processes.
//!
//! | module | holds |
//! |---|---|
//! | [`alarm`] | a file descriptor that another thread makes readable to end a wait early |
//! | [`poll`] | waiting for file descriptors: `poll(2)` and `ppoll(2)` |
//! | [`tick`] | a periodic timer: `timerfd_create(2)` |
//! | [`clock`] | the monotonic clock |
//! | [`cpu`] | the processors of this machine; scheduling policy and processor time of the calling thread |
//! | [`inbox`] | a work queue from other threads to a driver thread |
//! | [`signals`] | termination and reload signals; temporary files that such signals remove |
//! | [`daemon`] | background processes, and `sd_notify(3)` |
//! | [`unix`] | Unix sockets with a path, and checks of the peer's user |
//! | [`seqpacket`] | JSON messages with descriptors over `SOCK_SEQPACKET` |
//! | [`sockopt`] | socket options |
//! | [`batch`] | several datagrams per system call: `sendmmsg(2)` and `recvmmsg(2)` |
//! | [`tap`] | TAP devices, for tests with impaired links |
//!
//! # Example
//! Another thread rings an alarm, which ends this thread's wait:
//! ```
//! use std::os::fd::AsFd;
//! use std::time::Duration;
//!
//! use ib_os::{alarm::Alarm, poll};
//!
//! let alarm = Alarm::new()?;
//! let bell = alarm.bell();
//! let thread = std::thread::spawn(move || bell.ring());
//! let mut files = [poll::watched(alarm.as_fd(), false)];
//! poll::wait_any_for(&mut files, Duration::from_secs(10))?;
//! assert_ne!(files[0].revents, 0);
//! alarm.silence();
//! thread.join().expect("the thread does not panic");
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io;

pub mod alarm;
pub mod batch;
pub mod clock;
pub mod cpu;
pub mod daemon;
pub mod inbox;
pub mod poll;
pub mod seqpacket;
pub mod signals;
pub mod sockopt;
pub mod tap;
pub mod tick;
pub mod unix;

/// Returns 32 unpredictable bytes, which `getrandom(2)` provides.
///
/// # Errors
/// Fails if the system call fails.
pub fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // SAFETY: the call writes at most as many bytes as the live slice has.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match got {
            ..0 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            got => filled += got as usize,
        }
    }
    Ok(bytes)
}
