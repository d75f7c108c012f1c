//! Services of datagrams: which queue pair a service has; IBTA volume 1, chapter 12.11.

use std::collections::BTreeMap;

use ib_link::Route;
use ib_types::{Gid, Instant, Qpn};
use ib_wire::mad::cm::{SidrRep, SidrReq, SidrStatus};
use ib_wire::mad::{Mad, TransactionId};

use super::connection::message;
use super::timers::{Key, Timer};
use super::{
    Cm, CmError, CmEvent, ServiceId, SidrAnswer, SidrParams, SidrRequested, SidrResolved, cma,
};

/// The number of an own question: its request ID, which is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SidrId(pub(super) u32);

/// The number of a question of another side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SidrRequestId(u64);

/// The questions in flight.
#[derive(Debug, Default)]
pub(super) struct Questions {
    asked: BTreeMap<SidrId, Asked>,
    served: BTreeMap<SidrRequestId, Served>,
    by_peer: BTreeMap<Peer, SidrRequestId>,
    next: u64,
}

/// Who asks, and under which number: GID, LID and request ID.
type Peer = (Gid, u16, u32);

/// An own question.
#[derive(Debug)]
struct Asked {
    route: Route,
    mad: Mad,
    left: u8,
}

/// A question of another side.
#[derive(Debug)]
struct Served {
    peer: Peer,
    route: Route,
    transaction_id: TransactionId,
    service_id: ServiceId,
    /// The answer, once there is one.
    answer: Option<Mad>,
}

impl Questions {
    pub(super) fn len(&self) -> usize {
        self.asked.len() + self.served.len()
    }

    pub(super) fn has_asked(&self, id: SidrId) -> bool {
        self.asked.contains_key(&id)
    }
}

impl Cm {
    /// Asks a peer for the queue pair of a service.
    ///
    /// [`CmEvent::SidrResolved`] or [`CmEvent::SidrFailed`] follows, and the question is forgotten.
    ///
    /// # Errors
    /// Fails when private data is too long or there are too many questions.
    pub fn resolve(&mut self, now: Instant, params: &SidrParams) -> Result<SidrId, CmError> {
        let private_data = cma::compose("SIDR_REQ", params.cma.as_ref(), &params.private_data)?;
        let limit = self.config.max_sidr;
        if self.questions.asked.len() >= limit {
            return Err(CmError::Full { what: "questions for services", limit });
        }
        let id = SidrId(self.free_number());
        let req = SidrReq {
            request_id: id.0,
            p_key: params.p_key,
            service_id: params.service_id.0,
            private_data,
        };
        let mad = message(TransactionId(id.0.into()), &req);
        let left = self.config.retries.min(15);
        self.questions.asked.insert(id, Asked { route: params.route, mad, left });
        self.deadlines.set(Key::Asked(id), Timer::Response, now + self.config.interval());
        self.send(params.route, mad);
        Ok(id)
    }

    /// Answers a [`CmEvent::SidrRequested`]: with a queue pair when the status is
    /// [`SidrStatus::VALID`], else with why there is none. The answer is remembered for
    /// [`CmConfig::answer_time`](super::CmConfig::answer_time).
    ///
    /// # Errors
    /// Fails when the question has an answer or is forgotten, and on more than 136 bytes of private
    /// data.
    pub fn sidr_answer(
        &mut self,
        now: Instant,
        id: SidrRequestId,
        answer: &SidrAnswer,
    ) -> Result<(), CmError> {
        let private_data = cma::compose("SIDR_REP", None, &answer.private_data)?;
        let served = self.questions.served.get_mut(&id);
        let served = served.filter(|served| served.answer.is_none());
        let served = served.ok_or(CmError::UnknownQuestion { call: "sidr_answer" })?;
        let rep = SidrRep {
            request_id: served.peer.2,
            status: answer.status,
            qpn: answer.qpn,
            service_id: served.service_id.0,
            q_key: answer.q_key,
            private_data,
            ..SidrRep::zeroed()
        };
        let mad = message(served.transaction_id, &rep);
        served.answer = Some(mad);
        let route = served.route;
        self.deadlines.set(Key::Served(id), Timer::TimeWait, now + self.config.answer_time);
        self.send(route, mad);
        Ok(())
    }

    /// Refuses a [`CmEvent::SidrRequested`] without private data: [`Cm::sidr_answer`] with no queue
    /// pair.
    ///
    /// # Errors
    /// Fails when the question has an answer or is forgotten.
    pub fn sidr_reject(
        &mut self,
        now: Instant,
        id: SidrRequestId,
        status: SidrStatus,
    ) -> Result<(), CmError> {
        self.sidr_answer(now, id, &no_queue_pair(status))
    }

