//! Sends and receives packets of clients and open ports.

use ib_link::{Datagram, LinkPort, Remote};
use ib_topology::PortId;
use ib_types::{QKey, Qpn, ServiceLevel};
use ib_wire::mad::sm::CapabilityMask;
use ib_wire::mad::smp::PERMISSIVE_LID;
use ib_wire::mad::{Mad, MgmtClass};
use ib_wire::packet::{Bth, Deth, Opcode};

use super::{Delivery, Network};
use crate::client::{AttachError, ClientOptions, Clients, is_rmpp_control};
use crate::event::{Event, Timer};
use crate::fabric::FabricState;
use crate::flight::Flight;
use crate::ids::{ClientId, RequestKey};
use crate::log::Entry;
use crate::loss::Loss;
use crate::packet::{MadPayload, Packet, Payload};

impl Network {
    /// Attaches a client to an end port.
    pub(crate) fn attach(
        &mut self,
        port: PortId,
        options: ClientOptions,
    ) -> Result<ClientId, AttachError> {
        if !self.fabric.has_port(port) {
            return Err(AttachError::NoSuchPort(port));
        }
        let client = self.clients.attach(port, options).ok_or(AttachError::Full)?;
        self.log(Entry::Attached { client, port });
        if options.is_sm {
            self.update_is_sm(port);
        }
        Ok(client)
    }

    /// Detaches a client, if it is attached.
    pub(crate) fn detach(&mut self, id: ClientId) {
        let Some(client) = self.clients.detach(id, &mut self.open_ports) else { return };
        self.log(Entry::Detached { client: id, port: client.port });
        if client.options.is_sm {
            self.update_is_sm(client.port);
        }
    }

    /// Sets whether a client is a subnet manager.
    pub(crate) fn set_is_sm(&mut self, id: ClientId, is_sm: bool) {
        if let Some(client) = self.clients.get_mut(id) {
            client.options.is_sm = is_sm;
            let port = client.port;
            self.update_is_sm(port);
        }
    }

    /// Updates `IsSM` in the capability mask of a port. Sends a trap if this changes the mask.
    fn update_is_sm(&mut self, port: PortId) {
        let is_sm = self.clients.has_sm(port);
        if self.fabric.set_capability(port, CapabilityMask::SM, is_sm) {
            self.trap_capabilities(port);
        }
    }

    /// Sends a MAD of a client. A MAD of a detached client is dropped.
    pub(crate) fn submit(&mut self, id: ClientId, datagram: &Datagram) -> Option<Delivery> {
        let port = self.clients.count_sent(id)?;
        let transaction = datagram.mad.transaction_id();
        let mut packet = self.fabric.datagram_packet(port, datagram);
        let request = if datagram.mad.method().is_response() {
            // A response completes an assigned request. If the packet of the response is lost, the
            // request fails. The ACK of an RMPP segment completes no request.
            let answers = !is_rmpp_control(&datagram.mad);
            answers.then(|| self.clients.take_assigned(transaction.0, port)).flatten()
        } else {
            if let Payload::Mad(MadPayload { mad, .. }) = &mut packet.payload {
                mad.set_transaction_id(Clients::stamped(id, transaction));
            }
            let Some(request) = self.clients.remember(id, datagram) else {
                self.stats.lose(Loss::TooManyRequests);
                self.clients.lose(id, *datagram, &mut self.open_ports);
                return None;
            };
            Some(request)
        };
        if datagram.mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE && datagram.remote.qpn.get() == 0
        {
            self.send_directed(port, packet, request)
        } else {
            self.send_by_lid(port, packet, request)
        }
    }

    /// Delivers a MAD that has arrived at an end port to its recipient ([`Clients::recipient`]).
    /// Drops the MAD if it has no recipient.
    pub(crate) fn deliver_mad(&mut self, port: PortId, key: u32) {
        let packet = &self.flights.get(key).packet;
        let Payload::Mad(payload) = &packet.payload else {
            unreachable!("clients receive MADs only")
        };
        let (transaction, response) =
            (payload.mad.transaction_id().0, payload.mad.method().is_response());
        let Some(target) = self.clients.recipient(port, payload) else {
            let why = if response { Loss::ClientLeft } else { Loss::NoReceiver };
            if !packet.is_smp() {
                self.fabric.port_mut(port).counters.qp1_dropped += 1;
            }
            return self.lose(port, key, why);
        };
        self.note_delivery(port, key);
        let flight = self.land(key);
        let request = flight.request.filter(|&key| self.clients.requests().get(key).is_some());
        let mut datagram = self.fabric.received_datagram(port, &flight);
        if datagram.remote.qpn.get() == 0 {
            datagram.remote.q_key = QKey(0);
        }
        if response {
            let own = self.clients.own_transaction(target, request, transaction);
            datagram.mad.set_transaction_id(own);
            if let Some(key) = request {
                self.clients.take_request(key);
            }
        } else if let Some(key) = request {
            self.await_answer(Some(target), port, key, transaction);
        }
        self.clients.deliver(target, datagram, &mut self.open_ports);
    }

    /// Assigns a request to a client or agent, and starts the timer for the response.
    pub(crate) fn await_answer(
        &mut self,
        responder: Option<ClientId>,
        port: PortId,
        request: RequestKey,
        transaction: u64,
    ) {
        if self.clients.assign(responder, port, request, transaction, &mut self.open_ports) {
            let at = self.now() + self.limits.answer_within;
            self.clock.schedule(at, Event::Timer(Timer::Answer { request }));
        }
    }

    /// Fails a request that has got no response in time.
    pub(crate) fn no_answer(&mut self, key: RequestKey) {
        let Some(waiting) = self.clients.requests().get(key) else { return };
        let client = waiting.client;
        self.stats.lose(Loss::NoAnswer);
        self.log(Entry::Unanswered { client });
        self.clients.fail(key, &mut self.open_ports);
    }

