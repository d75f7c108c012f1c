//! Streams of packets: 16 bytes are kept of each packet.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use ib_types::{Psn, Qpn};
use ib_wire::packet::{Opcode, Operation, Packet, Position, RoceAddresses, RoceNetwork};

/// Where packets come from or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A LID, of packets without a GRH.
    Lid(u16),
    /// IPv4.
    V4(Ipv4Addr),
    /// IPv6, or the GID of a GRH.
    V6(Ipv6Addr),
}

impl Address {
    /// Returns the source and the destination of a packet.
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

/// At which end packets were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Where they were sent.
    Sent,
    /// Where they were received.
    Received,
    /// The file does not say.
    Unknown,
}

/// The fields that all packets of a stream share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) source: Address,
    pub(super) destination: Address,
    /// The queue pair that they are for.
    pub(super) to: Qpn,
    /// The queue pair that has sent them, of datagrams, which tell it.
    pub(super) datagrams_of: Option<Qpn>,
    /// The queue pair that has sent them, as far as the file names it.
    pub(super) sender: Option<Qpn>,
    pub(super) file: u8,
    pub(super) side: Side,
}

/// A packet.
///
/// Its place is its sequence number in the lower 24 bits, and in the upper ones how often sequence numbers have
/// come round, so that places of one stream have an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// In nanoseconds since 1970, by the clock of its file.
    pub(super) time: u64,
    pub(super) place: u32,
    /// Bytes of payload.
    pub(super) payload: u16,
    pub(super) opcode: Opcode,
    marks: u8,
}

impl Seen {
    /// The sender says that it was sent before.
    pub(super) const AGAIN: u8 = 1;
    /// The receiver says that it had no effect.
    pub(super) const DROPPED: u8 = 2;
    /// It is a refusal: what is before it is acknowledged, but not what it names.
    pub(super) const REFUSAL: u8 = 4;

    pub(super) const fn is(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    pub(super) fn operation(&self) -> Operation {
        self.opcode.operation().expect("packets of other operations are not kept")
    }

    pub(super) const fn psn(place: u32) -> Psn {
        Psn::truncated(place)
    }
}

/// A number that a few packets have, by their place; in 12 bytes.
#[derive(Clone, Copy, Debug)]
struct Note {
    place: u32,
    value: [u32; 2],
}

/// A packet of a stream, as read from a frame.
pub(super) struct StreamPacket {
    pub(super) time: u64,
    pub(super) psn: Psn,
    pub(super) opcode: Opcode,
    pub(super) operation: Operation,
    pub(super) payload: u16,
    pub(super) marks: u8,
    /// How long before it its request was posted, in nanoseconds.
    pub(super) posted: Option<u64>,
    /// Requested size of a READ in bytes.
    pub(super) asked: Option<u32>,
}

/// The place that the first packet of a stream gets but for its sequence number: far from both ends.
const MIDDLE: u32 = 128 << 24;

/// Packets of one direction between two queue pairs, as one end has seen them.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) key: Key,
    /// Requests, whose sequence numbers are the sender's, and responses, whose are the receiver's.
    pub(super) lanes: [Vec<Seen>; 2],
    /// The first place of each lane.
    pub(super) first: [Option<u32>; 2],
    highest: [u32; 2],
    posted: Vec<Note>,
    asked: Vec<Note>,
    /// The largest payload of packets that are followed by others of their message: the MTU.
    pub(super) mtu: u16,
}

/// The number of the lane of requests.
pub(super) const REQUESTS: usize = 0;
/// The number of the lane of responses.
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
        let place = match self.first[lane] {
            None => MIDDLE | told.psn.get(),
            Some(_) => {
                let highest = self.highest[lane];
                highest.wrapping_add_signed(told.psn.distance_from(Seen::psn(highest)))
            }
        };
        self.first[lane].get_or_insert(place);
        self.highest[lane] = self.highest[lane].max(place);
        let StreamPacket { time, payload, opcode, marks, .. } = *told;
        self.lanes[lane].push(Seen { time, place, payload, opcode, marks });
        if matches!(told.operation.position(), Position::First | Position::Middle) {
            self.mtu = self.mtu.max(payload);
        }
        if let Some(posted) = told.posted {
            self.posted.push(Note { place, value: [(posted >> 32) as u32, posted as u32] });
        }
        if let Some(asked) = told.asked {
            self.asked.push(Note { place, value: [0, asked] });
        }
    }

    /// Puts everything into the order of places, those of one place into that of their times.
    pub(super) fn sort(&mut self) {
        for lane in &mut self.lanes {
            lane.sort_by_key(|seen| (seen.place, seen.time));
        }
        for notes in [&mut self.posted, &mut self.asked] {
            notes.sort_by_key(|note| note.place);
        }
    }

    /// Moves the places of a lane by whole rounds so that its first one is as near as can be to that of the
    /// stream with the same sequence numbers.
    pub(super) fn align(&mut self, lane: usize, to: u32) {
        let Some(first) = self.first[lane] else { return };
        let near = to.wrapping_add_signed(Seen::psn(first).distance_from(Seen::psn(to)));
        let shift = near.wrapping_sub(first);
        if shift == 0 {
            return;
        }
        self.first[lane] = Some(near);
        let notes = self.posted.iter_mut().chain(&mut self.asked).map(|note| &mut note.place);
        let of_requests = notes.filter(|_| lane == REQUESTS);
        let places = self.lanes[lane].iter_mut().map(|seen| &mut seen.place);
        for place in places.chain(of_requests) {
            *place = place.wrapping_add(shift);
        }
    }

    /// Returns how long before the packet at a place its request was posted, where that is told.
    pub(super) fn posted(&self, place: u32) -> Option<u64> {
        find(&self.posted, place)
    }

    /// Returns how many bytes the READ at a place asks for.
    pub(super) fn asked(&self, place: u32) -> Option<u32> {
        find(&self.asked, place).map(|value| value as u32)
    }

    /// Returns the packets at a place, if its lane is sorted.
    pub(super) fn at(&self, lane: usize, place: u32) -> &[Seen] {
        let lane = &self.lanes[lane];
        let start = lane.partition_point(|seen| seen.place < place);
        let length = lane[start..].iter().take_while(|seen| seen.place == place).count();
        &lane[start..start + length]
    }

    pub(super) fn is_empty(&self, lane: usize) -> bool {
        self.lanes[lane].is_empty()
    }
}

fn find(notes: &[Note], place: u32) -> Option<u64> {
    let at = notes.partition_point(|note| note.place < place);
    let note = notes.get(at).filter(|note| note.place == place)?;
    Some(u64::from(note.value[0]) << 32 | u64::from(note.value[1]))
}
