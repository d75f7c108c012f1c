//! The loop that joins a manager to its port.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant as WallClock;

use ib_control::console::ConsoleServer;
use ib_control::page::PageServer;
use ib_link::{LinkError, MadLink};
use ib_os::alarm::{Alarm, AlarmedLink};
use ib_os::daemon::{self as background, Detached};
use ib_os::signals::{Order, Orders};
use ib_sim::{Options, Sim};
use ib_sm::SmConfig;
use ib_types::{Guid, Instant};

use super::daemon::{self, Daemon, News};
use super::place::Port;
use super::request::{Place, Request};
use super::shared::Shared;
use super::{console, metrics, report};
use crate::command::log::{ERROR, INFO, Log, SYSTEM};
use crate::failure::{Failure, Verdict, say};
use crate::input;
use crate::output::Output;

/// The name of the console when nobody names one.
const SOCKET: &str = "sm";

/// How many managers of a machine have names of their own.
const MOST_MANAGERS: u8 = 9;

/// Manages as it is asked to: in the background once everything is there that it needs.
pub(super) fn run(request: &Request, out: &mut Output) -> Result<Verdict, Failure> {
    let failed = |error| Failure::Unusable(format!("cannot go on in the background: {error}"));
    let mut starting = None;
    if request.settings.daemon && !request.once {
        out.flush()?;
        match background::detach().map_err(failed)? {
            Detached::Caller(0) => return Ok(Verdict::Good),
            Detached::Caller(_) => return Err(Failure::Said),
            Detached::Background(background) => starting = Some(background),
        }
    }
    let log = daemon::open_log(request)?;
    for note in &request.notes {
        log.line_unless_said(INFO, note);
    }
    let result = manage(request, &log, out, || match starting {
        Some(starting) => starting.finish().map_err(failed),
        None => Ok(()),
    });
    if let Err(Failure::Unusable(message)) = &result {
        log.line_unless_said(ERROR, message);
    }
    log.line(SYSTEM, "Exiting SM");
    match result {
        Ok(Verdict::Good) if log.has_failed() => Ok(Verdict::Bad),
        result => result,
    }
}

/// Sets everything up, says that it is, and manages.
fn manage(
    request: &Request,
    log: &Log,
    out: &mut Output,
    is_set_up: impl FnOnce() -> Result<(), Failure>,
) -> Result<Verdict, Failure> {
    let config = request.settings.config(log)?;
    let _pid_file = request.pid_file.as_deref().map(PidFile::write).transpose()?;
    let mut sim;
    let port = if let Place::Sim { fabric, node } = &request.place {
        sim = Sim::new(&input::fabric_file(fabric)?, Options::default());
        Port::of_sim(&mut sim, node.as_deref(), Guid(request.settings.guid))?
    } else {
        Port::open(&request.place, &request.settings)?
    };
    let driver = Driver::new(request, config, port, log)?;
    is_set_up()?;
    driver.run(out)
}

/// A manager at its port.
struct Driver<'r, 's> {
    request: &'r Request,
    port: Port<'s>,
    daemon: Daemon,
    alarm: Alarm,
    orders: Orders,
    /// Until the subnet is up first.
    started: Option<WallClock>,
}

impl<'r, 's> Driver<'r, 's> {
    fn new(
        request: &'r Request,
        config: SmConfig,
        mut port: Port<'s>,
        log: &Log,
    ) -> Result<Self, Failure> {
        let started = Some(WallClock::now());
        let failed = |error| Failure::Unusable(format!("cannot wait for signals: {error}"));
        let alarm = Alarm::new().map_err(failed)?;
        let orders = Orders::catch(&alarm.bell()).map_err(failed)?;
        let shared = Shared::new(alarm.bell());
        if !port.is_virtual() {
            serve(request, &shared, log)?;
        }
        let guid = port.port().map_err(Failure::unusable)?.port_guid;
        request.settings.check_port(guid)?;
        let bell = (!port.is_virtual()).then(|| alarm.bell());
        let now = port.now();
        let daemon = Daemon::new(request, config, guid, now, bell, shared, log.clone())?;
        Ok(Self { request, port, daemon, alarm, orders, started })
    }

    /// Works until it is told to end, or until the subnet is up if that is all.
    fn run(mut self, out: &mut Output) -> Result<Verdict, Failure> {
        if self.request.settings.inactive {
            tell("READY=1");
        }
        let result = loop {
            match self.round(out) {
                Ok(None) => {}
                Ok(Some(verdict)) => break Ok(verdict),
                Err(failure) => break Err(failure),
            }
        };
        tell("STOPPING=1");
        self.daemon.end();
        match result {
            Ok(Verdict::Good) if self.request.once && self.daemon.has_unwritten() => {
                Ok(Verdict::Bad)
            }
            result => result,
        }
    }

