//! The passive side of a connection: receives REQ, sends REP, receives RTU.

use std::time::Duration;

use ib_link::Route;
use ib_types::{Instant, Qpn};
use ib_wire::mad::Mad;
use ib_wire::mad::cm::connect::TransportService;
use ib_wire::mad::cm::{CmaHeader, ReferencedMessage, RejectReason, Req, Rtu};

use super::Cm;
use crate::cma;
use crate::connection::{Connection, RemoteEnd, Role, State, is_special, message, rejection};
use crate::error::CmError;
use crate::event::{CmEvent, Failure, Requested};
use crate::id::{ConnectionId, ListenerId, ServiceId};
use crate::params::{AcceptParams, to_route};
use crate::timers::Key;

/// Code in a REP which means that alternate paths are not supported.
const FAILOVER_UNSUPPORTED: u8 = 1;

/// Listener and private data of a valid REQ.
struct CheckedReq {
    listener: ListenerId,
    cma: Option<CmaHeader>,
    private_data: Vec<u8>,
}

impl Cm {
    /// Accepts the request of a [`CmEvent::Requested`]: sends a REP.
    ///
    /// Before this call, the queue pair must be able to receive, because packets may arrive as soon
    /// as the REP is sent. The REP is retransmitted until the RTU is received or
    /// [`Cm::message_received`] is called. An alternate path in the REQ is declined.
    ///
    /// The event [`CmEvent::Established`], [`CmEvent::Rejected`] or [`CmEvent::Failed`] follows. If
    /// a DREQ arrives before the RTU, [`CmEvent::Disconnected`] follows.
    ///
    /// # Errors
    /// Fails if the state is not [`State::ReqReceived`], if a parameter is out of range, or if
    /// private data is longer than 196 bytes.
    pub fn accept(
        &mut self,
        now: Instant,
        id: ConnectionId,
        params: &AcceptParams,
    ) -> Result<(), CmError> {
        let call = "accept";
        let connection = self.lookup(call, id)?;
        let state = connection.state;
        if state != State::ReqReceived {
            return Err(CmError::WrongState { call, id, state });
        }
        let mut rep = params.to_rep()?;
        rep.local_comm_id = id.0;
        rep.remote_comm_id = connection.remote_comm_id();
        rep.local_ca_guid = self.config.ca_guid;
        let ece = self.config.ece.filter(|_| !connection.accepts_weak);
        rep.set_vendor_id(ece.map_or(0, |ece| ece.vendor_id));
        if connection.has_alternate {
            rep.failover_accepted = FAILOVER_UNSUPPORTED;
        }
        let mut mad = message(connection.transaction_id, &rep);
        mad.set_attribute_modifier(ece.map_or(0, |ece| ece.options));
        let connection = self.get_mut(id);
        connection.local_qpn = params.qpn;
        connection.peer_knows_id = true;
        self.enter(id, State::RepSent);
        self.send_awaiting(now, id, mad);
        Ok(())
    }

    /// Reports that a packet of an accepted connection was received. This establishes the connection even if the RTU is
    /// lost or late.
    ///
    /// [`CmEvent::Established`] follows, unless the connection is established already.
    ///
    /// # Errors
    /// Fails if the state is neither [`State::RepSent`] nor [`State::Established`].
    pub fn message_received(&mut self, id: ConnectionId) -> Result<(), CmError> {
        let call = "message_received";
        let state = self.lookup(call, id)?.state;
        match state {
            State::RepSent => self.establish(id, None),
            State::Established => {}
            _ => return Err(CmError::WrongState { call, id, state }),
        }
        Ok(())
    }

    pub(super) fn handle_req(&mut self, now: Instant, route: &Route, mad: &Mad) {
        let Some(req) = mad.attribute::<Req>() else { return };
        let is_alike = self.config.shares_ece(mad, req.vendor_id);
        if is_special(req.local_qpn) || is_alike && route.is_weak {
            self.counters.malformed += 1;
            return;
        }
        let known = self.connections.by_comm_id(req.local_ca_guid, req.local_comm_id);
        if let Some(connection) = known {
            let id = connection.id;
            let is_same = connection.remote.is_some_and(|remote| {
                remote.qpn == req.local_qpn && remote.starting_psn == req.starting_psn
            });
            if connection.role == Role::Passive && is_same {
                self.counters.duplicates += 1;
                self.handle_duplicate(now, route, mad, &req, id);
            } else {
                // The peer has restarted and reuses its communication ID. A REQ from another address
                // does not end the connection.
                let is_peer = connection.comes_from(route);
                self.reject_req(route, mad, &req, RejectReason::STALE_CONNECTION);
                if is_peer {
                    self.tear_down_stale(now, id);
                }
            }
            return;
        }
        if let Some(old) = self.connections.by_qpn(req.local_ca_guid, req.local_qpn) {
            let (old, is_peer) = (old.id, old.comes_from(route));
            self.reject_req(route, mad, &req, RejectReason::STALE_CONNECTION);
            if is_peer {
                self.tear_down_stale(now, old);
            }
            return;
        }
        match self.check_req(&req) {
            Ok(checked) => self.add_request(now, route, mad, &req, checked),
            Err(reason) => self.reject_req(route, mad, &req, reason),
        }
    }

