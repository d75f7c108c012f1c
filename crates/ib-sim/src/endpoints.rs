//! Interface for programs and HCAs at ports. Clients send and receive MADs; open ports send and
//! receive packets of QPs above 1.
//!
//! Packets contain no ICRC; [`Packet::to_bytes`] computes it. If a packet is damaged on a link, the
//! port at the end of the link drops it, as if its VCRC were wrong.
//!
//! At a port opened with [`Sim::open_held`], arrived packets occupy buffer space until
//! [`Sim::receive_packet`] takes them. So an HCA that takes no packets causes back-pressure, like a
//! real HCA.
//!
//! An HCA can be faster than its link. To limit its output queue, such an HCA stops sending when
//! many packets wait ([`Sim::waiting`]). It continues when [`Sim::next_open`] returns its port.

use ib_link::{Datagram, Incoming, LinkPort, NodeAgent};
use ib_topology::{NodeId, PortId};

use crate::client::{AttachError, ClientOptions, ClientReport};
use crate::ids::ClientId;
use crate::open_port::LostPacket;
use crate::packet::Packet;
use crate::sim::Sim;

/// Interface of clients.
impl Sim {
    /// Attaches a client to an end port.
    ///
    /// # Errors
    /// Fails if the port does not exist, or if [`MAX_CLIENTS`](crate::client::MAX_CLIENTS) clients
    /// are attached.
    pub fn attach(
        &mut self,
        port: PortId,
        options: ClientOptions,
    ) -> Result<ClientId, AttachError> {
        self.net.attach(port, options)
    }

    /// Detaches a client. Requests that it has sent are cancelled. Requests that it has received,
    /// but not answered, fail. If the client is already detached, nothing happens.
    pub fn detach(&mut self, id: ClientId) {
        self.net.detach(id);
    }

    /// Sets whether a client is a subnet manager.
    pub fn set_is_sm(&mut self, id: ClientId, is_sm: bool) {
        self.net.set_is_sm(id, is_sm);
    }

    /// Sends a MAD of a client. A MAD of a detached client is dropped.
    pub fn submit(&mut self, id: ClientId, datagram: &Datagram) {
        let delivery = self.net.submit(id, datagram);
        self.deliver(delivery);
    }

    /// Returns true if a client has unread input.
    #[must_use]
    pub fn has_incoming(&self, client: ClientId) -> bool {
        self.net.clients.has_incoming(client)
    }

    /// Takes the next MAD or loss report that has arrived for a client, if any.
    pub fn receive(&mut self, client: ClientId) -> Option<Incoming> {
        self.net.clients.receive(client)
    }

    /// Returns a client that has received input since this function last returned it; `None` if
    /// there is none.
    pub fn next_woken(&mut self) -> Option<ClientId> {
        self.net.clients.next_woken()
    }

    /// Returns the counters of a client; all zero if it is detached.
    #[must_use]
    pub fn client_report(&self, id: ClientId) -> ClientReport {
        self.net.clients.report(id)
    }

    /// Returns the port at which a client is attached; `None` if it is detached.
    #[must_use]
    pub fn client_port(&self, id: ClientId) -> Option<PortId> {
        self.net.clients.get(id).map(|client| client.port)
    }

    /// Returns the number of outstanding requests of all clients.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.net.clients.requests().len()
    }

    /// Returns the attributes of a port: GUIDs, GID prefix, number and LIDs, and the LID and SL of its master SM.
    #[must_use]
    pub fn link_port(&self, port: PortId) -> LinkPort {
        self.fabric().link_port(port)
    }

    /// Hosts an agent at a node. The agent receives the MADs of its management classes.
    ///
    /// For these classes, the agent replaces earlier agents of the node.
    pub fn host(&mut self, node: NodeId, agent: Box<dyn NodeAgent>) {
        let number = self.agents.add(node, agent);
        self.poll_agent(number);
    }
}

/// Interface of open ports.
impl Sim {
    /// Opens an end port. Packets to QPs above 1 that arrive at the port are queued for
    /// [`Sim::receive_packet`].
    ///
    /// While the port is open, `CLIENT_REREGISTRATION` is set in the capability mask of its
    /// PortInfo, as at a port of a real HCA. [`Sim::registrations`] counts the reregistration requests.
    pub fn open(&mut self, port: PortId) {
        self.net.open(port, false);
    }

    /// Opens an end port like [`Self::open`], but lets arrived packets occupy buffer space until
    /// they are taken.
    pub fn open_held(&mut self, port: PortId) {
        self.net.open(port, true);
    }

    /// Closes a port. From then on, packets to QPs above 1 that arrive at the port are dropped.
    pub fn close(&mut self, port: PortId) {
        self.net.close(port);
    }

    /// Starts to record losses of packets that an open port has sent, for [`Sim::next_loss`].
    pub fn record_losses(&mut self, port: PortId) {
        self.net.open_ports.remember_losses(port);
    }

    /// Returns the next lost packet that an open port has sent.
    pub fn next_loss(&mut self, port: PortId) -> Option<LostPacket> {
        self.net.open_ports.next_loss(port)
    }

    /// Returns the packet that [`Sim::receive_packet`] returns next, without removing it.
    #[must_use]
    pub fn peek_packet(&self, port: PortId) -> Option<&Packet> {
        self.net.open_ports.peek(port)
    }

    /// Takes the next packet that has arrived at an open port.
    pub fn receive_packet(&mut self, port: PortId) -> Option<Packet> {
        self.net.receive_packet(port)
    }

    /// Returns an open port that has had an event since this function last returned it; `None` if
    /// there is none.
    ///
    /// An event is the arrival of a packet, input for a client of the port, or an output queue that
    /// has become nearly empty.
    pub fn next_open(&mut self) -> Option<PortId> {
        self.net.open_ports.next_woken()
    }

    /// Returns the number of packets of all VLs that wait in the output queue of a port.
    #[must_use]
    pub fn waiting(&self, port: PortId) -> usize {
        self.fabric().port(port).waiting()
    }

    /// Returns a vector for the payload of a packet: a recycled vector with its old contents, or an
    /// empty one.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.net.flights.take_buffer()
    }

    /// Gives the payload vector of a packet back for reuse by [`Self::take_buffer`].
    pub fn give_buffer(&mut self, buffer: Vec<u8>) {
        self.net.flights.give_buffer(buffer);
    }

    /// Sends a packet from an end port.
    ///
    /// If the payload bytes are a UD SEND of a MAD to QP 1, the MAD is parsed, so that agents can
    /// process it.
    /// A packet is dropped if its payload is shorter than a BTH, or if the payload's length is not
    /// a multiple of four bytes.
    pub fn send_packet(&mut self, port: PortId, packet: Packet) {
        let delivery = self.net.send_packet(port, packet);
        self.deliver(delivery);
    }

    /// Holds the link of a port down, for example while no program serves the port. A subnet
    /// manager cannot bring the link up.
    ///
    /// Each call adds a hold, which [`Sim::release_hold`] removes. The link stays down as long as
    /// the port has a hold.
    pub fn hold_down(&mut self, port: PortId) {
        self.net.hold_down(port, true);
    }

    /// Removes one hold that [`Sim::hold_down`] has added to a port.
    pub fn release_hold(&mut self, port: PortId) {
        self.net.hold_down(port, false);
    }
}

#[cfg(test)]
mod tests;
