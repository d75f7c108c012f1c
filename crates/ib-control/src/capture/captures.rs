//! The captures of a program's HCAs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ib_capture::Link;
use ib_hca::trace::{PacketReader, PacketTrace, Selection, SelectionId, Standing, TraceError};
use ib_link::PacketSource as _;

use super::captured::{Captured, adapters};
use super::clock::Clock;
use super::held::Held;
use super::recorder::{Autostop, Recorded, Recorder, RecorderHandle};
use super::target::{Target, TargetError};
use ib_os::inbox::{Handle, Undone};

/// How long the program may take to come to what it is asked for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many captures there may be, ended ones that were not stopped among them.
const MOST: usize = 64;

/// Why there is no capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The HCA cannot trace so.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file cannot be written.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The program does not listen.
    #[error(transparent)]
    Undone(#[from] Undone),
    /// There is no such capture.
    #[error("there is no capture {0}")]
    None(u64),
    /// Another capture of the program writes the file.
    #[error("{}: capture {by} writes it", .file.display())]
    Written {
        /// The file.
        file: PathBuf,
        /// The capture.
        by: u64,
    },
    /// There are many already.
    #[error("{0} captures are there already: expected some of them to be stopped")]
    Many(usize),
}

/// What is captured.
#[derive(Debug)]
pub struct CaptureOptions {
    /// Where it goes.
    pub target: Target,
    /// Of which HCAs, by their numbers; without any of all, those that are added later among them.
    pub adapters: Vec<u32>,
    /// Of which queue pairs, and how.
    pub selection: Selection,
    /// When it ends by itself.
    pub autostop: Autostop,
    /// With a trigger, how many packets of each queue pair from before it are written; all there are without it.
    pub keep: Option<u64>,
}

/// The captures of a program's HCAs, for any thread.
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

/// A selection of an HCA.
type Selected = (u32, SelectionId);

#[derive(Default)]
struct State {
    last: u64,
    running: BTreeMap<u64, Running>,
    /// Who takes what a selection has chosen.
    takers: BTreeMap<Selected, Taker>,
}

struct Running {
    /// The HCAs that were named; without any all.
    adapters: Vec<u32>,
    selection: Selection,
    selected: Vec<Selected>,
    file: Option<PathBuf>,
    held: Option<Option<u64>>,
    recorder: Recorder,
}

/// What takes the packets of a selection.
struct Taker {
    recorder: RecorderHandle,
    /// What the names of interfaces begin with.
    name: Option<String>,
    /// Whether a trigger is awaited, and how much of what was before it is written.
    held: Option<Option<u64>>,
}

impl<T: Captured> Captures<T> {
    /// Returns the captures of HCAs, of which there are none yet.
    ///
    /// # Errors
    /// Fails when the system has no more files.
    pub fn new(all: &mut T) -> std::io::Result<Self> {
        let state = Arc::new(Mutex::new(State::default()));
        let taking = Arc::clone(&state);
        all.set_taker(Box::new(move |adapter, selection, reader| {
            match lock(&taking).takers.get(&(adapter, selection)) {
                Some(taker) => {
                    taker.take(reader);
                    None
                }
                None => Some(reader),
            }
        }));
        Ok(Self { handle: all.handle()?, clock: all.clock(), state })
    }

    /// Starts a capture from a thread that does not drive the HCAs; returns its number.
    ///
    /// # Errors
    /// Fails when the target cannot be opened, or the HCAs cannot trace so.
    pub fn start(&self, options: CaptureOptions) -> Result<u64, CaptureError> {
        self.check(&options.target)?;
        let link = self.handle.with(PATIENCE, |all| all.link())?;
        let prepared = self.prepare(options, link)?;
        let captures = self.clone();
        self.handle.with(PATIENCE, move |all| captures.select(all, prepared))?
    }

    /// As [`Captures::start`], in the thread that drives the HCAs.
    ///
    /// # Errors
    /// As [`Captures::start`].
    pub fn start_with(&self, all: &mut T, options: CaptureOptions) -> Result<u64, CaptureError> {
        self.check(&options.target)?;
        let prepared = self.prepare(options, all.link())?;
        self.select(all, prepared)
    }

    /// Refuses a file that is written already.
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

    /// Opens the target. What ends by itself is not traced any more.
    fn prepare(&self, options: CaptureOptions, link: Link) -> Result<Prepared, CaptureError> {
        let CaptureOptions { target, adapters, selection, autostop, keep } = options;
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
            // It has ended before there was anything to end.
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
        let taker = Taker { recorder: running.recorder.handle(), name, held: running.held };
        lock(&self.state).takers.insert(selected, taker);
        Ok(())
    }

