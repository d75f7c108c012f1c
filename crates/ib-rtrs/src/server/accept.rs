//! Connection requests: checks, limits, acceptance and refusal.

use std::collections::BTreeMap;

use ib_cm::{AcceptParams, Cm, Requested};
use ib_hca::{Hca, Memory, PdId};
use ib_link::Route;
use ib_types::{Gid, Instant, Mtu};
use ib_wire::mad::cm::RejectReason;
use ib_wire::mad::sm::MtuCode;
use ib_wire::rtrs::{
    Capabilities, ConnectFlags, ConnectRequest, ConnectResponse, Extension, MAGIC, VERSION,
};

use super::path::{ControlMemory, Operation, Path, ProofState, State};
use super::{EndReason, Refusal, Server, ServerEvent, ServerPathId, Session, Timer, is_later};
use crate::Errno;
use crate::address::{Address, PathAddress};
use crate::connection::Heartbeat;
use crate::connection::{self, Connection, Peer, SetupError, WorkId};
use crate::connection::{Adapter, AdapterId, Adapters};
use crate::stats::ServerPathStats;

/// Maximum number of paths of a session, as in Linux.
const MAX_PATHS: usize = 128;

/// Maximum number of connections of a path, as in Linux.
const MAX_CONNECTIONS: u16 = 4096;

/// Maximum number of half-open paths whose clients have not yet proven that they have the shared key. A half-open path
/// is in [`State::Connecting`].
const MAX_UNPROVEN: usize = 64;

/// Maximum number of half-open paths from one client address.
const MAX_HALF_OPEN: usize = 64;

/// Capacity of the CQ of each path, in completions. It suffices for all work requests of the path.
const COMPLETIONS: u32 = 1 << 22;

/// The receive index that marks the receive for the info request.
pub(super) const INFO_RECEIVE: u32 = u32::MAX;

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<SetupError> for Refusal {
    fn from(_: SetupError) -> Self {
        Self::Errno(Errno::ENOMEM)
    }
}

impl Server {
    /// Accepts or refuses the connection that a client requests.
    pub(super) fn handle_connect_request(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        requested: &Requested,
    ) {
        let accepted = self.accept(now, cx, adapter, requested);
        if let Err(refusal) = accepted {
            self.send_reject(now, cx, adapter, requested, refusal);
        }
    }

    /// Refuses a connection request with an error number. The owner calls this function for a request that it does not
    /// pass to [`Server::handle_cm`].
    pub fn refuse(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        requested: &Requested,
        errno: Errno,
    ) {
        self.send_reject(now, cx, adapter, requested, Refusal::Errno(errno));
    }

    fn send_reject(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        requested: &Requested,
        why: Refusal,
    ) {
        let from = requested.route.destination;
        self.events.push_back(ServerEvent::Refused { from, why });
        let Some(Adapter { cm, .. }) = cx.get(adapter) else { return };
        let (reason, errno) = match why {
            Refusal::Mtu(most) => {
                // The rejection fails if the client has cancelled the request.
                cm.reject_mtu(now, requested.id, MtuCode(most.code())).ok();
                return;
            }
            Refusal::Errno(errno) => (RejectReason::CONSUMER, errno),
            Refusal::Reason(reason) => (reason, Errno::OK),
        };
        let response = if errno.is_ok() {
            Vec::new()
        } else {
            let error = -(errno.0 as i16);
            ConnectResponse { error, ..self.response() }.to_bytes().to_vec()
        };
        // The rejection fails if the client has cancelled the request.
        cm.reject(now, requested.id, reason, &response).ok();
    }

    fn accept(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        requested: &Requested,
    ) -> Result<(), Refusal> {
        let request = ConnectRequest::read(&requested.private_data);
        let request = request.map_err(|_| Errno::ECONNRESET)?;
        let route = check_route(cx, adapter, requested)?;
        if request.connections == 0
            || request.connections > MAX_CONNECTIONS
            || request.connection >= request.connections
        {
            return Err(Errno::ECONNRESET.into());
        }
        let id = match self.path_of(&request) {
            Some(id) if request.connection == 0 => {
                // The client may have detected a failure of the path that the server has not yet detected. The new
                // path then replaces the old one.
                let before = self.path(id).expect("`path_of` returns existing paths").reconnects;
                if !is_later(request.reconnects, before) {
                    return Err(Errno::ECONNRESET.into());
                }
                self.end_path(now, cx, id, EndReason::Replaced);
                self.create_path(now, cx, adapter, requested, &request)?
            }
            None if request.connection == 0 => {
                self.create_path(now, cx, adapter, requested, &request)?
            }
            None => return Err(Errno::ECONNRESET.into()),
            Some(id) => id,
        };
        let connected = self.connect(now, cx, id, requested, &request, route);
        if connected.is_err() && request.connection == 0 {
            self.end_path(now, cx, id, EndReason::Setup);
        }
        connected
    }