    /// Does what there is to do, and waits for more; returns how it ended.
    fn round(&mut self, out: &mut Output) -> Result<Option<Verdict>, Failure> {
        let Self { port, daemon, alarm, orders, .. } = self;
        // In this order: who rings after it ends the next wait.
        alarm.silence();
        while let Some(order) = orders.take() {
            match order {
                Order::End => return Ok(Some(Verdict::Good)),
                Order::Reload => daemon.reload(port.now()),
                Order::ReopenLog => daemon.reopen_log(),
            }
        }
        if let Some(verdict) = self.work(out)? {
            return Ok(Some(verdict));
        }
        let until = self.daemon.poll_timeout().unwrap_or(Instant::NEVER);
        self.port.wait_alarmed(until, &self.alarm).map_err(Failure::unusable)?;
        while let Some(incoming) = self.port.receive().map_err(Failure::unusable)? {
            self.daemon.handle(self.port.now(), &incoming);
            // What is answered leaves before more is taken in.
            if let Some(verdict) = self.work(out)? {
                return Ok(Some(verdict));
            }
        }
        self.daemon.handle_timeout(self.port.now());
        Ok(None)
    }

    /// Sends what there is to be sent and says what is new; returns how it ended.
    fn work(&mut self, out: &mut Output) -> Result<Option<Verdict>, Failure> {
        let Self { port, daemon, .. } = self;
        let mut unsent = Vec::new();
        let news = daemon.work(port.now(), &mut |datagram| match port.send(datagram) {
            Err(error @ LinkError::Closed { .. }) => Err(Failure::unusable(error)),
            Err(error) => {
                unsent.push(error.to_string());
                Ok(())
            }
            Ok(()) => Ok(()),
        })?;
        for error in unsent {
            // Whoever waits for an answer asks again.
            daemon.complain(&error);
        }
        for news in news {
            if let Some(verdict) = self.tell_of(news, out)? {
                return Ok(Some(verdict));
            }
        }
        Ok(None)
    }

    /// Says what is new, and whether that is the end.
    fn tell_of(&mut self, news: News, out: &mut Output) -> Result<Option<Verdict>, Failure> {
        let Self { request, port, started, .. } = self;
        match news {
            News::Up(sweep) => {
                tell("READY=1\nSTATUS=The subnet is up");
                if !request.as_opensm {
                    let requested = request.settings.config.routing.engines.to_string();
                    let started = started.take();
                    let clock = if port.is_virtual() { "fabric" } else { "wall" };
                    report::print(&sweep, requested, started, clock, request.format, out)?;
                }
                // OpenSM has done what it could, too, whatever did not answer.
                let verdict = || match request.as_opensm {
                    true => Verdict::Good,
                    false => report::verdict(&sweep),
                };
                Ok(request.once.then(verdict))
            }
            News::NoPlan(why) if request.once => Err(Failure::Unusable(why)),
            News::NoPlan(_) => {
                tell("STATUS=The subnet cannot be routed");
                Ok(None)
            }
            News::Standby(other) if (port.is_real() || request.once) && !request.standby => {
                Err(Failure::Unusable(format!(
                    "this subnet has a manager: {other}; with --standby this one waits until that \
                     one fails"
                )))
            }
            News::Standby(_) => {
                tell("READY=1\nSTATUS=Another manager is the master");
                Ok(None)
            }
        }
    }
}

/// Opens what others ask the manager by.
pub(super) fn serve(request: &Request, shared: &Arc<Shared>, log: &Log) -> Result<(), Failure> {
    let name = request.socket.as_deref().unwrap_or(SOCKET);
    let mut bound = ConsoleServer::bind(name);
    if request.socket.is_none() && !request.once {
        // Of several managers on one machine the first one has the usual name.
        for number in 2..=MOST_MANAGERS {
            if bound.is_ok() {
                break;
            }
            let other = format!("{SOCKET}-{number}");
            bound = ConsoleServer::bind(&other);
            if bound.is_ok() {
                let why = format!("@{name}:console is another manager's");
                let ask = format!("this one is asked with `ibfabric sm ctl --socket {other}`");
                log.note(INFO, &format!("{why}: {ask}"));
            }
        }
    }
    match bound {
        Ok(server) => {
            let shared = Arc::clone(shared);
            let served = server.serve(move |line| console::answer(&shared, line));
            served.map_err(Failure::unusable)?;
        }
        Err(error) if request.socket.is_some() => {
            let message = format!("cannot listen on @{name}:console: {error}");
            return Err(Failure::Unusable(message));
        }
        Err(_) if request.once => {}
        Err(error) => log.note(
            ERROR,
            &format!("nobody can ask this manager: @{name}:console: {error}; see --socket"),
        ),
    }
    if let Some(port) = request.metrics_port {
        let failed = |error| {
            Failure::Unusable(format!("cannot serve metrics on port {port} of localhost: {error}"))
        };
        let server = PageServer::bind(port).map_err(failed)?;
        let shared = Arc::clone(shared);
        server.serve(move || metrics::page(&shared.state())).map_err(failed)?;
    }
    Ok(())
}

/// Tells the service manager something, if there is one.
fn tell(state: &str) {
    if let Err(error) = background::notify(state) {
        say!("cannot tell the service manager: {error}");
    }
}

/// A file with the number of the process, as long as it runs.
struct PidFile<'p>(&'p Path);

impl<'p> PidFile<'p> {
    fn write(path: &'p Path) -> Result<Self, Failure> {
        let text = format!("{}\n", std::process::id());
        let written = super::files::replace(path, text.as_bytes());
        written.map_err(|error| {
            Failure::Unusable(format!("cannot write {}: {error}", path.display()))
        })?;
        Ok(Self(path))
    }
}

impl Drop for PidFile<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}
