//! The state of a running SM, for the console and the metrics.

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

/// The state of the SM, and requests that the SM has not handled yet.
pub(super) struct Shared {
    state: Mutex<State>,
    is_sweep_requested: AtomicBool,
    bell: Bell,
}

/// The state of the SM.
#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) info: Option<SmInfo>,
    pub(super) activity: &'static str,
    pub(super) requested: String,
    pub(super) traffic: RequesterCounters,
    pub(super) counters: SmCounters,
    /// Number of faults and other errors since the SM was started.
    pub(super) fault_count: u64,
    /// Faults that the last sweep has found, one sentence each.
    pub(super) faults: Arc<Vec<String>>,
    /// Alarms that are raised at present.
    pub(super) alarms: Arc<Vec<ShownAlarm>>,
    /// Quality of the LFTs in the switches; `None` if it is not known.
    pub(super) quality: Option<TableQuality>,
    /// Reason why the last reload of the partitions failed; `None` if it succeeded.
    pub(super) rejected: Option<String>,
    /// Reason why the subnet cannot be routed; `None` if it can.
    pub(super) no_plan: Option<String>,
    /// The name, the GUID and the SMInfo of each other SM.
    pub(super) managers: Arc<Vec<(String, Guid, SmInfo)>>,
    pub(super) ports: Arc<Vec<PortStatus>>,
    pub(super) last: Option<Arc<Last>>,
    pub(super) counts: Arc<Mutex<Counts>>,
}

/// An alarm and the time at which it was raised.
#[derive(Clone)]
pub(crate) struct ShownAlarm {
    pub(crate) alarm: Alarm,
    pub(crate) since: SystemTime,
}

/// The last sweep that brought the subnet up.
pub(super) struct Last {
    pub(super) report: SweepReport,
    pub(super) at: SystemTime,
}

/// The counters of all ports, and statistics about their collection.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) ports: BTreeMap<(Guid, u8), PortCounts>,
    /// Number of completed collections of port counters.
    pub(super) rounds: u64,
    /// Number of queries for port counters that got no response.
    pub(super) failures: u64,
    /// Duration of the last collection of port counters, in seconds.
    pub(super) seconds: f64,
}

/// The 32-bit and the 64-bit counters of a port.
#[derive(Clone, Copy, Default)]
pub(super) struct PortCounts {
    pub(super) narrow: Option<PortCounters>,
    pub(super) wide: Option<PortCountersExtended>,
}

impl Shared {
    pub(super) fn new(bell: Bell) -> Arc<Self> {
        let state = Mutex::new(State::default());
        Arc::new(Self { state, is_sweep_requested: AtomicBool::new(false), bell })
    }

    /// Locks the state and applies a change to it.
    pub(super) fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.state));
    }

    /// Returns a copy of the state.
    pub(super) fn state(&self) -> State {
        lock(&self.state).clone()
    }

    /// Requests a sweep.
    pub(super) fn request_sweep(&self) {
        self.is_sweep_requested.store(true, Ordering::SeqCst);
        self.bell.ring();
    }

    /// Returns true if a sweep was requested since the last call.
    pub(super) fn take_sweep(&self) -> bool {
        self.is_sweep_requested.swap(false, Ordering::SeqCst)
    }
}

/// Locks a mutex. A poisoned mutex is used, because no panic leaves its data in an inconsistent state.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
