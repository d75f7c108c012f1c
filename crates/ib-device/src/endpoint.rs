//! Queue pairs that the connection manager connects, as `rdma_cm` does.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ib_cm::{
    AcceptParams, CmError, CmEvent, CmaHeader, ConnectParams, ConnectionId, PortSpace, Requested,
    ServiceId, accepted_mtu,
};
use ib_hca::{AccessFlags, ModifyError, QpAttr, QpConnection, QpId, QpState};
use ib_link::Route;
use ib_os::clock;
use ib_roce::{address_of, gid_of};
use ib_types::{Mtu, PKey};
use ib_wire::mad::cm::RejectReason;
use ib_wire::mad::sm::MtuCode;

use crate::device::{Device, Link};
use crate::engines::DeviceEvent;
use crate::path::{Path, PathError};

/// Options of a connection.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// Maximum number of READs and atomics that the peer may have outstanding at this HCA.
    pub responder_resources: u8,
    /// Maximum number of READs and atomics that this HCA may have outstanding at the peer.
    pub initiator_depth: u8,
    /// Operations that the peer may request.
    pub access: AccessFlags,
    /// Upper limit of the path MTU in [`Device::connect`]; `None` for the limit of the path only.
    pub mtu: Option<Mtu>,
    /// ACK timeout: 4.096 µs × 2^value.
    pub ack_timeout: u8,
    /// ACK timeout that a connection request proposes to the peer, encoded like `ack_timeout`. A connection to Linux
    /// 6.1 fails if this timeout is too short.
    pub peer_ack_timeout: u8,
    /// Private data: at most 56 bytes in a request and 196 in a reply.
    pub private_data: Vec<u8>,
    /// Maximum time that [`Device::connect`] waits for the reply to a connection request.
    pub patience: Duration,
}

impl Default for EndpointOptions {
    /// Returns options with 16 outstanding READs and atomics in each direction, all access flags, and a time limit of
    /// 10 s. The ACK timeout of this HCA is 67 ms. The ACK timeout proposed to the peer is 2.1 s.
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

/// A connected queue pair.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The queue pair.
    pub qp: QpId,
    /// The connection of the queue pair.
    pub connection: ConnectionId,
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Private data that the peer has sent in its connection request or reply.
    pub private_data: Vec<u8>,
    /// Path MTU.
    pub mtu: Mtu,
}

/// A connection request.
#[derive(Debug)]
pub struct Request {
    requested: Box<Requested>,
    /// Address of the client. The port is 0 if the request has no `rdma_cm` header.
    pub peer: SocketAddr,
}

impl Request {
    /// Returns the private data of the client.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.requested.private_data
    }

    /// Returns the `rdma_cm` port that the client requests; `None` if the service ID is not an `rdma_cm` port.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.requested.service_id.to_port().map(|(_, port)| port)
    }
}

