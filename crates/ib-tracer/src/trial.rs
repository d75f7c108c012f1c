//! Trials decide whether missing responses to a combined-route probe are caused by a fault or by random loss.
//!
//! A trial repeats the combined-route probe, and sends a control probe after each repetition. A control probe consists
//! of directed-route SMPs over the same cables. One SMP takes the path of the combined-route probe. If the response
//! takes another path, a second SMP takes the path of the response.
//!
//! If random loss were the only cause of missing responses, both kinds of probes would be answered equally often.
//! Fisher's exact test gives the probability that in this case all responses nevertheless belong to control probes.

use std::collections::BTreeMap;

use ib_link::Remote;
use ib_mad::{Request, Timing};
use ib_types::Guid;
use ib_wire::mad::sm::NodeInfo;
use ib_wire::mad::{AttributeId, Mad, Method, TransactionId, smp};

use crate::fabric_model::{FabricModel, WalkResult};
use crate::path::Stop;
use crate::probes::{CombinedRoute, Probes};

/// Number of combined-route probes in the first round of a trial. Each later round doubles the total number.
const FIRST_ROUND: u32 = 12;

/// Maximum number of combined-route probes in a trial.
const MAX_PROBES: u32 = 768;

/// A request of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    /// A combined-route probe.
    CombinedRoute,
    /// An SMP of the control probe that belongs to the combined-route probe with this number. The SMP takes the path of
    /// the combined-route probe or, if `is_answer` is true, the path of its response.
    Control { number: u32, is_answer: bool },
}

/// Result of a trial, which repeats a combined-route probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Requests are outstanding.
    Running,
    /// A combined-route probe was answered.
    Answered,
    /// No combined-route probe was answered, and the probability that this is random loss is at most the configured
    /// bound.
    Silent,
    /// No combined-route probe was answered, but random loss cannot be excluded.
    Unclear,
}

/// The trial of one combined-route probe.
#[derive(Debug)]
struct Trial {
    /// Directed routes of the control probes, which check the cables of the path: along the path of the combined-route probe and, if it differs, along the
    /// path of its response.
    routes: [Option<Vec<u8>>; 2],
    /// GUID of the node at the end of the control probes' routes.
    expected: Guid,
    /// Number of combined-route probes that the trial has sent so far.
    sent: u32,
    /// Number of outstanding requests of the current round.
    left: u32,
    /// True if a combined-route probe was answered.
    answered: bool,
    /// By number of a combined-route probe: number of answered SMPs of its control probe.
    controls: BTreeMap<u32, u8>,
    outcome: Outcome,
}

/// All trials.
#[derive(Debug)]
pub(crate) struct Trials {
    error_probability: f64,
    all: BTreeMap<CombinedRoute, Trial>,
}

impl Trials {
    pub(crate) const fn new(error_probability: f64) -> Self {
        Self { error_probability, all: BTreeMap::new() }
    }

    /// Returns the result of the trial of a probe; `None` if the trial was not started.
    pub(crate) fn get(&self, combined_route: CombinedRoute) -> Option<Outcome> {
        self.all.get(&combined_route).map(|trial| trial.outcome)
    }

    /// Returns the probes for which a trial has excluded random loss as the cause of missing responses.
    pub(crate) fn silent(&self) -> impl Iterator<Item = CombinedRoute> {
        let silent = self.all.iter().filter(|(_, trial)| trial.outcome == Outcome::Silent);
        silent.map(|(&combined_route, _)| combined_route)
    }

    /// Returns three counts: combined-route probes sent, control probes sent, and control probes answered. A control
    /// probe over two routes counts once.
    pub(crate) fn counts(&self, combined_route: CombinedRoute) -> Option<(u32, u32, u32)> {
        let trial = self.all.get(&combined_route)?;
        let controls = if trial.routes[0].is_some() { trial.sent } else { 0 };
        Some((trial.sent, controls, trial.successes()))
    }

    /// Starts a trial, and returns its first requests. If no control probe is possible, the outcome is
    /// [`Outcome::Unclear`] at once, and there are no requests.
    pub(crate) fn start(
        &mut self,
        combined_route: CombinedRoute,
        model: &FabricModel,
        (probes, timing): (&Probes, Timing),
    ) -> Vec<(Sample, Request)> {
        let routes = controls(combined_route, model);
        let outcome = if routes.is_some() { Outcome::Running } else { Outcome::Unclear };
        let (routes, expected) = routes.unwrap_or_default();
        let trial = Trial {
            routes,
            expected,
            sent: 0,
            left: 0,
            answered: false,
            controls: BTreeMap::new(),
            outcome,
        };
        self.all.insert(combined_route, trial);
        if outcome == Outcome::Unclear {
            return Vec::new();
        }
        self.round(combined_route, FIRST_ROUND, model, (probes, timing))
    }

