//! What clients have asked and still wait for.

use ib_link::{Datagram, Incoming};
use ib_topology::PortId;
use ib_wire::mad::rmpp::RmppType;
use ib_wire::mad::{Mad, Method};

use crate::event::{Event, Timer};
use crate::log::Entry;
use crate::loss::Loss;
use crate::sim::{ClientId, Sim};

/// What a client has asked and still waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(super) client: ClientId,
    /// What it sent, as it sent it.
    pub(super) datagram: Datagram,
    /// Whether an answer is due; what has none is done when it arrives.
    pub(super) answered: bool,
    /// Tells requests apart that had the same place.
    pub(super) number: u32,
}

impl Sim {
    pub(super) fn remember(&mut self, client: ClientId, datagram: &Datagram) -> u32 {
        self.request_number = self.request_number.wrapping_add(1);
        let answered = expects_answer(&datagram.mad);
        let number = self.request_number;
        let request = Request { client, datagram: *datagram, answered, number };
        self.requests.insert(request) as u32
    }

    /// Forgets a request: it was answered, or nobody waits for it any more. Packets that still
    /// carry it belong to nobody then.
    pub(super) fn forget(&mut self, request: u32) {
        self.requests.remove(request as usize);
        for (_, flight) in &mut self.flights {
            if flight.request == Some(request) {
                flight.request = None;
            }
        }
        self.handed.retain(|_, &mut other| other != request);
    }

    /// A client's datagram is lost, or the answer to it.
    pub(crate) fn fail(&mut self, request: u32) {
        let Some(request) = self.requests.try_remove(request as usize) else { return };
        let Some(client) = self.client_mut(request.client) else { return };
        client.lost += 1;
        if client.options.told_of_losses {
            self.give(request.client, Incoming::Lost(request.datagram));
        }
    }

    /// A client did not answer in time.
    pub(crate) fn no_answer(&mut self, request: u32, number: u32) {
        let Some(waiting) = self.requests.get(request as usize) else { return };
        if waiting.number != number {
            return;
        }
        let client = waiting.client;
        self.handed.retain(|_, &mut other| other != request);
        self.stats.lose(Loss::NoAnswer);
        self.log(Entry::Unanswered { client });
        self.fail(request);
    }

    /// Waits for the answer of the client or agent that a request was handed to.
    pub(crate) fn await_answer(&mut self, port: PortId, key: u32, transaction: u64) {
        let request = &self.requests[key as usize];
        if !request.answered {
            self.requests.remove(key as usize);
            return;
        }
        let number = request.number;
        if let Some(older) = self.handed.insert((transaction, port), key)
            && older != key
        {
            // The place is that of a client's 48 bits of a transaction, so both are of one client. A
            // retry, and the next segment of a message, have the header of the first: their sender
            // waits for one answer, finds it by the transaction, and would take a failure of the
            // older one for one of the new. Any other request that comes to the same place is one
            // that its owner waits for on its own, and nobody can answer it any more.
            let repeated = self.requests.get(older as usize).is_some_and(|before| {
                let now = &self.requests[key as usize];
                before.datagram.mad.0[..HEADER] == now.datagram.mad.0[..HEADER]
            });
            if repeated {
                self.requests.try_remove(older as usize);
            } else {
                self.fail(older);
            }
        }
        let at = self.now() + self.options.answer_within;
        self.schedule(at, Event::Timer(Timer::Answer { request: key, number }));
    }
}

/// The length of the header that all datagrams have: class, method, transaction, attribute.
const HEADER: usize = 24;

/// Returns true for what keeps a message of several segments going and is no part of it.
pub(super) fn is_rmpp_control(mad: &Mad) -> bool {
    mad.is_rmpp() && mad.rmpp().rmpp_type != RmppType::DATA
}

/// Returns true when a datagram has an answer that its sender waits for.
fn expects_answer(mad: &Mad) -> bool {
    let method = mad.method();
    let one_way = matches!(method, Method::SEND | Method::TRAP) || method.is_response();
    !one_way && !is_rmpp_control(mad)
}
