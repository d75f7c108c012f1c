//! REJ (reject) and MRA (message receipt acknowledgement).

use ib_types::{Guid, Instant};
use ib_wire::mad::Mad;
use ib_wire::mad::cm::{Mra, ReferencedMessage, Rej, RejectReason};
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
    /// Rejects the connection of a [`CmEvent::Requested`] or a [`CmEvent::Connected`]: sends a REJ.
    ///
    /// The only event that follows is [`CmEvent::TimeWaitExited`]. If the private data contains the reason, `reason`
    /// should be [`RejectReason::CONSUMER`].
    ///
    /// # Errors
    /// Fails if the state is neither [`State::ReqReceived`] nor [`State::RepReceived`], or if
    /// private data is longer than 148 bytes.
    pub fn reject(
        &mut self,
        now: Instant,
        id: ConnectionId,
        reason: RejectReason,
        private_data: &[u8],
    ) -> Result<(), CmError> {
        let connection = self.waiting_for_consumer("reject", id)?;
        let mad = connection.rej(reason, &[], cma::compose("REJ", None, private_data)?);
        self.send_cached(id, mad);
        self.enter_time_wait(now, id);
        Ok(())
    }

    /// Rejects the request of a [`CmEvent::Requested`] because of its path MTU.
    ///
    /// The REJ contains the largest acceptable MTU as additional information. The code of the MTU has the same bit
    /// position as in a REQ.
    ///
    /// # Errors
    /// Fails like [`Cm::reject`].
    pub fn reject_mtu(
        &mut self,
        now: Instant,
        id: ConnectionId,
        most: MtuCode,
    ) -> Result<(), CmError> {
        let connection = self.waiting_for_consumer("reject_mtu", id)?;
        let mad = connection.rej(RejectReason::INVALID_MTU, &[most.0 << 4], [0; 148]);
        self.send_cached(id, mad);
        self.enter_time_wait(now, id);
        Ok(())
    }

    /// Requests the peer of a [`CmEvent::Requested`] or a [`CmEvent::Connected`] to wait longer:
    /// sends an MRA with the timeout 4.096 µs × 2^`service_timeout`.
    ///
    /// This call also extends the consumer timeout
    /// ([`CmConfig::consumer_timeout`](crate::CmConfig::consumer_timeout)) to the timeout of the MRA, but at
    /// most to [`CmConfig::longest_timeout`](crate::CmConfig::longest_timeout).
    ///
    /// If the peer repeats its message before the consumer has responded, the CM sends an MRA even without this call.
    ///
    /// # Errors
    /// Fails if the state is neither [`State::ReqReceived`] nor [`State::RepReceived`], if
    /// `service_timeout` is above 31, or if private data is longer than 222 bytes.
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
        let mra_timeout = self.config.limited_timeout(service_timeout);
        let connection = self.get_mut(id);
        connection.peer_knows_id = true;
        connection.mra_timeout = mra_timeout;
        self.send_cached(id, mad);
        let (key, at) = (Key::Connection(id), now + mra_timeout);
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

    /// Sends an MRA to a peer that has repeated its message before the consumer has responded.
    pub(super) fn send_mra_again(&mut self, id: ConnectionId) {
        let service_timeout = self.config.service_timeout.min(31);
        let mra_timeout = self.config.limited_timeout(service_timeout);
        let connection = self.get_mut(id);
        connection.peer_knows_id = true;
        if connection.last.is_none() {
            connection.mra_timeout = mra_timeout;
            connection.last = Some(connection.mra(service_timeout, [0; 222]));
        }
        self.repeat(id);
    }

    /// Rejects a REQ or REP, because the consumer did not respond in time.
    pub(super) fn handle_consumer_timeout(&mut self, now: Instant, id: ConnectionId) {
        let mad = self.get_mut(id).rej(RejectReason::CONSUMER, &[], [0; 148]);
        self.send_cached(id, mad);
        self.end(now, id, CmEvent::Failed { id, why: Failure::Silent });
    }

    pub(super) fn handle_rej(&mut self, now: Instant, mad: &Mad) {
        let Some(rej) = mad.attribute::<Rej>() else { return };
        let Some(connection) = self.rejected_connection(&rej) else {
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

    /// Returns the connection to which a REJ belongs.
    fn rejected_connection(&self, rej: &Rej) -> Option<&Connection> {
        // A REJ with reason timeout may lack the local communication ID. It then contains the GUID of
        // the peer's HCA.
        if rej.remote_comm_id == 0 && rej.reason == RejectReason::TIMEOUT && rej.info_length >= 8 {
            let guid = Guid(u64::from_be_bytes(*rej.info.first_chunk()?));
            return self.connections.by_comm_id(guid, rej.local_comm_id);
        }
        let connection = self.connections.get(ConnectionId(rej.remote_comm_id))?;
        // `remote` is `None` on the active side until the REP arrives, so the peer's communication ID cannot be
        // compared. The active side has not sent a REP, so it ignores a REJ that refers to a REP.
        let matches = match connection.remote {
            None => rej.message != ReferencedMessage::REP,
            Some(remote) => remote.comm_id == rej.local_comm_id,
        };
        matches.then_some(connection)
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
            (Role::Active, State::ReqSent) => ReferencedMessage::REQ,
            (Role::Passive, State::RepSent) => ReferencedMessage::REP,
            _ => {
                self.counters.unexpected += 1;
                return;
            }
        };
        if mra.message != awaited {
            self.counters.unexpected += 1;
        } else if connection.is_extended {
            // The CM accepts only one MRA each time that it sends its REQ or REP. Otherwise the peer could make it wait
            // forever.
            self.counters.duplicates += 1;
        } else {
            let more = self.config.limited_timeout(mra.service_timeout);
            let at = now + more + 2 * timeout(self.config.packet_life_time);
            self.get_mut(id).is_extended = true;
            let key = Key::Connection(id);
            if self.deadlines.get(key).is_none_or(|before| before < at) {
                self.deadlines.set(key, Timer::Response, at);
            }
        }
    }
}