    pub(super) fn handle_sidr_req(&mut self, now: Instant, route: &Route, mad: &Mad) {
        let Some(req) = mad.attribute::<SidrReq>() else { return };
        let peer = (route.destination, route.dlid, req.request_id);
        let known = self.questions.by_peer.get(&peer);
        if let Some(served) = known.and_then(|id| self.questions.served.get(id)) {
            self.counters.duplicates += 1;
            if let (Some(answer), Some(&id)) = (served.answer, known) {
                let route = served.route;
                self.reply(route, answer);
                self.remember_answer(now, Key::Served(id));
            }
            return;
        }
        let service_id = ServiceId(req.service_id);
        let is_full = self.questions.served.len() >= self.config.max_sidr || self.is_congested();
        let judged = match self.listeners.get(service_id) {
            None => Err(SidrStatus::INVALID_SERVICE_ID),
            Some(_) if is_full => Err(SidrStatus::NO_QP),
            Some(listener) => cma::decompose(listener.has_header, &req.private_data)
                .map(|data| (listener.id, data))
                .ok_or(SidrStatus::REJECTED),
        };
        let (listener, (cma, private_data)) = match judged {
            Ok(judged) => judged,
            Err(status) => {
                self.counters.refused += 1;
                let (request_id, service_id) = (req.request_id, req.service_id);
                let rep = SidrRep { request_id, status, service_id, ..SidrRep::zeroed() };
                self.reply_to_anybody(*route, message(mad.transaction_id(), &rep));
                return;
            }
        };
        let id = SidrRequestId(self.questions.next);
        self.questions.next += 1;
        let transaction_id = mad.transaction_id();
        let served = Served { peer, route: *route, transaction_id, service_id, answer: None };
        self.questions.served.insert(id, served);
        self.questions.by_peer.insert(peer, id);
        let at = now + self.config.consumer_timeout;
        self.deadlines.set(Key::Served(id), Timer::Consumer, at);
        self.events.push_back(CmEvent::SidrRequested(Box::new(SidrRequested {
            id,
            listener,
            service_id,
            route: *route,
            p_key: req.p_key,
            cma,
            private_data,
        })));
    }

    pub(super) fn handle_sidr_rep(&mut self, mad: &Mad) {
        let Some(rep) = mad.attribute::<SidrRep>() else { return };
        let id = SidrId(rep.request_id);
        if self.questions.asked.remove(&id).is_none() {
            self.counters.unknown += 1;
            return;
        }
        self.deadlines.stop(Key::Asked(id));
        let length = usize::from(rep.info_length).min(rep.info.len());
        self.events.push_back(CmEvent::SidrResolved(Box::new(SidrResolved {
            id,
            status: rep.status,
            qpn: rep.qpn,
            q_key: rep.q_key,
            info: rep.info[..length].to_vec(),
            private_data: rep.private_data.to_vec(),
        })));
    }

    /// Asks again, or gives up.
    pub(super) fn handle_sidr_silence(&mut self, now: Instant, id: SidrId) {
        let Some(asked) = self.questions.asked.get_mut(&id) else { return };
        let Some(left) = asked.left.checked_sub(1) else {
            self.questions.asked.remove(&id);
            self.events.push_back(CmEvent::SidrFailed { id });
            return;
        };
        asked.left = left;
        let (route, mad) = (asked.route, asked.mad);
        self.counters.resent += 1;
        self.deadlines.set(Key::Asked(id), Timer::Response, now + self.config.interval());
        self.reply(route, mad);
    }

    /// Answers in the name of a silent consumer, or forgets what has an answer.
    pub(super) fn handle_sidr_timer(&mut self, now: Instant, id: SidrRequestId, timer: Timer) {
        if timer == Timer::Consumer {
            let answered = self.sidr_reject(now, id, SidrStatus::REJECTED);
            debug_assert!(answered.is_ok(), "a question that waits for the consumer has no answer");
        } else if let Some(served) = self.questions.served.remove(&id) {
            self.questions.by_peer.remove(&served.peer);
        }
    }
}

/// Returns the answer that a service has no queue pair.
fn no_queue_pair(status: SidrStatus) -> SidrAnswer {
    let q_key = ib_types::QKey::default();
    SidrAnswer { status, qpn: Qpn::SMI, q_key, private_data: Vec::new() }
}
