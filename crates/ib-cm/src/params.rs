//! Parameters that a consumer specifies for REQ, REP, `SIDR_REQ` and `SIDR_REP`.

use ib_link::Route;
use ib_types::{PKey, Psn, QKey, Qpn};
use ib_wire::mad::cm::connect::TransportService;
use ib_wire::mad::cm::{CmaHeader, ConnectPath, Rep, Req, SidrStatus};
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::MtuCode;

use crate::cma;
use crate::error::CmError;
use crate::id::ServiceId;

/// Parameters of a REQ; IBTA volume 1, chapter 12.6.5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectParams {
    /// Route to the peer, for CM messages and for the packets of the connection.
    pub route: Route,
    /// The service.
    pub service_id: ServiceId,
    /// The local queue pair.
    pub qpn: Qpn,
    /// First PSN that the peer has to use.
    pub starting_psn: Psn,
    /// The transport service: RC or UC.
    pub transport: TransportService,
    /// The MTU of the packets: 256 to 4096.
    pub path_mtu: MtuCode,
    /// The code of the path's rate; 0 on Ethernet.
    pub rate: RateCode,
    /// The P_Key.
    pub p_key: PKey,
    /// Responder resources: maximum number of READs and atomics that the peer may have outstanding at the local queue
    /// pair.
    pub responder_resources: u8,
    /// Initiator depth: maximum number of READs and atomics that the local queue pair may have outstanding.
    pub initiator_depth: u8,
    /// Transport retry count that the peer has to use, 0 to 7.
    pub retry_count: u8,
    /// RNR retry count that the peer has to use: 0 to 6, or 7 for no limit.
    pub rnr_retry_count: u8,
    /// ACK timeout that the peer has to use: 4.096 µs × 2^exponent, with this exponent from 0 to 31. Linux uses it for
    /// the queue pair of the passive side.
    pub local_ack_timeout: u8,
    /// True if the local queue pair has end-to-end flow control.
    pub flow_control: bool,
    /// True if the local queue pair has a shared receive queue.
    pub srq: bool,
    /// The `rdma_cm` header at the start of private data; `None` if the service is not an `rdma_cm` port.
    pub cma: Option<CmaHeader>,
    /// Private data of the REQ: up to 92 bytes, or up to 56 bytes after an `rdma_cm` header.
    pub private_data: Vec<u8>,
}

impl ConnectParams {
    /// Returns the parameters with the defaults of Linux: RC, an MTU of 1024 bytes, the default partition, no READs,
    /// maximum retries, an ACK timeout of 2.1 s, no private data.
    #[must_use]
    pub fn new(route: Route, service_id: ServiceId, qpn: Qpn, starting_psn: Psn) -> Self {
        Self {
            route,
            service_id,
            qpn,
            starting_psn,
            transport: TransportService::RC,
            path_mtu: MtuCode::MTU_1024,
            rate: RateCode(0),
            p_key: PKey::DEFAULT,
            responder_resources: 0,
            initiator_depth: 0,
            retry_count: 7,
            rnr_retry_count: 7,
            local_ack_timeout: 19,
            flow_control: false,
            srq: false,
            cma: None,
            private_data: Vec::new(),
        }
    }

    /// Returns the REQ without the fields that the CM fills in.
    pub(crate) fn to_req(&self) -> Result<Req, CmError> {
        in_range("the transport", self.transport.0.into(), 0, 1)?;
        in_range("the path MTU code", self.path_mtu.0.into(), 1, 5)?;
        in_range("the rate code", self.rate.0.into(), 0, 63)?;
        in_range("the retry count", self.retry_count.into(), 0, 7)?;
        in_range("the RNR retry count", self.rnr_retry_count.into(), 0, 7)?;
        in_range("the local ACK timeout", self.local_ack_timeout.into(), 0, 31)?;
        in_range("the queue pair number", self.qpn.get(), 2, Qpn::MAX.get() - 1)?;
        let path = to_path(&self.route, self.rate, self.local_ack_timeout)?;
        Ok(Req {
            service_id: self.service_id.0,
            local_qpn: self.qpn,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            transport: self.transport,
            flow_control: self.flow_control,
            starting_psn: self.starting_psn,
            retry_count: self.retry_count,
            p_key: self.p_key,
            path_mtu: self.path_mtu,
            rnr_retry_count: self.rnr_retry_count,
            srq: self.srq,
            primary_path: path,
            private_data: cma::compose("REQ", self.cma.as_ref(), &self.private_data)?,
            ..Req::zeroed()
        })
    }
}

/// Parameters of a REP; IBTA volume 1, chapter 12.6.8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptParams {
    /// The local queue pair.
    pub qpn: Qpn,
    /// First PSN that the peer has to use.
    pub starting_psn: Psn,
    /// Responder resources: maximum number of READs and atomics that the peer may have outstanding. Values above the
    /// initiator depth of the REQ have no effect.
    pub responder_resources: u8,
    /// Initiator depth: maximum number of READs and atomics that the local queue pair may have outstanding. The
    /// consumer must not set it above the responder resources of the REQ.
    pub initiator_depth: u8,
    /// Target ACK delay of the local HCA: 4.096 µs × 2^exponent, with this exponent from 0 to 31. The peer adds it to
    /// its ACK timeout.
    pub target_ack_delay: u8,
    /// RNR retry count that the peer has to use: 0 to 6, or 7 for no limit.
    pub rnr_retry_count: u8,
    /// True if the local queue pair has end-to-end flow control.
    pub flow_control: bool,
    /// True if the local queue pair has a shared receive queue.
    pub srq: bool,
    /// Private data of the REP, up to 196 bytes.
    pub private_data: Vec<u8>,
}

