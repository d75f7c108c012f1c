//! Reassembly of a message.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_wire::mad::Mad;
use ib_wire::mad::rmpp::{
    RmppFlags, RmppStatus, SEGMENT_LENGTH, data_per_segment, last_data, segments,
};

use super::control::Acknowledgement;

/// Limits of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveLimits {
    /// Number of segments by which an ACK extends the window, at least 1. If a segment is missing, the receiver keeps
    /// at most this many later segments. Linux uses 64, an eighth of its receive queue.
    pub window: u32,
    /// Maximum length of a message in bytes of data. The receiver stops the transfer of a longer message.
    pub max_message: usize,
    /// Maximum time from the first segment to the last one; 40 s in Linux.
    pub message_time: Duration,
    /// Time during which duplicates of a complete message are acknowledged; 10 s in Linux.
    pub linger_time: Duration,
}

impl Default for ReceiveLimits {
    /// Returns the window and timeouts of Linux, and a maximum message length of 64 MiB.
    fn default() -> Self {
        Self {
            window: 64,
            max_message: 64 << 20,
            message_time: Duration::from_secs(40),
            linger_time: Duration::from_secs(10),
        }
    }
}

/// Receiver of a message.
#[derive(Debug)]
pub struct Receiver {
    per_segment: u32,
    limits: ReceiveLimits,
    state: Acknowledgement,
    data: Vec<u8>,
    /// Segments in the window that arrived out of order: an earlier segment is missing.
    ahead: BTreeMap<u32, Mad>,
    is_complete: bool,
    accepts_any_last_length: bool,
}

/// Result of a received segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The receiver sends nothing.
    Nothing,
    /// The receiver sends this ACK.
    Acknowledge(Acknowledgement),
    /// The message is complete, and the receiver sends this ACK.
    Complete(Acknowledgement),
    /// The transfer has failed, and the receiver sends STOP or ABORT with this status.
    Failed(RmppStatus),
}

impl Receiver {
    /// Creates a receiver for a message whose first segment is the given MAD; `None` if the class does not use RMPP.
    #[must_use]
    pub fn new(mad: &Mad, limits: ReceiveLimits) -> Option<Self> {
        let per_segment = data_per_segment(mad.class())?;
        let state = Acknowledgement { segment: 0, window_last: 1 };
        Some(Self {
            per_segment,
            limits,
            state,
            data: Vec::new(),
            ahead: BTreeMap::new(),
            is_complete: false,
            accepts_any_last_length: false,
        })
    }

    /// Treats the last segment as full if its payload length is impossible, as the kernel does. Without this option, an
    /// impossible length ends the transfer.
    #[must_use]
    pub const fn accept_any_last_length(mut self) -> Self {
        self.accepts_any_last_length = true;
        self
    }

    /// Returns true if all segments were received.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Handles a segment of the message.
    pub fn handle(&mut self, mad: &Mad) -> Progress {
        let header = mad.rmpp();
        if header.status != RmppStatus::NORMAL {
            return Progress::Failed(RmppStatus::ILLEGAL_STATUS);
        }
        if header.flags.contains(RmppFlags::FIRST) != (header.segment == 1) {
            return Progress::Failed(RmppStatus::INCONSISTENT_FIRST);
        }
        if header.segment <= self.state.segment {
            return match self.state.segment {
                0 => Progress::Nothing,
                _ => Progress::Acknowledge(self.state),
            };
        }
        let is_in_window = header.segment <= self.state.window_last && !self.is_complete;
        if !is_in_window || self.ahead.contains_key(&header.segment) {
            return Progress::Nothing;
        }
        if header.segment != self.state.segment + 1 {
            self.ahead.insert(header.segment, *mad);
            return Progress::Nothing;
        }
        self.advance(mad)
    }

    /// Returns how many bytes the received segments take.
    #[must_use]
    pub fn held(&self) -> usize {
        self.data.len() + self.ahead.len() * size_of::<Mad>()
    }

    /// Removes and returns the received data.
    #[must_use]
    pub fn take_data(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.data)
    }

    /// Appends the next segment and the later segments that arrived before it.
    fn advance(&mut self, mad: &Mad) -> Progress {
        let mut next = Some(*mad);
        while let Some(mad) = next {
            if let Err(status) = self.append(&mad) {
                return Progress::Failed(status);
            }
            self.state.segment += 1;
            if mad.rmpp().flags.contains(RmppFlags::LAST) {
                self.ahead.clear();
                self.is_complete = true;
                return Progress::Complete(self.state);
            }
            next = self.ahead.remove(&(self.state.segment + 1));
        }
        if self.state.segment < self.state.window_last {
            return Progress::Nothing;
        }
        let window = self.limits.window.max(1);
        self.state.window_last = self.state.window_last.saturating_add(window);
        Progress::Acknowledge(self.state)
    }

    /// Appends the data of the next segment.
    fn append(&mut self, mad: &Mad) -> Result<(), RmppStatus> {
        let header = mad.rmpp();
        let length = if header.flags.contains(RmppFlags::LAST) {
            last_data(header.length_or_window, self.per_segment)
                .or(self.accepts_any_last_length.then_some(self.per_segment))
                .ok_or(RmppStatus::INCONSISTENT_LAST)?
        } else {
            self.per_segment
        } as usize;
        let announced = if header.segment == 1 { header.length_or_window } else { 0 };
        if announced > self.longest_announced()
            || self.data.len() + length > self.limits.max_message
        {
            return Err(RmppStatus::RESOURCES_EXHAUSTED);
        }
        self.data.extend_from_slice(&mad.data()[..length]);
        Ok(())
    }

    /// Returns the maximum payload length that the first segment may announce.
    fn longest_announced(&self) -> u32 {
        let max_message = u32::try_from(self.limits.max_message).unwrap_or(u32::MAX);
        segments(max_message, self.per_segment).saturating_mul(SEGMENT_LENGTH)
    }
}
