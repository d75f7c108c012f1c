//! Packets that are no management datagrams: for the queue pairs of whoever has opened a port.
//!
//! They carry no ICRC: nothing in the fabric changes a byte behind the LRH, and a link that damages a
//! packet says so, whereupon it is dropped where its VCRC would be wrong. Whoever looks at the bytes
//! ([`Packet::to_bytes`]) sees the ICRC that the packet would have.
//!
//! At a port that was opened with [`Sim::open_held`] what has arrived keeps its room in the port's buffer
//! until it is taken ([`Sim::receive_packet`]): an HCA that takes nothing has the fabric wait, as a real
//! one does.
//!
//! An HCA that sends faster than its link reads the number of waiting packets ([`Sim::waiting`]). It continues
//! when [`Sim::next_open`] reports free space.

use std::collections::VecDeque;

use ib_topology::PortId;
use ib_types::{Instant, Qpn};
use ib_wire::mad::Mad;
use ib_wire::mad::sm::CapabilityMask;
use ib_wire::packet::{Bth, Deth, Opcode};

use crate::link::{Flight, Hold};
use crate::loss::Loss;
use crate::packet::{MadPayload, Packet, Payload};
use crate::sim::Sim;

/// With how few packets left to leave by a port its owner is told that there is room.
const ROOM: usize = 8;

/// How many buffers are kept for further packets, and how large one has to be.
const MOST_SPARE: usize = 4096;
const SPARE_LENGTH: usize = 1024;

/// What has arrived at an open port.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    queue: VecDeque<(Packet, Option<Hold>)>,
    /// Whether it is among the ports whose owners have something to do.
    woken: bool,
    /// Whether what has arrived keeps its room.
    holds: bool,
    /// What the port has sent and was lost, where its owner wants to know.
    losses: Option<VecDeque<LostPacket>>,
}

/// A packet that was lost on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// When.
    pub at: Instant,
    /// Where.
    pub place: PortId,
    /// Why.
    pub why: Loss,
    /// The packet, without its payload.
    pub packet: Packet,
    /// How long it was from its BTH to before its ICRC.
    pub length: usize,
}

/// How much of a lost packet is remembered: all headers from its BTH on.
const MOST_HEADERS: usize = 64;

/// How many lost packets are remembered for the owner of a port.
const MOST_LOSSES: usize = 65_536;

#[cfg(test)]
impl Receiver {
    /// Returns the room that is taken by what has arrived.
    pub(crate) fn holds(&self) -> impl Iterator<Item = Hold> {
        self.queue.iter().filter_map(|(_, hold)| *hold)
    }
}

impl Sim {
    /// Opens an end port: packets for queue pairs above 1 are kept for [`Sim::receive_packet`].
    ///
    /// From now on the `PortInfo` of the port has the capability `CLIENT_REREGISTRATION`, as ports of HCAs do.
    /// [`Sim::registrations`] counts the reregistration requests.
    pub fn open(&mut self, port: PortId) {
        self.receivers.entry(port).or_default();
        self.set_capability(port, CapabilityMask::CLIENT_REREGISTRATION, true);
    }

    /// The same, and what has arrived keeps its room in the port's buffer until it is taken.
    pub fn open_held(&mut self, port: PortId) {
        self.open(port);
        self.receivers.entry(port).or_default().holds = true;
    }

    /// Has the owner of an open port told what the port has sent and was lost, by [`Sim::next_loss`].
    pub fn tell_losses(&mut self, port: PortId) {
        if let Some(receiver) = self.receivers.get_mut(&port) {
            receiver.losses.get_or_insert_default();
        }
    }

    /// Returns the next packet of an open port that was lost.
    pub fn next_loss(&mut self, port: PortId) -> Option<LostPacket> {
        self.receivers.get_mut(&port)?.losses.as_mut()?.pop_front()
    }

    /// Notes that a packet is lost at a port, for whoever has sent it.
    pub(crate) fn note_loss(&mut self, place: PortId, flight: &Flight, why: Loss) {
        let (at, packet, port) = (self.now(), &flight.packet, flight.from);
        if !self.port(port).has_lid(packet.slid) {
            return;
        }
        let Some(receiver) = self.receivers.get_mut(&port) else { return };
        let Some(losses) = receiver.losses.as_mut().filter(|it| it.len() < MOST_LOSSES) else {
            return;
        };
        let Packet { slid, dlid, sl, grh, .. } = *packet;
        let (payload, length) = match &packet.payload {
            Payload::Transport(bytes) => {
                let headers = bytes[..bytes.len().min(MOST_HEADERS)].to_vec();
                (Payload::Transport(headers), bytes.len())
            }
            Payload::Mad(mad) => (Payload::Mad(*mad), Bth::LENGTH + Deth::LENGTH + 256),
        };
        let packet = Packet { slid, dlid, sl, grh, payload };
        losses.push_back(LostPacket { at, place, why, packet, length });
        self.wake_port(port);
    }

    /// Has them dropped again.
    pub fn close(&mut self, port: PortId) {
        while self.receive_packet(port).is_some() {}
        if self.receivers.remove(&port).is_some() {
            self.set_capability(port, CapabilityMask::CLIENT_REREGISTRATION, false);
        }
    }

