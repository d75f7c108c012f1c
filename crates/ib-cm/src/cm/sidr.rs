//! Service ID resolution (SIDR): queries the queue pair of a datagram service; IBTA volume 1, chapter 12.11.

use ib_link::Route;
use ib_types::{Instant, QKey, Qpn};
use ib_wire::mad::cm::{SidrRep, SidrReq, SidrStatus};
use ib_wire::mad::{Mad, TransactionId};

use super::Cm;
use crate::cma;
use crate::connection::message;
use crate::error::CmError;
use crate::event::{CmEvent, SidrRequested, SidrResolved};
use crate::id::{ServiceId, SidrId, SidrRequestId};
use crate::params::{SidrParams, SidrReply};
use crate::sidr_table::{ReceivedRequest, SentRequest};
use crate::timers::{Key, Timer};

impl Cm {
    /// Requests the queue pair of a service from a peer.
    ///
    /// The event [`CmEvent::SidrResolved`] or [`CmEvent::SidrFailed`] follows.
    ///
    /// # Errors
    /// Fails if private data is too long, or if the maximum number of requests is outstanding.
    pub fn resolve(&mut self, now: Instant, params: &SidrParams) -> Result<SidrId, CmError> {
        let private_data = cma::compose("SIDR_REQ", params.cma.as_ref(), &params.private_data)?;
        let limit = self.config.max_sidr;
        if self.sidr.sent.len() >= limit {
            return Err(CmError::Full { what: "SIDR requests", limit });
        }
        let id = SidrId(self.free_number());
        let req = SidrReq {
            request_id: id.0,
            p_key: params.p_key,
            service_id: params.service_id.0,
            private_data,
        };
        let mad = message(TransactionId(id.0.into()), &req);
        let retries_left = self.config.retries.min(15);
        self.sidr.sent.insert(id, SentRequest { route: params.route, mad, retries_left });
        self.deadlines.set(Key::SidrSent(id), Timer::Response, now + self.config.interval());
        self.send(params.route, mad);
        Ok(id)
    }

    /// Responds to the request of a [`CmEvent::SidrRequested`]. The response names a queue pair if
    /// its status is [`SidrStatus::VALID`].
    ///
    /// The response is cached for [`CmConfig::answer_time`](crate::CmConfig::answer_time).
    ///
    /// # Errors
    /// Fails if the request already has a response, if it was removed, or if private data is longer
    /// than 136 bytes.
    pub fn sidr_reply(
        &mut self,
        now: Instant,
        id: SidrRequestId,
        answer: &SidrReply,
    ) -> Result<(), CmError> {
        let private_data = cma::compose("SIDR_REP", None, &answer.private_data)?;
        let request = self.sidr.unanswered(id);
        let request = request.ok_or(CmError::UnknownSidrRequest { call: "sidr_reply" })?;
        let rep = SidrRep {
            request_id: request.peer.2,
            status: answer.status,
            qpn: answer.qpn,
            service_id: request.service_id.0,
            q_key: answer.q_key,
            private_data,
            ..SidrRep::zeroed()
        };
        let mad = message(request.transaction_id, &rep);
        request.response = Some(mad);
        let route = request.route;
        self.deadlines.set(Key::SidrReceived(id), Timer::TimeWait, now + self.config.answer_time);
        self.send(route, mad);
        Ok(())
    }

    /// Rejects the request of a [`CmEvent::SidrRequested`]: sends a response without queue pair and
    /// private data.
    ///
    /// # Errors
    /// Fails if the request already has a response or was removed.
    pub fn sidr_reject(
        &mut self,
        now: Instant,
        id: SidrRequestId,
        status: SidrStatus,
    ) -> Result<(), CmError> {
        self.sidr_reply(now, id, &no_queue_pair(status))
    }

    pub(super) fn handle_sidr_req(&mut self, now: Instant, route: &Route, mad: &Mad) {
        let Some(req) = mad.attribute::<SidrReq>() else { return };
        let peer = (route.destination, route.dlid, req.request_id);
        if let Some((id, request)) = self.sidr.find(&peer) {
            self.counters.duplicates += 1;
            if let Some(response) = request.response {
                let route = request.route;
                self.reply(route, response);
                self.keep_response(now, Key::SidrReceived(id));
            }
            return;
        }
        let service_id = ServiceId(req.service_id);
        let is_full = self.sidr.received() >= self.config.max_sidr || self.is_congested();
        let accepted = match self.listeners.get(service_id) {
            None => Err(SidrStatus::INVALID_SERVICE_ID),
            Some(_) if is_full => Err(SidrStatus::NO_QP),
            Some(listener) => cma::decompose(listener.has_header, &req.private_data)
                .map(|data| (listener.id, data))
                .ok_or(SidrStatus::REJECTED),
        };
        let (listener, (cma, private_data)) = match accepted {
            Ok(accepted) => accepted,
            Err(status) => {
                self.counters.refused += 1;
                let (request_id, service_id) = (req.request_id, req.service_id);
                let rep = SidrRep { request_id, status, service_id, ..SidrRep::zeroed() };
                self.reply_rate_limited(*route, message(mad.transaction_id(), &rep));
                return;
            }
        };
        let transaction_id = mad.transaction_id();
        let request =
            ReceivedRequest { peer, route: *route, transaction_id, service_id, response: None };
        let id = self.sidr.insert(request);
        let at = now + self.config.consumer_timeout;
        self.deadlines.set(Key::SidrReceived(id), Timer::Consumer, at);
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
        if self.sidr.sent.remove(&id).is_none() {
            self.counters.unknown += 1;
            return;
        }
        self.deadlines.stop(Key::SidrSent(id));
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

    /// Retransmits a `SIDR_REQ`. After the last attempt, reports that the SIDR request has failed.
    pub(super) fn handle_sidr_timeout(&mut self, now: Instant, id: SidrId) {
        let Some(request) = self.sidr.sent.get_mut(&id) else { return };
        let Some(left) = request.retries_left.checked_sub(1) else {
            self.sidr.sent.remove(&id);
            self.events.push_back(CmEvent::SidrFailed { id });
            return;
        };
        request.retries_left = left;
        let (route, mad) = (request.route, request.mad);
        self.counters.resent += 1;
        self.deadlines.set(Key::SidrSent(id), Timer::Response, now + self.config.interval());
        self.reply(route, mad);
    }

    /// Handles a timer of a SIDR request of a peer. If the consumer has not responded in time, rejects the request. If
    /// the response was cached long enough, removes the request.
    pub(super) fn handle_sidr_timer(&mut self, now: Instant, id: SidrRequestId, timer: Timer) {
        if timer == Timer::Consumer {
            let answered = self.sidr_reject(now, id, SidrStatus::REJECTED);
            debug_assert!(
                answered.is_ok(),
                "a request that waits for the consumer has no response"
            );
        } else {
            self.sidr.remove(id);
        }
    }
}

/// Returns the response for a service without a queue pair.
fn no_queue_pair(status: SidrStatus) -> SidrReply {
    let q_key = QKey::default();
    SidrReply { status, qpn: Qpn::SMI, q_key, private_data: Vec::new() }
}
