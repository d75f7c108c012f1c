//! Being asked to end, and what else a daemon is told by signals.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use crate::alarm::Bell;

/// A file that can be read once the process was asked to end by SIGTERM or SIGINT.
pub struct Termination(UnixStream);

impl Termination {
    /// Catches the signals from now on.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn catch() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT] {
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
    /// To end: SIGTERM or SIGINT.
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

    /// Catches from now on the signals to end, and no others.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn catch_end(bell: &Bell) -> io::Result<Self> {
        Self::catch_these(bell, ENDS)
    }

    fn catch_these(
        bell: &Bell,
        wanted: impl IntoIterator<Item = (i32, Order)>,
    ) -> io::Result<Self> {
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
