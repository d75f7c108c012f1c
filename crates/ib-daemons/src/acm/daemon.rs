//! The event loop of the service, its ports and the sockets of clients.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use ib_acm::config::options::ServerMode;
use ib_acm::port::PortId;
use ib_acm::{Event, Port as _, Service};
use ib_control::lines::LineServer;
use ib_control::page::PageServer;
use ib_control::queue::{RequestQueue, RequestSender, request_queue};
use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_os::daemon;
use ib_os::signals::{Order, Orders};
use ib_types::Instant;
use ib_wire::mad::sa::PathRecord;

use super::config::{AcmConfig, DEFAULT_SOCKET};
use super::console::{self, AcmRequest};
use super::lock::Lock;
use super::open_port::OpenPort;
use super::publish::Published;
use super::settings::Settings;
use crate::acm::{Server, ServerOptions};
use crate::error::{DaemonError, Verdict};
use crate::log::{ERROR, INFO, Log, LogOptions, SYSTEM, VERBOSE};
use crate::message::say;

/// Interval at which the daemon checks whether the route file has changed.
const ROUTE_CHECK: Duration = Duration::from_secs(5);

/// Maximum time for which the daemon waits for events.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// The daemon: the service, its ports and the sockets of clients.
struct Daemon {
    service: Service,
    server: Server,
    settings: Settings,
    /// Settings that were read at the start of the process.
    initial: Settings,
    args: AcmConfig,
    ports: Vec<OpenPort>,
    log: Log,
    /// The alarm that wakes the event loop, and its index among the files that the server watches ([`Server::watch`]).
    alarm: (Alarm, usize),
    orders: Orders,
    requests: RequestQueue,
    /// Time of the next check of the route file.
    next_route_check: Instant,
    /// The daemon polls without sleeping until this time.
    awake_until: Instant,
    _published: Published,
    _lock: Option<Lock>,
}

/// Preloaded routes of a port, and warnings about the route file.
struct PreloadedPaths {
    id: PortId,
    paths: Vec<PathRecord>,
    warnings: Vec<String>,
}

/// Runs the service until it receives a signal to stop or until its last port fails.
///
/// # Errors
/// Fails if the configuration is invalid, if a socket or port cannot be opened, or if the last port fails.
pub fn run(args: AcmConfig, out: &mut dyn Write) -> Result<Verdict, DaemonError> {
    let settings = Settings::read(&args)?;
    let log = open_log(&args, &settings)?;
    log.line(SYSTEM, concat!("ibfabric ", env!("CARGO_PKG_VERSION"), " acm"));
    let result = Daemon::new(args, settings, log.clone()).and_then(|daemon| daemon.run(out));
    if let Err(DaemonError::Failed(message)) = &result {
        log.line_unless_said(ERROR, message);
    }
    log.line(SYSTEM, "the service ends");
    match result {
        Ok(Verdict::Good) if log.has_failed() => Ok(Verdict::Bad),
        result => result,
    }
}

fn log_flags(settings: &Settings) -> u8 {
    match settings.options.log_level {
        0 => ERROR | INFO | SYSTEM,
        _ => ERROR | INFO | VERBOSE | SYSTEM,
    }
}

fn open_log(args: &AcmConfig, settings: &Settings) -> Result<Log, DaemonError> {
    let file = settings.log_file(args);
    let log = Log::open(&LogOptions {
        flags: log_flags(settings),
        limit: 0,
        file: file.as_deref(),
        is_default: !args.names_log(),
        erases: false,
        echoes: false,
    });
    let log = log.map_err(DaemonError::Failed)?;
    for warning in &settings.warnings {
        log.line(ERROR, warning);
    }
    if let Some(note) = settings.without_effect() {
        log.line(INFO, &note);
    }
    Ok(log)
}

