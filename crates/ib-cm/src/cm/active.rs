//! The active side of a connection: sends REQ, receives REP, sends RTU.

use std::time::Duration;

use ib_link::Route;
use ib_types::Instant;
use ib_wire::mad::cm::{ReferencedMessage, RejectReason, Rep, Rtu};
use ib_wire::mad::{Mad, TransactionId};

use super::Cm;
use crate::cma;
use crate::config::timeout;
use crate::connection::{Connection, RemoteEnd, Role, State, is_special, message, rejection};
use crate::error::CmError;
use crate::event::{CmEvent, Connected, Failure};
use crate::id::ConnectionId;
use crate::params::ConnectParams;
use crate::timers::{Key, Timer};

impl Cm {
    /// Connects to a peer: sends a REQ.
    ///
    /// The event [`CmEvent::Connected`], [`CmEvent::Rejected`] or [`CmEvent::Failed`] follows.
    ///
    /// # Errors
    /// Fails if a parameter is out of range, if private data is too long, or if the limit of
    /// connections is reached.
    pub fn connect(
        &mut self,
        now: Instant,
        params: &ConnectParams,
    ) -> Result<ConnectionId, CmError> {
        let mut req = params.to_req()?;
        let limit = self.config.max_connections;
        if self.connections.len() >= limit {
            return Err(CmError::Full { what: "connections", limit });
        }
        let id = ConnectionId(self.free_number());
        let retries = self.config.retries.min(15);
        let response_timeout = self.config.response_timeout.min(31);
        req.local_comm_id = id.0;
        req.local_ca_guid = self.config.ca_guid;
        req.vendor_id = self.config.ece.map_or(0, |ece| ece.vendor_id);
        req.remote_cm_response_timeout = response_timeout;
        req.local_cm_response_timeout = response_timeout;
        req.max_cm_retries = retries;
        let transaction_id = TransactionId(id.0.into());
        let allowed = timeout(params.local_ack_timeout);
        let connection = Connection {
            id,
            role: Role::Active,
            state: State::ReqSent,
            serial: 0,
            route: params.route,
            // Until the REP identifies the peer, messages whose ICRC could be checked only in part are accepted.
            accepts_weak: true,
            transaction_id,
            local_qpn: params.qpn,
            remote: None,
            interval: self.config.interval(),
            retries,
            retries_left: retries,
            is_extended: false,
            last: None,
            peer_knows_id: true,
            has_alternate: false,
            time_wait: self.config.time_wait.unwrap_or(allowed),
            mra_timeout: Duration::ZERO,
        };
        self.connections.insert(connection);
        let mut mad = message(transaction_id, &req);
        mad.set_attribute_modifier(self.config.ece.map_or(0, |ece| ece.options));
        self.send_awaiting(now, id, mad);
        Ok(id)
    }

    /// Completes a connection after [`CmEvent::Connected`], when its queue pair was programmed: sends the RTU.
    ///
    /// If the REP is received again, the CM repeats the RTU.
    ///
    /// # Errors
    /// Fails if the state is not [`State::RepReceived`], or if private data is longer than 224
    /// bytes.
    pub fn established(&mut self, id: ConnectionId, private_data: &[u8]) -> Result<(), CmError> {
        let call = "established";
        let connection = self.lookup(call, id)?;
        let state = connection.state;
        if state != State::RepReceived {
            return Err(CmError::WrongState { call, id, state });
        }
        let rtu = Rtu {
            local_comm_id: id.0,
            remote_comm_id: connection.remote_comm_id(),
            private_data: cma::compose("RTU", None, private_data)?,
        };
        let mad = message(connection.transaction_id, &rtu);
        self.enter(id, State::Established);
        self.send_cached(id, mad);
        Ok(())
    }

    pub(super) fn handle_rep(&mut self, now: Instant, route: &Route, mad: &Mad) {
        let Some(rep) = mad.attribute::<Rep>() else { return };
        let id = ConnectionId(rep.remote_comm_id);
        let Some(connection) = self.connections.get(id) else {
            self.counters.unknown += 1;
            self.reject_rep(route, mad, &rep, RejectReason::INVALID_COMM_ID);
            return;
        };
        if connection.role == Role::Passive {
            self.counters.unexpected += 1;
            return;
        }
        match (connection.state, connection.remote) {
            (State::ReqSent, _) => self.handle_first_rep(now, route, mad, &rep),
            // The CM has given up before it received a REP. It repeats its REJ, so that the peer gives up as well.
            (State::TimeWait, None) if connection.last.is_some() => {
                self.counters.duplicates += 1;
                self.repeat(id);
            }
            (State::TimeWait, None) => {
                self.counters.unexpected += 1;
                self.reject_rep(route, mad, &rep, RejectReason::INVALID_COMM_ID);
            }
            (_, Some(remote)) if remote.comm_id != rep.local_comm_id => {
                self.counters.unexpected += 1;
                self.reject_rep(route, mad, &rep, RejectReason::INVALID_COMM_INSTANCE);
            }
            (State::RepReceived, _) => {
                self.counters.duplicates += 1;
                self.send_mra_again(id);
            }
            // The REP was received again. The CM repeats the RTU or, if the consumer rejected the REP, the REJ.
            (State::Established | State::TimeWait, _) => {
                self.counters.duplicates += 1;
                self.repeat(id);
            }
            _ => self.counters.duplicates += 1,
        }
    }

    /// Handles the first REP of a connection.
    fn handle_first_rep(&mut self, now: Instant, route: &Route, mad: &Mad, rep: &Rep) {
        let id = ConnectionId(rep.remote_comm_id);
        let is_alike = self.config.shares_ece(mad, rep.vendor_id());
        if is_special(rep.local_qpn) || is_alike && route.is_weak {
            self.counters.malformed += 1;
            return;
        }
        if let Some(old) = self.connections.by_qpn(rep.local_ca_guid, rep.local_qpn) {
            let (old, is_peer) = (old.id, old.comes_from(route));
            self.reject_rep(route, mad, rep, RejectReason::STALE_CONNECTION);
            if !is_peer {
                return;
            }
            self.tear_down_stale(now, old);
            self.end(now, id, CmEvent::Failed { id, why: Failure::Stale });
            return;
        }
        let remote = RemoteEnd {
            ca_guid: rep.local_ca_guid,
            comm_id: rep.local_comm_id,
            qpn: rep.local_qpn,
            starting_psn: rep.starting_psn,
        };
        self.connections.set_remote(id, remote);
        let connection = self.get_mut(id);
        connection.last = None;
        connection.accepts_weak = !is_alike;
        let path = Route { is_weak: !is_alike, ..connection.route };
        self.enter(id, State::RepReceived);
        self.await_consumer(now, id);
        let private_data = rep.private_data.to_vec();
        self.events.push_back(CmEvent::Connected(Box::new(Connected {
            id,
            path,
            private_data,
            rep: *rep,
        })));
    }

    fn reject_rep(&mut self, route: &Route, mad: &Mad, rep: &Rep, reason: RejectReason) {
        let (local, remote) = (rep.remote_comm_id, rep.local_comm_id);
        let rej = rejection(mad, local, remote, ReferencedMessage::REP, reason);
        self.reply_rate_limited(*route, rej);
    }

    /// Starts the timer that limits the time for the consumer's response.
    pub(super) fn await_consumer(&mut self, now: Instant, id: ConnectionId) {
        let at = now + self.config.consumer_timeout;
        self.deadlines.set(Key::Connection(id), Timer::Consumer, at);
    }
}
