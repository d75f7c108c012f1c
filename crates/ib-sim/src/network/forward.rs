//! Forwards packets at nodes: arrival, LFT and MFT lookup, and directed routes.

use ib_topology::{NodeId, PortId};
use ib_wire::mad::MgmtClass;
use ib_wire::mad::sm::PortState;
use ib_wire::mad::smp::{self, DropReason, HopAction, PERMISSIVE_LID};

use super::{Delivery, Network};
use crate::fault::happens;
use crate::ids::RequestKey;
use crate::log::Entry;
use crate::loss::Loss;
use crate::options::LogLevel;
use crate::packet::{MANAGEMENT_VL, MadPayload, Packet, Payload};

impl Delivery {
    /// Returns the port at which the packet has arrived, and the key of the packet.
    pub(super) const fn parts(self) -> (PortId, u32) {
        match self {
            Self::Smp { port, key } | Self::Data { port, key } => (port, key),
        }
    }
}

impl Network {
    /// Processes the arrival of a packet at a port.
    pub(crate) fn arrive(&mut self, port: PortId, key: u32, epoch: u32) -> Option<Delivery> {
        let state = self.fabric.port_mut(port);
        if state.epoch != epoch {
            return self.drop(port, key, Loss::LinkWentDown);
        }
        self.stats.hops += 1;
        let flight = self.flights.get_mut(key);
        let (vl, packet) = (flight.vl, flight.number);
        let (length, multicast, dlid) =
            (flight.packet.length(), flight.packet.is_multicast(), flight.packet.dlid);
        if flight.damaged {
            state.counters.damaged();
            state.counters.symbol_errors += 1;
            return self.drop(port, key, Loss::Damaged);
        }
        if let Some(faults) = &state.faults
            && happens(&mut self.rng, faults.entering())
        {
            state.counters.damaged();
            return self.drop(port, key, Loss::Fault);
        }
        state.counters.received(length, multicast);
        flight.arrived_by = state.number;
        let node = state.node;
        self.log(Entry::Hop { port, packet, vl, dlid, arrives: true });
        if vl == MANAGEMENT_VL {
            return self.arrive_smp(node, port, key);
        }
        if !self.fabric.port(port).receives_data() {
            return self.drop(port, key, Loss::NotActive);
        }
        // A port in state Armed becomes Active when a data packet arrives.
        if self.fabric.port(port).info.port_state == PortState::ARMED {
            self.set_state(port, PortState::ACTIVE);
        }
        if self.fabric.is_switch(node) {
            self.relay(node, port, key)
        } else {
            Some(Delivery::Data { port, key })
        }
    }

    /// Processes the arrival of an SMP at a port.
    fn arrive_smp(&mut self, node: NodeId, port: PortId, key: u32) -> Option<Delivery> {
        let packet = &mut self.flights.get_mut(key).packet;
        let dlid = packet.dlid;
        // In a LID-routed part of its route, a directed-route SMP is forwarded by LID until the
        // part ends.
        if dlid != PERMISSIVE_LID {
            if self.fabric.is_switch(node) {
                let own = self.fabric.port_id(node, 0);
                if !self.fabric.port(own).has_lid(dlid) {
                    return self.relay(node, port, key);
                }
            } else if !self.fabric.port(port).has_lid(dlid) {
                return self.drop(port, key, Loss::Misrouted(dlid));
            }
        }
        match &mut packet.payload {
            Payload::Mad(payload) if payload.mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE => {
                let arrival = self.fabric.port(port).number;
                let action = smp::receive(&mut payload.mad, self.fabric.hop_node(node), arrival);
                self.follow(node, port, key, action)
            }
            _ => Some(Delivery::Smp { port, key }),
        }
    }

    /// Performs the action that directed-route processing has determined: delivers, forwards or
    /// drops the SMP.
    fn follow(
        &mut self,
        node: NodeId,
        port: PortId,
        key: u32,
        action: HopAction,
    ) -> Option<Delivery> {
        match action {
            HopAction::Deliver => Some(Delivery::Smp { port, key }),
            HopAction::Forward(number)
                if number != self.fabric.port(port).number && !self.fabric.is_switch(node) =>
            {
                let ports = self.fabric.node(node).ports;
                let reason = DropReason::NoSuchPort { port: number, ports };
                self.drop(port, key, Loss::DirectedRoute(reason))
            }
            HopAction::Forward(number) => {
                let packet = &mut self.flights.get_mut(key).packet;
                (packet.dlid, packet.slid) = (PERMISSIVE_LID, PERMISSIVE_LID);
                let out = self.fabric.port_id(node, number);
                self.leave(out, key, MANAGEMENT_VL)
            }
            HopAction::RouteByLid(lid) => {
                let own = self.fabric.port_id(node, 0);
                let packet = &mut self.flights.get_mut(key).packet;
                (packet.dlid, packet.slid) = (lid, self.fabric.port(own).info.lid);
                if self.fabric.port(own).has_lid(lid) {
                    Some(Delivery::Smp { port, key })
                } else {
                    self.relay(node, own, key)
                }
            }
            HopAction::Drop(reason) => self.drop(port, key, Loss::DirectedRoute(reason)),
        }
    }

