//! Converts events of the connection manager and responses of the SA to events of IDs.

use std::net::SocketAddr;

use ib_cm::{
    Cause, CmEvent, CmaHeader, Connected, ConnectionId, Failure, Requested, ServiceId,
    SidrRequested, SidrResolved,
};
use ib_link::Route;
use ib_mad::Completion;
use ib_types::{Gid, Instant, PKey};
use ib_wire::mad::cm::{RejectReason, SidrStatus};
use ib_wire::mad::sa::{PathRecord, RateCode};
use ib_wire::mad::sm::MtuCode;

use super::abi::{ConnectionParam, DatagramParam};
use super::address::{Address, IbAddress};
use super::attributes::vector_of;
use super::events::{Event, Parameters, padded};
use super::ids::{CmId, Exchange, Peer, QpKind, State};
use super::port::CmPort;
use super::{EventType, Manager, Query};

impl Manager {
    /// Handles an event of the connection manager.
    pub(crate) fn handle(&mut self, event: CmEvent, port: &mut impl CmPort, now: Instant) {
        match event {
            CmEvent::Requested(requested) => self.handle_request(&requested, port, now),
            CmEvent::Connected(connected) => self.handle_reply(&connected),
            CmEvent::Established { id, .. } => {
                self.report_connection(id, EventType::Established, 0)
            }
            CmEvent::Rejected { id, reason, private_data, .. } => {
                if let Some(number) = self.ids.by_connection(id) {
                    let parameters = Parameters::private_data(&private_data);
                    self.ids.forget_connection(id);
                    let status = i32::from(reason.0);
                    self.report_with(number, EventType::Rejected, status, parameters);
                }
            }
            CmEvent::Failed { id, why } => {
                let status = match why {
                    Failure::Unreachable | Failure::Silent => libc::ETIMEDOUT,
                    Failure::Stale | Failure::Evicted => libc::ECONNRESET,
                };
                self.report_connection(id, EventType::Unreachable, -status);
                self.ids.forget_connection(id);
            }
            CmEvent::Disconnected { id, cause, private_data } => {
                let Some(number) = self.ids.by_connection(id) else { return };
                if let Some(CmId {
                    exchange: Exchange::Connection { is_disconnected, .. }, ..
                }) = self.ids.get_mut(number)
                {
                    *is_disconnected = true;
                }
                let status = if cause == Cause::Unanswered { -libc::ETIMEDOUT } else { 0 };
                let parameters = Parameters::private_data(&private_data);
                self.report_with(number, EventType::Disconnected, status, parameters);
            }
            CmEvent::TimeWaitExited { id } => self.handle_time_wait(id),
            CmEvent::SidrRequested(requested) => self.handle_sidr_request(&requested, port, now),
            CmEvent::SidrResolved(resolved) => self.handle_sidr_reply(&resolved),
            CmEvent::SidrFailed { id } => {
                if let Some(number) = self.by_exchange(Exchange::Resolution(id)) {
                    self.end_resolution(number);
                    self.report(number, EventType::Unreachable, -libc::ETIMEDOUT);
                }
            }
        }
    }

    /// Handles a completed SA query.
    pub(crate) fn handle_query(&mut self, completion: &Completion) {
        match self.queries.remove(&completion.transaction_id) {
            Some(Query::Path(number)) => self.handle_path(number, completion),
            Some(Query::Join(group)) => self.handle_join(group, completion),
            None => {}
        }
    }

    fn handle_path(&mut self, number: u32, completion: &Completion) {
        let Some(id) = self.ids.get_mut(number) else { return };
        if id.state != State::RouteQuery {
            return;
        }
        let status = match &completion.result {
            Ok(message) if message.status().is_ok() => {
                id.path = message.mad().attribute::<PathRecord>();
                0
            }
            Ok(_) => libc::EINVAL,
            Err(_) => libc::ETIMEDOUT,
        };
        if status == 0 {
            id.state = State::RouteResolved;
            self.report(number, EventType::RouteResolved, 0);
        } else {
            id.state = State::AddressResolved;
            self.report(number, EventType::RouteError, -status);
        }
    }

