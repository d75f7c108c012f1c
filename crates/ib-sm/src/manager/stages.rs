//! The stages of a sweep, and the transitions between them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ib_types::{Gid, Instant};
use ib_wire::mad::sm::{PortState, SmInfo, SmState, TrapNumber};

use super::report::Sweep;
use super::{Asked, SmEvent, Stage, SubnetManager};
use crate::alarm::Alarm;
use crate::cache::UnicastCache;
use crate::configuration::{self, Configuration, Work};
use crate::discovery::{Discovery, Explored};
use crate::election::{self, Outcome};
use crate::fault::Fault;
use crate::found::Place;
use crate::plan::{Plan, PlanJob, TableQuality, TablesInUse};
use crate::sa;
use crate::sa::subnet::Subnet;
use crate::tables::SwitchTable;

/// Maximum number of changed nodes for a partial discovery; if more have changed, the whole subnet is discovered.
const MOST_CHANGED: usize = 16;

/// Reason of a discovery that nodes have caused by traps or change flags.
const CHANGES: &str = "nodes have told of changes";

/// Number of ports per light sweep that are checked for unnoticed changes.
const MOST_UNCERTAIN: usize = 16;

/// Maximum number of doublings of the sweep interval if nodes keep not responding.
const MOST_DOUBLINGS: u32 = 8;

/// Time after a full discovery in which traps of unknown ports start no other one.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);

impl SubnetManager {
    /// Starts a discovery of the subnet; cancels outstanding requests.
    pub(super) fn explore(&mut self, now: Instant) {
        for (transaction, asked) in std::mem::take(&mut self.asked) {
            self.requester.cancel(transaction);
            if let Asked::Work(Work::Clear { node, block } | Work::Lft { node, block }) = asked {
                let guid = self.found.node(node).info.node_guid;
                self.tables.entry(guid).or_default().forget(block.into());
            }
        }
        self.stale = false;
        self.search_from = now + SEARCH_PAUSE;
        let changed = std::mem::take(&mut self.changed);
        let why = self.why.take().unwrap_or_else(|| {
            let known = if changed.is_empty() { "what was found is not certain" } else { CHANGES };
            known.to_owned()
        });
        self.tell_exploration(why, true);
        self.faults.0 = std::mem::take(&mut self.faults.1);
        self.sweep = Sweep::start(now, &self.requester.counters());
        self.stage = Stage::Discovering(Box::new(Discovery::new()));
    }

    /// Starts a partial discovery of the nodes that have reported changes, or a full one if that is safer.
    fn follow_changes(&mut self, now: Instant) {
        let changed = std::mem::take(&mut self.changed);
        let nodes: Option<Vec<_>> = changed.iter().map(|&guid| self.found.find(guid)).collect();
        let sound = self.state == SmState::MASTER
            && !self.fresh
            && !self.unsettled
            && self.sweep.faults == 0
            && changed.len() <= MOST_CHANGED;
        let Some(nodes) = nodes.filter(|_| sound) else {
            self.spoil("nodes have told of changes, and not all is known of them");
            return self.explore(now);
        };
        self.tell_exploration(format!("{} tells of changes", self.names(&nodes)), false);
        self.faults.0 = std::mem::take(&mut self.faults.1);
        self.sweep = Sweep::start(now, &self.requester.counters());
        self.counters.followed += 1;
        let discovery = Discovery::again(self.found.clone(), nodes);
        self.stage = Stage::Discovering(Box::new(discovery));
    }

    /// Starts a light sweep; an SM without a complete subnet starts a discovery instead.
    pub(super) fn look(&mut self) {
        let mut left = Vec::new();
        self.looks = self.looks.wrapping_add(1);
        self.counters.looks += 1;
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
        let mut places = self.ports_to_look_at();
        places.extend(self.uncertain_ports());
        left.extend(places.into_iter().map(Asked::State));
        self.doubtful.clear();
        let doubts = [
            (std::mem::take(&mut self.unsettled), "the last one left something undone"),
            (self.state != SmState::MASTER, "there is no master yet"),
            (!left.iter().any(|asked| matches!(asked, Asked::Change(_))), "no switch is known"),
            (self.sweep.faults > 0, "the last one met faults"),
        ];
        if let Some((_, why)) = doubts.into_iter().find(|&(doubt, _)| doubt) {
            self.spoil(why);
        }
        self.stage = Stage::Looking { left, waiting: 0 };
    }

    /// Returns the ports to query in a light sweep: both ends of the own link, of one HCA link in rotation, and of one
    /// link between switches in rotation.
    ///
    /// Either end of a link can have been reset without a trap.
    fn ports_to_look_at(&self) -> BTreeSet<Place> {
        let is_switch = |place: Place| self.found.node(place.node).kind.is_switch();
        let turn =
            |places: &[Place]| places.get(self.looks as usize % places.len().max(1)).copied();
        let adapters: Vec<Place> = self.found.end_ports().filter(|&at| !is_switch(at)).collect();
        let trunks: Vec<Place> = self.found.trunks().collect();
        let own = self.found.own.filter(|&own| !is_switch(own));
        let ends = own.into_iter().chain(turn(&adapters)).chain(turn(&trunks));
        ends.flat_map(|end| [Some(end), self.found.port(end).peer]).flatten().collect()
    }

