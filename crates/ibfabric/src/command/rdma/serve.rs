//! `rdma serve`: clients of `rdma bw` and `rdma lat`, of rping, of ucmatose, and of perftest.
//!
//! | file | clients |
//! |---|---|
//! | `ours.rs` | `rdma bw` and `rdma lat` |

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use ib_cm::{CmEvent, ConnectionId};
use ib_control::lines::{LineServer, Reply};
use ib_control::queue::{RequestQueue, request_queue};
use ib_device::{Device, DeviceEvent, Endpoint, Request};
use ib_hca::{PdId, Wc, WcStatus};
use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_os::signals::{Order, Orders};
use ib_types::{Instant, Qpn};

use super::cmatose::Match;
use super::devinfo;
use super::perftest::sessions::Sessions;
use super::rping::Pinged;
use super::stage::{Buffer, Stage, doing};
use crate::cli::rdma::{RPING_PORT, ServeArgs, UCMATOSE_PORT};
use crate::failure::{Failure, Verdict, note, say};
use crate::output::Output;
use ours::Ours;

mod ours;

/// The maximum total size of all clients' buffers, in bytes.
const MOST_MEMORY: usize = 4 << 30;

/// A client, by the protocol that it uses.
enum Service {
    Ours(Ours),
    Ping(Pinged),
    Match(Match),
}

struct Server<'a> {
    args: &'a ServeArgs,
    stage: Stage,
    clients: BTreeMap<Qpn, Service>,
    by_connection: BTreeMap<ConnectionId, Qpn>,
    /// The protection domain of each client.
    domains: BTreeMap<ConnectionId, PdId>,
    perftest: Option<Sessions>,
    gone: u64,
    /// True if a client violated its protocol.
    is_wrong: bool,
}

pub(super) fn run(args: &ServeArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let mut stage = Stage::open(&args.adapter, args.listen.map(|listen| listen.address), None)?;
    for port in args.ports() {
        let listening = |error| doing(&format!("listening at port {port}"), error);
        stage.device.listen(port).map_err(listening)?;
    }
    let failed = |error| doing("waiting for signals", error);
    let alarm = Alarm::new().map_err(failed)?;
    let mut orders = Orders::catch(&alarm.bell()).map_err(failed)?;
    let mut requests = listen_to_devinfo(&stage, &alarm);
    writeln!(out, "READY {}", stage.device.address())?;
    out.flush()?;
    let (clients, by_connection) = (BTreeMap::new(), BTreeMap::new());
    let size = args.perftest_size as usize;
    let perftest = args.perftest.map(|program| Sessions::new(program, size));
    let mut server = Server {
        args,
        stage,
        clients,
        by_connection,
        domains: BTreeMap::new(),
        perftest,
        gone: 0,
        is_wrong: false,
    };
    while args.exit_after.is_none_or(|most| server.gone < most) {
        // The alarm is reset before the queues are read. So an entry that arrives while they are read wakes the server
        // again.
        alarm.silence();
        let moved = server.work(out)?;
        while let Some(request) = requests.take() {
            let reply = devinfo::reply(request.line(), &mut server.stage.device);
            request.respond(reply.to_line());
        }
        if moved {
            continue;
        }
        if let Some(Order::End) = orders.take() {
            break;
        }
        if !server.watches_memory() {
            let waited = server.stage.device.wait(Instant::NEVER, Some(&alarm));
            waited.map_err(|error| doing("driving the HCA", error))?;
        }
    }
    // Before the exit, disconnects all clients and replies to pending disconnect requests.
    server.part();
    server.stage.linger(Duration::from_millis(200))?;
    // The exit status reports protocol errors of clients only with --exit-after.
    if server.is_wrong && args.exit_after.is_some() {
        Err(Failure::Said)
    } else {
        Ok(Verdict::Good)
    }
}

/// Opens the control socket to which `rdma devinfo` connects. Returns the queue of the received requests.
fn listen_to_devinfo(stage: &Stage, alarm: &Alarm) -> RequestQueue {
    let (sender, requests) = request_queue(alarm.bell());
    let name = devinfo::console(&stage.device);
    let served = LineServer::bind(&name).and_then(|server| {
        let no_reply = || Reply::failed("the process does not respond").to_line();
        let limit = Duration::from_secs(2);
        server.serve(move |line| sender.request_within(line, limit).unwrap_or_else(no_reply))
    });
    if let Err(error) = served {
        say!("`rdma devinfo` cannot query this process: {error}");
    }
    requests
}

