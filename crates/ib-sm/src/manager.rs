//! The subnet manager: sweeps, plans, configures the subnet, and sweeps again after changes.
//!
//! | file | contents |
//! |---|---|
//! | `manager` | public interface: takes MADs and timeouts, returns MADs, jobs and events |
//! | `stages` | the stages of a sweep, and the transitions between them |
//! | `requests` | the requests of each stage, and the effects of their results |
//! | `peers` | requests of other SMs, traps, and the election |
//! | `status` | queries of the SM's state, and changes of its configuration |
//!
//! The parts of the SM's state:
//!
//! | file | contents |
//! |---|---|
//! | `smp` | SMPs in flight, and responses |
//! | `triggers` | reasons and time of the next sweep |
//! | `light_sweep` | nodes, ports and table blocks that light sweeps query |
//! | `sweep` | times and counts of a sweep |
//! | `reporter`, `event`, `changes` | events, and earlier reports that must not be repeated |
//! | `sa_budget` | the part of the SM's time that the SA may use |

use std::sync::{Arc, Mutex};

use ib_link::{Datagram, Incoming};
use ib_routing::check::Checker;
use ib_types::{Guid, Instant};
use ib_wire::mad::sm::{SmInfo, SmState};

use crate::alarm::Alarm;
use crate::cache::UnicastCache;
use crate::config::SmConfig;
use crate::configuration::Configuration;
use crate::discovered_subnet::PortIndex;
use crate::discovery::Discovery;
use crate::fault::Fault;
use crate::managed::ManagedSubnet;
use crate::plan::{Plan, PlanError, PlanJob};
use crate::sa::subnet::Subnet;
use crate::sa::{Sa, SubnetView};

mod changes;
mod event;
mod light_sweep;
mod peers;
mod reporter;
mod requests;
mod sa_budget;
mod smp;
mod stages;
mod status;
mod sweep;
mod triggers;

pub use event::{
    DiscoveryStart, LinkChange, PortChange, PortStatus, SmCounters, SmEvent, SweepReport,
};
use light_sweep::LightSweeps;
use reporter::Reporter;
use sa_budget::SaBudget;
use smp::{Purpose, Smps};
use sweep::Sweep;
use triggers::Triggers;

/// A subnet manager (SM), including subnet administration (SA).
///
/// The SM owns no socket, thread or clock. The owner passes received MADs to [`SubnetManager::handle`], and calls
/// [`SubnetManager::handle_timeout`] at the time that [`SubnetManager::poll_timeout`] returns. After either call, the
/// owner polls [`SubnetManager::poll_job`], [`SubnetManager::poll_transmit`] and [`SubnetManager::poll_event`] until
/// they return `None`. It runs each job in any thread, and passes the result to [`SubnetManager::handle_plan`].
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
    /// Checker of routes for unreachable pairs and credit loops. It caches its last results.
    checker: Arc<Mutex<Checker>>,
    /// Cached routes, which remain valid while only hosts and leaf switches leave and return.
    cache: Option<UnicastCache>,
    /// State of the subnet when it was last up. The SA answers queries from this state.
    served: Option<Arc<Subnet>>,
    sa: Sa,
    /// The part of the SM's time that SA requests get during a sweep.
    sa_budget: SaBudget,
    counters: SmCounters,
    reporter: Reporter,
}

/// The current activity of the SM: a stage of a sweep, or a state without a sweep.
#[derive(Debug)]
enum Stage {
    /// No SMPs are in flight. `next` is the time at which the next light sweep is due.
    Idle { next: Option<Instant> },
    /// A discovery is running.
    Discovering(Box<Discovery>),
    /// A plan is being computed. Holds the job until the owner takes it, then `None` until the result arrives.
    Planning(Option<Box<PlanJob>>),
    /// A plan is being written.
    Configuring(Box<Configuration>),
    /// Multicast tables are being written, because group members have joined or left.
    WritingGroups(Box<Configuration>),
    /// A light sweep is running: queries in `left` are not sent yet, and `waiting` queries are in flight.
    LightSweep { left: Vec<Purpose>, waiting: usize },
    /// The SM hands the subnet over to an SM that wins the election.
    HandingOver { to: PortIndex, is_requested: bool },
    /// The SM polls the master, and takes over when the master fails.
    Standby { master: PortIndex, next: Instant, failures: u32, waiting: bool },
    /// The master has disabled this SM.
    NotActive,
}

impl SubnetManager {
    /// Creates an SM at the port with the given GUID. The SM starts its first discovery at once.
    #[must_use]
    pub fn new(config: SmConfig, guid: Guid, now: Instant) -> Self {
        let mut this = Self {
            guid,
            state: SmState::DISCOVERING,
            stage: Stage::Idle { next: None },
            smps: Smps::new(config.max_smps, config.timing),
            subnet: ManagedSubnet::new(),
            triggers: Triggers::new("the SM starts"),
            light_sweeps: LightSweeps::default(),
            sweep: Sweep::default(),
            checker: Arc::default(),
            cache: None,
            served: None,
            sa: Sa::new(&config),
            sa_budget: SaBudget::default(),
            counters: SmCounters::default(),
            reporter: Reporter::default(),
            config,
        };
        this.explore(now);
        this
    }

