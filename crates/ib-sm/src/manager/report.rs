//! Events, counters and reports of the SM.

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

/// An event of the SM.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SmEvent {
    /// A fault was found.
    Fault(Fault),
    /// There is no plan, or no plan that may be written; no tables were written.
    NoPlan(String),
    /// The plan is written, with a warning.
    Warning(String),
    /// An alarm is raised, or a raised one has changed.
    AlarmRaised(Box<Alarm>),
    /// The alarm of this kind is cleared.
    AlarmCleared(AlarmKind),
    /// The subnet is up.
    SubnetUp(Box<SweepReport>),
    /// The state of the SM has changed.
    State(SmState),
    /// A trap was received.
    Trap(Box<Notice>),
    /// A discovery has started.
    Exploration(Exploration),
    /// A port with LIDs has appeared or disappeared, as of the last time the subnet came up.
    Port(Box<PortChange>),
    /// A link has appeared or disappeared in a subnet that was up before.
    Link(Box<LinkChange>),
}

/// Counters of the SM since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmCounters {
    /// Heavy sweeps that have brought the subnet up.
    pub sweeps: u64,
    /// Partial discoveries, which query only nodes that have reported changes.
    pub followed: u64,
    /// Light sweeps.
    pub looks: u64,
    /// Number of route computations.
    pub routings: u64,
    /// Number of times that cached routes were used instead.
    pub cached: u64,
    /// Traps received.
    pub traps: u64,
}

/// Report of a sweep.
#[derive(Clone, Debug)]
pub struct SweepReport {
    /// The plan that was written.
    pub plan: Arc<Plan>,
    /// Numbers of written attributes.
    pub written: Written,
    /// Number of discovered nodes.
    pub nodes: usize,
    /// Duration of the discovery.
    pub discover: Duration,
    /// Duration of planning, including the check.
    pub plan_time: Duration,
    /// Duration of writing.
    pub program: Duration,
    /// Number of SMPs sent.
    pub smps: u64,
    /// Number of retransmitted SMPs.
    pub retries: u64,
    /// Number of faults.
    pub faults: usize,
    /// True if the plan is from the cache.
    pub cached: bool,
    /// Quality of the forwarding tables in the switches. This equals the quality of the plan unless tables could
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

/// A port as of the last discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// The GUID of the node.
    pub node_guid: Guid,
    /// The port's GUID; of a switch that of port 0.
    pub guid: Guid,
    /// The node description.
    pub description: String,
    /// The node type.
    pub kind: NodeKind,
    /// The number of the port on its node.
    pub number: u8,
    /// The base LID; of a switch port, that of port 0; 0 if there is none.
    pub lid: u16,
    /// The last PortInfo, if the port responds.
    pub info: Option<PortInfo>,
}

/// Queries of the SM's state, and changes of its configuration.
impl SubnetManager {
    /// Returns the GUID of the manager's port.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.guid
    }

    /// Returns the counters of the SM's requester.
    #[must_use]
    pub const fn traffic(&self) -> RequesterCounters {
        self.requester.counters()
    }

    /// Returns the number of SMPs in flight.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.requester.outstanding()
    }

    /// Returns the subnet as of the last discovery, with the LIDs that ports had then.
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

    /// Returns the quality of the forwarding tables in the switches, as of the last plan; `None` if it is not known.
    #[must_use]
    pub const fn quality(&self) -> Option<TableQuality> {
        self.quality
    }

    /// Returns the raised alarms, by kind.
    pub fn alarms(&self) -> impl Iterator<Item = &RaisedAlarm> {
        self.alarms.values()
    }

    /// Replaces the alarms. An alarm that remains raised keeps its time.
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

    /// Returns the faults of the last sweep, one sentence each.
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
