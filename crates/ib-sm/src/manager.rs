//! The subnet manager: sweeps, plans, writes, and starts again when something changes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ib_link::{Datagram, Incoming, Remote};
use ib_mad::{Completion, Failure, OnLoss, Request, Requester, RequesterConfig};
use ib_types::Instant;
use ib_wire::mad::{Mad, TransactionId};

use crate::config::SmConfig;
use crate::configuration::{self, Configuration, Context, Work, Written};
use crate::discovery::{Discovery, Probe};
use crate::fault::Fault;
use crate::found::Found;
use crate::plan::{Plan, PlanError, PlanJob};
use crate::tables::Tables;

/// The manager of a subnet.
///
/// It owns no socket, thread or clock: its owner passes on what arrives ([`SubnetManager::handle`]),
/// calls [`SubnetManager::handle_timeout`] when [`SubnetManager::poll_timeout`] says, and after either
/// asks [`SubnetManager::poll_job`], [`SubnetManager::poll_transmit`] and
/// [`SubnetManager::poll_event`] until they return nothing. A job is run wherever the owner likes;
/// its result comes back by [`SubnetManager::handle_plan`].
#[derive(Debug)]
pub struct SubnetManager {
    config: SmConfig,
    requester: Requester,
    asked: BTreeMap<TransactionId, Asked>,
    stage: Stage,
    found: Found,
    tables: Tables,
    sweep: Sweep,
    /// Whether the subnet was up at some time.
    was_up: bool,
    events: VecDeque<SmEvent>,
}

/// What a request was for.
#[derive(Debug)]
enum Asked {
    Probe(Probe),
    Work(Work),
}

/// What the manager is doing.
#[derive(Debug)]
enum Stage {
    Idle { next: Option<Instant> },
    Discovering(Box<Discovery>),
    /// A job waits to be taken, or for its result.
    Planning(Option<Box<PlanJob>>),
    Configuring(Box<Configuration>),
}

/// The times and counts of the sweep under way.
#[derive(Clone, Copy, Debug, Default)]
struct Sweep {
    started: Instant,
    discovered: Instant,
    planned: Instant,
    sent: u64,
    retries: u64,
    faults: usize,
}

/// What a manager has to say.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SmEvent {
    /// Something is wrong.
    Fault(Fault),
    /// There is no plan, and nothing was written.
    NoPlan(String),
    /// The subnet is up.
    SubnetUp(Box<SweepReport>),
}

/// What came of a sweep.
#[derive(Clone, Debug)]
pub struct SweepReport {
    /// The plan that was written.
    pub plan: Plan,
    /// How much was written.
    pub written: Written,
    /// The number of nodes that were found.
    pub nodes: usize,
    /// How long the exploration took.
    pub discover: Duration,
    /// How long the plan took, with its check.
    pub plan_time: Duration,
    /// How long the writing took.
    pub program: Duration,
    /// SMPs that were sent.
    pub smps: u64,
    /// How many of these were repeated.
    pub retries: u64,
    /// The number of faults that were met.
    pub faults: usize,
}

impl SubnetManager {
    /// Returns a manager that starts to sweep at once.
    #[must_use]
    pub fn new(config: SmConfig, now: Instant) -> Self {
        let requester = RequesterConfig { window: config.max_smps, ..RequesterConfig::default() };
        let mut this = Self {
            requester: Requester::new(requester),
            config,
            asked: BTreeMap::new(),
            stage: Stage::Idle { next: None },
            found: Found::default(),
            tables: Tables::new(),
            sweep: Sweep::default(),
            was_up: false,
            events: VecDeque::new(),
        };
        this.start_sweep(now);
        this
    }

