//! IDs of the program: sockets of `rdma_cm`, with their states, and the ports to which they are bound.

use std::collections::{BTreeMap, BTreeSet};

use ib_cm::{ConnectionId, PortSpace, ServiceId, SidrId, SidrRequestId};
use ib_link::Route;
use ib_types::{Gid, Psn, Qpn};
use ib_wire::mad::cm::connect::TransportService;
use ib_wire::mad::sa::{JoinState, PathRecord};

use super::FileId;
use super::address::Address;
use crate::errno::Errno;

/// Type of the queue pairs of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QpKind {
    Rc,
    Uc,
    Ud,
}

impl QpKind {
    /// Returns the transport service in the REQ of a connection.
    pub(super) const fn transport(self) -> TransportService {
        match self {
            Self::Uc => TransportService::UC,
            Self::Rc | Self::Ud => TransportService::RC,
        }
    }
}

/// State of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The ID has no address.
    Idle,
    /// The ID has a source address.
    Bound,
    /// The ID also has a destination address.
    AddressResolved,
    /// An SA query for the path is outstanding.
    RouteQuery,
    /// The path to the destination is known.
    RouteResolved,
    /// The ID has sent or received a connection request or SIDR request. The ID remains in this state when it is
    /// connected.
    Connecting,
    /// The ID listens.
    Listening,
}

/// Parameters of a connection that depend on the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    /// Route of the packets to the peer.
    pub(super) route: Route,
    pub(super) qpn: Qpn,
    /// First PSN of the packets to the peer.
    pub(super) psn: Psn,
    /// Maximum number of READs and atomics that the peer may have outstanding.
    pub(super) responder_resources: u8,
    /// Maximum number of READs and atomics that the local queue pair may have outstanding.
    pub(super) initiator_depth: u8,
    pub(super) retry_count: u8,
    pub(super) rnr_retry_count: u8,
    /// Code of the path MTU.
    pub(super) mtu: u8,
}

/// Object of the connection manager that an ID uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exchange {
    None,
    /// A connection.
    Connection {
        id: ConnectionId,
        /// The peer. Until the requester has received the REP, `qpn`, `psn` and `rnr_retry_count` are not valid.
        peer: Peer,
        /// True if an event has reported to the program that the connection was disconnected.
        is_disconnected: bool,
    },
    /// A request for the queue pair of a UD service.
    Resolution(SidrId),
    /// A peer's request for the queue pair of a UD service.
    Request(SidrRequestId),
}

/// An `rdma_cm` ID of the program, like a socket.
#[derive(Clone, Debug)]
pub(super) struct CmId {
    pub(super) channel: FileId,
    /// Value by which the program identifies the ID; 0 until the program has accepted a new connection.
    pub(super) uid: u64,
    pub(super) space: PortSpace,
    pub(super) kind: QpKind,
    pub(super) state: State,
    pub(super) source: Option<Address>,
    pub(super) destination: Option<Address>,
    /// True if the ID has a device: it is bound to an address of the port.
    pub(super) has_device: bool,
    pub(super) reuses_address: bool,
    pub(super) is_family_only: bool,
    pub(super) tos: Option<u8>,
    pub(super) ack_timeout: Option<u8>,
    /// GID of the destination.
    pub(super) peer_gid: Gid,
    pub(super) path: Option<PathRecord>,
    /// First PSN of the packets from the peer.
    pub(super) psn: Psn,
    pub(super) q_key: Option<u32>,
    pub(super) exchange: Exchange,
    /// The service, if the ID listens.
    pub(super) service: Option<ServiceId>,
    /// Number of further connection requests that this listener accepts into its event queue.
    pub(super) backlog: u32,
    pub(super) events_reported: u32,
}

