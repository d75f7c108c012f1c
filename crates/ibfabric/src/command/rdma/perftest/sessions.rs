//! The server of perftest's protocol.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;
use std::net::SocketAddr;

use ib_cm::ConnectionId;
use ib_device::{Endpoint, EndpointOptions, Request, gid_of};
use ib_hca::{AccessFlags, PdId, RemoteAddress, SendOp, Wc, WcOpcode, WcStatus};
use ib_os::clock;
use ib_types::Qpn;

use super::wire::{Keys, Rates, check, opening};
use super::{OPENING, Step};
use crate::cli::rdma::PerftestArg;
use crate::command::rdma::stage::{Buffer, Stage, checked};
use crate::failure::Failure;
use crate::output::Output;

/// Maximum message size in bytes, unless --perftest-size is larger. It is the largest size that perftest's
/// option `-a` measures.
const LONGEST: usize = 1 << 23;

/// Number of receives that are posted to each queue pair, as by perftest.
const RECEIVES: u32 = 512;

/// One of this many replies is signaled, i.e. causes a completion.
const SIGNALED: u64 = 64;

/// Offsets within a control connection's buffer at which received and sent messages are stored.
const IN: usize = 0;
const OUT: usize = 64;

/// All perftest clients of the server.
pub(in super::super) struct Sessions {
    program: PerftestArg,
    /// Message size of `ib_write_lat` in bytes: the value of --perftest-size, since the client does not send the size.
    size: usize,
    sessions: BTreeMap<ConnectionId, Session>,
    by_number: BTreeMap<Qpn, ConnectionId>,
}

/// A client of perftest, with the resources that the server holds for it.
struct Session {
    /// The protection domain of the client's objects.
    pd: PdId,
    program: PerftestArg,
    peer: SocketAddr,
    control: Endpoint,
    buffer: Buffer,
    /// The next steps of the protocol that the server expects, in order.
    steps: VecDeque<Step>,
    queue_pairs: Vec<Endpoint>,
    /// The buffer that the client's requests write and read, followed by the buffer from which the server sends.
    /// `None` before the first measured connection.
    memory: Option<Buffer>,
    room: usize,
    size: usize,
    remote: RemoteAddress,
    rates: Rates,
    /// Number of messages that the server has received from this client.
    received: u64,
    /// Size in bytes of the last message that the server received from this client.
    length: u32,
    /// Number of messages that the server has sent to this client.
    answered: u64,
}

impl Sessions {
    pub(in super::super) const fn new(program: PerftestArg, size: usize) -> Self {
        Self { program, size, sessions: BTreeMap::new(), by_number: BTreeMap::new() }
    }

    /// Accepts a connection: a measured connection if a client at the same address is between the steps `Meet` and
    /// `Met`, else a control connection.
    pub(in super::super) fn accept(
        &mut self,
        stage: &mut Stage,
        request: &Request,
    ) -> Result<Endpoint, Failure> {
        let awaiting = self.sessions.iter_mut().find(|(_, it)| {
            it.peer.ip() == request.peer.ip() && it.steps.front() == Some(&Step::Met)
        });
        let (id, endpoint) = if let Some((id, session)) = awaiting {
            (*id, session.connect(stage, request)?)
        } else {
            let pd = stage.begin_session()?;
            let session = Session::accept(stage, request, pd, (self.program, self.size));
            let session = session.inspect_err(|_| stage.end_session(pd))?;
            let endpoint = session.control.clone();
            self.sessions.insert(endpoint.connection, session);
            (endpoint.connection, endpoint)
        };
        self.by_number.insert(stage.number(endpoint.qp), id);
        Ok(endpoint)
    }

    /// Returns true if a queue pair belongs to a perftest client.
    pub(in super::super) fn has(&self, number: Qpn) -> bool {
        self.by_number.contains_key(&number)
    }

    /// Processes a completion.
    ///
    /// A protocol error is returned after the client's objects have been destroyed.
    pub(in super::super) fn complete(
        &mut self,
        stage: &mut Stage,
        wc: &Wc,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let Some(&id) = self.by_number.get(&wc.qp_num) else { return Ok(()) };
        let session =
            self.sessions.get_mut(&id).expect("`by_number` has only connections with a session");
        let advanced = match wc.status {
            WcStatus::WrFlushErr => Ok(()),
            _ => checked(*wc, session.peer).and_then(|wc| session.advance(stage, &wc, out)),
        };
        if advanced.is_err() {
            // Disconnecting fails only if the client has already disconnected.
            stage.device.cm().disconnect(clock::now(), id, b"").ok();
            self.forget(stage, id);
        }
        advanced
    }

    /// Destroys a client's objects when its control connection has ended. Returns false for any other connection.
    /// Fails if the client disconnected before the last step.
    pub(in super::super) fn end(
        &mut self,
        stage: &mut Stage,
        id: ConnectionId,
        out: &mut Output,
    ) -> Result<bool, Failure> {
        let Some(session) = self.forget(stage, id) else { return Ok(false) };
        match session.steps.front() {
            None if session.program == PerftestArg::WriteLat => session.print(out).map(|()| true),
            None => Ok(true),
            Some(step) => {
                let message = format!("disconnected before it sent {} of perftest", step.name());
                Err(session.wrong(&message))
            }
        }
    }