    fn handle_request(&mut self, requested: &Requested, port: &mut impl CmPort, now: Instant) {
        let req = &requested.req;
        let ends = Ends {
            service: requested.service_id,
            cma: requested.cma,
            own: requested.path.source,
            peer: requested.path.destination,
        };
        let listener = self.listener(&ends, false);
        let Some(listener) = listener else {
            // The error is ignored: it means that the request has ended already.
            let reason = RejectReason::INVALID_SERVICE_ID;
            let _ = port.cm().reject(now, requested.id, reason, b"");
            return;
        };
        if !port.check_request(requested) {
            return;
        }
        let route = port.route_back(&requested.path);
        let peer = Peer {
            route,
            qpn: req.local_qpn,
            psn: req.starting_psn,
            responder_resources: req.initiator_depth,
            initiator_depth: req.responder_resources,
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            mtu: req.path_mtu.0,
        };
        let path = record_of(&route, req.path_mtu, req.p_key, req.primary_path.rate);
        let child = self.add_child(listener, &ends, path, port);
        let Some(child) = child else {
            let _ = port.cm().reject(now, requested.id, RejectReason::CONSUMER, b"");
            return;
        };
        let id = requested.id;
        let exchange = Exchange::Connection { id, peer, is_disconnected: false };
        self.ids.connect(child, id, exchange);
        let (private_data, private_data_len) = padded(&requested.private_data);
        let parameters = Parameters::Connection(ConnectionParam {
            qp_num: req.local_qpn.get(),
            private_data,
            private_data_len,
            srq: req.srq.into(),
            // The event swaps both values of the REQ: they are the limits of the local queue pair.
            responder_resources: req.initiator_depth,
            initiator_depth: req.responder_resources,
            flow_control: req.flow_control.into(),
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            ..ConnectionParam::default()
        });
        self.announce(listener, child, parameters);
    }

    fn handle_reply(&mut self, connected: &Connected) {
        let Some(number) = self.ids.by_connection(connected.id) else { return };
        let Some(id) = self.ids.get_mut(number) else { return };
        let Exchange::Connection { peer, .. } = &mut id.exchange else { return };
        let rep = &connected.rep;
        *peer = Peer {
            route: connected.path,
            qpn: rep.local_qpn,
            psn: rep.starting_psn,
            responder_resources: peer.responder_resources.min(rep.initiator_depth),
            initiator_depth: peer.initiator_depth.min(rep.responder_resources),
            rnr_retry_count: rep.rnr_retry_count,
            ..*peer
        };
        let (private_data, private_data_len) = padded(&connected.private_data);
        let parameters = Parameters::Connection(ConnectionParam {
            qp_num: rep.local_qpn.get(),
            private_data,
            private_data_len,
            srq: rep.srq.into(),
            responder_resources: rep.initiator_depth,
            initiator_depth: rep.responder_resources,
            flow_control: rep.flow_control.into(),
            rnr_retry_count: rep.rnr_retry_count,
            ..ConnectionParam::default()
        });
        self.report_with(number, EventType::ConnectResponse, 0, parameters);
    }

    fn handle_time_wait(&mut self, connection: ConnectionId) {
        let Some(number) = self.ids.by_connection(connection) else { return };
        let was_disconnected = matches!(
            self.ids.get(number),
            Some(CmId { exchange: Exchange::Connection { is_disconnected: true, .. }, .. })
        );
        self.ids.forget_connection(connection);
        if was_disconnected {
            self.report(number, EventType::TimewaitExit, 0);
        }
    }

    fn handle_sidr_request(
        &mut self,
        requested: &SidrRequested,
        port: &mut impl CmPort,
        now: Instant,
    ) {
        let ends = Ends {
            service: requested.service_id,
            cma: requested.cma,
            own: requested.route.source,
            peer: requested.route.destination,
        };
        let route = port.route_back(&requested.route);
        let path = record_of(&route, MtuCode(0), requested.p_key, RateCode(0));
        let listener = self.listener(&ends, true);
        let child = listener.and_then(|it| Some((it, self.add_child(it, &ends, path, port)?)));
        let Some((listener, child)) = child else {
            let status = match listener {
                Some(_) => SidrStatus::REJECTED,
                None => SidrStatus::INVALID_SERVICE_ID,
            };
            // The error is ignored: it means that the request has ended already.
            let _ = port.cm().sidr_reject(now, requested.id, status);
            return;
        };
        if let Some(id) = self.ids.get_mut(child) {
            id.exchange = Exchange::Request(requested.id);
        }
        let (private_data, private_data_len) = padded(&requested.private_data);
        let parameters = DatagramParam { private_data, private_data_len, ..Default::default() };
        self.announce(listener, child, Parameters::Datagram(parameters));
    }

    fn handle_sidr_reply(&mut self, resolved: &SidrResolved) {
        let Some(number) = self.by_exchange(Exchange::Resolution(resolved.id)) else { return };
        let address = self.ids.get(number).and_then(|id| id.path.as_ref()).map(vector_of);
        self.end_resolution(number);
        if resolved.status != SidrStatus::VALID {
            self.report(number, EventType::Unreachable, i32::from(resolved.status.0));
            return;
        }
        let (private_data, private_data_len) = padded(&resolved.private_data);
        let parameters = Parameters::Datagram(DatagramParam {
            qp_num: resolved.qpn.get(),
            q_key: resolved.q_key.0,
            address: address.unwrap_or_default(),
            private_data,
            private_data_len,
            ..DatagramParam::default()
        });
        self.report_with(number, EventType::Established, 0, parameters);
    }

