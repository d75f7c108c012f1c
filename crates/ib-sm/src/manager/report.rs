//! What a manager says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ib_mad::RequesterCounters;
use ib_routing::LidOptions;
use ib_topology::Fabric;
use ib_types::{Guid, Instant, NodeKind};
use ib_wire::mad::sm::{MulticastForwardingBlock, Notice, PortInfo, SmInfo, SmState};

use crate::alarm::{Alarm, AlarmKind, RaisedAlarm};

use super::{Exploration, LinkChange, PortChange, Stage, SubnetManager};
use crate::configuration::Written;
use crate::fault::{Fault, PortName};
use crate::partition::Partitions;
use crate::plan::{Plan, PlanJob, TableQuality, TablesInUse};

/// What a manager has to say.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SmEvent {
    /// Something is wrong.
    Fault(Fault),
    /// There is no plan, or none that may be written; nothing was.
    NoPlan(String),
    /// The plan is written, but something about it is dangerous.
    Warning(String),
    /// An alarm is raised, or a raised one has changed.
    AlarmRaised(Box<Alarm>),
    /// No alarm of this kind is raised any more.
    AlarmCleared(AlarmKind),
    /// The subnet is up.
    SubnetUp(Box<SweepReport>),
    /// The manager has another state.
    State(SmState),
    /// A port has told of something.
    Trap(Box<Notice>),
    /// The subnet is explored.
    Exploration(Exploration),
    /// A port with LIDs has come or gone, as the subnet was brought up.
    Port(Box<PortChange>),
    /// A link has come or gone, of a subnet that was up before.
    Link(Box<LinkChange>),
}

/// How often a manager has done what since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmCounters {
    /// Heavy sweeps that have brought the subnet up.
    pub sweeps: u64,
    /// Explorations that only asked nodes which had told of changes.
    pub followed: u64,
    /// Looks for changes: light sweeps.
    pub looks: u64,
    /// How often routes were computed.
    pub routings: u64,
    /// How often the cached routes served instead.
    pub cached: u64,
    /// Traps that were taken.
    pub traps: u64,
}

/// What came of a sweep.
#[derive(Clone, Debug)]
pub struct SweepReport {
    /// The plan that was written.
    pub plan: Arc<Plan>,
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
    /// Whether the plan is one that was cached.
    pub cached: bool,
    /// What the forwarding tables in the switches do. That is what the plan says unless tables could
    /// not be written. `None` if it is not known.
    pub quality: Option<TableQuality>,
}

/// The times and counts of the sweep in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sweep {
    pub(super) started: Instant,
    pub(super) discovered: Instant,
    pub(super) planned: Instant,
    pub(super) faults: usize,
    pub(super) cached: bool,
    sent: u64,
    retries: u64,
}

impl Sweep {
    pub(super) fn start(now: Instant, counters: &RequesterCounters) -> Self {
        let RequesterCounters { sent, retries, .. } = *counters;
        Self { started: now, sent, retries, ..Self::default() }
    }

    pub(super) fn report(
        &self,
        now: Instant,
        plan: Arc<Plan>,
        written: Written,
        nodes: usize,
        counters: &RequesterCounters,
    ) -> SweepReport {
        SweepReport {
            plan,
            written,
            nodes,
            discover: self.discovered.since(self.started),
            plan_time: self.planned.since(self.discovered),
            program: now.since(self.planned),
            smps: counters.sent - self.sent,
            retries: counters.retries - self.retries,
            faults: self.faults,
            cached: self.cached,
            quality: None,
        }
    }
}

/// A port as the manager found it last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// The GUID of the node.
    pub node_guid: Guid,
    /// The port's GUID; of a switch that of port 0.
    pub guid: Guid,
    /// What the node calls itself.
    pub description: String,
    /// The kind of the node.
    pub kind: NodeKind,
    /// The number of the port on its node.
    pub number: u8,
    /// The lowest LID by which the port is addressed: of a switch's port that of port 0; zero while it
    /// has none.
    pub lid: u16,
    /// What it said of itself last, of a port that answers.
    pub info: Option<PortInfo>,
}

