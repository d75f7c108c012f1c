//! Captures of this process's QPs: the capture that the option `--pcap` starts, and captures that other processes
//! request.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ib_capture::Counted;
use ib_control::capture::{
    Autostop, CaptureOptions, CaptureServer, Captures, HcaOwner, Recorded, Target,
};
use ib_hca::trace::{PacketTrace, Selection};

use crate::error::DaemonError;
use crate::message::{note, say};

/// True if this process has written an incomplete capture file or fabric recording. The flag is global, because
/// captures can also fail after the command has returned, when its HCAs are dropped.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Returns true if this process has written an incomplete capture file or fabric recording.
pub fn has_failed() -> bool {
    HAS_FAILED.load(Ordering::Relaxed)
}

/// Notes that this process has written an incomplete capture file or fabric recording.
pub fn note_failure() {
    HAS_FAILED.store(true, Ordering::Relaxed);
}

/// Options of the capture of all QPs of this process.
#[derive(Clone, Debug)]
pub struct OwnCapture {
    /// Path of the pcapng file to which the packets are written.
    pub path: PathBuf,
    /// Number of payload bytes to capture of each message.
    pub payload: u16,
    /// Size in bytes of the ring buffer of each QP: a power of two.
    pub ring_bytes: usize,
}

/// The captures of the QPs of this process: the capture that `--capture` starts, and captures that other processes
/// request.
pub struct Tracing<T: 'static> {
    captures: Captures<T>,
    own: Option<u64>,
    _server: Option<CaptureServer>,
}

impl<T: HcaOwner> Tracing<T> {
    /// Starts the capture that the options request, if any, and serves capture requests of other processes.
    pub fn start(
        own: Option<&OwnCapture>,
        captures: Captures<T>,
        all: &mut T,
    ) -> Result<Self, DaemonError> {
        let own = match own {
            Some(own) => Some(start(&captures, own, all)?),
            None => None,
        };
        let server = match CaptureServer::start(all, captures.clone()) {
            Ok(server) => Some(server),
            Err(error) => {
                say!("`ibfabric capture` cannot connect to this process: {error}");
                None
            }
        };
        Ok(Self { captures, own, _server: server })
    }

    /// Stops the capture that the options have started, and prints its result.
    pub fn finish(&mut self, all: &mut T) {
        let Some(own) = self.own.take() else { return };
        if let Ok(recorded) = self.captures.stop_with(all, own) {
            HAS_FAILED.fetch_or(recorded.error.is_some(), Ordering::Relaxed);
            print_result(&recorded);
        }
    }
}

fn start<T: HcaOwner>(
    captures: &Captures<T>,
    own: &OwnCapture,
    all: &mut T,
) -> Result<u64, DaemonError> {
    let path = &*own.path;
    if path == Path::new("-") {
        let why = "standard output is used for the results: expected a file";
        return Err(DaemonError::Failed(format!("cannot write {}: {why}", path.display())));
    }
    let trace =
        PacketTrace { payload: own.payload, ring_bytes: own.ring_bytes, ..PacketTrace::default() };
    let options = CaptureOptions {
        target: Target::File(path.to_owned()),
        adapters: Vec::new(),
        selection: Selection { trace, ..Selection::default() },
        autostop: Autostop::default(),
        keep: None,
    };
    captures.start_with(all, options).map_err(DaemonError::failed)
}

/// Prints the result of a capture.
fn print_result(recorded: &Recorded) {
    let path = &recorded.file;
    let sum = |what: fn(&Counted) -> u64| recorded.counted.iter().map(what).sum::<u64>();
    let captured = sum(|it| it.captured.all());
    let (overwritten, noted) = (sum(|it| it.overwritten.all()), sum(|it| it.noted.all()));
    match &recorded.error {
        None => note!("{path}: {captured} packets captured, {overwritten} overwritten, of {noted}"),
        Some(error) => {
            let unwritten = sum(|it| it.unwritten.all());
            say!(
                "{error}; {captured} packets captured, {unwritten} not written, {overwritten} \
                 overwritten, of {noted}"
            );
        }
    }
}