    /// Destroys the objects of a client.
    fn forget(&mut self, stage: &mut Stage, id: ConnectionId) -> Option<Session> {
        let session = self.sessions.remove(&id)?;
        self.by_number.retain(|_, other| *other != id);
        for endpoint in session.queue_pairs.iter().chain([&session.control]) {
            stage.destroy(endpoint.qp);
        }
        for buffer in session.memory.iter().chain([&session.buffer]) {
            stage.forget(buffer);
        }
        stage.end_session(session.pd);
        Some(session)
    }

    /// Returns true if a client sends RDMA WRITEs and expects replies, so that its buffer has to be polled.
    pub(in super::super) fn are_watched(&self) -> bool {
        self.sessions.values().any(Session::is_watched)
    }

    /// Returns the connections of all clients.
    pub(in super::super) fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        let of = |session: &Session| -> Vec<ConnectionId> {
            let all = session.queue_pairs.iter().chain([&session.control]);
            all.map(|endpoint| endpoint.connection).collect()
        };
        self.sessions.values().flat_map(of)
    }

    /// Replies to RDMA WRITEs of clients. Returns true if the server sent an RDMA WRITE. Also returns an error for each
    /// client to which no reply could be posted, disconnects these clients, and destroys their objects.
    pub(in super::super) fn watch(&mut self, stage: &mut Stage) -> (bool, Vec<Failure>) {
        let (mut moved, mut wrong) = (false, Vec::new());
        for (id, session) in self.sessions.iter_mut().filter(|(_, session)| session.is_watched()) {
            match session.watch(stage) {
                Ok(some) => moved |= some,
                Err(error) => wrong.push((*id, error)),
            }
        }
        let ended = |(id, error): (ConnectionId, Failure)| {
            // Disconnecting fails only if the client has already disconnected.
            stage.device.cm().disconnect(clock::now(), id, b"").ok();
            self.forget(stage, id);
            error
        };
        (moved, wrong.into_iter().map(ended).collect())
    }
}

impl Session {
    fn accept(
        stage: &mut Stage,
        request: &Request,
        pd: PdId,
        (program, size): (PerftestArg, usize),
    ) -> Result<Self, Failure> {
        let qp = stage.queue_pair(4, 4)?;
        stage.device.prepare(qp, AccessFlags::default()).map_err(Failure::unusable)?;
        let buffer = stage.buffer(2 * OUT)?;
        stage.post_receive(qp, 0, buffer.data(IN, OUT))?;
        let control = stage.accept((qp, &buffer), request, &EndpointOptions::default())?;
        Ok(Self {
            pd,
            program,
            peer: control.peer,
            control,
            buffer,
            steps: OPENING.into_iter().chain([Step::Met]).collect(),
            queue_pairs: Vec::new(),
            memory: None,
            room: LONGEST.max(size),
            size,
            remote: RemoteAddress { addr: 0, rkey: 0 },
            rates: Rates::default(),
            received: 0,
            length: 0,
            answered: 0,
        })
    }

    /// Accepts a measured connection.
    fn connect(&mut self, stage: &mut Stage, request: &Request) -> Result<Endpoint, Failure> {
        if self.program.is_latency() && !self.queue_pairs.is_empty() {
            return Err(self.wrong("found several queue pairs, expected one for latency"));
        }
        stage.pd = self.pd;
        let memory = match self.memory.take() {
            Some(memory) => memory,
            None => stage.buffer(2 * self.room)?,
        };
        let memory = self.memory.insert(memory);
        let qp = stage.queue_pair(RECEIVES, RECEIVES)?;
        stage.device.prepare(qp, AccessFlags::ALL).map_err(Failure::unusable)?;
        if self.program.sends() {
            for _ in 0..RECEIVES {
                stage.post_receive(qp, 0, memory.data(0, self.room))?;
            }
        }
        let accepted = stage.device.accept(qp, request, &EndpointOptions::default());
        match accepted {
            Ok(endpoint) => {
                self.queue_pairs.push(endpoint.clone());
                Ok(endpoint)
            }
            Err(error) => {
                stage.destroy(qp);
                Err(Failure::unusable(error))
            }
        }
    }

