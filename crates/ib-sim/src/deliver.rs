//! Delivers packets at end ports: to built-in agents of the node, to hosted agents and to clients.

use ib_link::Arrival;
use ib_topology::{NodeId, PortId};
use ib_wire::mad::smp::{self, PERMISSIVE_LID};
use ib_wire::mad::{AttributeId, Mad, MadStatus, Method, MgmtClass};
use ib_wire::packet::Grh;

use crate::client::is_rmpp_control;
use crate::event::{Event, Timer};
use crate::fabric::FabricState;
use crate::fault::happens;
use crate::flight::Flight;
use crate::ids::RequestKey;
use crate::log::Entry;
use crate::loss::Loss;
use crate::network::{Delivery, Network};
use crate::packet::{MadPayload, Packet, Payload};
use crate::sim::Sim;
use crate::sma::{self, Access};
use crate::{congestion, pma};

impl Sim {
    /// Delivers a packet. Then delivers the packets that the receiver sends to its own node.
    pub(crate) fn deliver(&mut self, delivery: Option<Delivery>) {
        let mut next = delivery;
        while let Some(delivery) = next {
            next = match delivery {
                Delivery::Smp { port, key } => self.net.deliver_smp(port, key),
                Delivery::Data { port, key } => self.deliver_data(port, key),
            };
        }
    }

    /// Delivers a [`Delivery::Data`] packet at an end port.
    fn deliver_data(&mut self, port: PortId, key: u32) -> Option<Delivery> {
        let net = &mut self.net;
        let packet = &net.flights.get(key).packet;
        if packet.is_smp() {
            return net.deliver_smp(port, key);
        }
        let state = net.fabric.port(port);
        if !packet.is_multicast() && !state.has_lid(packet.dlid) {
            net.lose(port, key, Loss::Misrouted(packet.dlid));
            return None;
        }
        if !state.admits(packet.p_key()) {
            net.refuse_key(port, key);
            return None;
        }
        let Payload::Mad(MadPayload { mad, .. }) = &packet.payload else {
            net.deliver_transport(port, key);
            return None;
        };
        let (class, method) = (mad.class(), mad.method());
        let for_agent = !method.is_response() || mad.transaction_id().0 >> 48 == 0;
        if let Some(agent) = self.agents.find(state.node, class).filter(|_| for_agent) {
            self.deliver_to_agent(port, key, agent);
            return None;
        }
        match class {
            MgmtClass::PERFORMANCE if has_response(method) => {
                net.answer_gmp(port, key, |net, mad| {
                    pma::answer(&mut net.fabric, net.clock.now(), port, mad)
                })
            }
            MgmtClass::CONGESTION_CONTROL if congestion::is_answered(mad) => {
                net.answer_gmp(port, key, |net, mad| {
                    congestion::answer(net.fabric.node_of(port).kind.is_switch(), mad)
                })
            }
            _ => {
                net.deliver_mad(port, key);
                None
            }
        }
    }

    fn deliver_to_agent(&mut self, port: PortId, key: u32, number: u32) {
        let net = &mut self.net;
        net.note_delivery(port, key);
        let flight = net.land(key);
        let arrival = Arrival { port: Some(flight.arrived_by), lid: flight.packet.dlid };
        let datagram = net.fabric.received_datagram(port, &flight);
        let is_waited_for = |&key: &RequestKey| net.clients.requests().get(key).is_some();
        if let Some(request) = flight.request.filter(is_waited_for) {
            net.await_answer(None, port, request, datagram.mad.transaction_id().0);
        }
        self.agents.handle(number, self.net.now(), arrival, &datagram);
        self.poll_agent(number);
    }

    /// Runs a hosted agent at the time that the agent has requested.
    pub(crate) fn wake_agent(&mut self, number: u32) {
        if self.agents.wake(number, self.net.now()) {
            self.poll_agent(number);
        }
    }

    /// Sends the MADs of a hosted agent, and schedules the agent's next wake-up.
    pub(crate) fn poll_agent(&mut self, number: u32) {
        let now = self.net.now();
        while let Some((node, datagram)) = self.agents.poll_transmit(number, now) {
            let Some(port) = self.net.fabric.end_port(node) else { continue };
            // The ACK of an RMPP segment does not complete a request. The request remains assigned
            // to the agent.
            let mad = &datagram.mad;
            let request = if mad.method().is_response() && !is_rmpp_control(mad) {
                self.net.assigned_to_node(node, mad.transaction_id().0)
            } else {
                None
            };
            let packet = self.net.fabric.datagram_packet(port, &datagram);
            let delivery = if mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE && packet.is_smp() {
                self.net.send_directed(port, packet, request)
            } else {
                self.net.send_by_lid(port, packet, request)
            };
            self.deliver(delivery);
        }
        if let Some(at) = self.agents.poll_timer(number) {
            self.net.clock.schedule(at, Event::Timer(Timer::Agent { agent: number }));
        }
    }
}

