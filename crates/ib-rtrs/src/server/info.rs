//! Info requests: the proof of the shared key, the addresses of the chunks, and the start of sessions.

use ib_hca::{AccessFlags, Data, Hca, Memory, SendOp};
use ib_types::Instant;
use ib_wire::rtrs::{Descriptor, InfoHeader, InfoRequest, MessageType, Proof};
use rand::Rng;

use super::accept::INFO_RECEIVE;
use super::path::{ControlMemory, ProofState, State};
use super::{EndReason, Server, ServerEvent, ServerPathId, Session, Timer};
use crate::connection::{self, SetupError, WorkId};
use crate::connection::{Adapter, Adapters};
use crate::proof::{Prover, Transcript};

impl Server {
    /// Handles an info request, or a message of the proof that precedes it.
    pub(super) fn handle_info_request(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerPathId,
        length: usize,
    ) -> Result<(), EndReason> {
        let Some(path) = self.path_mut(id) else { return Ok(()) };
        if path.state != State::Connecting {
            return Err(EndReason::Protocol("a second info request"));
        }
        let control = path.control.as_ref().expect("paths with connections have control memory");
        let mut bytes = [0; InfoRequest::LENGTH];
        control
            .memory
            .read(control.info_request().0, &mut bytes)
            .expect("the control memory has the buffer");
        if path.proof != ProofState::Done {
            let proof =
                Proof::parse(bytes.first_chunk().expect("a proof is shorter than the buffer"));
            let is_proof = length == Proof::LENGTH && proof.message_type == MessageType::PROOF;
            return if is_proof {
                self.handle_proof(now, cx, id, &proof)
            } else {
                Err(EndReason::WrongKey)
            };
        }
        if length != InfoRequest::LENGTH {
            return Err(EndReason::Protocol("a message that is not an info request"));
        }
        let request = InfoRequest::parse(&bytes);
        let name = request.name();
        if request.message_type != MessageType::INFO_REQUEST
            || name.is_empty()
            || name.iter().any(|byte| b"/.".contains(byte))
        {
            return Err(EndReason::Protocol("an info request with an invalid session name"));
        }
        if path.connections.iter().any(Option::is_none) {
            return Err(EndReason::Protocol("an info request before the last connection"));
        }
        path.name = name.to_vec();
        path.state = State::InfoRequested;
        let (adapter, key) = (path.adapter, path.session);
        // The info request shows that the client has established all connections, even if its RTUs were lost.
        let connections: Vec<_> = path.connections.iter().flatten().map(|it| it.id).collect();
        if let Some(Adapter { cm, .. }) = cx.get(adapter) {
            for connection in connections {
                cm.message_received(connection).ok();
            }
        }
        self.respond_to_info_requests(now, cx, key);
        Ok(())
    }

    /// Handles the client's nonce or proof.
    fn handle_proof(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerPathId,
        proof: &Proof,
    ) -> Result<(), EndReason> {
        let Some(key) = self.config.key.clone() else { return Err(EndReason::Setup) };
        let mut nonce = [0; 32];
        self.rng.fill_bytes(&mut nonce);
        let session = self.path(id).and_then(|path| self.sessions.get(&path.session));
        let session = session.ok_or(EndReason::Setup)?.uuid;
        let path = self.path_mut(id).expect("`handle_info_request` has looked up the path");
        let qp = path.connections[0].ok_or(EndReason::Setup)?.qp;
        let Adapter { hca, .. } = cx.get(path.adapter).ok_or(EndReason::Setup)?;
        // This message has been read, so the client's next message is received in the same buffer.
        let control = path.control.as_ref().expect("paths with connections have control memory");
        let work = WorkId { connection: 0, index: INFO_RECEIVE };
        connection::receive(hca, now, qp, work, control.info_request().1)
            .map_err(|_| EndReason::Setup)?;
        match path.proof {
            ProofState::AwaitsNonce => {
                let (client_nonce, server_nonce) = (proof.nonce, nonce);
                let transcript =
                    Transcript { client_nonce, server_nonce, path: path.uuid, session };
                path.proof = ProofState::AwaitsProof { client_nonce, server_nonce };
                let data =
                    Data::Inline(Box::new(transcript.prove(&key, Prover::Server).to_bytes()));
                let op = SendOp::Send { imm: None };
                connection::send(hca, now, qp, op, data).map_err(|_| EndReason::Setup)
            }
            ProofState::AwaitsProof { client_nonce, server_nonce } => {
                let transcript =
                    Transcript { client_nonce, server_nonce, path: path.uuid, session };
                if !transcript.verify(&key, Prover::Client, proof) {
                    return Err(EndReason::WrongKey);
                }
                path.proof = ProofState::Done;
                Ok(())
            }
            ProofState::Done => Err(EndReason::Protocol("a second proof")),
        }
    }

