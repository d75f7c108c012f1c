//! Extracts packets from frames, and queue pairs and directions from interface names.

use std::io::Read;

use ib_link::Direction;
use ib_types::Qpn;
use ib_wire::packet::{Acknowledgement, Operation};

use super::stream::{Address, CapturedPacket, Key, Side, StreamPacket};
use crate::file::{CaptureFile, Content, Frame};

/// Queue pairs and directions that the names of interfaces contain.
#[derive(Default)]
pub(super) struct Names {
    section: u32,
    names: Vec<Option<Option<(Qpn, Direction)>>>,
}

/// A packet extracted from a frame.
pub(super) struct ExtractedPacket {
    pub(super) key: Key,
    pub(super) packet: StreamPacket,
}

impl Names {
    /// Returns the queue pair and direction that the name of an interface contains.
    pub(super) fn of<R: Read>(
        &mut self,
        file: &CaptureFile<R>,
        interface: u32,
    ) -> Option<(Qpn, Direction)> {
        if self.section != file.sections() {
            *self = Self { section: file.sections(), names: Vec::new() };
        }
        let at = interface as usize;
        if self.names.len() <= at {
            self.names.resize(at + 1, None);
        }
        *self.names[at].get_or_insert_with(|| {
            let name = file.interface(interface)?.name.as_deref()?;
            // The interface name can begin with the name of the HCA, which is skipped.
            let (_, name) = name.rsplit_once("qp 0x")?;
            let (qpn, direction) = name.split_once(' ')?;
            let qpn = u32::from_str_radix(qpn, 16).ok().and_then(Qpn::new)?;
            let all = [Direction::Send, Direction::Receive];
            Some((qpn, all.into_iter().find(|known| known.name() == direction)?))
        })
    }
}

/// Returns which end captured a packet of this direction: the sender or the receiver.
pub(super) fn side(direction: Direction) -> Side {
    match direction {
        Direction::Send => Side::Sent,
        Direction::Receive => Side::Received,
    }
}

/// Extracts the RDMA packet of a frame; `None` if the frame has no time or no RDMA packet, or if
/// the operation of the packet is unknown.
pub(super) fn extract(frame: &Frame<'_>, file: u8) -> Option<ExtractedPacket> {
    let Content { network, packet, .. } = frame.content.as_ref().ok()?;
    let bth = packet.bth();
    let operation = bth.opcode.operation()?;
    let (source, destination) = Address::both(network.as_ref(), packet);
    let mut marks = 0;
    let mut posted = None;
    for comment in &frame.comments {
        if comment == "sent again" {
            marks |= CapturedPacket::AGAIN;
        } else if comment.starts_with("dropped: ") {
            marks |= CapturedPacket::DROPPED;
        } else if let Some(rest) = comment.strip_prefix("posted ") {
            posted = rest.strip_suffix(" ns before").and_then(|number| number.parse().ok());
        }
    }
    let refusal = packet.aeth().map(|aeth| aeth.syndrome.decode());
    if matches!(refusal, Some(Acknowledgement::Nak(_) | Acknowledgement::RnrNak(_))) {
        marks |= CapturedPacket::REFUSAL;
    }
    let key = Key {
        source,
        destination,
        to: bth.destination,
        datagrams_of: packet.deth().map(|deth| deth.source),
        sender: None,
        file,
        side: frame.direction.map_or(Side::Unknown, side),
    };
    let asked = (operation == Operation::ReadRequest).then(|| packet.reth()).flatten();
    let packet = StreamPacket {
        time: frame.time?,
        psn: bth.psn,
        opcode: bth.opcode,
        operation,
        payload: packet.payload().len().try_into().unwrap_or(u16::MAX),
        marks,
        posted,
        asked: asked.map(|reth| reth.dma_length),
    };
    Some(ExtractedPacket { key, packet })
}
