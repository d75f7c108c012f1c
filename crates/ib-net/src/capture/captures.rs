//! The captures of an adapter.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use ib_capture::Link;
use ib_hca::trace::{PacketReader, PacketTrace, Selection, SelectionId, TraceError};
use ib_link::PacketSource as _;

use super::held::Held;
use super::recorder::{Autostop, Recorded, Recorder, RecorderHandle};
use super::target::{Target, TargetError};
use crate::device::{Device, DeviceHandle, Undone};

/// How long the program may take to come to what it is asked for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many captures there may be, ended ones that were not stopped among them.
const MOST: usize = 64;

/// Why there is no capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The adapter cannot trace so.
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
    /// Of which queue pairs, and how.
    pub selection: Selection,
    /// When it ends by itself.
    pub autostop: Autostop,
    /// With a trigger, how many packets of each queue pair from before it are written; all there are without it.
    pub keep: Option<u64>,
}

/// The captures of an adapter, for any thread.
#[derive(Clone)]
pub struct Captures {
    device: DeviceHandle,
    link: Link,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    last: u64,
    running: BTreeMap<u64, Running>,
    /// Who takes what a selection has chosen.
    takers: BTreeMap<SelectionId, Taker>,
}

struct Running {
    selection: SelectionId,
    file: Option<PathBuf>,
    trace: PacketTrace,
    recorder: Recorder,
}

/// What takes the packets of a selection.
struct Taker {
    recorder: RecorderHandle,
    /// Whether a trigger is awaited, and how much of what was before it is written.
    held: Option<Option<u64>>,
}

impl Captures {
    /// Returns the captures of an adapter, of which there are none yet.
    ///
    /// # Errors
    /// Fails when the system has no more files.
    pub fn new(device: &mut Device) -> std::io::Result<Self> {
        let link = match device.socket() {
            Some(socket) => {
                Link::Ethernet { own_port: socket.port(), peer_port: socket.peer_port() }
            }
            None => Link::Infiniband,
        };
        let state = Arc::new(Mutex::new(State::default()));
        let taking = Arc::clone(&state);
        device.on_traced(move |hca, selection, reader| {
            match lock(&taking).takers.get(&selection) {
                Some(taker) => taker.take(reader),
                // Whoever wanted it has gone.
                None => hca.deselect(selection),
            }
        });
        Ok(Self { device: device.handle()?, link, state })
    }

    /// Starts a capture from a thread that does not drive the adapter; returns its number.
    ///
    /// # Errors
    /// Fails when the target cannot be opened, or the adapter cannot trace so.
    pub fn start(&self, options: CaptureOptions) -> Result<u64, CaptureError> {
        let CaptureOptions { target, selection, autostop, keep } = options;
        self.check(&target)?;
        let prepared = self.prepare(target, autostop, &selection, keep)?;
        let captures = self.clone();
        self.device.with(PATIENCE, move |device| captures.select(device, selection, prepared))?
    }

