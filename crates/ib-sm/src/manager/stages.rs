//! The stages of a sweep, and the transitions between them.

use std::sync::Arc;

use ib_types::{Gid, Instant};
use ib_wire::mad::sm::{SmInfo, SmState, TrapNumber};

use super::smp::Purpose;
use super::sweep::Sweep;
use super::{SmEvent, Stage, SubnetManager, changes};
use crate::alarm::Alarm;
use crate::cache::UnicastCache;
use crate::configuration::{self, Configuration, Write};
use crate::discovery::{Discovery, DiscoveryResult};
use crate::election::{self, Outcome};
use crate::fault::Fault;
use crate::plan::{Plan, PlanJob, TableQuality, TablesInUse};
use crate::sa;
use crate::sa::subnet::Subnet;

/// A partial discovery covers at most this many changed nodes. If more have changed, the whole subnet is discovered.
const MAX_CHANGED: usize = 16;

impl SubnetManager {
    /// Cancels outstanding requests, and starts a discovery of the whole subnet.
    pub(super) fn explore(&mut self, now: Instant) {
        for purpose in self.smps.cancel_all() {
            if let Purpose::Write(Write::Clear { node, block } | Write::Lft { node, block }) =
                purpose
            {
                self.subnet.forget_block(node, block);
            }
        }
        let why = self.triggers.start_discovery(now);
        self.reporter.start_sweep(why, true);
        self.sweep = Sweep::start(now, &self.smps.counters());
        self.stage = Stage::Discovering(Box::new(Discovery::new()));
    }

    /// Starts a partial discovery of the nodes that have reported changes. If too many nodes have reported changes, or
    /// if the known subnet may be wrong, starts a full discovery instead.
    fn follow_changes(&mut self, now: Instant) {
        let changed = self.triggers.take_changed();
        let nodes: Option<Vec<_>> =
            changed.iter().map(|&guid| self.subnet.found.find(guid)).collect();
        let sound = self.state == SmState::MASTER
            && !self.subnet.is_fresh
            && !self.triggers.is_unsettled
            && self.sweep.faults == 0
            && changed.len() <= MAX_CHANGED;
        let Some(nodes) = nodes.filter(|_| sound) else {
            self.triggers.require_full_discovery(
                "nodes reported changes, and a partial discovery is not possible",
            );
            return self.explore(now);
        };
        let names = self.subnet.found.describe(&nodes);
        self.reporter.start_sweep(format!("{names} reported changes"), false);
        self.sweep = Sweep::start(now, &self.smps.counters());
        self.counters.partial_discoveries += 1;
        let discovery = Discovery::partial(self.subnet.found.clone(), nodes);
        self.stage = Stage::Discovering(Box::new(discovery));
    }

    /// Starts a light sweep. Requests a full discovery instead if the last sweep was incomplete or had faults, if this
    /// SM is not the master, or if no switch is known.
    pub(super) fn start_light_sweep(&mut self) {
        self.counters.light_sweeps += 1;
        let left = self.light_sweeps.start(&self.subnet.found, &self.subnet.tables);
        let doubts = [
            (std::mem::take(&mut self.triggers.is_unsettled), "the last sweep was incomplete"),
            (self.state != SmState::MASTER, "no SM is the master yet"),
            (
                !left.iter().any(|asked| matches!(asked, Purpose::SwitchChange(_))),
                "no switch is known",
            ),
            (self.sweep.faults > 0, "the last sweep found faults"),
        ];
        if let Some((_, why)) = doubts.into_iter().find(|&(doubt, _)| doubt) {
            self.triggers.require_full_discovery(why);
        }
        self.stage = Stage::LightSweep { left, waiting: 0 };
    }

    /// Waits for the next sweep.
    pub(super) fn become_idle(&mut self, now: Instant) {
        let patience = self.config.timing.timeout * (self.config.timing.retries + 1);
        let next = self.triggers.next_sweep(now, self.config.sweep_interval, patience);
        self.stage = Stage::Idle { next };
    }