    /// Returns the path to which a connection request belongs; `None` if the path does not exist or was closed.
    fn path_of(&self, request: &ConnectRequest) -> Option<ServerPathId> {
        let session = self.sessions.get(self.by_uuid.get(&request.session_uuid)?)?;
        let paths = session.paths.iter().filter_map(|&index| self.paths[index as usize].as_deref());
        let mut own =
            paths.filter(|path| path.state != State::Closed && path.uuid == request.path_uuid);
        own.next().map(|path| path.id)
    }

    /// Creates a path. For the first path of a session, also creates the session.
    fn create_path(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        requested: &Requested,
        request: &ConnectRequest,
    ) -> Result<ServerPathId, Refusal> {
        let address = address_of(requested);
        let capabilities = Extension::of_request(&requested.private_data);
        let lacks_proof = self.config.key.is_some() && !capabilities.contains(Capabilities::PROOF);
        let (peer, found) = (requested.route.destination, self.by_uuid.get(&request.session_uuid));
        let key = match found.copied() {
            Some(key) => {
                self.limit_half_open(now, cx, peer, false);
                key
            }
            None if request.first_connection & 1 == 0 => return Err(Errno::ENXIO.into()),
            None if lacks_proof => return Err(Errno::EACCES.into()),
            None => {
                self.limit_half_open(now, cx, peer, true);
                self.begin_session(request.session_uuid)?
            }
        };
        // `limit_half_open` may have closed the last path of the session, which removes the session.
        let session = self.sessions.get(&key).ok_or(Errno::ENXIO)?;
        let paths = session.paths.iter().filter_map(|&index| self.paths[index as usize].as_deref());
        let alive: Vec<&Path> = paths.filter(|path| path.state != State::Closed).collect();
        if alive.is_empty() && request.first_connection & 1 == 0 {
            return Err(Errno::ENXIO.into());
        }
        if alive.iter().any(|path| path.address == address && path.adapter == adapter) {
            return Err(Errno::EEXIST.into());
        }
        if alive.len() >= MAX_PATHS {
            return Err(Errno::ECONNRESET.into());
        }
        if lacks_proof {
            return Err(Errno::EACCES.into());
        }
        let pd = cx
            .get(adapter)
            .ok_or(SetupError::NoAdapter)
            .and_then(|adapter| adapter.hca.alloc_pd().map_err(SetupError::from));
        let pd = match pd {
            Ok(pd) => pd,
            Err(error) => {
                self.remove_session_without_paths(key);
                return Err(error.into());
            }
        };
        let ends = (address, peer);
        Ok(self.insert(adapter, (key, pd), ends, request, capabilities))
    }

    fn insert(
        &mut self,
        adapter: AdapterId,
        (key, pd): (u32, PdId),
        (address, peer): (PathAddress, Gid),
        request: &ConnectRequest,
        capabilities: Capabilities,
    ) -> ServerPathId {
        self.next_serial = self.next_serial.wrapping_add(1);
        let index = self.free.pop().unwrap_or(self.paths.len() as u32);
        let id = ServerPathId { index, serial: self.next_serial };
        let fences = self.config.fence && capabilities.contains(Capabilities::FENCE);
        let proves = self.config.key.is_some();
        let capabilities =
            Capabilities(0).with(Capabilities::FENCE, fences).with(Capabilities::PROOF, proves);
        let path = Box::new(Path {
            id,
            session: key,
            adapter,
            address,
            peer,
            uuid: request.path_uuid,
            reconnects: request.reconnects,
            state: State::Connecting,
            capabilities,
            pd,
            cq: None,
            control: None,
            connections: vec![None; request.connections.into()],
            proof: if proves { ProofState::AwaitsNonce } else { ProofState::Done },
            name: Vec::new(),
            chunks: Vec::new(),
            send_region: None,
            has_whole_sectors: true,
            stores: Vec::new(),
            operations: vec![Operation::NONE; self.config.queue_depth.into()],
            outstanding: 0,
            heartbeat: Heartbeat::default(),
            stats: ServerPathStats::default(),
        });
        if index as usize == self.paths.len() {
            self.paths.push(Some(path));
        } else {
            self.paths[index as usize] = Some(path);
        }
        self.sessions
            .get_mut(&key)
            .expect("`create_path` has looked up the session")
            .paths
            .push(index);
        id
    }

