//! Outstanding requests of clients.

use std::collections::BTreeMap;

use ib_link::Datagram;
use ib_topology::PortId;
use ib_wire::mad::rmpp::RmppType;
use ib_wire::mad::{Mad, Method};
use slab::Slab;

use crate::ids::{ClientId, RequestKey};

/// An outstanding request of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) client: ClientId,
    /// The MAD as the client sent it.
    pub(super) datagram: Datagram,
    /// True if the client expects a response. Other MADs are outstanding only until they arrive.
    pub(super) answered: bool,
    /// Distinguishes this request from earlier requests that used the same index in [`Requests`].
    number: u32,
    /// Key of the request in [`Requests::assigned`]: its transaction ID, and the port of its
    /// responder. `None` before the request arrives, and after it is answered.
    assigned: Option<(u64, PortId)>,
    /// The responder: the client to which the request was assigned last; `None` for an agent.
    responder: Option<ClientId>,
}

/// All outstanding requests.
///
/// Invariant: each entry of [`Requests::assigned`] refers to an outstanding request. The key of the
/// entry is [`Request::assigned`] of this request.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    requests: Slab<Request>,
    /// Assigned requests, by transaction ID and port of the responder. A request is assigned to the
    /// responding client or agent when it arrives there, until it is answered.
    assigned: BTreeMap<(u64, PortId), RequestKey>,
    last_number: u32,
}

impl Requests {
    /// Returns the request with this key; `None` if it is no longer outstanding.
    pub(crate) fn get(&self, key: RequestKey) -> Option<&Request> {
        let request = self.requests.get(key.index as usize)?;
        (request.number == key.number).then_some(request)
    }

    /// Returns the number of outstanding requests.
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
            assigned: None,
            responder: None,
        };
        RequestKey { index: self.requests.insert(request) as u32, number: self.last_number }
    }

    /// Removes a request.
    pub(super) fn remove(&mut self, key: RequestKey) -> Option<Request> {
        self.get(key)?;
        let request = self.requests.remove(key.index as usize);
        if let Some(assigned) = request.assigned
            && self.assigned.get(&assigned) == Some(&key)
        {
            self.assigned.remove(&assigned);
        }
        Some(request)
    }

    /// Removes all requests of a client.
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

    /// Returns the requests that are assigned to a client and not answered.
    pub(super) fn assigned_to(&self, responder: ClientId) -> Vec<RequestKey> {
        let assigned = self.assigned.values().copied();
        assigned
            .filter(|&key| {
                self.get(key).is_some_and(|request| request.responder == Some(responder))
            })
            .collect()
    }

    /// Returns the earlier request that a new request with the same transaction ID and port
    /// replaces. The second value is true if both requests belong to the same message.
    ///
    /// The same client has sent both requests, because the transaction ID includes the client ID.
    ///
    /// * If their MAD headers are equal, the new request is a retry or a further segment of the same message. The
    ///   client waits for one response to the message, so the earlier request must not fail.
    /// * If their MAD headers differ, the new request is a separate message. The next response belongs to the new
    ///   request, so the earlier request can no longer be answered.
    pub(super) fn replaced_by(
        &self,
        key: RequestKey,
        transaction: u64,
        port: PortId,
    ) -> Option<(RequestKey, bool)> {
        let older = *self.assigned.get(&(transaction, port)).filter(|&&older| older != key)?;
        let header = |key| self.get(key).map(|request| &request.datagram.mad.0[..HEADER]);
        Some((older, header(older).is_some() && header(older) == header(key)))
    }

    /// Records that a request has reached the port of its responder: the client `responder`, or an
    /// agent of the port's node. The response will have the transaction ID `transaction`.
    pub(super) fn assign(
        &mut self,
        key: RequestKey,
        transaction: u64,
        port: PortId,
        responder: Option<ClientId>,
    ) {
        let assigned = (transaction, port);
        self.assigned.insert(assigned, key);
        let request = &mut self.requests[key.index as usize];
        (request.assigned, request.responder) = (Some(assigned), responder);
    }

    /// Returns the ports whose clients or agents have to respond to a request with this transaction
    /// ID.
    pub(crate) fn assigned_ports(&self, transaction: u64) -> impl Iterator<Item = PortId> {
        let all = (transaction, PortId(0))..=(transaction, PortId(u32::MAX));
        self.assigned.range(all).map(|(&(_, port), _)| port)
    }

    /// Removes the request with this transaction ID from the assigned requests of a port, because
    /// its response was sent. Returns the key of the request.
    pub(super) fn take_assigned(&mut self, transaction: u64, port: PortId) -> Option<RequestKey> {
        let key = self.assigned.remove(&(transaction, port))?;
        self.requests[key.index as usize].assigned = None;
        Some(key)
    }
}

#[cfg(test)]
impl Requests {
    /// Returns the number of requests that have reached a client or agent, and have no response
    /// yet.
    pub(crate) fn assigned_count(&self) -> usize {
        self.assigned.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().map(|(_, request)| request)
    }

    /// Checks the invariant of [`Requests`].
    pub(super) fn check(&self) {
        for (&assigned, &key) in &self.assigned {
            let request = self.get(key).expect("assigned requests are outstanding");
            assert_eq!(request.assigned, Some(assigned));
        }
    }
}

/// Length of the common MAD header in bytes: class, method, transaction ID and attribute.
const HEADER: usize = 24;

/// Returns true if the MAD is an RMPP ACK, STOP or ABORT. Such MADs contain no data of the message.
///
/// OpenSM leaves the RMPP type of a response to the kernel. With libumad2sim.so, responses
/// therefore have no RMPP type. Such responses do contain data, so the result is false for them.
pub(crate) fn is_rmpp_control(mad: &Mad) -> bool {
    let controls = [RmppType::ACK, RmppType::STOP, RmppType::ABORT];
    mad.is_rmpp() && controls.contains(&mad.rmpp().rmpp_type)
}

/// Returns true if the MAD is a request that gets a response.
fn expects_answer(mad: &Mad) -> bool {
    let method = mad.method();
    let one_way = matches!(method, Method::SEND | Method::TRAP) || method.is_response();
    !one_way && !is_rmpp_control(mad)
}