    /// Checks a REQ. Returns its listener and private data, or the reason why the REQ is rejected.
    fn check_req(&self, req: &Req) -> Result<CheckedReq, RejectReason> {
        let listener = self.listeners.get(ServiceId(req.service_id));
        let listener = listener.ok_or(RejectReason::INVALID_SERVICE_ID)?;
        if !matches!(req.transport, TransportService::RC | TransportService::UC) {
            return Err(RejectReason::INVALID_TRANSPORT);
        }
        if !(1..=5).contains(&req.path_mtu.0) {
            return Err(RejectReason::INVALID_MTU);
        }
        let data = cma::decompose(listener.has_header, &req.private_data);
        let (header, private_data) = data.ok_or(RejectReason::CONSUMER)?;
        let is_full = self.connections.len() >= self.config.max_connections || self.is_congested();
        let is_half_open_full = self.connections.half_open() >= self.config.max_half_open;
        if is_full || is_half_open_full && !self.connections.can_evict() {
            Err(RejectReason::NO_RESOURCES)
        } else {
            Ok(CheckedReq { listener: listener.id, cma: header, private_data })
        }
    }

    fn add_request(
        &mut self,
        now: Instant,
        route: &Route,
        mad: &Mad,
        req: &Req,
        checked: CheckedReq,
    ) {
        let CheckedReq { listener, cma, private_data } = checked;
        if self.connections.half_open() >= self.config.max_half_open {
            self.evict_half_open(now);
        }
        let id = ConnectionId(self.free_number());
        let is_weak = !self.config.shares_ece(mad, req.vendor_id);
        let remote = RemoteEnd {
            ca_guid: req.local_ca_guid,
            comm_id: req.local_comm_id,
            qpn: req.local_qpn,
            starting_psn: req.starting_psn,
        };
        let allowed = self.config.limited_timeout(req.primary_path.local_ack_timeout);
        // `half_open_time` limits how long a connection waits for its RTU, whatever timeouts the REQ specifies.
        let most = self.config.half_open_time;
        let interval = self.config.limited_timeout(req.local_cm_response_timeout).min(most);
        let most_retries = (most.as_nanos() / interval.as_nanos().max(1)) as u64;
        let most_retries = u8::try_from(most_retries).unwrap_or(u8::MAX);
        let connection = Connection {
            id,
            role: Role::Passive,
            state: State::ReqReceived,
            serial: 0,
            route: *route,
            accepts_weak: is_weak,
            transaction_id: mad.transaction_id(),
            local_qpn: Qpn::SMI,
            remote: Some(remote),
            interval,
            retries: req.max_cm_retries.min(most_retries),
            retries_left: 0,
            is_extended: false,
            last: None,
            peer_knows_id: false,
            has_alternate: req.alternate_path != ib_wire::mad::cm::ConnectPath::zeroed(),
            time_wait: self.config.time_wait.unwrap_or(allowed),
            mra_timeout: Duration::ZERO,
        };
        self.connections.insert(connection);
        self.await_consumer(now, id);
        self.events.push_back(CmEvent::Requested(Box::new(Requested {
            id,
            listener,
            service_id: ServiceId(req.service_id),
            route: *route,
            path: Route { is_weak, ..to_route(&req.primary_path, route) },
            cma,
            private_data,
            req: *req,
        })));
    }

    /// Finds the peer address with the most connections that wait for their RTU, and ends the oldest of them.
    ///
    /// The connection has no time-wait, so that evicted connections never fill the table of connections.
    fn evict_half_open(&mut self, now: Instant) {
        let Some(connection) = self.connections.oldest_awaiting_rtu() else { return };
        let (id, route) = (connection.id, connection.route);
        let mad = connection.rej(RejectReason::NO_RESOURCES, &[], [0; 148]);
        self.counters.evicted += 1;
        self.reply_rate_limited(route, mad);
        self.end(now, id, CmEvent::Failed { id, why: Failure::Evicted });
        self.deadlines.stop(Key::Connection(id));
        self.remove_connection(id);
    }

    /// Responds to a REQ that was received again.
    fn handle_duplicate(
        &mut self,
        now: Instant,
        route: &Route,
        mad: &Mad,
        req: &Req,
        id: ConnectionId,
    ) {
        let connection = self.get_mut(id);
        match connection.state {
            State::ReqReceived => self.send_mra_again(id),
            State::RepSent => self.repeat(id),
            // The CM keeps the REJ while the peer repeats its REQ.
            State::TimeWait if connection.last.is_some() => {
                self.repeat(id);
                self.keep_response(now, Key::Connection(id));
            }
            // The connection has ended. The peer may not have received the REP, so it gets a REJ.
            State::TimeWait => self.reject_req(route, mad, req, RejectReason::CONSUMER),
            _ => {}
        }
    }

    fn reject_req(&mut self, route: &Route, mad: &Mad, req: &Req, reason: RejectReason) {
        self.counters.refused += 1;
        let rej = rejection(mad, 0, req.local_comm_id, ReferencedMessage::REQ, reason);
        self.reply_rate_limited(*route, rej);
    }

    pub(super) fn handle_rtu(&mut self, mad: &Mad) {
        let Some(rtu) = mad.attribute::<Rtu>() else { return };
        let Some(connection) = self.find(rtu.remote_comm_id, rtu.local_comm_id) else {
            self.counters.unknown += 1;
            return;
        };
        match (connection.role, connection.state) {
            (Role::Passive, State::RepSent) => {
                self.establish(connection.id, Some(rtu.private_data.to_vec()));
            }
            (Role::Passive, State::Established | State::DreqSent | State::TimeWait) => {
                self.counters.duplicates += 1;
            }
            _ => self.counters.unexpected += 1,
        }
    }

    fn establish(&mut self, id: ConnectionId, private_data: Option<Vec<u8>>) {
        self.enter(id, State::Established);
        self.get_mut(id).last = None;
        self.events.push_back(CmEvent::Established { id, private_data });
    }
}
