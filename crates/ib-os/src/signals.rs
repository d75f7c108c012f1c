//! Termination and reload signals.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use crate::alarm::Bell;

mod temporary;

pub use temporary::TemporaryPath;

/// Returns the signals that terminate a process that is not a daemon. SIGHUP is one of them unless the process ignores
/// it (`nohup`).
fn ends() -> impl Iterator<Item = (i32, Order)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hangs_up = !ignores(&status, SIGHUP);
    ENDS.into_iter().chain(hangs_up.then_some((SIGHUP, Order::End)))
}

/// Returns true if a process ignores a signal. `status` is the text of `/proc/PID/status` (proc(5)).
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// A file descriptor that becomes readable when SIGTERM, SIGINT or SIGHUP arrives.
pub struct Termination(UnixStream);

impl Termination {
    /// Starts to catch SIGTERM, SIGINT, and SIGHUP unless the process ignores it (`nohup`).
    ///
    /// # Errors
    /// Fails if a system call failed.
    pub fn catch() -> io::Result<Self> {
        temporary::ENDS_IN_ORDER.store(true, Ordering::SeqCst);
        let (reader, writer) = UnixStream::pair()?;
        for (signal, _) in ends() {
            kill_at_second(signal)?;
            note(signal)?;
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        Ok(Self(reader))
    }
}

impl AsFd for Termination {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes the second arrival of `signal` end the process immediately, without running destructors. After the first
/// arrival, the process may be busy with a long computation before it exits.
fn kill_at_second(signal: i32) -> io::Result<()> {
    let is_first_given = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register_conditional_default(signal, Arc::clone(&is_first_given))?;
    signal_hook::flag::register(signal, is_first_given)?;
    Ok(())
}

/// Number of the last termination signal that was caught; 0 if none.
static CAUGHT: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Returns the exit status of a process that a caught signal stopped: 128 plus the number of the signal, as shells
/// report it. The number is that of SIGINT if no signal was caught.
#[must_use]
pub fn exit_status() -> u8 {
    let caught = CAUGHT.load(Ordering::SeqCst);
    128 + u8::try_from(caught).ok().filter(|&caught| caught != 0).unwrap_or(SIGINT as u8)
}

/// Makes the handler of a termination signal record the signal's number for [`exit_status`].
fn note(signal: i32) -> io::Result<()> {
    signal_hook::flag::register_usize(signal, Arc::clone(&CAUGHT), signal as usize).map(drop)
}

/// The action that a signal requests of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Terminate the process: SIGTERM, SIGINT, or SIGHUP if the process is not a daemon.
    End,
    /// Reload files: SIGHUP.
    Reload,
    /// Reopen the log file, which was rotated: SIGUSR1.
    ReopenLog,
}

/// Termination signals.
const ENDS: [(i32, Order); 2] = [(SIGTERM, Order::End), (SIGINT, Order::End)];

/// The signals that a process catches, and the [`Order`] of each signal. A signal that arrives rings a [`Bell`].
#[derive(Debug)]
pub struct Orders(Vec<(Order, Arc<AtomicBool>)>);

impl Orders {
    /// Starts to catch the signals of a daemon.
    ///
    /// # Errors
    /// Fails if a system call failed.
    pub fn catch(bell: &Bell) -> io::Result<Self> {
        let others = [(SIGHUP, Order::Reload), (SIGUSR1, Order::ReopenLog)];
        Self::catch_these(bell, ENDS.into_iter().chain(others))
    }

    /// Starts to catch the termination signals of a process that is not a daemon: SIGTERM, SIGINT, and SIGHUP unless
    /// the process ignores it.
    ///
    /// # Errors
    /// Fails if a system call failed.
    pub fn catch_end(bell: &Bell) -> io::Result<Self> {
        Self::catch_these(bell, ends())
    }

    fn catch_these(
        bell: &Bell,
        wanted: impl IntoIterator<Item = (i32, Order)>,
    ) -> io::Result<Self> {
        temporary::ENDS_IN_ORDER.store(true, Ordering::SeqCst);
        let mut orders = Vec::new();
        for (signal, order) in wanted {
            if order == Order::End {
                kill_at_second(signal)?;
            }
            let given = Arc::new(AtomicBool::new(false));
            if order == Order::End {
                note(signal)?;
            }
            // The signal handler sets the flag `given` before it rings the bell, so that the woken thread finds the
            // flag set.
            signal_hook::flag::register(signal, Arc::clone(&given))?;
            signal_hook::low_level::pipe::register(signal, bell.file()?)?;
            orders.push((order, given));
        }
        Ok(Self(orders))
    }

    /// Returns the order of a signal that has arrived and was not returned yet; `None` if there is no such signal.
    pub fn take(&mut self) -> Option<Order> {
        let given = self.0.iter().find(|(_, given)| given.swap(false, Ordering::SeqCst));
        given.map(|&(order, _)| order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_parsed_from_the_status_text() {
        let status = "Name:\tsleep\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000004002\n";
        assert!(ignores(status, SIGHUP));
        assert!(!ignores(status, SIGINT) && !ignores(status, SIGTERM) && !ignores("", SIGHUP));
    }
}
