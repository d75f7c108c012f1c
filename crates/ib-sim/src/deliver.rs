//! What becomes of a packet at the end port that it was for: the node's own agents, agents that it
//! hosts, clients.

use ib_link::Datagram;
use ib_topology::{NodeId, PortId};
use ib_types::{NodeKind, PKey};
use ib_wire::mad::sm::notice::{KeyDetails, NoticeType, SwitchKeyDetails, SwitchKeyFields};
use ib_wire::mad::sm::{NoticeDetails, TrapNumber};
use ib_wire::mad::smp::{self, PERMISSIVE_LID};
use ib_wire::mad::{AttributeId, Mad, MadStatus, Method, MgmtClass};

use crate::congestion;
use crate::fault::happens;
use crate::link::Flight;
use crate::log::{Entry, LogLevel};
use crate::loss::Loss;
use crate::packet::{MadPayload, Packet, Payload};
use crate::sim::Sim;
use crate::sma::Access;

impl Sim {
    /// Returns the end port of a node by which it would answer what arrived at a port.
    pub(crate) fn end_port_of(&self, port: PortId) -> PortId {
        let node = self.port(port).node;
        if self.node(node).kind == NodeKind::Switch { self.port_id(node, 0) } else { port }
    }

    /// A packet of subnet management is for this node. `port` is where it arrived.
    pub(crate) fn deliver_smp(&mut self, node: NodeId, port: PortId, key: u32) {
        let Payload::Mad(payload) = &self.flight(key).packet.payload else {
            // Queue pair 0 is spoken to with datagrams only.
            return self.lose(port, key, Loss::NoReceiver);
        };
        if !payload.mad.class().is_smp() {
            return self.lose(port, key, Loss::NoReceiver);
        }
        let (method, id) = (payload.mad.method(), payload.mad.attribute_id());
        let transaction = payload.mad.transaction_id().0;
        let end = self.end_port_of(port);
        if method == Method::TRAP_REPRESS && transaction >> 48 == 0 {
            self.note_delivery(port, key);
            let flight = self.land(key);
            if let Some(mad) = flight.packet.mad() {
                if self.check_m_key(port, flight.packet.slid, mad) == Access::Denied {
                    return self.refuse_m_key(port, &flight);
                }
                self.repress(node, mad);
            }
            if let Some(request) = flight.request {
                self.take_request(request);
            }
            return;
        }
        let for_manager = method.is_response()
            || method == Method::TRAP
            || id == AttributeId::SM_INFO
            || !matches!(method, Method::GET | Method::SET);
        if for_manager {
            return self.hand_over(end, key);
        }
        if self.loses_request(port, id) {
            return self.lose(port, key, Loss::Fault);
        }
        self.note_delivery(port, key);
        let mut flight = self.land(key);
        let Payload::Mad(payload) = &mut flight.packet.payload else { unreachable!("seen above") };
        let slid = flight.packet.slid;
        let Some(status) = self.subnet_management(port, slid, &mut payload.mad) else {
            return self.refuse_m_key(port, &flight);
        };
        smp::answer(&mut payload.mad, status);
        self.stats.answered += 1;
        let directed = payload.mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE;
        let from_neighbor = flight.packet.dlid == PERMISSIVE_LID;
        let packet = self.reply_packet(end, &flight.packet);
        if directed {
            self.send_directed(end, packet, flight.request);
        } else if from_neighbor && self.port(port).cable.is_some() {
            // It came over one link, whatever LIDs there are, and so does the answer.
            self.send_to_neighbor(port, packet, flight.request);
        } else {
            self.send_by_lid(end, packet, flight.request);
        }
    }

    /// A packet that has landed is not answered, since its M_Key is wrong.
    fn refuse_m_key(&mut self, port: PortId, flight: &Flight) {
        self.port_mut(port).dropped += 1;
        self.stats.lose(Loss::MKey);
        self.log(Entry::Lost { port, packet: flight.number, why: Loss::MKey });
        if let Some(request) = flight.request {
            self.fail(request);
        }
    }

