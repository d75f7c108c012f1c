//! The sender of a message.

use ib_wire::mad::rmpp::{self, RmppHeader, RmppStatus, RmppType};
use ib_wire::mad::{MAD_LENGTH, Mad};

/// A message on its way out.
pub(crate) struct Sender {
    /// The headers and behind them the data, of all segments together.
    message: Vec<u8>,
    count: u32,
    acknowledged: u32,
    window_last: u32,
    /// The segment that is sent next.
    next: u32,
}

/// What an acknowledgement means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Acknowledged {
    /// Nothing new.
    Old,
    /// More of the message arrived.
    Progress,
    /// All of it did.
    Whole,
    /// It contradicts the transfer, which ends with this status.
    Wrong(RmppStatus),
}

impl Sender {
    /// Starts with a message: the headers of its class and all data behind them.
    ///
    /// # Panics
    /// Panics when the class does not use RMPP or the message is shorter than its headers.
    pub(crate) fn new(message: Vec<u8>) -> Self {
        let offset = MAD_LENGTH - data_per_segment(&message);
        let length = message.len().checked_sub(offset).expect("a message has its headers");
        let count = rmpp::segments(length as u32, data_per_segment(&message) as u32);
        Self { message, count, acknowledged: 0, window_last: 1, next: 1 }
    }

    /// Returns the next segment that the window lets out and how many of its bytes count.
    pub(crate) fn poll_segment(&mut self) -> Option<(Mad, u16)> {
        (self.next <= self.window_last.min(self.count)).then(|| {
            self.next += 1;
            self.segment(self.next - 1)
        })
    }

    fn segment(&self, number: u32) -> (Mad, u16) {
        let per_segment = data_per_segment(&self.message);
        let offset = MAD_LENGTH - per_segment;
        let (headers, data) = self.message.split_at(offset);
        let start = (number - 1) as usize * per_segment;
        let part = &data[start..data.len().min(start + per_segment)];
        let mut mad = Mad::default();
        mad.0[..offset].copy_from_slice(headers);
        mad.0[offset..offset + part.len()].copy_from_slice(part);
        mad.set_rmpp(&RmppHeader {
            version: rmpp::VERSION,
            rmpp_type: RmppType::DATA,
            resp_time: 0,
            flags: rmpp::flags(number, self.count),
            status: RmppStatus::NORMAL,
            segment: number,
            length_or_window: rmpp::payload_length(data.len() as u32, per_segment as u32, number),
        });
        (mad, (offset + part.len()) as u16)
    }

    /// Takes an acknowledgement.
    pub(crate) fn handle(&mut self, ack: &RmppHeader) -> Acknowledged {
        let (segment, window) = (ack.segment, ack.length_or_window);
        if ack.status != RmppStatus::NORMAL {
            return Acknowledged::Wrong(RmppStatus::ILLEGAL_STATUS);
        }
        if window < segment {
            return Acknowledged::Wrong(RmppStatus::WINDOW_TOO_SMALL);
        }
        if segment > self.count || segment > self.window_last {
            return Acknowledged::Wrong(RmppStatus::SEGMENT_TOO_BIG);
        }
        if segment < self.acknowledged || window < self.window_last {
            return Acknowledged::Old;
        }
        let progress = segment > self.acknowledged || window > self.window_last;
        self.acknowledged = segment;
        self.window_last = window;
        self.next = self.next.max(segment + 1);
        match progress {
            _ if segment == self.count => Acknowledged::Whole,
            true => Acknowledged::Progress,
            false => Acknowledged::Old,
        }
    }

    /// Goes back to the first segment that was not acknowledged.
    pub(crate) const fn restart(&mut self) {
        self.next = self.acknowledged + 1;
    }
}

fn data_per_segment(message: &[u8]) -> usize {
    let class = ib_wire::mad::MgmtClass(message[1]);
    rmpp::data_per_segment(class).expect("only messages of classes with RMPP are sent so") as usize
}