    /// Forwards a packet by the forwarding tables of a switch. `arrival` is port 0 if the switch
    /// itself sends the packet.
    fn relay(&mut self, node: NodeId, arrival: PortId, key: u32) -> Option<Delivery> {
        let flight = self.flights.get_mut(key);
        flight.hops += 1;
        let dlid = flight.packet.dlid;
        if flight.hops > Loss::MAX_HOPS {
            self.relay_error(arrival, key, Loss::TooManyHops(dlid));
            return None;
        }
        if flight.packet.is_multicast() {
            return self.relay_multicast(node, arrival, key);
        }
        let own = self.fabric.port_id(node, 0);
        if self.fabric.port(own).has_lid(dlid) {
            return Some(Delivery::Data { port: own, key });
        }
        match self.output_port(node, arrival, dlid) {
            Ok(out) => self.pass(node, arrival, out, key),
            Err(why) => self.relay_error(arrival, key, why),
        }
        None
    }

    /// Returns the egress port of a unicast packet at a switch.
    fn output_port(&self, node: NodeId, arrival: PortId, dlid: u16) -> Result<PortId, Loss> {
        let state = self.fabric.node(node);
        let switch = state.switch.as_ref().expect("only a switch relays");
        let mut number = switch.port_of(dlid);
        if number == 0xff {
            return Err(Loss::NoRoute(dlid));
        }
        if number > state.ports {
            return Err(Loss::NoSuchPort { lid: dlid, port: number });
        }
        if let Some(&other) = switch.deviations.misrouted.get(&number) {
            number = other;
        }
        if number == 0 {
            return Err(Loss::Misrouted(dlid));
        }
        let out = self.fabric.port_id(node, number);
        if out == arrival { Err(Loss::TurnsBack(dlid)) } else { Ok(out) }
    }

    /// Drops a packet that a switch cannot forward, and counts a relay error at the ingress port.
    fn relay_error(&mut self, arrival: PortId, key: u32, why: Loss) {
        let counters = &mut self.fabric.port_mut(arrival).counters;
        counters.rcv_switch_relay_errors += 1;
        match why {
            Loss::NoVl(_) => counters.vl_mapping_errors += 1,
            Loss::TurnsBack(_) | Loss::TooManyHops(_) => counters.looping_errors += 1,
            _ => counters.dlid_mapping_errors += 1,
        }
        self.lose(arrival, key, why);
    }

    /// Forwards a packet from one port of a switch to another.
    fn pass(&mut self, node: NodeId, arrival: PortId, out: PortId, key: u32) {
        let packet = &self.flights.get(key).packet;
        if packet.is_smp() {
            return self.enqueue(out, key, MANAGEMENT_VL);
        }
        let (level, p_key, length) = (packet.sl, packet.p_key(), packet.length());
        let [from, to] = [arrival, out].map(|port| self.fabric.port(port));
        let vl = to.vl(from.number, level);
        if vl >= to.data_vls() {
            return self.relay_error(arrival, key, Loss::NoVl(level.get()));
        }
        let is_checked = from.number != 0 && from.info.partition_enforcement_inbound;
        if is_checked && !from.lets_in(p_key) {
            self.fabric.port_mut(arrival).counters.rcv_constraint_errors += 1;
            return self.refuse_partition(node, arrival, key);
        }
        if to.info.partition_enforcement_outbound && !to.admits(p_key) {
            self.fabric.port_mut(out).counters.xmit_constraint_errors += 1;
            return self.refuse_partition(node, out, key);
        }
        if length > to.longest_packet() {
            return self.discard(out, key, Loss::TooLong);
        }
        self.enqueue(out, key, vl);
    }

    /// Forwards a packet out of all ports of its multicast group, except for the ingress port.
    fn relay_multicast(&mut self, node: NodeId, arrival: PortId, key: u32) -> Option<Delivery> {
        let dlid = self.flights.get(key).packet.dlid;
        let state = self.fabric.node(node);
        let switch = state.switch.as_ref().expect("only a switch relays");
        let from = self.fabric.port(arrival).number;
        let mut ports: Vec<u8> = switch
            .multicast_ports(dlid)
            .filter(|&number| number != from && number <= state.ports)
            .collect();
        let is_known = switch.multicast_ports(dlid).next().is_some();
        if ports.is_empty() && !is_known {
            // If the group has no MFT entry, the switch uses the default multicast ports, if the
            // subnet manager has set them.
            let primary = switch.info.default_multicast_primary_port;
            let other = switch.info.default_multicast_not_primary_port;
            let default = if from == primary { other } else { primary };
            if (1..=state.ports).contains(&default) && default != from {
                ports.push(default);
            }
        }
        let Some((&first, others)) = ports.split_first() else {
            // If the ingress port is the group's only port, the packet is dropped, but no relay
            // error is counted.
            if is_known {
                self.lose(arrival, key, Loss::TurnsBack(dlid));
            } else {
                self.relay_error(arrival, key, Loss::NoRoute(dlid));
            }
            return None;
        };
        // The copies share the packet's buffer space, which is freed when the last copy has left
        // it.
        if !others.is_empty() {
            self.flights.share_space(key, ports.len(), self.clock.now());
        }
        // The port numbers are in ascending order, so `others` does not contain port 0, which is
        // the switch itself.
        for &number in others {
            let copy = self.flights.copy(key);
            self.pass(node, arrival, self.fabric.port_id(node, number), copy);
        }
        let out = self.fabric.port_id(node, first);
        if first == 0 {
            return Some(Delivery::Data { port: out, key });
        }
        self.pass(node, arrival, out, key);
        None
    }

