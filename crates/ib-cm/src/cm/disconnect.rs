//! Disconnection: DREQ and DREP, time-wait, stale connections.

use ib_link::Route;
use ib_types::{Instant, Qpn};
use ib_wire::mad::Mad;
use ib_wire::mad::cm::{Apr, Drep, Dreq, Lap, RejectReason, path::AprStatus};

use super::Cm;
use crate::cma;
use crate::connection::{Connection, State, drep, message};
use crate::error::CmError;
use crate::event::{Cause, CmEvent, Failure};
use crate::id::ConnectionId;
use crate::timers::{Key, Timer};

impl Cm {
    /// Disconnects an established connection: sends a DREQ.
    ///
    /// [`CmEvent::Disconnected`] follows after the peer's response, or after the last attempt without a response.
    ///
    /// # Errors
    /// Fails if the state is not [`State::Established`], or if private data is longer than 220
    /// bytes.
    pub fn disconnect(
        &mut self,
        now: Instant,
        id: ConnectionId,
        private_data: &[u8],
    ) -> Result<(), CmError> {
        let call = "disconnect";
        let connection = self.lookup(call, id)?;
        let state = connection.state;
        if state != State::Established {
            return Err(CmError::WrongState { call, id, state });
        }
        let private_data = cma::compose("DREQ", None, private_data)?;
        let mad = dreq(connection, private_data);
        self.enter(id, State::DreqSent);
        self.send_awaiting(now, id, mad);
        Ok(())
    }

    /// Closes a connection in any state: disconnects an established connection, and rejects any other.
    ///
    /// [`CmEvent::Disconnected`] follows only if the connection was established.
    /// [`CmEvent::TimeWaitExited`] always follows.
    ///
    /// # Errors
    /// Fails if the connection does not exist.
    pub fn close(&mut self, now: Instant, id: ConnectionId) -> Result<(), CmError> {
        let connection = self.lookup("close", id)?;
        match connection.state {
            State::ReqSent => {
                let mad = connection.timeout_rej(self.config.ca_guid);
                self.send_cached(id, mad);
                self.enter_time_wait(now, id);
            }
            State::ReqReceived | State::RepReceived => {
                self.reject(now, id, RejectReason::CONSUMER, b"")?;
            }
            // The REJ is valid whether or not the peer has received the REP.
            State::RepSent => {
                let mad = connection.rej(RejectReason::CONSUMER, &[], [0; 148]);
                self.send_cached(id, mad);
                self.enter_time_wait(now, id);
            }
            State::Established => self.disconnect(now, id, b"")?,
            State::DreqSent | State::TimeWait => {}
        }
        Ok(())
    }

    pub(super) fn handle_dreq(&mut self, now: Instant, route: &Route, mad: &Mad) {
        let Some(dreq) = mad.attribute::<Dreq>() else { return };
        let Some(connection) = self.find(dreq.remote_comm_id, dreq.local_comm_id) else {
            // The connection no longer exists. The CM sends a DREP, so that the peer stops retransmitting.
            self.counters.unknown += 1;
            self.reply_rate_limited(*route, drep(mad, dreq.remote_comm_id, dreq.local_comm_id));
            return;
        };
        if connection.state == State::ReqReceived {
            self.counters.unexpected += 1;
            return;
        }
        // `local_qpn` is 0 (`Qpn::SMI`) if the consumer has not specified a local queue pair. Then nothing can be
        // compared with the QPN in the DREQ.
        if connection.local_qpn != Qpn::SMI && connection.local_qpn != dreq.remote_qpn {
            self.counters.wrong_qpn += 1;
            return;
        }
        let (id, route) = (connection.id, connection.route);
        let is_over = connection.state == State::TimeWait;
        self.reply(route, drep(mad, id.0, dreq.local_comm_id));
        if is_over {
            self.counters.duplicates += 1;
        } else {
            self.end_established(now, id, Cause::Remote, dreq.private_data.to_vec());
        }
    }

    pub(super) fn handle_drep(&mut self, now: Instant, mad: &Mad) {
        let Some(drep) = mad.attribute::<Drep>() else { return };
        let Some(connection) = self.find(drep.remote_comm_id, drep.local_comm_id) else {
            self.counters.unknown += 1;
            return;
        };
        let id = connection.id;
        match connection.state {
            State::DreqSent => {
                self.end_established(now, id, Cause::Local, drep.private_data.to_vec());
            }
            State::TimeWait => self.counters.duplicates += 1,
            _ => self.counters.unexpected += 1,
        }
    }