impl Daemon {
    fn new(args: AcmConfig, settings: Settings, log: Log) -> Result<Self, DaemonError> {
        if args.ports.is_empty() {
            let message = "no port: expected --attach NAME of a running `ibfabric sim`, or --umad";
            return Err(DaemonError::Failed(message.to_owned()));
        }
        let lock = settings.lock_file(&args).map(|path| Lock::acquire(&path)).transpose()?;
        let seed = ib_os::random()
            .map_err(|error| DaemonError::Failed(format!("cannot read random numbers: {error}")))?;
        let mut service = Service::new(settings.config.clone(), seed);
        service.set_source_of(Box::new(source_of));
        let mut server =
            Server::bind(&listen_options(&args, &settings)).map_err(DaemonError::failed)?;
        // `bind` fails if another service uses the sockets. Files for clients are published only after `bind`, so that
        // the files of a running service are not replaced.
        let published = Published::new(&args, &settings.options)?;
        if !server.is_listening() {
            let message = "--systemd: expected sockets of a service manager, LISTEN_FDS names none";
            return Err(DaemonError::Failed(message.to_owned()));
        }
        let failed = |error| DaemonError::Failed(format!("cannot wait for signals: {error}"));
        let alarm = Alarm::new().map_err(failed)?;
        let orders = Orders::catch(&alarm.bell()).map_err(failed)?;
        let index = server.watch(&alarm).map_err(failed)?;
        let ports = OpenPort::open_all(&args.ports, &settings, &mut server)?;
        let (sender, requests) = request_queue(alarm.bell());
        serve_console(server.unix_path().as_deref(), sender.clone(), &log);
        if let Some(address) = args.metrics {
            let failed =
                |error| DaemonError::Failed(format!("cannot serve metrics at {address}: {error}"));
            let page = PageServer::bind(address).map_err(failed)?;
            page.serve(move || console::request_metrics(&sender)).map_err(failed)?;
        }
        let alarm = (alarm, index);
        let mut this = Self {
            service,
            server,
            initial: settings.clone(),
            settings,
            args,
            ports,
            log,
            alarm,
            orders,
            requests,
            next_route_check: Instant::NEVER,
            awake_until: clock::now(),
            _published: published,
            _lock: lock,
        };
        this.preload()?;
        this.schedule_route_check();
        Ok(this)
    }

    /// Preloads the routes of each port whose LID or GID has changed, or of all ports if the route file has changed.
    /// Other cached data is kept.
    fn preload(&mut self) -> Result<(), DaemonError> {
        let now = clock::now();
        let version = self.settings.routes_version();
        let mut changed = Vec::new();
        for port in &mut self.ports {
            self.service.drive(now, port.id, &mut port.port, &mut port.seen);
            if port.needs_preload(version) {
                port.set_preloaded(version);
                changed.push(port.id);
            }
        }
        let paths = self.paths(&self.settings, |port| changed.contains(&port.id))?;
        self.preload_paths(paths);
        Ok(())
    }

    /// Schedules the next check of the route file, if the service preloads routes from one.
    fn schedule_route_check(&mut self) {
        let is_watched = self.settings.has_routes();
        self.next_route_check =
            if is_watched { clock::now() + ROUTE_CHECK } else { Instant::NEVER };
    }

    /// Reads the routes to preload for the ports that `which` selects.
    fn paths(
        &self,
        settings: &Settings,
        which: impl Fn(&OpenPort) -> bool,
    ) -> Result<Vec<PreloadedPaths>, DaemonError> {
        let ports = self.ports.iter().filter(|port| which(port));
        let with_lid = ports.filter(|port| port.port.state().link.lid != 0);
        let read = |port: &OpenPort| {
            let (paths, warnings) = settings.paths(&port.port.state())?;
            Ok(PreloadedPaths { id: port.id, paths, warnings })
        };
        with_lid.map(read).collect()
    }

