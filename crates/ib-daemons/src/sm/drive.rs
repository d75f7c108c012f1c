//! The event loop of an SM with its port.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant as WallClock;

use ib_control::lines::LineServer;
use ib_control::page::PageServer;
use ib_link::{LinkError, MadLink};
use ib_os::alarm::{Alarm, AlarmedLink};
use ib_os::daemon::{self as background, Detached};
use ib_os::signals::{Order, Orders};
use ib_sim::{Options, Sim};
use ib_sm::{SmConfig, SweepReport};
use ib_types::{Guid, Instant};

use super::daemon::{self, Daemon, News};
use super::options::{ManagerOptions, SmPort};
use super::port;
use super::shared::Shared;
use super::{console, metrics};
use crate::error::{DaemonError, Verdict};
use crate::input;
use crate::log::{ERROR, INFO, Log, SYSTEM};
use crate::mad_port::MadPort;
use crate::message::say;

/// The event that a sweep has brought the subnet up.
#[derive(Debug)]
pub struct SubnetUp<'s> {
    /// The report of the sweep.
    pub sweep: &'s SweepReport,
    /// The time at which the process started; `None` in all reports after the first one.
    pub started: Option<WallClock>,
    /// The clock by which the durations of the sweep were measured: `fabric` if this process simulates the fabric, else
    /// `wall`.
    pub clock: &'static str,
}

/// Callback that prints a report when the subnet was brought up.
pub type Report<'r> = dyn FnMut(&SubnetUp<'_>) -> Result<(), DaemonError> + 'r;

/// Default name of the console socket.
const SOCKET: &str = "sm";

/// Highest number in a default name of the console socket. The names are `sm`, `sm-2`, `sm-3` and so on.
const MOST_MANAGERS: u8 = 9;

/// Runs the SM. If `background` is set, the process detaches from the terminal after the setup.
///
/// # Errors
/// Fails if the configuration cannot be used, if the port fails, or if the report cannot be printed.
pub fn run(options: &ManagerOptions, out: &mut Report<'_>) -> Result<Verdict, DaemonError> {
    let failed = |error| DaemonError::Failed(format!("cannot detach from the terminal: {error}"));
    let mut starting = None;
    if options.background && !options.once {
        match background::detach().map_err(failed)? {
            Detached::Caller(0) => return Ok(Verdict::Good),
            Detached::Caller(_) => return Err(DaemonError::Reported),
            Detached::Background(background) => starting = Some(background),
        }
    }
    let log = daemon::open_log(options)?;
    for note in &options.notes {
        log.line_unless_said(INFO, note);
    }
    let result = manage(options, &log, out, || match starting {
        Some(starting) => starting.finish(None).map_err(failed),
        None => Ok(()),
    });
    if let Err(DaemonError::Failed(message)) = &result {
        log.line_unless_said(ERROR, message);
    }
    log.line(SYSTEM, "Exiting SM");
    match result {
        Ok(Verdict::Good) if log.has_failed() => Ok(Verdict::Bad),
        result => result,
    }
}

/// Sets up the SM, calls `is_set_up`, and then runs the event loop.
fn manage(
    options: &ManagerOptions,
    log: &Log,
    out: &mut Report<'_>,
    is_set_up: impl FnOnce() -> Result<(), DaemonError>,
) -> Result<Verdict, DaemonError> {
    let config = (options.sm_config)(log).map_err(DaemonError::Failed)?;
    let _pid_file = options.pid_file.as_deref().map(PidFile::write).transpose()?;
    let mut sim;
    let port = if let SmPort::Sim { fabric, node } = &options.place {
        sim = Sim::new(&input::fabric_file(fabric)?, Options::default());
        port::of_sim(&mut sim, node.as_deref(), options.guid)?
    } else {
        port::open(options)?
    };
    let driver = Driver::new(options, config, port, log)?;
    is_set_up()?;
    driver.run(out)
}

/// An SM with its port.
struct Driver<'r, 's> {
    options: &'r ManagerOptions,
    port: MadPort<'s>,
    daemon: Daemon,
    alarm: Alarm,
    orders: Orders,
    /// Time at which the process started; `None` once this time was reported.
    started: Option<WallClock>,
}

