//! Connects, accepts, rejects and disconnects.

use ib_cm::{
    AcceptParams, CmError, CmaHeader, ConnectParams, ConnectionId, SidrParams, SidrReply,
    State as CmState,
};
use ib_device::route_of;
use ib_types::{Instant, Psn, QKey, Qpn};
use ib_wire::mad::cm::{RejectReason, SidrStatus};

use super::abi::{Accept, Connect, ConnectionParam, Notify, Reject};
use super::address::Address;
use super::attributes::UDP_Q_KEY;
use super::execute::service_of;
use super::ids::{Exchange, Peer, QpKind, State};
use super::port::CmPort;
use super::{FileId, Manager};
use crate::errno::Errno;

/// Maximum value of the retry count and of the RNR retry count.
const RETRIES: u8 = 7;

/// ACK timeout that a REQ proposes to the peer, unless the program sets one: 4.096 µs × 2^19 = 2.1 s.
const PEER_ACK_TIMEOUT: u8 = 19;

impl Manager {
    /// Sends a REQ for a connection, or a SIDR_REQ for the QPN of a UD service. An event reports the result.
    pub(super) fn connect(
        &mut self,
        channel: FileId,
        connect: &Connect,
        port: &mut impl CmPort,
        now: Instant,
    ) -> Result<(), Errno> {
        let (number, parameters) = (connect.id, &connect.parameters);
        let id = self.ids.of(channel, number)?;
        let State::RouteResolved = id.state else { return Err(Errno::INVALID) };
        let (Some(source), Some(destination), Some(path)) = (id.source, id.destination, &id.path)
        else {
            return Err(Errno::INVALID);
        };
        if parameters.valid == 0 {
            return Err(Errno::INVALID);
        }
        let cma = match (source, destination) {
            (Address::Ip(source), Address::Ip(destination)) => {
                Some(CmaHeader { source, destination: destination.ip() })
            }
            _ => None,
        };
        let service_id = service_of(&destination, id.space);
        let (route, p_key) = (route_of(path), path.p_key);
        let private_data = private_data(parameters)?;
        if id.kind == QpKind::Ud {
            let params = SidrParams { route, service_id, p_key, cma, private_data };
            let sidr = port.cm().resolve(now, &params).map_err(refused)?;
            id.exchange = Exchange::Resolution(sidr);
            id.state = State::Connecting;
            return Ok(());
        }
        let qpn = Qpn::truncated(parameters.qp_num);
        let retry_count = parameters.retry_count.min(RETRIES);
        let params = ConnectParams {
            transport: id.kind.transport(),
            path_mtu: path.mtu,
            rate: path.rate,
            p_key,
            responder_resources: parameters.responder_resources,
            initiator_depth: parameters.initiator_depth,
            retry_count,
            rnr_retry_count: parameters.rnr_retry_count.min(RETRIES),
            local_ack_timeout: id.ack_timeout.unwrap_or(PEER_ACK_TIMEOUT),
            flow_control: parameters.flow_control != 0,
            srq: parameters.srq != 0,
            cma,
            private_data,
            ..ConnectParams::new(route, service_id, qpn, id.psn)
        };
        let peer = Peer {
            route,
            qpn: Qpn::SMI,
            psn: Psn::truncated(0),
            responder_resources: parameters.responder_resources,
            initiator_depth: parameters.initiator_depth,
            retry_count,
            rnr_retry_count: 0,
            mtu: path.mtu.0,
        };
        let connection = port.cm().connect(now, &params).map_err(refused)?;
        id.state = State::Connecting;
        let exchange = Exchange::Connection { id: connection, peer, is_disconnected: false };
        self.ids.connect(number, connection, exchange);
        port.set_service(qpn, service_id.0);
        Ok(())
    }