    /// Responds to the info requests of a session, except those that still have to wait. An info request waits while
    /// a closed path with the same path UUID has outstanding requests. If no path of the session is connected, it waits
    /// while any closed path of the session has outstanding requests.
    pub(super) fn respond_to_info_requests(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        key: u32,
    ) {
        let Some(session) = self.sessions.get(&key) else { return };
        let paths = session.paths.iter().filter_map(|&index| self.paths[index as usize].as_deref());
        let (waiting, closed): (Vec<_>, Vec<_>) = paths
            .filter(|path| matches!(path.state, State::InfoRequested | State::Closed))
            .partition(|path| path.state == State::InfoRequested);
        // If no path is connected, the session restarts. Its old and new requests must not mix, so the info response
        // waits for the requests of all closed paths. If a path is connected, the session continues, and its client
        // knows which requests are in flight. Then only a closed path with the same UUID delays the info response.
        let is_ready = |uuid| !closed.iter().any(|it| session.up == 0 || it.uuid == uuid);
        let ready = waiting.iter().filter(|path| is_ready(path.uuid)).map(|path| path.id);
        for id in ready.collect::<Vec<ServerPathId>>() {
            if let Err(why) = self.connect_path(now, cx, id) {
                self.failed.push_back((id, why));
            }
        }
    }

    /// Sends the info response, which connects the path.
    fn connect_path(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerPathId,
    ) -> Result<(), EndReason> {
        let Some(path) = self.path(id) else { return Ok(()) };
        let (key, adapter, name) = (path.session, path.adapter, path.name.clone());
        let is_taken = |(other, session): (&u32, &Session)| {
            *other != key && session.up > 0 && session.name == name
        };
        if self.sessions.iter().any(is_taken) {
            return Err(EndReason::Protocol("an info request with the name of another session"));
        }
        if self.sessions.get(&key).is_some_and(|session| session.up == 0) {
            let epoch = self.rng.next_u32().max(1);
            self.sessions.get_mut(&key).expect("the session was looked up").epoch = epoch;
        }
        let Adapter { hca, .. } = cx.get(adapter).ok_or(EndReason::Setup)?;
        self.open_chunks(now, hca, id).map_err(|_| EndReason::Setup)?;
        let interval = self.config.heartbeats.interval;
        let path = self.path_mut(id).expect("`open_chunks` keeps the path");
        path.state = State::Connected;
        path.heartbeat.message_received();
        self.timers.stop((id, Timer::Connect));
        self.timers.set((id, Timer::Heartbeat), (), now + interval);
        let session = self.sessions.get_mut(&key).expect("paths have a session");
        session.up += 1;
        let begins = session.up == 1;
        if begins {
            session.incarnation = session.incarnation.wrapping_add(1);
            session.name.clone_from(&name);
        }
        let session = self.session_id(key).expect("paths have a session");
        if begins {
            self.events.push_back(ServerEvent::SessionUp { session, name });
        }
        self.events.push_back(ServerEvent::PathUp { session, path: id });
        Ok(())
    }

    /// Posts the receives of a path, gives its client access to the chunks, and sends the chunks' addresses.
    fn open_chunks(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        id: ServerPathId,
    ) -> Result<(), SetupError> {
        let Self { paths, sessions, config, .. } = self;
        let path =
            paths[id.index as usize].as_deref_mut().expect("`connect_path` has looked up the path");
        let Session { memory, epoch, .. } =
            sessions.get_mut(&path.session).expect("paths have a session");
        let depth = path.operations.len();
        let memory = match memory {
            Some(memory) => &*memory,
            // Each chunk has a second buffer, for READ data. READ data must not overwrite a retransmitted request that
            // arrives in the chunk while the first copy is outstanding.
            None => memory.insert(Memory::zeroed(2 * config.chunk_size() as usize * depth)?),
        };
        let control = path.control.as_ref().expect("paths with connections have control memory");
        let fences = path.fences();
        for (number, connection) in (0..).zip(path.connections.iter().flatten()) {
            let count = if number == 0 { ControlMemory::receives(depth) } else { depth };
            for index in 0..count {
                let (_, sge) = control.receive(index);
                let sge = if number == 0 && fences { sge } else { ib_hca::Sge::default() };
                let work = WorkId { connection: number, index: index as u32 };
                connection::receive(hca, now, connection.qp, work, sge)?;
            }
        }
        let size = config.chunk_size();
        let whole = (memory, 0, memory.len());
        let mr = hca.reg_mr(path.pd, whole, memory.address(), AccessFlags::default())?;
        path.send_region = Some((mr, hca.key(mr).expect("the region was just registered")));
        let (message_type, count) = (MessageType::INFO_RESPONSE, depth as u16);
        let epoch = if fences { *epoch } else { 0 };
        let header = InfoHeader { message_type, count, epoch };
        let mut bytes = header.to_bytes().to_vec();
        for chunk in 0..depth {
            let offset = chunk * size as usize;
            let address = memory.address() + offset as u64;
            let mr = hca.alloc_mr(path.pd)?;
            path.chunks.push(mr);
            let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
            let r_key = hca.open_mr(mr, (memory, offset, size as usize), address, access)?;
            bytes.extend(Descriptor { address, r_key, length: size }.to_bytes());
        }
        let (offset, sge) = control.info_response();
        control.memory.write(offset, &bytes).expect("the buffer has the length of the response");
        let qp = path.connections[0].as_ref().expect("all connections exist").qp;
        connection::send(hca, now, qp, SendOp::Send { imm: None }, Data::One(sge))?;
        Ok(())
    }
}
