//! A port that sends and receives management datagrams.

use std::io;

use ib_types::{Gid, Guid, Instant, ServiceLevel};

use crate::datagram::Datagram;

/// What a link knows of the port that it speaks through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkPort {
    /// The GUID of the node.
    pub node_guid: Guid,
    /// The GUID of the port.
    pub port_guid: Guid,
    /// The upper half of its GIDs.
    pub gid_prefix: u64,
    /// The port's number on its node.
    pub number: u8,
    /// The base LID; zero while none is assigned.
    pub lid: u16,
    /// The number of low bits of the LID that the port leaves free.
    pub lmc: u8,
    /// The LID of the master subnet manager; zero while there is none.
    pub sm_lid: u16,
    /// The service level to the master subnet manager.
    pub sm_sl: ServiceLevel,
}

impl LinkPort {
    /// Returns the port's first GID.
    #[must_use]
    pub const fn gid(&self) -> Gid {
        Gid::new(self.gid_prefix, self.port_guid)
    }
}

/// What comes out of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A datagram arrived.
    Received(Datagram),
    /// A datagram that was sent is known to be lost. Not every link can tell; where none of these
    /// comes the sender has to wait for its own deadline.
    Lost(Datagram),
}

/// Why a link carries nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The other side has gone.
    #[error("{peer} has closed the link")]
    Closed {
        /// What was at the other side.
        peer: String,
    },
    /// The link cannot carry such a datagram.
    #[error("the link cannot send {what}: {reason}")]
    Unsupported {
        /// What was to be sent.
        what: String,
        /// Why not.
        reason: &'static str,
    },
    /// The system failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
}

/// A port that carries management datagrams: one of a simulator in the same process, of one in
/// another process, of a real adapter.
///
/// Sending and receiving never block; [`MadLink::wait`] does. A link whose time is virtual lets it
/// run there, so that the same loop drives an engine in either kind of time.
pub trait MadLink {
    /// Returns what is known of the port now.
    ///
    /// # Errors
    /// Fails when the link is closed or the system fails.
    fn port(&mut self) -> Result<LinkPort, LinkError>;

    /// Sends a datagram, or keeps it to be sent with the next [`MadLink::wait`].
    ///
    /// # Errors
    /// Fails when the link is closed, cannot carry the datagram, or the system fails.
    fn send(&mut self, datagram: &Datagram) -> Result<(), LinkError>;

    /// Returns the next thing that came; `None` when there is nothing for now.
    ///
    /// # Errors
    /// Fails when the link is closed or the system fails.
    fn receive(&mut self) -> Result<Option<Incoming>, LinkError>;

    /// Waits until something comes or the clock reaches a moment.
    ///
    /// # Errors
    /// Fails when the link is closed or the system fails.
    fn wait(&mut self, until: Instant) -> Result<(), LinkError>;

    /// Returns the time of the link's clock, which never runs backwards.
    fn now(&self) -> Instant;
}