impl CmId {
    pub(super) const fn new(
        channel: FileId,
        uid: u64,
        space: PortSpace,
        kind: QpKind,
        psn: Psn,
    ) -> Self {
        Self {
            channel,
            uid,
            space,
            kind,
            state: State::Idle,
            source: None,
            destination: None,
            has_device: false,
            reuses_address: false,
            is_family_only: false,
            tos: None,
            ack_timeout: None,
            peer_gid: Gid::ZERO,
            path: None,
            psn,
            q_key: None,
            exchange: Exchange::None,
            service: None,
            backlog: 0,
            events_reported: 0,
        }
    }

    /// Returns true if the address of the ID is an InfiniBand address. The ID's private data then has no `rdma_cm`
    /// header.
    pub(super) const fn is_ib(&self) -> bool {
        matches!(self.source, Some(Address::Ib(_)))
    }
}

/// A membership in a multicast group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) owner: u32,
    pub(super) uid: u64,
    pub(super) gid: Gid,
    pub(super) join_state: JoinState,
    /// True after the port has joined the group.
    pub(super) is_joined: bool,
    pub(super) events_reported: u32,
}

/// Largest number that an ID or a membership can have. It is the largest index in librdmacm's table of IDs.
const MOST: u32 = 0xffff;

/// Ports that are assigned to IDs which request any port: the default of the kernel's `ip_local_port_range`.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32_768..=60_999;

/// The IDs of all channels, by number.
#[derive(Default)]
pub(super) struct Ids {
    ids: BTreeMap<u32, CmId>,
    groups: BTreeMap<u32, Group>,
    last: u32,
    last_group: u32,
    ports: BTreeMap<(PortSpace, u16), BTreeSet<u32>>,
    /// Ephemeral port that the next [`Self::bind`] to port 0 tries first.
    next_port: u16,
    by_connection: BTreeMap<ConnectionId, u32>,
}

impl Ids {
    /// Adds an ID. Returns its number.
    ///
    /// # Errors
    /// Fails with `ENOMEM` if there are 65,535 IDs.
    pub(super) fn insert(&mut self, id: CmId) -> Result<u32, Errno> {
        let number = free(&self.ids, &mut self.last)?;
        self.ids.insert(number, id);
        Ok(number)
    }

    /// Returns the ID with this number, which must belong to the channel.
    ///
    /// # Errors
    /// Fails with `ENOENT` if there is no such ID, and with `EINVAL` if it belongs to another channel.
    pub(super) fn of(&mut self, channel: FileId, number: u32) -> Result<&mut CmId, Errno> {
        let id = self.ids.get_mut(&number).ok_or(Errno::NO_ENTRY)?;
        if id.channel == channel { Ok(id) } else { Err(Errno::INVALID) }
    }

    pub(super) fn get(&self, number: u32) -> Option<&CmId> {
        self.ids.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut CmId> {
        self.ids.get_mut(&number)
    }

    /// Iterates over all IDs and their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &CmId)> {
        self.ids.iter().map(|(&number, id)| (number, id))
    }

    /// Removes an ID with its port and its memberships. Returns the ID and the memberships.
    pub(super) fn remove(&mut self, number: u32) -> Option<(CmId, Vec<Group>)> {
        let id = self.ids.remove(&number)?;
        self.ports.retain(|_, users| {
            users.remove(&number);
            !users.is_empty()
        });
        if let Exchange::Connection { id, .. } = id.exchange {
            self.by_connection.remove(&id);
        }
        let groups = self.groups.extract_if(.., |_, group| group.owner == number);
        let groups = groups.map(|(_, group)| group).collect();
        Some((id, groups))
    }

    /// Sets the connection of an ID.
    pub(super) fn connect(&mut self, number: u32, connection: ConnectionId, exchange: Exchange) {
        if let Some(id) = self.ids.get_mut(&number) {
            id.exchange = exchange;
            self.by_connection.insert(connection, number);
        }
    }

    /// Returns the number of the ID that uses a connection.
    pub(super) fn by_connection(&self, connection: ConnectionId) -> Option<u32> {
        self.by_connection.get(&connection).copied()
    }

