//! What programs and HCAs do at ports: clients that send and receive datagrams, and open ports for
//! packets of queue pairs above 1.
//!
//! Packets carry no ICRC: nothing in the fabric changes a byte behind the LRH, and a link that damages a
//! packet says so, whereupon it is dropped where its VCRC would be wrong. Whoever looks at the bytes
//! ([`Packet::to_bytes`]) sees the ICRC that the packet would have.
//!
//! At a port that was opened with [`Sim::open_held`] what has arrived keeps its room in the port's buffer
//! until it is taken ([`Sim::receive_packet`]): an HCA that takes nothing has the fabric wait, as a real
//! one does.
//!
//! An HCA that sends faster than its link reads the number of waiting packets ([`Sim::waiting`]). It continues
//! when [`Sim::next_open`] reports free space.

use ib_link::{Datagram, Incoming, LinkPort, NodeAgent};
use ib_topology::{NodeId, PortId};

use crate::client::{AttachError, ClientOptions, ClientReport};
use crate::ids::ClientId;
use crate::open_port::LostPacket;
use crate::packet::Packet;
use crate::sim::Sim;

/// Clients.
impl Sim {
    /// Attaches a client to an end port.
    ///
    /// # Errors
    /// Fails when there is no such port, and when [`MOST_CLIENTS`](crate::client::MOST_CLIENTS) are attached.
    pub fn attach(
        &mut self,
        port: PortId,
        options: ClientOptions,
    ) -> Result<ClientId, AttachError> {
        self.net.attach(port, options)
    }

    /// Detaches a client: what it still waits for is forgotten, and what it was to answer fails.
    /// A client that has gone already is no error.
    pub fn detach(&mut self, id: ClientId) {
        self.net.detach(id);
    }

    /// Gives a client the duty of a subnet manager, or takes it away.
    pub fn set_is_sm(&mut self, id: ClientId, is_sm: bool) {
        self.net.set_is_sm(id, is_sm);
    }

    /// Sends a client's datagram on its way. One of a client that has gone is dropped.
    pub fn submit(&mut self, id: ClientId, datagram: &Datagram) {
        let delivery = self.net.submit(id, datagram);
        self.deliver(delivery);
    }

    /// Returns true when something has come for a client.
    #[must_use]
    pub fn has_incoming(&self, client: ClientId) -> bool {
        self.net.clients.has_incoming(client)
    }

    /// Returns the next thing that came for a client.
    pub fn receive(&mut self, client: ClientId) -> Option<Incoming> {
        self.net.clients.receive(client)
    }

    /// Returns a client for which something has come since it was last returned; `None` when there is
    /// no other.
    pub fn next_woken(&mut self) -> Option<ClientId> {
        self.net.clients.next_woken()
    }

    /// Returns what a client did so far; all zero for one that has gone.
    #[must_use]
    pub fn client_report(&self, id: ClientId) -> ClientReport {
        self.net.clients.report(id)
    }

    /// Returns the port that a client is attached to.
    #[must_use]
    pub fn client_port(&self, id: ClientId) -> Option<PortId> {
        self.net.clients.get(id).map(|client| client.port)
    }

    /// Returns how many datagrams of clients are on their way or wait for their answer.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.net.clients.requests().len()
    }

    /// Returns what a client can know of its port.
    #[must_use]
    pub fn link_port(&self, port: PortId) -> LinkPort {
        self.fabric().link_port(port)
    }

    /// Hosts an agent at a node: it is handed the datagrams of its classes.
    ///
    /// An agent that had one of the classes before loses it.
    pub fn host(&mut self, node: NodeId, agent: Box<dyn NodeAgent>) {
        let number = self.agents.add(node, agent);
        self.poll_agent(number);
    }
}

/// Open ports.
impl Sim {
    /// Opens an end port: packets for queue pairs above 1 are kept for [`Sim::receive_packet`].
    ///
    /// From now on the `PortInfo` of the port has the capability `CLIENT_REREGISTRATION`, as ports of HCAs do.
    /// [`Sim::registrations`] counts the reregistration requests.
    pub fn open(&mut self, port: PortId) {
        self.net.open(port, false);
    }

    /// The same, and what has arrived keeps its room in the port's buffer until it is taken.
    pub fn open_held(&mut self, port: PortId) {
        self.net.open(port, true);
    }

    /// Closes a port, which drops such packets again.
    pub fn close(&mut self, port: PortId) {
        self.net.close(port);
    }

    /// Has the owner of an open port told what the port has sent and was lost, by [`Sim::next_loss`].
    pub fn tell_losses(&mut self, port: PortId) {
        self.net.open_ports.remember_losses(port);
    }

    /// Returns the next packet of an open port that was lost.
    pub fn next_loss(&mut self, port: PortId) -> Option<LostPacket> {
        self.net.open_ports.next_loss(port)
    }

    /// Returns the packet that [`Sim::receive_packet`] returns next, without taking it.
    #[must_use]
    pub fn peek_packet(&self, port: PortId) -> Option<&Packet> {
        self.net.open_ports.peek(port)
    }

    /// Returns the next packet that arrived at an open port.
    pub fn receive_packet(&mut self, port: PortId) -> Option<Packet> {
        self.net.receive_packet(port)
    }

    /// Returns an open port at which a packet has arrived, at which something has come for a client, or
    /// which has sent most of what waited to leave, since it was last returned; `None` when there is no other.
    pub fn next_open(&mut self) -> Option<PortId> {
        self.net.open_ports.next_woken()
    }

    /// Returns how many packets wait to leave by a port, whatever their VLs.
    #[must_use]
    pub fn waiting(&self, port: PortId) -> usize {
        self.fabric().port(port).waiting()
    }

    /// Returns a vector for the payload of a packet: one that was given back, with whatever it holds,
    /// or an empty one.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.net.flights.take_buffer()
    }

    /// Gives back the payload of a packet, so that another one needs no new memory.
    pub fn give_buffer(&mut self, buffer: Vec<u8>) {
        self.net.flights.give_buffer(buffer);
    }

    /// Sends a packet from an end port. A datagram to queue pair 1 in the form of bytes is taken for
    /// what it is, so that the agents of the other side understand it.
    ///
    /// A packet whose payload is shorter than a BTH or no multiple of four bytes cannot be sent and
    /// is dropped.
    pub fn send_packet(&mut self, port: PortId, packet: Packet) {
        let delivery = self.net.send_packet(port, packet);
        self.deliver(delivery);
    }

    /// Keeps a link down, whatever a subnet manager wants, until [`Sim::let_up`] is called as often: nobody
    /// serves its port.
    pub fn hold_down(&mut self, port: PortId) {
        self.net.hold_down(port, true);
    }

    /// Lets a link come up that [`Sim::hold_down`] keeps down.
    pub fn let_up(&mut self, port: PortId) {
        self.net.hold_down(port, false);
    }
}

#[cfg(test)]
mod tests;