    /// Opens an end port. If `holds` is true, arrived packets occupy buffer space until they are
    /// taken.
    pub(crate) fn open(&mut self, port: PortId, holds: bool) {
        self.open_ports.open(port, holds);
        self.fabric.set_capability(port, CapabilityMask::CLIENT_REREGISTRATION, true);
    }

    /// Closes an end port. Drops packets that have arrived, but were not taken.
    pub(crate) fn close(&mut self, port: PortId) {
        let Some(holds) = self.open_ports.close(port) else { return };
        for hold in holds {
            self.release(hold, self.now());
        }
        self.fabric.set_capability(port, CapabilityMask::CLIENT_REREGISTRATION, false);
    }

    /// Takes the next packet that has arrived at an open port.
    pub(crate) fn receive_packet(&mut self, port: PortId) -> Option<Packet> {
        let (packet, hold) = self.open_ports.receive(port)?;
        if let Some(hold) = hold {
            self.release(hold, self.now());
        }
        Some(packet)
    }

    /// Sends a packet from an end port. If the payload bytes are a UD SEND of a MAD to QP 1, the
    /// MAD is parsed, so that agents can process it.
    pub(crate) fn send_packet(&mut self, port: PortId, packet: Packet) -> Option<Delivery> {
        if let Payload::Transport(bytes) = &packet.payload
            && (bytes.len() < Bth::LENGTH || bytes.len() % 4 != 0)
        {
            self.stats.lose(Loss::Malformed);
            return None;
        }
        self.send_by_lid(port, parse_mad_packet(packet), None)
    }

    /// Delivers a packet at an end port, if the port is open. Otherwise drops the packet.
    pub(crate) fn deliver_transport(&mut self, port: PortId, key: u32) {
        if !self.open_ports.is_open(port) {
            return self.lose(port, key, Loss::NoReceiver);
        }
        let flight = self.flights.remove(key);
        if let Some(hold) = self.open_ports.deliver(port, flight) {
            self.release(hold, self.now());
        }
    }
}

impl FabricState {
    /// Returns the attributes of a port: GUIDs, GID prefix, number and LIDs, and the LID and SL of its master SM.
    pub(crate) fn link_port(&self, port: PortId) -> LinkPort {
        let state = self.port(port);
        let node = self.node(state.node);
        LinkPort {
            node_guid: node.guid,
            port_guid: state.guid,
            gid_prefix: state.info.gid_prefix,
            number: if node.kind.is_switch() { 0 } else { state.number },
            lid: state.info.lid,
            lmc: state.info.lmc,
            sm_lid: state.info.master_sm_lid,
            sm_sl: ServiceLevel::new(state.info.master_sm_sl).unwrap_or_default(),
        }
    }

    /// Returns the packet by which an end port sends a MAD: an SMP from QP 0 to QP 0 if the class
    /// is subnet management, otherwise a GMP from QP 1 to QP 1.
    pub(crate) fn management_packet(
        &self,
        port: PortId,
        dlid: u16,
        sl: ServiceLevel,
        mad: Mad,
    ) -> Packet {
        let qpn = Qpn::truncated(u32::from(!mad.class().is_smp()));
        Packet {
            slid: self.port(port).info.lid,
            dlid,
            sl,
            grh: None,
            payload: Payload::Mad(MadPayload {
                destination_qpn: qpn,
                source_qpn: qpn,
                q_key: if qpn.get() == 0 { QKey(0) } else { QKey::GSI },
                p_key: self.port(port).p_key(0),
                length: 256,
                mad,
            }),
        }
    }

    /// Returns the packet by which an end port sends a datagram.
    #[inline]
    pub(crate) fn datagram_packet(&self, port: PortId, datagram: &Datagram) -> Packet {
        let remote = &datagram.remote;
        let slid = if remote.lid == PERMISSIVE_LID {
            PERMISSIVE_LID
        } else {
            self.port(port).info.lid | u16::from(remote.path_bits)
        };
        Packet {
            slid,
            dlid: remote.lid,
            sl: remote.sl,
            grh: remote.grh,
            payload: Payload::Mad(MadPayload {
                destination_qpn: remote.qpn,
                source_qpn: datagram.local_qpn,
                q_key: remote.q_key,
                p_key: remote.p_key,
                length: datagram.length,
                mad: datagram.mad,
            }),
        }
    }

    /// Returns the datagram in a packet that has arrived at an end port.
    #[inline]
    pub(crate) fn received_datagram(&self, port: PortId, flight: &Flight) -> Datagram {
        let packet = &flight.packet;
        let Payload::Mad(payload) = &packet.payload else {
            unreachable!("agents and clients receive MADs only")
        };
        let state = self.port(port);
        let is_permissive = packet.dlid == PERMISSIVE_LID;
        let path_bits = (packet.dlid.wrapping_sub(state.info.lid) & 0x7f) as u8;
        Datagram {
            remote: Remote {
                lid: packet.slid,
                qpn: payload.source_qpn,
                q_key: payload.q_key,
                sl: packet.sl,
                p_key: match payload.destination_qpn.get() {
                    0 => payload.p_key,
                    _ => state.own_key(payload.p_key),
                },
                path_bits: if is_permissive { 0 } else { path_bits },
                grh: packet.grh,
            },
            local_qpn: payload.destination_qpn,
            length: payload.length,
            mad: payload.mad,
        }
    }
}

/// If a packet's payload bytes are a UD SEND of a MAD to QP 1, returns the packet with the parsed
/// MAD as its payload. Returns other packets unchanged.
fn parse_mad_packet(packet: Packet) -> Packet {
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
