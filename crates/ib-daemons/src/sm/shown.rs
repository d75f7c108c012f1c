//! A summary of the SM's state, for a simulator that runs the SM within its own process.

use std::sync::Arc;

use ib_sm::Plan;
use serde_json::Value;

use super::console::{alarm_data, state_word};
use super::daemon::Daemon;
use super::events;
use crate::log::Listener;

/// Summary of the state of an SM.
pub(crate) struct Shown {
    /// SM state, written as in OpenSM's log.
    pub(crate) state: String,
    /// Number of heavy sweeps that have brought the subnet up.
    pub(crate) sweeps: u64,
    /// Number of partial sweeps.
    pub(crate) followed: u64,
    /// True if a sweep has brought the subnet up and the SM can still route the subnet.
    pub(crate) is_up: bool,
    /// Text about the last sweep that brought the subnet up; empty if there was none. If the subnet cannot be routed,
    /// the text is the reason.
    pub(crate) last: String,
    /// The alarms that are raised, in the format of `sm ctl status --json`.
    pub(crate) alarms: Vec<Value>,
    /// The plan that was written to the switches last.
    pub(crate) plan: Option<Arc<Plan>>,
}

impl Daemon {
    /// Returns the state of the SM.
    pub(crate) fn shown(&self) -> Shown {
        let state = self.shared().state();
        let word = state.info.map_or("starting", |info| state_word(info.state));
        let report = state.last.as_ref().map(|last| &last.report);
        let last = match (&state.no_plan, report) {
            (Some(why), _) => why.clone(),
            (None, Some(report)) => {
                let [(_, what), _] = events::up(report);
                what
            }
            (None, None) => String::new(),
        };
        Shown {
            state: word.to_uppercase(),
            sweeps: state.counters.sweeps,
            followed: state.counters.partial_discoveries,
            is_up: report.is_some() && state.no_plan.is_none(),
            last,
            alarms: state.alarms.iter().map(alarm_data).collect(),
            plan: report.map(|report| Arc::clone(&report.plan)),
        }
    }

    /// Sets a callback that receives the SM's log lines.
    pub(crate) fn listen(&self, listener: Listener) {
        self.log().listen(listener);
    }
}
