//! Streams of captured packets. Each packet takes 16 bytes of memory.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use ib_types::{Psn, Qpn};
use ib_wire::packet::{Opcode, Operation, Packet, Position, RoceAddresses, RoceNetwork};

/// Source or destination address of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// LID of packets without a GRH.
    Lid(u16),
    /// IPv4 address.
    V4(Ipv4Addr),
    /// IPv6 address, or GID of a GRH.
    V6(Ipv6Addr),
}

impl Address {
    /// Returns the source and destination addresses of a packet.
    pub(super) fn both(network: Option<&RoceNetwork>, packet: &Packet<'_>) -> (Self, Self) {
        match network.map(|network| network.addresses) {
            Some(RoceAddresses::V4 { source, destination, .. }) => {
                (Self::V4(source), Self::V4(destination))
            }
            Some(RoceAddresses::V6 { source, destination }) => {
                (Self::V6(source), Self::V6(destination))
            }
            None => match (packet.grh(), packet.lrh()) {
                (Some(grh), _) => {
                    (Self::V6(grh.source.0.into()), Self::V6(grh.destination.0.into()))
                }
                (None, Some(lrh)) => (Self::Lid(lrh.slid), Self::Lid(lrh.dlid)),
                (None, None) => (Self::Lid(0), Self::Lid(0)),
            },
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lid(lid) => write!(f, "LID {lid}"),
            Self::V4(address) => address.fmt(f),
            Self::V6(address) => address.fmt(f),
        }
    }
}

/// The end at which packets were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// At the sender.
    Sent,
    /// At the receiver.
    Received,
    /// Unknown, since the file does not report the direction of packets.
    Unknown,
}

/// The fields that all packets of a stream share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) source: Address,
    pub(super) destination: Address,
    /// Destination queue pair.
    pub(super) to: Qpn,
    /// Source queue pair, for UD packets only: their DETH contains it.
    pub(super) datagrams_of: Option<Qpn>,
    /// Source queue pair, if the name of the interface contains it.
    pub(super) sender: Option<Qpn>,
    pub(super) file: u8,
    pub(super) side: Side,
}

/// A captured packet.
///
/// The lower 24 bits of `position` are the PSN. The upper 8 bits count the wrap-arounds of the PSN. A packet after a
/// wrap-around therefore has a larger position than the packets before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CapturedPacket {
    /// Time in nanoseconds since 1970, by the clock of its file.
    pub(super) time: u64,
    pub(super) position: u32,
    /// Payload length in bytes.
    pub(super) payload: u16,
    pub(super) opcode: Opcode,
    marks: u8,
}

impl CapturedPacket {
    /// Mark: the sender reports that the packet is a retransmission.
    pub(super) const AGAIN: u8 = 1;
    /// Mark: the receiver has dropped the packet.
    pub(super) const DROPPED: u8 = 2;
    /// Mark: the packet is a NAK. It acknowledges the packets before its PSN, but not the PSN
    /// itself.
    pub(super) const REFUSAL: u8 = 4;

    pub(super) const fn is(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    pub(super) fn operation(&self) -> Operation {
        self.opcode.operation().expect("packets with unknown operations are not stored")
    }

    pub(super) const fn psn(position: u32) -> Psn {
        Psn::truncated(position)
    }
}

/// A value of the packet at `position`: the time since the post, or the requested size of a READ. Only a few packets
/// have one, so the values are stored in separate lists. Each takes 12 bytes.
#[derive(Clone, Copy, Debug)]
struct PacketValue {
    position: u32,
    value: [u32; 2],
}

/// A packet of a stream, as extracted from a frame.
pub(super) struct StreamPacket {
    pub(super) time: u64,
    pub(super) psn: Psn,
    pub(super) opcode: Opcode,
    pub(super) operation: Operation,
    pub(super) payload: u16,
    pub(super) marks: u8,
    /// Time from the post of the request to the packet, in nanoseconds.
    pub(super) posted: Option<u64>,
    /// Requested size of a READ in bytes.
    pub(super) asked: Option<u32>,
}

/// Upper 8 bits (count of wrap-arounds) of the position of the first captured packet. The count does not start at 0,
/// since a packet from before a wrap-around can be captured after the first packet.
const MIDDLE: u32 = 128 << 24;

/// The packets of one direction between two queue pairs, as captured at one end.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) key: Key,
    /// Two lists of packets: requests, and responses to the receiver's requests. Each response has
    /// a PSN of the request that it answers.
    pub(super) lanes: [Vec<CapturedPacket>; 2],
    /// Position (PSN and wrap-arounds) of the first captured packet of each list of `lanes`.
    pub(super) first: [Option<u32>; 2],
    highest: [u32; 2],
    posted: Vec<PacketValue>,
    asked: Vec<PacketValue>,
    /// The MTU: the largest payload of a first or middle packet of a message.
    pub(super) mtu: u16,
}

