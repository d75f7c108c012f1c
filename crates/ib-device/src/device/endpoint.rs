//! Queue pairs that the connection manager joins, as `rdma_cm` does it.

use std::net::SocketAddr;
use std::time::Duration;

use ib_cm::{
    AcceptParams, CmError, CmEvent, CmaHeader, ConnectParams, ConnectionId, PortSpace, Requested,
    ServiceId, accepted_mtu,
};
use ib_hca::{AccessFlags, ModifyError, QpAttr, QpConnection, QpId, QpState};
use ib_link::Route;
use ib_types::{Instant, Mtu, PKey, Psn, Qpn};
use ib_wire::mad::cm::RejectReason;
use ib_wire::mad::sm::MtuCode;

use super::{Device, DeviceEvent, Path, PathError, Wire, address_of, gid_of};
use ib_os::clock;

/// How a connection is made.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// READs and atomics of the other side that are served at once.
    pub responder_resources: u8,
    /// READs and atomics that are in flight at once.
    pub initiator_depth: u8,
    /// What the other side may do with the own memory.
    pub access: AccessFlags,
    /// The largest packets, when they are to be smaller than what both networks carry.
    pub mtu: Option<Mtu>,
    /// The time until packets are sent again: 4.096 µs × 2^value.
    pub ack_timeout: u8,
    /// The same of the other end, which a request says: Linux 6.1 takes harm when it is too short.
    pub peer_ack_timeout: u8,
    /// What is said to the other side, at most 56 bytes in a request and 196 in an answer.
    pub private_data: Vec<u8>,
    /// How long a connection may take to be made.
    pub patience: Duration,
}

impl Default for EndpointOptions {
    /// 16 READs each way, all that a remote side may do, an ACK timeout of 67 ms, of 2.1 s for the
    /// other end, and 10 s to connect.
    fn default() -> Self {
        Self {
            responder_resources: 16,
            initiator_depth: 16,
            access: AccessFlags::ALL,
            mtu: None,
            ack_timeout: 14,
            peer_ack_timeout: 19,
            private_data: Vec::new(),
            patience: Duration::from_secs(10),
        }
    }
}

/// A queue pair that is connected.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The queue pair.
    pub qp: QpId,
    /// Its connection.
    pub connection: ConnectionId,
    /// The other end.
    pub peer: SocketAddr,
    /// What the other end has said.
    pub private_data: Vec<u8>,
    /// The most payload of a packet.
    pub mtu: Mtu,
}

/// A connection that somebody asks for.
#[derive(Debug)]
pub struct Request {
    requested: Box<Requested>,
    /// Who asks.
    pub peer: SocketAddr,
}

impl Request {
    /// Returns what the other end has said.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.requested.private_data
    }

    /// Returns the port of `rdma_cm` that it was asked for at.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.requested.service_id.to_port().map(|(_, port)| port)
    }

    /// Returns how many READs of the other end it wants served at once.
    #[must_use]
    pub fn initiator_depth(&self) -> u8 {
        self.requested.req.initiator_depth
    }
}

