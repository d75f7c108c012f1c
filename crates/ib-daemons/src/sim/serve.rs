//! The loop that joins the simulated fabric to the sockets of its clients.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Instant as WallClock;

use ib_control::console::{Asked, ConsoleServer};
use ib_ibsim::message::{Connect, Request, TIMED_OUT, kind};
use ib_ibsim::server::{Address, Input, Server, Ticket};
use ib_link::{Datagram, Incoming, Remote};
use ib_os::signals::Termination;
use ib_sim::{Addresses, ClientId, ClientOptions, Sim};
use ib_topology::PortId;
use ib_types::{Instant, QKey, Qpn};
use ib_wire::mad::Mad;
use ib_wire::mad::smp::PERMISSIVE_LID;

use super::adapters::{self, Adapters, Context};
use super::capture::Capture;
use super::config::SimConfig;
use super::manager::{self, Manager};
use super::record::{Conditions, Log, Recorder};
use super::residents::{Look, Residents};
use super::{control, query};
use crate::error::{DaemonError, Verdict};
use crate::message::say;

/// How much is taken in before what came of it is handed out.
const INPUTS: usize = 256;

/// How often residents do what they have to do before others have their turn.
const TURNS: usize = 64;

/// The keys of watched files: the signals, the console's listener, and its connections behind.
const SIGNALS: usize = 0;
const CONSOLE: usize = 1;
/// The key of the SM's alarm, larger than any number of connections.
const MANAGER: usize = usize::MAX / 4;
/// Keys of the residents' wake-ups.
const RESIDENTS: usize = MANAGER + 1;
const RESIDENTS_NEXT: usize = RESIDENTS + 1;
/// The key of the listener for HCAs, and behind it those of their files.
const ADAPTERS: usize = usize::MAX / 8;

/// A fabric with its sockets.
pub(super) struct Serving {
    pub(super) sim: Sim,
    pub(super) addresses: Addresses,
    pub(super) server: Server,
    pub(super) console: ConsoleServer,
    pub(super) adapters: Adapters,
    /// The fabric's number of each client of the server.
    pub(super) clients: BTreeMap<u32, ClientId>,
    numbers: BTreeMap<ClientId, u32>,
    started: WallClock,
    recorder: Option<Recorder>,
    log: Option<Log>,
    capture: Option<Capture>,
    manager: Option<Manager>,
    is_ready: bool,
    /// True if the reader of the output has disconnected. The simulator keeps running.
    is_unread: bool,
    pub(super) ends: bool,
    /// Embedded hosts, once the subnet is up.
    residents: Option<Box<dyn Residents>>,
    /// Ports with input for their HCAs, which may be HCAs of residents.
    opened: Vec<PortId>,
    /// True if residents have more work.
    goes_on: bool,
}

impl Serving {
    pub(super) fn new(
        sim: Sim,
        addresses: Addresses,
        server: Server,
        config: &SimConfig,
        conditions: &Conditions,
    ) -> Result<Self, DaemonError> {
        let base = match server.address() {
            Address::Name(name) => name.clone(),
            Address::Port(port) => port.to_string(),
        };
        let console = ConsoleServer::bind(&base).map_err(|error| {
            DaemonError::Failed(format!("cannot listen on @{base}:console: {error}"))
        })?;
        let adapters = Adapters::bind(&base)?;
        let mut this = Self {
            adapters,
            sim,
            addresses,
            server,
            console,
            clients: BTreeMap::new(),
            numbers: BTreeMap::new(),
            started: WallClock::now(),
            recorder: config
                .record
                .as_deref()
                .map(|path| Recorder::create(path, conditions))
                .transpose()?,
            log: config.log.as_deref().map(Log::create).transpose()?,
            capture: config.pcap.as_deref().map(Capture::create).transpose()?,
            manager: None,
            is_ready: false,
            is_unread: false,
            ends: false,
            residents: None,
            opened: Vec::new(),
            goes_on: false,
        };
        if let Some(options) = &config.manager {
            let port = this.sim.first_end_port();
            let port =
                port.ok_or_else(|| DaemonError::Failed("--sm: no port to manage from".to_owned()))?;
            let client = this.sim.attach(port, manager::OPTIONS).map_err(DaemonError::failed)?;
            this.record(|recorder| recorder.attach(client, port, manager::OPTIONS));
            let now = this.now();
            this.manager = Some(Manager::start(&this.sim, (client, port), options, now)?);
        }
        Ok(this)
    }

    /// Has somebody live in the fabric.
    pub(super) fn with(self, residents: Box<dyn Residents>) -> Self {
        Self { residents: Some(residents), ..self }
    }