    /// Processes a response or timeout. Returns the requests of the next round, or none if no new round begins.
    pub(crate) fn handle(
        &mut self,
        (combined_route, sample): (CombinedRoute, Sample),
        answer: Option<&Mad>,
        model: &FabricModel,
        (probes, timing): (&Probes, Timing),
    ) -> Vec<(Sample, Request)> {
        let Some(trial) = self.all.get_mut(&combined_route) else { return Vec::new() };
        trial.left = trial.left.saturating_sub(1);
        match (sample, answer) {
            (Sample::CombinedRoute, Some(_)) => trial.answered = true,
            (Sample::Control { number, .. }, Some(mad)) => {
                let info: Option<NodeInfo> = mad.attribute();
                if info.is_some_and(|info| info.node_guid == trial.expected) {
                    *trial.controls.entry(number).or_default() += 1;
                }
            }
            (_, None) => {}
        }
        if trial.left > 0 {
            return Vec::new();
        }
        trial.outcome = if trial.answered {
            Outcome::Answered
        } else if chance(trial.sent, trial.successes()) <= self.error_probability {
            Outcome::Silent
        } else if trial.sent >= MAX_PROBES {
            Outcome::Unclear
        } else {
            let more = trial.sent;
            return self.round(combined_route, more, model, (probes, timing));
        };
        Vec::new()
    }

    fn round(
        &mut self,
        combined_route: CombinedRoute,
        count: u32,
        model: &FabricModel,
        (probes, timing): (&Probes, Timing),
    ) -> Vec<(Sample, Request)> {
        let Some(trial) = self.all.get_mut(&combined_route) else { return Vec::new() };
        let timing = Timing { retries: 0, ..timing };
        let mut requests = Vec::new();
        for number in trial.sent..trial.sent + count {
            requests.push((
                Sample::CombinedRoute,
                probes.combined(combined_route, model).with_timing(timing),
            ));
            for (route, is_answer) in trial.routes.iter().zip([false, true]) {
                let Some(route) = route else { continue };
                let what = (AttributeId::NODE_INFO, 0);
                let mad = smp::directed_request(Method::GET, TransactionId(0), what, route);
                let mut request = Request::new(Remote::directed(), mad).with_timing(timing);
                request.mad.set_m_key(probes.m_key());
                requests.push((Sample::Control { number, is_answer }, request));
            }
        }
        trial.sent += count;
        trial.left = requests.len() as u32;
        requests
    }
}

impl Trial {
    /// Returns the number of answered control probes. A control probe counts as answered if each of its SMPs, one per
    /// element of `routes`, was answered.
    fn successes(&self) -> u32 {
        let wanted = self.routes.iter().flatten().count() as u8;
        self.controls.values().filter(|&&count| count == wanted).count() as u32
    }
}

/// Returns the probability, by Fisher's exact test, that all of `successes` responses belong to control probes.
///
/// The test assumes `count` combined-route probes and `count` control probes, all with the same loss rate.
fn chance(count: u32, successes: u32) -> f64 {
    let count = f64::from(count);
    (0..successes).map(f64::from).map(|taken| (count - taken) / (2.0 * count - taken)).product()
}

/// Returns the directed routes of control probes, and the GUID of the node at the end of these routes. The routes lead
/// over the same cables as the combined-route probe and its response. Returns `None` if the probe or its response does
/// not arrive according to the forwarding tables, or if a route is too long.
fn controls(
    (from, lid): CombinedRoute,
    model: &FabricModel,
) -> Option<([Option<Vec<u8>>; 2], Guid)> {
    let ended = |start, lid| match model.walk(start, lid) {
        WalkResult::Ended(path) if path.stop == Stop::Arrived => Some(path.hops),
        _ => None,
    };
    let question = ended((from, 0), lid)?;
    let last = question.last()?;
    let answer = ended((last.node, last.enters), model.end((from, 0))?.lid)?;
    let base = &model.node(from).route;
    let out: Vec<u8> = base.iter().copied().chain(question.iter().map(|hop| hop.out)).collect();
    let back: Vec<u8> =
        base.iter().copied().chain(answer.iter().rev().map(|hop| hop.enters)).collect();
    let is_short = |route: &Vec<u8>| route.len() <= usize::from(smp::MAX_HOPS);
    if !is_short(&out) || !is_short(&back) {
        return None;
    }
    let back = (back != out).then_some(back);
    Some(([Some(out), back], model.node(last.node).guid))
}

#[cfg(test)]
mod tests;