    fn end_resolution(&mut self, number: u32) {
        if let Some(id) = self.ids.get_mut(number) {
            id.exchange = Exchange::None;
        }
    }

    fn by_exchange(&self, exchange: Exchange) -> Option<u32> {
        self.ids.iter().find(|(_, id)| id.exchange == exchange).map(|(number, _)| number)
    }

    fn report_connection(&mut self, id: ConnectionId, event_type: EventType, status: i32) {
        if let Some(number) = self.ids.by_connection(id) {
            self.report(number, event_type, status);
        }
    }

    /// Returns the number of the ID that listens on the destination of a request. An ID with the address itself takes
    /// precedence over an ID that listens on all addresses.
    fn listener(&self, ends: &Ends, is_datagram: bool) -> Option<u32> {
        let service = self.services.get(&ends.service)?;
        let candidates = service.ids.iter().copied().filter(|number| {
            self.ids.get(*number).is_some_and(|id| (id.kind == QpKind::Ud) == is_datagram)
        });
        let rank = |number: &u32| {
            let id = self.ids.get(*number)?;
            match (&id.source?, ends.cma) {
                (Address::Ib(_), None) => Some(0),
                (Address::Ip(own), Some(cma)) if own.ip() == cma.destination => Some(2),
                (Address::Ip(own), Some(cma)) if own.ip().is_unspecified() => {
                    let is_alike = own.is_ipv4() == cma.destination.is_ipv4();
                    let is_mapped = own.is_ipv6() && !id.is_family_only;
                    (is_alike || is_mapped).then_some(i32::from(is_alike))
                }
                _ => None,
            }
        };
        candidates.filter_map(|it| Some((rank(&it)?, it))).max_by_key(|it| it.0).map(|it| it.1)
    }

    /// Adds the ID of a connection that a peer has requested. Returns `None` if the listener's backlog is exhausted, or
    /// if there are too many IDs.
    fn add_child(
        &mut self,
        listener: u32,
        ends: &Ends,
        path: PathRecord,
        port: &mut impl CmPort,
    ) -> Option<u32> {
        let psn = port.random_psn();
        let listening = self.ids.get_mut(listener)?;
        let left = listening.backlog.checked_sub(1)?;
        let (space, kind, channel) = (listening.space, listening.kind, listening.channel);
        let (source, destination) = ends.addresses();
        let child = CmId {
            source: Some(source),
            destination: Some(destination),
            has_device: true,
            state: State::Connecting,
            peer_gid: ends.peer,
            path: Some(path),
            ack_timeout: listening.ack_timeout,
            tos: listening.tos,
            ..CmId::new(channel, 0, space, kind, psn)
        };
        let number = self.ids.insert(child).ok()?;
        self.ids.get_mut(listener)?.backlog = left;
        Some(number)
    }

    /// Adds the event of a connection request to the channel of the listener.
    fn announce(&mut self, owner: u32, child: u32, parameters: Parameters) {
        let Some(listener) = self.ids.get(owner) else { return };
        let (channel, uid) = (listener.channel, listener.uid);
        let (event_type, status) = (EventType::ConnectRequest, 0);
        let (group, child) = (None, Some(child));
        self.push(channel, Event { owner, group, child, uid, event_type, status, parameters });
    }
}

/// Service and addresses of a request that a peer has sent.
struct Ends {
    service: ServiceId,
    cma: Option<CmaHeader>,
    own: Gid,
    peer: Gid,
}

impl Ends {
    /// Returns the local address and that of the peer.
    fn addresses(&self) -> (Address, Address) {
        match self.cma {
            Some(cma) => {
                let port = self.service.0 as u16;
                let own = SocketAddr::new(cma.destination, port);
                (Address::Ip(own), Address::Ip(cma.source))
            }
            None => {
                let address = |gid, service| {
                    let (p_key, mask) = (PKey::DEFAULT.0, u64::MAX);
                    Address::Ib(IbAddress { p_key, flow_info: 0, gid, service, mask, scope: 0 })
                };
                (address(self.own, self.service.0), address(self.peer, 0))
            }
        }
    }
}

/// Returns the path record of a route.
fn record_of(route: &Route, mtu: MtuCode, p_key: PKey, rate: RateCode) -> PathRecord {
    PathRecord {
        sgid: route.source,
        dgid: route.destination,
        slid: route.slid,
        dlid: route.dlid,
        sl: route.sl.get(),
        flow_label: route.flow_label,
        // In the path record, a hop limit of 0 marks a path without a GRH.
        hop_limit: if route.is_global { route.hop_limit } else { 0 },
        traffic_class: route.traffic_class,
        reversible: true,
        p_key,
        mtu,
        rate,
        ..PathRecord::zeroed()
    }
}
