//! What clients have asked and still wait for.

use std::collections::BTreeMap;

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
    /// Its place among the requests that were handed over, once it was.
    handed: Option<(u64, PortId)>,
    /// Tells requests apart that had the same place.
    pub(super) number: u32,
}

impl Sim {
    pub(super) fn remember(&mut self, client: ClientId, datagram: &Datagram) -> u32 {
        self.request_number = self.request_number.wrapping_add(1);
        let answered = expects_answer(&datagram.mad);
        let number = self.request_number;
        let request = Request { client, datagram: *datagram, answered, handed: None, number };
        self.requests.insert(request) as u32
    }

    /// Forgets what a client has asked: nobody waits for the answers any more. Packets that still
    /// carry such a request belong to nobody then.
    ///
    /// It may be very many requests, and others wait meanwhile, so everything is passed once.
    pub(super) fn forget_requests(&mut self, client: ClientId) {
        let mut forgotten = Vec::new();
        let handed = &mut self.handed;
        self.requests.retain(|key, request| {
            let keep = request.client != client;
            if !keep {
                forgotten.push(key as u32);
                leave(handed, key as u32, request);
            }
            keep
        });
        if forgotten.is_empty() {
            return;
        }
        for (_, flight) in &mut self.flights {
            // The keys of a slab come in their order.
            if flight.request.is_some_and(|key| forgotten.binary_search(&key).is_ok()) {
                flight.request = None;
            }
        }
    }

    /// Fails what the clients of a port were to answer.
    pub(super) fn fail_handed(&mut self, port: PortId) {
        let mut unanswered = Vec::new();
        self.handed.retain(|&(_, at), &mut request| {
            if at == port {
                unanswered.push(request);
            }
            at != port
        });
        for request in unanswered {
            self.fail(request);
        }
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
        leave(&mut self.handed, request, waiting);
        self.stats.lose(Loss::NoAnswer);
        self.log(Entry::Unanswered { client });
        self.fail(request);
    }

    /// Waits for the answer of the client or agent that a request was handed to.
    pub(crate) fn await_answer(&mut self, port: PortId, key: u32, transaction: u64) {
        let request = &mut self.requests[key as usize];
        if !request.answered {
            self.requests.remove(key as usize);
            return;
        }
        request.handed = Some((transaction, port));
        let number = request.number;
        if let Some(older) = self.handed.insert((transaction, port), key)
            && older != key
        {
            // The same transaction anew: whoever repeats it waits for one answer.
            self.requests.try_remove(older as usize);
        }
        let at = self.now() + self.options.answer_within;
        self.schedule(at, Event::Timer(Timer::Answer { request: key, number }));
    }
}

/// Takes a request from those that were handed over, if it is still among them.
fn leave(handed: &mut BTreeMap<(u64, PortId), u32>, key: u32, request: &Request) {
    if let Some(place) = request.handed
        && handed.get(&place) == Some(&key)
    {
        handed.remove(&place);
    }
}

/// Returns true for what keeps a message of several segments going and is no part of it.
///
/// OpenSM leaves it to the kernel to write the type of an answer, so with libumad2sim.so an answer
/// has none.
pub(super) fn is_rmpp_control(mad: &Mad) -> bool {
    let controls = [RmppType::ACK, RmppType::STOP, RmppType::ABORT];
    mad.is_rmpp() && controls.contains(&mad.rmpp().rmpp_type)
}

/// Returns true when a datagram has an answer that its sender waits for.
fn expects_answer(mad: &Mad) -> bool {
    let method = mad.method();
    let one_way = matches!(method, Method::SEND | Method::TRAP) || method.is_response();
    !one_way && !is_rmpp_control(mad)
}