    /// Has captures of all HCAs capture one that was added, too.
    pub fn added(&self, all: &mut T, adapter: u32) {
        let wants = |it: &Running| it.adapters.is_empty() && !it.recorder.recorded().has_ended;
        let numbers: Vec<u64> = {
            let state = lock(&self.state);
            state.running.iter().filter(|(_, it)| wants(it)).map(|(&number, _)| number).collect()
        };
        for number in numbers {
            let Some(mut running) = lock(&self.state).running.remove(&number) else { continue };
            // Other HCAs have been able to trace so.
            self.select_of(all, adapter, &mut running).ok();
            lock(&self.state).running.insert(number, running);
        }
    }

    /// Forgets what was selected of an HCA that is not there any more.
    pub fn removed(&self, adapter: u32) {
        let mut state = lock(&self.state);
        state.takers.retain(|(it, _), _| *it != adapter);
        for running in state.running.values_mut() {
            running.selected.retain(|(it, _)| *it != adapter);
        }
    }

    /// Traces nothing more for a capture. What was chosen until now is handed over before.
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
            lock(&self.state).takers.remove(&(adapter, selection));
        }
    }

    /// Returns in words why no queue pair is captured now, where that is so.
    #[must_use]
    pub fn waits(&self, number: u64) -> Option<String> {
        let selected = lock(&self.state).running.get(&number)?.selected.clone();
        let standings = move |all: &mut T| -> Vec<(u32, Standing)> {
            let mut of = |&(adapter, selection): &Selected| {
                Some((adapter, all.engine(adapter)?.standing(selection)))
            };
            selected.iter().filter_map(&mut of).collect()
        };
        let standings = self.handle.with(PATIENCE, standings).ok()?;
        let has_some =
            |it: &Standing| it.own > usize::from(it.has_general) || it.has_general && it.is_general;
        if standings.iter().any(|(_, it)| has_some(it)) {
            return None;
        }
        let held: usize = standings.iter().map(|(_, it)| it.held).sum();
        if held == 0 {
            let has_general = standings.iter().any(|(_, it)| it.has_general);
            let but = if has_general { " but that of management datagrams" } else { "" };
            return Some(format!("no queue pair{but} fits now; what fits later is captured"));
        }
        let state = lock(&self.state);
        let is_held_by = |it: &Running| {
            it.selected.iter().any(|(adapter, selection)| {
                let of = standings.iter().filter(|(number, _)| number == adapter);
                of.into_iter().any(|(_, standing)| standing.holders.contains(selection))
            })
        };
        let holders = state.running.iter().filter(|(_, it)| is_held_by(it));
        let holders: Vec<String> = holders.map(|(number, _)| number.to_string()).collect();
        let by = match holders[..] {
            [] => String::new(),
            _ => format!(" by capture {}", holders.join(" and ")),
        };
        Some(format!(
            "all queue pairs that fit now, {held}, are held{by}; they are captured when it ends"
        ))
    }

    /// Changes what is kept of the packets from now on.
    ///
    /// # Errors
    /// Fails when there is no such capture, or the HCAs cannot trace so.
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
    /// Fails when there is no such capture.
    pub fn stop(&self, number: u64) -> Result<Recorded, CaptureError> {
        let Running { selected, recorder, .. } = self.take(number)?;
        let captures = self.clone();
        // HCAs that have gone trace nothing more either.
        self.handle.with(PATIENCE, move |all| captures.deselect_all(all, &selected)).ok();
        Ok(recorder.finish())
    }

    /// As [`Captures::stop`], in the thread that drives the HCAs.
    ///
    /// # Errors
    /// As [`Captures::stop`].
    pub fn stop_with(&self, all: &mut T, number: u64) -> Result<Recorded, CaptureError> {
        let Running { selected, recorder, .. } = self.take(number)?;
        self.deselect_all(all, &selected);
        Ok(recorder.finish())
    }

    fn take(&self, number: u64) -> Result<Running, CaptureError> {
        lock(&self.state).running.remove(&number).ok_or(CaptureError::None(number))
    }

    /// Returns how far a capture is.
    #[must_use]
    pub fn recorded(&self, number: u64) -> Option<Recorded> {
        lock(&self.state).running.get(&number).map(|it| it.recorder.recorded())
    }

    /// Returns the captures that were not stopped.
    #[must_use]
    pub fn all(&self) -> Vec<(u64, Recorded)> {
        let state = lock(&self.state);
        state.running.iter().map(|(&number, it)| (number, it.recorder.recorded())).collect()
    }
}

/// A capture whose file is open.
struct Prepared {
    number: u64,
    running: Running,
    /// Set once it has ended by itself.
    is_over: Arc<AtomicBool>,
}

impl Taker {
    fn take(&self, reader: PacketReader) {
        let name = self.name.as_ref().map_or_else(String::new, |name| format!("{name} "));
        let name = format!("{name}qp {:#08x}", reader.qpn().get());
        match self.held {
            None => self.recorder.add(name, Box::new(reader)),
            Some(keep) => self.recorder.add(name, Box::new(Held::new(reader, keep))),
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