/// What an owner asks of a manager beside its work, and tells it.
impl SubnetManager {
    /// Returns the GUID of the manager's port.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.guid
    }

    /// Returns what the manager's requester has seen since it was made.
    #[must_use]
    pub const fn traffic(&self) -> RequesterCounters {
        self.requester.counters()
    }

    /// Returns the number of SMPs in flight.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.requester.outstanding()
    }

    /// Returns the subnet as it was found last, with the LIDs that ports had then.
    #[must_use]
    pub fn fabric(&self) -> Option<Fabric> {
        self.found.own?;
        let in_use = TablesInUse::default();
        let job = PlanJob::new(&self.found, &self.config, in_use, Arc::default());
        Some(job.fabric().clone())
    }

    /// Returns the other managers that were found last: the GUID and the name of the port, and what
    /// the manager there says of itself.
    pub fn managers(&self) -> impl Iterator<Item = (Guid, PortName, &SmInfo)> {
        let found = &self.found;
        let named = |place| (found.port(place).guid, found.name(place));
        found.managers.iter().map(move |(&place, info)| {
            let (guid, name) = named(place);
            (guid, name, info)
        })
    }

    /// Returns what the forwarding tables in the switches do, as of the last plan; `None` if it is not
    /// known.
    #[must_use]
    pub const fn quality(&self) -> Option<TableQuality> {
        self.quality
    }

    /// Returns the alarms that are raised now, by kind.
    pub fn alarms(&self) -> impl Iterator<Item = &RaisedAlarm> {
        self.alarms.values()
    }

    /// Replaces the alarms. The time of an alarm that stays raised is kept.
    pub(super) fn raise(&mut self, now: Instant, alarms: Vec<Alarm>) {
        let last = std::mem::take(&mut self.alarms);
        for alarm in alarms {
            let kind = alarm.kind();
            let before = last.get(&kind);
            if before.is_none_or(|before| before.alarm != alarm) {
                self.events.push_back(SmEvent::AlarmRaised(Box::new(alarm.clone())));
            }
            let since = before.map_or(now, |before| before.since);
            self.alarms.insert(kind, RaisedAlarm { alarm, since });
        }
        let cleared = last.into_keys().filter(|kind| !self.alarms.contains_key(kind));
        self.events.extend(cleared.map(SmEvent::AlarmCleared));
    }

    /// Returns what was wrong when the subnet was explored and written last, a sentence each.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        self.faults.1.iter().map(String::as_str)
    }

    /// Returns all ports of the subnet as it was brought up last, node by node; nothing before that.
    #[must_use]
    pub fn ports(&self) -> Vec<PortStatus> {
        let Some(subnet) = self.subnet.as_deref() else { return Vec::new() };
        let mut ports = Vec::new();
        for (node, found) in subnet.found.nodes() {
            for (number, port) in (0..=found.info.num_ports).zip(&found.ports) {
                if number == 0 && !found.kind.is_switch() {
                    continue;
                }
                ports.push(PortStatus {
                    node_guid: found.info.node_guid,
                    guid: port.guid,
                    description: found.description.as_text().into_owned(),
                    kind: found.kind,
                    number,
                    lid: subnet.base_lid(node.at(number)).unwrap_or(0),
                    info: port.info.as_deref().copied(),
                });
            }
        }
        ports
    }

    /// Returns the ports that a switch sends packets to a multicast LID out of, as they were written.
    #[must_use]
    pub fn multicast_ports(&self, switch: Guid) -> BTreeMap<u16, Vec<u8>> {
        let mut ports: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
        for (block, position) in self.multicast.blocks(switch) {
            let masks = self.multicast.block(switch, (block, position)).expect("it is known");
            let first =
                MulticastForwardingBlock::FIRST_LID + block * MulticastForwardingBlock::LIDS;
            for (lid, mask) in (first..).zip(masks) {
                let set = (0..16u8).filter(|bit| mask >> bit & 1 != 0);
                ports.entry(lid).or_default().extend(set.map(|bit| position * 16 + bit));
            }
        }
        ports.retain(|_, ports| !ports.is_empty());
        ports
    }

    /// Has other partitions from the next sweep on. Groups that are new are there at once;
    /// those that no partition asks for any more go with their last member.
    pub fn set_partitions(&mut self, partitions: Partitions) {
        self.config.partitions = partitions;
        self.administration.set_partitions(&self.config);
    }

    /// Has LIDs assigned in another way from the next sweep on.
    pub fn set_lids(&mut self, lids: LidOptions) {
        self.config.routing.lids = lids;
    }

    /// Makes a manager that has not begun yet do nothing until another one tells it to.
    pub fn deactivate(&mut self) {
        self.become_state(SmState::NOT_ACTIVE);
        self.stage = Stage::NotActive;
    }
}