impl Server<'_> {
    /// Processes packets, connection events, completions and RDMA WRITEs; returns true if there were any.
    fn work(&mut self, out: &mut Output) -> Result<bool, Failure> {
        let mut moved = self.stage.progress()?;
        while let Some(event) = self.stage.device.poll_event() {
            moved = true;
            self.take(event, out)?;
        }
        while let Some(wc) = self.stage.poll() {
            moved = true;
            self.complete(&wc, out)?;
        }
        Ok(self.watch()? || moved)
    }

    fn take(&mut self, event: DeviceEvent, out: &mut Output) -> Result<(), Failure> {
        if let Some(id) = event.disconnected() {
            self.end(id, out);
            return Ok(());
        }
        if let DeviceEvent::Cm(CmEvent::Established { id, .. }) = event {
            self.begin(id)?;
            return Ok(());
        }
        let Ok(request) = Device::request(event) else { return Ok(()) };
        if let Err(error) = self.accept(&request) {
            say!("{}: {}", request.peer, error.into_message());
            // The rejection fails only if the client has already disconnected.
            self.stage.device.reject(&request, b"").ok();
        }
        Ok(())
    }

    fn accept(&mut self, request: &Request) -> Result<(), Failure> {
        let port = request.port();
        let is_at = |other| port == Some(other) && other != self.args.port();
        if let Some(sessions) = &mut self.perftest
            && is_at(self.args.perftest_port)
        {
            let endpoint = sessions.accept(&mut self.stage, request)?;
            if self.args.verbose > 0 {
                note!("{} has connected, MTU {}", endpoint.peer, endpoint.mtu.bytes());
            }
            return Ok(());
        }
        // Each client has its own protection domain, so a client cannot use the rkeys of another client.
        let pd = self.stage.begin_session()?;
        let service = match self.serve(port, request) {
            Ok(service) => service,
            Err(error) => {
                self.stage.end_session(pd);
                return Err(error);
            }
        };
        let endpoint = service.endpoint();
        if self.args.verbose > 0 {
            note!("{} has connected, MTU {}", endpoint.peer, endpoint.mtu.bytes());
        }
        let number = self.stage.number(endpoint.qp);
        self.by_connection.insert(endpoint.connection, number);
        self.domains.insert(endpoint.connection, pd);
        self.clients.insert(number, service);
        Ok(())
    }

    /// Accepts a client of `rdma bw`, `rdma lat`, rping or ucmatose.
    fn serve(&mut self, port: Option<u16>, request: &Request) -> Result<Service, Failure> {
        let is_at = |other| port == Some(other) && other != self.args.port();
        Ok(if is_at(self.args.rping_port) {
            Service::Ping(Pinged::accept(&mut self.stage, request)?)
        } else if is_at(self.args.ucmatose_port) {
            Service::Match(Match::accept(&mut self.stage, request, self.args.messages)?)
        } else {
            let taken: usize = self.clients.values().map(|it| it.buffer().memory.len()).sum();
            let room = MOST_MEMORY.saturating_sub(taken);
            Service::Ours(Ours::accept(&mut self.stage, request, room)?)
        })
    }

    /// Handles the establishment of a connection: sends all messages to a ucmatose client.
    fn begin(&mut self, id: ConnectionId) -> Result<(), Failure> {
        let number = self.by_connection.get(&id);
        if let Some(Service::Match(it)) = number.and_then(|number| self.clients.get(number)) {
            it.send(&mut self.stage)?;
        }
        Ok(())
    }

    /// Handles the disconnect of a client.
    fn end(&mut self, id: ConnectionId, out: &mut Output) {
        if let Some(sessions) = &mut self.perftest {
            let ended = sessions.end(&mut self.stage, id, out);
            self.gone += u64::from(!matches!(ended, Ok(false)));
            if let Err(error) = ended {
                say!("{}", error.into_message());
                self.is_wrong = true;
            }
        }
        let number = self.by_connection.get(&id);
        if let Some(Service::Match(it)) = number.and_then(|number| self.clients.get(number))
            && !it.is_complete()
        {
            say!("{}: disconnected before all messages were received", it.endpoint.peer);
            self.is_wrong = true;
        }
        self.forget(id);
    }

    /// Destroys the objects of the client with this connection. Does nothing for connections of perftest clients.
    fn forget(&mut self, id: ConnectionId) {
        let number = self.by_connection.remove(&id);
        let Some(service) = number.and_then(|number| self.clients.remove(&number)) else { return };
        self.gone += 1;
        let endpoint = service.endpoint();
        if self.args.verbose > 0 {
            note!("{} has disconnected", endpoint.peer);
        }
        self.stage.destroy(endpoint.qp);
        self.stage.forget(service.buffer());
        if let Some(pd) = self.domains.remove(&id) {
            self.stage.end_session(pd);
        }
    }

    fn complete(&mut self, wc: &Wc, out: &mut Output) -> Result<(), Failure> {
        if let Some(sessions) = self.perftest.as_mut().filter(|it| it.has(wc.qp_num)) {
            if let Err(error) = sessions.complete(&mut self.stage, wc, out) {
                say!("{}", error.into_message());
                self.is_wrong = true;
                self.gone += 1;
            }
            return Ok(());
        }
        let Some(service) = self.clients.get_mut(&wc.qp_num) else { return Ok(()) };
        let (peer, connection) = (service.endpoint().peer, service.endpoint().connection);
        if wc.status != WcStatus::Success {
            if wc.status != WcStatus::WrFlushErr {
                say!("{peer}: a work request failed with {:?}", wc.status);
                self.drop(connection);
            }
            return Ok(());
        }
        let advanced = match service {
            Service::Ping(pinged) => match pinged.advance(&mut self.stage, wc) {
                Ok(Some(text)) if self.args.verbose > 0 => {
                    writeln!(out, "server ping data: {text}")?;
                    out.flush()?;
                    Ok(())
                }
                advanced => advanced.map(drop),
            },
            Service::Ours(ours) => ours.advance(&mut self.stage, wc),
            Service::Match(it) => {
                let advanced = it.advance(wc);
                if it.is_complete() {
                    if self.args.verbose > 0 {
                        it.print(out)?;
                    }
                    // The client waits until the server disconnects.
                    self.stage.device.cm().disconnect(clock::now(), connection, b"").ok();
                }
                advanced
            }
        };
        if let Err(error) = advanced {
            say!("{}", error.into_message());
            self.drop(connection);
        }
        Ok(())
    }

    /// Disconnects all clients.
    fn part(&mut self) {
        let ids: Vec<ConnectionId> = self.by_connection.keys().copied().collect();
        let sessions = self.perftest.iter().flat_map(Sessions::connections);
        for id in ids.into_iter().chain(sessions) {
            // Disconnecting fails only if the client has already disconnected.
            self.stage.device.cm().disconnect(clock::now(), id, b"").ok();
        }
        self.stage.device.flush();
    }

    /// Disconnects a client that violated its protocol.
    fn drop(&mut self, id: ConnectionId) {
        self.is_wrong = true;
        // Disconnecting fails only if the client has already disconnected.
        self.stage.device.cm().disconnect(clock::now(), id, b"").ok();
        self.forget(id);
    }

    /// Returns true if a client sends RDMA WRITEs and expects replies, so that its buffer has to be polled.
    fn watches_memory(&self) -> bool {
        let is_watched =
            |service: &Service| matches!(service, Service::Ours(ours) if ours.is_watched());
        self.clients.values().any(is_watched)
            || self.perftest.as_ref().is_some_and(Sessions::are_watched)
    }

    /// Replies to RDMA WRITEs of all clients that expect replies. Returns true if the server sent an RDMA WRITE.
    fn watch(&mut self) -> Result<bool, Failure> {
        let mut moved = match &mut self.perftest {
            Some(sessions) => {
                let (moved, wrong) = sessions.watch(&mut self.stage);
                for error in wrong {
                    say!("{}", error.into_message());
                    self.is_wrong = true;
                    self.gone += 1;
                }
                moved
            }
            None => false,
        };
        for service in self.clients.values_mut() {
            if let Service::Ours(ours) = service
                && ours.is_watched()
            {
                moved |= ours.watch(&mut self.stage);
            }
        }
        Ok(moved)
    }
}

impl Service {
    const fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Ours(ours) => &ours.endpoint,
            Self::Ping(pinged) => &pinged.endpoint,
            Self::Match(it) => &it.endpoint,
        }
    }

    const fn buffer(&self) -> &Buffer {
        match self {
            Self::Ours(ours) => &ours.buffer,
            Self::Ping(pinged) => &pinged.buffer,
            Self::Match(it) => &it.buffer,
        }
    }
}

impl ServeArgs {
    /// Returns the service port at which the server accepts connections from ibfabric's own clients, such as `rdma bw`.
    fn port(&self) -> u16 {
        self.listen.and_then(|listen| listen.port).unwrap_or(self.port)
    }

    /// Returns the service ports at which the server accepts connections.
    fn ports(&self) -> impl Iterator<Item = u16> {
        let rping = self.rping || self.rping_port != RPING_PORT;
        let ucmatose = self.ucmatose || self.ucmatose_port != UCMATOSE_PORT;
        let ports = [
            (true, self.port()),
            (rping, self.rping_port),
            (ucmatose, self.ucmatose_port),
            (self.perftest.is_some(), self.perftest_port),
        ];
        ports.into_iter().filter_map(|(wanted, port)| wanted.then_some(port))
    }
}