    fn advance(&mut self, stage: &mut Stage, wc: &Wc, out: &mut Output) -> Result<(), Failure> {
        if wc.opcode != WcOpcode::Recv {
            return Ok(());
        }
        if stage.number(self.control.qp) == wc.qp_num {
            return self.answer(stage, wc, out);
        }
        self.received += 1;
        self.length = wc.byte_len;
        let found = self.queue_pairs.iter().position(|it| stage.number(it.qp) == wc.qp_num);
        let qp =
            self.queue_pairs[found.expect("the completion belongs to a measured queue pair")].qp;
        let memory = self.memory.as_ref().expect("`connect` allocated the memory");
        stage.post_receive(qp, 0, memory.data(0, self.room))?;
        if self.program == PerftestArg::SendLat {
            self.answered += 1;
            let signaled = self.answered.is_multiple_of(SIGNALED);
            let data = memory.data(self.room, wc.byte_len as usize);
            stage.post(qp, (0, signaled), SendOp::Send { imm: None }, data)?;
        }
        Ok(())
    }

    /// Processes a message on the control connection, and replies.
    fn answer(&mut self, stage: &mut Stage, wc: &Wc, out: &mut Output) -> Result<(), Failure> {
        let Some(step) = self.steps.pop_front() else {
            return Err(self.wrong("found a message after the last step of perftest"));
        };
        let said = self
            .buffer
            .memory
            .to_vec(IN, wc.byte_len as usize)
            .expect("the range is within the region");
        check(step, &said).map_err(|error| self.wrong(&error))?;
        let answer = match step {
            Step::Met if self.queue_pairs.is_empty() => {
                return Err(self.wrong("found no connection to measure"));
            }
            Step::Met => {
                let program = self.program;
                self.steps.extend(program.meeting(self.queue_pairs.len()));
                self.steps.extend(program.parting());
                vec![0; step.length()]
            }
            Step::Keys(at) => {
                let keys = Keys::parse(&said);
                self.remote = RemoteAddress { addr: keys.vaddr, rkey: keys.rkey };
                self.keys(stage, at).to_bytes()
            }
            Step::Report(at) => {
                self.rates.take(at, said.try_into().expect("a report message has 8 bytes"));
                self.rates.number(at).to_vec()
            }
            _ => opening(step, self.control.mtu),
        };
        let qp = self.control.qp;
        stage.post_receive(qp, 0, self.buffer.data(IN, OUT))?;
        self.buffer.memory.write(OUT, &answer).expect("the range is within the region");
        let data = self.buffer.data(OUT, answer.len());
        stage.post(qp, (0, false), SendOp::Send { imm: None }, data)?;
        if step == Step::Close { self.print(out) } else { Ok(()) }
    }

    fn keys(&self, stage: &mut Stage, at: usize) -> Keys {
        let memory = self.memory.as_ref().expect("`connect` allocated the memory").remote();
        Keys {
            out_reads: EndpointOptions::default().responder_resources.into(),
            qpn: stage.number(self.queue_pairs[at].qp).get(),
            rkey: memory.rkey,
            vaddr: memory.addr,
            gid: gid_of(stage.device.address()).0,
            ..Keys::default()
        }
    }

    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let (peer, program) = (self.peer, self.program.name());
        let Rates { size, iters, average, messages, .. } = self.rates;
        match self.program {
            PerftestArg::WriteBw | PerftestArg::ReadBw => writeln!(
                out,
                "{peer}: {program}, {size} bytes, {iters} iterations, {average:.2} MiB/s, {messages:.6} Mpps"
            )?,
            PerftestArg::SendBw | PerftestArg::SendLat => {
                let (received, length) = (self.received, self.length);
                writeln!(out, "{peer}: {program}, {length} bytes, {received} messages")?;
            }
            PerftestArg::WriteLat => {
                let (received, size) = (self.received, self.size);
                writeln!(out, "{peer}: {program}, {size} bytes, {received} messages")?;
            }
            PerftestArg::ReadLat => writeln!(out, "{peer}: {program}")?,
        }
        out.flush()?;
        Ok(())
    }

    fn is_watched(&self) -> bool {
        self.program == PerftestArg::WriteLat && self.steps.is_empty()
    }

    /// Polls for the client's next RDMA WRITE, and replies with an RDMA WRITE. Returns true if the server sent one.
    ///
    /// The last byte of each write is a count: N in the client's write N, and N + 1 in the reply, since the server
    /// makes the first write. The server does not know the number of messages, so it also replies to the last
    /// message, and the client ignores this reply.
    fn watch(&mut self, stage: &mut Stage) -> Result<bool, Failure> {
        let memory = self.memory.as_ref().expect("`connect` allocated the memory");
        if self.answered > 0 {
            let last =
                memory.memory.to_vec(self.size - 1, 1).expect("the range is within the region")[0];
            if last != self.answered as u8 {
                return Ok(false);
            }
            self.received += 1;
        }
        self.answered += 1;
        let end = self.room + self.size - 1;
        memory.memory.fill(end, 1, self.answered as u8).expect("the range is within the region");
        let signaled = self.answered.is_multiple_of(SIGNALED);
        let data = memory.data(self.room, self.size);
        let op = SendOp::Write { to: self.remote, imm: None };
        stage.post(self.queue_pairs[0].qp, (0, signaled), op, data)?;
        Ok(true)
    }

    fn wrong(&self, what: &str) -> Failure {
        Failure::Unusable(format!("{}: {what}", self.peer))
    }
}