impl<'r, 's> Driver<'r, 's> {
    fn new(
        options: &'r ManagerOptions,
        config: SmConfig,
        mut port: MadPort<'s>,
        log: &Log,
    ) -> Result<Self, DaemonError> {
        let started = Some(WallClock::now());
        let failed = |error| DaemonError::Failed(format!("cannot wait for signals: {error}"));
        let alarm = Alarm::new().map_err(failed)?;
        let orders = Orders::catch(&alarm.bell()).map_err(failed)?;
        let shared = Shared::new(alarm.bell());
        if !port.is_virtual() {
            serve(options, &shared, log)?;
        }
        let guid = port.port().map_err(DaemonError::failed)?.port_guid;
        check_port(options, guid)?;
        let bell = (!port.is_virtual()).then(|| alarm.bell());
        let now = port.now();
        let daemon = Daemon::new(options, config, guid, now, bell, shared, log.clone())?;
        Ok(Self { options, port, daemon, alarm, orders, started })
    }

    /// Runs until a signal stops the process. If `once` is set, stops as soon as the subnet is up.
    fn run(mut self, out: &mut Report<'_>) -> Result<Verdict, DaemonError> {
        if self.options.inactive {
            notify("READY=1");
        }
        let result = loop {
            match self.round(out) {
                Ok(None) => {}
                Ok(Some(verdict)) => break Ok(verdict),
                Err(failure) => break Err(failure),
            }
        };
        notify("STOPPING=1");
        self.daemon.end();
        match result {
            Ok(Verdict::Good) if self.options.once && self.daemon.has_unwritten() => {
                Ok(Verdict::Bad)
            }
            result => result,
        }
    }

    /// Runs one round of the event loop: handles signals, due work and input. Returns the daemon's result if the loop
    /// must end.
    fn round(&mut self, out: &mut Report<'_>) -> Result<Option<Verdict>, DaemonError> {
        let Self { port, daemon, alarm, orders, options, .. } = self;
        // `alarm` is reset before signals and console requests are read. A signal or request that arrives later rings
        // `alarm` and so ends the next wait.
        alarm.silence();
        while let Some(order) = orders.take() {
            match order {
                Order::End if options.once && !options.as_opensm => {
                    let message = "a signal has stopped the SM before the subnet was up";
                    return Err(DaemonError::Interrupted(message.to_owned()));
                }
                Order::End => return Ok(Some(Verdict::Good)),
                Order::Reload => daemon.reload(port.now()),
                Order::ReopenLog => daemon.reopen_log(),
            }
        }
        if let Some(verdict) = self.work(out)? {
            return Ok(Some(verdict));
        }
        let until = self.daemon.poll_timeout().unwrap_or(Instant::NEVER);
        self.port.wait_alarmed(until, &self.alarm).map_err(DaemonError::failed)?;
        while let Some(incoming) = self.port.receive().map_err(DaemonError::failed)? {
            self.daemon.handle(self.port.now(), &incoming);
            // Responses are sent before the next MAD is handled.
            if let Some(verdict) = self.work(out)? {
                return Ok(Some(verdict));
            }
        }
        self.daemon.handle_timeout(self.port.now());
        Ok(None)
    }

    /// Sends MADs and handles events. Returns the daemon's result if the event loop must end.
    fn work(&mut self, out: &mut Report<'_>) -> Result<Option<Verdict>, DaemonError> {
        let Self { port, daemon, .. } = self;
        let mut unsent = Vec::new();
        let news = daemon.work(port.now(), &mut |datagram| match port.send(datagram) {
            Err(error @ LinkError::Closed { .. }) => Err(DaemonError::failed(error)),
            Err(error) => {
                unsent.push(error.to_string());
                Ok(())
            }
            Ok(()) => Ok(()),
        })?;
        for error in unsent {
            // The SM retransmits the MAD after its timeout, so the MAD is not sent again here.
            daemon.complain(&error);
        }
        for news in news {
            if let Some(verdict) = self.handle_event(news, out)? {
                return Ok(Some(verdict));
            }
        }
        Ok(None)
    }

