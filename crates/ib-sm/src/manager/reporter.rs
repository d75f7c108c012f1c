//! The reports of the SM: queued events, and the faults, warnings and alarms reported earlier.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_types::Instant;

use super::event::{DiscoveryStart, SmEvent};
use crate::alarm::{Alarm, AlarmKind, RaisedAlarm};
use crate::fault::Fault;
use crate::plan::TableQuality;

/// The SM's queued events, and the earlier reports that the SM must not repeat.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    events: VecDeque<SmEvent>,
    /// Faults of the previous sweep.
    last_faults: BTreeSet<String>,
    /// Faults of the current sweep or, between sweeps, of the last sweep.
    faults: BTreeSet<String>,
    /// The last reported reason why there is no plan; `None` if there is a plan or no reason was reported.
    refusal: Option<String>,
    /// Warnings of the last plan.
    warned: BTreeSet<String>,
    /// Quality of the forwarding tables in the switches after the last plan; `None` if it is not known.
    pub(super) quality: Option<TableQuality>,
    alarms: BTreeMap<AlarmKind, RaisedAlarm>,
}

impl Reporter {
    pub(super) fn poll(&mut self) -> Option<SmEvent> {
        self.events.pop_front()
    }

    pub(super) fn push(&mut self, event: SmEvent) {
        self.events.push_back(event);
    }

    /// Reports the start of a discovery, and starts a new list of faults.
    pub(super) fn start_sweep(&mut self, reason: String, is_full: bool) {
        self.push(SmEvent::DiscoveryStart(DiscoveryStart { reason, is_full }));
        self.last_faults = std::mem::take(&mut self.faults);
    }

    /// Reports the given faults, except those that the last sweep reported.
    pub(super) fn report_faults(&mut self, faults: Vec<Fault>) {
        for fault in faults {
            let text = fault.to_string();
            let known = self.last_faults.contains(&text) || self.faults.contains(&text);
            self.faults.insert(text);
            if !known {
                self.push(SmEvent::Fault(fault));
            }
        }
    }

    /// Returns the faults of the last sweep, one sentence each.
    pub(super) fn faults(&self) -> impl Iterator<Item = &str> {
        self.faults.iter().map(String::as_str)
    }

    /// Reports the warnings about a new plan that the plan before it did not have.
    pub(super) fn warn(&mut self, warnings: &[String]) {
        let new = warnings.iter().filter(|warning| !self.warned.contains(*warning));
        self.events.extend(new.cloned().map(SmEvent::Warning));
        self.warned = warnings.iter().cloned().collect();
    }

    /// Reports why there is no plan, unless the same reason was reported last.
    pub(super) fn refuse(&mut self, reason: String) {
        if self.refusal.as_ref() != Some(&reason) {
            self.refusal = Some(reason.clone());
            self.push(SmEvent::NoPlan(reason));
        }
    }

    /// Clears the reason for having no plan, because there is a plan.
    pub(super) fn accept(&mut self) {
        self.refusal = None;
    }

    /// Drops the alarms and the quality of the tables. They do not apply after a change of the SM's state.
    pub(super) fn forget_tables(&mut self) {
        (self.quality, self.alarms) = (None, BTreeMap::new());
    }

    /// Returns the raised alarms, by kind.
    pub(super) fn alarms(&self) -> impl Iterator<Item = &RaisedAlarm> {
        self.alarms.values()
    }

    /// Replaces all alarms. If an alarm of the same kind is already raised, the new alarm keeps the time at which that
    /// alarm was raised.
    pub(super) fn raise(&mut self, now: Instant, alarms: Vec<Alarm>) {
        let last = std::mem::take(&mut self.alarms);
        for alarm in alarms {
            let kind = alarm.kind();
            let before = last.get(&kind);
            if before.is_none_or(|before| before.alarm != alarm) {
                self.push(SmEvent::AlarmRaised(Box::new(alarm.clone())));
            }
            let since = before.map_or(now, |before| before.since);
            self.alarms.insert(kind, RaisedAlarm { alarm, since });
        }
        let cleared = last.into_keys().filter(|kind| !self.alarms.contains_key(kind));
        self.events.extend(cleared.map(SmEvent::AlarmCleared));
    }
}

#[cfg(test)]
mod tests;
