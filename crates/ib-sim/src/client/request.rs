//! What clients have asked and still wait for.

use std::collections::BTreeMap;

use ib_link::Datagram;
use ib_topology::PortId;
use ib_wire::mad::rmpp::RmppType;
use ib_wire::mad::{Mad, Method};
use slab::Slab;

use crate::ids::{ClientId, RequestKey};

/// What a client has asked and still waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) client: ClientId,
    /// What it sent, as it sent it.
    pub(super) datagram: Datagram,
    /// Whether an answer is due; what has none is done when it arrives.
    pub(super) answered: bool,
    /// Tells requests apart that had the same index.
    number: u32,
    /// The transaction and the port under which somebody was handed it to answer.
    handed: Option<(u64, PortId)>,
    /// The client that was handed it last; `None` for an agent.
    taker: Option<ClientId>,
}

/// All requests that clients wait for.
///
/// Each entry of `handed` names a request that is there and that names the entry.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    requests: Slab<Request>,
    /// The requests that clients and agents were handed to answer, by the transaction under which
    /// they were and the port at which.
    handed: BTreeMap<(u64, PortId), RequestKey>,
    last_number: u32,
}

impl Requests {
    /// Returns a request that is still waited for.
    pub(crate) fn get(&self, key: RequestKey) -> Option<&Request> {
        let request = self.requests.get(key.index as usize)?;
        (request.number == key.number).then_some(request)
    }

    /// Returns the number of requests.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Adds a request of a client.
    pub(super) fn add(&mut self, client: ClientId, datagram: &Datagram) -> RequestKey {
        self.last_number = self.last_number.wrapping_add(1);
        let request = Request {
            client,
            datagram: *datagram,
            answered: expects_answer(&datagram.mad),
            number: self.last_number,
            handed: None,
            taker: None,
        };
        RequestKey { index: self.requests.insert(request) as u32, number: self.last_number }
    }

    /// Removes a request.
    pub(super) fn remove(&mut self, key: RequestKey) -> Option<Request> {
        self.get(key)?;
        let request = self.requests.remove(key.index as usize);
        if let Some(handed) = request.handed
            && self.handed.get(&handed) == Some(&key)
        {
            self.handed.remove(&handed);
        }
        Some(request)
    }

    /// Removes the requests of a client.
    pub(super) fn cancel_of(&mut self, client: ClientId) {
        let own = self.requests.iter().filter(|(_, request)| request.client == client);
        let key = |(index, request): (usize, &Request)| RequestKey {
            index: index as u32,
            number: request.number,
        };
        for key in own.map(key).collect::<Vec<_>>() {
            self.remove(key);
        }
    }

    /// Returns the requests that a client was handed and has not answered.
    pub(super) fn handed_to(&self, taker: ClientId) -> Vec<RequestKey> {
        let handed = self.handed.values().copied();
        handed
            .filter(|&key| self.get(key).is_some_and(|request| request.taker == Some(taker)))
            .collect()
    }

    /// Returns the request that was handed out as a transaction at a port and gives way to another one,
    /// and whether that one repeats it.
    ///
    /// The transaction is a client's 48 bits, so both are of one client. A retry, and the next segment of
    /// a message, have the header of the first: their sender waits for one answer, finds it by the
    /// transaction, and would take a failure of the older one for one of the new. Any other request that
    /// is handed out as the same transaction is one that its owner waits for on its own, and nobody can
    /// answer the older one any more.
    pub(super) fn replaced_by(
        &self,
        key: RequestKey,
        transaction: u64,
        port: PortId,
    ) -> Option<(RequestKey, bool)> {
        let older = *self.handed.get(&(transaction, port)).filter(|&&older| older != key)?;
        let header = |key| self.get(key).map(|request| &request.datagram.mad.0[..HEADER]);
        Some((older, header(older).is_some() && header(older) == header(key)))
    }

    /// Takes note that a request was handed out as a transaction at a port.
    pub(super) fn hand_out(
        &mut self,
        key: RequestKey,
        transaction: u64,
        port: PortId,
        taker: Option<ClientId>,
    ) {
        let handed = (transaction, port);
        self.handed.insert(handed, key);
        let request = &mut self.requests[key.index as usize];
        (request.handed, request.taker) = (Some(handed), taker);
    }

    /// Returns the ports at which a request was handed out as a transaction.
    pub(crate) fn ports_handed(&self, transaction: u64) -> impl Iterator<Item = PortId> {
        let all = (transaction, PortId(0))..=(transaction, PortId(u32::MAX));
        self.handed.range(all).map(|(&(_, port), _)| port)
    }

    /// Takes the request that was handed out as a transaction at a port: its answer is on its way.
    pub(super) fn take_handed(&mut self, transaction: u64, port: PortId) -> Option<RequestKey> {
        let key = self.handed.remove(&(transaction, port))?;
        self.requests[key.index as usize].handed = None;
        Some(key)
    }
}

#[cfg(test)]
impl Requests {
    /// Returns how many requests were handed out and wait for their answer.
    pub(crate) fn handed_out(&self) -> usize {
        self.handed.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().map(|(_, request)| request)
    }

    /// Checks that each request that was handed out is there and says so.
    pub(super) fn check(&self) {
        for (&handed, &key) in &self.handed {
            let request = self.get(key).expect("a request that was handed out is there");
            assert_eq!(request.handed, Some(handed));
        }
    }
}

/// The length of the header that all datagrams have: class, method, transaction, attribute.
const HEADER: usize = 24;

/// Returns true for what keeps a message of several segments going and is no part of it.
///
/// OpenSM leaves it to the kernel to write the type of an answer, so with libumad2sim.so an answer
/// has none.
pub(crate) fn is_rmpp_control(mad: &Mad) -> bool {
    let controls = [RmppType::ACK, RmppType::STOP, RmppType::ABORT];
    mad.is_rmpp() && controls.contains(&mad.rmpp().rmpp_type)
}

/// Returns true when a datagram has an answer that its sender waits for.
fn expects_answer(mad: &Mad) -> bool {
    let method = mad.method();
    let one_way = matches!(method, Method::SEND | Method::TRAP) || method.is_response();
    !one_way && !is_rmpp_control(mad)
}
