//! Being asked to end, and what else a daemon is told by signals.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use crate::alarm::Bell;

mod temporary;

pub use temporary::TemporaryPath;

/// Returns the signals that end what is no daemon. SIGHUP, of a terminal that is closed, is one of them unless whoever has
/// started the process wants it to go on (`nohup`).
fn ends() -> impl Iterator<Item = (i32, Order)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hangs_up = !ignores(&status, SIGHUP);
    ENDS.into_iter().chain(hangs_up.then_some((SIGHUP, Order::End)))
}

/// Returns whether a process ignores a signal, by the text of the system about it (proc(5)).
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// A file that can be read once the process was asked to end by SIGTERM or SIGINT, or by SIGHUP as its terminal is closed.
pub struct Termination(UnixStream);

impl Termination {
    /// Catches the signals from now on.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn catch() -> io::Result<Self> {
        temporary::ENDS_IN_ORDER.store(true, Ordering::SeqCst);
        let (reader, writer) = UnixStream::pair()?;
        for (signal, _) in ends() {
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

/// What a daemon is told by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// To end: SIGTERM or SIGINT, and SIGHUP for what is no daemon.
    End,
    /// To read its files again: SIGHUP.
    Reload,
    /// To open its log again, because the old one was renamed: SIGUSR1.
    ReopenLog,
}

/// The signals to end.
const ENDS: [(i32, Order); 2] = [(SIGTERM, Order::End), (SIGINT, Order::End)];

/// The signals that a daemon obeys; each rings a bell.
#[derive(Debug)]
pub struct Orders(Vec<(Order, Arc<AtomicBool>)>);

impl Orders {
    /// Catches the signals from now on.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn catch(bell: &Bell) -> io::Result<Self> {
        let others = [(SIGHUP, Order::Reload), (SIGUSR1, Order::ReopenLog)];
        Self::catch_these(bell, ENDS.into_iter().chain(others))
    }

    /// Catches from now on the signals to end: what is no daemon also ends when its terminal is closed (SIGHUP).
    ///
    /// # Errors
    /// Fails when the system does.
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
            let given = Arc::new(AtomicBool::new(false));
            // In this order: whoever is rung finds what for.
            signal_hook::flag::register(signal, Arc::clone(&given))?;
            signal_hook::low_level::pipe::register(signal, bell.file()?)?;
            orders.push((order, given));
        }
        Ok(Self(orders))
    }

    /// Returns the next order that was given since it was asked last.
    pub fn take(&mut self) -> Option<Order> {
        let given = self.0.iter().find(|(_, given)| given.swap(false, Ordering::SeqCst));
        given.map(|&(order, _)| order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_ignores_is_in_the_text_about_it() {
        let status = "Name:\tsleep\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000004002\n";
        assert!(ignores(status, SIGHUP));
        assert!(!ignores(status, SIGINT) && !ignores(status, SIGTERM) && !ignores("", SIGHUP));
    }
}
