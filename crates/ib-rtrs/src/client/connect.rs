//! Connecting a path. Its connections are established one after the other.

use ib_cm::{CmEvent, ConnectParams, Connected, Failure as CmFailure, accepted_mtu};
use ib_hca::Hca;
use ib_types::{Instant, Mtu};
use ib_wire::mad::cm::RejectReason;
use ib_wire::mad::sm::MtuCode;
use ib_wire::rtrs::{
    Capabilities, ConnectFlags, ConnectRequest, ConnectResponse, Extension, MAGIC, VERSION,
};

use super::path::{Attempt, Offer, PathState};
use super::session::Limits;
use super::{Client, Failure, PathId, Timer};
use crate::Errno;
use crate::connection::{self, Connection, Peer, SetupError};
use crate::connection::{Adapter, AdapterId, Adapters};

/// Capacity of the CQ of each path, in completions. It suffices for all work requests of the path.
const COMPLETIONS: u32 = 1 << 22;

impl Client {
    /// Starts to connect a path.
    pub(super) fn start_connecting(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) {
        let timeout = self.config.connect_timeout;
        let Some(path) = self.paths.get_mut(id) else { return };
        if !matches!(path.state, PathState::Waiting | PathState::Disconnected) {
            return;
        }
        path.state = PathState::Connecting;
        path.is_given_up = false;
        path.reconnects = path.reconnects.wrapping_add(1);
        self.timers.stop((id, Timer::Reconnect));
        self.timers.set((id, Timer::Connect), (), now + timeout);
        if let Err(error) = self.start_connection(now, cx, id) {
            self.fail_path(now, cx, id, error.into());
        }
    }

    /// Sends the REQ for the next connection of a path.
    fn start_connection(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: PathId,
    ) -> Result<(), SetupError> {
        let Self { paths, registrations, config, session, .. } = self;
        let Some(path) = paths.get_mut(id) else { return Ok(()) };
        let adapter = path.spec.adapter;
        let Adapter { hca, cm } = cx.get(adapter).ok_or(SetupError::NoAdapter)?;
        let cq = match path.cq {
            Some(cq) => cq,
            None => {
                let cq = hca.create_cq(COMPLETIONS.min(hca.config().max_cqe))?;
                hca.req_notify_cq(cq, false);
                path.cq = Some(cq);
                cq
            }
        };
        let qp = connection::create(hca, now, registrations.get(path.local).pd, cq)?;
        let (qpn, ..) = hca.query_qp(qp).expect("the queue pair was just created");
        let (psn, number) = (hca.random_psn(), path.connections.len() as u16);
        let is_first = path.is_first || path.was_connected || number > 0;
        let mut private_data = ConnectRequest {
            magic: MAGIC,
            version: VERSION,
            connection: number,
            connections: config.connections.clamp(1, 4096),
            reconnects: path.reconnects,
            path_uuid: path.uuid,
            session_uuid: session.uuid,
            first_connection: is_first.into(),
        }
        .to_bytes();
        let capabilities = Capabilities(0)
            .with(Capabilities::FENCE, config.fence)
            .with(Capabilities::PROOF, config.key.is_some());
        if capabilities != Capabilities(0) {
            Extension::new(capabilities).put_into_request(&mut private_data);
        }
        let params = ConnectParams {
            path_mtu: MtuCode(path.spec.mtu.code()),
            p_key: path.spec.p_key,
            local_ack_timeout: config.transport.peer_ack_timeout,
            cma: path.spec.cma,
            private_data: private_data.to_vec(),
            ..ConnectParams::new(path.spec.route, path.spec.service, qpn, psn)
        };
        let connection = match cm.connect(now, &params) {
            Ok(connection) => Connection { qp, id: connection },
            Err(error) => {
                hca.destroy_qp(qp).ok();
                return Err(error.into());
            }
        };
        hca.set_service(qp, path.spec.service.0).ok();
        path.attempt = Some(Attempt { connection, psn });
        paths.add_connection(adapter, connection.id, id);
        paths.add_cq(adapter, cq, id);
        Ok(())
    }

