//! A simulated fabric with the sockets of its clients, its SM, and its log, capture and record files. The event loop
//! runs in the code that owns the [`SimServer`].

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant as WallClock};

use ib_control::lines::{LineServer, Received};
use ib_ibsim::message::{Connect, Request, TIMED_OUT, kind};
use ib_ibsim::server::{Address, Input, Server, Ticket};
use ib_link::{Datagram, Incoming, Remote};
use ib_os::poll::Interest;
use ib_os::signals::Termination;
use ib_sim::{Addresses, ClientId, ClientOptions, Sim};
use ib_topology::PortId;
use ib_types::{Instant, QKey, Qpn};
use ib_wire::mad::Mad;
use ib_wire::mad::smp::PERMISSIVE_LID;

use super::adapters::{self, Adapters, Context, PortClaim};
use super::capture::Capture;
use super::config::SimConfig;
use super::manager::{self, Manager};
use super::record::{Conditions, Log, Recorder};
use super::{control, query};
use crate::error::DaemonError;
use crate::message::say;

/// Maximum number of inputs, such as client requests, that are handled before the SM runs and responses are sent.
const INPUTS: usize = 256;

/// Poll key of the termination signals.
const SIGNALS: usize = 0;
/// Poll key of the console's listener; the keys of the console's connections follow.
const CONSOLE: usize = 1;
/// Poll key of the alarm that wakes the SM. It is larger than the keys of all console connections.
const MANAGER: usize = usize::MAX / 4;
/// Poll key of the first file that `SimServer::watch` watches; the keys of the further files follow.
const OWNER: usize = MANAGER + 1;
/// Poll key of the listener for HCAs; the keys of the HCAs' file descriptors follow.
const ADAPTERS: usize = usize::MAX / 8;

/// A fabric with the sockets of its clients, its SM and its files.
///
/// The code that owns the server first calls [`SimServer::start`]. Then it repeatedly calls [`SimServer::receive`],
/// [`SimServer::send`] and [`SimServer::wait`] until [`SimServer::is_stopped`] returns true. At the end it calls
/// [`SimServer::finish`]. Embedded hosts, if there are any, run between `receive` and `send`.
pub(crate) struct SimServer {
    pub(crate) sim: Sim,
    pub(crate) addresses: Addresses,
    pub(super) server: Server,
    pub(super) console: LineServer,
    pub(super) adapters: Adapters,
    /// The simulator client of each ibsim client. The key is the number that `server` has assigned to the ibsim client.
    pub(super) clients: BTreeMap<u32, ClientId>,
    numbers: BTreeMap<ClientId, u32>,
    started: WallClock,
    recorder: Option<Recorder>,
    log: Option<Log>,
    capture: Option<Capture>,
    pub(crate) manager: Option<Manager>,
    is_ready: bool,
    pub(super) is_stopped: bool,
    /// Ports with new events (see `Sim::next_open`). Embedded hosts handle the events of their own ports.
    opened: Vec<PortId>,
    /// True if a file that `SimServer::watch` watches was readable since the last call of `SimServer::take_woken`.
    is_woken: bool,
    /// Time at which the present round of the event loop started.
    round_time: Instant,
}

impl SimServer {
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
        let console = LineServer::bind(&base).map_err(|error| {
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
            is_stopped: false,
            opened: Vec::new(),
            is_woken: false,
            round_time: Instant::ZERO,
        };
        if let Some(options) = &config.manager {
            let port = this.sim.first_end_port();
            let port = port.ok_or_else(|| {
                DaemonError::Failed(
                    "--sm: there is no end port from which the SM can manage the fabric".to_owned(),
                )
            })?;
            let client = this.sim.attach(port, manager::OPTIONS).map_err(DaemonError::failed)?;
            this.record(|recorder| recorder.attach(client, port, manager::OPTIONS));
            let now = this.now();
            this.manager = Some(Manager::start(&this.sim, (client, port), options, now)?);
        }
        Ok(this)
    }

