//! Connections that clients ask for, and what they are refused with.

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

use super::path::{ControlMemory, Operation, Path, Proving, State};
use super::{EndReason, Refusal, Server, ServerEvent, ServerPathId, Session, Timer, is_later};
use crate::Errno;
use crate::adapters::{Adapter, AdapterId, Adapters};
use crate::address::{Address, PathAddress};
use crate::connection::{self, Connection, Peer, SetupError, WorkId};
use crate::heartbeat::Heartbeat;
use crate::stats::ServerPathStats;

/// The most paths of a session, and the most connections of a path, as with Linux.
const MAX_PATHS: usize = 128;
const MAX_CONNECTIONS: u16 = 4096;

/// Maximum number of half-open paths whose clients have not proven the key yet.
const MAX_UNPROVEN: usize = 64;

/// Maximum number of half-open paths of one address.
const MAX_HALF_OPEN: usize = 64;

/// How many completions of a path may wait: more than all its work requests.
const COMPLETIONS: u32 = 1 << 22;

/// The number of the receive for the question for chunks.
pub(super) const QUESTION: u32 = u32::MAX;

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
    /// Accepts a connection, or refuses it.
    pub(super) fn take_request_to_connect(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        requested: &Requested,
    ) {
        let accepted = self.accept(now, cx, adapter, requested);
        if let Err(refusal) = accepted {
            self.say_no(now, cx, adapter, requested, refusal);
        }
    }

    /// Refuses a connection that its user does not want, with an error; [`Server::handle_cm`] is not told of it then.
    pub fn refuse(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        requested: &Requested,
        errno: Errno,
    ) {
        self.say_no(now, cx, adapter, requested, Refusal::Errno(errno));
    }

    fn say_no(
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
                // It may have been given up meanwhile.
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
        // It may have been given up meanwhile.
        cm.reject(now, requested.id, reason, &response).ok();
    }

    fn accept(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        requested: &Requested,
    ) -> Result<(), Refusal> {
        let asked = ConnectRequest::read(&requested.private_data);
        let asked = asked.map_err(|_| Errno::ECONNRESET)?;
        let route = check_way(cx, adapter, requested)?;
        if asked.connections == 0
            || asked.connections > MAX_CONNECTIONS
            || asked.connection >= asked.connections
        {
            return Err(Errno::ECONNRESET.into());
        }
        let id = match self.path_of(&asked) {
            Some(id) if asked.connection == 0 => {
                // The client may know earlier than this server that the path is gone.
                let before = self.path(id).expect("it was just found").reconnects;
                if !is_later(asked.reconnects, before) {
                    return Err(Errno::ECONNRESET.into());
                }
                self.end_path(now, cx, id, EndReason::Replaced);
                self.begin(now, cx, adapter, requested, &asked)?
            }
            None if asked.connection == 0 => self.begin(now, cx, adapter, requested, &asked)?,
            None => return Err(Errno::ECONNRESET.into()),
            Some(id) => id,
        };
        let connected = self.connect(now, cx, id, requested, &asked, route);
        if connected.is_err() && asked.connection == 0 {
            self.end_path(now, cx, id, EndReason::Setup);
        }
        connected
    }

    /// Returns the path that a connection belongs to, unless it is gone.
    fn path_of(&self, asked: &ConnectRequest) -> Option<ServerPathId> {
        let session = self.sessions.get(self.by_uuid.get(&asked.session_uuid)?)?;
        let paths = session.paths.iter().filter_map(|&index| self.paths[index as usize].as_deref());
        let mut own =
            paths.filter(|path| path.state != State::Dead && path.uuid == asked.path_uuid);
        own.next().map(|path| path.id)
    }

    /// Makes a path, and the session for the first one.
    fn begin(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        requested: &Requested,
        asked: &ConnectRequest,
    ) -> Result<ServerPathId, Refusal> {
        let address = address_of(requested);
        let known = Extension::of_request(&requested.private_data);
        let lacks_proof = self.config.key.is_some() && !known.contains(Capabilities::PROOF);
        let (peer, found) = (requested.route.destination, self.by_uuid.get(&asked.session_uuid));
        let key = match found.copied() {
            Some(key) => {
                self.limit_half_open(now, cx, peer, false);
                key
            }
            None if asked.first_connection & 1 == 0 => return Err(Errno::ENXIO.into()),
            None if lacks_proof => return Err(Errno::EACCES.into()),
            None => {
                self.limit_half_open(now, cx, peer, true);
                self.begin_session(asked.session_uuid)?
            }
        };
        // The closed path may have been its last one.
        let session = self.sessions.get(&key).ok_or(Errno::ENXIO)?;
        let paths = session.paths.iter().filter_map(|&index| self.paths[index as usize].as_deref());
        let alive: Vec<&Path> = paths.filter(|path| path.state != State::Dead).collect();
        if alive.is_empty() && asked.first_connection & 1 == 0 {
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
        let made = cx
            .get(adapter)
            .ok_or(SetupError::NoAdapter)
            .and_then(|adapter| adapter.hca.alloc_pd().map_err(SetupError::from));
        let pd = match made {
            Ok(pd) => pd,
            Err(error) => {
                self.forget_session_without_paths(key);
                return Err(error.into());
            }
        };
        let ends = (address, peer);
        Ok(self.insert(adapter, (key, pd), ends, asked, known))
    }

    fn insert(
        &mut self,
        adapter: AdapterId,
        (key, pd): (u32, PdId),
        (address, peer): (PathAddress, Gid),
        asked: &ConnectRequest,
        known: Capabilities,
    ) -> ServerPathId {
        self.next_serial = self.next_serial.wrapping_add(1);
        let index = self.free.pop().unwrap_or(self.paths.len() as u32);
        let id = ServerPathId { index, serial: self.next_serial };
        let fences = self.config.fence && known.contains(Capabilities::FENCE);
        let proves = self.config.key.is_some();
        let capabilities =
            Capabilities(0).with(Capabilities::FENCE, fences).with(Capabilities::PROOF, proves);
        let path = Box::new(Path {
            id,
            session: key,
            adapter,
            address,
            peer,
            uuid: asked.path_uuid,
            reconnects: asked.reconnects,
            state: State::Connecting,
            capabilities,
            pd,
            cq: None,
            control: None,
            connections: vec![None; asked.connections.into()],
            proof: if proves { Proving::Hello } else { Proving::Done },
            name: Vec::new(),
            chunks: Vec::new(),
            whole: None,
            keeps_sectors: true,
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
        self.sessions.get_mut(&key).expect("it is there").paths.push(index);
        id
    }

    /// Closes the oldest half-open path of an address that is at its limit. If the server is at its limit of sessions, or of
    /// half-open paths with a key, closes the oldest one of the address with the most half-open paths. So no address can
    /// lock out others.
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
            || half_open().filter(|it| it.proof != Proving::Done).count() >= MAX_UNPROVEN;
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

    /// Makes the queue pair of a connection, and accepts.
    fn connect(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerPathId,
        requested: &Requested,
        asked: &ConnectRequest,
        route: Route,
    ) -> Result<(), Refusal> {
        let response = self.response();
        let (transport, timeout) = (self.config.transport, self.config.connect_timeout);
        let Some(path) = self.path_mut(id) else { return Err(Errno::ECONNRESET.into()) };
        let number = usize::from(asked.connection);
        if path.state != State::Connecting
            || path.reconnects != asked.reconnects
            || path.connections.len() != usize::from(asked.connections)
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
            receives: hca.random_psn(),
            sends: requested.req.starting_psn,
            rnr_retry: requested.req.rnr_retry_count,
        };
        path.keeps_sectors &= peer.mtu >= Mtu::B512;
        if path.cq.is_none() {
            prepare(hca, path)?;
        }
        let (cq, pd) = (path.cq.expect("it was just made"), path.pd);
        let qp = connection::create(hca, now, (pd, cq), (u32::MAX, u32::MAX))?;
        hca.set_service(qp, requested.service_id.0).ok();
        path.connections[number] = Some(Connection { qp, id: requested.id });
        let mut data = response.to_bytes();
        if path.capabilities != Capabilities(0) {
            Extension::new(path.capabilities).put_into_response(&mut data);
        }
        let made = Made { qp, peer, data, target_ack_delay: transport.target_ack_delay };
        let desk = path.control.as_ref().filter(|_| number == 0);
        let accepted = desk.map_or(Ok(()), |desk| {
            let work = WorkId { connection: 0, index: QUESTION };
            connection::receive(hca, now, qp, work, desk.question().1).map_err(SetupError::from)
        });
        let accepted = accepted
            .and_then(|()| Ok(connection::program(hca, now, qp, &made.peer, &transport)?))
            .and_then(|()| made.accept(now, hca, cm, requested));
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

    /// Returns what this server says of itself.
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

/// A queue pair for a connection that is accepted.
struct Made {
    qp: ib_hca::QpId,
    peer: Peer,
    data: [u8; ConnectResponse::LENGTH],
    target_ack_delay: u8,
}

impl Made {
    fn accept(
        &self,
        now: Instant,
        hca: &Hca,
        cm: &mut Cm,
        requested: &Requested,
    ) -> Result<(), SetupError> {
        let (qpn, ..) = hca.query_qp(self.qp).expect("it was just made");
        let params = AcceptParams {
            target_ack_delay: self.target_ack_delay,
            private_data: self.data.to_vec(),
            ..AcceptParams::new(qpn, self.peer.receives)
        };
        Ok(cm.accept(now, requested.id, &params)?)
    }
}

/// Makes what the connections of a path share.
fn prepare(hca: &mut Hca, path: &mut Path) -> Result<(), SetupError> {
    let depth = path.operations.len();
    let cq = hca.create_cq(COMPLETIONS.min(hca.config().max_cqe))?;
    hca.req_notify_cq(cq, false);
    path.cq = Some(cq);
    let memory = Memory::zeroed(ControlMemory::size(depth))?;
    let range = (&memory, 0, memory.len());
    let access = ib_hca::AccessFlags::LOCAL_WRITE;
    let mr = hca.reg_mr(path.pd, range, memory.address(), access)?;
    let key = hca.key(mr).expect("it was just made");
    path.control = Some(ControlMemory::new(memory, mr, key, depth));
    Ok(())
}

/// Checks that packets can and may go where a client wants them, and returns that way.
fn check_way(
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
    let (path, came) = (&requested.path, &requested.route);
    // Packets go to who has asked, and to nobody else whom he may name.
    if path.is_global && came.is_global && path.destination != came.destination {
        return Err(Refusal::Reason(RejectReason::PRIMARY_GID));
    }
    let source = if hca.config().gids.contains(&path.source) { path.source } else { came.source };
    Ok(Route { source, ..*path })
}

/// Returns the ends of the path that a client asks for.
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
