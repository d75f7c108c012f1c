//! Agents that a node hosts for classes of its own.

use ib_link::{Arrival, Datagram, NodeAgent, Remote};
use ib_topology::{NodeId, PortId};
use ib_wire::mad::MgmtClass;

use crate::client::{RequestKey, is_rmpp_control};
use crate::event::{Event, Timer};
use crate::packet::Payload;
use crate::sim::{AgentSlot, Sim};

impl Sim {
    /// Hosts an agent at a node: it is handed the datagrams of its classes.
    ///
    /// An agent that had one of the classes before loses it.
    pub fn host(&mut self, node: NodeId, agent: Box<dyn NodeAgent>) {
        let number = self.agents.len() as u32;
        for class in agent.classes() {
            self.agents_of.insert((node, class.0), number);
        }
        self.agents.push(AgentSlot { node, agent, wakes: None });
        self.poll_agent(number);
    }

    pub(crate) fn deliver_to_agent(&mut self, port: PortId, key: u32, number: u32) {
        self.note_delivery(port, key);
        let flight = self.land(key);
        let arrival = Arrival { port: Some(flight.arrived_by), lid: flight.packet.dlid };
        let Payload::Mad(payload) = &flight.packet.payload else {
            unreachable!("agents take datagrams")
        };
        let datagram = Datagram {
            remote: Remote {
                lid: flight.packet.slid,
                qpn: payload.source_qpn,
                q_key: payload.q_key,
                sl: flight.packet.sl,
                p_key: self.port(port).own_key(payload.p_key),
                path_bits: (flight.packet.dlid.wrapping_sub(self.port(port).info.lid) & 0x7f) as u8,
                grh: flight.packet.grh,
            },
            local_qpn: payload.destination_qpn,
            length: payload.length,
            mad: payload.mad,
        };
        let transaction = payload.mad.transaction_id().0;
        if let Some(request) = flight.request.filter(|&key| self.request(key).is_some()) {
            self.await_answer(None, port, request, transaction);
        }
        let now = self.now();
        self.agents[number as usize].agent.handle(now, arrival, &datagram);
        self.poll_agent(number);
    }

    /// An agent wanted to be called now.
    pub(crate) fn wake_agent(&mut self, number: u32) {
        let now = self.now();
        let slot = &mut self.agents[number as usize];
        if slot.wakes.is_some_and(|at| at <= now) {
            slot.wakes = None;
            slot.agent.handle_timeout(now);
            self.poll_agent(number);
        }
    }

    /// Returns the request that a node was handed as a transaction, by whichever port.
    fn handed_to_node(&mut self, node: NodeId, transaction: u64) -> Option<RequestKey> {
        let all = (transaction, PortId(0))..=(transaction, PortId(u32::MAX));
        let mut ports = self.handed.range(all).map(|(&(_, port), _)| port);
        let port = ports.find(|&port| self.port(port).node == node)?;
        self.take_handed(transaction, port)
    }

    /// Sends what an agent wants to send, and takes note of when it wants to be called.
    fn poll_agent(&mut self, number: u32) {
        let now = self.now();
        let node = self.agents[number as usize].node;
        while let Some(datagram) = self.agents[number as usize].agent.poll_transmit(now) {
            let Some(port) = self.end_port(node) else { continue };
            // What only acknowledges a part of a request is no answer yet.
            let answers = datagram.mad.method().is_response() && !is_rmpp_control(&datagram.mad);
            let request = if answers {
                self.handed_to_node(node, datagram.mad.transaction_id().0)
            } else {
                None
            };
            let packet = self.datagram_packet(port, &datagram);
            if datagram.mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE && packet.is_smp() {
                self.send_directed(port, packet, request);
            } else {
                self.send_by_lid(port, packet, request);
            }
        }
        let slot = &mut self.agents[number as usize];
        if let Some(at) = slot.agent.poll_timeout()
            && slot.wakes.is_none_or(|earlier| at < earlier)
        {
            slot.wakes = Some(at);
            self.schedule(at, Event::Timer(Timer::Agent { agent: number }));
        }
    }
}

#[cfg(test)]
mod tests;