    /// Starts to catch termination signals and to watch the sockets. While the returned guard exists, a termination
    /// signal stops the simulator.
    pub(crate) fn start(&mut self) -> Result<Termination, DaemonError> {
        let signals = Termination::catch().map_err(|error| cannot_serve(&error))?;
        self.server.watch(signals.as_fd(), SIGNALS).map_err(|error| cannot_serve(&error))?;
        self.server.watch(self.console.as_fd(), CONSOLE).map_err(|error| cannot_serve(&error))?;
        self.server.watch(self.adapters.as_fd(), ADAPTERS).map_err(|error| cannot_serve(&error))?;
        if let Some(manager) = &self.manager {
            self.server
                .watch(manager.alarm.as_fd(), MANAGER)
                .map_err(|error| cannot_serve(&error))?;
        }
        Ok(signals)
    }

    /// Watches files for the code that runs the event loop. When one of them becomes readable,
    /// [`SimServer::take_woken`] returns true.
    pub(crate) fn watch(&mut self, files: &[BorrowedFd<'_>]) -> Result<(), DaemonError> {
        for (number, &file) in files.iter().enumerate() {
            self.server.watch(file, OWNER + number).map_err(|error| cannot_serve(&error))?;
        }
        Ok(())
    }

    /// Returns true if a file that [`SimServer::watch`] watches has become readable since the last call.
    pub(crate) fn take_woken(&mut self) -> bool {
        mem::take(&mut self.is_woken)
    }

    /// Waits until there is input on a socket or one of `files`, until the fabric's time is `due`, or until `limit` has
    /// passed, whichever comes first.
    pub(crate) fn wait(
        &mut self,
        due: Option<Instant>,
        files: &[Interest<'_>],
        limit: Option<Duration>,
    ) -> Result<(), DaemonError> {
        if self.is_stopped {
            return Ok(());
        }
        let manager = self.manager.as_ref().and_then(Manager::due);
        let due = [self.sim.due(), manager, due].into_iter().flatten().min();
        // The wait ends at once if embedded hosts have sent MADs to the SM since it last ran.
        let has_requests = self.manager.as_ref().is_some_and(|it| it.has_input(&self.sim));
        let due = if has_requests || !self.opened.is_empty() { Some(Instant::ZERO) } else { due };
        let until_due = due.map(|at| at.since(self.now()));
        let until_due = self.adapters.before_sleep(&self.sim, until_due);
        let limit = until_due.into_iter().chain(limit).min();
        self.server.wait_beside(limit, files).map_err(|error| cannot_serve(&error))
    }

    /// Returns true if a signal or a console command has stopped the simulator.
    pub(crate) const fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Advances the fabric to the present time, and writes the log, record and capture up to this time.
    pub(crate) fn close(&mut self) {
        let now = self.now();
        self.sim.keep_up(now);
        self.write_out();
    }

    /// Writes the log, the capture and the record up to the end of the run.
    ///
    /// # Errors
    /// Fails if the simulator was stopped before it was ready.
    pub(crate) fn finish(mut self) -> Result<(), DaemonError> {
        self.close();
        if let Some(recorder) = self.recorder.take() {
            recorder.finish(&self.sim);
        }
        if self.is_ready {
            Ok(())
        } else {
            Err(DaemonError::Interrupted(
                "a signal has stopped the simulator before it was READY".to_owned(),
            ))
        }
    }

    /// Prints READY once, when the subnet is up.
    pub(crate) fn announce_ready(&mut self, output: &mut dyn Write) -> Result<(), DaemonError> {
        if self.is_ready || !self.is_up() {
            return Ok(());
        }
        self.is_ready = true;
        if self.capture.as_ref().is_some_and(Capture::is_on_stdout) {
            // READY is printed without a prefix, as on standard output, since scripts wait for this line.
            let _ = writeln!(io::stderr(), "READY");
        } else {
            writeln!(output, "READY")?;
            output.flush()?;
        }
        Ok(())
    }

    /// Returns true if the subnet is up or if the simulator runs no SM.
    pub(crate) fn is_up(&self) -> bool {
        self.manager.as_ref().is_none_or(|manager| manager.was_up)
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    /// Advances the fabric to the time of the last [`SimServer::receive`], at which this round of the event loop has
    /// started.
    pub(crate) fn advance(&mut self) {
        self.sim.keep_up(self.round_time);
    }

    /// Reads requests of clients and lets the fabric and the SM process them. Sends the first available responses at
    /// once, and all later responses after the last request was processed.
    pub(crate) fn receive(&mut self) -> Result<(), DaemonError> {
        let now = self.now();
        self.round_time = now;
        self.sim.keep_up(now);
        let mut is_answered = false;
        for _ in 0..INPUTS {
            let Some(input) = self.server.next() else { break };
            self.take(input, now)?;
            // Sends the first responses at once, so that clients handle them while the simulator processes further
            // requests.
            if !is_answered {
                is_answered = self.hand_all_out();
            }
        }
        if let Some(manager) = &mut self.manager {
            manager.work(&mut self.sim, self.recorder.as_mut(), now)?;
        }
        self.hand_all_out();
        self.addresses.update(&self.sim);
        Ok(())
    }

    /// Exchanges packets with HCAs of other processes, sends received MADs to the processes of the clients, and writes
    /// the files.
    pub(crate) fn send(&mut self) -> Result<(), DaemonError> {
        let now = self.now();
        let Self { sim, adapters, addresses, recorder, opened, .. } = self;
        adapters.work(sim, recorder.as_mut(), addresses, now, opened)?;
        self.hand_all_out();
        self.write_out();
        Ok(())
    }

    /// Returns the ports that have had events (see `Sim::next_open`) since the last call.
    pub(crate) fn take_opened(&mut self) -> Vec<PortId> {
        mem::take(&mut self.opened)
    }

    /// Allows embedded hosts to use ports at which no HCA of another process is attached. A request to attach an HCA to
    /// such a port then waits for [`SimServer::grant`]. When the last HCA of a port has detached,
    /// [`SimServer::poll_released`] returns the port.
    pub(crate) fn set_embedded_hosts(&mut self) {
        self.adapters.set_embedded_hosts();
    }

    /// Returns the next request of an HCA for a port that an embedded host may use.
    pub(crate) fn poll_claim(&mut self) -> Option<PortClaim> {
        self.adapters.poll_claim()
    }

    /// Attaches an HCA to the port that it has requested. Before the call, the caller makes the embedded host release
    /// the port.
    pub(crate) fn grant(&mut self, claim: &PortClaim) -> Result<(), DaemonError> {
        let Self { sim, addresses, recorder, .. } = self;
        let context = Context { sim, addresses, recorder: recorder.as_mut() };
        if self.adapters.grant(claim, context)? {
            self.watch_adapter(claim.client, adapters::File::Bell);
        }
        // While the request waited, further messages of the process were left unread. So the socket is read again now.
        self.server.again(ADAPTERS + adapters::key_of(claim.client, adapters::File::Socket));
        Ok(())
    }

    /// Refuses an HCA's request for a port that an embedded host may use.
    pub(crate) fn refuse(&mut self, claim: &PortClaim, reason: &str) {
        let (node, number) = self.sim.place(claim.port);
        let reason = format!("port {number} of {}: {reason}", self.sim.node_name(node));
        self.adapters.refuse_hello(claim.client, reason);
    }

    /// Returns the next port whose last HCA has detached, so that an embedded host may use it.
    pub(crate) fn poll_released(&mut self) -> Option<PortId> {
        self.adapters.poll_released()
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
                self.accept_again();
            }
            Input::Ready(SIGNALS) => self.is_stopped = true,
            Input::Ready(ADAPTERS) => {
                for client in self.adapters.accept() {
                    self.watch_adapter(client, adapters::File::Socket);
                }
            }
            Input::Ready(key) if (ADAPTERS..MANAGER).contains(&key) => {
                let (client, file) = adapters::file_of(key - ADAPTERS);
                self.addresses.update(&self.sim);
                let Self { sim, addresses, recorder, .. } = self;
                let context = Context { sim, addresses, recorder: recorder.as_mut() };
                let (is_admitted, goes_on) = self.adapters.ready(client, file, context)?;
                if is_admitted {
                    self.watch_adapter(client, adapters::File::Bell);
                }
                if goes_on {
                    self.server.again(key);
                } else {
                    self.accept_again();
                }
            }
            // The SM's alarm only ends the wait: the SM runs in each round of the event loop.
            Input::Ready(MANAGER) => {}
            Input::Ready(OWNER..) => self.is_woken = true,
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

    /// Watches a file descriptor of a process with an HCA. If this fails, disconnects the process.
    fn watch_adapter(&mut self, client: usize, file: adapters::File) {
        let key = ADAPTERS + adapters::key_of(client, file);
        let watched =
            self.adapters.file(client, file).is_some_and(|it| self.server.watch(it, key).is_ok());
        if watched {
            // The file counts as readable, because input may have arrived before the file was watched.
            self.server.again(key);
        } else {
            self.adapters.refuse(client, "the simulator cannot watch the process's descriptors");
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
            reports_losses: true,
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
        // A valid SLID is a LID of the port, 0 (the port inserts its LID), or the permissive LID (directed-route SMPs).
        let own = self.sim.client_port(id).is_some_and(|port| self.sim.has_lid(port, request.slid));
        if !matches!(request.slid, 0 | PERMISSIVE_LID) && !own {
            self.server.refuse_request(client, request);
            return Ok(());
        }
        let Some(port) = self.sim.client_port(id) else { return Ok(()) };
        let datagram = datagram(&self.sim, port, request);
        self.sim.submit(id, &datagram);
        // Delivering each MAD before the next one is submitted keeps CPU caches warm and queues short.
        self.sim.keep_up(now);
        self.record(|recorder| recorder.submit(id, &datagram));
        Ok(())
    }

    /// Passes all MADs that have arrived for simulator clients to the ibsim clients and HCAs that own these clients;
    /// returns true if there were any.
    fn hand_all_out(&mut self) -> bool {
        let mut any = false;
        while let Some(client) = self.sim.next_woken() {
            self.hand_out(client);
            any = true;
        }
        self.server.flush();
        any
    }

    /// Passes the MADs that have arrived for one simulator client to the ibsim client or HCA that owns this client.
    fn hand_out(&mut self, id: ClientId) {
        let Some(&number) = self.numbers.get(&id) else {
            return self.adapters.hand_out(&mut self.sim, id);
        };
        while let Some(incoming) = self.sim.receive(id) {
            let lid = self.sim.client_port(id).map_or(0, |port| self.sim.port_info(port).lid);
            self.server.send(number, &message(&incoming, lid));
        }
    }

    /// Executes the next command line of a console connection, if there is one.
    fn read_console(&mut self, key: usize) -> Result<(), DaemonError> {
        let connection = key - CONSOLE;
        match self.console.next_line(connection) {
            Received::Line(line) => {
                // The addresses depend on GUIDs, which a script may have changed since the last update.
                self.addresses.update(&self.sim);
                let (reply, command) = query::execute_request(self, &line);
                if let Some(command) = command {
                    self.record(|recorder| recorder.command(&command, reply.ok));
                }
                self.console.answer(connection, &reply.to_line());
                self.server.again(key);
            }
            Received::Pending => {}
            Received::Closed => {
                // The socket must be unwatched before it is closed. An error means that it was not watched.
                let _ = self.server.unwatch(key);
                self.console.close(connection);
                self.accept_again();
            }
        }
        Ok(())
    }

    /// Tries again to accept console connections and HCAs. Accepting fails while the simulator has no free file
    /// descriptor, and a client that disconnects may free one.
    fn accept_again(&mut self) {
        self.server.again(CONSOLE);
        self.server.again(ADAPTERS);
    }

    fn record(&mut self, write: impl FnOnce(&mut Recorder)) {
        if let Some(recorder) = &mut self.recorder {
            write(recorder);
        }
    }

    /// Writes the log, the record and the capture up to the present time.
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

    /// Disconnects the ibsim client with the given number; returns false if there is no such client.
    pub(super) fn drop_client(&mut self, number: u32) -> bool {
        let known = self.clients.contains_key(&number);
        if known {
            self.server.disconnect(number);
        }
        known
    }
}

/// Converts a client's message to a datagram. The protocol does not transmit a P_Key, so the first P_Key in the port's
/// table is used.
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
            p_key: if smp { remote.p_key } else { sim.p_key_block(port, 0)[0] },
            path_bits,
            ..remote
        },
        local_qpn: Qpn::truncated(request.source_queue_pair),
        length: request.length,
        mad: Mad(request.mad),
    }
}

/// Returns the message that reports a received or lost MAD to a client. `lid` is the LID of the client's port.
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

fn cannot_serve(error: &io::Error) -> DaemonError {
    DaemonError::Failed(format!("cannot serve clients: {error}"))
}
