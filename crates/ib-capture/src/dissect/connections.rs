//! Connections of queue pairs, learnt from CM messages, and the addresses of their ends.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use ib_types::Qpn;
use ib_wire::mad::cm::{Rep, Req};
use ib_wire::rtrs::ConnectResponse;

use crate::dissect::cm;
use crate::dissect::cm::Message;
use crate::dissect::rtrs::{Connection, ConnectionSide, Side};

/// Maximum number of stored connections.
const CONNECTIONS: usize = 4096;

/// Maximum number of stored REQs whose reply was not captured yet.
const REQUESTS: usize = 1024;

/// A queue pair with the address and UDP port that it receives packets at. `port` is 0 on
/// InfiniBand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endpoint {
    pub(super) address: Address,
    pub(super) port: u16,
    pub(super) qpn: Qpn,
}

/// A REQ whose reply was not captured yet.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    qpn: Qpn,
    /// Destination UDP port of the REQ.
    port: u16,
    /// Number of the connection within its RTRS path; `None` if the REQ has no RTRS connect request.
    rtrs: Option<u16>,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug)]
struct ConnectionEnd {
    /// Queue pair of the peer, if the REQ was captured.
    peer: Option<Qpn>,
    side: Side,
    /// Communication IDs of the client and of the server.
    ids: [u32; 2],
    /// Number that the dissector gives to the connection: its key in `Connections::rtrs`.
    connection: u64,
}

/// Connections whose CM messages were captured.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// REQs by address and local communication ID of the requester.
    requests: Bounded<(Address, u32), PendingRequest, REQUESTS>,
    ends: Bounded<Endpoint, ConnectionEnd, { 2 * CONNECTIONS }>,
    /// RTRS connections by [`ConnectionEnd::connection`].
    rtrs: Bounded<u64, Connection, CONNECTIONS>,
    next: u64,
}

impl Connections {
    /// Returns the number of the queue pair to which this queue pair is connected.
    pub(super) fn peer(&self, end: &Endpoint) -> Option<Qpn> {
        self.ends.get(end)?.peer
    }

    /// Returns the RTRS state for packets to this queue pair; `None` if the connection of the queue
    /// pair does not use RTRS.
    pub(super) fn rtrs(&mut self, end: &Endpoint) -> Option<ConnectionSide<'_>> {
        let ConnectionEnd { side, connection, .. } = *self.ends.get(end)?;
        Some(ConnectionSide { side, connection: self.rtrs.get_mut(&connection)? })
    }

    /// Stores the connection data of a REQ or REP from `from` to `to`. Ignores other CM messages.
    pub(super) fn process(&mut self, message: &Message, from: Address, to: Endpoint) {
        match message {
            Message::Req(req) => self.request(req, from, to.port),
            Message::Rep(rep) => self.reply(rep, from, to),
            _ => {}
        }
    }

    fn request(&mut self, req: &Req, from: Address, port: u16) {
        let rtrs = cm::rtrs_request(req).map(|request| request.connection);
        let requested = PendingRequest { qpn: req.local_qpn, port, rtrs };
        self.requests.insert((from, req.local_comm_id), requested);
    }

    /// Stores both ends of a connection. The server's UDP port is the REQ's destination port, the client's UDP port is
    /// the REP's destination port.
    fn reply(&mut self, rep: &Rep, from: Address, to: Endpoint) {
        let ids = [rep.remote_comm_id, rep.local_comm_id];
        let requested = self.requests.get(&(to.address, rep.remote_comm_id)).copied();
        let response = ConnectResponse::read(&rep.private_data).ok();
        let port = requested.map_or(to.port, |requested| requested.port);
        let server = Endpoint { address: from, port, qpn: rep.local_qpn };
        let client = requested.map(|requested| Endpoint { qpn: requested.qpn, ..to });
        let connection = match self.ends.get(&server).filter(|end| end.ids == ids) {
            // The REP is a retransmission.
            Some(end) => end.connection,
            None => {
                self.next += 1;
                let is_rtrs = requested.is_none_or(|requested| requested.rtrs.is_some());
                if let Some(response) = response.filter(|_| is_rtrs) {
                    let number = requested.and_then(|requested| requested.rtrs);
                    self.rtrs.insert(self.next, Connection::new(number, &response));
                }
                self.next
            }
        };
        let peer = client.map(|client| client.qpn);
        self.ends.insert(server, ConnectionEnd { peer, side: Side::Server, ids, connection });
        if let Some(client) = client {
            let peer = Some(rep.local_qpn);
            self.ends.insert(client, ConnectionEnd { peer, side: Side::Client, ids, connection });
        }
    }
}

/// A map of limited size. If it is full, the oldest entry is dropped.
#[derive(Debug)]
struct Bounded<K, V, const MOST: usize> {
    values: BTreeMap<K, (u64, V)>,
    ages: BTreeMap<u64, K>,
    next: u64,
}

impl<K, V, const MOST: usize> Default for Bounded<K, V, MOST> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), ages: BTreeMap::new(), next: 0 }
    }
}

impl<K: Ord + Copy, V, const MOST: usize> Bounded<K, V, MOST> {
    fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key).map(|(_, value)| value)
    }

    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.values.get_mut(key).map(|(_, value)| value)
    }

    fn insert(&mut self, key: K, value: V) {
        let age = self.next;
        self.next += 1;
        if let Some((before, _)) = self.values.insert(key, (age, value)) {
            self.ages.remove(&before);
        }
        self.ages.insert(age, key);
        if self.values.len() > MOST
            && let Some((_, oldest)) = self.ages.pop_first()
        {
            self.values.remove(&oldest);
        }
    }
}

/// Source or destination address of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An IP address.
    Ip(IpAddr),
    /// A LID.
    Lid(u16),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => write!(f, "{address}"),
            Self::Lid(lid) => write!(f, "lid {lid}"),
        }
    }
}
