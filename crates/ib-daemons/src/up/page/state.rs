//! Variable state of the page: links that are down, nodes that are not reached, traffic, the state of the SM.

use std::time::Duration;

use ib_sim::Sim;
use ib_types::Instant;
use serde::Serialize;

use super::missing::missing;
use super::model::Model;
use crate::sim::Manager;

/// How often it is looked at while somebody listens, and how often it is told at least.
pub(super) const EVERY: Duration = Duration::from_millis(250);
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);

/// What was seen, as far as the next look needs it.
#[derive(Default)]
pub(super) struct States {
    before: Option<Before>,
    /// What was told last, without the time, and when.
    told: String,
    told_at: Instant,
    down: Vec<u32>,
    /// Since when each of these is down, in seconds of the fabric's clock.
    since: Vec<f64>,
    /// Nodes that are not reached, and since when.
    missing: Vec<(u32, f64)>,
    /// At which count of changes that was found.
    down_at: Option<u64>,
}

/// What the links had carried at a look.
struct Before {
    at: Instant,
    sent: Vec<[u64; 2]>,
}

/// What is told; the names are JSON keys.
#[derive(Serialize)]
struct Told<'a> {
    down: &'a [u32],
    since: &'a [f64],
    missing: &'a [(u32, f64)],
    traffic: Vec<(u32, u64, u64)>,
    routes: u64,
    sm: Option<ManagerTold>,
}

#[derive(Serialize)]
struct ManagerTold {
    state: String,
    sweeps: u64,
    followed: u64,
    lid: u16,
    up: bool,
    last: String,
    alarms: Vec<serde_json::Value>,
}

impl States {
    /// Returns when the next look is due.
    pub(super) fn due(&self) -> Instant {
        self.before.as_ref().map_or(Instant::ZERO, |before| before.at + EVERY)
    }

    /// Nobody listens any more: what is seen next is compared with nothing.
    pub(super) fn forget(&mut self) {
        self.before = None;
    }

    /// Looks, and returns the members of the object that is to be told, if anything is.
    pub(super) fn look(
        &mut self,
        (sim, model, manager): (&Sim, &Model, Option<&Manager>),
        has_to: bool,
    ) -> Option<String> {
        let now = sim.now();
        let traffic = self.traffic(sim, model);
        self.find_down(sim, model, manager);
        let sm = manager.map(|manager| {
            let shown = manager.shown();
            let lid = sim.client_port(manager.client()).map_or(0, |port| sim.link_port(port).lid);
            let (state, up, last) = (shown.state, shown.is_up, shown.last);
            let (sweeps, followed) = (shown.sweeps, shown.followed);
            ManagerTold { state, sweeps, followed, lid, up, last, alarms: shown.alarms }
        });
        let Self { down, since, missing, .. } = &*self;
        let told = Told { down, since, missing, traffic, routes: sim.route_changes(), sm };
        let told = serde_json::to_string(&told).expect("it has nothing that JSON has not");
        let members = told.strip_prefix('{').and_then(|told| told.strip_suffix('}'));
        let members = members.expect("it is an object");
        let is_old = now >= self.told_at + AT_LEAST_EVERY;
        if !has_to && !is_old && members == self.told {
            return None;
        }
        members.clone_into(&mut self.told);
        self.told_at = now;
        let seconds = now.as_nanos() as f64 / 1e9;
        Some(format!("\"time\":{seconds:.6},{members}"))
    }

    /// Returns what has gone over links since the last look, in bytes per second each way.
    fn traffic(&mut self, sim: &Sim, model: &Model) -> Vec<(u32, u64, u64)> {
        let now = sim.now();
        let sent = |&(one, other)| [sim.sent_bytes(one), sim.sent_bytes(other)];
        let Some(before) = &mut self.before else {
            self.before = Some(Before { at: now, sent: model.links.iter().map(sent).collect() });
            return Vec::new();
        };
        let seconds = now.since(before.at).as_secs_f64();
        before.at = now;
        let mut traffic = Vec::new();
        for ((number, link), before) in (0..).zip(&model.links).zip(&mut before.sent) {
            let sent = sent(link);
            // Counters may have been set to less.
            let [there, back] = [0, 1].map(|way| sent[way].saturating_sub(before[way]));
            *before = sent;
            if there + back > 0 && seconds > 0.0 {
                let rate = |bytes: u64| (bytes as f64 / seconds).round() as u64;
                traffic.push((number, rate(there), rate(back)));
            }
        }
        traffic
    }

    /// Finds the links that are not in use and the nodes that are not reached, unless nothing has changed.
    fn find_down(&mut self, sim: &Sim, model: &Model, manager: Option<&Manager>) {
        if self.down_at == Some(sim.route_changes()) {
            return;
        }
        self.down_at = Some(sim.route_changes());
        let links = (0..).zip(&model.links);
        let down = links.filter_map(|(number, &(one, other))| {
            Some((number, seconds(sim.inactive_since(one, other)?)))
        });
        (self.down, self.since) = down.unzip();
        let own = manager.and_then(|manager| sim.client_port(manager.client()));
        let own = own.or_else(|| sim.first_end_port());
        let found = own.map_or(Vec::new(), |own| missing(sim, model, sim.place(own).0));
        self.missing = found.into_iter().map(|(node, since)| (node, seconds(since))).collect();
    }
}

fn seconds(at: Instant) -> f64 {
    // As much as is shown, and no more bytes.
    (at.as_nanos() / 1_000_000) as f64 / 1e3
}