impl Network {
    /// Delivers an SMP at a node. `port` is the port at which the SMP has arrived.
    fn deliver_smp(&mut self, port: PortId, key: u32) -> Option<Delivery> {
        let payload = match &self.flights.get(key).packet.payload {
            Payload::Mad(payload) if payload.mad.class().is_smp() => payload,
            // QP 0 accepts only SMPs.
            _ => {
                self.lose(port, key, Loss::NoReceiver);
                return None;
            }
        };
        let (method, id) = (payload.mad.method(), payload.mad.attribute_id());
        let end = self.fabric.end_port_of(port);
        if method == Method::TRAP_REPRESS && payload.mad.transaction_id().0 >> 48 == 0 {
            self.deliver_repress(port, key);
            return None;
        }
        let for_manager = method.is_response()
            || method == Method::TRAP
            || id == AttributeId::SM_INFO
            || !matches!(method, Method::GET | Method::SET);
        if for_manager {
            self.deliver_mad(end, key);
            return None;
        }
        if self.loses_request(port, id) {
            self.lose(port, key, Loss::Fault);
            return None;
        }
        self.note_delivery(port, key);
        let mut flight = self.land(key);
        let Payload::Mad(payload) = &mut flight.packet.payload else {
            unreachable!("the payload was matched as a MAD")
        };
        let slid = flight.packet.slid;
        let Some(status) = sma::answer(self, port, slid, &mut payload.mad) else {
            self.refuse_m_key(port, &flight);
            return None;
        };
        smp::answer(&mut payload.mad, status);
        self.stats.answered += 1;
        let directed = payload.mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE;
        let from_neighbor = flight.packet.dlid == PERMISSIVE_LID;
        let packet = self.fabric.reply_packet(end, &flight.packet);
        if directed {
            self.send_directed(end, packet, flight.request)
        } else if from_neighbor && self.fabric.port(port).cable.is_some() {
            // The request has the permissive LID as its DLID, so it comes from the node at the
            // other end of the link. The response leaves by the port at which the request has
            // arrived.
            self.send_to_neighbor(port, packet, flight.request)
        } else {
            self.send_by_lid(end, packet, flight.request)
        }
    }

    /// Processes a TrapRepress of a subnet manager.
    fn deliver_repress(&mut self, port: PortId, key: u32) {
        self.note_delivery(port, key);
        let flight = self.land(key);
        if let Some(mad) = flight.packet.mad() {
            if sma::check_m_key(self, port, flight.packet.slid, mad) == Access::Denied {
                return self.refuse_m_key(port, &flight);
            }
            self.repress(self.fabric.port(port).node, mad.transaction_id().0);
        }
        if let Some(request) = flight.request {
            self.clients.take_request(request);
        }
    }

    /// Counts and logs the loss of an SMP whose M_Key was refused. If the SMP is a request of a
    /// client, the request fails.
    fn refuse_m_key(&mut self, port: PortId, flight: &Flight) {
        self.fabric.port_mut(port).dropped += 1;
        self.stats.lose(Loss::MKey);
        self.log(Entry::Lost { port, packet: flight.number, why: Loss::MKey });
        if let Some(request) = flight.request {
            self.clients.fail(request, &mut self.open_ports);
        }
    }

    /// Returns true if an `Error` fault of the port loses a request for this attribute to an agent
    /// of the node. The choice is random.
    fn loses_request(&mut self, port: PortId, id: AttributeId) -> bool {
        let faults = self.fabric.port(port).faults.as_deref();
        faults.is_some_and(|faults| happens(&mut self.rng, faults.unanswered(id)))
    }

    /// Passes a GMP that has arrived at an end port to an agent of the node, and sends the agent's
    /// response.
    fn answer_gmp(
        &mut self,
        port: PortId,
        key: u32,
        agent: impl FnOnce(&mut Self, &mut Mad) -> MadStatus,
    ) -> Option<Delivery> {
        let id = self.flights.get(key).packet.mad().map_or(AttributeId(0), Mad::attribute_id);
        if self.loses_request(port, id) {
            self.lose(port, key, Loss::Fault);
            return None;
        }
        self.note_delivery(port, key);
        let mut flight = self.land(key);
        let Payload::Mad(payload) = &mut flight.packet.payload else {
            unreachable!("agents receive MADs only")
        };
        let status = agent(self, &mut payload.mad);
        payload.mad.answer(status);
        self.stats.answered += 1;
        let packet = self.fabric.reply_packet(port, &flight.packet);
        self.send_by_lid(port, packet, flight.request)
    }

    /// Removes the request with this transaction ID from the assigned requests of the node's ports.
    /// Returns the key of the request.
    fn assigned_to_node(&mut self, node: NodeId, transaction: u64) -> Option<RequestKey> {
        let mut ports = self.clients.requests().assigned_ports(transaction);
        let port = ports.find(|&port| self.fabric.port(port).node == node)?;
        drop(ports);
        self.clients.take_assigned(transaction, port)
    }
}

impl FabricState {
    /// Returns the packet for the response to a request, with source and destination exchanged.
    #[inline]
    fn reply_packet(&self, end: PortId, packet: &Packet) -> Packet {
        let state = self.port(end);
        let slid = match packet.dlid {
            PERMISSIVE_LID => PERMISSIVE_LID,
            dlid if state.has_lid(dlid) => dlid,
            _ => state.info.lid,
        };
        let grh =
            packet.grh.map(|grh| Grh { source: self.gid(end), destination: grh.source, ..grh });
        let Payload::Mad(payload) = &packet.payload else {
            unreachable!("only MADs have a response")
        };
        let payload = MadPayload {
            destination_qpn: payload.source_qpn,
            source_qpn: payload.destination_qpn,
            p_key: if packet.is_smp() { payload.p_key } else { state.own_key(payload.p_key) },
            length: 256,
            ..*payload
        };
        Packet { slid, dlid: packet.slid, sl: packet.sl, grh, payload: Payload::Mad(payload) }
    }
}

/// Returns true if requests with this method get a response. Agents respond to no other methods;
/// otherwise two agents could respond to each other indefinitely.
fn has_response(method: Method) -> bool {
    method.response().is_some_and(|response| response != Method::TRAP_REPRESS)
}

#[cfg(test)]
mod tests;