/// The reason why [`Device::connect`] or [`Device::accept`] fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The peer rejects the connection.
    #[error("{peer} refuses the connection: {reason}")]
    Rejected {
        /// Address of the peer.
        peer: SocketAddr,
        /// The reason of the rejection.
        reason: RejectReason,
        /// Maximum path MTU that the peer reports if it has rejected the proposed path MTU.
        mtu: Option<Mtu>,
    },
    /// The peer does not respond.
    #[error("{peer} does not respond to the connection request: expected an HCA at this address")]
    Unreachable {
        /// Address of the peer.
        peer: SocketAddr,
    },
    /// The peer requests a partition to which this HCA's port does not belong.
    #[error("{peer} requests partition {:#06x}, but the local port is not a member", p_key.0)]
    Partition {
        /// Address of the peer.
        peer: SocketAddr,
        /// P_Key of the partition.
        p_key: PKey,
    },
    /// The client requests that packets be sent to an address other than its own.
    #[error("{peer} requests packets to {named}: expected its own address")]
    OtherAddress {
        /// Address of the client.
        peer: SocketAddr,
        /// The destination address that the client requests for packets.
        named: IpAddr,
    },
    /// The path to the peer cannot be found.
    #[error(transparent)]
    Path(#[from] PathError),
    /// This HCA's connection manager has refused a call, for example because the connection request has expired.
    #[error("connection manager: {0}")]
    Cm(#[from] CmError),
    /// The state or attributes of the queue pair cannot be changed.
    #[error("modifying the queue pair: {0}")]
    Modify(#[from] ModifyError),
    /// The queue pair does not exist.
    #[error("the queue pair of the connection does not exist")]
    NoSuchQp,
    /// A system call failed.
    #[error("driving the HCA: {0}")]
    Io(#[from] io::Error),
}

/// Code of the RNR NAK timer: 12 means 0.64 ms.
const MIN_RNR_TIMER: u8 = 12;

/// Value of the retry count and of the RNR retry count: 7, the maximum.
const RETRIES: u8 = 7;

impl Device {
    /// Connects a queue pair in state `Reset` or `Init` to an IP address and port, as an `rdma_cm` client does. If the
    /// peer rejects the path MTU and reports a smaller one, the call retries with the smaller path MTU.
    ///
    /// # Errors
    /// Fails if the peer rejects the request or does not respond, or if the queue pair is neither in state `Reset` nor
    /// in `Init`.
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
        let psn = self.engines.hca.random_psn();
        let (qpn, ..) = self.engines.hca.query_qp(qp).ok_or(ConnectError::NoSuchQp)?;
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
        let connection = self.engines.cm.connect(clock::now(), &params)?;
        let mut others = Vec::new();
        let found = self.await_reply(connection, peer, options.patience, &mut others);
        self.put_back(others);
        let connected = match found {
            Ok(connected) => connected,
            Err(error) => {
                self.engines.cm.close(clock::now(), connection).ok();
                return Err(error);
            }
        };
        let rep = &connected.rep;
        let program = QpConnection {
            pkey: p_key,
            access: options.access,
            route: connected.path,
            path_mtu: mtu,
            dest_qp_num: rep.local_qpn,
            rq_psn: psn,
            sq_psn: rep.starting_psn,
            max_dest_rd_atomic: options.responder_resources.min(rep.initiator_depth).min(128),
            max_rd_atomic: options.initiator_depth.min(rep.responder_resources).min(128),
            min_rnr_timer: MIN_RNR_TIMER,
            timeout: options.ack_timeout,
            retry_cnt: RETRIES,
            rnr_retry: rep.rnr_retry_count,
        };
        self.engines.hca.set_service(qp, service.0).ok();
        self.program(qp, &program)?;
        self.engines.cm.established(connection, b"")?;
        self.flush();
        Ok(Endpoint { qp, connection, peer, private_data: connected.private_data, mtu })
    }

    /// Waits for the reply to a request.
    fn await_reply(
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

    /// Listens on a port, as an `rdma_cm` server does. Connection requests arrive as events, which
    /// [`Device::request`] converts.
    ///
    /// # Errors
    /// Fails if the port is in use.
    pub fn listen(&mut self, port: u16) -> Result<(), CmError> {
        self.engines.cm.listen_cm(PortSpace::TCP, port).map(drop)
    }

    /// Returns the connection request of an event.
    ///
    /// # Errors
    /// Returns the event if it is not a connection request.
    pub fn request(event: DeviceEvent) -> Result<Request, DeviceEvent> {
        match event {
            DeviceEvent::Cm(CmEvent::Requested(requested)) => {
                let peer = peer_of(&requested);
                Ok(Request { requested, peer })
            }
            event => Err(event),
        }
    }

    /// Brings a new queue pair into state `Init`, in which receives can be posted.
    ///
    /// # Errors
    /// Fails if the queue pair is not in state `Reset`.
    pub fn prepare(&mut self, qp: QpId, access: AccessFlags) -> Result<(), ModifyError> {
        let init = QpAttr {
            qp_state: Some(QpState::Init),
            pkey: Some(PKey::DEFAULT),
            qp_access_flags: Some(access),
            ..QpAttr::default()
        };
        self.engines.hca.modify_qp(clock::now(), qp, &init)
    }

    /// Accepts a connection request with a queue pair in state `Reset` or `Init`. To post receives before the call, the
    /// caller brings the queue pair into state `Init` by [`Device::prepare`].
    ///
    /// # Errors
    /// Fails if the request has expired, or if the queue pair is neither in state `Reset` nor in `Init`. Rejects the
    /// request and fails if this HCA cannot use the path MTU, P_Key or address in the request.
    pub fn accept(
        &mut self,
        qp: QpId,
        request: &Request,
        options: &EndpointOptions,
    ) -> Result<Endpoint, ConnectError> {
        let Requested { id, path, req, private_data, .. } = &*request.requested;
        let psn = self.engines.hca.random_psn();
        let (qpn, ..) = self.engines.hca.query_qp(qp).ok_or(ConnectError::NoSuchQp)?;
        let proposed = self.check_request(&request.requested)?;
        let responder_resources = options.responder_resources.min(req.initiator_depth);
        let initiator_depth = options.initiator_depth.min(req.responder_resources);
        let program = QpConnection {
            pkey: req.p_key,
            access: options.access,
            route: self.route_back(path),
            path_mtu: proposed,
            dest_qp_num: req.local_qpn,
            rq_psn: psn,
            sq_psn: req.starting_psn,
            max_dest_rd_atomic: responder_resources.min(128),
            max_rd_atomic: initiator_depth.min(128),
            min_rnr_timer: MIN_RNR_TIMER,
            timeout: options.ack_timeout,
            retry_cnt: req.retry_count,
            rnr_retry: req.rnr_retry_count,
        };
        self.engines.hca.set_service(qp, request.requested.service_id.0).ok();
        self.program(qp, &program)?;
        let params = AcceptParams {
            responder_resources,
            initiator_depth,
            rnr_retry_count: RETRIES,
            private_data: options.private_data.clone(),
            ..AcceptParams::new(qpn, psn)
        };
        self.engines.cm.accept(clock::now(), *id, &params)?;
        self.flush();
        let (private_data, peer) = (private_data.clone(), request.peer);
        Ok(Endpoint { qp, connection: *id, peer, private_data, mtu: proposed })
    }

    /// Checks that this HCA can use the path MTU, P_Key and address in a connection request. Returns the path MTU.
    ///
    /// # Errors
    /// Fails if the request has expired. Rejects the request and fails if this HCA cannot use one of the three values.
    pub fn check_request(&mut self, requested: &Requested) -> Result<Mtu, ConnectError> {
        let Requested { id, path, req, .. } = requested;
        let peer = peer_of(requested);
        let proposed = Mtu::from_code(req.path_mtu.0).unwrap_or(Mtu::B256);
        let most = self.engines.hca.config().active_mtu;
        if proposed > most {
            self.engines.cm.reject_mtu(clock::now(), *id, MtuCode(most.code()))?;
            return Err(ConnectError::Modify(ModifyError::Mtu { found: proposed, most }));
        }
        if !self.is_in_partition(req.p_key) {
            self.engines.cm.reject(clock::now(), *id, RejectReason::CONSUMER, b"")?;
            return Err(ConnectError::Partition { peer, p_key: req.p_key });
        }
        // The path in a request must lead to the address from which the request came.
        let came = &requested.route;
        if path.is_global && came.is_global && path.destination != came.destination {
            self.engines.cm.reject(clock::now(), *id, RejectReason::PRIMARY_GID, b"")?;
            let named = address_of(path.destination);
            return Err(ConnectError::OtherAddress { peer, named });
        }
        Ok(proposed)
    }

    /// Returns the route to the peer that has requested a connection. On Ethernet, the source of
    /// the route is this HCA's address.
    #[must_use]
    pub fn route_back(&self, path: &Route) -> Route {
        match &self.link {
            Link::Roce(_) | Link::Shared(_) => Route { source: gid_of(self.address), ..*path },
            Link::Attached(_) => *path,
        }
    }

    /// Rejects a connection request.
    ///
    /// # Errors
    /// Fails if the request has expired.
    pub fn reject(&mut self, request: &Request, private_data: &[u8]) -> Result<(), CmError> {
        let reason = RejectReason::CONSUMER;
        self.engines.cm.reject(clock::now(), request.requested.id, reason, private_data)
    }

    /// Closes a connection. Waits until the peer confirms the disconnect, at most for the time `patience`.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn disconnect(&mut self, endpoint: &Endpoint, patience: Duration) -> io::Result<()> {
        let id = endpoint.connection;
        if self.engines.cm.disconnect(clock::now(), id, b"").is_err() {
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

    /// Brings a queue pair into state `Rts`.
    fn program(&mut self, qp: QpId, connection: &QpConnection) -> Result<(), ModifyError> {
        let now = clock::now();
        if self.engines.hca.query_qp(qp).is_some_and(|(_, state, _)| state == QpState::Reset) {
            self.prepare(qp, connection.access)?;
        }
        self.engines.hca.modify_qp(now, qp, &connection.to_rtr())?;
        self.engines.hca.modify_qp(now, qp, &connection.to_rts())
    }
}

/// Returns the address of the client that has sent a connection request. The port is 0 if the request has no `rdma_cm`
/// header.
fn peer_of(requested: &Requested) -> SocketAddr {
    let address = address_of(requested.route.destination);
    requested.cma.as_ref().map_or(SocketAddr::new(address, 0), |cma| cma.source)
}

/// Returns true if the event ends the given connection.
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
