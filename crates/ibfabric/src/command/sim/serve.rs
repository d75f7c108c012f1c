//! The loop that joins the simulated fabric to the sockets of its clients.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant as WallClock};

use ib_link::{Datagram, Incoming, Remote};
use ib_net::console::ConsoleServer;
use ib_net::ibsim::message::{Connect, Request, TIMED_OUT, kind};
use ib_net::ibsim::server::{Address, Input, Server, Ticket};
use ib_net::signals::Termination;
use ib_sim::{Addresses, ClientId, ClientOptions, Sim};
use ib_types::{Instant, QKey, Qpn};
use ib_wire::mad::Mad;

use super::capture::Capture;
use super::record::{Log, Recorder};
use super::{control, query};
use crate::cli::sim::ServeArgs;
use crate::failure::{Failure, Verdict, say};
use crate::output::Output;

/// The keys of watched files: the signals, the console's listener, and its connections behind.
const SIGNALS: usize = 0;
const CONSOLE: usize = 1;

/// A fabric with its sockets.
pub(super) struct Serving {
    pub(super) sim: Sim,
    pub(super) addresses: Addresses,
    pub(super) server: Server,
    pub(super) console: ConsoleServer,
    /// The fabric's number of each client of the server.
    pub(super) clients: BTreeMap<u32, ClientId>,
    numbers: BTreeMap<ClientId, u32>,
    started: WallClock,
    recorder: Option<Recorder>,
    log: Option<Log>,
    capture: Option<Capture>,
    pub(super) ends: bool,
}

impl Serving {
    pub(super) fn new(
        sim: Sim,
        addresses: Addresses,
        server: Server,
        args: &ServeArgs,
    ) -> Result<Self, Failure> {
        let base = match server.address() {
            Address::Name(name) => name.clone(),
            Address::Port(port) => port.to_string(),
        };
        let console = ConsoleServer::bind(&base).map_err(|error| {
            Failure::Unusable(format!("cannot listen on @{base}:console: {error}"))
        })?;
        Ok(Self {
            sim,
            addresses,
            server,
            console,
            clients: BTreeMap::new(),
            numbers: BTreeMap::new(),
            started: WallClock::now(),
            recorder: args.record.as_deref().map(Recorder::create).transpose()?,
            log: args.log.as_deref().map(Log::create).transpose()?,
            capture: args.pcap.as_deref().map(Capture::create).transpose()?,
            ends: false,
        })
    }

