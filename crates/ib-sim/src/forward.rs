//! The way of a packet through nodes: where it arrives, and where it goes from there.

use ib_topology::{NodeId, PortId};
use ib_types::ServiceLevel;
use ib_wire::mad::smp::{self, DropReason, HopAction, PERMISSIVE_LID};
use ib_wire::mad::{Mad, MgmtClass};

use crate::client::RequestKey;
use crate::link::Flight;
use crate::log::{Entry, LogLevel};
use crate::loss::Loss;
use crate::packet::{MadPayload, Packet, Payload};
use crate::port::MANAGEMENT_LANE;
use crate::sim::Sim;

impl Sim {
    /// A packet arrives at a port.
    pub(crate) fn arrive(&mut self, port: PortId, key: u32, epoch: u32) {
        let state = self.port(port);
        if state.epoch != epoch {
            return self.lose(port, key, Loss::LinkWentDown);
        }
        self.stats.hops += 1;
        let flight = self.flight(key);
        let lane = flight.lane;
        let (length, multicast, dlid) =
            (flight.packet.length(), flight.packet.is_multicast(), flight.packet.dlid);
        let number = flight.number;
        if flight.damaged {
            self.port_mut(port).counters.damaged();
            self.port_mut(port).counters.symbol_errors += 1;
            return self.lose(port, key, Loss::Damaged);
        }
        if self.port(port).faults.is_some() && self.loses_arrival(port) {
            self.port_mut(port).counters.damaged();
            return self.lose(port, key, Loss::Fault);
        }
        self.port_mut(port).counters.received(length, multicast);
        self.flight_mut(key).arrived_by = self.port(port).number;
        self.log(Entry::Hop { port, packet: number, lane, dlid, arrives: true });
        let node = self.port(port).node;
        if lane == MANAGEMENT_LANE {
            return self.arrive_smp(node, port, key);
        }
        if !self.port(port).receives_data() {
            return self.lose(port, key, Loss::NotActive);
        }
        self.activate(port);
        if self.node(node).kind.is_switch() {
            self.relay(node, port, key);
        } else {
            self.arrive_data(port, key);
        }
    }

    /// An armed port becomes active when data arrives.
    fn activate(&mut self, port: PortId) {
        use ib_wire::mad::sm::PortState;
        if self.port(port).info.port_state == PortState::ARMED {
            self.set_state(port, PortState::ACTIVE);
        }
    }

    fn is_directed(flight: &Flight) -> bool {
        flight.packet.mad().is_some_and(|mad| mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE)
    }

    /// A packet of subnet management arrives.
    fn arrive_smp(&mut self, node: NodeId, port: PortId, key: u32) {
        let flight = self.flight(key);
        let dlid = flight.packet.dlid;
        // A directed route with a LID-routed leg is an ordinary packet up to the end of the leg.
        if dlid != PERMISSIVE_LID {
            if self.node(node).kind.is_switch() {
                let own = self.port_id(node, 0);
                if !self.port(own).has_lid(dlid) {
                    return self.relay(node, port, key);
                }
            } else if !self.port(port).has_lid(dlid) {
                return self.lose(port, key, Loss::Misrouted(dlid));
            }
        }
        if !Self::is_directed(self.flight(key)) {
            return self.deliver_smp(node, port, key);
        }
        let arrival = self.port(port).number;
        let hop = self.hop_node(node);
        let Payload::Mad(payload) = &mut self.flight_mut(key).packet.payload else {
            unreachable!("a directed route is a datagram")
        };
        let action = smp::receive(&mut payload.mad, hop, arrival);
        self.follow(node, port, key, action);
    }

    /// Does what the rules of directed routes say.
    fn follow(&mut self, node: NodeId, port: PortId, key: u32, action: HopAction) {
        match action {
            HopAction::Deliver => self.deliver_smp(node, port, key),
            HopAction::Forward(number)
                if number != self.port(port).number && !self.hop_node(node).kind.is_switch() =>
            {
                let ports = self.node(node).ports;
                let reason = DropReason::NoSuchPort { port: number, ports };
                self.lose(port, key, Loss::DirectedRoute(reason));
            }
            HopAction::Forward(number) => {
                let packet = &mut self.flight_mut(key).packet;
                (packet.dlid, packet.slid) = (PERMISSIVE_LID, PERMISSIVE_LID);
                let out = self.port_id(node, number);
                self.enqueue(out, key, MANAGEMENT_LANE);
            }
            HopAction::RouteByLid(lid) => {
                let own = self.port_id(node, 0);
                let slid = self.port(own).info.lid;
                let packet = &mut self.flight_mut(key).packet;
                (packet.dlid, packet.slid) = (lid, slid);
                if self.port(own).has_lid(lid) {
                    self.deliver_smp(node, port, key);
                } else {
                    self.relay(node, own, key);
                }
            }
            HopAction::Drop(reason) => self.lose(port, key, Loss::DirectedRoute(reason)),
        }
    }