    /// Takes what came out of the link. Returns true when it was for the manager.
    pub fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        let taken = self.requester.handle(now, incoming);
        self.collect(now);
        taken
    }

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.requester.handle_timeout(now);
        self.collect(now);
        if let Stage::Idle { next: Some(at) } = self.stage
            && at <= now
        {
            self.start_sweep(now);
        }
    }

    /// Returns the next datagram to be sent.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        while self.requester.outstanding() < self.config.max_smps.max(1)
            && let Some((asked, mad)) = self.next_request()
        {
            let request = Request {
                on_loss: OnLoss::Retry,
                ..Request::new(Remote::directed(), self.signed(mad)).with_timing(self.config.timing)
            };
            let transaction = self.requester.start(request).expect("Get and Set are answered");
            self.asked.insert(transaction, asked);
        }
        self.advance(now);
        self.requester.poll_transmit(now)
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
        self.sweep.planned = now;
        match plan {
            Ok(plan) => {
                let reregister = !self.was_up;
                let Self { config, found, tables, .. } = self;
                let context = Context { config, found, tables, reregister };
                let configuration = Configuration::new(plan, &context);
                self.stage = Stage::Configuring(Box::new(configuration));
            }
            Err(error) => {
                self.events.push_back(SmEvent::NoPlan(error.to_string()));
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
        let sweep = if let Stage::Idle { next } = self.stage { next } else { None };
        [self.requester.poll_timeout(), sweep].into_iter().flatten().min()
    }

    fn start_sweep(&mut self, now: Instant) {
        let counters = self.requester.counters();
        self.sweep = Sweep {
            started: now,
            sent: counters.sent,
            retries: counters.retries,
            ..Sweep::default()
        };
        self.stage = Stage::Discovering(Box::new(Discovery::new()));
    }

    /// Waits for the next sweep.
    fn rest(&mut self, now: Instant) {
        self.stage = Stage::Idle { next: self.config.sweep_interval.map(|wait| now + wait) };
    }

    fn next_request(&mut self) -> Option<(Asked, Mad)> {
        let Self { config, found, tables, was_up, .. } = self;
        match &mut self.stage {
            Stage::Discovering(discovery) => {
                discovery.next().map(|(probe, mad)| (Asked::Probe(probe), mad))
            }
            Stage::Configuring(configuration) => {
                let context = Context { config, found, tables, reregister: !*was_up };
                configuration.next(&context).map(|(work, mad)| (Asked::Work(work), mad))
            }
            Stage::Idle { .. } | Stage::Planning(_) => None,
        }
    }

    fn signed(&self, mut mad: Mad) -> Mad {
        mad.set_m_key(self.config.m_key);
        mad
    }

    /// Passes on how requests ended.
    fn collect(&mut self, now: Instant) {
        while let Some(Completion { transaction_id, result, .. }) = self.requester.poll_event() {
            if let Some(asked) = self.asked.remove(&transaction_id) {
                self.ended(asked, result);
            }
        }
        self.advance(now);
    }

    fn ended(&mut self, asked: Asked, result: Result<ib_mad::Message, Failure>) {
        let Self { config, found, tables, was_up, .. } = self;
        match (&mut self.stage, asked) {
            (Stage::Discovering(discovery), Asked::Probe(probe)) => {
                discovery.handle(probe, result);
            }
            (Stage::Configuring(configuration), Asked::Work(work)) => {
                let mut context = Context { config, found, tables, reregister: !*was_up };
                configuration.handle(work, result, &mut context);
            }
            _ => unreachable!("a stage ends when all its requests have"),
        }
    }

    /// Goes on to the next stage when this one is over.
    fn advance(&mut self, now: Instant) {
        match &self.stage {
            Stage::Discovering(discovery) if discovery.is_done() => self.plan(now),
            Stage::Configuring(configuration) if configuration.is_done() => self.up(now),
            _ => {}
        }
    }

    fn plan(&mut self, now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Planning(None));
        let Stage::Discovering(discovery) = stage else { unreachable!("just seen") };
        let (found, faults) = discovery.finish();
        self.found = found;
        self.sweep.discovered = now;
        self.report(faults);
        if self.found.own.is_none() {
            self.events.push_back(SmEvent::NoPlan("the own port does not answer".to_owned()));
            return self.rest(now);
        }
        let existing = configuration::existing(&self.tables);
        let job = PlanJob::new(&self.found, &self.config.routing, existing);
        self.stage = Stage::Planning(Some(Box::new(job)));
    }

    fn up(&mut self, now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Idle { next: None });
        let Stage::Configuring(configuration) = stage else { unreachable!("just seen") };
        let (plan, written, faults, _incomplete) = configuration.finish();
        self.report(faults);
        let counters = self.requester.counters();
        let sweep = self.sweep;
        self.events.push_back(SmEvent::SubnetUp(Box::new(SweepReport {
            plan,
            written,
            nodes: self.found.nodes().len(),
            discover: sweep.discovered.since(sweep.started),
            plan_time: sweep.planned.since(sweep.discovered),
            program: now.since(sweep.planned),
            smps: counters.sent - sweep.sent,
            retries: counters.retries - sweep.retries,
            faults: sweep.faults,
        })));
        self.was_up = true;
        self.rest(now);
    }

    fn report(&mut self, faults: Vec<Fault>) {
        self.sweep.faults += faults.len();
        self.events.extend(faults.into_iter().map(SmEvent::Fault));
    }
}

#[cfg(test)]
mod tests;
