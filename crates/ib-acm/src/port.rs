//! What a service needs of an adapter's port.

use ib_link::{Datagram, Incoming, LinkPort, Route};
use ib_types::{Gid, PKey, Qpn};
use ib_wire::mad::MAD_LENGTH;
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::MtuCode;

use crate::Address;

/// The number that a service's owner gives a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

/// What a service knows of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortState {
    /// The name of the adapter, by which `ibacm_addr.cfg` knows it.
    pub device: Box<str>,
    /// How many ports the adapter has.
    pub port_count: u8,
    /// Its addresses and those of the subnet manager.
    pub link: LinkPort,
    /// Whether it is in service.
    pub is_active: bool,
    /// The largest packets that it carries.
    pub mtu: MtuCode,
    /// Its rate.
    pub rate: RateCode,
    /// The partitions that it belongs to.
    pub p_keys: Vec<PKey>,
    /// How often a subnet manager has wanted everybody to register again, since when does not matter.
    pub registrations: u64,
    /// Whether it can have queue pairs of datagrams: where not, others cannot be asked, and cannot ask.
    pub has_datagrams: bool,
    /// Names and addresses that it has without any configuration, in the default partition.
    pub names: Vec<Address>,
}

/// Where a datagram of the protocol between services goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The way there.
    pub route: Route,
    /// The queue pair; [`Qpn::MULTICAST`] for groups.
    pub qpn: Qpn,
}

/// What a service wants of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A queue pair of datagrams in a partition, with the Q_Key [`QKey::GSI`](ib_types::QKey::GSI).
    Open {
        /// The partition, by which the queue pair is known from now on.
        p_key: PKey,
    },
    /// The end of one.
    Close {
        /// The partition.
        p_key: PKey,
    },
    /// The datagrams of a group for one. The port has joined the group.
    Attach {
        /// The partition.
        p_key: PKey,
        /// The group.
        mgid: Gid,
        /// Its LID.
        mlid: u16,
    },
    /// No more of them.
    Detach {
        /// The partition.
        p_key: PKey,
        /// The group.
        mgid: Gid,
        /// Its LID.
        mlid: u16,
    },
    /// A datagram to be sent from one.
    Send {
        /// The partition.
        p_key: PKey,
        /// Where to.
        to: Destination,
        /// What.
        bytes: Box<[u8; MAD_LENGTH]>,
    },
    /// A management datagram, for subnet administration.
    Mad(Box<Datagram>),
}

/// Something that has come to a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// A datagram to one of its queue pairs.
    Datagram {
        /// The partition of the queue pair.
        p_key: PKey,
        /// The way back: the LID of the sender, and its GID where the packet tells it.
        route: Route,
        /// The queue pair of the sender.
        qpn: Qpn,
        /// What it says.
        bytes: Box<[u8]>,
    },
    /// A management datagram.
    Mad(Box<Incoming>),
}

/// A port of an adapter: simulated, or of real verbs.
///
/// Nothing here waits.
pub trait Port {
    /// Returns how often [`Port::state`] has changed.
    fn changes(&self) -> u64;

    /// Returns what it is now.
    fn state(&self) -> PortState;

    /// Does what a service wants. False when there is no room now, or no such queue pair: what was to be sent is
    /// lost then, as on any network.
    fn act(&mut self, action: &Action) -> bool;

    /// Returns the next thing that has come.
    fn receive(&mut self) -> Option<Arrived>;
}
