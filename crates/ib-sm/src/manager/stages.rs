//! The stages of a sweep, and the transitions between them.

use std::sync::Arc;

use ib_types::{Gid, Instant};
use ib_wire::mad::sm::{SmInfo, SmState, TrapNumber};

use super::smp::Purpose;
use super::sweep::Sweep;
use super::{SmEvent, Stage, SubnetManager, changes};
use crate::alarm::Alarm;
use crate::cache::UnicastCache;
use crate::configuration::{self, Configuration, Work};
use crate::discovery::{Discovery, Explored};
use crate::election::{self, Outcome};
use crate::fault::Fault;
use crate::plan::{Plan, PlanJob, TableQuality, TablesInUse};
use crate::sa;
use crate::sa::subnet::Subnet;

/// Maximum number of changed nodes for a partial discovery; if more have changed, the whole subnet is discovered.
const MOST_CHANGED: usize = 16;

impl SubnetManager {
    /// Starts a discovery of the subnet; cancels outstanding requests.
    pub(super) fn explore(&mut self, now: Instant) {
        for purpose in self.smps.cancel_all() {
            if let Purpose::Work(Work::Clear { node, block } | Work::Lft { node, block }) = purpose
            {
                self.subnet.forget_block(node, block);
            }
        }
        let why = self.triggers.start_discovery(now);
        self.reporter.start_sweep(why, true);
        self.sweep = Sweep::start(now, &self.smps.counters());
        self.stage = Stage::Discovering(Box::new(Discovery::new()));
    }

    /// Starts a partial discovery of the nodes that have reported changes, or a full one if that is safer.
    fn follow_changes(&mut self, now: Instant) {
        let changed = self.triggers.take_changed();
        let nodes: Option<Vec<_>> =
            changed.iter().map(|&guid| self.subnet.found.find(guid)).collect();
        let sound = self.state == SmState::MASTER
            && !self.subnet.is_fresh
            && !self.triggers.is_unsettled
            && self.sweep.faults == 0
            && changed.len() <= MOST_CHANGED;
        let Some(nodes) = nodes.filter(|_| sound) else {
            self.triggers.spoil("nodes have told of changes, and not all is known of them");
            return self.explore(now);
        };
        let names = self.subnet.found.describe(&nodes);
        self.reporter.start_sweep(format!("{names} tells of changes"), false);
        self.sweep = Sweep::start(now, &self.smps.counters());
        self.counters.followed += 1;
        let discovery = Discovery::again(self.subnet.found.clone(), nodes);
        self.stage = Stage::Discovering(Box::new(discovery));
    }

    /// Starts a light sweep; an SM without a complete subnet starts a discovery instead.
    pub(super) fn look(&mut self) {
        self.counters.looks += 1;
        let left = self.light_sweeps.start(&self.subnet.found, &self.subnet.tables);
        let doubts = [
            (std::mem::take(&mut self.triggers.is_unsettled), "the last one left something undone"),
            (self.state != SmState::MASTER, "there is no master yet"),
            (!left.iter().any(|asked| matches!(asked, Purpose::Change(_))), "no switch is known"),
            (self.sweep.faults > 0, "the last one met faults"),
        ];
        if let Some((_, why)) = doubts.into_iter().find(|&(doubt, _)| doubt) {
            self.triggers.spoil(why);
        }
        self.stage = Stage::Looking { left, waiting: 0 };
    }

    /// Waits for the next sweep.
    pub(super) fn rest(&mut self, now: Instant) {
        let patience = self.config.timing.timeout * (self.config.timing.retries + 1);
        let next = self.triggers.next_sweep(now, self.config.sweep_interval, patience);
        self.stage = Stage::Idle { next };
    }

