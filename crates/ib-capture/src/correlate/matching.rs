//! Matches the packets of a flow in the sender's capture with the packets in the receiver's
//! capture.

use ib_wire::packet::Transport;

use super::clock::ClockPoints;
use super::stream::{CapturedPacket, Stream};

/// Counts of packets that are in both captures, or in only one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchCounts {
    /// Number of packets in both captures.
    pub matched: u64,
    /// Number of packets in the sender's capture only. They were lost, or not captured at the
    /// receiver.
    pub sent_only: u64,
    /// Number of packets in the receiver's capture only. They were not captured at the sender, or
    /// duplicated by the network.
    pub received_only: u64,
    /// Number of retransmissions of request packets.
    pub sent_again: u64,
}

impl std::ops::AddAssign for MatchCounts {
    fn add_assign(&mut self, other: Self) {
        self.matched += other.matched;
        self.sent_only += other.sent_only;
        self.received_only += other.received_only;
        self.sent_again += other.sent_again;
    }
}

/// The packets at one position (PSN and number of wrap-arounds), as captured at both ends, in the
/// order of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct PositionPackets<'a> {
    pub(super) position: u32,
    pub(super) sent: &'a [CapturedPacket],
    pub(super) received: &'a [CapturedPacket],
}

impl PositionPackets<'_> {
    /// Returns one packet at this position, preferably from the sender's capture.
    pub(super) fn any(&self) -> &CapturedPacket {
        self.sent.first().or(self.received.first()).expect("a position has at least one packet")
    }

    /// Returns the number of retransmissions in the sender's capture.
    pub(super) fn sent_again(&self) -> u32 {
        let marked = self.sent.iter().filter(|seen| seen.is(CapturedPacket::AGAIN)).count();
        let again = if self.any().opcode.transport() == Transport::Ud {
            // Several UD packets can have the same PSN, so a repeated PSN is not a retransmission.
            0
        } else {
            self.sent.len().saturating_sub(1)
        };
        again.max(marked) as u32
    }

    fn count(&self) -> MatchCounts {
        let (sent, received) = (self.sent.len() as u64, self.received.len() as u64);
        let matched = if let ([one], [other]) = (self.sent, self.received) {
            u64::from(one.opcode == other.opcode)
        } else {
            // Acknowledgements and READ responses can have the same PSN, so only packets with the same opcode match.
            let mut kinds = [[0_u64; 2]; 256];
            for (view, all) in [self.sent, self.received].into_iter().enumerate() {
                for seen in all {
                    kinds[usize::from(seen.opcode.0)][view] += 1;
                }
            }
            kinds.iter().map(|[sent, received]| sent.min(received)).sum()
        };
        MatchCounts {
            matched,
            sent_only: sent - matched,
            received_only: received - matched,
            sent_again: 0,
        }
    }
}

/// Iterates over two sorted lists of packets, one from the sender's and one from the receiver's capture. Returns the
/// packets of both lists position by position.
pub(super) struct SideBySide<'a> {
    sent: &'a [CapturedPacket],
    received: &'a [CapturedPacket],
}

impl<'a> SideBySide<'a> {
    pub(super) fn new(sent: Option<&'a Stream>, received: Option<&'a Stream>, lane: usize) -> Self {
        let of = |stream: Option<&'a Stream>| stream.map_or(&[][..], |stream| &stream.lanes[lane]);
        Self { sent: of(sent), received: of(received) }
    }
}

impl<'a> Iterator for SideBySide<'a> {
    type Item = PositionPackets<'a>;

    fn next(&mut self) -> Option<PositionPackets<'a>> {
        let next = [self.sent.first(), self.received.first()];
        let position = next.iter().flatten().map(|seen| seen.position).min()?;
        Some(PositionPackets {
            position,
            sent: take(&mut self.sent, position),
            received: take(&mut self.received, position),
        })
    }
}

fn take<'a>(lane: &mut &'a [CapturedPacket], position: u32) -> &'a [CapturedPacket] {
    let length = lane.iter().take_while(|seen| seen.position == position).count();
    let (these, rest) = lane.split_at(length);
    *lane = rest;
    these
}

/// Counts the packets of both captures. Adds packets that were sent once and received once to
/// `clock`, which estimates the clock offset.
pub(super) fn compare(
    sent: Option<&Stream>,
    received: Option<&Stream>,
    lane: usize,
    clock: &mut ClockPoints,
) -> MatchCounts {
    let files = sent.zip(received).map(|(a, b)| (a.key.file, b.key.file));
    let mut all = MatchCounts::default();
    for both in SideBySide::new(sent, received, lane) {
        all += both.count();
        if lane == super::stream::REQUESTS {
            all.sent_again += u64::from(both.sent_again());
        }
        if let ([sent], [received]) = (both.sent, both.received)
            && sent.opcode == received.opcode
            && !sent.is(CapturedPacket::AGAIN)
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