    /// Returns true when a fault swallows a packet that enters a port.
    pub(crate) fn loses_arrival(&mut self, port: PortId) -> bool {
        let faults = self.ports[port.index()].faults.as_deref();
        faults.is_some_and(|faults| happens(&mut self.rng, faults.entering()))
    }

    /// Returns true when a fault swallows a request that the port's agent should answer.
    fn loses_request(&mut self, port: PortId, id: AttributeId) -> bool {
        let faults = self.ports[port.index()].faults.as_deref();
        faults.is_some_and(|faults| happens(&mut self.rng, faults.unanswered(id)))
    }

    /// Turns a packet round: the answer takes the same ends.
    fn reply_packet(&self, end: PortId, packet: &Packet) -> Packet {
        let info = &self.port(end).info;
        let permissive = packet.dlid == PERMISSIVE_LID;
        let slid = match packet.dlid {
            PERMISSIVE_LID => PERMISSIVE_LID,
            dlid if self.port(end).has_lid(dlid) => dlid,
            _ => info.lid,
        };
        let dlid = packet.slid;
        let grh = packet.grh.map(|grh| ib_wire::packet::Grh {
            source: self.gid(end),
            destination: grh.source,
            ..grh
        });
        let Payload::Mad(payload) = &packet.payload else {
            unreachable!("only datagrams are answered")
        };
        let payload = MadPayload {
            destination_qpn: payload.source_qpn,
            source_qpn: payload.destination_qpn,
            p_key: if packet.is_smp() {
                payload.p_key
            } else {
                self.port(end).own_key(payload.p_key)
            },
            length: 256,
            ..*payload
        };
        debug_assert!(permissive || slid != PERMISSIVE_LID, "an answer has a source");
        Packet { slid, dlid, sl: packet.sl, grh, payload: Payload::Mad(payload) }
    }

    pub(crate) fn gid(&self, port: PortId) -> ib_types::Gid {
        let state = self.port(port);
        ib_types::Gid::new(state.info.gid_prefix, state.guid)
    }

    /// A packet that is not subnet management has reached an end port.
    pub(crate) fn arrive_data(&mut self, port: PortId, key: u32) {
        let packet = &self.flight(key).packet;
        if packet.is_smp() {
            let node = self.port(port).node;
            return self.deliver_smp(node, port, key);
        }
        let (dlid, p_key) = (packet.dlid, packet.p_key());
        if !packet.is_multicast() && !self.port(port).has_lid(dlid) {
            return self.lose(port, key, Loss::Misrouted(dlid));
        }
        if !self.port(port).admits(p_key) {
            return self.refuse_key(port, key, p_key);
        }
        match &self.flight(key).packet.payload {
            Payload::Transport(_) => self.deliver_transport(port, key),
            Payload::Mad(payload) => {
                let (class, method, transaction) =
                    (payload.mad.class(), payload.mad.method(), payload.mad.transaction_id().0);
                let node = self.port(port).node;
                let agent = self.agents_of.get(&(node, class.0)).copied();
                let for_agent = !method.is_response() || transaction >> 48 == 0;
                match agent {
                    Some(agent) if for_agent => self.deliver_to_agent(port, key, agent),
                    _ if class == MgmtClass::PERFORMANCE && is_asked(method) => {
                        self.answer_agent(port, key, Self::performance);
                    }
                    _ if class == MgmtClass::CONGESTION_CONTROL
                        && congestion::is_answered(&payload.mad) =>
                    {
                        self.answer_agent(port, key, Self::congestion_control);
                    }
                    _ => self.hand_over(port, key),
                }
            }
        }
    }

