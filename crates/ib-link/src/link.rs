//! [`MadLink`]: a port that sends and receives MADs.

use std::io;

use ib_types::{Gid, Guid, Instant, ServiceLevel};

use crate::datagram::Datagram;

/// The properties of the port at which a link sends and receives MADs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkPort {
    /// The GUID of the node.
    pub node_guid: Guid,
    /// The GUID of the port.
    pub port_guid: Guid,
    /// The GID prefix.
    pub gid_prefix: u64,
    /// The port number.
    pub number: u8,
    /// The base LID; zero if none is assigned.
    pub lid: u16,
    /// The LMC.
    pub lmc: u8,
    /// The LID of the master SM; zero if there is none.
    pub sm_lid: u16,
    /// The SL of packets to the master SM.
    pub sm_sl: ServiceLevel,
}

impl LinkPort {
    /// Returns the first GID of the port, which consists of GID prefix and port GUID.
    #[must_use]
    pub const fn gid(&self) -> Gid {
        Gid::new(self.gid_prefix, self.port_guid)
    }
}

/// A received or lost datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A received datagram.
    Received(Datagram),
    /// A sent datagram that was lost. Only some links report losses, so senders also need timeouts.
    Lost(Datagram),
}

/// Error of a link.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The link is closed: the simulator has exited, or the device was removed.
    #[error("the link to {peer} is closed: the simulator has exited, or the device was removed")]
    Closed {
        /// The name of the peer: a simulator or a device.
        peer: String,
    },
    /// The link does not support this datagram.
    #[error("the link cannot send {what}: {reason}")]
    Unsupported {
        /// Description of the MAD.
        what: String,
        /// The reason why the link cannot send the datagram.
        reason: &'static str,
    },
    /// A system call has failed.
    #[error("{doing}: {source}")]
    Io {
        /// The operation that failed.
        doing: String,
        /// The error of the system call.
        source: io::Error,
    },
}

/// A port that sends and receives MADs. It belongs to a fabric simulated within this process, to
/// ibsim, or to an HCA.
///
/// Only [`MadLink::wait`] blocks. A link with virtual time advances the time in this call, so the
/// same loop drives an engine in real and in virtual time.
pub trait MadLink {
    /// Returns the current properties of the port.
    ///
    /// # Errors
    /// Fails if the link is closed, or if a system call fails.
    fn port(&mut self) -> Result<LinkPort, LinkError>;

    /// Sends a datagram, or queues it until the next [`MadLink::wait`].
    ///
    /// # Errors
    /// Fails if the link is closed, if it does not support the datagram, or if a system call fails.
    fn send(&mut self, datagram: &Datagram) -> Result<(), LinkError>;

    /// Returns the next received or lost datagram, if any at the moment.
    ///
    /// # Errors
    /// Fails if the link is closed, or if a system call fails.
    fn receive(&mut self) -> Result<Option<Incoming>, LinkError>;

    /// Waits until a datagram is received or lost, at most until this time.
    ///
    /// # Errors
    /// Fails if the link is closed, or if a system call fails.
    fn wait(&mut self, until: Instant) -> Result<(), LinkError>;

    /// Returns the time of the link's clock, which is monotonic.
    fn now(&self) -> Instant;
}