    /// A switch passes a packet on by its tables. `arrival` is port 0 for what it sends itself.
    pub(crate) fn relay(&mut self, node: NodeId, arrival: PortId, key: u32) {
        let flight = self.flight_mut(key);
        flight.hops += 1;
        let (dlid, hops) = (flight.packet.dlid, flight.hops);
        if hops > Loss::MOST_HOPS {
            return self.relay_error(arrival, key, Loss::TooManyHops(dlid));
        }
        if self.flight(key).packet.is_multicast() {
            return self.relay_multicast(node, arrival, key);
        }
        let own = self.port_id(node, 0);
        if self.port(own).has_lid(dlid) {
            return self.arrive_data(own, key);
        }
        let state = self.node(node);
        let switch = state.switch.as_ref().expect("only a switch relays");
        let mut number = switch.port_of(dlid);
        if number == 0xff {
            return self.relay_error(arrival, key, Loss::NoRoute(dlid));
        }
        if number > state.ports {
            return self.relay_error(arrival, key, Loss::NoSuchPort { lid: dlid, port: number });
        }
        if let Some(&lie) = switch.lies.misrouted.get(&number) {
            number = lie;
        }
        if number == 0 {
            return self.relay_error(arrival, key, Loss::Misrouted(dlid));
        }
        let out = self.port_id(node, number);
        if out == arrival {
            return self.relay_error(arrival, key, Loss::TurnsBack(dlid));
        }
        self.pass(node, (arrival, out), key);
    }

    /// Drops a packet that a switch cannot pass on.
    fn relay_error(&mut self, arrival: PortId, key: u32, why: Loss) {
        let counters = &mut self.port_mut(arrival).counters;
        counters.rcv_switch_relay_errors += 1;
        match why {
            Loss::NoLane(_) => counters.vl_mapping_errors += 1,
            Loss::TurnsBack(_) | Loss::TooManyHops(_) => counters.looping_errors += 1,
            _ => counters.dlid_mapping_errors += 1,
        }
        self.lose(arrival, key, why);
    }

    /// Passes a packet from one port of a switch to another.
    fn pass(&mut self, node: NodeId, (arrival, out): (PortId, PortId), key: u32) {
        let packet = &self.flight(key).packet;
        if packet.is_smp() {
            return self.enqueue(out, key, MANAGEMENT_LANE);
        }
        let (level, p_key, length) = (packet.sl, packet.p_key(), packet.length());
        let number = self.port(arrival).number;
        let lane = self.port(out).lane(number, level);
        if lane >= self.port(out).lanes() {
            return self.relay_error(arrival, key, Loss::NoLane(level.get()));
        }
        if number != 0
            && self.port(arrival).info.partition_enforcement_inbound
            && !self.port(arrival).lets_in(p_key)
        {
            self.port_mut(arrival).counters.rcv_constraint_errors += 1;
            return self.refuse_partition(node, arrival, key);
        }
        if self.port(out).info.partition_enforcement_outbound && !self.port(out).admits(p_key) {
            self.port_mut(out).counters.xmit_constraint_errors += 1;
            return self.refuse_partition(node, out, key);
        }
        if length > self.port(out).longest_packet() {
            return self.discard(out, key, Loss::TooLong);
        }
        self.enqueue(out, key, lane);
    }

    /// A switch sends a packet out of all ports of its group but the one that it came by.
    fn relay_multicast(&mut self, node: NodeId, arrival: PortId, key: u32) {
        let dlid = self.flight(key).packet.dlid;
        let state = self.node(node);
        let switch = state.switch.as_ref().expect("only a switch relays");
        let from = self.port(arrival).number;
        let mut ports: Vec<u8> = switch
            .multicast_ports(dlid)
            .filter(|&number| number != from && number <= state.ports)
            .collect();
        if ports.is_empty() && switch.multicast_ports(dlid).next().is_none() {
            // A group without an entry goes to the default ports, if the manager has set any.
            let primary = switch.info.default_multicast_primary_port;
            let other = switch.info.default_multicast_not_primary_port;
            let default = if from == primary { other } else { primary };
            if (1..=state.ports).contains(&default) && default != from {
                ports.push(default);
            }
        }
        if ports.is_empty() {
            // That nobody else is in the group is no error.
            return if switch.multicast_ports(dlid).next().is_some() {
                self.lose(arrival, key, Loss::TurnsBack(dlid));
            } else {
                self.relay_error(arrival, key, Loss::NoRoute(dlid));
            };
        }
        // The room that it stands in is given back when the last copy leaves.
        if ports.len() > 1 {
            self.share_room(key, ports.len());
        }
        for &number in &ports[1..] {
            let mut copy = self.flight(key).clone();
            copy.request = None;
            let copy = self.flights.insert(copy) as u32;
            self.pass_copy(node, (arrival, number), copy);
        }
        self.pass_copy(node, (arrival, ports[0]), key);
    }

