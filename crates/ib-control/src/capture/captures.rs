//! The captures of a program's HCAs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ib_capture::Link;
use ib_hca::trace::{
    PacketReader, PacketTrace, Selection, SelectionId, SelectionStatus, TraceError,
};
use ib_link::PacketSource as _;

use super::clock::Clock;
use super::hca_owner::{HcaOwner, adapters};
use super::recorder::{Autostop, Recorded, Recorder, RecorderHandle};
use super::target::{Target, TargetError};
use super::triggered::TriggeredSource;
use ib_os::inbox::{Handle, WorkError};

/// How long a request to the driver thread of the HCAs may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of captures. Captures that ended by themselves count until they are stopped.
const MOST: usize = 64;

/// Error of starting, changing or stopping a capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The HCA cannot trace the selected queue pairs with these options.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file cannot be written.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The driver thread does not respond.
    #[error(transparent)]
    WorkError(#[from] WorkError),
    /// No capture has this number.
    #[error("there is no capture {0}: `ibfabric capture list` prints the captures")]
    None(u64),
    /// Another capture of the program already writes to the file.
    #[error("{}: capture {by} is writing to this file: stop it first, or use another file", .file.display())]
    Written {
        /// Path of the file.
        file: PathBuf,
        /// Number of the capture that writes to the file.
        by: u64,
    },
    /// The maximum number of captures is reached.
    #[error("{0} captures exist, which is the maximum: stop some of them")]
    Many(usize),
}

/// Options of a capture.
#[derive(Debug)]
pub struct CaptureOptions {
    /// Where the packets are written.
    pub target: Target,
    /// The HCAs to capture, by number; empty for all HCAs, including those that are added later.
    pub adapters: Vec<u32>,
    /// Which queue pairs to capture, and the options of their packet traces.
    pub selection: Selection,
    /// Conditions that end the capture.
    pub autostop: Autostop,
    /// If the trace has a trigger: how many packets from before the trigger are written for each queue pair; `None` for
    /// all.
    pub keep: Option<u64>,
}

/// The captures of a program's HCAs, usable from any thread.
pub struct Captures<T> {
    handle: Handle<T>,
    clock: Clock,
    state: Arc<Mutex<State>>,
}

impl<T> Clone for Captures<T> {
    fn clone(&self) -> Self {
        let (handle, clock) = (self.handle.clone(), self.clock.clone());
        Self { handle, clock, state: Arc::clone(&self.state) }
    }
}

/// The number of an HCA, and a selection of queue pairs of this HCA.
type Selected = (u32, SelectionId);

#[derive(Default)]
struct State {
    last: u64,
    running: BTreeMap<u64, Running>,
    /// For each selection of queue pairs: the recorder that gets their packets.
    sinks: BTreeMap<Selected, PacketSink>,
}

struct Running {
    /// The HCAs to capture, by number; empty for all HCAs.
    adapters: Vec<u32>,
    selection: Selection,
    selected: Vec<Selected>,
    file: Option<PathBuf>,
    held: Option<Option<u64>>,
    recorder: Recorder,
}

/// Passes the packets of one selection of queue pairs to the recorder of its capture.
struct PacketSink {
    recorder: RecorderHandle,
    /// Prefix of the names of pcapng interfaces, if the program has several HCAs.
    name: Option<String>,
    /// `Some` only if the trace has a trigger. The inner value is the number of packets from before the trigger that
    /// are written; `None` for all.
    held: Option<Option<u64>>,
}

impl<T: HcaOwner> Captures<T> {
    /// Creates an empty list of captures of the given HCAs.
    ///
    /// # Errors
    /// Fails if the process has no free file descriptors.
    pub fn new(all: &mut T) -> std::io::Result<Self> {
        let state = Arc::new(Mutex::new(State::default()));
        let taking = Arc::clone(&state);
        all.set_on_reader(Box::new(move |adapter, selection, reader| {
            match lock(&taking).sinks.get(&(adapter, selection)) {
                Some(sink) => {
                    sink.take(reader);
                    None
                }
                None => Some(reader),
            }
        }));
        Ok(Self { handle: all.handle()?, clock: all.clock(), state })
    }

    /// Starts a capture and returns its number. Must not be called in the thread that drives the HCAs.
    ///
    /// # Errors
    /// Fails if the target cannot be opened, or if the HCAs do not support the selection.
    pub fn start(&self, options: CaptureOptions) -> Result<u64, CaptureError> {
        self.check(&options.target)?;
        let link = self.handle.with(PATIENCE, |all| all.link())?;
        let prepared = self.prepare(options, link)?;
        let captures = self.clone();
        self.handle.with(PATIENCE, move |all| captures.select(all, prepared))?
    }

    /// Does the same as [`Captures::start`], but is called in the thread that drives the HCAs.
    ///
    /// # Errors
    /// Fails as [`Captures::start`] does.
    pub fn start_with(&self, all: &mut T, options: CaptureOptions) -> Result<u64, CaptureError> {
        self.check(&options.target)?;
        let prepared = self.prepare(options, all.link())?;
        self.select(all, prepared)
    }

