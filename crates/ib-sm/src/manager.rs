//! The subnet manager: sweeps, plans, writes, and starts again when something changes.
//!
//! | file | holds |
//! |---|---|
//! | `manager` | what goes in and comes out |
//! | `stages` | the stages of a sweep, and what leads from one to the next |
//! | `requests` | what is asked and told, and how it ends |
//! | `pace` | how much of the time administration has |
//! | `peers` | what other managers and the ports of the subnet say unasked |
//! | `report` | what is said of a sweep |
//! | `changes` | what has come and gone, and why the subnet is explored |

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use ib_link::{Datagram, Incoming};
use ib_mad::{Requester, RequesterConfig};
use ib_routing::check::Checker;
use ib_types::{Guid, Instant};
use ib_wire::mad::TransactionId;
use ib_wire::mad::sm::{SmInfo, SmState};

use crate::alarm::{Alarm, AlarmKind, RaisedAlarm};
use crate::cache::UnicastCache;
use crate::config::SmConfig;
use crate::configuration::{Configuration, Context, Work};
use crate::discovery::{Discovery, Probe};
use crate::fault::Fault;
use crate::found::{Found, NodeIndex, Place};
use crate::multicast::MulticastTables;
use crate::plan::{Plan, PlanError, PlanJob, TableQuality};
use crate::sa::subnet::Subnet;
use crate::sa::{Administration, Known};
use crate::tables::{Tables, WrittenTables};

mod changes;
mod pace;
mod peers;
mod report;
mod requests;
mod stages;

pub use changes::{Exploration, LinkChange, PortChange};
use pace::Pace;
use report::Sweep;
pub use report::{PortStatus, SmCounters, SmEvent, SweepReport};

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
    /// SMInfo:ActCount: number of SMPs that the SM has sent, which shows that it is active.
    activity: u32,
    requester: Requester,
    asked: BTreeMap<TransactionId, Asked>,
    /// Responses to requests and traps.
    answers: VecDeque<Datagram>,
    stage: Stage,
    found: Found,
    tables: Tables,
    multicast: MulticastTables,
    written: WrittenTables,
    /// The members of each group, by multicast LID.
    groups: BTreeMap<u16, Vec<Guid>>,
    /// True if members have joined or left since the tables were written.
    regroup: bool,
    /// The subnet as of the last time it was up.
    subnet: Option<Arc<Subnet>>,
    administration: Administration,
    sweep: Sweep,
    /// True if clients have to reregister: the subnet had no SM before.
    fresh: bool,
    /// End ports that were requested to reregister since they joined or this SM started.
    registered: BTreeSet<Guid>,
    /// Switches whose LFT differed from the blocks written.
    read_back: BTreeSet<Guid>,
    /// True if a new discovery is needed; `why` holds the reason.
    stale: bool,
    why: Option<String>,
    /// True if a discovery with faults was repeated before its result was used.
    looked_twice: bool,
    /// GUIDs of nodes that have reported changes; if these are few, a partial discovery suffices.
    changed: BTreeSet<Guid>,
    /// True if the next sweep is due soon: a sweep was incomplete, or an SM of higher priority is starting.
    unsettled: bool,
    /// Time from which a trap of an unknown port starts a full discovery at once.
    search_from: Instant,
    /// GUIDs of switches whose tables are re-read in the next light sweep.
    doubtful: BTreeSet<Guid>,
    /// Switches whose `PortStateChange` flag was cleared after their ports had been read, so that changes in between may be
    /// missed; each with the next port to check.
    uncertain: BTreeMap<Guid, u8>,
    /// Number of light sweeps.
    looks: u32,
    /// Faults of the last complete sweep, and of the current one.
    faults: (BTreeSet<String>, BTreeSet<String>),
    /// Why there is no plan, once it was said; and the warnings that were given last.
    refusal: Option<String>,
    warned: BTreeSet<String>,
    /// Quality of the forwarding tables in the switches, as of the last plan; `None` if not known.
    quality: Option<TableQuality>,
    alarms: BTreeMap<AlarmKind, RaisedAlarm>,
    /// Checker of routes, which caches the last results.
    checker: Arc<Mutex<Checker>>,
    /// Number of consecutive sweeps with incomplete writes.
    failed_in_a_row: u32,
    /// Routes that remain valid while only hosts and leaf switches leave and return.
    cache: Option<UnicastCache>,
    counters: SmCounters,
    /// Share of the time for SA requests during a sweep.
    pace: Pace,
    events: VecDeque<SmEvent>,
}

/// What a request was for.
#[derive(Debug)]
enum Asked {
    Probe(Probe),
    Work(Work),
    /// Whether the ports of a switch have changed.
    Change(NodeIndex),
    /// Whether a block of a table is still what was written.
    Audit {
        node: NodeIndex,
        block: u16,
    },
    /// Whether an end port is what it was.
    State(Place),
    /// Whether the master lives.
    Master(Place),
    /// That another manager takes over.
    HandOver(Place),
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
    Looking { left: Vec<Asked>, waiting: usize },
    /// It gives the subnet to another manager.
    HandingOver { to: Place, told: bool },
    /// It waits for the master to fail.
    Standby { master: Place, next: Instant, failures: u32, waiting: bool },
    /// It does nothing until it is told to.
    NotActive,
}

