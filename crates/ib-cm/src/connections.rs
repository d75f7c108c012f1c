//! The table of connections, with its indices.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ib_types::{Guid, Qpn};

use crate::connection::{Address, Connection, RemoteEnd, State};
use crate::id::ConnectionId;

/// The connections of a CM.
#[derive(Debug, Default)]
pub(crate) struct ConnectionTable {
    connections: BTreeMap<ConnectionId, Box<Connection>>,
    /// Connections by the HCA and communication ID of the peer.
    by_comm_id: BTreeMap<(Guid, u32), ConnectionId>,
    /// Connections by the HCA and queue pair of the peer. Connections in time-wait are not included.
    by_qpn: BTreeMap<(Guid, Qpn), ConnectionId>,
    half_open: usize,
    /// Connections that wait for their RTU, sorted by the address of the peer and the serial number.
    awaiting_rtu: BTreeMap<(Address, u64), ConnectionId>,
    last_serial: u64,
}

impl ConnectionTable {
    /// Returns the number of connections, including those in time-wait.
    pub(crate) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Returns the number of half-open connections: peers have requested them, and they are not established yet.
    pub(crate) const fn half_open(&self) -> usize {
        self.half_open
    }

    /// Adds a connection, and assigns its serial number.
    pub(crate) fn insert(&mut self, mut connection: Connection) {
        self.last_serial += 1;
        connection.serial = self.last_serial;
        let (id, remote) = (connection.id, connection.remote);
        self.half_open += usize::from(connection.state.is_half_open());
        self.connections.insert(id, Box::new(connection));
        if let Some(remote) = remote {
            self.set_remote(id, remote);
        }
    }

    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(&id).map(|connection| &**connection)
    }

    /// Returns the connection with this ID.
    ///
    /// # Panics
    /// Panics if there is no such connection.
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> &mut Connection {
        self.connections.get_mut(&id).expect("the connection was looked up before")
    }

    /// Returns the connection with this HCA and communication ID of the peer.
    pub(crate) fn by_comm_id(&self, ca_guid: Guid, comm_id: u32) -> Option<&Connection> {
        self.get(*self.by_comm_id.get(&(ca_guid, comm_id))?)
    }

    /// Returns the connection with this HCA and queue pair of the peer, unless the connection is in time-wait.
    pub(crate) fn by_qpn(&self, ca_guid: Guid, qpn: Qpn) -> Option<&Connection> {
        self.get(*self.by_qpn.get(&(ca_guid, qpn))?)
    }

    /// Sets the peer of a connection.
    pub(crate) fn set_remote(&mut self, id: ConnectionId, remote: RemoteEnd) {
        self.get_mut(id).remote = Some(remote);
        self.by_comm_id.insert((remote.ca_guid, remote.comm_id), id);
        self.by_qpn.insert((remote.ca_guid, remote.qpn), id);
    }

    /// Sets the state of a connection. In time-wait, the connection is no longer found by the peer's queue pair,
    /// because the peer may use the queue pair for another connection.
    pub(crate) fn enter(&mut self, id: ConnectionId, state: State) {
        let connection = self.get_mut(id);
        let before = std::mem::replace(&mut connection.state, state);
        let (remote, key) =
            (connection.remote, (Address::of(&connection.route), connection.serial));
        if state == State::RepSent {
            self.awaiting_rtu.insert(key, id);
        } else if before == State::RepSent {
            self.awaiting_rtu.remove(&key);
        }
        self.half_open += usize::from(state.is_half_open());
        self.half_open -= usize::from(before.is_half_open());
        if let Some(remote) = remote.filter(|_| state == State::TimeWait) {
            remove_if(&mut self.by_qpn, &(remote.ca_guid, remote.qpn), id);
        }
    }

    /// Removes a connection in time-wait; returns true if there was one.
    pub(crate) fn remove(&mut self, id: ConnectionId) -> bool {
        let Some(connection) = self.connections.remove(&id) else { return false };
        if let Some(remote) = connection.remote {
            remove_if(&mut self.by_comm_id, &(remote.ca_guid, remote.comm_id), id);
        }
        true
    }

    /// Returns true if all indices are empty.
    #[cfg(test)]
    pub(crate) fn has_empty_indices(&self) -> bool {
        self.by_comm_id.is_empty() && self.by_qpn.is_empty() && self.awaiting_rtu.is_empty()
    }

    /// Returns the connections that wait for their RTU, with their serial numbers.
    #[cfg(test)]
    pub(crate) fn awaiting_rtu(&self) -> impl Iterator<Item = (u64, ConnectionId)> {
        self.awaiting_rtu.iter().map(|(&(_, serial), &id)| (serial, id))
    }

    /// Returns true if a connection waits for its RTU.
    pub(crate) fn can_evict(&self) -> bool {
        !self.awaiting_rtu.is_empty()
    }

    /// Among the connections that wait for their RTU, selects the address with the most of them. Returns the oldest one
    /// of this address.
    pub(crate) fn oldest_awaiting_rtu(&self) -> Option<&Connection> {
        let mut most: Option<(usize, Reverse<u64>, ConnectionId)> = None;
        let mut rest = self.awaiting_rtu.iter().peekable();
        while let Some((&(address, oldest), &id)) = rest.next() {
            let mut count = 1;
            while rest.next_if(|((next, _), _)| *next == address).is_some() {
                count += 1;
            }
            most = most.max(Some((count, Reverse(oldest), id)));
        }
        self.get(most?.2)
    }
}

/// Removes the entry with this key from an index, if it refers to the given connection.
fn remove_if<K: Ord>(index: &mut BTreeMap<K, ConnectionId>, key: &K, id: ConnectionId) {
    if index.get(key) == Some(&id) {
        index.remove(key);
    }
}
