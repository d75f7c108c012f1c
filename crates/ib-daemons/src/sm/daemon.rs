//! The SM with its log, files, plans and counters, and its state for console and metrics. The owner of the `Daemon`
//! sends and receives the SM's MADs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ib_link::{Datagram, Incoming};
use ib_os::alarm::Bell;
use ib_routing::LidOptions;
use ib_routing::engine::{Refusal, reason};
use ib_sm::{AlarmKind, PortStatus, SmConfig, SmEvent, SubnetManager, SweepReport};
use ib_topology::name_map;
use ib_types::{Guid, Instant};
use ib_wire::mad::sm::{SmInfo, SmState};

use super::cache::{Cache, Lids};
use super::console::state_word;
use super::dump::{self, Dump};
use super::events;
use super::files::{Kind, Writer};
use super::options::ManagerOptions;
use super::perf::Perf;
use super::planner::Planner;
use super::shared::{Last, Shared, ShownAlarm};
use crate::error::DaemonError;
use crate::input;
use crate::log::{DEBUG, ERROR, FRAMES, INFO, Log, LogOptions, ROUTING, SYSTEM, VERBOSE};

/// An event that [`Daemon::work`] returns to the code that runs the SM.
pub(crate) enum News {
    /// The subnet is up.
    Up(Box<SweepReport>),
    /// The subnet cannot be routed; the text is the reason.
    NoPlan(String),
    /// Another SM is the master; the text describes it.
    Standby(String),
}

/// The SM with its log, files, plans and counters.
pub(crate) struct Daemon {
    manager: SubnetManager,
    options: ManagerOptions,
    m_key: u64,
    /// True if the subnet is swept at regular intervals.
    has_interval: bool,
    lids: LidOptions,
    names: BTreeMap<Guid, String>,
    log: Log,
    cache: Cache,
    writer: Writer,
    /// True if a cache file or a dump file could not be written.
    has_unwritten: bool,
    dumps: Option<PathBuf>,
    /// True if all dump files are written, not only the list of links.
    dumps_all: bool,
    planner: Planner,
    perf: Option<Perf>,
    shared: Arc<Shared>,
    /// True if the process exits when the subnet cannot be routed. The caller of [`Daemon::work`] then prints the
    /// reason.
    ends_without_plan: bool,
    /// Reasons why routing engines could not route the subnet at the last sweep.
    refusals: Vec<String>,
    /// Description of the SM's activity at the last call of [`Daemon::work`].
    activity: &'static str,
}

impl Daemon {
    /// Creates and starts an SM at the port with the given GUID. If `bell` is `Some`, plans are computed in another
    /// thread.
    pub(super) fn new(
        options: &ManagerOptions,
        config: SmConfig,
        guid: Guid,
        now: Instant,
        bell: Option<Bell>,
        shared: Arc<Shared>,
        log: Log,
    ) -> Result<Self, DaemonError> {
        let options = options.clone();
        let (m_key, has_interval) = (config.m_key, config.sweep_interval.is_some());
        let names = names(options.node_name_map.as_deref())?;
        let mut lids = config.routing.lids.clone();
        let warn = &mut |text: String| {
            // With `once`, users normally do not read the log, so warnings about cache files are also printed.
            if options.once { log.note(ERROR, &text) } else { log.line(ERROR, &text) }
        };
        let cache = Cache::open(options.cache_dir.as_deref(), warn);
        let has_unwritten = options.cache_dir.is_some() && !cache.is_kept();
        if !lids.reassign {
            lids.guid2lid = cache.lids.clone();
        }
        let dumps = options.dump_files_dir.as_deref();
        let dumps = dumps
            .map(|directory| dump::directory(directory, options.has_usual_dumps, &log))
            .transpose()
            .map_err(DaemonError::Failed)?;
        let writer = Writer::start().map_err(DaemonError::failed)?;
        let timing = config.timing;
        let requested = config.routing.engines.to_string();
        let state = shared.state();
        let perf = options.perf_interval.map(|seconds| {
            Perf::new(Duration::from_secs(seconds.into()), timing, Arc::clone(&state.counts))
        });
        for warning in config.partitions.warnings() {
            log.line(ERROR, &warning.to_string());
        }
        let mut manager = SubnetManager::new(config, guid, now);
        manager.set_lids(lids.clone());
        if options.inactive {
            manager.deactivate();
        } else {
            log.line(SYSTEM, "Entering DISCOVERING state");
        }
        log.line(INFO, &format!("Managing from port GUID {guid}"));
        shared.update(|state| {
            state.requested = requested;
            state.info = Some(manager.info());
        });
        let planner = Planner::new(bell);
        let ends_without_plan = options.once;
        let dumps_all = !options.as_opensm || log.has(ROUTING);
        Ok(Self {
            manager,
            options,
            m_key,
            has_interval,
            lids,
            names,
            log,
            cache,
            writer,
            has_unwritten,
            dumps,
            dumps_all,
            planner,
            perf,
            shared,
            ends_without_plan,
            refusals: Vec::new(),
            activity: "",
        })
    }