impl SubnetManager {
    /// Returns a manager at the port with a GUID, which starts to explore at once.
    #[must_use]
    pub fn new(config: SmConfig, guid: Guid, now: Instant) -> Self {
        let requester = RequesterConfig { window: config.max_smps, ..RequesterConfig::default() };
        let administration = Administration::new(&config);
        let mut this = Self {
            requester: Requester::new(requester),
            config,
            guid,
            state: SmState::DISCOVERING,
            activity: 0,
            asked: BTreeMap::new(),
            answers: VecDeque::new(),
            stage: Stage::Idle { next: None },
            found: Found::default(),
            tables: Tables::new(),
            multicast: MulticastTables::default(),
            written: WrittenTables::new(),
            groups: BTreeMap::new(),
            regroup: false,
            subnet: None,
            administration,
            sweep: Sweep::default(),
            fresh: true,
            registered: BTreeSet::new(),
            read_back: BTreeSet::new(),
            stale: false,
            why: Some("the manager starts".to_owned()),
            looked_twice: false,
            changed: BTreeSet::new(),
            unsettled: false,
            search_from: Instant::ZERO,
            doubtful: BTreeSet::new(),
            uncertain: BTreeMap::new(),
            looks: 0,
            faults: Default::default(),
            refusal: None,
            warned: BTreeSet::new(),
            quality: None,
            alarms: BTreeMap::new(),
            checker: Arc::default(),
            failed_in_a_row: 0,
            cache: None,
            counters: SmCounters::default(),
            pace: Pace::default(),
            events: VecDeque::new(),
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
            act_count: self.activity,
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
        self.spoil("it was asked for");
        self.advance(now);
    }

    /// Takes what came out of the link. Returns true when it was for the manager.
    pub fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        let taken = self.requester.handle(now, incoming);
        if taken {
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
        self.requester.handle_timeout(now);
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
        if let Some(answer) = self.answers.pop_front() {
            self.activity = self.activity.wrapping_add(1);
            return Some(answer);
        }
        self.fill(now);
        while self.advance(now) {
            self.fill(now);
        }
        let request = self.requester.poll_transmit(now);
        self.activity = self.activity.wrapping_add(request.is_some().into());
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
        self.requester.outstanding() > 0
    }

    /// Answers requests to administration, as far as it is their turn.
    fn serve_requests(&mut self, now: Instant) {
        if !self.administration.has_work() {
            return;
        }
        let busy = self.is_busy();
        let known = Known {
            subnet: self.subnet.as_ref().filter(|_| self.state == SmState::MASTER),
            tables: &self.tables,
            multicast: &self.multicast,
            written: &self.written,
            manager: self.info(),
            sa_key: self.config.sa_key,
        };
        let credit = self.pace.credit(busy);
        self.administration.work(now, known, credit);
        if busy {
            self.pace.ask(now);
        }
        if let Some(groups) = self.administration.take_group_changes() {
            (self.groups, self.regroup) = (groups, true);
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
                self.warn(&plan.warnings);
                self.configure(now, Arc::new(plan));
            }
            Err(error) => {
                self.sweep.planned = now;
                let text = error.to_string();
                // The switches keep the tables that they have.
                let assessed = self.assess_tables_in_use();
                self.quality = assessed.as_ref().map(|(quality, _)| *quality);
                let mut alarms = vec![Alarm::NoPlan { reason: text.clone() }];
                alarms.extend(assessed.and_then(|(quality, first)| {
                    Alarm::of_quality(quality, first.as_deref(), None)
                }));
                self.raise(now, alarms);
                if self.refusal.as_ref() != Some(&text) {
                    self.refusal = Some(text.clone());
                    self.events.push_back(SmEvent::NoPlan(text));
                }
                self.rest(now);
            }
        }
    }

    /// Returns the next thing to say.
    pub fn poll_event(&mut self) -> Option<SmEvent> {
        self.events.pop_front()
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
        [self.requester.poll_timeout(), administration, own].into_iter().flatten().min()
    }

    /// Splits what the manager is doing from what it goes by.
    fn split(&mut self) -> (&mut Stage, Context<'_>) {
        let Self {
            config,
            found,
            tables,
            multicast,
            written,
            groups,
            registered,
            read_back,
            stage,
            ..
        } = self;
        (
            stage,
            Context { config, found, tables, multicast, written, groups, registered, read_back },
        )
    }

    fn become_state(&mut self, state: SmState) {
        if self.state != state {
            self.state = state;
            // Another SM is the master now, or no subnet has been discovered yet.
            (self.quality, self.alarms) = (None, BTreeMap::new());
            // An SM that has just become the master has no other SMs in its list.
            self.registered.clear();
            self.events.push_back(SmEvent::State(state));
        }
    }

    /// Tells of what is to be said of a plan, unless the last one gave the same reason.
    fn warn(&mut self, warnings: &[String]) {
        let new = warnings.iter().filter(|warning| !self.warned.contains(*warning));
        self.events.extend(new.cloned().map(SmEvent::Warning));
        self.warned = warnings.iter().cloned().collect();
    }

    /// Tells of faults that the last sweep did not meet.
    fn report(&mut self, faults: Vec<Fault>) {
        self.sweep.faults += faults.len();
        for fault in faults {
            let text = fault.to_string();
            let known = self.faults.0.contains(&text) || self.faults.1.contains(&text);
            self.faults.1.insert(text);
            if !known {
                self.events.push_back(SmEvent::Fault(fault));
            }
        }
    }
}
