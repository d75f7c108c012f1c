//! The subnet manager: sweeps, plans, writes, and starts again when something changes.
//!
//! | file | holds |
//! |---|---|
//! | `manager` | the stages of a sweep, and what leads from one to the next |
//! | `peers` | what other managers and the ports of the subnet say unasked |
//! | `report` | what is said of a sweep |

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use ib_link::{Datagram, Incoming, Remote};
use ib_mad::{Completion, Failure, Message, OnLoss, Request, Requester, RequesterConfig};
use ib_types::{Gid, Guid, Instant};
use ib_wire::mad::sm::{LinearForwardingBlock, SmInfo, SmState, SwitchInfo, TrapNumber};
use ib_wire::mad::smp;
use ib_wire::mad::{AttributeId, Mad, Method, TransactionId};

use crate::config::SmConfig;
use crate::configuration::{self, Configuration, Context, Work};
use crate::discovery::{Discovery, Probe};
use crate::election::{self, Outcome};
use crate::fault::{Fault, PortName};
use crate::found::{Found, NodeIndex, Place};
use crate::multicast::MulticastTables;
use crate::plan::{Plan, PlanError, PlanJob};
use crate::sa::subnet::Subnet;
use crate::sa::{self, Administration, Known};
use crate::tables::{SwitchTable, Tables};

mod peers;
mod report;