    fn preload_paths(&mut self, all: Vec<PreloadedPaths>) {
        for PreloadedPaths { id, paths, warnings } in all {
            for line in warnings {
                self.log.line(ERROR, &line);
            }
            self.service.remove_preloaded_paths(id);
            self.service.preload_paths(clock::now(), id, &paths);
        }
    }

    fn run(mut self, out: &mut dyn Write) -> Result<Verdict, DaemonError> {
        for address in self.server.tcp_addresses().map_err(DaemonError::failed)? {
            self.log.line(INFO, &format!("listening on {address}"));
        }
        writeln!(out, "READY")?;
        out.flush()?;
        notify_systemd("READY=1");
        loop {
            while let Some(order) = self.orders.take() {
                match order {
                    Order::End => return Ok(self.end()),
                    Order::Reload => self.reload(),
                    Order::ReopenLog => self.log.reopen(),
                }
            }
            while let Some(request) = self.requests.take() {
                let reply = self.execute(request.line());
                request.respond(reply);
            }
            if self.round()? {
                self.awake_until = clock::now() + Duration::from_micros(self.args.spin);
            } else {
                self.wait()?;
            }
        }
    }

    /// Executes a request and returns the reply line.
    fn execute(&mut self, line: &str) -> String {
        match AcmRequest::parse(line) {
            Ok(request) => {
                if request == AcmRequest::Reload {
                    self.reload();
                }
                request.execute(&mut self.service, &self.server)
            }
            Err(reply) => reply,
        }
    }

    /// Handles all pending input; returns true if there was any.
    fn round(&mut self) -> Result<bool, DaemonError> {
        let now = clock::now();
        let Self { service, server, .. } = self;
        let mut progressed =
            server.serve(|client, message, out| service.request(now, client, message, out));
        if service.poll_timeout().is_some_and(|at| at <= now) {
            service.handle_timeout(now);
            progressed = true;
        }
        let mut failed = Vec::new();
        let mut is_preload_due = self.next_route_check <= now;
        for (index, port) in self.ports.iter_mut().enumerate() {
            match port.progress() {
                Ok(has_progressed) => progressed |= has_progressed,
                Err(why) => failed.push((index, why)),
            }
            let before = port.seen;
            progressed |= service.drive(now, port.id, &mut port.port, &mut port.seen);
            is_preload_due |= self.settings.has_routes() && port.seen != before;
        }
        self.remove_ports(failed)?;
        if is_preload_due {
            self.schedule_route_check();
            if let Err(error) = self.preload() {
                self.log.line(ERROR, &error.into_message());
            }
        }
        let Self { service, server, .. } = self;
        while let Some((client, bytes)) = service.poll_reply() {
            server.reply(client, &bytes);
            progressed = true;
        }
        while let Some(event) = service.poll_event() {
            match event {
                Event::NoDatagrams { .. } => self.log.note(SYSTEM, &event.to_string()),
                event => self.log.line(INFO, &event.to_string()),
            }
        }
        Ok(progressed)
    }

    /// Waits for input of clients and ports, or until a timer of the service expires.
    fn wait(&mut self) -> Result<(), DaemonError> {
        let mut until =
            self.service.poll_timeout().unwrap_or(Instant::NEVER).min(self.next_route_check);
        for port in &mut self.ports {
            match port.begin_wait() {
                Some(due) => until = until.min(due),
                None => return Ok(()),
            }
        }
        let now = clock::now();
        let limit = match now < self.awake_until {
            true => Duration::ZERO,
            false => until.since(now).min(MAX_WAIT),
        };
        self.server.wait(limit).map_err(DaemonError::failed)?;
        let mut failed = Vec::new();
        for (index, port) in self.ports.iter_mut().enumerate() {
            if let Err(why) = port.end_wait(&mut self.server) {
                failed.push((index, why));
            }
        }
        self.remove_ports(failed)?;
        let (alarm, index) = &self.alarm;
        if self.server.take_readable(*index) {
            alarm.silence();
        }
        Ok(())
    }

