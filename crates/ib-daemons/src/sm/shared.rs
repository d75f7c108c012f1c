//! What a running manager shows to those who ask: its console and its metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use ib_mad::RequesterCounters;
use ib_os::alarm::Bell;
use ib_sm::{Alarm, PortStatus, SmCounters, SweepReport, TableQuality};
use ib_types::Guid;
use ib_wire::mad::pm::{PortCounters, PortCountersExtended};
use ib_wire::mad::sm::SmInfo;

/// What is shown, and what may be asked for.
pub(super) struct Shared {
    state: Mutex<State>,
    wants_sweep: AtomicBool,
    bell: Bell,
}

/// What is shown.
#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) info: Option<SmInfo>,
    pub(super) activity: &'static str,
    pub(super) requested: String,
    pub(super) traffic: RequesterCounters,
    pub(super) counters: SmCounters,
    /// Faults and other errors since the start.
    pub(super) fault_count: u64,
    /// What is wrong now.
    pub(super) faults: Arc<Vec<String>>,
    /// The alarms that are raised now.
    pub(super) alarms: Arc<Vec<ShownAlarm>>,
    /// Quality of the forwarding tables in the switches; `None` if it is not known.
    pub(super) quality: Option<TableQuality>,
    /// Why a file was not taken when it was read again.
    pub(super) rejected: Option<String>,
    /// Why there is no plan, when there is none.
    pub(super) no_plan: Option<String>,
    /// Other managers: name, GUID, state, priority.
    pub(super) managers: Arc<Vec<(String, Guid, SmInfo)>>,
    pub(super) ports: Arc<Vec<PortStatus>>,
    pub(super) last: Option<Arc<Last>>,
    pub(super) counts: Arc<Mutex<Counts>>,
}

/// An alarm, and when it was raised.
#[derive(Clone)]
pub(crate) struct ShownAlarm {
    pub(crate) alarm: Alarm,
    pub(crate) since: SystemTime,
}

/// The last time that the subnet was brought up.
pub(super) struct Last {
    pub(super) report: SweepReport,
    pub(super) at: SystemTime,
}

/// The counters of ports, by node GUID and number.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) ports: BTreeMap<(Guid, u8), PortCounts>,
    /// Collections that were finished.
    pub(super) rounds: u64,
    /// Queries without an answer.
    pub(super) failures: u64,
    /// How long the last collection took, in seconds.
    pub(super) seconds: f64,
}

/// The counters of a port.
#[derive(Clone, Copy, Default)]
pub(super) struct PortCounts {
    pub(super) narrow: Option<PortCounters>,
    pub(super) wide: Option<PortCountersExtended>,
}

impl Shared {
    pub(super) fn new(bell: Bell) -> Arc<Self> {
        let state = Mutex::new(State::default());
        Arc::new(Self { state, wants_sweep: AtomicBool::new(false), bell })
    }

    /// Changes what is shown.
    pub(super) fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.state));
    }

    /// Returns what is shown now.
    pub(super) fn state(&self) -> State {
        lock(&self.state).clone()
    }

    /// Asks for a sweep.
    pub(super) fn ask_for_sweep(&self) {
        self.wants_sweep.store(true, Ordering::SeqCst);
        self.bell.ring();
    }

    /// Returns whether a sweep was asked for since it was asked last.
    pub(super) fn take_sweep(&self) -> bool {
        self.wants_sweep.swap(false, Ordering::SeqCst)
    }
}

/// Locks what nobody leaves half changed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