use report::Sweep;
pub use report::{PortStatus, SmEvent, SweepReport};

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
    guid: Guid,
    state: SmState,
    /// Changes with each SMInfo, to show that the manager lives.
    activity: u32,
    requester: Requester,
    asked: BTreeMap<TransactionId, Asked>,
    /// Answers to what was asked or told.
    answers: VecDeque<Datagram>,
    stage: Stage,
    found: Found,
    tables: Tables,
    multicast: MulticastTables,
    /// The members of each group, by multicast LID.
    groups: BTreeMap<u16, Vec<Guid>>,
    /// Whether members have come or gone since the tables were written.
    regroup: bool,
    /// The subnet as it was when it was up last.
    subnet: Option<Box<Subnet>>,
    administration: Administration,
    sweep: Sweep,
    /// Whether clients shall register again: nobody has brought the subnet up before.
    fresh: bool,
    /// Whether the subnet has to be explored again.
    stale: bool,
    /// Whether it has to be soon: something was not done, or a better manager is just coming.
    unsettled: bool,
    /// The switches whose tables are read again with the next look, by node GUID.
    doubtful: BTreeSet<Guid>,
    /// How often the manager looked for changes.
    looks: u32,
    /// What was wrong with the subnet when it was explored and written last, and what is wrong now.
    faults: (BTreeSet<String>, BTreeSet<String>),
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
            groups: BTreeMap::new(),
            regroup: false,
            subnet: None,
            administration,
            sweep: Sweep::default(),
            fresh: true,
            stale: false,
            unsettled: false,
            doubtful: BTreeSet::new(),
            looks: 0,
            faults: Default::default(),
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

    /// Explores the whole subnet again, as soon as what is under way is done.
    pub fn sweep(&mut self, now: Instant) {
        self.stale = true;
        self.advance(now);
    }

    /// Takes what came out of the link. Returns true when it was for the manager.
    pub fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        let taken = self.requester.handle(now, incoming);
        if taken {
            self.collect(now);
            return true;
        }
        let known = Known {
            subnet: self.subnet.as_deref().filter(|_| self.state == SmState::MASTER),
            tables: &self.tables,
            manager: self.info(),
        };
        if self.administration.handle(now, incoming, known) {
            if let Some(groups) = self.administration.take_group_changes() {
                (self.groups, self.regroup) = (groups, true);
                self.advance(now);
            }
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
        if let Stage::Idle { next: Some(at) } = self.stage
            && at <= now
        {
            self.look();
            self.advance(now);
        }
    }

    /// Returns the next datagram to be sent.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let answer = self.answers.pop_front();
        if let Some(answer) = answer.or_else(|| self.administration.poll_transmit(now)) {
            return Some(answer);
        }
        self.fill(now);
        while self.advance(now) {
            self.fill(now);
        }
        self.requester.poll_transmit(now)
    }

    /// Starts as many requests as may be under way.
    fn fill(&mut self, now: Instant) {
        while self.requester.outstanding() < self.config.max_smps.max(1)
            && let Some((asked, mut mad)) = self.next_request(now)
        {
            mad.set_m_key(self.config.m_key);
            let request = Request {
                on_loss: OnLoss::Retry,
                ..Request::new(Remote::directed(), mad).with_timing(self.config.timing)
            };
            let transaction = self.requester.start(request).expect("Get and Set are answered");
            self.asked.insert(transaction, asked);
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
        self.sweep.planned = now;
        match plan {
            Ok(plan) => {
                let Self { config, found, tables, multicast, groups, .. } = self;
                let reregister = self.fresh;
                let context = Context { config, found, tables, multicast, groups, reregister };
                self.regroup = false;
                let configuration = Configuration::new(Arc::new(plan), &context);
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
        let own = match self.stage {
            Stage::Idle { next } => next,
            Stage::Standby { next, waiting: false, .. } => Some(next),
            _ => None,
        };
        let administration = self.administration.poll_timeout();
        [self.requester.poll_timeout(), administration, own].into_iter().flatten().min()
    }

    /// Starts to explore the subnet, whatever was under way.
    fn explore(&mut self, now: Instant) {
        for (transaction, asked) in std::mem::take(&mut self.asked) {
            self.requester.cancel(transaction);
            if let Asked::Work(Work::Clear { node, block } | Work::Lft { node, block }) = asked {
                let guid = self.found.node(node).info.node_guid;
                self.tables.entry(guid).or_default().forget(block.into());
            }
        }
        self.stale = false;
        self.faults.0 = std::mem::take(&mut self.faults.1);
        self.sweep = Sweep::start(now, &self.requester.counters());
        self.stage = Stage::Discovering(Box::new(Discovery::new()));
    }

    /// Starts to look whether ports have changed; a manager that has no subnet, or not all of it,
    /// explores.
    fn look(&mut self) {
        let mut left = Vec::new();
        self.looks = self.looks.wrapping_add(1);
        for (node, known) in self.found.nodes().filter(|(_, node)| node.kind.is_switch()) {
            left.push(Asked::Change(node));
            let table = self.tables.get(&known.info.node_guid);
            let blocks = table.map_or(0, SwitchTable::blocks) as u16;
            let audit = |block| Asked::Audit { node, block };
            if self.doubtful.contains(&known.info.node_guid) {
                left.extend((0..blocks).map(audit));
            } else if blocks > 0 {
                left.push(audit((self.looks % u32::from(blocks)) as u16));
            }
        }
        self.doubtful.clear();
        let unsure = std::mem::take(&mut self.unsettled)
            || self.state != SmState::MASTER
            || left.is_empty()
            || self.sweep.faults > 0;
        self.stale |= unsure;
        self.stage = Stage::Looking { left, waiting: 0 };
    }

    /// Waits for the next look at the subnet.
    fn rest(&mut self, now: Instant) {
        let next = self.config.sweep_interval.map(|wait| now + wait);
        let soon = now + self.config.timing.timeout * (self.config.timing.retries + 1);
        let next = if self.unsettled { Some(next.map_or(soon, |at| at.min(soon))) } else { next };
        self.stage = Stage::Idle { next };
    }

    fn become_state(&mut self, state: SmState) {
        if self.state != state {
            self.state = state;
            self.events.push_back(SmEvent::State(state));
        }
    }

    fn next_request(&mut self, now: Instant) -> Option<(Asked, Mad)> {
        let own = self.info();
        let Self { config, found, tables, multicast, groups, fresh, .. } = self;
        match &mut self.stage {
            Stage::Discovering(discovery) => {
                discovery.next().map(|(probe, mad)| (Asked::Probe(probe), mad))
            }
            Stage::Configuring(configuration) | Stage::Grouping(configuration) => {
                let reregister = *fresh;
                let context = Context { config, found, tables, multicast, groups, reregister };
                configuration.next(&context).map(|(work, mad)| (Asked::Work(work), mad))
            }
            Stage::Looking { left, waiting } => {
                let asked = left.pop()?;
                *waiting += 1;
                let (id, modifier, node) = match asked {
                    Asked::Change(node) => (AttributeId::SWITCH_INFO, 0, node),
                    Asked::Audit { node, block } => {
                        (AttributeId::LINEAR_FORWARDING, u32::from(block), node)
                    }
                    _ => unreachable!("nothing else is looked at"),
                };
                let route = &found.node(node).route;
                let what = (id, modifier);
                let mad = smp::directed_request(Method::GET, TransactionId(0), what, route);
                Some((asked, mad))
            }
            Stage::HandingOver { to, told } if !*told => {
                *told = true;
                let what = (AttributeId::SM_INFO, SmInfo::HANDOVER);
                let route = found.route(*to);
                let mut mad = smp::directed_request(Method::SET, TransactionId(0), what, route);
                mad.set_attribute(&own);
                Some((Asked::HandOver(*to), mad))
            }
            Stage::Standby { master, next, waiting, .. } if !*waiting && *next <= now => {
                *waiting = true;
                let (what, route) = ((AttributeId::SM_INFO, 0), found.route(*master));
                let mad = smp::directed_request(Method::GET, TransactionId(0), what, route);
                Some((Asked::Master(*master), mad))
            }
            _ => None,
        }
    }

    /// Passes on how requests ended.
    fn collect(&mut self, now: Instant) {
        while let Some(completion) = self.requester.poll_event() {
            let Completion { transaction_id, attempts, result, .. } = completion;
            let Some(asked) = self.asked.remove(&transaction_id) else { continue };
            if let Asked::Work(Work::Clear { node, .. } | Work::Lft { node, .. }) = asked
                && (attempts > 1 || result.is_err())
            {
                // A copy may still be on its way and undo what is written after it.
                self.doubtful.insert(self.found.node(node).info.node_guid);
            }
            self.ended(now, asked, result);
        }
        self.advance(now);
    }

    fn ended(&mut self, now: Instant, asked: Asked, result: Result<Message, Failure>) {
        let Self { config, found, tables, multicast, groups, fresh, .. } = self;
        match (&mut self.stage, asked) {
            (Stage::Discovering(discovery), Asked::Probe(probe)) => {
                discovery.handle(probe, result, tables);
            }
            (
                Stage::Configuring(configuration) | Stage::Grouping(configuration),
                Asked::Work(work),
            ) => {
                let reregister = *fresh;
                let mut context = Context { config, found, tables, multicast, groups, reregister };
                configuration.handle(work, result, &mut context);
            }
            (Stage::Looking { waiting, .. }, Asked::Change(node)) => {
                *waiting -= 1;
                let info = result.ok().and_then(|answer| answer.mad().attribute::<SwitchInfo>());
                let known = found.node(node).switch.map(|switch| switch.linear_fdb_top);
                self.stale |= info.is_none_or(|info| {
                    info.port_state_change || known != Some(info.linear_fdb_top)
                });
            }
            (Stage::Looking { waiting, .. }, Asked::Audit { node, block }) => {
                *waiting -= 1;
                let read = result.ok().and_then(|answer| answer.mad().attribute());
                let Some(LinearForwardingBlock { ports }) = read else {
                    self.stale = true;
                    return;
                };
                let table = tables.entry(found.node(node).info.node_guid).or_default();
                if table.block(block.into()).is_some_and(|known| *known != ports) {
                    table.set(block.into(), &ports);
                    self.stale = true;
                    let at = PortName { port: None, ..found.name(node.at(0)) };
                    self.report(vec![Fault::TableChanged { at, block }]);
                }
            }
            (Stage::Standby { .. }, Asked::Master(place)) => self.heard(now, place, result),
            (Stage::HandingOver { .. }, Asked::HandOver(place)) => self.handed(now, place, &result),
            // What was asked before the manager was told to do something else.
            _ => {}
        }
    }

    /// Goes on to the next stage when this one is over; returns whether it is.
    fn advance(&mut self, now: Instant) -> bool {
        match &self.stage {
            Stage::Discovering(discovery) if discovery.is_done() => self.explored(now),
            Stage::Configuring(configuration) if configuration.is_done() => self.up(now),
            Stage::Looking { waiting: 0, left } if self.stale || left.is_empty() => {
                if self.stale {
                    self.explore(now);
                } else {
                    self.rest(now);
                }
            }
            Stage::Idle { .. } if self.stale => self.explore(now),
            Stage::Idle { .. } if self.regroup => self.group(),
            Stage::Grouping(configuration) if configuration.is_done() => self.grouped(now),
            _ => return false,
        }
        true
    }

    /// The subnet is explored: decides who manages it.
    fn explored(&mut self, now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Planning(None));
        let Stage::Discovering(discovery) = stage else { unreachable!("just seen") };
        let (found, faults) = discovery.finish();
        self.found = found;
        // Somebody else may write to what is out of sight.
        self.tables.retain(|&guid, _| self.found.find(guid).is_some());
        self.multicast.retain(|guid| self.found.find(guid).is_some());
        self.sweep.discovered = now;
        self.report(faults);
        if self.found.own.is_none() {
            self.events.push_back(SmEvent::NoPlan("the own port does not answer".to_owned()));
            return self.rest(now);
        }
        match election::decide(&self.info(), &self.found) {
            Outcome::Master => {
                self.become_state(SmState::MASTER);
                self.unsettled = election::better_is_coming(&self.info(), &self.found);
                self.plan();
            }
            Outcome::Standby(master) => self.stand_by(now, master),
            Outcome::HandOver(to) => self.stage = Stage::HandingOver { to, told: false },
        }
    }

    fn plan(&mut self) {
        // A manager that has just come keeps nothing that its engines would not make again.
        let keep = !self.fresh && !self.config.routing.lids.reassign;
        let existing = if keep { configuration::existing(&self.tables) } else { BTreeMap::new() };
        let job = PlanJob::new(&self.found, &self.config.routing, existing);
        self.stage = Stage::Planning(Some(Box::new(job)));
    }

    /// Starts to write multicast tables, because members of groups have come or gone.
    fn group(&mut self) {
        self.regroup = false;
        let Some(subnet) = self.subnet.as_ref().filter(|_| self.state == SmState::MASTER) else {
            return;
        };
        let plan = Arc::clone(&subnet.plan);
        let Self { config, found, tables, multicast, groups, fresh, .. } = self;
        let context = Context { config, found, tables, multicast, groups, reregister: *fresh };
        self.stage = Stage::Grouping(Box::new(Configuration::for_groups(plan, &context)));
    }

    fn grouped(&mut self, now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Idle { next: None });
        let Stage::Grouping(configuration) = stage else { unreachable!("just seen") };
        let (_, _, faults, incomplete) = configuration.finish();
        self.report(faults);
        self.stale |= incomplete;
        self.rest(now);
    }

    fn up(&mut self, now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Idle { next: None });
        let Stage::Configuring(configuration) = stage else { unreachable!("just seen") };
        let (plan, written, faults, incomplete) = configuration.finish();
        self.report(faults);
        let nodes = self.found.nodes().len();
        let counters = self.requester.counters();
        let subnet = Subnet::new(self.found.clone(), Arc::clone(&plan), &self.config);
        self.serve(subnet);
        let report = self.sweep.report(now, plan, written, nodes, &counters);
        self.events.push_back(SmEvent::SubnetUp(Box::new(report)));
        self.fresh = false;
        // Whoever did not answer may be gone: what was found is not true any more.
        self.unsettled |= incomplete;
        self.rest(now);
    }

    /// Answers by a new state of the subnet from now on, and tells which ports have come and gone.
    fn serve(&mut self, subnet: Subnet) {
        let own = subnet.found.own.expect("the own port was found");
        let lid = subnet.base_lid(own).unwrap_or(0);
        let manager = (lid, Gid::new(subnet.prefix, self.guid));
        let last = self.subnet.take();
        let has = |subnet: &Subnet, guid| subnet.by_guid(guid).is_some();
        if let Some(last) = &last {
            for place in last.end_ports().filter(|&at| !has(&subnet, last.found.port(at).guid)) {
                let gid = last.gid(place);
                let notice = sa::gid_notice(TrapNumber::GID_OUT_OF_SERVICE, lid, gid);
                self.administration.tell(notice, manager.1);
                self.administration.forget(gid, manager);
            }
            for place in subnet.end_ports().filter(|&at| !has(last, subnet.found.port(at).guid)) {
                let gid = subnet.gid(place);
                let notice = sa::gid_notice(TrapNumber::GID_IN_SERVICE, lid, gid);
                self.administration.tell(notice, manager.1);
            }
        }
        if let Some(groups) = self.administration.take_group_changes() {
            (self.groups, self.regroup) = (groups, true);
        }
        self.subnet = Some(Box::new(subnet));
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