    /// Makes room for another half-open path, so that a client address cannot keep out other addresses with its
    /// half-open paths.
    ///
    /// If the client address `peer` has reached its limit, closes its oldest half-open path. If the server has reached
    /// its limit of sessions or of unproven paths, selects the address with the most half-open paths, and closes the
    /// oldest of these paths.
    fn limit_half_open(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        peer: Gid,
        begins_session: bool,
    ) {
        let half_open = || self.paths.iter().flatten().filter(|it| it.state == State::Connecting);
        let mut counts: BTreeMap<Gid, usize> = BTreeMap::new();
        for path in half_open() {
            *counts.entry(path.peer).or_default() += 1;
        }
        let is_full = begins_session && self.sessions.len() >= self.config.max_sessions
            || half_open().filter(|it| it.proof != ProofState::Done).count() >= MAX_UNPROVEN;
        let exceeds = counts.get(&peer).is_some_and(|&count| count >= MAX_HALF_OPEN);
        let age = |path: &Path| self.next_serial.wrapping_sub(path.id.serial);
        let ended = if exceeds {
            half_open().filter(|path| path.peer == peer).max_by_key(|path| age(path))
        } else if is_full {
            half_open().max_by_key(|path| (counts[&path.peer], age(path)))
        } else {
            None
        };
        if let Some(id) = ended.map(|path| path.id) {
            self.end_path(now, cx, id, EndReason::HalfOpen);
        }
    }

    fn begin_session(&mut self, uuid: [u8; 16]) -> Result<u32, Errno> {
        if self.sessions.len() >= self.config.max_sessions {
            return Err(Errno::ENOMEM);
        }
        let depth = usize::from(self.config.queue_depth);
        let key = self.next_session;
        self.next_session = self.next_session.wrapping_add(1);
        let (name, paths) = (Vec::new(), Vec::new());
        let (used, held) = (vec![0; depth], BTreeMap::new());
        let session = Session {
            uuid,
            incarnation: 0,
            epoch: 0,
            name,
            memory: None,
            paths,
            up: 0,
            used,
            held,
        };
        self.sessions.insert(key, session);
        self.by_uuid.insert(uuid, key);
        Ok(key)
    }

    /// Creates the queue pair of a connection, and sends the REP.
    fn connect(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerPathId,
        requested: &Requested,
        request: &ConnectRequest,
        route: Route,
    ) -> Result<(), Refusal> {
        let response = self.response();
        let (transport, timeout) = (self.config.transport, self.config.connect_timeout);
        let Some(path) = self.path_mut(id) else { return Err(Errno::ECONNRESET.into()) };
        let number = usize::from(request.connection);
        if path.state != State::Connecting
            || path.reconnects != request.reconnects
            || path.connections.len() != usize::from(request.connections)
            || path.connections[number].is_some()
        {
            return Err(Errno::ECONNRESET.into());
        }
        let adapter = path.adapter;
        let Adapter { hca, cm } = cx.get(adapter).ok_or(SetupError::NoAdapter)?;
        let peer = Peer {
            route,
            mtu: Mtu::from_code(requested.req.path_mtu.0).unwrap_or(Mtu::B256),
            p_key: requested.req.p_key,
            qpn: requested.req.local_qpn,
            rq_psn: hca.random_psn(),
            sq_psn: requested.req.starting_psn,
            rnr_retry: requested.req.rnr_retry_count,
        };
        path.has_whole_sectors &= peer.mtu >= Mtu::B512;
        if path.cq.is_none() {
            prepare(hca, path)?;
        }
        let (cq, pd) = (path.cq.expect("`prepare` has created the CQ"), path.pd);
        let qp = connection::create(hca, now, pd, cq)?;
        hca.set_service(qp, requested.service_id.0).ok();
        path.connections[number] = Some(Connection { qp, id: requested.id });
        let mut data = response.to_bytes();
        if path.capabilities != Capabilities(0) {
            Extension::new(path.capabilities).put_into_response(&mut data);
        }
        let reply = Reply { qp, peer, data, target_ack_delay: transport.target_ack_delay };
        let control = path.control.as_ref().filter(|_| number == 0);
        let accepted = control.map_or(Ok(()), |control| {
            let work = WorkId { connection: 0, index: INFO_RECEIVE };
            connection::receive(hca, now, qp, work, control.info_request().1)
                .map_err(SetupError::from)
        });
        let accepted = accepted
            .and_then(|()| Ok(connection::program(hca, now, qp, &reply.peer, &transport)?))
            .and_then(|()| reply.send(now, hca, cm, requested));
        if let Err(error) = accepted {
            path.connections[number] = None;
            hca.destroy_qp(qp).ok();
            return Err(error.into());
        }
        let cq = (adapter, cq);
        self.by_cq.insert(cq, id);
        self.by_connection.insert((adapter, requested.id), id);
        if number == 0 {
            self.timers.set((id, Timer::Connect), (), now + timeout);
        }
        Ok(())
    }

