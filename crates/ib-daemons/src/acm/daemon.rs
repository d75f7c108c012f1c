//! The loop that joins programs, service and ports.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
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
use super::console;
use super::lock::Lock;
use super::settings::Settings;
use super::station::Station;
use crate::acm::{Server, ServerOptions};
use crate::error::{DaemonError, Verdict};
use crate::log::{ERROR, INFO, Log, LogOptions, SYSTEM, VERBOSE};
use crate::message::say;

/// Where programs look for a Unix socket, and for the number of a port.
const LINK: &str = "/run/ibacm.sock";
const PORT_FILE: &str = "/run/ibacm-tcp.port";
const PORT_LINK: &str = "/run/ibacm.port";

/// How often the file of routes is looked at, whether it is another.
const LOOK: Duration = Duration::from_secs(5);

/// How long is waited when nothing has to be done.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

pub(super) struct Daemon {
    pub(super) service: Service,
    pub(super) server: Server,
    settings: Settings,
    /// Those that it was started with.
    first: Settings,
    args: AcmConfig,
    stations: Vec<Station>,
    log: Log,
    alarm: (Alarm, usize),
    orders: Orders,
    requests: RequestQueue,
    /// When the file of routes is looked at next.
    look_at: Instant,
    /// Until when it looks for more without a sleep.
    awake_until: Instant,
    _published: Published,
    _lock: Option<Lock>,
}

/// What files say of the routes of a port, and what is to be said of them.
struct FilePaths {
    id: PortId,
    paths: Vec<PathRecord>,
    said: Vec<String>,
}

/// Serves as it is asked to.
///
/// # Errors
/// Fails if the configuration cannot be used or the last port is gone.
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

/// Returns the file of the log, if there is to be one.
pub(super) fn log_file(args: &AcmConfig, settings: &Settings) -> Option<PathBuf> {
    let is_named = args.log.is_some() || args.options.is_some();
    match &args.log {
        Some(path) => Some(path.clone()),
        // ibacm's usual log is for its usual places only.
        None if args.socket.is_some() && !is_named && settings.has_usual_log() => None,
        None => settings.log_file(),
    }
}

fn log_flags(settings: &Settings) -> u8 {
    match settings.options.log_level {
        0 => ERROR | INFO | SYSTEM,
        _ => ERROR | INFO | VERBOSE | SYSTEM,
    }
}

