//! [`NodeAgent`]: a protocol engine that serves management classes at a node.

use ib_types::Instant;
use ib_wire::mad::MgmtClass;

use crate::datagram::Datagram;

/// The port and LID at which a datagram was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The ingress port; `None` if the link does not report it. If the node sent the datagram to
    /// itself, the port is 0.
    pub port: Option<u8>,
    /// The destination LID.
    pub lid: u16,
}

/// A protocol engine that serves some management classes at a node.
///
/// The engine does not read a clock: every call passes the time. After [`NodeAgent::handle`] and
/// [`NodeAgent::handle_timeout`], the owner calls [`NodeAgent::poll_transmit`] until it returns
/// `None`, and then [`NodeAgent::poll_timeout`].
pub trait NodeAgent: Send {
    /// Returns the management classes that this agent serves.
    fn classes(&self) -> &[MgmtClass];

    /// Handles a received datagram of one of the agent's classes.
    fn handle(&mut self, now: Instant, arrival: Arrival, datagram: &Datagram);

    /// Handles expired timers.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the next datagram to send, if any.
    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram>;

    /// Returns the next deadline, at which [`NodeAgent::handle_timeout`] must be called; `None` if
    /// no timer is running.
    fn poll_timeout(&self) -> Option<Instant>;
}