    /// As [`Captures::start`], in the thread that drives the adapter.
    ///
    /// # Errors
    /// As [`Captures::start`].
    pub fn start_with(
        &self,
        device: &mut Device,
        options: CaptureOptions,
    ) -> Result<u64, CaptureError> {
        let CaptureOptions { target, selection, autostop, keep } = options;
        self.check(&target)?;
        let prepared = self.prepare(target, autostop, &selection, keep)?;
        self.select(device, selection, prepared)
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
    fn prepare(
        &self,
        target: Target,
        autostop: Autostop,
        selection: &Selection,
        keep: Option<u64>,
    ) -> Result<Prepared, CaptureError> {
        let id: Arc<OnceLock<SelectionId>> = Arc::default();
        let (device, selected) = (self.device.clone(), Arc::clone(&id));
        let on_end = move || {
            if let Some(&id) = selected.get() {
                device.later(move |device| device.hca().deselect(id));
            }
        };
        let file = target.file().map(PathBuf::from);
        let recorder = Recorder::start(target, self.link, autostop, on_end)?;
        let held = selection.trace.trigger.is_some().then_some(keep);
        Ok(Prepared { recorder, file, id, held })
    }

    fn select(
        &self,
        device: &mut Device,
        selection: Selection,
        prepared: Prepared,
    ) -> Result<u64, CaptureError> {
        let Prepared { recorder, file, id, held } = prepared;
        let trace = selection.trace.clone();
        let selection = device.hca().select(selection)?;
        id.get_or_init(|| selection);
        if recorder.recorded().has_ended {
            // It has ended before there was anything to end.
            device.hca().deselect(selection);
        }
        let mut state = lock(&self.state);
        state.last += 1;
        let number = state.last;
        state.takers.insert(selection, Taker { recorder: recorder.handle(), held });
        state.running.insert(number, Running { selection, file, trace, recorder });
        Ok(number)
    }

    /// Returns in words why no queue pair is captured now, where that is so.
    #[must_use]
    pub fn waits(&self, number: u64) -> Option<String> {
        let selection = lock(&self.state).running.get(&number)?.selection;
        let standing =
            self.device.with(PATIENCE, move |device| device.hca().standing(selection)).ok()?;
        let others = standing.own - usize::from(standing.has_general);
        if others > 0 || standing.has_general && standing.is_general {
            return None;
        }
        if standing.held == 0 {
            let but = if standing.has_general { " but that of management datagrams" } else { "" };
            return Some(format!("no queue pair{but} fits now; what fits later is captured"));
        }
        let state = lock(&self.state);
        let is_holder = |it: &Running| standing.holders.contains(&it.selection);
        let holders = state.running.iter().filter(|(_, it)| is_holder(it));
        let holders: Vec<String> = holders.map(|(number, _)| number.to_string()).collect();
        let by = match holders[..] {
            [] => String::new(),
            _ => format!(" by capture {}", holders.join(" and ")),
        };
        let held = standing.held;
        Some(format!(
            "all queue pairs that fit now, {held}, are held{by}; they are captured when it ends"
        ))
    }

    /// Changes what is kept of the packets from now on.
    ///
    /// # Errors
    /// Fails when there is no such capture, or the adapter cannot trace so.
    pub fn change(
        &self,
        number: u64,
        change: impl FnOnce(&mut PacketTrace),
    ) -> Result<(), CaptureError> {
        let found =
            lock(&self.state).running.get(&number).map(|it| (it.selection, it.trace.clone()));
        let (selection, mut trace) = found.ok_or(CaptureError::None(number))?;
        change(&mut trace);
        let wanted = trace.clone();
        let changed = self
            .device
            .with(PATIENCE, move |device| device.hca().change_selection(selection, &wanted))?;
        changed?;
        if let Some(running) = lock(&self.state).running.get_mut(&number) {
            running.trace = trace;
        }
        Ok(())
    }

    /// Ends a capture.
    ///
    /// # Errors
    /// Fails when there is no such capture.
    pub fn stop(&self, number: u64) -> Result<Recorded, CaptureError> {
        let Running { selection, recorder, .. } = self.take(number)?;
        // An adapter that has gone traces nothing more either.
        self.device.with(PATIENCE, move |device| device.deselect(selection)).ok();
        Ok(recorder.finish())
    }

    /// As [`Captures::stop`], in the thread that drives the adapter.
    ///
    /// # Errors
    /// As [`Captures::stop`].
    pub fn stop_with(&self, device: &mut Device, number: u64) -> Result<Recorded, CaptureError> {
        let Running { selection, recorder, .. } = self.take(number)?;
        device.deselect(selection);
        Ok(recorder.finish())
    }

    fn take(&self, number: u64) -> Result<Running, CaptureError> {
        let mut state = lock(&self.state);
        let running = state.running.remove(&number).ok_or(CaptureError::None(number))?;
        state.takers.remove(&running.selection);
        Ok(running)
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
    recorder: Recorder,
    file: Option<PathBuf>,
    id: Arc<OnceLock<SelectionId>>,
    held: Option<Option<u64>>,
}

impl Taker {
    fn take(&self, reader: PacketReader) {
        let name = format!("qp {:#08x}", reader.qpn().get());
        match self.held {
            None => self.recorder.add(name, Box::new(reader)),
            Some(keep) => self.recorder.add(name, Box::new(Held::new(reader, keep))),
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
