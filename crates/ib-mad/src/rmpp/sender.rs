//! Segmentation of a message.

use ib_wire::mad::Mad;
use ib_wire::mad::rmpp::{
    self, RmppHeader, RmppStatus, RmppType, SEGMENT_LENGTH, VERSION, data_per_segment, segments,
};

use super::control::NO_RESPONSE_TIME;

/// Sender of a message.
#[derive(Debug)]
pub struct Sender {
    header: Mad,
    data: Vec<u8>,
    per_segment: u32,
    count: u32,
    acknowledged: u32,
    sent: u32,
    window_last: u32,
    /// Number of the segment that is sent after a timeout regardless of the window; 0 before the first timeout. If an
    /// ACK was lost, this segment makes the receiver send a new one.
    probe: u32,
}

/// Result of a received ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// The ACK acknowledges no new segment. It may extend the window.
    Nothing,
    /// The ACK acknowledges new segments, but not all segments of the message.
    Progress,
    /// The ACK acknowledges all segments.
    Complete,
    /// The ACK violates the protocol. The sender sends ABORT with this status.
    Failed(RmppStatus),
}

impl Sender {
    /// Creates a sender of data. All segments have the headers of the given datagram. The sender may send the first
    /// `window_last` segments before it receives an ACK. Returns `None` if the class does not use RMPP, or if the
    /// message is too long for its length field.
    #[must_use]
    pub fn new(header: &Mad, data: Vec<u8>, window_last: u32) -> Option<Self> {
        let per_segment = data_per_segment(header.class())?;
        let count = segments(u32::try_from(data.len()).ok()?, per_segment);
        count.checked_mul(SEGMENT_LENGTH)?;
        let (header, window_last) = (*header, window_last.max(1));
        let (acknowledged, sent, probe) = (0, 0, 0);
        Some(Self { header, data, per_segment, count, acknowledged, sent, window_last, probe })
    }

    /// Returns the headers that all segments have.
    #[must_use]
    pub const fn header(&self) -> &Mad {
        &self.header
    }

    /// Returns the length of the message's data in bytes.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.data.len()
    }

    /// Returns the number of segments of the message.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns true if the window permits another segment.
    #[must_use]
    pub fn can_send(&self) -> bool {
        self.sent < self.count.min(self.last_permitted())
    }

    /// Returns the number of the last segment that may be sent: the end of the window, or `probe` if `probe` is higher.
    fn last_permitted(&self) -> u32 {
        self.window_last.max(self.probe)
    }

    /// Returns the next segment, if the window permits it.
    pub fn next_segment(&mut self) -> Option<Mad> {
        if !self.can_send() {
            return None;
        }
        self.sent += 1;
        let (number, per_segment) = (self.sent, self.per_segment);
        let length = self.data.len() as u32;
        let mut mad = self.header;
        mad.set_rmpp(&RmppHeader {
            version: VERSION,
            rmpp_type: RmppType::DATA,
            resp_time: NO_RESPONSE_TIME,
            flags: rmpp::flags(number, self.count),
            status: RmppStatus::NORMAL,
            segment: number,
            length_or_window: rmpp::payload_length(length, per_segment, number),
        });
        let start = ((number - 1) * per_segment) as usize;
        let end = self.data.len().min(start + per_segment as usize);
        let part = &self.data[start..end];
        let data = mad.data_mut();
        data[..part.len()].copy_from_slice(part);
        data[part.len()..].fill(0);
        Some(mad)
    }

    /// Handles the RMPP header of an ACK.
    pub fn handle(&mut self, header: &RmppHeader) -> Acknowledged {
        let (segment, window_last) = (header.segment, header.length_or_window);
        if header.status != RmppStatus::NORMAL {
            return Acknowledged::Failed(RmppStatus::ILLEGAL_STATUS);
        }
        if window_last < segment {
            return Acknowledged::Failed(RmppStatus::WINDOW_TOO_SMALL);
        }
        // The receiver cannot have received a segment that was not permitted.
        if segment > self.count.min(self.last_permitted()) {
            return Acknowledged::Failed(RmppStatus::SEGMENT_TOO_BIG);
        }
        if segment < self.acknowledged || window_last < self.window_last {
            return Acknowledged::Nothing;
        }
        self.window_last = window_last;
        let progress = segment > self.acknowledged;
        self.acknowledged = segment;
        self.sent = self.sent.max(segment);
        match progress {
            _ if self.acknowledged == self.count => Acknowledged::Complete,
            true => Acknowledged::Progress,
            false => Acknowledged::Nothing,
        }
    }

    /// Returns true if the segment was sent but not acknowledged.
    #[must_use]
    pub const fn waits_for(&self, segment: u32) -> bool {
        segment > self.acknowledged && segment <= self.sent
    }

    /// Handles the timeout of an ACK: the next segment to send is the one after the last acknowledged segment. This
    /// segment is sent regardless of the window.
    pub fn rewind(&mut self) {
        self.sent = self.acknowledged;
        self.probe = self.acknowledged + 1;
    }
}