    /// Serves until the process is asked to end.
    pub(super) fn run(mut self, output: &mut dyn Write) -> Result<Verdict, DaemonError> {
        let failed = |error| DaemonError::Failed(format!("cannot serve clients: {error}"));
        let signals = Termination::catch().map_err(failed)?;
        self.server.watch(signals.as_fd(), SIGNALS).map_err(failed)?;
        self.server.watch(self.console.as_fd(), CONSOLE).map_err(failed)?;
        self.server.watch(self.adapters.as_fd(), ADAPTERS).map_err(failed)?;
        if let Some(manager) = &self.manager {
            self.server.watch(manager.alarm.as_fd(), MANAGER).map_err(failed)?;
            self.round()?;
        }
        let bells = self.residents.as_ref().map(|residents| residents.bells());
        for (number, bell) in bells.unwrap_or_default().into_iter().enumerate() {
            self.server.watch(bell, RESIDENTS + number).map_err(failed)?;
        }
        self.get_ready(output)?;
        while !self.ends {
            let due = self.manager.as_ref().and_then(Manager::due);
            let residents = self.residents.as_ref().filter(|_| self.is_up());
            let own = residents.and_then(|residents| residents.due());
            let due = [self.sim.due(), due, own].into_iter().flatten().min();
            // What residents have asked the manager came after its turn.
            let is_asked = self.manager.as_ref().is_some_and(|it| it.is_asked(&self.sim));
            let is_busy = self.goes_on || !self.opened.is_empty() || is_asked;
            let due = if is_busy { Some(Instant::ZERO) } else { due };
            let limit = due.map(|at| at.since(self.now()));
            let limit = self.adapters.before_sleep(&self.sim, limit);
            let programs = self.residents.as_mut().and_then(|residents| residents.programs());
            let mut files = Vec::new();
            let due =
                programs.map(|programs| programs.interests(&mut files).since(ib_os::clock::now()));
            let limit = limit.into_iter().chain(due).min();
            self.server.wait_beside(limit, &files).map_err(failed)?;
            self.round()?;
            self.tell(output)?;
            self.get_ready(output)?;
            if let Some(verdict) = self.residents.as_ref().and_then(|it| it.ended()) {
                self.sim.keep_up(self.now());
                self.write_out();
                return Ok(verdict);
            }
        }
        if let Some(residents) = &mut self.residents {
            residents.close(&mut self.sim)?;
        }
        let now = self.now();
        self.sim.keep_up(now);
        self.write_out();
        if let Some(recorder) = self.recorder.take() {
            recorder.finish(&self.sim);
        }
        if !self.is_ready {
            return Err(DaemonError::Failed(
                "a signal has ended it before it was READY".to_owned(),
            ));
        }
        Ok(Verdict::Good)
    }

    /// Says once that clients may come: at once, or when the manager has brought the subnet up.
    fn get_ready(&mut self, output: &mut dyn Write) -> Result<(), DaemonError> {
        let is_there = self.residents.as_ref().is_none_or(|residents| residents.is_ready());
        if self.is_ready || !self.is_up() || !is_there {
            return Ok(());
        }
        self.is_ready = true;
        if self.capture.as_ref().is_some_and(Capture::is_on_stdout) {
            // A line of its own, as it is on standard output: scripts wait for it.
            let _ = writeln!(io::stderr(), "READY");
        } else {
            writeln!(output, "READY")?;
            output.flush()?;
        }
        Ok(())
    }

    /// Returns whether the manager, if there is one, has brought the subnet up.
    fn is_up(&self) -> bool {
        self.manager.as_ref().is_none_or(|manager| manager.was_up)
    }