impl AcceptParams {
    /// Returns the parameters with the defaults of Linux: no READs, a target ACK delay of 134 ms, unlimited RNR
    /// retries, no private data.
    #[must_use]
    pub const fn new(qpn: Qpn, starting_psn: Psn) -> Self {
        Self {
            qpn,
            starting_psn,
            responder_resources: 0,
            initiator_depth: 0,
            target_ack_delay: 15,
            rnr_retry_count: 7,
            flow_control: false,
            srq: false,
            private_data: Vec::new(),
        }
    }

    /// Returns the REP without the fields that the CM fills in.
    pub(crate) fn to_rep(&self) -> Result<Rep, CmError> {
        in_range("the target ACK delay", self.target_ack_delay.into(), 0, 31)?;
        in_range("the RNR retry count", self.rnr_retry_count.into(), 0, 7)?;
        in_range("the queue pair number", self.qpn.get(), 2, Qpn::MAX.get() - 1)?;
        Ok(Rep {
            local_qpn: self.qpn,
            starting_psn: self.starting_psn,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            target_ack_delay: self.target_ack_delay,
            flow_control: self.flow_control,
            rnr_retry_count: self.rnr_retry_count,
            srq: self.srq,
            private_data: cma::compose("REP", None, &self.private_data)?,
            ..Rep::zeroed()
        })
    }
}

/// Parameters of a `SIDR_REQ`; IBTA volume 1, chapter 12.11.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrParams {
    /// Route to the peer.
    pub route: Route,
    /// The service.
    pub service_id: ServiceId,
    /// The P_Key.
    pub p_key: PKey,
    /// The `rdma_cm` header at the start of private data; `None` if the service is not an `rdma_cm` port.
    pub cma: Option<CmaHeader>,
    /// Private data of the `SIDR_REQ`: up to 216 bytes, or up to 180 bytes after an `rdma_cm` header.
    pub private_data: Vec<u8>,
}

/// Parameters of a `SIDR_REP`; IBTA volume 1, chapter 12.11.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrReply {
    /// The status, which is [`SidrStatus::VALID`] if the service has a queue pair.
    pub status: SidrStatus,
    /// The queue pair of the service; 0 if the service has none.
    pub qpn: Qpn,
    /// The Q_Key of the queue pair.
    pub q_key: QKey,
    /// Private data of the `SIDR_REP`, up to 136 bytes.
    pub private_data: Vec<u8>,
}

/// Returns the path fields of a REQ that describe a route.
fn to_path(route: &Route, rate: RateCode, local_ack_timeout: u8) -> Result<ConnectPath, CmError> {
    in_range("the flow label", route.flow_label, 0, 0xf_ffff)?;
    let is_ethernet = is_ethernet(route);
    let lid = |lid| if is_ethernet { NO_LID } else { lid };
    Ok(ConnectPath {
        local_lid: lid(route.slid),
        remote_lid: lid(route.dlid),
        local_gid: route.source,
        remote_gid: route.destination,
        flow_label: route.flow_label,
        rate,
        traffic_class: route.traffic_class,
        hop_limit: route.hop_limit,
        sl: route.sl.get(),
        subnet_local: !is_ethernet && !route.is_global,
        local_ack_timeout,
    })
}

/// Returns the route that a REQ proposes for the packets from its receiver to its sender.
///
/// `arrived` is the route of the response to the REQ. The UDP port is taken from `arrived`, because a
/// REQ has no field for the port.
///
/// On Ethernet all packets have a GRH and no LIDs, so the LIDs and the subnet-local bit of the REQ are ignored. Linux
/// fills them in if it has obtained an InfiniBand path from ibacm.
pub(crate) fn to_route(path: &ConnectPath, arrived: &Route) -> Route {
    let is_ethernet = is_ethernet(arrived);
    let lid = |lid| if lid == NO_LID || is_ethernet { 0 } else { lid };
    Route {
        source: path.remote_gid,
        destination: path.local_gid,
        slid: lid(path.remote_lid),
        dlid: lid(path.local_lid),
        sl: ib_types::ServiceLevel::new(path.sl).unwrap_or_default(),
        is_global: is_ethernet || !path.subnet_local,
        traffic_class: path.traffic_class,
        flow_label: path.flow_label,
        // If a peer sets the hop limit to 0, the hop limit of `arrived` is used. Packets with hop limit 0 would be
        // dropped.
        hop_limit: if path.hop_limit == 0 { arrived.hop_limit } else { path.hop_limit },
        source_port: arrived.source_port,
        is_weak: false,
    }
}

/// Returns true if a route is on Ethernet, which has no LIDs.
fn is_ethernet(route: &Route) -> bool {
    route.slid == 0 && route.dlid == 0
}

/// LID in a REQ on Ethernet, where ports have no LIDs.
const NO_LID: u16 = 0xffff;

fn in_range(field: &'static str, value: u32, least: u32, most: u32) -> Result<(), CmError> {
    let legal = (least..=most).contains(&value);
    legal.then_some(()).ok_or(CmError::OutOfRange { field, value, least, most })
}