    /// Refuses a packet whose partition the port is not in, and tells the manager.
    fn refuse_key(&mut self, port: PortId, key: u32, p_key: PKey) {
        let violations = &mut self.port_mut(port).info.p_key_violations;
        *violations = violations.saturating_add(1);
        let packet = &self.flight(key).packet;
        let (destination, source) = packet.queue_pairs();
        let mut details = KeyDetails::zeroed();
        (details.lid1, details.lid2) = (packet.slid, packet.dlid);
        details.key = ib_types::QKey(u32::from(p_key.0));
        details.sl = packet.sl.get();
        (details.qp1, details.qp2) = (source, destination);
        if let Some(grh) = packet.grh {
            (details.gid1, details.gid2) = (grh.source, grh.destination);
        }
        let what = (NoticeType::SECURITY, TrapNumber::BAD_P_KEY);
        self.raise(port, what, &NoticeDetails::Key(details));
        self.lose(port, key, Loss::Partition(p_key.0));
    }

    /// A switch refuses a packet whose partition one of its ports does not let pass.
    pub(crate) fn refuse_partition(&mut self, node: NodeId, port: PortId, key: u32) {
        let packet = &self.flight(key).packet;
        let (p_key, number) = (packet.p_key(), self.port(port).number);
        let (destination, source) = packet.queue_pairs();
        let mut details = SwitchKeyDetails::zeroed();
        // Only a datagram tells the queue pair that it comes from, and only a GRH has GIDs.
        type Fields = SwitchKeyFields;
        details.valid = Fields::LID1 | Fields::LID2 | Fields::P_KEY | Fields::SL | Fields::QP2;
        details.valid = details.valid.with(Fields::QP1, packet.mad().is_some());
        if let Some(grh) = packet.grh {
            details.valid = details.valid | Fields::GID1 | Fields::GID2;
            (details.gid1, details.gid2) = (grh.source, grh.destination);
        }
        (details.lid1, details.lid2) = (packet.slid, packet.dlid);
        details.p_key = p_key;
        details.sl = packet.sl.get();
        (details.qp1, details.qp2) = (source, destination);
        let own = self.port_id(node, 0);
        details.switch_lid = self.port(own).info.lid;
        details.port = number;
        let what = (NoticeType::SECURITY, TrapNumber::SWITCH_BAD_P_KEY);
        self.raise(own, what, &NoticeDetails::SwitchKey(details));
        self.lose(port, key, Loss::Partition(p_key.0));
    }

    /// Has an agent answer a request that was sent to an end port.
    fn answer_agent(
        &mut self,
        port: PortId,
        key: u32,
        agent: fn(&mut Self, PortId, &mut Mad) -> MadStatus,
    ) {
        let id = self.flight(key).packet.mad().map_or(AttributeId(0), Mad::attribute_id);
        if self.loses_request(port, id) {
            return self.lose(port, key, Loss::Fault);
        }
        self.note_delivery(port, key);
        let mut flight = self.land(key);
        let Payload::Mad(payload) = &mut flight.packet.payload else {
            unreachable!("agents are asked by datagrams")
        };
        let status = agent(self, port, &mut payload.mad);
        payload.mad.answer(status);
        self.stats.answered += 1;
        let packet = self.reply_packet(port, &flight.packet);
        self.send_by_lid(port, packet, flight.request);
    }

    /// Returns the packet of a datagram that leaves an end port.
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

    /// Writes down that a packet has been delivered.
    pub(crate) fn note_delivery(&mut self, port: PortId, key: u32) {
        self.stats.delivered += 1;
        if self.log.level >= LogLevel::Datagrams {
            let number = self.flight(key).number;
            if let Some(&mad) = self.flight(key).packet.mad() {
                self.log(Entry::Delivered { port, packet: number, mad: &mad });
            }
        }
    }
}

/// Returns true for a method that is answered with a response. An agent answers nothing else, lest
/// two of them answer each other indefinitely.
fn is_asked(method: Method) -> bool {
    method.response().is_some_and(|response| response != Method::TRAP_REPRESS)
}

#[cfg(test)]
mod tests;
