//! Open ports: arrived packets and recorded losses that the HCA at the port has not taken yet.

use std::collections::{BTreeMap, VecDeque};

use ib_topology::PortId;
use ib_types::Instant;
use ib_wire::packet::{Bth, Deth};

use crate::flight::{BufferSpace, Flight};
use crate::loss::Loss;
use crate::packet::{Packet, Payload};

/// At most this many bytes of a lost packet are kept, from its BTH on. This is enough for all
/// headers.
const MAX_HEADERS: usize = 64;

/// At most this many lost packets are recorded per port.
const MAX_LOSSES: usize = 65_536;

/// A packet that was lost on its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// The time of the loss.
    pub at: Instant,
    /// The port at which the packet was lost.
    pub port: PortId,
    /// The reason of the loss.
    pub why: Loss,
    /// The packet. Its payload is truncated after the headers.
    pub packet: Packet,
    /// Length of the packet before truncation, from the BTH to the end of the payload, in bytes.
    pub length: usize,
}

/// An open port.
#[derive(Debug, Default)]
struct OpenPort {
    /// Packets that have arrived, and the buffer space that each occupies until it is taken.
    arrived: VecDeque<(Packet, Option<BufferSpace>)>,
    /// True if the port is in the queue [`OpenPorts::woken`].
    woken: bool,
    /// True if arrived packets occupy buffer space.
    holds: bool,
    /// Lost packets that the port has sent; `None` if losses are not recorded.
    losses: Option<VecDeque<LostPacket>>,
}

/// All open ports.
///
/// The queue `woken` can still contain a port that was closed; [`Self::next_woken`] skips it.
#[derive(Debug, Default)]
pub(crate) struct OpenPorts {
    ports: BTreeMap<PortId, OpenPort>,
    woken: VecDeque<PortId>,
}

impl OpenPorts {
    /// Opens a port. If `holds` is true, arrived packets occupy buffer space until they are taken.
    pub(crate) fn open(&mut self, port: PortId, holds: bool) {
        self.ports.entry(port).or_default().holds |= holds;
    }

    /// Closes a port. Returns the buffer space of the packets that were not taken; `None` if the
    /// port was not open.
    pub(crate) fn close(&mut self, port: PortId) -> Option<Vec<BufferSpace>> {
        let open = self.ports.remove(&port)?;
        Some(open.arrived.into_iter().filter_map(|(_, hold)| hold).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    pub(crate) fn is_open(&self, port: PortId) -> bool {
        self.ports.contains_key(&port)
    }

    /// Adds a packet that has arrived at an open port. Returns the packet's buffer space if the
    /// caller has to free it now.
    pub(crate) fn deliver(&mut self, port: PortId, flight: Flight) -> Option<BufferSpace> {
        let open = self.ports.get_mut(&port)?;
        let (kept, free) = if open.holds { (flight.holds, None) } else { (None, flight.holds) };
        open.arrived.push_back((flight.packet, kept));
        self.wake(port);
        free
    }

    /// Returns the packet that [`OpenPorts::receive`] takes next.
    pub(crate) fn peek(&self, port: PortId) -> Option<&Packet> {
        self.ports.get(&port)?.arrived.front().map(|(packet, _)| packet)
    }

    /// Takes the next packet that has arrived at a port. Also returns the buffer space that the
    /// packet occupied.
    pub(crate) fn receive(&mut self, port: PortId) -> Option<(Packet, Option<BufferSpace>)> {
        self.ports.get_mut(&port)?.arrived.pop_front()
    }

    /// Starts recording the losses of an open port.
    pub(crate) fn remember_losses(&mut self, port: PortId) {
        if let Some(open) = self.ports.get_mut(&port) {
            open.losses.get_or_insert_default();
        }
    }

    /// Takes the next lost packet that a port has sent.
    pub(crate) fn next_loss(&mut self, port: PortId) -> Option<LostPacket> {
        self.ports.get_mut(&port)?.losses.as_mut()?.pop_front()
    }

    /// If losses of the sending port are recorded, records a packet that was lost at port
    /// `lost_at`.
    pub(crate) fn note_loss(&mut self, at: Instant, lost_at: PortId, flight: &Flight, why: Loss) {
        let Some(open) = self.ports.get_mut(&flight.from) else { return };
        let Some(losses) = open.losses.as_mut().filter(|it| it.len() < MAX_LOSSES) else {
            return;
        };
        let Packet { slid, dlid, sl, grh, .. } = flight.packet;
        let (payload, length) = match &flight.packet.payload {
            Payload::Transport(bytes) => {
                let headers = bytes[..bytes.len().min(MAX_HEADERS)].to_vec();
                (Payload::Transport(headers), bytes.len())
            }
            Payload::Mad(mad) => (Payload::Mad(*mad), Bth::LENGTH + Deth::LENGTH + 256),
        };
        let packet = Packet { slid, dlid, sl, grh, payload };
        losses.push_back(LostPacket { at, port: lost_at, why, packet, length });
        self.wake(flight.from);
    }

    /// If the port is open, lets [`Sim::next_open`](crate::Sim::next_open) return it.
    pub(crate) fn wake(&mut self, port: PortId) {
        if let Some(open) = self.ports.get_mut(&port)
            && !open.woken
        {
            open.woken = true;
            self.woken.push_back(port);
        }
    }

    /// Returns an open port that has had an event since this function last returned it; `None` if
    /// no port has had an event.
    pub(crate) fn next_woken(&mut self) -> Option<PortId> {
        loop {
            let port = self.woken.pop_front()?;
            if let Some(open) = self.ports.get_mut(&port)
                && std::mem::take(&mut open.woken)
            {
                return Some(port);
            }
        }
    }

    /// Returns the buffer space that arrived packets occupy at all open ports.
    #[cfg(test)]
    pub(crate) fn holds(&self) -> impl Iterator<Item = BufferSpace> {
        self.ports.values().flat_map(|open| open.arrived.iter().filter_map(|(_, hold)| *hold))
    }
}
