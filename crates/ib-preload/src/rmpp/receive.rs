//! The receiver of a message.

use std::collections::BTreeMap;

use ib_wire::mad::rmpp::{self, RmppFlags, RmppStatus, RmppType};
use ib_wire::mad::{MAD_LENGTH, Mad};

use super::{abort, answer, stop};

/// By how many segments the window grows: an eighth of the kernel's receive queue.
const WINDOW: u32 = 64;

/// The longest message in bytes of data, as our own programs take it: without a limit, a sender that
/// never says which segment is the last one takes all memory.
const MAX_MESSAGE: usize = 64 << 20;

/// A message on its way in.
pub(crate) struct Receiver {
    /// Segments that came, from 1; empty once the message was handed out.
    segments: BTreeMap<u32, Mad>,
    /// The last segment of those without a gap from the first.
    in_order: u32,
    window_last: u32,
    last: Option<u32>,
    done: bool,
    max_message: usize,
}

/// What a segment leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Nothing,
    /// A datagram to send.
    Send(Box<Mad>),
    /// The last acknowledgement to send, and the message: the headers of the first segment and all
    /// data.
    Whole(Box<Mad>, Vec<u8>),
    /// An abort or a stop to send; the transfer is over.
    Abort(Box<Mad>),
}

impl Receiver {
    pub(crate) const fn new() -> Self {
        Self::with_limit(MAX_MESSAGE)
    }

    /// Returns a receiver that takes messages of so many bytes of data.
    pub(super) const fn with_limit(max_message: usize) -> Self {
        Self {
            segments: BTreeMap::new(),
            in_order: 0,
            window_last: 1,
            last: None,
            done: false,
            max_message,
        }
    }

    /// Returns true when the message was handed out.
    pub(crate) const fn is_done(&self) -> bool {
        self.done
    }

    /// Takes a segment.
    pub(crate) fn handle(&mut self, mad: &Mad) -> Step {
        let header = mad.rmpp();
        let first = header.flags.contains(RmppFlags::FIRST);
        let wrong = |status| Step::Abort(Box::new(abort(mad, status)));
        if header.version != rmpp::VERSION {
            return wrong(RmppStatus::BAD_VERSION);
        }
        if header.status != RmppStatus::NORMAL {
            return wrong(RmppStatus::ILLEGAL_STATUS);
        }
        if first != (header.segment == 1) {
            return wrong(RmppStatus::INCONSISTENT_FIRST);
        }
        if header.segment <= self.in_order {
            return self.acknowledge(mad);
        }
        if header.segment > self.window_last || self.done {
            return Step::Nothing;
        }
        let most = self.max_message.div_ceil(MAD_LENGTH - mad.class().data_offset());
        if self.segments.len() >= most && !self.segments.contains_key(&header.segment) {
            return Step::Abort(Box::new(stop(mad)));
        }
        if header.flags.contains(RmppFlags::LAST) {
            self.last = Some(header.segment);
        }
        self.segments.insert(header.segment, *mad);
        while self.segments.contains_key(&(self.in_order + 1)) {
            self.in_order += 1;
        }
        if self.last.is_some_and(|last| last == self.in_order) {
            let message = self.message();
            let ack = self.ack(mad);
            self.done = true;
            self.segments.clear();
            return Step::Whole(Box::new(ack), message);
        }
        if self.in_order == self.window_last {
            self.window_last += WINDOW;
            return self.acknowledge(mad);
        }
        Step::Nothing
    }

    fn acknowledge(&self, mad: &Mad) -> Step {
        Step::Send(Box::new(self.ack(mad)))
    }

    fn ack(&self, mad: &Mad) -> Mad {
        let window = self.window_last.max(self.in_order);
        answer(mad, RmppType::ACK, RmppStatus::NORMAL, self.in_order, window)
    }

    /// Puts the segments together. What the last one says of its length decides; an impossible
    /// length is taken as a full segment.
    fn message(&self) -> Vec<u8> {
        let mut message = Vec::with_capacity(self.segments.len() * MAD_LENGTH);
        for (&number, mad) in &self.segments {
            let offset = mad.class().data_offset();
            let room = (MAD_LENGTH - offset) as u32;
            let length = match number {
                number if number == self.in_order => {
                    rmpp::last_data(mad.rmpp().length_or_window, room).unwrap_or(room)
                }
                _ => room,
            };
            let start = if number == 1 { 0 } else { offset };
            message.extend_from_slice(&mad.0[start..offset + length as usize]);
        }
        message
    }
}