    /// Handles an event. Returns the daemon's result if the event loop must end.
    fn handle_event(
        &mut self,
        news: News,
        out: &mut Report<'_>,
    ) -> Result<Option<Verdict>, DaemonError> {
        let Self { options, port, started, .. } = self;
        match news {
            News::Up(sweep) => {
                notify("READY=1\nSTATUS=The subnet is up");
                if !options.as_opensm {
                    let started = started.take();
                    let clock = if port.is_virtual() { "fabric" } else { "wall" };
                    out(&SubnetUp { sweep: &sweep, started, clock })?;
                }
                // OpenSM reports success even if some nodes do not respond.
                let verdict = || match options.as_opensm {
                    true => Verdict::Good,
                    false => verdict(&sweep),
                };
                Ok(options.once.then(verdict))
            }
            News::NoPlan(why) if options.once => Err(DaemonError::Failed(why)),
            News::NoPlan(_) => {
                notify("STATUS=The subnet cannot be routed");
                Ok(None)
            }
            News::Standby(other) if (port.is_real() || options.once) && !options.standby => {
                Err(DaemonError::Failed(format!(
                    "this subnet has an SM: {other}; with --standby this SM waits until the other one fails"
                )))
            }
            News::Standby(_) => {
                notify("READY=1\nSTATUS=Another SM is the master");
                Ok(None)
            }
        }
    }
}

/// Returns the daemon's result after a sweep. It determines the exit status.
fn verdict(sweep: &SweepReport) -> Verdict {
    let reaches_all = sweep.quality.is_some_and(|quality| quality.unreachable == 0);
    Verdict::good_if(reaches_all && sweep.faults == 0)
}

/// Checks that the opened port has the configured GUID.
///
/// # Errors
/// Fails if the opened port has a different GUID.
fn check_port(options: &ManagerOptions, guid: Guid) -> Result<(), DaemonError> {
    if options.guid.is_zero() || options.guid == guid {
        return Ok(());
    }
    Err(DaemonError::Failed(format!(
        "{}: found {}, expected {guid}, the GUID of the opened port; at a simulator, --node NAME or the \
        environment variable SIM_HOST selects the node",
        options.guid_origin, options.guid
    )))
}

/// Opens the console socket and the metrics server.
pub(super) fn serve(
    options: &ManagerOptions,
    shared: &Arc<Shared>,
    log: &Log,
) -> Result<(), DaemonError> {
    let name = options.socket.as_deref().unwrap_or(SOCKET);
    let mut bound = LineServer::bind(name);
    if options.socket.is_none() && !options.once {
        // If another SM on this machine uses the name `sm`, the names `sm-2` to `sm-9` are tried.
        for number in 2..=MOST_MANAGERS {
            if bound.is_ok() {
                break;
            }
            let other = format!("{SOCKET}-{number}");
            bound = LineServer::bind(&other);
            if bound.is_ok() {
                let why = format!("@{name}:console belongs to another SM");
                let hint = format!("use `ibfabric sm ctl --name {other}` for this one");
                log.note(INFO, &format!("{why}: {hint}"));
            }
        }
    }
    match bound {
        Ok(server) => {
            let shared = Arc::clone(shared);
            let served = server.serve(move |line| console::answer(&shared, line));
            served.map_err(DaemonError::failed)?;
        }
        Err(error) if options.socket.is_some() => {
            let message = format!("cannot listen on @{name}:console: {error}");
            return Err(DaemonError::Failed(message));
        }
        Err(_) if options.once => {}
        Err(error) => log
            .note(ERROR, &format!("this SM has no console: @{name}:console: {error}; see --name")),
    }
    if let Some(address) = options.metrics {
        let failed =
            |error| DaemonError::Failed(format!("cannot serve metrics at {address}: {error}"));
        let server = PageServer::bind(address).map_err(failed)?;
        let shared = Arc::clone(shared);
        server.serve(move || metrics::page(&shared.state())).map_err(failed)?;
    }
    Ok(())
}

/// Sends a state to the service manager that has started the process, if any.
fn notify(state: &str) {
    if let Err(error) = background::notify(state) {
        say!("cannot notify the service manager: {error}");
    }
}

/// The file that contains the process ID. Dropping the value removes the file.
struct PidFile<'p>(&'p Path);

impl<'p> PidFile<'p> {
    fn write(path: &'p Path) -> Result<Self, DaemonError> {
        let text = format!("{}\n", std::process::id());
        let written = super::files::replace(path, text.as_bytes());
        written.map_err(|error| {
            DaemonError::Failed(format!("cannot write {}: {error}", path.display()))
        })?;
        Ok(Self(path))
    }
}

impl Drop for PidFile<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}