    /// Removes the connection of an ID.
    pub(super) fn forget_connection(&mut self, connection: ConnectionId) {
        if let Some(number) = self.by_connection.remove(&connection)
            && let Some(id) = self.ids.get_mut(&number)
        {
            id.exchange = Exchange::None;
        }
    }

    /// Binds an ID to a port of its address. Returns the port. Port 0 stands for any free port.
    ///
    /// # Errors
    /// Fails with `EADDRINUSE` if another ID has the address and port, and with `EADDRNOTAVAIL` if another ID has the
    /// port and one of the two addresses is a wildcard address, or if no port is free.
    pub(super) fn bind(
        &mut self,
        number: u32,
        address: &Address,
        (space, port): (PortSpace, u16),
    ) -> Result<u16, Errno> {
        let port = match port {
            0 => {
                let mut candidates = ephemeral_from(self.next_port);
                let found = candidates.find(|port| !self.ports.contains_key(&(space, *port)));
                let found = found.ok_or(Errno(libc::EADDRNOTAVAIL))?;
                self.next_port = found.wrapping_add(1);
                found
            }
            port => port,
        };
        self.check(number, address, (space, port), false)?;
        self.ports.entry((space, port)).or_default().insert(number);
        Ok(port)
    }

    /// Checks that an ID may use a port of its address. Two IDs that reuse addresses may share a port, unless
    /// `is_listening` is true or the other ID listens.
    ///
    /// # Errors
    /// Fails like [`Self::bind`].
    pub(super) fn check(
        &self,
        number: u32,
        address: &Address,
        port: (PortSpace, u16),
        is_listening: bool,
    ) -> Result<(), Errno> {
        let Some(own) = self.ids.get(&number) else { return Err(Errno::NO_ENTRY) };
        let users = self.ports.get(&port).into_iter().flatten();
        for other in users.filter(|&&user| user != number).filter_map(|user| self.ids.get(user)) {
            let Some(others) = &other.source else { continue };
            let are_apart = own.is_family_only && other.is_family_only && !address.is_alike(others);
            let is_shared = own.reuses_address
                && other.reuses_address
                && !(is_listening || other.state == State::Listening);
            if are_apart || is_shared {
                continue;
            }
            if address.is_any() || others.is_any() {
                return Err(Errno(libc::EADDRNOTAVAIL));
            }
            if address.is_same_host(others) {
                return Err(Errno(libc::EADDRINUSE));
            }
        }
        Ok(())
    }

    /// Adds a membership in a multicast group. Returns its number.
    pub(super) fn insert_group(&mut self, group: Group) -> Result<u32, Errno> {
        let number = free(&self.groups, &mut self.last_group)?;
        self.groups.insert(number, group);
        Ok(number)
    }

    pub(super) fn group_mut(&mut self, number: u32) -> Option<&mut Group> {
        self.groups.get_mut(&number)
    }

    pub(super) fn remove_group(&mut self, number: u32) -> Option<Group> {
        self.groups.remove(&number)
    }

    /// Returns true if any ID is a member of a multicast group.
    pub(super) fn has_member(&self, gid: Gid) -> bool {
        self.groups.values().any(|group| group.gid == gid)
    }
}

/// Returns the next unused number after `last`. Thus, the numbers of removed objects are not reused at once.
fn free<T>(objects: &BTreeMap<u32, T>, last: &mut u32) -> Result<u32, Errno> {
    for _ in 0..MOST {
        *last = *last % MOST + 1;
        if !objects.contains_key(last) {
            return Ok(*last);
        }
    }
    Err(Errno::NO_MEMORY)
}

/// Iterates over all ephemeral ports, starting at `first`.
fn ephemeral_from(first: u16) -> impl Iterator<Item = u16> {
    let first = if EPHEMERAL.contains(&first) { first } else { *EPHEMERAL.start() };
    (first..=*EPHEMERAL.end()).chain(*EPHEMERAL.start()..first)
}

#[cfg(test)]
mod tests;
