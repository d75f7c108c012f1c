//! Packets of both views of a flow side by side.

use ib_wire::packet::Transport;

use super::clock::ClockPoints;
use super::stream::{Seen, Stream};

/// Counters of packets that two captures should both have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// Packets that both ends have seen.
    pub matched: u64,
    /// Packets that only the capture at the sender has: they were lost, or not captured where they came.
    pub sent_only: u64,
    /// Packets that only the capture at the receiver has: they were not captured where they came from, or the
    /// network has doubled them.
    pub received_only: u64,
    /// Requests that were sent again.
    pub sent_again: u64,
}

impl std::ops::AddAssign for Matched {
    fn add_assign(&mut self, other: Self) {
        self.matched += other.matched;
        self.sent_only += other.sent_only;
        self.received_only += other.received_only;
        self.sent_again += other.sent_again;
    }
}

/// The packets of one place, as both ends have seen them, in the order of their times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Both<'a> {
    pub(super) place: u32,
    pub(super) sent: &'a [Seen],
    pub(super) received: &'a [Seen],
}

impl Both<'_> {
    /// Returns one of them, that of the sender where there is one.
    pub(super) fn any(&self) -> &Seen {
        self.sent.first().or(self.received.first()).expect("a place has a packet")
    }

    /// Returns how often it was sent again, as far as the sender's capture tells.
    pub(super) fn sent_again(&self) -> u32 {
        let marked = self.sent.iter().filter(|seen| seen.is(Seen::AGAIN)).count();
        let again = if self.any().opcode.transport() == Transport::Ud {
            // Datagrams need no numbers of their own.
            0
        } else {
            self.sent.len().saturating_sub(1)
        };
        again.max(marked) as u32
    }

    fn count(&self) -> Matched {
        let (sent, received) = (self.sent.len() as u64, self.received.len() as u64);
        let matched = if let ([one], [other]) = (self.sent, self.received) {
            u64::from(one.opcode == other.opcode)
        } else {
            // Acknowledgements and data that was read can have the same number.
            let mut kinds = [[0_u64; 2]; 256];
            for (view, all) in [self.sent, self.received].into_iter().enumerate() {
                for seen in all {
                    kinds[usize::from(seen.opcode.0)][view] += 1;
                }
            }
            kinds.iter().map(|[sent, received]| sent.min(received)).sum()
        };
        Matched {
            matched,
            sent_only: sent - matched,
            received_only: received - matched,
            sent_again: 0,
        }
    }
}

/// Goes over the places of two sorted lanes.
pub(super) struct SideBySide<'a> {
    sent: &'a [Seen],
    received: &'a [Seen],
}

impl<'a> SideBySide<'a> {
    pub(super) fn new(sent: Option<&'a Stream>, received: Option<&'a Stream>, lane: usize) -> Self {
        let of = |stream: Option<&'a Stream>| stream.map_or(&[][..], |stream| &stream.lanes[lane]);
        Self { sent: of(sent), received: of(received) }
    }
}

impl<'a> Iterator for SideBySide<'a> {
    type Item = Both<'a>;

    fn next(&mut self) -> Option<Both<'a>> {
        let next = [self.sent.first(), self.received.first()];
        let place = next.iter().flatten().map(|seen| seen.place).min()?;
        Some(Both {
            place,
            sent: take(&mut self.sent, place),
            received: take(&mut self.received, place),
        })
    }
}

fn take<'a>(lane: &mut &'a [Seen], place: u32) -> &'a [Seen] {
    let length = lane.iter().take_while(|seen| seen.place == place).count();
    let (these, rest) = lane.split_at(length);
    *lane = rest;
    these
}

/// Counts what is in both views of a lane, and adds to the points of the clocks the packets that were sent once and
/// came once.
pub(super) fn compare(
    sent: Option<&Stream>,
    received: Option<&Stream>,
    lane: usize,
    clock: &mut ClockPoints,
) -> Matched {
    let files = sent.zip(received).map(|(a, b)| (a.key.file, b.key.file));
    let mut all = Matched::default();
    for both in SideBySide::new(sent, received, lane) {
        all += both.count();
        if lane == super::stream::REQUESTS {
            all.sent_again += u64::from(both.sent_again());
        }
        if let ([sent], [received]) = (both.sent, both.received)
            && sent.opcode == received.opcode
            && !sent.is(Seen::AGAIN)
        {
            match files {
                Some((0, 1)) => clock.forward(sent.time, received.time),
                Some((1, 0)) => clock.backward(sent.time, received.time),
                _ => {}
            }
        }
    }
    all
}