    /// Enters the next stage of the sweep if the current stage is complete. Returns true if it was complete.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        match &self.stage {
            Stage::Discovering(discovery) if discovery.is_done() => self.finish_discovery(now),
            Stage::Configuring(configuration) if configuration.is_done() => {
                self.finish_configuration(now);
            }
            Stage::LightSweep { waiting: 0, left }
                if self.triggers.is_stale() || left.is_empty() =>
            {
                if self.triggers.is_stale() {
                    self.explore(now);
                } else if self.triggers.has_changed() {
                    self.follow_changes(now);
                } else {
                    self.become_idle(now);
                }
            }
            Stage::Idle { .. } if self.triggers.is_stale() => self.explore(now),
            Stage::Idle { .. } if self.triggers.has_changed() => self.follow_changes(now),
            Stage::Idle { .. } if self.subnet.has_new_groups() => self.write_groups(),
            Stage::WritingGroups(configuration) if configuration.is_done() => {
                self.finish_groups(now);
            }
            _ => return false,
        }
        true
    }

    /// Ends a discovery: decides whether this SM or another SM is the master.
    fn finish_discovery(&mut self, now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Planning(None));
        let Stage::Discovering(discovery) = stage else {
            unreachable!("the caller matched the stage")
        };
        let DiscoveryResult { found, faults, same_shape, failed, reset } = discovery.finish();
        // Until this SM is the master, a discovery with faults is repeated once, because it may have missed the master.
        let blind = self.state != SmState::MASTER && !faults.is_empty();
        if failed || blind && self.triggers.take_repeat() {
            self.triggers.require_full_discovery("the last discovery was incomplete");
            return self.explore(now);
        }
        self.triggers.accept_discovery();
        self.subnet.adopt(found, &reset);
        self.sweep.discovered = now;
        self.report(faults);
        self.ignore_foreign_sms();
        if self.subnet.found.own.is_none() {
            self.reporter.push(SmEvent::NoPlan("the SM's own port does not respond".to_owned()));
            return self.become_idle(now);
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

    /// Ignores other SMs whose `SM_Key` differs from the configured key. Ignores none if the configured key is 0.
    fn ignore_foreign_sms(&mut self) {
        let key = self.config.sm_key;
        let knows = |info: &SmInfo| key == 0 || info.sm_key == key;
        let strangers = self.subnet.found.managers.iter().filter(|(_, info)| !knows(info));
        let faults: Vec<Fault> = strangers
            .map(|(&port_index, _)| Fault::Inconsistent {
                at: self.subnet.found.name(port_index),
                what: "an SM with another SM_Key; it is ignored".to_owned(),
            })
            .collect();
        self.subnet.found.managers.retain(|_, info| knows(info));
        self.report(faults);
    }

    /// Starts planning, unless the cached routes are still valid.
    pub(super) fn plan(&mut self, now: Instant) {
        let cached = self.cache.as_ref().filter(|cache| cache.serves(&self.subnet.found));
        if let Some(plan) = cached.map(UnicastCache::plan) {
            self.counters.cached_plans += 1;
            self.sweep.cached = true;
            return self.configure(now, plan);
        }
        // Until this SM has brought the subnet up, another SM may have written the LFT entries in the switches, so the
        // engines do not keep them.
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

    /// Checks the tables in the switches against the topology of the last discovery. Returns their quality, and the
    /// first unreachable pair of a switch and a LID; `None` if no table is known.
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

    /// Starts writing a plan to the nodes.
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

    /// Starts writing multicast tables, after group members have joined or left.
    fn write_groups(&mut self) {
        self.subnet.start_grouping();
        let Some(subnet) = self.served.as_ref().filter(|_| self.state == SmState::MASTER) else {
            return;
        };
        let plan = Arc::clone(&subnet.plan);
        let context = self.subnet.context(&self.config);
        let configuration = Configuration::for_groups(plan, &context);
        self.stage = Stage::WritingGroups(Box::new(configuration));
    }

    fn finish_groups(&mut self, now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Idle { next: None });
        let Stage::WritingGroups(configuration) = stage else {
            unreachable!("the caller matched the stage")
        };
        let (_, _, faults, incomplete) = configuration.finish();
        self.report(faults);
        if incomplete {
            self.triggers.require_full_discovery("multicast tables were not written");
        }
        self.become_idle(now);
    }

    fn finish_configuration(&mut self, now: Instant) {
        let stage = std::mem::replace(&mut self.stage, Stage::Idle { next: None });
        let Stage::Configuring(configuration) = stage else {
            unreachable!("the caller matched the stage")
        };
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
        self.become_idle(now);
    }

    /// Passes the subnet, which is up now, to the SA. Reports the ports and links that have appeared or disappeared.
    fn serve(&mut self, subnet: Subnet) {
        let own = subnet.found.own.expect("a served subnet includes the SM's port");
        let lid = subnet.base_lid(own).unwrap_or(0);
        let manager = (lid, Gid::new(subnet.prefix, self.guid));
        let last = self.served.take();
        for change in changes::between(last.as_deref(), &subnet) {
            self.reporter.push(change);
        }
        let has = |subnet: &Subnet, guid| subnet.by_guid(guid).is_some();
        if let Some(last) = &last {
            for port_index in last.end_ports().filter(|&at| !has(&subnet, last.found.port(at).guid))
            {
                let gid = last.gid(port_index);
                let notice = sa::gid_notice(TrapNumber::GID_OUT_OF_SERVICE, lid, gid);
                self.sa.notify(notice, manager.1);
                self.sa.forget(gid, manager);
            }
            for port_index in
                subnet.end_ports().filter(|&at| !has(last, subnet.found.port(at).guid))
            {
                let gid = subnet.gid(port_index);
                let notice = sa::gid_notice(TrapNumber::GID_IN_SERVICE, lid, gid);
                self.sa.notify(notice, manager.1);
            }
        }
        self.subnet.registered.retain(|&guid| has(&subnet, guid));
        self.sa.limit_groups(&subnet.found);
        if let Some(groups) = self.sa.take_group_changes() {
            self.subnet.set_groups(groups);
        }
        self.served = Some(Arc::new(subnet));
    }
}