    /// Handles a received or lost MAD.
    pub(crate) fn handle(&mut self, now: Instant, incoming: &Incoming) {
        if self.log.has(FRAMES) {
            let (verb, datagram) = match incoming {
                Incoming::Received(datagram) => ("received", datagram),
                Incoming::Lost(datagram) => ("lost", datagram),
            };
            self.log.line(FRAMES, &events::datagram(verb, datagram));
        }
        let counted = self.perf.as_mut().is_some_and(|perf| perf.handle(now, incoming));
        if !counted {
            self.manager.handle(now, incoming);
        }
    }

    /// Handles timers that have expired.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.manager.handle_timeout(now);
        if let Some(perf) = &mut self.perf {
            perf.handle_timeout(now);
        }
    }

    /// Returns the time at which the next timer expires.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let perf = self.perf.as_ref().and_then(|perf| perf.poll_timeout(self.is_idle()));
        [self.manager.poll_timeout(), perf].into_iter().flatten().min()
    }

    /// Returns true if the SM is idle and the master, so that it may collect port counters.
    fn is_idle(&self) -> bool {
        self.manager.activity() == "idle" && self.manager.info().state == SmState::MASTER
    }

    /// Sends MADs, computes plans and writes files; returns events for the caller.
    ///
    /// # Errors
    /// Fails if `send` returns an error.
    pub(crate) fn work(
        &mut self,
        now: Instant,
        send: &mut dyn FnMut(&Datagram) -> Result<(), DaemonError>,
    ) -> Result<Vec<News>, DaemonError> {
        if self.shared.take_sweep() {
            self.reload(now);
        }
        let failed = self.writer.failed();
        self.log_unwritten(&failed);
        let mut news = Vec::new();
        let frames = self.log.has(FRAMES).then(|| self.log.clone());
        let send = &mut |datagram: &Datagram| {
            if let Some(log) = &frames {
                log.line(FRAMES, &events::datagram("sends", datagram));
            }
            send(datagram)
        };
        loop {
            if let Some(plan) = self.planner.take() {
                self.manager.handle_plan(now, plan);
            }
            while let Some(datagram) = self.manager.poll_transmit(now) {
                send(&datagram)?;
            }
            // Events are handled before the next plan is computed, because a change of the SM's state may discard
            // cached LIDs that the plan would assign.
            while let Some(event) = self.manager.poll_event() {
                self.take_event(now, event, &mut news);
            }
            match self.manager.poll_job() {
                Some(job) => self.planner.start(job),
                None => break,
            }
        }
        let idle = self.is_idle();
        if let Some(perf) = &mut self.perf {
            while let Some(datagram) = perf.poll_transmit(now, idle) {
                send(&datagram)?;
            }
        }
        let activity = self.manager.activity();
        if std::mem::replace(&mut self.activity, activity) != activity {
            self.log.line(DEBUG, &format!("The SM is {activity}"));
        }
        self.show();
        Ok(news)
    }

    /// Updates the state that console and metrics show.
    fn show(&self) {
        let Self { manager, .. } = self;
        if manager.info().state == SmState::STANDBY {
            self.show_others();
        }
        self.shared.update(|state| {
            state.info = Some(manager.info());
            state.activity = manager.activity();
            state.traffic = manager.traffic();
            state.counters = *manager.counters();
            state.quality = manager.quality();
        });
    }

    fn show_alarms(&self, now: Instant) {
        let alarms = self.manager.alarms().map(|raised| ShownAlarm {
            alarm: raised.alarm.clone(),
            since: SystemTime::now() - now.since(raised.since),
        });
        let alarms = Arc::new(alarms.collect());
        self.shared.update(|state| state.alarms = alarms);
    }

    /// Reads the partition file again and starts a heavy sweep.
    pub(crate) fn reload(&mut self, now: Instant) {
        let rejected = match (self.options.partitions)() {
            Ok(partitions) => {
                for warning in partitions.warnings() {
                    self.log.line(ERROR, &warning.to_string());
                }
                self.manager.set_partitions(partitions);
                None
            }
            Err(error) => {
                let text = format!("{error}; the partitions are unchanged");
                self.log.line(ERROR, &text);
                Some(text)
            }
        };
        self.shared.update(|state| state.rejected = rejected);
        self.manager.sweep(now);
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) const fn log(&self) -> &Log {
        &self.log
    }

    /// Reopens the log file.
    pub(crate) fn reopen_log(&mut self) {
        self.log.reopen();
    }

    /// Waits until all files are written.
    pub(crate) fn end(&mut self) {
        let failed = self.writer.finish();
        self.log_unwritten(&failed);
    }

    /// Returns true if a cache file or a dump file could not be written.
    pub(super) const fn has_unwritten(&self) -> bool {
        self.has_unwritten
    }

    /// Logs and counts the errors of file writes. With `sm --once`, also prints them.
    fn log_unwritten(&mut self, failed: &[String]) {
        for text in failed {
            self.has_unwritten = true;
            if self.ends_without_plan {
                self.log.note(ERROR, text);
                self.shared.update(|state| state.fault_count += 1);
            } else {
                self.complain(text);
            }
        }
    }

    /// Logs an error and counts it in `fault_count`.
    pub(crate) fn complain(&mut self, text: &str) {
        self.log.line(ERROR, text);
        self.shared.update(|state| state.fault_count += 1);
    }

    fn take_event(&mut self, now: Instant, event: SmEvent, news: &mut Vec<News>) {
        match event {
            SmEvent::Fault(fault) => self.complain(&fault.to_string()),
            SmEvent::Warning(text) => self.complain(&text),
            SmEvent::AlarmRaised(alarm) => {
                // The alarm `NoPlan` is not logged here, because the event `SmEvent::NoPlan` reports its reason.
                if alarm.kind() != AlarmKind::NoPlan {
                    self.complain(&format!("ALARM: {alarm}"));
                }
                self.show_alarms(now);
            }
            SmEvent::AlarmCleared(kind) => {
                self.log.line(INFO, &format!("ALARM cleared: {}", kind.name()));
                self.show_alarms(now);
            }
            SmEvent::NoPlan(why) => {
                if !self.ends_without_plan {
                    self.complain(&why);
                }
                self.shared.update(|state| state.no_plan = Some(why.clone()));
                news.push(News::NoPlan(why));
            }
            SmEvent::State(state) => {
                let word = state_word(state).to_uppercase();
                self.log.line(SYSTEM, &format!("Entering {word} state"));
                self.show_others();
                if state != SmState::MASTER {
                    // This SM is not the master, so console and metrics no longer show its view of the subnet.
                    self.shared.update(|state| {
                        (state.last, state.no_plan) = (None, None);
                        state.alarms = Arc::default();
                        (state.faults, state.ports) = Default::default();
                    });
                }
                if state == SmState::STANDBY {
                    // The other SM may assign different LIDs, so the cached LIDs are discarded.
                    if !self.options.honor_guid2lid {
                        self.cache.lids.clear();
                        self.lids.guid2lid.clear();
                        self.manager.set_lids(self.lids.clone());
                    }
                    news.push(News::Standby(self.best_other()));
                }
            }
            SmEvent::SubnetUp(report) => {
                self.up(now, &report);
                news.push(News::Up(report));
            }
            SmEvent::Trap(notice) => self.log_event(events::trap(&notice)),
            SmEvent::DiscoveryStart(start) => self.log_event(events::discovery_start(&start)),
            SmEvent::Port(change) => self.log_event(events::port(&change)),
            SmEvent::Link(change) => self.log_event(events::link(&change)),
            _ => {}
        }
    }

    fn log_event(&self, (level, text): events::Line) {
        self.log.line(level, &text);
    }

    /// Returns a description of the other SM with the highest precedence.
    fn best_other(&self) -> String {
        let others = self.manager.managers();
        let other = others.max_by_key(|(guid, _, info)| {
            (info.state == SmState::MASTER, info.priority, std::cmp::Reverse(*guid))
        });
        match other {
            Some((guid, name, SmInfo { priority, state, .. })) => {
                let state = state_word(*state);
                format!("{guid} ('{}'), {state}, priority {priority}", name.description)
            }
            None => "unknown".to_owned(),
        }
    }

    fn show_others(&self) {
        let named = |(guid, name, info): (Guid, ib_sm::fault::PortName, &SmInfo)| {
            (name.description, guid, *info)
        };
        let managers = Arc::new(self.manager.managers().map(named).collect());
        self.shared.update(|state| state.managers = managers);
    }

    /// Logs which engines could not route the subnet, and which one did. Logs nothing if the same engines failed for
    /// the same reasons at the last sweep.
    fn log_refusals(&mut self, refusals: &[Refusal], engine: &str) {
        let texts: Vec<String> = refusals
            .iter()
            .map(|refusal| format!("{} cannot route this subnet: {}", refusal.0, reason(refusal)))
            .collect();
        if self.refusals == texts {
            return;
        }
        for text in &texts {
            self.log.line(ERROR, text);
        }
        if !texts.is_empty() {
            self.log.line(ERROR, &format!("routed with {engine} instead"));
        }
        self.refusals = texts;
    }

    /// Updates the cache, the state that console and metrics show, and the dump files, after the subnet was brought up.
    fn up(&mut self, now: Instant, report: &SweepReport) {
        let plan = &report.plan;
        let lids: Lids = plan
            .end_ports
            .iter()
            .map(|(&guid, &(first, count))| (guid, (first.get(), first.get() + count - 1)))
            .collect();
        let fabric = self.manager.fabric().map(|mut fabric| {
            fabric.rename(&self.names);
            Arc::new(fabric)
        });
        if let Some(fabric) = &fabric
            && let Some(job) = self.cache.keep(lids, self.m_key, fabric)
        {
            self.writer.write(Kind::Cache, job);
        }
        // Only the first sweep reassigns LIDs. A port that returns later gets its previous LIDs.
        self.lids.reassign = false;
        self.lids.guid2lid = self.cache.lids.clone();
        self.manager.set_lids(self.lids.clone());
        let engine = plan.routing.engine.name();
        self.log_refusals(&plan.refusals, engine);
        self.log.line(INFO, &format!("ucast: {engine} tables configured on all switches"));
        for note in &plan.notes {
            self.log.line(VERBOSE, note);
        }
        for line in events::up(report) {
            self.log_event(line);
        }
        let without = if self.has_interval { "" } else { " (sweep disabled)" };
        self.log.line(INFO, &format!("SUBNET UP{without}"));
        let mut ports = self.manager.ports();
        for PortStatus { node_guid, description, .. } in &mut ports {
            if let Some(name) = self.names.get(node_guid) {
                description.clone_from(name);
            }
        }
        if let Some(perf) = &mut self.perf {
            perf.set_ports(now, &ports);
        }
        self.show_others();
        let faults = Arc::new(self.manager.faults().map(str::to_owned).collect());
        let last = Arc::new(Last { report: report.clone(), at: SystemTime::now() });
        let ports = Arc::new(ports);
        self.shared.update(|state| {
            (state.faults, state.ports) = (faults, ports);
            state.last = Some(last);
            state.no_plan = None;
        });
        if let (Some(directory), Some(fabric)) = (self.dumps.clone(), fabric) {
            let switch = |&guid: &Guid| (guid, self.manager.multicast_ports(guid));
            let dump = Dump {
                fabric,
                own_port: self.manager.guid(),
                plan: Arc::clone(plan),
                lids: self.lids.clone(),
                multicast: plan.switches.iter().map(switch).collect(),
                all: self.dumps_all,
            };
            let job = move || dump.write(&directory).err().into_iter().collect();
            self.writer.write(Kind::Dumps, Box::new(job));
        }
    }
}

/// Opens the log that is configured.
///
/// # Errors
/// Fails if the configured log file cannot be opened.
pub(super) fn open_log(options: &ManagerOptions) -> Result<Log, DaemonError> {
    let log = Log::open(&LogOptions {
        flags: options.log_flags,
        limit: options.log_max_size,
        file: options.log_file.as_deref(),
        is_default: options.has_usual_log,
        erases: !options.accum_log_file,
        echoes: options.as_opensm,
    });
    let log = log.map_err(DaemonError::Failed)?;
    log.line(SYSTEM, concat!("ibfabric ", env!("CARGO_PKG_VERSION")));
    Ok(log)
}

/// Reads the file that maps node GUIDs to names.
fn names(path: Option<&Path>) -> Result<BTreeMap<Guid, String>, DaemonError> {
    let Some(path) = path else { return Ok(BTreeMap::new()) };
    name_map::parse(&path.display().to_string(), &input::bytes(path)?).map_err(DaemonError::failed)
}
