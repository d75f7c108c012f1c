//! What clients have asked and still wait for.

use ib_link::{Datagram, Incoming};
use ib_topology::PortId;
use ib_wire::mad::rmpp::RmppType;
use ib_wire::mad::{Mad, Method};

use crate::event::{Event, Timer};
use crate::log::Entry;
use crate::loss::Loss;
use crate::sim::{ClientId, Sim};

/// How many datagrams a client may wait for at once.
const MOST_WAITING: u32 = 65_536;

/// A request among the others: its place, and its number, since places are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestKey {
    place: u32,
    number: u32,
}

/// What a client has asked and still waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(super) client: ClientId,
    /// What it sent, as it sent it.
    pub(super) datagram: Datagram,
    /// Whether an answer is due; what has none is done when it arrives.
    pub(super) answered: bool,
    /// Tells requests apart that had the same place.
    number: u32,
    /// The transaction and the port under which somebody was handed it to answer.
    handed: Option<(u64, PortId)>,
    /// The client that was handed it last; `None` for an agent.
    taker: Option<ClientId>,
}

impl Sim {
    /// Returns a request that is still waited for.
    pub(crate) fn request(&self, key: RequestKey) -> Option<&Request> {
        let request = self.requests.get(key.place as usize)?;
        (request.number == key.number).then_some(request)
    }

    /// Takes a request off those that are waited for: it was answered, has failed, or nobody waits
    /// for it any more. Packets that still carry its key belong to nobody then.
    pub(crate) fn take_request(&mut self, key: RequestKey) -> Option<Request> {
        self.request(key)?;
        let request = self.requests.remove(key.place as usize);
        if let Some(handed) = request.handed
            && self.handed.get(&handed) == Some(&key)
        {
            self.handed.remove(&handed);
        }
        if let Some(client) = self.client_mut(request.client) {
            client.waiting -= 1;
        }
        Some(request)
    }

    /// Remembers what a client asks; `None` when it waits for too much already.
    pub(super) fn remember(&mut self, client: ClientId, datagram: &Datagram) -> Option<RequestKey> {
        let state = self.client_mut(client)?;
        if state.waiting >= MOST_WAITING {
            return None;
        }
        state.waiting += 1;
        self.request_number = self.request_number.wrapping_add(1);
        let answered = expects_answer(&datagram.mad);
        let number = self.request_number;
        let datagram = *datagram;
        let request = Request { client, datagram, answered, number, handed: None, taker: None };
        Some(RequestKey { place: self.requests.insert(request) as u32, number })
    }

    /// Returns the keys of the requests that a client waits for.
    pub(super) fn requests_of(&self, client: ClientId) -> Vec<RequestKey> {
        let own = self.requests.iter().filter(|(_, request)| request.client == client);
        own.map(|(place, request)| RequestKey { place: place as u32, number: request.number })
            .collect()
    }

    /// A client's datagram is lost, or the answer to it.
    pub(crate) fn fail(&mut self, key: RequestKey) {
        if let Some(request) = self.take_request(key) {
            self.tell_of_loss(request.client, request.datagram);
        }
    }

    /// Counts a client's datagram as lost, and tells the client if it wants to be told.
    pub(super) fn tell_of_loss(&mut self, id: ClientId, datagram: Datagram) {
        let Some(client) = self.client_mut(id) else { return };
        client.lost += 1;
        if client.options.told_of_losses {
            self.give(id, Incoming::Lost(datagram));
        }
    }

    /// A client did not answer in time.
    pub(crate) fn no_answer(&mut self, key: RequestKey) {
        let Some(waiting) = self.request(key) else { return };
        let client = waiting.client;
        self.stats.lose(Loss::NoAnswer);
        self.log(Entry::Unanswered { client });
        self.fail(key);
    }

    /// Waits for the answer of the client that a request was handed to, or of an agent.
    pub(crate) fn await_answer(
        &mut self,
        taker: Option<ClientId>,
        port: PortId,
        key: RequestKey,
        transaction: u64,
    ) {
        let Some(request) = self.request(key) else { return };
        if !request.answered {
            self.take_request(key);
            return;
        }
        let handed = (transaction, port);
        if let Some(&older) = self.handed.get(&handed)
            && older != key
        {
            // The place is that of a client's 48 bits of a transaction, so both are of one client. A
            // retry, and the next segment of a message, have the header of the first: their sender
            // waits for one answer, finds it by the transaction, and would take a failure of the
            // older one for one of the new. Any other request that comes to the same place is one
            // that its owner waits for on its own, and nobody can answer it any more.
            let now = request.datagram.mad;
            let repeated = self
                .request(older)
                .is_some_and(|before| before.datagram.mad.0[..HEADER] == now.0[..HEADER]);
            if repeated {
                self.take_request(older);
            } else {
                self.fail(older);
            }
        }
        self.handed.insert(handed, key);
        let request = &mut self.requests[key.place as usize];
        (request.handed, request.taker) = (Some(handed), taker);
        let at = self.now() + self.options.answer_within;
        self.schedule(at, Event::Timer(Timer::Answer { request: key }));
    }

    /// Fails the requests that a client was handed and has not answered.
    pub(super) fn fail_handed_to(&mut self, taker: ClientId) {
        let handed = self.handed.values().copied();
        let unanswered: Vec<RequestKey> = handed
            .filter(|&key| self.request(key).is_some_and(|request| request.taker == Some(taker)))
            .collect();
        for request in unanswered {
            self.fail(request);
        }
    }

    /// Takes the request that was handed out as a transaction at a port.
    pub(crate) fn take_handed(&mut self, transaction: u64, port: PortId) -> Option<RequestKey> {
        let key = self.handed.remove(&(transaction, port))?;
        self.requests[key.place as usize].handed = None;
        Some(key)
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