    fn pass_copy(&mut self, node: NodeId, (arrival, number): (PortId, u8), key: u32) {
        let out = self.port_id(node, number);
        if number == 0 {
            self.arrive_data(out, key);
        } else {
            self.pass(node, (arrival, out), key);
        }
    }

    /// Returns a packet of management from an end port: of subnet management when the class says so,
    /// and else between the queue pairs 1.
    pub(crate) fn management_packet(
        &self,
        port: PortId,
        dlid: u16,
        sl: ServiceLevel,
        mad: Mad,
    ) -> Packet {
        let qpn = ib_types::Qpn::truncated(u32::from(!mad.class().is_smp()));
        Packet {
            slid: self.port(port).info.lid,
            dlid,
            sl,
            grh: None,
            payload: Payload::Mad(MadPayload {
                destination_qpn: qpn,
                source_qpn: qpn,
                q_key: if qpn.get() == 0 { ib_types::QKey(0) } else { ib_types::QKey::GSI },
                p_key: self.port(port).p_key(0),
                length: 256,
                mad,
            }),
        }
    }

    /// Sends a LID-routed packet from an end port.
    pub(crate) fn send_by_lid(
        &mut self,
        port: PortId,
        packet: Packet,
        request: Option<RequestKey>,
    ) {
        let key = self.start(port, packet, request);
        let (smp, dlid, level) = {
            let packet = &self.flight(key).packet;
            (packet.is_smp(), packet.dlid, packet.sl)
        };
        let node = self.port(port).node;
        if !self.node(node).powered {
            return self.lose(port, key, Loss::NoPower);
        }
        if self.port(port).has_lid(dlid) {
            return if smp {
                self.deliver_smp(node, port, key);
            } else {
                self.arrive_data(port, key);
            };
        }
        if self.node(node).kind.is_switch() {
            return self.relay(node, port, key);
        }
        if dlid == PERMISSIVE_LID && smp {
            return self.enqueue(port, key, MANAGEMENT_LANE);
        }
        if self.port(port).info.lid == 0 {
            return self.lose(port, key, Loss::NoLid);
        }
        let lane = if smp { MANAGEMENT_LANE } else { self.port(port).lane(0, level) };
        if !smp && lane >= self.port(port).lanes() {
            return self.discard(port, key, Loss::NoLane(level.get()));
        }
        if self.flight(key).packet.length() > self.port(port).longest_packet() {
            return self.discard(port, key, Loss::TooLong);
        }
        self.enqueue(port, key, lane);
    }

    /// Sends a packet of subnet management over the link of a port, whatever its LIDs.
    pub(crate) fn send_to_neighbor(
        &mut self,
        port: PortId,
        packet: Packet,
        request: Option<RequestKey>,
    ) {
        let key = self.start(port, packet, request);
        self.enqueue(port, key, MANAGEMENT_LANE);
    }

    /// Sends a packet with a directed route from an end port.
    pub(crate) fn send_directed(
        &mut self,
        port: PortId,
        packet: Packet,
        request: Option<RequestKey>,
    ) {
        let key = self.start(port, packet, request);
        let node = self.port(port).node;
        if !self.node(node).powered {
            return self.lose(port, key, Loss::NoPower);
        }
        if self.flight(key).packet.dlid != PERMISSIVE_LID {
            // A LID-routed leg comes first; its end is where the directed route starts. The answer
            // to a directed route without a hop starts with its end.
            let hop = self.hop_node(node);
            let packet = &mut self.flight_mut(key).packet;
            let dlid = packet.dlid;
            if let Payload::Mad(MadPayload { mad, .. }) = &mut packet.payload
                && mad.is_returning()
                && mad.hop_count() == 0
                && mad.dr_dlid() == PERMISSIVE_LID
                && let HopAction::Drop(reason) = smp::send(mad, hop)
            {
                return self.lose(port, key, Loss::DirectedRoute(reason));
            }
            return if self.port(port).has_lid(dlid) {
                self.arrive_smp(node, port, key);
            } else if self.node(node).kind.is_switch() {
                self.relay(node, port, key);
            } else {
                self.enqueue(port, key, MANAGEMENT_LANE);
            };
        }
        let hop = self.hop_node(node);
        let Payload::Mad(payload) = &mut self.flight_mut(key).packet.payload else {
            unreachable!("a directed route is a datagram")
        };
        let action = smp::send(&mut payload.mad, hop);
        self.follow(node, port, key, action);
    }

    fn start(&mut self, port: PortId, packet: Packet, request: Option<RequestKey>) -> u32 {
        let key = self.launch(port, packet, request);
        if self.log.level >= LogLevel::Datagrams {
            let number = self.flight(key).number;
            if let Some(&mad) = self.flight(key).packet.mad() {
                self.log(Entry::Sent { port, packet: number, mad: &mad });
            }
        }
        self.tap_sent(port, key);
        key
    }
}

#[cfg(test)]
mod tests;