    /// Serves until the process is asked to end.
    pub(super) fn run(mut self, output: &mut Output) -> Result<Verdict, Failure> {
        let failed = |error| Failure::Unusable(format!("cannot serve clients: {error}"));
        let signals = Termination::catch().map_err(failed)?;
        self.server.watch(signals.as_fd(), SIGNALS).map_err(failed)?;
        self.server.watch(self.console.as_fd(), CONSOLE).map_err(failed)?;
        writeln!(output, "READY")?;
        output.flush()?;
        while !self.ends {
            let limit = self.sim.next_at().map(|at| at.since(self.now()));
            self.server.wait(limit.map(|limit| limit + Duration::from_nanos(1))).map_err(failed)?;
            self.round()?;
        }
        let now = self.now();
        self.sim.settle(now);
        self.write_out()?;
        if let Some(capture) = self.capture.take() {
            capture.finish()?;
        }
        if let Some(recorder) = self.recorder.take() {
            recorder.finish(now)?;
        }
        Ok(Verdict::Good)
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    /// Takes what has arrived, lets the fabric work, and hands out what comes of it.
    fn round(&mut self) -> Result<(), Failure> {
        let now = self.now();
        self.sim.settle(now);
        if let Some(recorder) = &mut self.recorder {
            recorder.begin(now);
        }
        while let Some(input) = self.server.next() {
            self.take(input)?;
        }
        self.sim.settle(now);
        while let Some(client) = self.sim.next_woken() {
            self.hand_out(client);
        }
        self.server.flush();
        self.write_out()
    }

    fn take(&mut self, input: Input) -> Result<(), Failure> {
        match input {
            Input::Connect { ticket, connect } => self.connect(&ticket, &connect)?,
            Input::Control { client, message } => {
                if let Some(&id) = self.clients.get(&client) {
                    if message.kind == kind::SET_IS_SM {
                        let is_sm = control::flag(&message);
                        self.sim.set_is_sm(id, is_sm);
                        self.record(|recorder| recorder.set_is_sm(id, is_sm))?;
                    }
                    let answer = control::answer(&self.sim, id, &message);
                    self.server.answer(client, &answer);
                }
            }
            Input::Request { client, request } => self.request(client, &request)?,
            Input::Gone { client } => {
                if let Some(id) = self.clients.remove(&client) {
                    self.numbers.remove(&id);
                    self.sim.detach(id);
                    self.record(|recorder| recorder.detach(id))?;
                }
            }
            Input::Readable(SIGNALS) => self.ends = true,
            Input::Readable(CONSOLE) => {
                for key in self.console.accept() {
                    let watched = self
                        .console
                        .file(key)
                        .is_some_and(|file| self.server.watch(file, CONSOLE + key).is_ok());
                    if !watched {
                        self.console.close(key);
                    }
                }
            }
            Input::Readable(key) => self.read_console(key)?,
        }
        Ok(())
    }

    fn connect(&mut self, ticket: &Ticket, connect: &Connect) -> Result<(), Failure> {
        let port = if connect.node.is_empty() {
            self.sim.first_end_port()
        } else {
            self.sim.find_node(&connect.node).and_then(|node| self.sim.end_port(node))
        };
        let Some(port) = port else {
            say!("refused client {}: there is no node {:?}", connect.id, connect.node);
            self.server.refuse(ticket);
            return Ok(());
        };
        let (node, _) = self.sim.place(port);
        let name = self.sim.node_name(node).to_owned();
        let options = ClientOptions {
            is_sm: connect.is_sm,
            queue_pair: connect.queue_pair,
            told_of_losses: true,
        };
        let id = match self.sim.attach(port, options) {
            Ok(id) => id,
            Err(error) => {
                say!("refused client {}: {error}", connect.id);
                self.server.refuse(ticket);
                return Ok(());
            }
        };
        self.record(|recorder| recorder.attach(id, port, options))?;
        match self.server.accept(ticket, &name) {
            Ok(number) => {
                self.clients.insert(number, id);
                self.numbers.insert(id, number);
            }
            Err(error) => {
                say!("refused client {}: {error}", connect.id);
                self.sim.detach(id);
                self.record(|recorder| recorder.detach(id))?;
            }
        }
        Ok(())
    }

    fn request(&mut self, client: u32, request: &Request) -> Result<(), Failure> {
        let Some(&id) = self.clients.get(&client) else { return Ok(()) };
        let datagram = datagram(request);
        self.sim.submit(id, &datagram);
        self.sim.settle(self.sim.now());
        self.record(|recorder| recorder.submit(id, &datagram))
    }

    /// Hands a client what has come for it.
    fn hand_out(&mut self, id: ClientId) {
        let Some(&number) = self.numbers.get(&id) else { return };
        while let Some(incoming) = self.sim.receive(id) {
            let lid = self.sim.client_port(id).map_or(0, |port| self.sim.port_info(port).lid);
            self.server.send(number, &message(&incoming, lid));
        }
    }

    fn read_console(&mut self, key: usize) -> Result<(), Failure> {
        let connection = key - CONSOLE;
        let (lines, ended) = self.console.read(connection);
        for line in lines {
            let (reply, command) = query::execute(self, &line);
            if let Some(command) = command {
                self.record(|recorder| recorder.command(&command))?;
            }
            let answer = serde_json::to_string(&reply).map_err(Failure::unusable)?;
            if self.console.answer(connection, &answer).is_err() {
                break;
            }
        }
        if ended {
            // The file has to be open to be unwatched; one that cannot be was not watched.
            let _ = self.server.unwatch(key);
            self.console.close(connection);
        }
        Ok(())
    }

    fn record(
        &mut self,
        write: impl FnOnce(&mut Recorder) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.recorder.as_mut().map_or(Ok(()), write)
    }

    /// Writes what has happened to the files that were asked for.
    fn write_out(&mut self) -> Result<(), Failure> {
        if let Some(log) = &mut self.log {
            log.write(&self.sim.take_log())?;
        }
        if let Some(capture) = &mut self.capture {
            capture.write(&mut self.sim)?;
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.flush()?;
        }
        Ok(())
    }

    /// Detaches a client by its number at the server.
    pub(super) fn drop_client(&mut self, number: u32) -> bool {
        let known = self.clients.contains_key(&number);
        if known {
            self.server.disconnect(number);
        }
        known
    }
}

/// Returns the datagram that a client's message carries.
fn datagram(request: &Request) -> Datagram {
    let smp = request.destination_queue_pair == 0;
    let remote = if smp { Remote::smi(request.dlid) } else { Remote::gsi(request.dlid) };
    Datagram {
        remote: Remote {
            qpn: Qpn::truncated(request.destination_queue_pair),
            q_key: if smp { QKey(0) } else { QKey::GSI },
            ..remote
        },
        local_qpn: Qpn::truncated(request.source_queue_pair),
        length: request.length,
        mad: Mad(request.mad),
    }
}

/// Returns the message for a client to which something has come; `lid` is its port's.
fn message(incoming: &Incoming, lid: u16) -> Request {
    match incoming {
        Incoming::Received(datagram) => Request {
            dlid: if datagram.remote.lid == 0xffff {
                0xffff
            } else {
                lid | u16::from(datagram.remote.path_bits)
            },
            slid: datagram.remote.lid,
            destination_queue_pair: datagram.local_qpn.get(),
            source_queue_pair: datagram.remote.qpn.get(),
            status: 0,
            length: datagram.length,
            mad: datagram.mad.0,
        },
        Incoming::Lost(datagram) => Request {
            dlid: datagram.remote.lid,
            slid: if datagram.remote.lid == 0xffff { 0xffff } else { lid },
            destination_queue_pair: datagram.remote.qpn.get(),
            source_queue_pair: datagram.local_qpn.get(),
            status: TIMED_OUT,
            length: datagram.length,
            mad: datagram.mad.0,
        },
    }
}
