//! A message becomes segments.

use ib_wire::mad::Mad;
use ib_wire::mad::rmpp::{
    self, RmppHeader, RmppStatus, RmppType, SEGMENT_LENGTH, VERSION, data_per_segment, segments,
};

use super::control::NO_RESPONSE_TIME;

/// A message that is going out.
#[derive(Debug)]
pub(crate) struct Sender {
    header: Mad,
    data: Vec<u8>,
    per_segment: u32,
    count: u32,
    acknowledged: u32,
    sent: u32,
    window_last: u32,
    /// May be sent although the window has no room: a receiver whose ACK was lost answers it.
    probe: u32,
}

/// What an acknowledgement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledged {
    /// It is old or tells nothing new; the window may have grown.
    Nothing,
    /// More segments have arrived.
    Progress,
    /// All segments have arrived.
    Complete,
    /// It breaks the rules; the receiver is to be told how.
    Failed(RmppStatus),
}

impl Sender {
    /// Returns a sender of data under the headers of a datagram, whose first `window_last` segments
    /// may be sent without an acknowledgement; `None` when the class has no transfers or the message
    /// is longer than a transfer can say.
    pub(crate) fn new(header: &Mad, data: Vec<u8>, window_last: u32) -> Option<Self> {
        let per_segment = data_per_segment(header.class())?;
        let count = segments(u32::try_from(data.len()).ok()?, per_segment);
        count.checked_mul(SEGMENT_LENGTH)?;
        let (header, window_last) = (*header, window_last.max(1));
        let (acknowledged, sent, probe) = (0, 0, 0);
        Some(Self { header, data, per_segment, count, acknowledged, sent, window_last, probe })
    }

    /// Returns the headers that all segments share.
    pub(crate) const fn header(&self) -> &Mad {
        &self.header
    }

    /// Returns the length of the data.
    pub(crate) const fn length(&self) -> usize {
        self.data.len()
    }

    /// Returns the number of segments.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    /// Returns true when the window lets a segment out.
    pub(crate) fn can_send(&self) -> bool {
        self.sent < self.count.min(self.let_out())
    }

    /// Returns the last segment that may have been sent so far, if the message has as many.
    fn let_out(&self) -> u32 {
        self.window_last.max(self.probe)
    }

    /// Returns the next segment that the window lets out.
    pub(crate) fn next_segment(&mut self) -> Option<Mad> {
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

    /// Takes the RMPP header of an acknowledgement.
    pub(crate) fn handle(&mut self, header: &RmppHeader) -> Acknowledged {
        let (segment, window_last) = (header.segment, header.length_or_window);
        if header.status != RmppStatus::NORMAL {
            return Acknowledged::Failed(RmppStatus::ILLEGAL_STATUS);
        }
        if window_last < segment {
            return Acknowledged::Failed(RmppStatus::WINDOW_TOO_SMALL);
        }
        // What was never let out cannot have arrived.
        if segment > self.count.min(self.let_out()) {
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

    /// Returns true when a segment was sent and is not acknowledged.
    pub(crate) const fn waits_for(&self, segment: u32) -> bool {
        segment > self.acknowledged && segment <= self.sent
    }

    /// Starts again behind the last acknowledged segment, which goes out whatever the window.
    pub(crate) fn rewind(&mut self) {
        self.sent = self.acknowledged;
        self.probe = self.acknowledged + 1;
    }
}