fn open_log(args: &AcmConfig, settings: &Settings) -> Result<Log, DaemonError> {
    let is_named = args.log.is_some() || args.options.is_some();
    let file = log_file(args, settings);
    let log = Log::open(&LogOptions {
        flags: log_flags(settings),
        limit: 0,
        file: file.as_deref(),
        is_default: !is_named,
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
        if args.places.is_empty() {
            let message = "no port: expected --attach NAME of a running `ibfabric sim`, or --umad";
            return Err(DaemonError::Failed(message.to_owned()));
        }
        let lock = settings.lock_file(&args).map(|path| Lock::take(&path)).transpose()?;
        let seed = ib_os::random()
            .map_err(|error| DaemonError::Failed(format!("no random numbers: {error}")))?;
        let mut service = Service::new(settings.config.clone(), seed);
        service.set_source_of(Box::new(source_of));
        let mut server = Server::bind(&place(&args, &settings)).map_err(DaemonError::failed)?;
        // Only who listens says where: what another service has said stays.
        let published = publish(&args, &settings)?;
        if !server.is_listening() {
            let message = "--systemd: expected sockets of a service manager, LISTEN_FDS names none";
            return Err(DaemonError::Failed(message.to_owned()));
        }
        let failed = |error| DaemonError::Failed(format!("cannot wait for signals: {error}"));
        let alarm = Alarm::new().map_err(failed)?;
        let orders = Orders::catch(&alarm.bell()).map_err(failed)?;
        let number = server.watch(&alarm).map_err(failed)?;
        let stations = Station::open_all(&args.places, &settings, &mut server)?;
        let (sender, requests) = request_queue(alarm.bell());
        serve_console(server.unix().as_deref(), sender.clone(), &log);
        if let Some(port) = args.metrics_port {
            let failed = |error| {
                let place = format!("port {port} of localhost");
                DaemonError::Failed(format!("cannot serve metrics on {place}: {error}"))
            };
            let page = PageServer::bind(port).map_err(failed)?;
            page.serve(move || console::request_metrics(&sender)).map_err(failed)?;
        }
        let alarm = (alarm, number);
        let mut this = Self {
            service,
            server,
            first: settings.clone(),
            settings,
            args,
            stations,
            log,
            alarm,
            orders,
            requests,
            look_at: Instant::NEVER,
            awake_until: clock::now(),
            _published: published,
            _lock: lock,
        };
        this.preload()?;
        this.look_later();
        Ok(this)
    }

    /// Has the service know what the file of routes says, for ports that it was not read for as it is now: a new one, one
    /// that has another LID, at which routes begin, and all of them when the file is another. A port that has no LID yet
    /// waits. What others have learned since stays.
    fn preload(&mut self) -> Result<(), DaemonError> {
        let now = clock::now();
        let version = self.settings.routes_version();
        let mut fresh = Vec::new();
        for station in &mut self.stations {
            self.service.drive(now, station.id, &mut station.port, &mut station.seen);
            if station.wants_routes(version) {
                station.routes_read(version);
                fresh.push(station.id);
            }
        }
        let paths = self.paths(&self.settings, |station| fresh.contains(&station.id))?;
        self.preload_paths(paths);
        Ok(())
    }

    /// Has the file of routes looked at after a while, if there is one.
    fn look_later(&mut self) {
        let is_watched = self.settings.has_routes();
        self.look_at = if is_watched { clock::now() + LOOK } else { Instant::NEVER };
    }

    /// Returns what files say of routes from some ports, and what is to be said of the files.
    fn paths(
        &self,
        settings: &Settings,
        which: impl Fn(&Station) -> bool,
    ) -> Result<Vec<FilePaths>, DaemonError> {
        let stations = self.stations.iter().filter(|station| which(station));
        let with_lid = stations.filter(|station| station.port.state().link.lid != 0);
        let read = |station: &Station| {
            let (paths, said) = settings.paths(&station.port.state())?;
            Ok(FilePaths { id: station.id, paths, said })
        };
        with_lid.map(read).collect()
    }

    fn preload_paths(&mut self, all: Vec<FilePaths>) {
        for FilePaths { id, paths, said } in all {
            for line in said {
                self.log.line(ERROR, &line);
            }
            self.service.remove_preloaded_paths(id);
            self.service.preload_paths(clock::now(), id, &paths);
        }
    }

    fn run(mut self, out: &mut dyn Write) -> Result<Verdict, DaemonError> {
        for address in self.server.tcp().map_err(DaemonError::failed)? {
            self.log.line(INFO, &format!("listening on {address}"));
        }
        writeln!(out, "READY")?;
        out.flush()?;
        tell("READY=1");
        loop {
            while let Some(order) = self.orders.take() {
                match order {
                    Order::End => return Ok(self.end()),
                    Order::Reload => self.reload(),
                    Order::ReopenLog => self.log.reopen(),
                }
            }
            while let Some(request) = self.requests.take() {
                let reply = console::answer(&mut self, request.line());
                request.respond(reply);
            }
            if self.round()? {
                self.awake_until = clock::now() + Duration::from_micros(self.args.spin);
            } else {
                self.wait()?;
            }
        }
    }

    /// Does what there is to do; returns whether there was anything.
    fn round(&mut self) -> Result<bool, DaemonError> {
        let now = clock::now();
        let Self { service, server, .. } = self;
        let mut moved =
            server.serve(|client, message, out| service.request(now, client, message, out));
        if service.poll_timeout().is_some_and(|at| at <= now) {
            service.handle_timeout(now);
            moved = true;
        }
        let mut gone = Vec::new();
        let mut is_other = self.look_at <= now;
        for (place, station) in self.stations.iter_mut().enumerate() {
            match station.progress() {
                Ok(has_moved) => moved |= has_moved,
                Err(why) => gone.push((place, why)),
            }
            let before = station.seen;
            moved |= service.drive(now, station.id, &mut station.port, &mut station.seen);
            is_other |= self.settings.has_routes() && station.seen != before;
        }
        self.lose_all(gone)?;
        if is_other {
            self.look_later();
            if let Err(error) = self.preload() {
                self.log.line(ERROR, &error.into_message());
            }
        }
        let Self { service, server, .. } = self;
        while let Some((client, bytes)) = service.poll_reply() {
            server.reply(client, &bytes);
            moved = true;
        }
        while let Some(event) = service.poll_event() {
            match event {
                Event::NoDatagrams { .. } => self.log.note(SYSTEM, &event.to_string()),
                event => self.log.line(INFO, &event.to_string()),
            }
        }
        Ok(moved)
    }

    fn wait(&mut self) -> Result<(), DaemonError> {
        let mut until = self.service.poll_timeout().unwrap_or(Instant::NEVER).min(self.look_at);
        for station in &mut self.stations {
            match station.begin_wait() {
                Some(due) => until = until.min(due),
                None => return Ok(()),
            }
        }
        let now = clock::now();
        let limit = match now < self.awake_until {
            true => Duration::ZERO,
            false => until.since(now).min(LONGEST_WAIT),
        };
        self.server.wait(limit).map_err(DaemonError::failed)?;
        let mut gone = Vec::new();
        for (place, station) in self.stations.iter_mut().enumerate() {
            if let Err(why) = station.end_wait(&mut self.server) {
                gone.push((place, why));
            }
        }
        self.lose_all(gone)?;
        let (alarm, number) = &self.alarm;
        if self.server.rang(*number) {
            alarm.silence();
        }
        Ok(())
    }

    /// Goes on without ports that are gone, by their places in order.
    fn lose_all(&mut self, gone: Vec<(usize, String)>) -> Result<(), DaemonError> {
        gone.into_iter().rev().try_for_each(|(place, why)| self.lose(place, why))
    }

    /// Goes on without a port that is gone; without any the service ends.
    fn lose(&mut self, place: usize, why: String) -> Result<(), DaemonError> {
        if self.stations.len() == 1 {
            return Err(DaemonError::Failed(why));
        }
        let station = self.stations.remove(place);
        self.log.line(ERROR, &format!("{why}; the service goes on without this port"));
        self.service.remove_port(clock::now(), station.id);
        Ok(())
    }

    /// Reads the files again. What cannot be used leaves all as it was.
    pub(super) fn reload(&mut self) {
        let read = Settings::read(&self.args)
            .and_then(|settings| self.paths(&settings, |_| true).map(|paths| (settings, paths)));
        match read {
            Ok((settings, paths)) => {
                for warning in &settings.warnings {
                    self.log.line(ERROR, warning);
                }
                for line in self.first.stays(&settings, &self.args) {
                    self.log.line(ERROR, &line);
                }
                self.log.set_flags(log_flags(&settings));
                self.service.configure(clock::now(), settings.config.clone());
                self.settings = settings;
                let version = self.settings.routes_version();
                for station in &mut self.stations {
                    station.configure(&self.settings);
                    station.routes_read(version);
                }
                self.preload_paths(paths);
                self.look_later();
                self.log.line(INFO, "the files were read again");
            }
            Err(error) => {
                let message = error.into_message();
                self.log.line(ERROR, &format!("{message}; the options stay as they were"));
            }
        }
    }

    /// Leaves the groups, and says so to those who wait.
    fn end(&mut self) -> Verdict {
        tell("STOPPING=1");
        let now = clock::now();
        self.service.leave(now);
        // What is sent leaves; nobody has to answer.
        let _ = self.round();
        let _ = self.round();
        Verdict::Good
    }
}

/// Opens the control socket.
fn serve_console(socket: Option<&Path>, requests: RequestSender, log: &Log) {
    let name = console::name(socket.unwrap_or(Path::new(DEFAULT_SOCKET)));
    let served = LineServer::bind(&name).and_then(|server| {
        server.serve(move |line| requests.request(line).unwrap_or_else(console::no_answer))
    });
    if let Err(error) = served {
        log.line(ERROR, &format!("nobody can ask this service: @{name}:console: {error}"));
    }
}

/// Returns the own address from which this machine speaks to another one: by routing tables, without a packet.
fn source_of(to: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((to, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// Returns where the service listens.
fn place(args: &AcmConfig, settings: &Settings) -> ServerOptions {
    let own_port = |open: bool, port: u16| {
        let address = if open { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
        SocketAddr::from((address, port))
    };
    let mut options = ServerOptions {
        unix: args.socket.clone(),
        tcp: args.tcp.map(|port| own_port(args.open, port)).into_iter().collect(),
        most_clients: args.most_clients as usize,
        inherited: args.systemd,
    };
    if !is_usual(args) {
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

/// Returns whether the service is where programs look for it.
pub(super) const fn is_usual(args: &AcmConfig) -> bool {
    args.socket.is_none() && args.tcp.is_none()
}

/// Publishes where the service listens, where programs look.
fn publish(args: &AcmConfig, settings: &Settings) -> Result<Published, DaemonError> {
    let mut published = Published(Vec::new());
    if !is_usual(args) {
        return Ok(published);
    }
    let failed = |path: &str| {
        let path = path.to_owned();
        move |error| DaemonError::Failed(format!("cannot make {path}: {error}"))
    };
    match settings.options.server_mode {
        ServerMode::Unix => {
            if !args.systemd && !settings.options.acme_plus_kernel_only {
                published.link(DEFAULT_SOCKET, LINK).map_err(failed(LINK))?;
            }
        }
        ServerMode::Loop | ServerMode::Open => {
            let port = settings.options.server_port;
            write_port(Path::new(PORT_FILE), port).map_err(failed(PORT_FILE))?;
            published.0.push(PORT_FILE.into());
            published.link(PORT_FILE, PORT_LINK).map_err(failed(PORT_LINK))?;
        }
    }
    Ok(published)
}

/// Writes where the service listens to a file that everybody can read and its owner can write, whatever the mask of new
/// files is and whoever has made it.
fn write_port(path: &Path, port: u16) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o644).open(path)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    writeln!(file, "{port}")
}

/// Files that go with the service.
struct Published(Vec<PathBuf>);

impl Published {
    fn link(&mut self, to: &str, at: &str) -> std::io::Result<()> {
        if fs::symlink_metadata(at).is_ok_and(|it| it.is_symlink()) {
            fs::remove_file(at)?;
        }
        symlink(to, at)?;
        self.0.push(at.into());
        Ok(())
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

/// Tells the service manager something, if there is one.
fn tell(state: &str) {
    if let Err(error) = daemon::notify(state) {
        say!("cannot tell the service manager: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_but_its_owner_can_write_where_a_service_listens() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ibacm.port");
        for before in [None, Some(0o666)] {
            if let Some(mode) = before {
                fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
            }
            write_port(&path, 6125).expect("a file");
            let mode = fs::metadata(&path).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o644);
            assert_eq!(fs::read_to_string(&path).expect("a file"), "6125\n");
        }
    }
}