    /// Enters the next stage if this one is complete; returns whether it is.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        match &self.stage {
            Stage::Discovering(discovery) if discovery.is_done() => self.explored(now),
            Stage::Configuring(configuration) if configuration.is_done() => self.up(now),
            Stage::Looking { waiting: 0, left } if self.triggers.is_stale() || left.is_empty() => {
                if self.triggers.is_stale() {
                    self.explore(now);
                } else if self.triggers.has_changed() {
                    self.follow_changes(now);
                } else {
                    self.rest(now);
                }
            }
            Stage::Idle { .. } if self.triggers.is_stale() => self.explore(now),
            Stage::Idle { .. } if self.triggers.has_changed() => self.follow_changes(now),
            Stage::Idle { .. } if self.subnet.has_new_groups() => self.group(),
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
        if failed || blind && self.triggers.repeats_blind() {
            self.triggers.spoil("the last one did not see everything");
            return self.explore(now);
        }
        self.triggers.accept_discovery();
        self.subnet.adopt(found, &reset);
        self.sweep.discovered = now;
        self.report(faults);
        self.ignore_strangers();
        if self.subnet.found.own.is_none() {
            self.reporter.push(SmEvent::NoPlan("the own port does not answer".to_owned()));
            return self.rest(now);
        }
        match election::decide(&self.info(), &self.subnet.found) {
            Outcome::Master => {
                self.become_state(SmState::MASTER);
                self.triggers.is_unsettled =
                    election::better_is_coming(&self.info(), &self.subnet.found);
                match &self.served {
                    Some(subnet) if same_shape => {
                        let plan = Arc::clone(&subnet.plan);
                        self.configure(now, plan);
                    }
                    _ => self.plan(now),
                }
            }
            Outcome::Standby(master) => self.stand_by(now, master),
            Outcome::HandOver(to) => self.stage = Stage::HandingOver { to, is_requested: false },
        }
    }

    /// Ignores SMs that do not have the `SM_Key` of this subnet.
    fn ignore_strangers(&mut self) {
        let key = self.config.sm_key;
        let knows = |info: &SmInfo| key == 0 || info.sm_key == key;
        let strangers = self.subnet.found.managers.iter().filter(|(_, info)| !knows(info));
        let faults: Vec<Fault> = strangers
            .map(|(&place, _)| Fault::Inconsistent {
                at: self.subnet.found.name(place),
                what: "a manager with another SM_Key, which is taken for none".to_owned(),
            })
            .collect();
        self.subnet.found.managers.retain(|_, info| knows(info));
        self.report(faults);
    }

    /// Starts a plan, unless the cached routes are still valid.
    pub(super) fn plan(&mut self, now: Instant) {
        let cached = self.cache.as_ref().filter(|cache| cache.serves(&self.subnet.found));
        if let Some(plan) = cached.map(UnicastCache::plan) {
            self.counters.cached += 1;
            self.sweep.cached = true;
            return self.configure(now, plan);
        }
        // An SM that has just started keeps no entries of another SM.
        let in_use = TablesInUse {
            keep: !self.subnet.is_fresh
                && !self.config.routing.lids.reassign
                && !self.subnet.tables.is_empty(),
            ..self.tables_in_use()
        };
        let checker = Arc::clone(&self.checker);
        let job = PlanJob::new(&self.subnet.found, &self.config, in_use, checker);
        self.counters.routings += 1;
        self.stage = Stage::Planning(Some(Box::new(job)));
    }

    /// Returns the quality of the tables in the switches on the last discovered subnet, and the first pair whose
    /// packets do not arrive. `None` if no table is known.
    pub(super) fn assess_tables_in_use(&self) -> Option<(TableQuality, Option<String>)> {
        PlanJob::new(&self.subnet.found, &self.config, self.tables_in_use(), Arc::default())
            .assess()
    }

    fn tables_in_use(&self) -> TablesInUse {
        TablesInUse {
            tables: configuration::existing(&self.subnet.tables),
            plan: self.served.as_ref().map(|subnet| Arc::clone(&subnet.plan)),
            keep: false,
        }
    }

    /// Starts to write a plan to the nodes.
    pub(super) fn configure(&mut self, now: Instant, plan: Arc<Plan>) {
        self.sweep.planned = now;
        self.subnet.start_grouping();
        let no_lid = plan.without_lid.iter().map(|(port, description)| Fault::NoLid {
            port: *port,
            description: description.clone(),
            max_lid: plan.max_lid,
        });
        self.report(no_lid.collect());
        let context = self.subnet.context(&self.config);
        let configuration = Configuration::new(plan, &context);
        self.stage = Stage::Configuring(Box::new(configuration));
    }

    /// Starts to write multicast tables after group members have joined or left.
    fn group(&mut self) {
        self.subnet.start_grouping();
        let Some(subnet) = self.served.as_ref().filter(|_| self.state == SmState::MASTER) else {
            return;
        };
        let plan = Arc::clone(&subnet.plan);
        let context = self.subnet.context(&self.config);
        let configuration = Configuration::for_groups(plan, &context);
        self.stage = Stage::Grouping(Box::new(configuration));
    }

    fn grouped(&mut self, now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Idle { next: None });
        let Stage::Grouping(configuration) = stage else { unreachable!("just seen") };
        let (_, _, faults, incomplete) = configuration.finish();
        self.report(faults);
        if incomplete {
            self.triggers.spoil("multicast tables were not written");
        }
        self.rest(now);
    }

    fn up(&mut self, now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Idle { next: None });
        let Stage::Configuring(configuration) = stage else { unreachable!("just seen") };
        let (plan, written, faults, incomplete) = configuration.finish();
        self.report(faults);
        let nodes = self.subnet.found.nodes().len();
        let counters = self.smps.counters();
        let subnet = Subnet::new(self.subnet.found.clone(), Arc::clone(&plan), &self.config);
        self.serve(subnet);
        self.counters.sweeps += 1;
        self.reporter.accept();
        if self.config.use_ucast_cache && !self.sweep.cached {
            self.cache = Some(UnicastCache::new(&self.subnet.found, &plan));
        }
        let (quality, first) = if incomplete {
            let assessed = self.assess_tables_in_use();
            assessed.map_or((None, None), |(quality, first)| (Some(quality), first))
        } else {
            (Some(plan.quality), plan.first_unreachable.clone())
        };
        self.reporter.quality = quality;
        let quality = quality.unwrap_or(plan.quality);
        let alarms = Alarm::of_plan(&plan, quality, first.as_deref());
        self.reporter.raise(now, alarms);
        let mut report = self.sweep.report(now, plan, written, nodes, &counters);
        report.quality = self.reporter.quality;
        self.reporter.push(SmEvent::SubnetUp(Box::new(report)));
        self.subnet.is_fresh = false;
        self.triggers.end_sweep(incomplete);
        self.rest(now);
    }

    /// Publishes a new state of the subnet to the SA, and reports the ports that have appeared or disappeared.
    fn serve(&mut self, subnet: Subnet) {
        let own = subnet.found.own.expect("the own port was found");
        let lid = subnet.base_lid(own).unwrap_or(0);
        let manager = (lid, Gid::new(subnet.prefix, self.guid));
        let last = self.served.take();
        for change in changes::between(last.as_deref(), &subnet) {
            self.reporter.push(change);
        }
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
        self.subnet.registered.retain(|&guid| has(&subnet, guid));
        self.administration.take_room(&subnet.found);
        if let Some(groups) = self.administration.take_group_changes() {
            self.subnet.set_groups(groups);
        }
        self.served = Some(Arc::new(subnet));
    }
}
