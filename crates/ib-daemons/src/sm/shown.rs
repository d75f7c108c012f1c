//! What a process that hosts a manager shows of it.

use std::sync::Arc;

use ib_sm::Plan;
use serde_json::Value;

use super::console::{alarm_data, state_word};
use super::daemon::Daemon;
use super::events;
use crate::log::Listener;

/// What a manager is and has done.
pub(crate) struct Shown {
    /// Its state, as OpenSM's log names it.
    pub(crate) state: String,
    /// Heavy sweeps that have brought the subnet up.
    pub(crate) sweeps: u64,
    /// How often only what had changed was explored.
    pub(crate) followed: u64,
    /// Whether the subnet is up as the last sweep has found it.
    pub(crate) is_up: bool,
    /// What the last sweep has done, or why it has not brought the subnet up.
    pub(crate) last: String,
    /// The alarms that are raised now, as `sm ctl status --json` has them.
    pub(crate) alarms: Vec<Value>,
    /// The plan that was written last.
    pub(crate) plan: Option<Arc<Plan>>,
}

impl Daemon {
    /// Returns what it is and has done.
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
            followed: state.counters.followed,
            is_up: report.is_some() && state.no_plan.is_none(),
            last,
            alarms: state.alarms.iter().map(alarm_data).collect(),
            plan: report.map(|report| Arc::clone(&report.plan)),
        }
    }

    /// Has somebody told each line of its log.
    pub(crate) fn listen(&self, listener: Listener) {
        self.log().listen(listener);
    }
}
