//! Packets that are no management datagrams: for the queue pairs of whoever has opened a port.

use std::collections::VecDeque;

use ib_topology::PortId;
use ib_types::Qpn;
use ib_wire::mad::Mad;
use ib_wire::packet::{Bth, Deth, Opcode};

use crate::link::Flight;
use crate::loss::Loss;
use crate::packet::{MadPayload, Packet, Payload};
use crate::sim::Sim;

impl Sim {
    /// Has packets for queue pairs above 1 kept at an end port, for [`Sim::receive_packet`].
    pub fn open(&mut self, port: PortId) {
        self.receivers.entry(port).or_default();
    }

    /// Has them dropped again.
    pub fn close(&mut self, port: PortId) {
        self.receivers.remove(&port);
    }

    /// Returns the next packet that arrived at an open port.
    pub fn receive_packet(&mut self, port: PortId) -> Option<Packet> {
        self.receivers.get_mut(&port).and_then(VecDeque::pop_front)
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
        if self.receivers.contains_key(&port) {
            let flight: Flight = self.land(key);
            if let Some(queue) = self.receivers.get_mut(&port) {
                queue.push_back(flight.packet);
            }
        } else {
            self.lose(port, key, Loss::NoReceiver);
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