    /// Checks that the maximum number of captures is not reached, and that no other capture writes to the file.
    fn check(&self, target: &Target) -> Result<(), CaptureError> {
        let state = lock(&self.state);
        if state.running.len() >= MOST {
            return Err(CaptureError::Many(state.running.len()));
        }
        let file = target.file();
        let mut running = state.running.iter();
        let is_same = |it: &Running| it.file.is_some() && it.file.as_deref() == file;
        match running.find(|(_, it)| is_same(it) && !it.recorder.recorded().has_ended) {
            None => Ok(()),
            Some((&by, it)) => {
                Err(CaptureError::Written { file: it.file.clone().unwrap_or_default(), by })
            }
        }
    }

    /// Opens the target and starts the recorder thread. When the capture ends by a condition in `autostop` or an error,
    /// the recorder thread requests the driver thread to deselect the queue pairs.
    fn prepare(&self, options: CaptureOptions, link: Link) -> Result<Prepared, CaptureError> {
        let CaptureOptions { target, adapters, mut selection, autostop, keep } = options;
        let number = {
            let mut state = lock(&self.state);
            state.last += 1;
            state.last
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let (captures, over) = (self.clone(), Arc::clone(&is_over));
        let on_end = move || {
            over.store(true, Ordering::SeqCst);
            let ended = captures.clone();
            captures.handle.later(move |all| ended.deselect(all, number));
        };
        let file = target.file().map(PathBuf::from);
        let recorder = Recorder::start(target, (link, self.clock.clone()), autostop, on_end)?;
        selection.trace.until = recorder.end_time();
        let held = selection.trace.trigger.is_some().then_some(keep);
        let selected = Vec::new();
        let running = Running { adapters, selection, selected, file, held, recorder };
        Ok(Prepared { number, running, is_over })
    }

    fn select(&self, all: &mut T, prepared: Prepared) -> Result<u64, CaptureError> {
        let Prepared { number, mut running, is_over } = prepared;
        let wanted = match &running.adapters[..] {
            [] => adapters(all).collect(),
            named => named.to_vec(),
        };
        for adapter in wanted {
            if let Err(error) = self.select_of(all, adapter, &mut running) {
                for (adapter, selection) in running.selected {
                    all.engine(adapter).into_iter().for_each(|hca| hca.deselect(selection));
                }
                return Err(error.into());
            }
        }
        lock(&self.state).running.insert(number, running);
        if is_over.load(Ordering::SeqCst) {
            // The capture has already ended. If the driver thread has run the `deselect` of `on_end` before `running`
            // contained the capture, that call has deselected no queue pairs.
            self.deselect(all, number);
        }
        Ok(number)
    }

    fn select_of(
        &self,
        all: &mut T,
        adapter: u32,
        running: &mut Running,
    ) -> Result<(), TraceError> {
        let name = all.name_among(adapter);
        let Some(hca) = all.engine(adapter) else { return Ok(()) };
        let selected = (adapter, hca.select(running.selection.clone())?);
        running.selected.push(selected);
        let sink = PacketSink { recorder: running.recorder.handle(), name, held: running.held };
        lock(&self.state).sinks.insert(selected, sink);
        Ok(())
    }

    /// Adds a new HCA to each capture that captures all HCAs.
    pub fn added(&self, all: &mut T, adapter: u32) {
        let wants = |it: &Running| it.adapters.is_empty() && !it.recorder.recorded().has_ended;
        let numbers: Vec<u64> = {
            let state = lock(&self.state);
            state.running.iter().filter(|(_, it)| wants(it)).map(|(&number, _)| number).collect()
        };
        for number in numbers {
            let Some(mut running) = lock(&self.state).running.remove(&number) else { continue };
            // If the new HCA cannot trace the selected queue pairs, the capture continues without this HCA.
            self.select_of(all, adapter, &mut running).ok();
            lock(&self.state).running.insert(number, running);
        }
    }

    /// Forgets the selections of an HCA that was removed from the program.
    pub fn removed(&self, adapter: u32) {
        let mut state = lock(&self.state);
        state.sinks.retain(|(it, _), _| *it != adapter);
        for running in state.running.values_mut() {
            running.selected.retain(|(it, _)| *it != adapter);
        }
    }

    /// Passes all pending packet readers to the recorders of their captures, then stops the packet traces of capture
    /// `number`.
    fn deselect(&self, all: &mut T, number: u64) {
        let selected = lock(&self.state).running.get(&number).map(|it| it.selected.clone());
        self.deselect_all(all, &selected.unwrap_or_default());
    }

    fn deselect_all(&self, all: &mut T, selected: &[Selected]) {
        all.hand_over();
        for &(adapter, selection) in selected {
            if let Some(hca) = all.engine(adapter) {
                hca.deselect(selection);
            }
            lock(&self.state).sinks.remove(&(adapter, selection));
        }
    }

    /// Returns the reason why a capture has no queue pair yet; `None` if it has at least one, or if the reason is
    /// unknown.
    #[must_use]
    pub fn waits(&self, number: u64) -> Option<String> {
        let selected = lock(&self.state).running.get(&number)?.selected.clone();
        let statuses = move |all: &mut T| -> Vec<(u32, SelectionStatus)> {
            let mut of = |&(adapter, selection): &Selected| {
                Some((adapter, all.engine(adapter)?.selection_status(selection)))
            };
            selected.iter().filter_map(&mut of).collect()
        };
        let statuses = self.handle.with(PATIENCE, statuses).ok()?;
        let has_some =
            |it: &SelectionStatus| it.own > usize::from(it.has_gsi) || it.has_gsi && it.is_gsi_only;
        if statuses.iter().any(|(_, it)| has_some(it)) {
            return None;
        }
        let held: usize = statuses.iter().map(|(_, it)| it.taken).sum();
        if held == 0 {
            let has_gsi = statuses.iter().any(|(_, it)| it.has_gsi);
            let but = if has_gsi { " except QP 1" } else { "" };
            return Some(format!(
                "no queue pair{but} matches at present; matching queue pairs are captured as soon as they exist"
            ));
        }
        let state = lock(&self.state);
        let is_held_by = |it: &Running| {
            it.selected.iter().any(|(adapter, selection)| {
                let of = statuses.iter().filter(|(number, _)| number == adapter);
                of.into_iter().any(|(_, status)| status.holders.contains(selection))
            })
        };
        let holders = state.running.iter().filter(|(_, it)| is_held_by(it));
        let holders: Vec<String> = holders.map(|(number, _)| number.to_string()).collect();
        let by = match holders[..] {
            [] => String::new(),
            _ => format!(" by capture {}", holders.join(" and ")),
        };
        Some(format!(
            "all matching queue pairs ({held}) are already captured{by}; this capture takes them over when that one ends"
        ))
    }

    /// Changes the trace options of a capture, for example the packet filter and the payload bytes per message. The
    /// change applies to packets from now on. The rings keep their sizes.
    ///
    /// # Errors
    /// Fails if no capture has this number, or if the HCAs do not support the change.
    pub fn change(
        &self,
        number: u64,
        change: impl FnOnce(&mut PacketTrace),
    ) -> Result<(), CaptureError> {
        let found = lock(&self.state)
            .running
            .get(&number)
            .map(|it| (it.selected.clone(), it.selection.trace.clone()));
        let (selected, mut trace) = found.ok_or(CaptureError::None(number))?;
        change(&mut trace);
        let wanted = trace.clone();
        let changed = self.handle.with(PATIENCE, move |all| {
            for (adapter, selection) in selected {
                if let Some(hca) = all.engine(adapter) {
                    hca.change_selection(selection, &wanted)?;
                }
            }
            Ok::<_, TraceError>(())
        })?;
        changed?;
        if let Some(running) = lock(&self.state).running.get_mut(&number) {
            running.selection.trace = trace;
        }
        Ok(())
    }

    /// Ends a capture.
    ///
    /// # Errors
    /// Fails if no capture has this number.
    pub fn stop(&self, number: u64) -> Result<Recorded, CaptureError> {
        let Running { selected, recorder, .. } = self.take(number)?;
        let captures = self.clone();
        // An error is ignored: the recorder must finish even if the driver thread has ended or does not respond.
        self.handle.with(PATIENCE, move |all| captures.deselect_all(all, &selected)).ok();
        Ok(recorder.finish())
    }

    /// Does the same as [`Captures::stop`], but is called in the thread that drives the HCAs.
    ///
    /// # Errors
    /// Fails as [`Captures::stop`] does.
    pub fn stop_with(&self, all: &mut T, number: u64) -> Result<Recorded, CaptureError> {
        let Running { selected, recorder, .. } = self.take(number)?;
        self.deselect_all(all, &selected);
        Ok(recorder.finish())
    }

    fn take(&self, number: u64) -> Result<Running, CaptureError> {
        lock(&self.state).running.remove(&number).ok_or(CaptureError::None(number))
    }

    /// Returns the progress of a capture; `None` if no capture has this number.
    #[must_use]
    pub fn recorded(&self, number: u64) -> Option<Recorded> {
        lock(&self.state).running.get(&number).map(|it| it.recorder.recorded())
    }

    /// Returns the number and the progress of each capture that was not stopped.
    #[must_use]
    pub fn all(&self) -> Vec<(u64, Recorded)> {
        let state = lock(&self.state);
        state.running.iter().map(|(&number, it)| (number, it.recorder.recorded())).collect()
    }
}

/// A capture whose file is open, but whose queue pairs are not selected yet.
struct Prepared {
    number: u64,
    running: Running,
    /// True once the capture has ended by a condition or an error.
    is_over: Arc<AtomicBool>,
}

impl PacketSink {
    fn take(&self, reader: PacketReader) {
        let name = self.name.as_ref().map_or_else(String::new, |name| format!("{name} "));
        let name = format!("{name}qp {:#08x}", reader.qpn().get());
        match self.held {
            None => self.recorder.add(name, Box::new(reader)),
            Some(keep) => self.recorder.add(name, Box::new(TriggeredSource::new(reader, keep))),
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
