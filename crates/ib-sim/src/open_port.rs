//! Open ports: packets and losses that their owners, HCAs, have not taken yet.

use std::collections::{BTreeMap, VecDeque};

use ib_topology::PortId;
use ib_types::Instant;
use ib_wire::packet::{Bth, Deth};

use crate::flight::{Flight, Hold};
use crate::loss::Loss;
use crate::packet::{Packet, Payload};

/// How much of a lost packet is remembered: all headers from its BTH on.
const MOST_HEADERS: usize = 64;

/// How many lost packets are remembered for the owner of a port.
const MOST_LOSSES: usize = 65_536;

/// A packet that was lost on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// When.
    pub at: Instant,
    /// The port at which it was lost.
    pub port: PortId,
    /// Why.
    pub why: Loss,
    /// The packet, without its payload.
    pub packet: Packet,
    /// How long it was from its BTH to before its ICRC.
    pub length: usize,
}

/// An open port.
#[derive(Debug, Default)]
struct OpenPort {
    /// What has arrived, with the room in the port's buffer that it keeps until it is taken.
    arrived: VecDeque<(Packet, Option<Hold>)>,
    /// Whether it is among the ports whose owners have something to do.
    woken: bool,
    /// Whether what has arrived keeps its room.
    holds: bool,
    /// What the port has sent and was lost, where its owner wants to know.
    losses: Option<VecDeque<LostPacket>>,
}

/// All open ports.
///
/// A port is in the queue of woken ports once for each time that it was woken and its owner not told.
#[derive(Debug, Default)]
pub(crate) struct OpenPorts {
    ports: BTreeMap<PortId, OpenPort>,
    woken: VecDeque<PortId>,
}

impl OpenPorts {
    /// Opens a port. With `holds`, what arrives keeps its room in the port's buffer until it is taken.
    pub(crate) fn open(&mut self, port: PortId, holds: bool) {
        self.ports.entry(port).or_default().holds |= holds;
    }

    /// Closes a port; returns the room that its packets held, or `None` if it was not open.
    pub(crate) fn close(&mut self, port: PortId) -> Option<Vec<Hold>> {
        let open = self.ports.remove(&port)?;
        Some(open.arrived.into_iter().filter_map(|(_, hold)| hold).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    pub(crate) fn is_open(&self, port: PortId) -> bool {
        self.ports.contains_key(&port)
    }

    /// Adds a packet that has arrived at an open port; returns its room if that is free now.
    pub(crate) fn deliver(&mut self, port: PortId, flight: Flight) -> Option<Hold> {
        let open = self.ports.get_mut(&port)?;
        let (kept, free) = if open.holds { (flight.holds, None) } else { (None, flight.holds) };
        open.arrived.push_back((flight.packet, kept));
        self.wake(port);
        free
    }

    /// Returns the packet that [`OpenPorts::receive`] returns next.
    pub(crate) fn peek(&self, port: PortId) -> Option<&Packet> {
        self.ports.get(&port)?.arrived.front().map(|(packet, _)| packet)
    }

    /// Takes the next packet that arrived at a port, and the room that it has kept.
    pub(crate) fn receive(&mut self, port: PortId) -> Option<(Packet, Option<Hold>)> {
        self.ports.get_mut(&port)?.arrived.pop_front()
    }

    /// Has lost packets of an open port remembered.
    pub(crate) fn remember_losses(&mut self, port: PortId) {
        if let Some(open) = self.ports.get_mut(&port) {
            open.losses.get_or_insert_default();
        }
    }

    /// Takes the next packet of a port that was lost.
    pub(crate) fn next_loss(&mut self, port: PortId) -> Option<LostPacket> {
        self.ports.get_mut(&port)?.losses.as_mut()?.pop_front()
    }

    /// Remembers a packet of a port that was lost at another one, if the owner wants to know.
    pub(crate) fn note_loss(&mut self, at: Instant, lost_at: PortId, flight: &Flight, why: Loss) {
        let Some(open) = self.ports.get_mut(&flight.from) else { return };
        let Some(losses) = open.losses.as_mut().filter(|it| it.len() < MOST_LOSSES) else {
            return;
        };
        let Packet { slid, dlid, sl, grh, .. } = flight.packet;
        let (payload, length) = match &flight.packet.payload {
            Payload::Transport(bytes) => {
                let headers = bytes[..bytes.len().min(MOST_HEADERS)].to_vec();
                (Payload::Transport(headers), bytes.len())
            }
            Payload::Mad(mad) => (Payload::Mad(*mad), Bth::LENGTH + Deth::LENGTH + 256),
        };
        let packet = Packet { slid, dlid, sl, grh, payload };
        losses.push_back(LostPacket { at, port: lost_at, why, packet, length });
        self.wake(flight.from);
    }

    /// The owner of a port has something to do, if it has one.
    pub(crate) fn wake(&mut self, port: PortId) {
        if let Some(open) = self.ports.get_mut(&port)
            && !open.woken
        {
            open.woken = true;
            self.woken.push_back(port);
        }
    }

    /// Returns a port that was woken since it was last returned; `None` when there is no other.
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

    /// Returns the room that is taken by what has arrived.
    #[cfg(test)]
    pub(crate) fn holds(&self) -> impl Iterator<Item = Hold> {
        self.ports.values().flat_map(|open| open.arrived.iter().filter_map(|(_, hold)| *hold))
    }
}
