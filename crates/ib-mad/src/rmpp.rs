//! RMPP: messages of several segments, with the behaviour of the Linux kernel; IBTA volume 1, chapter 13.6.
//!
//! A sender starts with a window of one segment. Each ACK contains the number of the last segment that the sender may
//! send. A receiver acknowledges the first segment, each segment that ends a window, the last segment, and duplicates.
//! After a timeout, the sender continues after the last acknowledged segment.
//!
//! | module | contents |
//! |---|---|
//! | `receiver` | [`Receiver`]: reassembles a message |
//! | `sender` | [`Sender`]: splits a message into segments |
//! | [`control`] | ACK, STOP and ABORT; classification of received datagrams |
//!
//! Senders and receivers have no timers. Requesters and responders run the timers.

use std::time::Duration;

pub mod control;
mod receiver;
mod sender;

pub use control::{Acknowledgement, Kind, classify};
pub use receiver::{Progress, ReceiveLimits, Receiver};
pub use sender::{Acknowledged, Sender};

/// The maximum time after which unacknowledged segments are retransmitted.
pub(crate) const MAX_ACKNOWLEDGEMENT_TIME: Duration = Duration::from_secs(2);

/// The default memory limit for all RMPP messages of a requester or responder: 256 MiB.
pub(crate) const MAX_HELD: usize = 256 << 20;

#[cfg(test)]
mod tests;