    /// Accepts the request of a peer. If this side has sent the REQ, completes the connection.
    pub(super) fn accept(
        &mut self,
        channel: FileId,
        accept: &Accept,
        port: &mut impl CmPort,
        now: Instant,
    ) -> Result<(), Errno> {
        let parameters = &accept.parameters;
        let id = self.ids.of(channel, accept.id)?;
        if parameters.valid == 0 {
            let connection = connection_of(id.exchange)?;
            return port.cm().established(connection, b"").map_err(refused);
        }
        let qpn = Qpn::truncated(parameters.qp_num);
        let private_data = private_data(parameters)?;
        match id.exchange {
            Exchange::Request(request) => {
                let q_key = if parameters.q_key == 0 { UDP_Q_KEY } else { parameters.q_key };
                let (status, q_key) = (SidrStatus::VALID, QKey(q_key));
                let reply = SidrReply { status, qpn, q_key, private_data };
                port.cm().sidr_reply(now, request, &reply).map_err(refused)?;
                id.exchange = Exchange::None;
                id.q_key = Some(q_key.0);
            }
            exchange => {
                let params = AcceptParams {
                    responder_resources: parameters.responder_resources,
                    initiator_depth: parameters.initiator_depth,
                    rnr_retry_count: parameters.rnr_retry_count.min(RETRIES),
                    flow_control: parameters.flow_control != 0,
                    srq: parameters.srq != 0,
                    private_data,
                    ..AcceptParams::new(qpn, id.psn)
                };
                port.cm().accept(now, connection_of(exchange)?, &params).map_err(refused)?;
                if let Some(own) = &id.source {
                    port.set_service(qpn, service_of(own, id.space).0);
                }
            }
        }
        id.uid = accept.uid;
        Ok(())
    }

    pub(super) fn reject(
        &mut self,
        channel: FileId,
        reject: &Reject,
        port: &mut impl CmPort,
        now: Instant,
    ) -> Result<(), Errno> {
        /// `IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED`
        const VENDOR_OPTION: u8 = 35;
        let reason = match reject.reason {
            0 => RejectReason::CONSUMER,
            it if u16::from(it) == RejectReason::CONSUMER.0 => RejectReason::CONSUMER,
            VENDOR_OPTION => RejectReason(VENDOR_OPTION.into()),
            _ => return Err(Errno::INVALID),
        };
        let data = &reject.private_data.0[..reject.private_data_len.into()];
        let id = self.ids.of(channel, reject.id)?;
        match id.exchange {
            Exchange::Request(request) => {
                let (status, private_data) = (SidrStatus::REJECTED, data.to_vec());
                let q_key = QKey::default();
                let reply = SidrReply { status, qpn: Qpn::SMI, q_key, private_data };
                port.cm().sidr_reply(now, request, &reply).map_err(refused)?;
                id.exchange = Exchange::None;
                Ok(())
            }
            exchange => {
                let connection = connection_of(exchange)?;
                port.cm().reject(now, connection, reason, data).map_err(refused)
            }
        }
    }

    /// Disconnects an established connection. In other states, the call has no effect, because the connection has ended
    /// or will end by itself.
    pub(super) fn disconnect(
        &mut self,
        channel: FileId,
        number: u32,
        port: &mut impl CmPort,
        now: Instant,
    ) -> Result<(), Errno> {
        let connection = connection_of(self.ids.of(channel, number)?.exchange)?;
        if port.cm().state(connection) == Some(CmState::Established) {
            port.cm().disconnect(now, connection, b"").map_err(refused)?;
        }
        Ok(())
    }

    /// Handles NOTIFY: the program's queue pair has received a packet before the RTU, so the connection is established.
    pub(super) fn notify(
        &mut self,
        channel: FileId,
        notify: &Notify,
        port: &mut impl CmPort,
    ) -> Result<(), Errno> {
        /// `IB_EVENT_COMM_EST`
        const COMMUNICATION_ESTABLISHED: u32 = 4;
        let connection = connection_of(self.ids.of(channel, notify.id)?.exchange)?;
        if notify.event != COMMUNICATION_ESTABLISHED {
            return Err(Errno::INVALID);
        }
        if port.cm().state(connection) == Some(CmState::Established) {
            return Err(Errno(libc::EISCONN));
        }
        port.cm().message_received(connection).map_err(refused)
    }
}

/// Returns the connection of an ID. Fails with `EINVAL` if the ID has no connection.
fn connection_of(exchange: Exchange) -> Result<ConnectionId, Errno> {
    match exchange {
        Exchange::Connection { id, .. } => Ok(id),
        _ => Err(Errno::INVALID),
    }
}

fn private_data(parameters: &ConnectionParam) -> Result<Vec<u8>, Errno> {
    let data = parameters.private_data.0.get(..parameters.private_data_len.into());
    data.map(<[u8]>::to_vec).ok_or(Errno::INVALID)
}

/// Returns the error number for an error of the connection manager.
fn refused(error: CmError) -> Errno {
    match error {
        CmError::Full { .. } => Errno::NO_MEMORY,
        _ => Errno::INVALID,
    }
}