    /// Removes failed ports, whose indices must be in ascending order. Fails if no port would be left.
    fn remove_ports(&mut self, failed: Vec<(usize, String)>) -> Result<(), DaemonError> {
        failed.into_iter().rev().try_for_each(|(index, why)| self.remove_port(index, why))
    }

    /// Removes a failed port; returns an error if it is the last port.
    fn remove_port(&mut self, index: usize, why: String) -> Result<(), DaemonError> {
        if self.ports.len() == 1 {
            return Err(DaemonError::Failed(why));
        }
        let port = self.ports.remove(index);
        self.log.line(ERROR, &format!("{why}; the service continues without this port"));
        self.service.remove_port(clock::now(), port.id);
        Ok(())
    }

    /// Reads the configuration files again. If they are invalid, the settings remain unchanged.
    fn reload(&mut self) {
        let read = Settings::read(&self.args)
            .and_then(|settings| self.paths(&settings, |_| true).map(|paths| (settings, paths)));
        match read {
            Ok((settings, paths)) => {
                for warning in &settings.warnings {
                    self.log.line(ERROR, warning);
                }
                for line in self.initial.restart_warnings(&settings, &self.args) {
                    self.log.line(ERROR, &line);
                }
                self.log.set_flags(log_flags(&settings));
                self.service.configure(clock::now(), settings.config.clone());
                self.settings = settings;
                let version = self.settings.routes_version();
                for port in &mut self.ports {
                    port.configure(&self.settings);
                    port.set_preloaded(version);
                }
                self.preload_paths(paths);
                self.schedule_route_check();
                self.log.line(INFO, "the files were read again");
            }
            Err(error) => {
                let message = error.into_message();
                self.log.line(ERROR, &format!("{message}; the options are unchanged"));
            }
        }
    }

    /// Leaves all multicast groups and fails the pending requests.
    fn end(&mut self) -> Verdict {
        notify_systemd("STOPPING=1");
        let now = clock::now();
        self.service.leave(now);
        // Two rounds of the event loop send the last MADs and replies. Responses to these MADs are not awaited.
        let _ = self.round();
        let _ = self.round();
        Verdict::Good
    }
}

/// Opens the control socket and serves it in a thread.
fn serve_console(socket: Option<&Path>, requests: RequestSender, log: &Log) {
    let name = console::name(socket.unwrap_or(Path::new(DEFAULT_SOCKET)));
    let served = LineServer::bind(&name).and_then(|server| {
        server.serve(move |line| requests.request(line).unwrap_or_else(console::no_answer))
    });
    if let Err(error) = served {
        log.line(
            ERROR,
            &format!(
                "cannot listen on control socket @{name}:console, `ibfabric acm ctl` fails: {error}"
            ),
        );
    }
}

/// Returns the source address that the system's routing tables choose for packets to `to`. No packet is sent.
fn source_of(to: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((to, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// Returns the Unix socket and the TCP addresses on which the service listens.
fn listen_options(args: &AcmConfig, settings: &Settings) -> ServerOptions {
    let own_port = |open: bool, port: u16| {
        let address = if open { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
        SocketAddr::from((address, port))
    };
    let mut options = ServerOptions {
        unix: args.socket.clone(),
        tcp: args.tcp.into_iter().collect(),
        max_clients: args.max_clients as usize,
        is_socket_activated: args.systemd,
    };
    if !args.has_default_sockets() {
        return options;
    }
    match settings.options.server_mode {
        ServerMode::Unix if args.systemd => {}
        ServerMode::Unix => options.unix = Some(DEFAULT_SOCKET.into()),
        mode @ (ServerMode::Loop | ServerMode::Open) => {
            options.tcp.push(own_port(mode == ServerMode::Open, settings.options.server_port));
        }
    }
    options
}

/// Notifies systemd, if it has started the service.
fn notify_systemd(state: &str) {
    if let Err(error) = daemon::notify(state) {
        say!("cannot notify systemd: {error}");
    }
}
