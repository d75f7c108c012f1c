//! The subnet manager: sweeps, plans, writes, and starts again when something changes.
//!
//! | file | holds |
//! |---|---|
//! | `manager` | what goes in and comes out |
//! | `stages` | the stages of a sweep, and the transitions between them |
//! | `requests` | the requests of each stage, and what their results change |
//! | `peers` | requests of other SMs, traps, and the election |
//! | `status` | queries, and changes of the configuration |
//!
//! Its parts:
//!
//! | file | holds |
//! |---|---|
//! | `smp` | requests in flight, and responses |
//! | `triggers` | why and when the subnet is swept again |
//! | `light_sweep` | what light sweeps look at |
//! | `sweep` | times and counts of a sweep |
//! | `reporter`, `event`, `changes` | events, and what keeps them from being repeated |
//! | `pace` | the share of the time that the SA has |

use std::sync::{Arc, Mutex};

use ib_link::{Datagram, Incoming};
use ib_routing::check::Checker;
use ib_types::{Guid, Instant};
use ib_wire::mad::sm::{SmInfo, SmState};

use crate::alarm::Alarm;
use crate::cache::UnicastCache;
use crate::config::SmConfig;
use crate::configuration::Configuration;
use crate::discovery::Discovery;
use crate::fault::Fault;
use crate::found::Place;
use crate::managed::ManagedSubnet;
use crate::plan::{Plan, PlanError, PlanJob};
use crate::sa::subnet::Subnet;
use crate::sa::{Administration, SubnetView};

mod changes;
mod event;
mod light_sweep;
mod pace;
mod peers;
mod reporter;
mod requests;
mod smp;
mod stages;
mod status;
mod sweep;
mod triggers;

pub use event::{
    Exploration, LinkChange, PortChange, PortStatus, SmCounters, SmEvent, SweepReport,
};
use light_sweep::LightSweeps;
use pace::Pace;
use reporter::Reporter;
use smp::{Purpose, Smps};
use sweep::Sweep;
use triggers::Triggers;

/// A subnet manager (SM), including subnet administration (SA).
///
/// The SM owns no socket, thread or clock. The owner passes received MADs to [`SubnetManager::handle`], and
/// calls [`SubnetManager::handle_timeout`] at the time that [`SubnetManager::poll_timeout`] returns. After
/// either call it polls [`SubnetManager::poll_job`], [`SubnetManager::poll_transmit`] and
/// [`SubnetManager::poll_event`] until they return `None`. The owner runs a job in any thread and
/// passes its result to [`SubnetManager::handle_plan`].
#[derive(Debug)]
pub struct SubnetManager {
    config: SmConfig,
    guid: Guid,
    state: SmState,
    stage: Stage,
    smps: Smps,
    subnet: ManagedSubnet,
    triggers: Triggers,
    light_sweeps: LightSweeps,
    sweep: Sweep,
    /// Checker of routes, which caches the last results.
    checker: Arc<Mutex<Checker>>,
    /// Routes that remain valid while only hosts and leaf switches leave and return.
    cache: Option<UnicastCache>,
    /// The subnet as of the last time it was up, which the SA serves.
    served: Option<Arc<Subnet>>,
    administration: Administration,
    /// Share of the time for SA requests during a sweep.
    pace: Pace,
    counters: SmCounters,
    reporter: Reporter,
}

/// What the manager is doing.
#[derive(Debug)]
enum Stage {
    /// It waits for something to happen, or for the next look at the subnet.
    Idle { next: Option<Instant> },
    /// It explores the subnet.
    Discovering(Box<Discovery>),
    /// A job waits to be taken, or for its result.
    Planning(Option<Box<PlanJob>>),
    /// It writes.
    Configuring(Box<Configuration>),
    /// It writes multicast tables.
    Grouping(Box<Configuration>),
    /// It looks whether ports or tables have changed.
    Looking { left: Vec<Purpose>, waiting: usize },
    /// It gives the subnet to another manager.
    HandingOver { to: Place, is_requested: bool },
    /// It waits for the master to fail.
    Standby { master: Place, next: Instant, failures: u32, waiting: bool },
    /// It does nothing until it is told to.
    NotActive,
}

impl SubnetManager {
    /// Returns a manager at the port with a GUID, which starts to explore at once.
    #[must_use]
    pub fn new(config: SmConfig, guid: Guid, now: Instant) -> Self {
        let mut this = Self {
            guid,
            state: SmState::DISCOVERING,
            stage: Stage::Idle { next: None },
            smps: Smps::new(config.max_smps, config.timing),
            subnet: ManagedSubnet::new(),
            triggers: Triggers::new("the manager starts"),
            light_sweeps: LightSweeps::default(),
            sweep: Sweep::default(),
            checker: Arc::default(),
            cache: None,
            served: None,
            administration: Administration::new(&config),
            pace: Pace::default(),
            counters: SmCounters::default(),
            reporter: Reporter::default(),
            config,
        };
        this.explore(now);
        this
    }

    /// Returns what the manager says of itself.
    #[must_use]
    pub fn info(&self) -> SmInfo {
        SmInfo {
            guid: self.guid,
            sm_key: self.config.sm_key,
            act_count: self.smps.activity(),
            priority: self.config.sm_priority,
            state: self.state,
        }
    }

