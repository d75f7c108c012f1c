//! Where the chunks are: the session begins.

use ib_hca::{AccessFlags, Data, Hca, Memory, SendOp};
use ib_types::Instant;
use ib_wire::rtrs::{Descriptor, InfoHeader, InfoRequest, MessageType, Proof};
use rand::Rng;

use super::accept::QUESTION;
use super::path::{ControlMemory, Proving, State};
use super::{EndReason, Server, ServerEvent, ServerPathId, Session, Timer};
use crate::adapters::{Adapter, Adapters};
use crate::connection::{self, SetupError, WorkId};
use crate::proof::{Claim, Prover};

impl Server {
    /// A client asks for the chunks, or proves before that it knows the key.
    pub(super) fn take_question(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerPathId,
        length: usize,
    ) -> Result<(), EndReason> {
        let Some(path) = self.path_mut(id) else { return Ok(()) };
        if path.state != State::Connecting {
            return Err(EndReason::Protocol("a second question for chunks"));
        }
        let desk = path.control.as_ref().expect("it was received there");
        let mut bytes = [0; InfoRequest::LENGTH];
        desk.memory.read(desk.question().0, &mut bytes).expect("it was received there");
        if path.proof != Proving::Done {
            let proof = Proof::parse(bytes.first_chunk().expect("it is shorter"));
            let is_one = length == Proof::LENGTH && proof.message_type == MessageType::PROOF;
            return if is_one {
                self.take_proof(now, cx, id, &proof)
            } else {
                Err(EndReason::Unproven)
            };
        }
        if length != InfoRequest::LENGTH {
            return Err(EndReason::Protocol("something else than a question for chunks"));
        }
        let request = InfoRequest::parse(&bytes);
        let name = request.name();
        if request.message_type != MessageType::INFO_REQUEST
            || name.is_empty()
            || name.iter().any(|byte| b"/.".contains(byte))
        {
            return Err(EndReason::Protocol("a question for chunks that makes no sense"));
        }
        if path.connections.iter().any(Option::is_none) {
            return Err(EndReason::Protocol("a question for chunks before its last connection"));
        }
        path.name = name.to_vec();
        path.state = State::Asked;
        let (adapter, key) = (path.adapter, path.session);
        // The client has all its connections, whatever has become of their last messages.
        let connections: Vec<_> = path.connections.iter().flatten().map(|it| it.id).collect();
        if let Some(Adapter { cm, .. }) = cx.get(adapter) {
            for connection in connections {
                cm.message_received(connection).ok();
            }
        }
        self.answer_questions(now, cx, key);
        Ok(())
    }

    /// A client sends its random number, or its proof.
    fn take_proof(
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
        let path = self.path_mut(id).expect("it was just there");
        let qp = path.connections[0].ok_or(EndReason::Setup)?.qp;
        let Adapter { hca, .. } = cx.get(path.adapter).ok_or(EndReason::Setup)?;
        // The next message comes into the same place.
        let desk = path.control.as_ref().expect("it was received there");
        let work = WorkId { connection: 0, index: QUESTION };
        connection::receive(hca, now, qp, work, desk.question().1).map_err(|_| EndReason::Setup)?;
        match path.proof {
            Proving::Hello => {
                let (client, server) = (proof.nonce, nonce);
                let claim = Claim { client, server, path: path.uuid, session };
                path.proof = Proving::Asked { client, server };
                let data = Data::Inline(Box::new(claim.prove(&key, Prover::Server).to_bytes()));
                let op = SendOp::Send { imm: None };
                connection::send(hca, now, qp, op, data).map_err(|_| EndReason::Setup)
            }
            Proving::Asked { client, server } => {
                let claim = Claim { client, server, path: path.uuid, session };
                if !claim.is_proven(&key, Prover::Client, proof) {
                    return Err(EndReason::Unproven);
                }
                path.proof = Proving::Done;
                Ok(())
            }
            Proving::Done => Err(EndReason::Protocol("a second proof")),
        }
    }

    /// Responds to clients that have queried the chunks of a session, once no request of an earlier session is in flight.
    pub(super) fn answer_questions(&mut self, now: Instant, cx: &mut impl Adapters, key: u32) {
        let Some(session) = self.sessions.get(&key) else { return };
        let paths = session.paths.iter().filter_map(|&index| self.paths[index as usize].as_deref());
        let (asked, dead): (Vec<_>, Vec<_>) = paths
            .filter(|path| matches!(path.state, State::Asked | State::Dead))
            .partition(|path| path.state == State::Asked);
        // Requests of an ended session must not mix with those of the next session. While a path is connected, the
        // session continues, and its client knows which requests are in flight.
        let is_free = |uuid| !dead.iter().any(|dead| session.up == 0 || dead.uuid == uuid);
        let free = asked.iter().filter(|path| is_free(path.uuid)).map(|path| path.id);
        for id in free.collect::<Vec<ServerPathId>>() {
            if let Err(why) = self.answer_question(now, cx, id) {
                self.failed.push_back((id, why));
            }
        }
    }

    fn answer_question(
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
            return Err(EndReason::Protocol("the name of another session"));
        }
        if self.sessions.get(&key).is_some_and(|session| session.up == 0) {
            let epoch = self.rng.next_u32().max(1);
            self.sessions.get_mut(&key).expect("it was just there").epoch = epoch;
        }
        let Adapter { hca, .. } = cx.get(adapter).ok_or(EndReason::Setup)?;
        self.open_chunks(now, hca, id).map_err(|_| EndReason::Setup)?;
        let interval = self.config.heartbeats.interval;
        let path = self.path_mut(id).expect("it was just there");
        path.state = State::Connected;
        path.heartbeat.heard();
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

    /// Posts the receives of a path, opens the chunks to it and says where they are.
    fn open_chunks(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        id: ServerPathId,
    ) -> Result<(), SetupError> {
        let Self { paths, sessions, config, .. } = self;
        let path = paths[id.index as usize].as_deref_mut().expect("it was just there");
        let Session { memory, epoch, .. } =
            sessions.get_mut(&path.session).expect("paths have one");
        let depth = path.operations.len();
        let memory = match memory {
            Some(memory) => &*memory,
            // Reads need a second buffer of the same size: a client may repeat a request in the same chunk while the first one
            // is outstanding, and that request must not be overwritten.
            None => memory.insert(Memory::zeroed(2 * config.chunk_size() as usize * depth)?),
        };
        let desk = path.control.as_ref().expect("it has connections");
        let fences = path.fences();
        for (number, connection) in (0..).zip(path.connections.iter().flatten()) {
            let count = if number == 0 { ControlMemory::receives(depth) } else { depth };
            for index in 0..count {
                let (_, sge) = desk.receive(index);
                let sge = if number == 0 && fences { sge } else { ib_hca::Sge::default() };
                let work = WorkId { connection: number, index: index as u32 };
                connection::receive(hca, now, connection.qp, work, sge)?;
            }
        }
        let size = config.chunk_size();
        let whole = (memory, 0, memory.len());
        let mr = hca.reg_mr(path.pd, whole, memory.address(), AccessFlags::default())?;
        path.whole = Some((mr, hca.key(mr).expect("it was just made")));
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
        let (offset, sge) = desk.answer();
        desk.memory.write(offset, &bytes).expect("it has room for all chunks");
        let qp = path.connections[0].as_ref().expect("all are there").qp;
        connection::send(hca, now, qp, SendOp::Send { imm: None }, Data::One(sge))?;
        Ok(())
    }
}