/// Why a connection is not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The other end refuses it.
    #[error("{peer} refuses the connection: {reason}")]
    Rejected {
        /// The other end.
        peer: SocketAddr,
        /// Why.
        reason: RejectReason,
        /// The largest path MTU that it accepts, if it has refused the proposed one and names another.
        mtu: Option<Mtu>,
    },
    /// The other end does not answer.
    #[error("{peer} does not answer")]
    Unreachable {
        /// The other end.
        peer: SocketAddr,
    },
    /// The own port does not belong to the partition.
    #[error("{peer} asks for the partition {:#06x}, to which the port does not belong", p_key.0)]
    Partition {
        /// The other end.
        peer: SocketAddr,
        /// The partition's key.
        p_key: PKey,
    },
    /// The other end wants packets sent to somebody else.
    #[error("{peer} asks for packets to {named}, from where it does not ask")]
    Elsewhere {
        /// The other end.
        peer: SocketAddr,
        /// The address that it names.
        named: std::net::IpAddr,
    },
    /// There is no way to the other end.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The connection manager does not take it.
    #[error("connecting: {0}")]
    Cm(#[from] CmError),
    /// The queue pair cannot be changed.
    #[error("programming the queue pair: {0}")]
    Modify(#[from] ModifyError),
    /// The queue pair is not there.
    #[error("there is no such queue pair")]
    NoSuchQp,
    /// The system failed.
    #[error("driving the adapter: {0}")]
    Io(#[from] std::io::Error),
}

/// The code of the time that the other end waits for a receive: 0.64 ms.
const MIN_RNR_TIMER: u8 = 12;

/// What a connection says of retries: as often as can be.
const RETRIES: u8 = 7;

/// What a queue pair is told when it is connected.
struct Program {
    route: Route,
    mtu: Mtu,
    p_key: PKey,
    destination: Qpn,
    receives: Psn,
    sends: Psn,
    responder_resources: u8,
    initiator_depth: u8,
    timeout: u8,
    retry_cnt: u8,
    rnr_retry: u8,
}

impl Device {
    /// Connects a queue pair that is in state `Reset` to a port of an address, as a client of `rdma_cm` does. If the
    /// other end refuses the path MTU and names a smaller one, that is proposed.
    ///
    /// # Errors
    /// Fails when the other end refuses or does not answer, or the queue pair is in another state.
    pub fn connect(
        &mut self,
        qp: QpId,
        peer: SocketAddr,
        options: &EndpointOptions,
    ) -> Result<Endpoint, ConnectError> {
        let path = self.path_to(peer.ip())?;
        let mut mtu = options.mtu.map_or(path.mtu, |mtu| mtu.min(path.mtu));
        loop {
            match self.connect_with(qp, peer, options, Path { mtu, ..path }) {
                Err(ConnectError::Rejected { mtu: Some(most), .. }) if most < mtu => mtu = most,
                ended => return ended,
            }
        }
    }

    fn connect_with(
        &mut self,
        qp: QpId,
        peer: SocketAddr,
        options: &EndpointOptions,
        Path { route, mtu, p_key }: Path,
    ) -> Result<Endpoint, ConnectError> {
        let psn = self.hca.random_psn();
        let (qpn, ..) = self.hca.query_qp(qp).ok_or(ConnectError::NoSuchQp)?;
        let service = ServiceId::port(PortSpace::TCP, peer.port());
        let port = 0xc000 | (psn.get() as u16);
        let params = ConnectParams {
            path_mtu: MtuCode(mtu.code()),
            responder_resources: options.responder_resources,
            initiator_depth: options.initiator_depth,
            local_ack_timeout: options.peer_ack_timeout,
            p_key,
            cma: Some(CmaHeader {
                source: SocketAddr::new(self.address, port),
                destination: peer.ip(),
            }),
            private_data: options.private_data.clone(),
            ..ConnectParams::new(route, service, qpn, psn)
        };
        let connection = self.cm.connect(clock::now(), &params)?;
        let mut others = Vec::new();
        let found = self.await_answer(connection, peer, options.patience, &mut others);
        self.put_back(others);
        let connected = match found {
            Ok(connected) => connected,
            Err(error) => {
                self.cm.close(clock::now(), connection).ok();
                return Err(error);
            }
        };
        let rep = &connected.rep;
        let program = Program {
            route: connected.path,
            mtu,
            p_key,
            destination: rep.local_qpn,
            receives: psn,
            sends: rep.starting_psn,
            responder_resources: options.responder_resources.min(rep.initiator_depth),
            initiator_depth: options.initiator_depth.min(rep.responder_resources),
            timeout: options.ack_timeout,
            retry_cnt: RETRIES,
            rnr_retry: rep.rnr_retry_count,
        };
        self.hca.set_service(qp, service.0).ok();
        self.program(qp, &program, options.access)?;
        self.cm.established(connection, b"")?;
        self.flush();
        Ok(Endpoint { qp, connection, peer, private_data: connected.private_data, mtu })
    }

    /// Waits for the answer to a request.
    fn await_answer(
        &mut self,
        connection: ConnectionId,
        peer: SocketAddr,
        patience: Duration,
        others: &mut Vec<DeviceEvent>,
    ) -> Result<ib_cm::Connected, ConnectError> {
        let end = clock::now() + patience;
        loop {
            while let Some(event) = self.poll_event() {
                match event {
                    DeviceEvent::Cm(CmEvent::Connected(it)) if it.id == connection => {
                        return Ok(*it);
                    }
                    DeviceEvent::Cm(CmEvent::Rejected { id, reason, info, .. })
                        if id == connection =>
                    {
                        let mtu = accepted_mtu(reason, &info);
                        return Err(ConnectError::Rejected { peer, reason, mtu });
                    }
                    DeviceEvent::Cm(CmEvent::Failed { id, .. }) if id == connection => {
                        return Err(ConnectError::Unreachable { peer });
                    }
                    event => others.push(event),
                }
            }
            if clock::now() >= end {
                return Err(ConnectError::Unreachable { peer });
            }
            if !self.progress()? {
                self.wait(end, None)?;
            }
        }
    }

    /// Listens at a port, as a server of `rdma_cm` does. What is asked for comes as events, of which
    /// [`Device::request`] makes requests.
    ///
    /// # Errors
    /// Fails when somebody listens there.
    pub fn listen(&mut self, port: u16) -> Result<(), CmError> {
        self.cm.listen_cm(PortSpace::TCP, port).map(drop)
    }

    /// Returns the request that an event is, or the event.
    ///
    /// # Errors
    /// Returns the event when it is none.
    pub fn request(event: DeviceEvent) -> Result<Request, DeviceEvent> {
        match event {
            DeviceEvent::Cm(CmEvent::Requested(requested)) => {
                let address = address_of(requested.route.destination);
                let cma = requested.cma.as_ref();
                let peer = cma.map_or(SocketAddr::new(address, 0), |cma| cma.source);
                Ok(Request { requested, peer })
            }
            event => Err(event),
        }
    }

    /// Brings a new queue pair into state `Init`, in which receives can be posted.
    ///
    /// # Errors
    /// Fails when it is in another state than `Reset`.
    pub fn prepare(&mut self, qp: QpId, access: AccessFlags) -> Result<(), ModifyError> {
        let init = QpAttr {
            qp_state: Some(QpState::Init),
            pkey: Some(PKey::DEFAULT),
            qp_access_flags: Some(access),
            ..QpAttr::default()
        };
        self.hca.modify_qp(clock::now(), qp, &init)
    }

    /// Accepts a request with a queue pair that is in state `Reset` or `Init`. Receives may be posted before.
    ///
    /// # Errors
    /// Fails when the request is gone, or the queue pair is in another state.
    pub fn accept(
        &mut self,
        qp: QpId,
        request: &Request,
        options: &EndpointOptions,
    ) -> Result<Endpoint, ConnectError> {
        let Requested { id, path, req, private_data, .. } = &*request.requested;
        let psn = self.hca.random_psn();
        let (qpn, ..) = self.hca.query_qp(qp).ok_or(ConnectError::NoSuchQp)?;
        let proposed = Mtu::from_code(req.path_mtu.0).unwrap_or(Mtu::B256);
        let most = self.hca.config().active_mtu;
        if proposed > most {
            self.cm.reject_mtu(clock::now(), *id, MtuCode(most.code()))?;
            return Err(ConnectError::Modify(ModifyError::Mtu { found: proposed, most }));
        }
        if !self.is_in_partition(req.p_key) {
            self.cm.reject(clock::now(), *id, RejectReason::CONSUMER, b"")?;
            return Err(ConnectError::Partition { peer: request.peer, p_key: req.p_key });
        }
        // Packets go to who has asked, and to nobody else whom he may name.
        let came = &request.requested.route;
        if path.is_global && came.is_global && path.destination != came.destination {
            self.cm.reject(clock::now(), *id, RejectReason::PRIMARY_GID, b"")?;
            let (peer, named) = (request.peer, address_of(path.destination));
            return Err(ConnectError::Elsewhere { peer, named });
        }
        let responder_resources = options.responder_resources.min(req.initiator_depth);
        let initiator_depth = options.initiator_depth.min(req.responder_resources);
        let program = Program {
            route: self.way_back(path),
            mtu: proposed,
            p_key: req.p_key,
            destination: req.local_qpn,
            receives: psn,
            sends: req.starting_psn,
            responder_resources,
            initiator_depth,
            timeout: options.ack_timeout,
            retry_cnt: req.retry_count,
            rnr_retry: req.rnr_retry_count,
        };
        self.hca.set_service(qp, request.requested.service_id.0).ok();
        self.program(qp, &program, options.access)?;
        let params = AcceptParams {
            responder_resources,
            initiator_depth,
            rnr_retry_count: RETRIES,
            private_data: options.private_data.clone(),
            ..AcceptParams::new(qpn, psn)
        };
        self.cm.accept(clock::now(), *id, &params)?;
        self.flush();
        let (private_data, peer) = (private_data.clone(), request.peer);
        Ok(Endpoint { qp, connection: *id, peer, private_data, mtu: proposed })
    }

    /// Returns the way to who has asked for a connection: on Ethernet from the own address.
    fn way_back(&self, path: &Route) -> Route {
        match &self.wire {
            Wire::Roce(_) => Route { source: gid_of(self.address), ..*path },
            Wire::Attached(_) => *path,
        }
    }

    /// Refuses a request.
    ///
    /// # Errors
    /// Fails when it is gone.
    pub fn reject(&mut self, request: &Request, private_data: &[u8]) -> Result<(), CmError> {
        let reason = RejectReason::CONSUMER;
        self.cm.reject(clock::now(), request.requested.id, reason, private_data)
    }

    /// Ends a connection, and waits a little for the other end to hear of it.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn disconnect(&mut self, endpoint: &Endpoint, patience: Duration) -> std::io::Result<()> {
        let id = endpoint.connection;
        if self.cm.disconnect(clock::now(), id, b"").is_err() {
            return Ok(());
        }
        let end = clock::now() + patience;
        let mut others = Vec::new();
        let mut goes_on = true;
        while goes_on && clock::now() < end {
            if !self.progress()? {
                self.wait(end, None)?;
            }
            while let Some(event) = self.poll_event() {
                goes_on &= !is_end_of(&event, id);
                others.push(event);
            }
        }
        self.put_back(others);
        Ok(())
    }

    /// Brings a queue pair into service.
    fn program(
        &mut self,
        qp: QpId,
        program: &Program,
        access: AccessFlags,
    ) -> Result<(), ModifyError> {
        let now: Instant = clock::now();
        let state = self.hca.query_qp(qp).map(|(_, state, _)| state);
        let connection = QpConnection {
            pkey: program.p_key,
            access,
            route: program.route,
            path_mtu: program.mtu,
            dest_qp_num: program.destination,
            rq_psn: program.receives,
            sq_psn: program.sends,
            max_dest_rd_atomic: program.responder_resources.min(128),
            max_rd_atomic: program.initiator_depth.min(128),
            min_rnr_timer: MIN_RNR_TIMER,
            timeout: program.timeout,
            retry_cnt: program.retry_cnt,
            rnr_retry: program.rnr_retry,
        };
        if state == Some(QpState::Reset) {
            self.prepare(qp, access)?;
        }
        self.hca.modify_qp(now, qp, &connection.to_rtr())?;
        self.hca.modify_qp(now, qp, &connection.to_rts())
    }
}

/// Returns true for the event that ends a connection.
#[must_use]
fn is_end_of(event: &DeviceEvent, connection: ConnectionId) -> bool {
    match event {
        DeviceEvent::Cm(
            CmEvent::Disconnected { id, .. }
            | CmEvent::TimeWaitExited { id, .. }
            | CmEvent::Failed { id, .. },
        ) => *id == connection,
        _ => false,
    }
}

impl DeviceEvent {
    /// Returns the connection whose other end has gone.
    #[must_use]
    pub const fn disconnected(&self) -> Option<ConnectionId> {
        match self {
            Self::Cm(CmEvent::Disconnected { id, .. } | CmEvent::Failed { id, .. }) => Some(*id),
            _ => None,
        }
    }
}
