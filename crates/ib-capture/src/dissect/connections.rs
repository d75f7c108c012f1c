//! What the messages of connection management tell of queue pairs.

use std::collections::BTreeMap;

use ib_types::Qpn;
use ib_wire::mad::cm::{Rep, Req};
use ib_wire::rtrs::ConnectResponse;

use super::address::Address;
use super::cm::{self, Message};
use super::rtrs::{Connection, Half, Side};

/// How many connections are remembered.
const CONNECTIONS: usize = 4096;

/// How many requests wait for their answer.
const REQUESTS: usize = 1024;

/// A queue pair at an address; the port is that of UDP at which it takes packets, 0 on InfiniBand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endpoint {
    pub(super) address: Address,
    pub(super) port: u16,
    pub(super) qpn: Qpn,
}

/// A request that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct Requested {
    qpn: Qpn,
    /// The port that it went to.
    port: u16,
    /// Which connection of RTRS it wants to be.
    rtrs: Option<u16>,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug)]
struct ConnectionEnd {
    /// The queue pair at the other end, where a request was seen.
    peer: Option<Qpn>,
    side: Side,
    /// The numbers that both ends have given the connection.
    ids: [u32; 2],
    /// The connection's place.
    connection: u64,
}

/// The connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// By who has asked, and the number that the connection has there.
    requests: Bounded<(Address, u32), Requested, REQUESTS>,
    ends: Bounded<Endpoint, ConnectionEnd, { 2 * CONNECTIONS }>,
    /// Those of RTRS.
    rtrs: Bounded<u64, Connection, CONNECTIONS>,
    next: u64,
}

impl Connections {
    /// Returns the queue pair at the other end.
    pub(super) fn peer(&self, end: &Endpoint) -> Option<Qpn> {
        self.ends.get(end)?.peer
    }

    /// Returns what packets to a queue pair of RTRS belong to.
    pub(super) fn rtrs(&mut self, end: &Endpoint) -> Option<Half<'_>> {
        let ConnectionEnd { side, connection, .. } = *self.ends.get(end)?;
        Some(Half { side, connection: self.rtrs.get_mut(&connection)? })
    }

    /// Takes what a message tells; where it comes from and goes to.
    pub(super) fn learn(&mut self, message: &Message, from: Address, to: Endpoint) {
        match message {
            Message::Req(req) => self.request(req, from, to.port),
            Message::Rep(rep) => self.reply(rep, from, to),
            _ => {}
        }
    }

    fn request(&mut self, req: &Req, from: Address, port: u16) {
        let rtrs = cm::rtrs_request(req).map(|request| request.connection);
        let requested = Requested { qpn: req.local_qpn, port, rtrs };
        self.requests.insert((from, req.local_comm_id), requested);
    }

    /// Notes both ends. The ports that they take packets at are those that request and reply have gone to.
    fn reply(&mut self, rep: &Rep, from: Address, to: Endpoint) {
        let ids = [rep.remote_comm_id, rep.local_comm_id];
        let requested = self.requests.get(&(to.address, rep.remote_comm_id)).copied();
        let response = ConnectResponse::read(&rep.private_data).ok();
        let port = requested.map_or(to.port, |requested| requested.port);
        let server = Endpoint { address: from, port, qpn: rep.local_qpn };
        let client = requested.map(|requested| Endpoint { qpn: requested.qpn, ..to });
        let connection = match self.ends.get(&server).filter(|end| end.ids == ids) {
            // It was sent again.
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

/// A map that forgets what was put in first when it is full.
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
