//! The server's side.

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

/// The longest message, unless a longer one is asked for: what perftest's `-a` ends with.
const LONGEST: usize = 1 << 23;

/// How many receives a queue pair has: as many as perftest's.
const RECEIVES: u32 = 512;

/// Every so many answers one completion is asked for.
const SIGNALED: u64 = 64;

/// Where things are in the buffer of a control connection: messages that come in and messages that go out.
const IN: usize = 0;
const OUT: usize = 64;

/// All clients.
pub(in super::super) struct Sessions {
    program: PerftestArg,
    /// The size of a message that clients do not tell.
    size: usize,
    sessions: BTreeMap<ConnectionId, Session>,
    by_number: BTreeMap<Qpn, ConnectionId>,
}

/// A client.
struct Session {
    /// What only its own objects belong to.
    pd: PdId,
    program: PerftestArg,
    peer: SocketAddr,
    control: Endpoint,
    buffer: Buffer,
    /// What it says next.
    steps: VecDeque<Step>,
    queue_pairs: Vec<Endpoint>,
    /// What is written to and read from, and behind that what is sent from.
    memory: Option<Buffer>,
    room: usize,
    size: usize,
    remote: RemoteAddress,
    rates: Rates,
    /// How many messages have come, and how long the last one was.
    received: u64,
    length: u32,
    /// How many messages were sent.
    answered: u64,
}

impl Sessions {
    pub(in super::super) const fn new(program: PerftestArg, size: usize) -> Self {
        Self { program, size, sessions: BTreeMap::new(), by_number: BTreeMap::new() }
    }

    /// Accepts a connection: one to be measured when its client is about to make them, else that of a new client.
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

    /// Returns whether a queue pair is one of these.
    pub(in super::super) fn has(&self, number: Qpn) -> bool {
        self.by_number.contains_key(&number)
    }

    /// Goes on after a completion.
    ///
    /// The error of a client that is not understood is returned after everything of it has gone.
    pub(in super::super) fn complete(
        &mut self,
        stage: &mut Stage,
        wc: &Wc,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let Some(&id) = self.by_number.get(&wc.qp_num) else { return Ok(()) };
        let session = self.sessions.get_mut(&id).expect("its queue pairs go with it");
        let advanced = match wc.status {
            WcStatus::WrFlushErr => Ok(()),
            _ => checked(*wc, session.peer).and_then(|wc| session.advance(stage, &wc, out)),
        };
        if advanced.is_err() {
            // The other end may have gone by itself.
            stage.device.cm().disconnect(clock::now(), id, b"").ok();
            self.forget(stage, id);
        }
        advanced
    }

    /// A connection has ended; returns whether that of a client has, or that it had more to say.
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
                let message = format!("it has gone before it said {} of perftest", step.name());
                Err(session.wrong(&message))
            }
        }
    }

    /// Takes away what a client has.
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

    /// Returns whether somebody writes into memory and waits to be answered.
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

    /// Answers what was written. The errors are those of clients that are not understood, of which everything has
    /// gone then.
    pub(in super::super) fn watch(&mut self, stage: &mut Stage) -> (bool, Vec<Failure>) {
        let (mut moved, mut wrong) = (false, Vec::new());
        for (id, session) in self.sessions.iter_mut().filter(|(_, session)| session.is_watched()) {
            match session.watch(stage) {
                Ok(some) => moved |= some,
                Err(error) => wrong.push((*id, error)),
            }
        }
        let ended = |(id, error): (ConnectionId, Failure)| {
            // The other end may have gone by itself.
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

    /// Accepts a connection that is measured.
    fn connect(&mut self, stage: &mut Stage, request: &Request) -> Result<Endpoint, Failure> {
        if self.program.is_latency() && !self.queue_pairs.is_empty() {
            return Err(self.wrong("latency is that of one queue pair"));
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
        let qp = self.queue_pairs[found.expect("it is one of them")].qp;
        let memory = self.memory.as_ref().expect("it has queue pairs");
        stage.post_receive(qp, 0, memory.data(0, self.room))?;
        if self.program == PerftestArg::SendLat {
            self.answered += 1;
            let signaled = self.answered.is_multiple_of(SIGNALED);
            let data = memory.data(self.room, wc.byte_len as usize);
            stage.post(qp, (0, signaled), SendOp::Send { imm: None }, data)?;
        }
        Ok(())
    }

    /// Answers what the client says.
    fn answer(&mut self, stage: &mut Stage, wc: &Wc, out: &mut Output) -> Result<(), Failure> {
        let Some(step) = self.steps.pop_front() else {
            return Err(self.wrong("it has more to say than perftest has"));
        };
        let said = self.buffer.memory.to_vec(IN, wc.byte_len as usize).expect("it had a place");
        check(step, &said).map_err(|error| self.wrong(&error))?;
        let answer = match step {
            Step::Met if self.queue_pairs.is_empty() => {
                return Err(self.wrong("it has made no connection to measure"));
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
                self.rates.take(at, said.try_into().expect("8 bytes"));
                self.rates.number(at).to_vec()
            }
            _ => opening(step, self.control.mtu),
        };
        let qp = self.control.qp;
        stage.post_receive(qp, 0, self.buffer.data(IN, OUT))?;
        self.buffer.memory.write(OUT, &answer).expect("it has a place");
        let data = self.buffer.data(OUT, answer.len());
        stage.post(qp, (0, false), SendOp::Send { imm: None }, data)?;
        if step == Step::Close { self.print(out) } else { Ok(()) }
    }

    fn keys(&self, stage: &mut Stage, at: usize) -> Keys {
        let memory = self.memory.as_ref().expect("it has queue pairs").remote();
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

    /// Looks at the last byte of what is written, which counts, and answers a new one by the next number.
    ///
    /// The server writes first. How many messages there are it does not know: the last one is answered, too,
    /// which a client does not see.
    fn watch(&mut self, stage: &mut Stage) -> Result<bool, Failure> {
        let memory = self.memory.as_ref().expect("it has queue pairs");
        if self.answered > 0 {
            let last = memory.memory.to_vec(self.size - 1, 1).expect("it has that size")[0];
            if last != self.answered as u8 {
                return Ok(false);
            }
            self.received += 1;
        }
        self.answered += 1;
        let end = self.room + self.size - 1;
        memory.memory.fill(end, 1, self.answered as u8).expect("it has that size");
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
