//! Messages of several segments, as the Linux kernel plays them; IBTA volume 1, chapter 13.6.
//!
//! A sender starts with a window of one segment and may send up to the end that the latest ACK names.
//! A receiver acknowledges the first segment, every one that ends a window, the last one, and whatever
//! it has already: silence is what makes a sender start again behind the last acknowledged segment.
//!
//! | module | holds |
//! |---|---|
//! | `receiver` | segments become a message |
//! | `sender` | a message becomes segments |
//! | `control` | ACK, STOP and ABORT, and what a datagram is for |
//!
//! Neither end knows the time: who owns them does.

use std::time::Duration;

pub(crate) mod control;
pub(crate) mod receiver;
pub(crate) mod sender;

pub(crate) use control::{Kind, classify};
pub(crate) use receiver::{Progress, Receiver};
pub(crate) use sender::{Acknowledged, Sender};

/// The longest wait for an acknowledgement before segments are sent again.
pub(crate) const LONGEST_ACKNOWLEDGEMENT: Duration = Duration::from_secs(2);

/// How many bytes a side holds in messages of several segments at most, unless it is told otherwise:
/// 256 MiB.
pub(crate) const MOST_HELD: usize = 256 << 20;

/// What a receiver of messages may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveLimits {
    /// How many segments a window grows by, at least 1; as many may wait for a missing one. Linux
    /// takes an eighth of its receive queue, 64.
    pub window: u32,
    /// The longest message in bytes of data; longer ones are stopped.
    pub max_message: usize,
    /// The time from the first segment to the last one; 40 s in Linux.
    pub message_time: Duration,
    /// How long duplicates of a complete message are acknowledged; 10 s in Linux.
    pub linger_time: Duration,
}

impl Default for ReceiveLimits {
    /// The values of Linux, and 64 MiB.
    fn default() -> Self {
        Self {
            window: 64,
            max_message: 64 << 20,
            message_time: Duration::from_secs(40),
            linger_time: Duration::from_secs(10),
        }
    }
}

/// The state of a receiver that an ACK tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledgement {
    /// The last segment received in order.
    pub(crate) segment: u32,
    /// The last segment that may be sent.
    pub(crate) window_last: u32,
}

#[cfg(test)]
mod tests;
