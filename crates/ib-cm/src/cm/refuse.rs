//! Refusing a message, and asking for patience: REJ and MRA.

use ib_types::{Guid, Instant};
use ib_wire::mad::Mad;
use ib_wire::mad::cm::{Mra, Refused, Rej, RejectReason};
use ib_wire::mad::sm::MtuCode;

use super::Cm;
use crate::cma;
use crate::config::timeout;
use crate::connection::{Connection, Role, State};
use crate::error::CmError;
use crate::event::{Cause, CmEvent, Failure};
use crate::id::ConnectionId;
use crate::timers::{Key, Timer};

impl Cm {
    /// Refuses a [`CmEvent::Requested`] or a [`CmEvent::Connected`].
    ///
    /// No event follows but [`CmEvent::TimeWaitExited`]. Consumers that say why in private data give
    /// [`RejectReason::CONSUMER`].
    ///
    /// # Errors
    /// Fails in any state but [`State::ReqReceived`] and [`State::RepReceived`], and on more than 148
    /// bytes of private data.
    pub fn reject(
        &mut self,
        now: Instant,
        id: ConnectionId,
        reason: RejectReason,
        private_data: &[u8],
    ) -> Result<(), CmError> {
        let connection = self.waiting_for_consumer("reject", id)?;
        let mad = connection.rej(reason, &[], cma::compose("REJ", None, private_data)?);
        self.send_remembered(id, mad);
        self.enter_time_wait(now, id);
        Ok(())
    }

    /// Refuses a [`CmEvent::Requested`] because of its path MTU: additional information has the largest one that is
    /// accepted, in the bits in which a REQ has it.
    ///
    /// # Errors
    /// Fails as [`Cm::reject`] does.
    pub fn reject_mtu(
        &mut self,
        now: Instant,
        id: ConnectionId,
        most: MtuCode,
    ) -> Result<(), CmError> {
        let connection = self.waiting_for_consumer("reject_mtu", id)?;
        let mad = connection.rej(RejectReason::INVALID_MTU, &[most.0 << 4], [0; 148]);
        self.send_remembered(id, mad);
        self.enter_time_wait(now, id);
        Ok(())
    }

    /// Asks the peer of a [`CmEvent::Requested`] or a [`CmEvent::Connected`] for patience: it shall
    /// wait 4.096 µs × 2^`service_timeout` for the answer, 0 to 31. The own limit
    /// ([`CmConfig::consumer_timeout`](crate::CmConfig::consumer_timeout)) grows to the same, as far
    /// as [`CmConfig::longest_timeout`](crate::CmConfig::longest_timeout) allows.
    ///
    /// Without this call one is sent when the message comes again before there is an answer.
    ///
    /// # Errors
    /// Fails in any state but [`State::ReqReceived`] and [`State::RepReceived`], on a time above 31
    /// and on more than 222 bytes of private data.
    pub fn mra(
        &mut self,
        now: Instant,
        id: ConnectionId,
        service_timeout: u8,
        private_data: &[u8],
    ) -> Result<(), CmError> {
        let connection = self.waiting_for_consumer("mra", id)?;
        if service_timeout > 31 {
            let (field, value) = ("the service timeout", service_timeout.into());
            return Err(CmError::OutOfRange { field, value, least: 0, most: 31 });
        }
        let mad = connection.mra(service_timeout, cma::compose("MRA", None, private_data)?);
        let patience = self.config.granted(service_timeout);
        let connection = self.get_mut(id);
        connection.is_announced = true;
        connection.patience = patience;
        self.send_remembered(id, mad);
        let (key, at) = (Key::Connection(id), now + patience);
        if self.deadlines.get(key).is_none_or(|before| before < at) {
            self.deadlines.set(key, Timer::Consumer, at);
        }
        Ok(())
    }

    fn waiting_for_consumer(
        &self,
        call: &'static str,
        id: ConnectionId,
    ) -> Result<&Connection, CmError> {
        let connection = self.lookup(call, id)?;
        match connection.state {
            State::ReqReceived | State::RepReceived => Ok(connection),
            state => Err(CmError::WrongState { call, id, state }),
        }
    }

