//! The changing state that the page shows: links that are down, unreachable nodes, traffic, and the SM.

use std::time::Duration;

use ib_sim::Sim;
use ib_types::Instant;
use serde::Serialize;

use super::missing::missing;
use super::model::Model;
use crate::sim::Manager;

/// Interval at which the state is updated while clients listen.
pub(super) const EVERY: Duration = Duration::from_millis(250);

/// If nothing has changed, the state is published again after this time.
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);

/// The state that was published last, and the counters with which the next update is compared.
#[derive(Default)]
pub(super) struct States {
    before: Option<Before>,
    /// The JSON members of the state that was published last, without its time.
    published: String,
    /// Simulated time at which a state was last published.
    published_at: Instant,
    down: Vec<u32>,
    /// Simulated time in seconds at which each link in `down` went down.
    since: Vec<f64>,
    /// The nodes that cannot be reached, each with the simulated time in seconds at which it became unreachable.
    missing: Vec<(u32, f64)>,
    /// Version of the routes for which `down` and `missing` were computed.
    down_at: Option<u64>,
}

/// The counters of sent bytes at the time of the last update.
struct Before {
    at: Instant,
    sent: Vec<[u64; 2]>,
}

/// The published state. The field names are JSON keys.
#[derive(Serialize)]
struct StateResponse<'a> {
    down: &'a [u32],
    since: &'a [f64],
    missing: &'a [(u32, f64)],
    traffic: Vec<(u32, u64, u64)>,
    routes: u64,
    sm: Option<SmState>,
}

/// The state of the SM.
#[derive(Serialize)]
struct SmState {
    state: String,
    sweeps: u64,
    followed: u64,
    lid: u16,
    /// Number of the node at which the SM runs.
    node: Option<u32>,
    up: bool,
    last: String,
    alarms: Vec<serde_json::Value>,
}

impl States {
    /// Returns the time of the next update.
    pub(super) fn due(&self) -> Instant {
        self.before.as_ref().map_or(Instant::ZERO, |before| before.at + EVERY)
    }

    /// Discards the byte counters of the last update, because no client listens. The next update then reports no
    /// traffic.
    pub(super) fn reset(&mut self) {
        self.before = None;
    }

    /// Updates the state. If it has to be published, returns the members of its JSON object.
    pub(super) fn update(
        &mut self,
        (sim, model, manager): (&Sim, &Model, Option<&Manager>),
        is_forced: bool,
    ) -> Option<String> {
        let now = sim.now();
        let traffic = self.traffic(sim, model);
        self.find_down(sim, model, manager);
        let sm = manager.map(|manager| {
            let shown = manager.shown();
            let port = sim.client_port(manager.client());
            let lid = port.map_or(0, |port| sim.link_port(port).lid);
            let node = port.map(|port| sim.place(port).0.0);
            let (state, up, last) = (shown.state, shown.is_up, shown.last);
            let (sweeps, followed) = (shown.sweeps, shown.followed);
            SmState { state, sweeps, followed, lid, node, up, last, alarms: shown.alarms }
        });
        let Self { down, since, missing, .. } = &*self;
        let response =
            StateResponse { down, since, missing, traffic, routes: sim.route_changes(), sm };
        let response = serde_json::to_string(&response).expect("the state can be serialised");
        let members = response.strip_prefix('{').and_then(|response| response.strip_suffix('}'));
        let members = members.expect("the state is a JSON object");
        let is_old = now >= self.published_at + AT_LEAST_EVERY;
        if !is_forced && !is_old && members == self.published {
            return None;
        }
        members.clone_into(&mut self.published);
        self.published_at = now;
        let seconds = now.as_nanos() as f64 / 1e9;
        Some(format!("\"time\":{seconds:.6},{members}"))
    }

    /// Returns the traffic of each link since the last update: the number of the link, and bytes per second in both
    /// directions.
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
            // If a counter was reset since the last update, its difference counts as 0.
            let [there, back] =
                [0, 1].map(|direction| sent[direction].saturating_sub(before[direction]));
            *before = sent;
            if there + back > 0 && seconds > 0.0 {
                let rate = |bytes: u64| (bytes as f64 / seconds).round() as u64;
                traffic.push((number, rate(there), rate(back)));
            }
        }
        traffic
    }

    /// If the routes have changed, updates the lists of the links that are down and of the nodes that cannot be
    /// reached.
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
    // The page needs only milliseconds. Omitting the other digits keeps the JSON message short.
    (at.as_nanos() / 1_000_000) as f64 / 1e3
}