/// Index in [`Stream::lanes`] of the list of requests.
pub(super) const REQUESTS: usize = 0;
/// Index in [`Stream::lanes`] of the list of responses.
pub(super) const RESPONSES: usize = 1;

impl Stream {
    pub(super) fn new(key: Key) -> Self {
        Self {
            key,
            lanes: [Vec::new(), Vec::new()],
            first: [None; 2],
            highest: [0; 2],
            posted: Vec::new(),
            asked: Vec::new(),
            mtu: 0,
        }
    }

    pub(super) fn push(&mut self, told: &StreamPacket) {
        let lane = usize::from(told.operation.is_response());
        let position = match self.first[lane] {
            None => MIDDLE | told.psn.get(),
            Some(_) => {
                let highest = self.highest[lane];
                highest.wrapping_add_signed(told.psn.distance_from(CapturedPacket::psn(highest)))
            }
        };
        self.first[lane].get_or_insert(position);
        self.highest[lane] = self.highest[lane].max(position);
        let StreamPacket { time, payload, opcode, marks, .. } = *told;
        self.lanes[lane].push(CapturedPacket { time, position, payload, opcode, marks });
        if matches!(told.operation.position(), Position::First | Position::Middle) {
            self.mtu = self.mtu.max(payload);
        }
        if let Some(posted) = told.posted {
            self.posted
                .push(PacketValue { position, value: [(posted >> 32) as u32, posted as u32] });
        }
        if let Some(asked) = told.asked {
            self.asked.push(PacketValue { position, value: [0, asked] });
        }
    }

    /// Sorts the packets by position, then by time.
    pub(super) fn sort(&mut self) {
        for lane in &mut self.lanes {
            lane.sort_by_key(|seen| (seen.position, seen.time));
        }
        for values in [&mut self.posted, &mut self.asked] {
            values.sort_by_key(|note| note.position);
        }
    }

    /// Shifts the positions of the packets in `lanes[lane]` by a multiple of the PSN range (2^24), so that the first
    /// position is as close as possible to `to`. `to` is the first position in a list that shares the PSNs.
    pub(super) fn align(&mut self, lane: usize, to: u32) {
        let Some(first) = self.first[lane] else { return };
        let near = to
            .wrapping_add_signed(CapturedPacket::psn(first).distance_from(CapturedPacket::psn(to)));
        let shift = near.wrapping_sub(first);
        if shift == 0 {
            return;
        }
        self.first[lane] = Some(near);
        let values = self.posted.iter_mut().chain(&mut self.asked).map(|note| &mut note.position);
        let of_requests = values.filter(|_| lane == REQUESTS);
        let places = self.lanes[lane].iter_mut().map(|seen| &mut seen.position);
        for position in places.chain(of_requests) {
            *position = position.wrapping_add(shift);
        }
    }

    /// Returns the time from the post of a request to its packet at this position, if known.
    pub(super) fn posted(&self, position: u32) -> Option<u64> {
        find(&self.posted, position)
    }

    /// Returns the requested size of the READ at this position.
    pub(super) fn asked(&self, position: u32) -> Option<u32> {
        find(&self.asked, position).map(|value| value as u32)
    }

    /// Returns the packets with this position (PSN and wrap-arounds) in a list of packets. `lane` is [`REQUESTS`] or
    /// [`RESPONSES`].
    pub(super) fn at(&self, lane: usize, position: u32) -> &[CapturedPacket] {
        let lane = &self.lanes[lane];
        let start = lane.partition_point(|seen| seen.position < position);
        let length = lane[start..].iter().take_while(|seen| seen.position == position).count();
        &lane[start..start + length]
    }

    pub(super) fn is_empty(&self, lane: usize) -> bool {
        self.lanes[lane].is_empty()
    }
}

fn find(values: &[PacketValue], position: u32) -> Option<u64> {
    let at = values.partition_point(|note| note.position < position);
    let note = values.get(at).filter(|note| note.position == position)?;
    Some(u64::from(note.value[0]) << 32 | u64::from(note.value[1]))
}