    /// Sends a LID-routed packet from an end port.
    pub(crate) fn send_by_lid(
        &mut self,
        port: PortId,
        packet: Packet,
        request: Option<RequestKey>,
    ) -> Option<Delivery> {
        let (smp, dlid, level) = (packet.is_smp(), packet.dlid, packet.sl);
        let length = packet.length();
        let key = self.start(port, packet, request);
        let state = self.fabric.port(port);
        let node = self.fabric.node(state.node);
        if !node.powered {
            return self.drop(port, key, Loss::NoPower);
        }
        if state.has_lid(dlid) {
            let delivery =
                if smp { Delivery::Smp { port, key } } else { Delivery::Data { port, key } };
            return Some(delivery);
        }
        if node.kind.is_switch() {
            return self.relay(state.node, port, key);
        }
        if dlid == PERMISSIVE_LID && smp {
            return self.leave(port, key, MANAGEMENT_VL);
        }
        if state.info.lid == 0 {
            return self.drop(port, key, Loss::NoLid);
        }
        let vl = if smp { MANAGEMENT_VL } else { state.vl(0, level) };
        let refused = if !smp && vl >= state.data_vls() {
            Some(Loss::NoVl(level.get()))
        } else {
            (length > state.longest_packet()).then_some(Loss::TooLong)
        };
        match refused {
            Some(why) => self.discard(port, key, why),
            None => self.enqueue(port, key, vl),
        }
        None
    }

    /// Sends an SMP over the link of a port. The LIDs of the packet are ignored.
    pub(crate) fn send_to_neighbor(
        &mut self,
        port: PortId,
        packet: Packet,
        request: Option<RequestKey>,
    ) -> Option<Delivery> {
        let key = self.start(port, packet, request);
        self.leave(port, key, MANAGEMENT_VL)
    }

    /// Sends a directed-route SMP from an end port.
    pub(crate) fn send_directed(
        &mut self,
        port: PortId,
        packet: Packet,
        request: Option<RequestKey>,
    ) -> Option<Delivery> {
        let key = self.start(port, packet, request);
        let node = self.fabric.port(port).node;
        if !self.fabric.node(node).powered {
            return self.drop(port, key, Loss::NoPower);
        }
        let hop = self.fabric.hop_node(node);
        let packet = &mut self.flights.get_mut(key).packet;
        let dlid = packet.dlid;
        let Payload::Mad(MadPayload { mad, .. }) = &mut packet.payload else {
            unreachable!("a directed route packet is an SMP")
        };
        if dlid == PERMISSIVE_LID {
            let action = smp::send(mad, hop);
            return self.follow(node, port, key, action);
        }
        // The SMP is first routed by LID, up to the node where its directed part starts. This also
        // applies to a response without directed hops.
        if mad.is_returning()
            && mad.hop_count() == 0
            && mad.dr_dlid() == PERMISSIVE_LID
            && let HopAction::Drop(reason) = smp::send(mad, hop)
        {
            return self.drop(port, key, Loss::DirectedRoute(reason));
        }
        if self.fabric.port(port).has_lid(dlid) {
            self.arrive_smp(node, port, key)
        } else if self.fabric.is_switch(node) {
            self.relay(node, port, key)
        } else {
            self.leave(port, key, MANAGEMENT_VL)
        }
    }

    fn start(&mut self, port: PortId, packet: Packet, request: Option<RequestKey>) -> u32 {
        let key = self.flights.launch(port, packet, request);
        if self.log.has(LogLevel::Datagrams) {
            let flight = self.flights.get(key);
            if let Some(mad) = flight.packet.mad() {
                let entry = Entry::Sent { port, packet: flight.number, mad };
                self.log.write(self.clock.now(), &self.fabric, entry);
            }
        }
        if self.tap.is_on() {
            let packet = &self.flights.get(key).packet;
            let vl = if packet.is_smp() {
                MANAGEMENT_VL
            } else {
                self.fabric.port(port).vl(0, packet.sl)
            };
            self.tap.keep(self.clock.now(), port, packet, vl, None);
        }
        key
    }

    /// Drops a packet. Returns `None`, because nothing is delivered.
    fn drop(&mut self, port: PortId, key: u32, why: Loss) -> Option<Delivery> {
        self.lose(port, key, why);
        None
    }

    /// Adds a packet to the output queue of a port. Returns `None`, because this node does not
    /// deliver the packet.
    fn leave(&mut self, port: PortId, key: u32, vl: u8) -> Option<Delivery> {
        self.enqueue(port, key, vl);
        None
    }
}

#[cfg(test)]
mod tests;
