//! Engines that serve management classes of a node.

use ib_types::Instant;
use ib_wire::mad::MgmtClass;

use crate::datagram::Datagram;

/// How a datagram arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The port by which it entered the node; `None` when the link cannot tell. A datagram that
    /// the node sent to itself enters by port 0.
    pub port: Option<u8>,
    /// The LID that it was sent to.
    pub lid: u16,
}

/// An engine that answers datagrams of some classes at a node.
///
/// It owns no clock: it is told the time with every call. After [`NodeAgent::handle`] and
/// [`NodeAgent::handle_timeout`] its owner asks [`NodeAgent::poll_transmit`] until it returns
/// nothing, and then [`NodeAgent::poll_timeout`].
pub trait NodeAgent: Send {
    /// Returns the classes that the agent serves.
    fn classes(&self) -> &[MgmtClass];

    /// Takes a datagram of one of its classes.
    fn handle(&mut self, now: Instant, arrival: Arrival, datagram: &Datagram);

    /// Does what is due by now.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the next datagram that the agent wants to send.
    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram>;

    /// Returns when the agent wants [`NodeAgent::handle_timeout`] to be called; `None` for never.
    fn poll_timeout(&self) -> Option<Instant>;
}
