//! The interface between a service and a port of an HCA.

use ib_link::{Datagram, Incoming, LinkPort, Route};
use ib_types::{Gid, PKey, Qpn};
use ib_wire::mad::MAD_LENGTH;
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::MtuCode;

use crate::Address;

/// Identifies a port. The owner of the service assigns the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

/// State of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortState {
    /// Name of the HCA, as in `ibacm_addr.cfg`.
    pub device: Box<str>,
    /// Number of ports of the HCA.
    pub port_count: u8,
    /// GID and LID of the port, LID and SL of the SM.
    pub link: LinkPort,
    /// True if the port is active.
    pub is_active: bool,
    /// Active MTU of the port.
    pub mtu: MtuCode,
    /// Active rate of the port.
    pub rate: RateCode,
    /// P_Key table of the port.
    pub p_keys: Vec<PKey>,
    /// Number of client reregistration requests that the SM has sent.
    pub registrations: u64,
    /// True if the port supports UD QPs. Address resolution over multicast needs them.
    pub has_datagrams: bool,
    /// Names and addresses of the port in the default partition, in addition to those in the configuration.
    pub names: Vec<Address>,
}

/// Destination of a datagram to another service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Route to the destination.
    pub route: Route,
    /// Destination QP; [`Qpn::MULTICAST`] for groups.
    pub qpn: Qpn,
}

/// Action that a service requests from a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Creates a UD QP in a partition, with the Q_Key [`QKey::GSI`](ib_types::QKey::GSI).
    Open {
        /// P_Key of the partition. Later actions identify the QP by this P_Key.
        p_key: PKey,
    },
    /// Destroys the UD QP of a partition.
    Close {
        /// P_Key of the partition.
        p_key: PKey,
    },
    /// Attaches a UD QP to a multicast group that the port has joined.
    Attach {
        /// P_Key of the partition.
        p_key: PKey,
        /// MGID of the group.
        mgid: Gid,
        /// MLID of the group.
        mlid: u16,
    },
    /// Detaches a UD QP from a multicast group.
    Detach {
        /// P_Key of the partition.
        p_key: PKey,
        /// MGID of the group.
        mgid: Gid,
        /// MLID of the group.
        mlid: u16,
    },
    /// Sends a datagram from a UD QP.
    Send {
        /// P_Key of the partition.
        p_key: PKey,
        /// Destination of the datagram.
        to: Destination,
        /// Payload of the datagram.
        bytes: Box<[u8; MAD_LENGTH]>,
    },
    /// Sends a MAD to the SA.
    Mad(Box<Datagram>),
}

/// Input from a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// A datagram that a UD QP has received.
    Datagram {
        /// P_Key of the QP's partition.
        p_key: PKey,
        /// Route to the sender: the sender's LID and, if the packet has a GRH, the sender's GID.
        route: Route,
        /// QP of the sender.
        qpn: Qpn,
        /// Payload of the datagram.
        bytes: Box<[u8]>,
    },
    /// A MAD that the port has received.
    Mad(Box<Incoming>),
}

/// A port of an HCA, either simulated or accessed by verbs. No method blocks.
pub trait Port {
    /// Returns the number of times that [`Port::state`] has changed.
    fn changes(&self) -> u64;

    /// Returns the current state of the port.
    fn state(&self) -> PortState;

    /// Executes an action. Returns false if this fails, for example because a queue is full or the QP does not exist. A
    /// datagram is then lost.
    fn act(&mut self, action: &Action) -> bool;

    /// Returns the next input from the port.
    fn receive(&mut self) -> Option<Arrived>;
}