    /// Returns the packet that [`Sim::receive_packet`] returns next, without taking it.
    #[must_use]
    pub fn peek_packet(&self, port: PortId) -> Option<&Packet> {
        self.receivers.get(&port)?.queue.front().map(|(packet, _)| packet)
    }

    /// Returns the next packet that arrived at an open port.
    pub fn receive_packet(&mut self, port: PortId) -> Option<Packet> {
        let (packet, hold) = self.receivers.get_mut(&port)?.queue.pop_front()?;
        if let Some(hold) = hold {
            self.release(hold);
        }
        Some(packet)
    }

    /// Keeps a link down, whatever a subnet manager wants, until [`Sim::let_up`] is called as often: nobody
    /// serves its port.
    pub fn hold_down(&mut self, port: PortId) {
        let held = &mut self.port_mut(port).held_down;
        *held = held.saturating_add(1);
        self.update_link(port);
    }

    /// Lets a link come up that [`Sim::hold_down`] keeps down.
    pub fn let_up(&mut self, port: PortId) {
        let held = &mut self.port_mut(port).held_down;
        *held = held.saturating_sub(1);
        self.update_link(port);
    }

    /// Returns an open port at which a packet has arrived, at which something has come for a client, or
    /// which has sent most of what waited to leave, since it was last returned; `None` when there is no other.
    pub fn next_open(&mut self) -> Option<PortId> {
        loop {
            let port = self.woken_ports.pop_front()?;
            if let Some(receiver) = self.receivers.get_mut(&port)
                && std::mem::take(&mut receiver.woken)
            {
                return Some(port);
            }
        }
    }

    /// Returns how many packets wait to leave by a port, whatever their VLs.
    #[must_use]
    pub fn waiting(&self, port: PortId) -> usize {
        let queues = self.port(port).queues.as_ref().filter(|queues| queues.waiting != 0);
        queues.map_or(0, |queues| queues.lanes.iter().map(VecDeque::len).sum())
    }

    /// Returns a vector for the payload of a packet: one that was given back, with whatever it holds,
    /// or an empty one.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives back the payload of a packet, so that another one needs no new memory.
    pub fn give_buffer(&mut self, buffer: Vec<u8>) {
        if buffer.len() >= SPARE_LENGTH && self.spare.len() < MOST_SPARE {
            self.spare.push(buffer);
        }
    }

    /// Sends a packet from an end port. A datagram to queue pair 1 in the form of bytes is taken for
    /// what it is, so that the agents of the other side understand it.
    ///
    /// A packet whose payload is shorter than a BTH or no multiple of four bytes cannot be sent and
    /// is dropped.
    pub fn send_packet(&mut self, port: PortId, packet: Packet) {
        if let Payload::Transport(bytes) = &packet.payload
            && (bytes.len() < Bth::LENGTH || bytes.len() % 4 != 0)
        {
            self.stats.lose(Loss::Malformed);
            return;
        }
        let packet = recognised(packet);
        self.send_by_lid(port, packet, None);
    }

    pub(crate) fn deliver_transport(&mut self, port: PortId, key: u32) {
        let Some(receiver) = self.receivers.get_mut(&port) else {
            return self.lose(port, key, Loss::NoReceiver);
        };
        let flight = self.flights.remove(key as usize);
        let (kept, free) = match receiver.holds {
            true => (flight.holds, None),
            false => (None, flight.holds),
        };
        receiver.queue.push_back((flight.packet, kept));
        if let Some(hold) = free {
            self.release(hold);
        }
        self.wake_port(port);
    }

    /// The owner of a port has something to do, if it has one.
    pub(crate) fn wake_port(&mut self, port: PortId) {
        if let Some(receiver) = self.receivers.get_mut(&port)
            && !receiver.woken
        {
            receiver.woken = true;
            self.woken_ports.push_back(port);
        }
    }

    /// A packet has left the queue of a port: its owner is told when few are left.
    pub(crate) fn tell_of_room(&mut self, port: PortId) {
        if !self.receivers.is_empty() && self.waiting(port) <= ROOM {
            self.wake_port(port);
        }
    }
}

/// Returns a packet with its datagram in the form of one, when that is what it carries.
fn recognised(packet: Packet) -> Packet {
    let Payload::Transport(bytes) = &packet.payload else { return packet };
    let (Some(bth), Some(deth)) = (bytes.first_chunk(), bytes.get(Bth::LENGTH..)) else {
        return packet;
    };
    let bth = Bth::parse(bth);
    let is_datagram = bth.opcode == Opcode::UD_SEND_ONLY
        && bth.destination == Qpn::GSI
        && bth.pad_count == 0
        && deth.len() == Deth::LENGTH + 256;
    let (Some(header), true) = (deth.first_chunk(), is_datagram) else { return packet };
    let deth_header = Deth::parse(header);
    let mad = Mad(deth[Deth::LENGTH..].try_into().expect("256 bytes are left"));
    let payload = MadPayload {
        destination_qpn: bth.destination,
        source_qpn: deth_header.source,
        q_key: deth_header.q_key,
        p_key: bth.p_key,
        length: 256,
        mad,
    };
    Packet { payload: Payload::Mad(payload), ..packet }
}

#[cfg(test)]
mod tests;