    /// Returns what the manager is doing, in a word.
    #[must_use]
    pub const fn activity(&self) -> &'static str {
        match self.stage {
            Stage::Idle { .. } => "idle",
            Stage::Discovering(_) => "discovering",
            Stage::Planning(_) => "planning",
            Stage::Configuring(_) => "configuring",
            Stage::Grouping(_) => "writing multicast tables",
            Stage::Looking { .. } => "looking for changes",
            Stage::HandingOver { .. } => "handing over",
            Stage::Standby { .. } => "standing by",
            Stage::NotActive => "not active",
        }
    }

    /// Returns how often the manager has done what.
    #[must_use]
    pub const fn counters(&self) -> &SmCounters {
        &self.counters
    }

    /// Requests a heavy sweep. The sweep starts as soon as the SMPs in flight have completed.
    pub fn sweep(&mut self, now: Instant) {
        self.triggers.spoil("it was asked for");
        self.advance(now);
    }

    /// Takes what came out of the link. Returns true when it was for the manager.
    pub fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        if self.smps.handle(now, incoming) {
            self.collect(now);
            return true;
        }
        if self.administration.handle(now, incoming) {
            self.serve_requests(now);
            return true;
        }
        match incoming {
            Incoming::Received(datagram) => self.handle_unasked(now, datagram),
            Incoming::Lost(_) => false,
        }
    }

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.smps.handle_timeout(now);
        self.administration.handle_timeout(now);
        self.collect(now);
        self.pace.handle_timeout(now);
        self.serve_requests(now);
        if let Stage::Idle { next: Some(at) } = self.stage
            && at <= now
        {
            self.look();
            self.advance(now);
        }
    }

    /// Returns the next datagram to be sent.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if let Some(response) = self.smps.poll_response() {
            return Some(response);
        }
        self.fill(now);
        while self.advance(now) {
            self.fill(now);
        }
        let request = self.smps.poll_request(now);
        if request.is_some() || self.is_busy() && !self.pace.may_send() {
            return request;
        }
        let datagram = self.administration.poll_transmit(now);
        if datagram.is_some() && self.is_busy() {
            self.pace.sent();
        }
        datagram
    }

    /// Returns true while the subnet is explored or written: requests to administration have to wait
    /// for a part of their time then.
    fn is_busy(&self) -> bool {
        self.smps.outstanding() > 0
    }

    /// Answers requests to administration, as far as it is their turn.
    fn serve_requests(&mut self, now: Instant) {
        if !self.administration.has_work() {
            return;
        }
        let busy = self.is_busy();
        let view = SubnetView {
            subnet: self.served.as_ref().filter(|_| self.state == SmState::MASTER),
            tables: &self.subnet.tables,
            multicast: &self.subnet.multicast,
            written: self.subnet.written(),
            manager: self.info(),
            sa_key: self.config.sa_key,
        };
        let credit = self.pace.credit(busy);
        self.administration.work(now, view, credit);
        if busy {
            self.pace.ask(now);
        }
        if let Some(groups) = self.administration.take_group_changes() {
            self.subnet.set_groups(groups);
            self.advance(now);
        }
    }

    /// Returns the next job, to be run anywhere; [`SubnetManager::handle_plan`] takes its result.
    pub fn poll_job(&mut self) -> Option<Box<PlanJob>> {
        match &mut self.stage {
            Stage::Planning(job) => job.take(),
            _ => None,
        }
    }

    /// Takes the result of the job that was handed out last.
    pub fn handle_plan(&mut self, now: Instant, plan: Result<Plan, PlanError>) {
        if !matches!(self.stage, Stage::Planning(None)) {
            return;
        }
        match plan {
            Ok(plan) => {
                self.reporter.warn(&plan.warnings);
                self.configure(now, Arc::new(plan));
            }
            Err(error) => {
                self.sweep.planned = now;
                let text = error.to_string();
                // The switches keep the tables that they have.
                let assessed = self.assess_tables_in_use();
                self.reporter.quality = assessed.as_ref().map(|(quality, _)| *quality);
                let mut alarms = vec![Alarm::NoPlan { reason: text.clone() }];
                alarms.extend(assessed.and_then(|(quality, first)| {
                    Alarm::of_quality(quality, first.as_deref(), None)
                }));
                self.reporter.raise(now, alarms);
                self.reporter.refuse(text);
                self.rest(now);
            }
        }
    }

    /// Returns the next thing to say.
    pub fn poll_event(&mut self) -> Option<SmEvent> {
        self.reporter.poll()
    }

    /// Returns when [`SubnetManager::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = match self.stage {
            Stage::Idle { next } => next,
            Stage::Standby { next, waiting: false, .. } => Some(next),
            _ => None,
        };
        let administration = self.administration.poll_timeout();
        let waiting = self.administration.has_work().then(|| {
            if self.is_busy() { self.pace.poll_timeout() } else { Some(Instant::from_nanos(0)) }
        });
        let administration = [administration, waiting.flatten()].into_iter().flatten().min();
        [self.smps.poll_timeout(), administration, own].into_iter().flatten().min()
    }

    fn become_state(&mut self, state: SmState) {
        if self.state != state {
            self.state = state;
            self.reporter.forget_tables();
            // An SM that has just become the master has no other SMs in its list.
            self.subnet.registered.clear();
            self.reporter.push(SmEvent::State(state));
        }
    }

    /// Reports faults of the current sweep.
    fn report(&mut self, faults: Vec<Fault>) {
        self.sweep.faults += faults.len();
        self.reporter.report_faults(faults);
    }
}
