//! Segments become a message.

use std::collections::BTreeMap;

use ib_wire::mad::Mad;
use ib_wire::mad::rmpp::{
    RmppFlags, RmppStatus, SEGMENT_LENGTH, data_per_segment, last_data, segments,
};

use super::{Acknowledgement, ReceiveLimits};

/// A message that is coming in.
#[derive(Debug)]
pub(crate) struct Receiver {
    per_segment: u32,
    limits: ReceiveLimits,
    state: Acknowledgement,
    data: Vec<u8>,
    /// Segments of the window that came before one that is missing.
    ahead: BTreeMap<u32, Mad>,
}

/// What a segment does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing is to be sent.
    Nothing,
    /// The state is to be told to the sender.
    Acknowledge(Acknowledgement),
    /// The message is complete; the state is to be told to the sender.
    Complete(Acknowledgement),
    /// The transfer is over; the sender is to be told why.
    Failed(RmppStatus),
}

impl Receiver {
    /// Returns a receiver that waits for the first segment of a message; `None` when the class of the
    /// datagram has none.
    pub(crate) fn new(mad: &Mad, limits: ReceiveLimits) -> Option<Self> {
        let per_segment = data_per_segment(mad.class())?;
        let state = Acknowledgement { segment: 0, window_last: 1 };
        Some(Self { per_segment, limits, state, data: Vec::new(), ahead: BTreeMap::new() })
    }

    /// Takes a segment of the message that the receiver was made for.
    pub(crate) fn handle(&mut self, mad: &Mad) -> Progress {
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
        if header.segment > self.state.window_last || self.ahead.contains_key(&header.segment) {
            return Progress::Nothing;
        }
        if header.segment != self.state.segment + 1 {
            self.ahead.insert(header.segment, *mad);
            return Progress::Nothing;
        }
        self.advance(mad)
    }

    /// Returns how many bytes it holds.
    pub(crate) fn held(&self) -> usize {
        self.data.len() + self.ahead.len() * size_of::<Mad>()
    }

    /// Returns the message and leaves nothing behind.
    pub(crate) fn take_data(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.data)
    }

    /// Takes the segment that was missing and those that waited for it.
    fn advance(&mut self, mad: &Mad) -> Progress {
        let mut next = Some(*mad);
        while let Some(mad) = next {
            if let Err(status) = self.append(&mad) {
                return Progress::Failed(status);
            }
            self.state.segment += 1;
            if mad.rmpp().flags.contains(RmppFlags::LAST) {
                self.ahead.clear();
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

    /// Returns what the first segment of the longest message says as payload length, or a bit more.
    fn longest_announced(&self) -> u32 {
        let max_message = u32::try_from(self.limits.max_message).unwrap_or(u32::MAX);
        segments(max_message, self.per_segment).saturating_mul(SEGMENT_LENGTH)
    }
}