    /// Returns the next ports to check for unnoticed changes.
    fn uncertain_ports(&mut self) -> Vec<Place> {
        let mut places = Vec::new();
        while places.len() < MOST_UNCERTAIN
            && let Some(mut entry) = self.uncertain.first_entry()
        {
            let (guid, port) = (*entry.key(), *entry.get());
            let node = self.found.find(guid);
            match node.filter(|&node| port <= self.found.node(node).info.num_ports) {
                Some(node) => {
                    places.push(node.at(port));
                    entry.insert(port.saturating_add(1));
                }
                None => _ = entry.remove(),
            }
            if port == u8::MAX {
                self.uncertain.remove(&guid);
            }
        }
        places
    }

    /// Waits for the next sweep.
    pub(super) fn rest(&mut self, now: Instant) {
        let next = self.config.sweep_interval.map(|wait| now + wait);
        // Nodes that never respond are queried at growing intervals.
        let patience = self.config.timing.timeout * (self.config.timing.retries + 1);
        let soon = now + patience * 2_u32.pow(self.failed_in_a_row.min(MOST_DOUBLINGS));
        let next = if self.unsettled { Some(next.map_or(soon, |at| at.min(soon))) } else { next };
        self.stage = Stage::Idle { next };
    }

    /// Enters the next stage if this one is complete; returns whether it is.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        match &self.stage {
            Stage::Discovering(discovery) if discovery.is_done() => self.explored(now),
            Stage::Configuring(configuration) if configuration.is_done() => self.up(now),
            Stage::Looking { waiting: 0, left } if self.stale || left.is_empty() => {
                if self.stale {
                    self.explore(now);
                } else if self.changed.is_empty() {
                    self.rest(now);
                } else {
                    self.follow_changes(now);
                }
            }
            Stage::Idle { .. } if self.stale => self.explore(now),
            Stage::Idle { .. } if !self.changed.is_empty() => self.follow_changes(now),
            Stage::Idle { .. } if self.regroup => self.group(),
            Stage::Grouping(configuration) if configuration.is_done() => self.grouped(now),
            _ => return false,
        }
        true
    }

    /// Ends a discovery: decides which SM is the master.
    fn explored(&mut self, now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Planning(None));
        let Stage::Discovering(discovery) = stage else { unreachable!("just seen") };
        let Explored { found, faults, same_shape, failed, reset } = discovery.finish();
        // After an incomplete discovery, an SM that is not the master may have missed the master.
        let blind = self.state != SmState::MASTER && !faults.is_empty();
        if failed || blind && !std::mem::replace(&mut self.looked_twice, true) {
            self.spoil("the last one did not see everything");
            return self.explore(now);
        }
        self.looked_twice = false;
        self.found = found;
        // Another SM may write to the part that was not discovered.
        self.tables.retain(|&guid, _| self.found.find(guid).is_some());
        self.multicast.retain(|guid| self.found.find(guid).is_some() && !reset.contains(&guid));
        // A port whose link has just come up may have been reset and lost its configuration.
        self.written.retain(|&(guid, port), _| {
            let place = self.found.find(guid).map(|node| node.at(port));
            let info = place.and_then(|place| self.found.port(place).info.as_ref());
            info.is_some_and(|info| info.port_state != PortState::INIT)
        });
        self.sweep.discovered = now;
        self.report(faults);
        self.ignore_strangers();
        if self.found.own.is_none() {
            self.events.push_back(SmEvent::NoPlan("the own port does not answer".to_owned()));
            return self.rest(now);
        }
        match election::decide(&self.info(), &self.found) {
            Outcome::Master => {
                self.become_state(SmState::MASTER);
                self.unsettled = election::better_is_coming(&self.info(), &self.found);
                match &self.subnet {
                    Some(subnet) if same_shape => {
                        let plan = Arc::clone(&subnet.plan);
                        self.configure(now, plan);
                    }
                    _ => self.plan(now),
                }
            }
            Outcome::Standby(master) => self.stand_by(now, master),
            Outcome::HandOver(to) => self.stage = Stage::HandingOver { to, told: false },
        }
    }

    /// Ignores SMs that do not have the `SM_Key` of this subnet.
    fn ignore_strangers(&mut self) {
        let key = self.config.sm_key;
        let knows = |info: &SmInfo| key == 0 || info.sm_key == key;
        let strangers = self.found.managers.iter().filter(|(_, info)| !knows(info));
        let faults: Vec<Fault> = strangers
            .map(|(&place, _)| Fault::Absurd {
                at: self.found.name(place),
                what: "a manager with another SM_Key, which is taken for none".to_owned(),
            })
            .collect();
        self.found.managers.retain(|_, info| knows(info));
        self.report(faults);
    }

    /// Starts a plan, unless the cached routes are still valid.
    pub(super) fn plan(&mut self, now: Instant) {
        let cached = self.cache.as_ref().filter(|cache| cache.serves(&self.found));
        if let Some(plan) = cached.map(UnicastCache::plan) {
            self.counters.cached += 1;
            self.sweep.cached = true;
            return self.configure(now, plan);
        }
        // An SM that has just started keeps no entries of another SM.
        let in_use = TablesInUse {
            keep: !self.fresh && !self.config.routing.lids.reassign && !self.tables.is_empty(),
            ..self.tables_in_use()
        };
        let checker = Arc::clone(&self.checker);
        let job = PlanJob::new(&self.found, &self.config, in_use, checker);
        self.counters.routings += 1;
        self.stage = Stage::Planning(Some(Box::new(job)));
    }

    /// Returns the quality of the tables in the switches on the last discovered subnet, and the first pair whose
    /// packets do not arrive. `None` if no table is known.
    pub(super) fn assess_tables_in_use(&self) -> Option<(TableQuality, Option<String>)> {
        PlanJob::new(&self.found, &self.config, self.tables_in_use(), Arc::default()).assess()
    }

    fn tables_in_use(&self) -> TablesInUse {
        TablesInUse {
            tables: configuration::existing(&self.tables),
            plan: self.subnet.as_ref().map(|subnet| Arc::clone(&subnet.plan)),
            keep: false,
        }
    }

    /// Starts to write a plan to the nodes.
    pub(super) fn configure(&mut self, now: Instant, plan: Arc<Plan>) {
        self.sweep.planned = now;
        self.regroup = false;
        let no_lid = plan.without_lid.iter().map(|(port, description)| Fault::NoLid {
            port: *port,
            description: description.clone(),
            max_lid: plan.max_lid,
        });
        self.report(no_lid.collect());
        let (_, context) = self.split();
        let configuration = Configuration::new(plan, &context);
        self.stage = Stage::Configuring(Box::new(configuration));
    }

    /// Starts to write multicast tables after group members have joined or left.
    fn group(&mut self) {
        self.regroup = false;
        let Some(subnet) = self.subnet.as_ref().filter(|_| self.state == SmState::MASTER) else {
            return;
        };
        let plan = Arc::clone(&subnet.plan);
        let (_, context) = self.split();
        let configuration = Configuration::for_groups(plan, &context);
        self.stage = Stage::Grouping(Box::new(configuration));
    }

    fn grouped(&mut self, now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Idle { next: None });
        let Stage::Grouping(configuration) = stage else { unreachable!("just seen") };
        let (_, _, faults, incomplete) = configuration.finish();
        self.report(faults);
        if incomplete {
            self.spoil("multicast tables were not written");
        }
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
        self.counters.sweeps += 1;
        self.refusal = None;
        if self.config.use_ucast_cache && !self.sweep.cached {
            self.cache = Some(UnicastCache::new(&self.found, &plan));
        }
        let (quality, first) = if incomplete {
            let assessed = self.assess_tables_in_use();
            assessed.map_or((None, None), |(quality, first)| (Some(quality), first))
        } else {
            (Some(plan.quality), plan.first_unreachable.clone())
        };
        self.quality = quality;
        let quality = quality.unwrap_or(plan.quality);
        let alarms = Alarm::of_plan(&plan, quality, first.as_deref());
        self.raise(now, alarms);
        let mut report = self.sweep.report(now, plan, written, nodes, &counters);
        report.quality = self.quality;
        self.events.push_back(SmEvent::SubnetUp(Box::new(report)));
        self.fresh = false;
        // A node that did not respond may be disconnected: the discovered subnet is outdated.
        self.unsettled |= incomplete;
        self.failed_in_a_row = if incomplete { self.failed_in_a_row.saturating_add(1) } else { 0 };
        self.rest(now);
    }

    /// Publishes a new state of the subnet to the SA, and reports the ports that have appeared or disappeared.
    fn serve(&mut self, subnet: Subnet) {
        let own = subnet.found.own.expect("the own port was found");
        let lid = subnet.base_lid(own).unwrap_or(0);
        let manager = (lid, Gid::new(subnet.prefix, self.guid));
        let last = self.subnet.take();
        self.tell_changes(last.as_deref(), &subnet);
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
        self.registered.retain(|&guid| has(&subnet, guid));
        self.administration.take_room(&subnet.found);
        if let Some(groups) = self.administration.take_group_changes() {
            (self.groups, self.regroup) = (groups, true);
        }
        self.subnet = Some(Arc::new(subnet));
    }
}