    /// Returns the SMInfo attribute of this SM.
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

    /// Returns the name of the SM's current stage.
    #[must_use]
    pub const fn activity(&self) -> &'static str {
        match self.stage {
            Stage::Idle { .. } => "idle",
            Stage::Discovering(_) => "discovering",
            Stage::Planning(_) => "planning",
            Stage::Configuring(_) => "configuring",
            Stage::WritingGroups(_) => "writing multicast tables",
            Stage::LightSweep { .. } => "looking for changes",
            Stage::HandingOver { .. } => "handing over",
            Stage::Standby { .. } => "standing by",
            Stage::NotActive => "not active",
        }
    }

    /// Returns the counters since the start of the SM.
    #[must_use]
    pub const fn counters(&self) -> &SmCounters {
        &self.counters
    }

    /// Requests a heavy sweep. The master starts it at once, or at the end of the sweep in progress.
    pub fn sweep(&mut self, now: Instant) {
        self.triggers.require_full_discovery("requested by the user");
        self.advance(now);
    }

    /// Processes a received MAD, or the report that a sent MAD was lost. Returns true if the MAD belongs to the SM or
    /// SA.
    pub fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        if self.smps.handle(now, incoming) {
            self.handle_completions(now);
            return true;
        }
        if self.sa.handle(now, incoming) {
            self.serve_requests(now);
            return true;
        }
        match incoming {
            Incoming::Received(datagram) => self.handle_request(now, datagram),
            Incoming::Lost(_) => false,
        }
    }

    /// Processes timeouts that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.smps.handle_timeout(now);
        self.sa.handle_timeout(now);
        self.handle_completions(now);
        self.sa_budget.handle_timeout(now);
        self.serve_requests(now);
        if let Stage::Idle { next: Some(at) } = self.stage
            && at <= now
        {
            self.start_light_sweep();
            self.advance(now);
        }
    }

    /// Returns the next MAD to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if let Some(response) = self.smps.poll_response() {
            return Some(response);
        }
        self.start_requests(now);
        while self.advance(now) {
            self.start_requests(now);
        }
        let request = self.smps.poll_request(now);
        if request.is_some() || self.is_busy() && !self.sa_budget.can_send() {
            return request;
        }
        let datagram = self.sa.poll_transmit(now);
        if datagram.is_some() && self.is_busy() {
            self.sa_budget.charge_mad();
        }
        datagram
    }

    /// Returns true while SMPs are in flight. SA requests then get only a part of the time.
    fn is_busy(&self) -> bool {
        self.smps.outstanding() > 0
    }

    /// Serves SA requests. While SMPs are in flight, uses only the time that the SA's budget allows.
    fn serve_requests(&mut self, now: Instant) {
        if !self.sa.has_work() {
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
        let credit = self.sa_budget.credit(busy);
        self.sa.work(now, view, credit);
        if busy {
            self.sa_budget.start_timer(now);
        }
        if let Some(groups) = self.sa.take_group_changes() {
            self.subnet.set_groups(groups);
            self.advance(now);
        }
    }

    /// Returns the next planning job. The owner runs it in any thread, and passes the result to
    /// [`SubnetManager::handle_plan`].
    pub fn poll_job(&mut self) -> Option<Box<PlanJob>> {
        match &mut self.stage {
            Stage::Planning(job) => job.take(),
            _ => None,
        }
    }

    /// Processes the result of the last job that [`SubnetManager::poll_job`] returned.
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
                // Without a plan, the switches keep their tables. The SM reports the quality of these tables.
                let assessed = self.assess_tables_in_use();
                self.reporter.quality = assessed.as_ref().map(|(quality, _)| *quality);
                let mut alarms = vec![Alarm::NoPlan { reason: text.clone() }];
                alarms.extend(assessed.and_then(|(quality, first)| {
                    Alarm::of_quality(quality, first.as_deref(), None)
                }));
                self.reporter.raise(now, alarms);
                self.reporter.refuse(text);
                self.become_idle(now);
            }
        }
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<SmEvent> {
        self.reporter.poll()
    }

    /// Returns the time at which [`SubnetManager::handle_timeout`] is due; `None` if there is no
    /// timer.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = match self.stage {
            Stage::Idle { next } => next,
            Stage::Standby { next, waiting: false, .. } => Some(next),
            _ => None,
        };
        let sa = self.sa.poll_timeout();
        let waiting = self.sa.has_work().then(|| {
            if self.is_busy() {
                self.sa_budget.poll_timeout()
            } else {
                Some(Instant::from_nanos(0))
            }
        });
        let sa = [sa, waiting.flatten()].into_iter().flatten().min();
        [self.smps.poll_timeout(), sa, own].into_iter().flatten().min()
    }

    fn become_state(&mut self, state: SmState) {
        if self.state != state {
            self.state = state;
            self.reporter.forget_tables();
            // Clients are registered at the SA of one master. When the master changes, all of them have to reregister.
            self.subnet.registered.clear();
            self.reporter.push(SmEvent::State(state));
        }
    }

    /// Reports the faults that the current sweep has found.
    fn report(&mut self, faults: Vec<Fault>) {
        self.sweep.faults += faults.len();
        self.reporter.report_faults(faults);
    }
}