    /// Tells a peer whose message came again that the consumer still thinks.
    pub(super) fn acknowledge_again(&mut self, id: ConnectionId) {
        let service_timeout = self.config.service_timeout.min(31);
        let patience = self.config.granted(service_timeout);
        let connection = self.get_mut(id);
        connection.is_announced = true;
        if connection.last.is_none() {
            connection.patience = patience;
            connection.last = Some(connection.mra(service_timeout, [0; 222]));
        }
        self.repeat(id);
    }

    /// Refuses in the name of a consumer that says nothing.
    pub(super) fn handle_silent_consumer(&mut self, now: Instant, id: ConnectionId) {
        let mad = self.get_mut(id).rej(RejectReason::CONSUMER, &[], [0; 148]);
        self.send_remembered(id, mad);
        self.end(now, id, CmEvent::Failed { id, why: Failure::Silent });
    }

    pub(super) fn handle_rej(&mut self, now: Instant, mad: &Mad) {
        let Some(rej) = mad.attribute::<Rej>() else { return };
        let Some(connection) = self.refused(&rej) else {
            self.counters.unknown += 1;
            return;
        };
        let (id, reason) = (connection.id, rej.reason);
        let private_data = rej.private_data.to_vec();
        match connection.state {
            State::ReqSent | State::RepReceived | State::ReqReceived | State::RepSent => {
                let length = usize::from(rej.info_length).min(rej.info.len());
                let info = rej.info[..length].to_vec();
                self.get_mut(id).last = None;
                let message = rej.message;
                self.end(now, id, CmEvent::Rejected { id, message, reason, info, private_data });
            }
            State::Established | State::DreqSent => {
                let cause = Cause::Rejected(reason);
                self.end_established(now, id, cause, private_data);
            }
            State::TimeWait => self.counters.duplicates += 1,
        }
    }

    /// Returns the connection that a REJ means.
    fn refused(&self, rej: &Rej) -> Option<&Connection> {
        // A peer that gave up before it knew the own number names its HCA instead.
        if rej.remote_comm_id == 0 && rej.reason == RejectReason::TIMEOUT && rej.info_length >= 8 {
            let guid = Guid(u64::from_be_bytes(*rej.info.first_chunk()?));
            return self.connections.by_comm_id(guid, rej.local_comm_id);
        }
        let connection = self.connections.get(ConnectionId(rej.remote_comm_id))?;
        // The number of the peer is not known before its REP, and 0 when it refuses the REQ.
        let is_meant = match connection.remote {
            None => rej.message != Refused::REP,
            Some(remote) => remote.comm_id == rej.local_comm_id,
        };
        is_meant.then_some(connection)
    }

    pub(super) fn handle_mra(&mut self, now: Instant, mad: &Mad) {
        let Some(mra) = mad.attribute::<Mra>() else { return };
        let connection = self.connections.get(ConnectionId(mra.remote_comm_id));
        let connection = connection.filter(|connection| {
            connection.remote.is_none_or(|remote| remote.comm_id == mra.local_comm_id)
        });
        let Some(connection) = connection else {
            self.counters.unknown += 1;
            return;
        };
        let id = connection.id;
        let awaited = match (connection.role, connection.state) {
            (Role::Active, State::ReqSent) => Refused::REQ,
            (Role::Passive, State::RepSent) => Refused::REP,
            _ => {
                self.counters.unexpected += 1;
                return;
            }
        };
        if mra.message != awaited {
            self.counters.unexpected += 1;
        } else if connection.is_extended {
            // One for each time that the message was sent: so the wait ends some day.
            self.counters.duplicates += 1;
        } else {
            let more = self.config.granted(mra.service_timeout);
            let at = now + more + 2 * timeout(self.config.packet_life_time);
            self.get_mut(id).is_extended = true;
            let key = Key::Connection(id);
            if self.deadlines.get(key).is_none_or(|before| before < at) {
                self.deadlines.set(key, Timer::Response, at);
            }
        }
    }
}