    /// Returns the connect response of this server.
    pub(super) fn response(&self) -> ConnectResponse {
        let config = &self.config;
        ConnectResponse {
            magic: MAGIC,
            version: VERSION,
            error: 0,
            queue_depth: config.queue_depth,
            max_io_size: config.max_io_size,
            max_header_size: config.max_header_size,
            flags: ConnectFlags(0).with(ConnectFlags::NEW_KEYS, config.always_invalidate),
        }
    }
}

/// The REP of an accepted connection.
struct Reply {
    qp: ib_hca::QpId,
    peer: Peer,
    data: [u8; ConnectResponse::LENGTH],
    target_ack_delay: u8,
}

impl Reply {
    fn send(
        &self,
        now: Instant,
        hca: &Hca,
        cm: &mut Cm,
        requested: &Requested,
    ) -> Result<(), SetupError> {
        let (qpn, ..) = hca.query_qp(self.qp).expect("the queue pair was just created");
        let params = AcceptParams {
            target_ack_delay: self.target_ack_delay,
            private_data: self.data.to_vec(),
            ..AcceptParams::new(qpn, self.peer.rq_psn)
        };
        Ok(cm.accept(now, requested.id, &params)?)
    }
}

/// Creates the CQ and the control memory that all connections of a path share.
fn prepare(hca: &mut Hca, path: &mut Path) -> Result<(), SetupError> {
    let depth = path.operations.len();
    let cq = hca.create_cq(COMPLETIONS.min(hca.config().max_cqe))?;
    hca.req_notify_cq(cq, false);
    path.cq = Some(cq);
    let memory = Memory::zeroed(ControlMemory::size(depth))?;
    let range = (&memory, 0, memory.len());
    let access = ib_hca::AccessFlags::LOCAL_WRITE;
    let mr = hca.reg_mr(path.pd, range, memory.address(), access)?;
    let key = hca.key(mr).expect("the region was just registered");
    path.control = Some(ControlMemory::new(memory, mr, key, depth));
    Ok(())
}

/// Checks partition, path MTU and GID of a connection request, and returns the route to the client.
fn check_route(
    cx: &mut impl Adapters,
    adapter: AdapterId,
    requested: &Requested,
) -> Result<Route, Refusal> {
    if !cx.is_in_partition(adapter, requested.req.p_key) {
        return Err(Refusal::Reason(RejectReason::CONSUMER));
    }
    let Adapter { hca, .. } = cx.get(adapter).ok_or(SetupError::NoAdapter)?;
    let proposed = Mtu::from_code(requested.req.path_mtu.0);
    let most = hca.config().active_mtu;
    if proposed.is_some_and(|mtu| mtu > most) {
        return Err(Refusal::Mtu(most));
    }
    let (path, route) = (&requested.path, &requested.route);
    // Packets are sent only to the GID from which the request came, not to another GID that the request names.
    if path.is_global && route.is_global && path.destination != route.destination {
        return Err(Refusal::Reason(RejectReason::PRIMARY_GID));
    }
    let source = if hca.config().gids.contains(&path.source) { path.source } else { route.source };
    Ok(Route { source, ..*path })
}

/// Returns the addresses of the path that a connection request names.
fn address_of(requested: &Requested) -> PathAddress {
    match &requested.cma {
        Some(cma) => PathAddress {
            source: Some(Address::Ip(cma.source.ip())),
            destination: Address::Ip(cma.destination),
        },
        None => PathAddress {
            source: Some(Address::Gid(requested.path.destination)),
            destination: Address::Gid(requested.path.source),
        },
    }
}