    /// Prints what residents tell.
    fn tell(&mut self, output: &mut dyn Write) -> Result<(), DaemonError> {
        let Some(residents) = &mut self.residents else { return Ok(()) };
        let lines: Vec<String> = std::iter::from_fn(|| residents.poll_line()).collect();
        if lines.is_empty() || self.is_unread {
            return Ok(());
        }
        let told = lines.iter().try_for_each(|line| Ok(writeln!(output, "{line}")?));
        match told.and_then(|()| Ok(output.flush()?)) {
            // What comes of it is told by the exit status, too.
            Err(DaemonError::OutputClosed) if residents.has_verdict() => {
                self.is_unread = true;
                Ok(())
            }
            told => told,
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    /// Takes what has arrived, lets the fabric work, and hands out what comes of it. However much
    /// arrives, what was answered leaves in between.
    fn round(&mut self) -> Result<(), DaemonError> {
        let now = self.now();
        self.sim.keep_up(now);
        let mut is_answered = false;
        for _ in 0..INPUTS {
            let Some(input) = self.server.next() else { break };
            self.take(input, now)?;
            // Whoever waits for the first answer works on it while the others are found.
            if !is_answered {
                is_answered = self.hand_all_out();
            }
        }
        if let Some(manager) = &mut self.manager {
            manager.work(&mut self.sim, self.recorder.as_mut(), now)?;
        }
        self.hand_all_out();
        self.addresses.update(&self.sim);
        if self.is_up()
            && let Some(residents) = &mut self.residents
        {
            for port in self.opened.drain(..) {
                residents.look_at(port);
            }
            // However much they have to do, others have their turn in between.
            self.goes_on = true;
            for _ in 0..TURNS {
                if !residents.work(&mut self.sim, &self.addresses)? {
                    self.goes_on = false;
                    break;
                }
                self.sim.keep_up(now);
            }
        }
        if let Some(residents) = &mut self.residents {
            let (sim, addresses, manager) = (&mut self.sim, &self.addresses, self.manager.as_ref());
            residents.look(Look { sim, addresses, manager })?;
        }
        let Self { sim, adapters, addresses, recorder, opened, .. } = self;
        adapters.work(sim, recorder.as_mut(), addresses, now, opened)?;
        if self.residents.is_none() || !self.is_up() {
            self.opened.clear();
        }
        self.hand_all_out();
        self.write_out();
        Ok(())
    }

    fn take(&mut self, input: Input, now: Instant) -> Result<(), DaemonError> {
        if let Some(recorder) = &mut self.recorder {
            recorder.mark(&self.sim);
        }
        match input {
            Input::Connect { ticket, connect } => self.connect(&ticket, &connect)?,
            Input::Control { client, message } => {
                if let Some(&id) = self.clients.get(&client) {
                    if message.kind == kind::SET_IS_SM {
                        let is_sm = control::flag(&message);
                        self.sim.set_is_sm(id, is_sm);
                        self.record(|recorder| recorder.set_is_sm(id, is_sm));
                    }
                    let answer = control::answer(&self.sim, id, &message);
                    self.server.answer(client, &answer);
                }
            }
            Input::Request { client, request } => self.request(client, &request, now)?,
            Input::Gone { client } => {
                if let Some(id) = self.clients.remove(&client) {
                    self.numbers.remove(&id);
                    self.sim.detach(id);
                    self.record(|recorder| recorder.detach(id));
                }
            }
            Input::Ready(SIGNALS) => self.ends = true,
            Input::Ready(ADAPTERS) => {
                for client in self.adapters.accept() {
                    self.watch_adapter(client, adapters::File::Socket);
                }
            }
            Input::Ready(key) if (ADAPTERS..MANAGER).contains(&key) => {
                let (client, file) = adapters::file_of(key - ADAPTERS);
                self.addresses.update(&self.sim);
                let Self { sim, addresses, recorder, residents, .. } = self;
                let known = Context {
                    sim,
                    addresses,
                    recorder: recorder.as_mut(),
                    residents: residents.as_deref_mut(),
                };
                let (is_admitted, goes_on) = self.adapters.ready(client, file, known)?;
                if is_admitted {
                    self.watch_adapter(client, adapters::File::Bell);
                }
                if goes_on {
                    self.server.again(key);
                }
            }
            // The manager works in every round.
            Input::Ready(MANAGER) => {}
            Input::Ready(RESIDENTS | RESIDENTS_NEXT) => {
                if let Some(residents) = &mut self.residents {
                    residents.silence();
                }
            }
            Input::Ready(CONSOLE) => {
                for key in self.console.accept() {
                    let watched = self
                        .console
                        .file(key)
                        .is_some_and(|file| self.server.watch_both(file, CONSOLE + key).is_ok());
                    if !watched {
                        self.console.close(key);
                    }
                }
            }
            Input::Ready(key) => self.read_console(key)?,
        }
        Ok(())
    }

    /// Has a file of an HCA's process watched, or sends the process away.
    fn watch_adapter(&mut self, client: usize, file: adapters::File) {
        let key = ADAPTERS + adapters::key_of(client, file);
        let watched =
            self.adapters.file(client, file).is_some_and(|it| self.server.watch(it, key).is_ok());
        if watched {
            // Something may have come before.
            self.server.again(key);
        } else {
            self.adapters.refuse(client, "the simulator has no more files");
        }
    }

    fn connect(&mut self, ticket: &Ticket, connect: &Connect) -> Result<(), DaemonError> {
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
            class: None,
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
        self.record(|recorder| recorder.attach(id, port, options));
        match self.server.accept(ticket, &name) {
            Ok(number) => {
                self.clients.insert(number, id);
                self.numbers.insert(id, number);
            }
            Err(error) => {
                say!("refused client {}: {error}", connect.id);
                self.sim.detach(id);
                self.record(|recorder| recorder.detach(id));
            }
        }
        Ok(())
    }

    fn request(&mut self, client: u32, request: &Request, now: Instant) -> Result<(), DaemonError> {
        let Some(&id) = self.clients.get(&client) else { return Ok(()) };
        // Zero has the port fill in its own; a permissive one goes with directed routes.
        let own = self.sim.client_port(id).is_some_and(|port| self.sim.has_lid(port, request.slid));
        if !matches!(request.slid, 0 | PERMISSIVE_LID) && !own {
            self.server.refuse_request(client, request);
            return Ok(());
        }
        let Some(port) = self.sim.client_port(id) else { return Ok(()) };
        let datagram = datagram(&self.sim, port, request);
        self.sim.submit(id, &datagram);
        // One after the other they find the caches warm and the queues empty.
        self.sim.keep_up(now);
        self.record(|recorder| recorder.submit(id, &datagram));
        Ok(())
    }

    /// Hands all clients what has come for them; returns whether anything had.
    fn hand_all_out(&mut self) -> bool {
        let mut any = false;
        while let Some(client) = self.sim.next_woken() {
            self.hand_out(client);
            any = true;
        }
        self.server.flush();
        any
    }

    /// Hands a client what has come for it.
    fn hand_out(&mut self, id: ClientId) {
        let Some(&number) = self.numbers.get(&id) else {
            return self.adapters.hand_out(&mut self.sim, id);
        };
        while let Some(incoming) = self.sim.receive(id) {
            let lid = self.sim.client_port(id).map_or(0, |port| self.sim.port_info(port).lid);
            self.server.send(number, &message(&incoming, lid));
        }
    }

    /// Answers the next line of a console, if there is one.
    fn read_console(&mut self, key: usize) -> Result<(), DaemonError> {
        let connection = key - CONSOLE;
        match self.console.next_line(connection) {
            Asked::Line(line) => {
                // Scripts change GUIDs, too.
                self.addresses.update(&self.sim);
                let (reply, command) = query::execute(self, &line);
                if let Some(command) = command {
                    self.record(|recorder| recorder.command(&command, reply.is_good()));
                }
                let answer = serde_json::to_string(&reply).map_err(DaemonError::failed)?;
                self.console.answer(connection, &answer);
                self.server.again(key);
            }
            Asked::Nothing => {}
            Asked::Ended => {
                // The file has to be open to be unwatched; one that cannot be was not watched.
                let _ = self.server.unwatch(key);
                self.console.close(connection);
            }
        }
        Ok(())
    }

    fn record(&mut self, write: impl FnOnce(&mut Recorder)) {
        if let Some(recorder) = &mut self.recorder {
            write(recorder);
        }
    }

    /// Writes what has happened to the files that were asked for.
    fn write_out(&mut self) {
        if let Some(log) = &mut self.log {
            log.write(&self.sim.take_log());
        }
        if let Some(capture) = &mut self.capture
            && !capture.write(&mut self.sim)
        {
            self.capture = None;
            self.sim.stop_tap();
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
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

/// Returns the datagram that a message of a client at a port carries. The protocol names no P_Key: it
/// is the first one of the port's table, as with any client that does not choose.
fn datagram(sim: &Sim, port: PortId, request: &Request) -> Datagram {
    let smp = request.destination_queue_pair == 0;
    let remote = if smp { Remote::smi(request.dlid) } else { Remote::gsi(request.dlid) };
    let info = sim.port_info(port);
    let path_bits = match request.slid {
        0 | PERMISSIVE_LID => 0,
        slid => slid.wrapping_sub(info.lid) as u8 & ((1 << info.lmc) - 1),
    };
    Datagram {
        remote: Remote {
            qpn: Qpn::truncated(request.destination_queue_pair),
            q_key: if smp { QKey(0) } else { QKey::GSI },
            p_key: if smp { remote.p_key } else { sim.p_keys(port)[0] },
            path_bits,
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
            slid: if datagram.remote.lid == 0xffff {
                0xffff
            } else {
                lid | u16::from(datagram.remote.path_bits)
            },
            destination_queue_pair: datagram.remote.qpn.get(),
            source_queue_pair: datagram.local_qpn.get(),
            status: TIMED_OUT,
            length: datagram.length,
            mad: datagram.mad.0,
        },
    }
}