    /// Handles an event of the connection manager of an HCA. Returns events that do not belong to this session.
    pub(super) fn dispatch_cm(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        event: CmEvent,
    ) -> Option<CmEvent> {
        let connection = match &event {
            CmEvent::Connected(connected) => connected.id,
            CmEvent::Rejected { id, .. }
            | CmEvent::Failed { id, .. }
            | CmEvent::Disconnected { id, .. }
            | CmEvent::TimeWaitExited { id } => *id,
            _ => return Some(event),
        };
        let Some(id) = self.paths.of_connection(adapter, connection) else {
            return Some(event);
        };
        match event {
            CmEvent::Connected(connected) => {
                if let Err(why) = self.connected(now, cx, id, &connected) {
                    self.fail_path(now, cx, id, why);
                }
            }
            CmEvent::Rejected { reason, info, private_data, .. } => {
                let smaller = accepted_mtu(reason, &info)
                    .filter(|&most| self.paths.get(id).is_some_and(|path| most < path.spec.mtu));
                if let Some(most) = smaller {
                    return self.restart_with_mtu(now, cx, id, most);
                }
                self.fail_path(now, cx, id, refusal(reason, &private_data));
            }
            CmEvent::Failed { why, .. } => {
                let why = match why {
                    CmFailure::Stale => Failure::Rejected(RejectReason::STALE_CONNECTION),
                    CmFailure::Unreachable | CmFailure::Silent | CmFailure::Evicted => {
                        Failure::Unreachable
                    }
                };
                self.fail_path(now, cx, id, why);
            }
            _ => {
                self.paths.remove_connection(adapter, connection);
                self.connection_closed(now, cx, id, connection);
            }
        }
        None
    }

    /// Starts to connect a path again, with the smaller path MTU that the server supports.
    fn restart_with_mtu(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: PathId,
        most: Mtu,
    ) -> Option<CmEvent> {
        self.tear_down(now, cx, id);
        let path = self.paths.get_mut(id)?;
        path.spec.mtu = most;
        path.state = PathState::Waiting;
        self.start_connecting(now, cx, id);
        None
    }

    /// Handles the REP of a connection: changes its queue pair to RTS, and continues with the next connection or the
    /// info request.
    fn connected(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: PathId,
        connected: &Connected,
    ) -> Result<(), Failure> {
        let needs_proof = self.config.key.is_some();
        let Some(path) = self.paths.get_mut(id) else { return Ok(()) };
        let Some(attempt) = path.attempt.filter(|it| it.connection.id == connected.id) else {
            return Ok(());
        };
        let response = ConnectResponse::read(&connected.private_data)
            .map_err(|_| Failure::Protocol("a REP without an RTRS connect response"))?;
        let (adapter, number) = (path.spec.adapter, path.connections.len());
        if number == 0 {
            path.offer = Offer {
                limits: Limits::of(&response)?,
                capabilities: Extension::of_response(&connected.private_data),
                has_new_keys: response.flags.contains(ConnectFlags::NEW_KEYS),
            };
            if needs_proof && !path.offer.capabilities.contains(Capabilities::PROOF) {
                return Err(Failure::WrongKey);
            }
            self.agree(id)?;
        }
        let Adapter { hca, cm } = cx.get(adapter).ok_or(SetupError::NoAdapter)?;
        self.program(now, hca, id, attempt, connected)?;
        cm.established(connected.id, b"").map_err(SetupError::from)?;
        if number == 0 {
            let local = self.paths.get(id).map_or(0, |path| path.local);
            self.registrations.provide(hca, local, &self.slots)?;
        }
        if number + 1 < usize::from(self.config.connections.clamp(1, 4096)) {
            return Ok(self.start_connection(now, cx, id)?);
        }
        Ok(self.request_info(now, hca, id)?)
    }

    fn program(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        id: PathId,
        attempt: Attempt,
        connected: &Connected,
    ) -> Result<(), SetupError> {
        let transport = self.config.transport;
        let Some(path) = self.paths.get_mut(id) else { return Ok(()) };
        let rep = &connected.rep;
        let peer = Peer {
            route: connected.path,
            mtu: path.spec.mtu,
            p_key: path.spec.p_key,
            qpn: rep.local_qpn,
            rq_psn: attempt.psn,
            sq_psn: rep.starting_psn,
            rnr_retry: rep.rnr_retry_count,
        };
        connection::program(hca, now, attempt.connection.qp, &peer, &transport)?;
        path.attempt = None;
        path.connections.push(attempt.connection);
        Ok(())
    }

    /// Checks that the limits offered by the server match those of the session. The first offer sets the limits and
    /// allocates the slots.
    fn agree(&mut self, id: PathId) -> Result<(), Failure> {
        let Some(offered) = self.paths.get(id).map(|path| path.offer.limits) else { return Ok(()) };
        if self.session.limits().is_none() {
            self.slots.prepare(&offered).map_err(SetupError::from)?;
        }
        self.session.agree(offered)
    }
}

/// Converts a REJ into the reason why the path has failed.
fn refusal(reason: RejectReason, private_data: &[u8]) -> Failure {
    match ConnectResponse::read(private_data) {
        Ok(response) if reason == RejectReason::CONSUMER && response.error != 0 => {
            Failure::Refused(Errno(response.error.unsigned_abs()))
        }
        _ => Failure::Rejected(reason),
    }
}