    /// Declines the alternate path in a LAP: sends an APR with status "not supported".
    pub(super) fn handle_lap(&mut self, mad: &Mad) {
        let Some(lap) = mad.attribute::<Lap>() else { return };
        let Some(connection) = self.find(lap.remote_comm_id, lap.local_comm_id) else {
            self.counters.unknown += 1;
            return;
        };
        if connection.state != State::Established {
            self.counters.unexpected += 1;
        } else if connection.local_qpn != lap.remote_qpn {
            self.counters.wrong_qpn += 1;
        } else {
            let apr = Apr {
                local_comm_id: connection.id.0,
                remote_comm_id: lap.local_comm_id,
                status: AprStatus::UNSUPPORTED,
                ..Apr::zeroed()
            };
            let route = connection.route;
            self.reply(route, message(mad.transaction_id(), &apr));
        }
    }

    /// Retransmits a message that has no response yet. After the last attempt, ends the connection.
    pub(super) fn handle_response_timeout(&mut self, now: Instant, id: ConnectionId) {
        let connection = self.get_mut(id);
        let interval = connection.interval;
        if let Some(left) = connection.retries_left.checked_sub(1) {
            connection.retries_left = left;
            connection.is_extended = false;
            self.counters.resent += 1;
            self.deadlines.set(Key::Connection(id), Timer::Response, now + interval);
            self.repeat(id);
        } else if connection.state == State::DreqSent {
            self.end_established(now, id, Cause::Unanswered, Vec::new());
        } else {
            let mad = self.connections.get_mut(id).timeout_rej(self.config.ca_guid);
            self.send_cached(id, mad);
            self.end(now, id, CmEvent::Failed { id, why: Failure::Unreachable });
        }
    }

    /// Ends a stale connection: the peer uses its queue pair for another connection.
    ///
    /// Sends a DREQ, but does not wait for the response.
    pub(super) fn tear_down_stale(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get(id) else { return };
        let state = connection.state;
        if state == State::TimeWait {
            return;
        }
        self.counters.stale += 1;
        if connection.local_qpn != Qpn::SMI && connection.remote.is_some() {
            let (route, mad) = (connection.route, dreq(connection, [0; 220]));
            self.reply(route, mad);
        }
        if matches!(state, State::Established | State::DreqSent) {
            self.end_established(now, id, Cause::Stale, Vec::new());
        } else {
            self.get_mut(id).last = None;
            self.end(now, id, CmEvent::Failed { id, why: Failure::Stale });
        }
    }

    pub(super) fn end_established(
        &mut self,
        now: Instant,
        id: ConnectionId,
        cause: Cause,
        private_data: Vec<u8>,
    ) {
        self.get_mut(id).last = None;
        self.end(now, id, CmEvent::Disconnected { id, cause, private_data });
    }

    /// Reports the end of a connection to the consumer, and starts time-wait.
    pub(super) fn end(&mut self, now: Instant, id: ConnectionId, event: CmEvent) {
        self.events.push_back(event);
        self.enter_time_wait(now, id);
    }

    /// Starts time-wait. Until it ends, the CM responds to repeated messages, and the queue pair must not be reused.
    pub(super) fn enter_time_wait(&mut self, now: Instant, id: ConnectionId) {
        let before = self.get_mut(id).state;
        self.enter(id, State::TimeWait);
        let answer_time = self.config.answer_time;
        let connection = self.get_mut(id);
        let mut wait = connection.time_wait;
        if matches!(before, State::ReqSent | State::ReqReceived) {
            // No packets are in flight. Time-wait only lasts as long as the peer may repeat a message.
            wait = answer_time + connection.mra_timeout;
        }
        self.deadlines.set(Key::Connection(id), Timer::TimeWait, now + wait);
    }

    /// Extends the time for which the CM caches a response, because the peer has repeated its request.
    pub(super) fn keep_response(&mut self, now: Instant, key: Key) {
        let at = now + self.config.answer_time;
        if self.deadlines.get(key).is_none_or(|before| before < at) {
            self.deadlines.set(key, Timer::TimeWait, at);
        }
    }

    pub(super) fn remove_connection(&mut self, id: ConnectionId) {
        if !self.connections.remove(id) {
            return;
        }
        self.events.push_back(CmEvent::TimeWaitExited { id });
    }
}

/// Returns a DREQ for a connection.
fn dreq(connection: &Connection, private_data: [u8; 220]) -> Mad {
    let remote = connection.remote.expect("only connections with a known peer send a DREQ");
    let dreq = Dreq {
        local_comm_id: connection.id.0,
        remote_comm_id: remote.comm_id,
        remote_qpn: remote.qpn,
        private_data,
    };
    message(connection.own_transaction(), &dreq)
}
