//! Captures of a program's own queue pairs: `--capture`, and captures that other processes request.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ib_capture::Counted;
use ib_control::capture::{
    Autostop, CaptureOptions, CaptureServer, Captured, Captures, Recorded, Target,
};
use ib_hca::trace::{PacketTrace, Selection};

use crate::cli::capture::live::CaptureArgs;
use crate::failure::{Failure, say};

/// True if a capture file or record of this process is incomplete. HCAs are dropped after the command has returned, so
/// the flag is global.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Returns true if the program's own capture file is incomplete.
pub(crate) fn has_failed() -> bool {
    HAS_FAILED.load(Ordering::Relaxed)
}

/// Records that a capture file or record of this process is incomplete.
pub(crate) fn note_failure() {
    HAS_FAILED.store(true, Ordering::Relaxed);
}

/// The captures of a program: its own, and those that other processes request.
pub(crate) struct Tracing<T: 'static> {
    captures: Captures<T>,
    own: Option<u64>,
    _server: Option<CaptureServer>,
}

impl<T: Captured> Tracing<T> {
    /// Starts the capture server for the HCAs, and the program's own capture if configured.
    pub(crate) fn start(
        args: &CaptureArgs,
        captures: Captures<T>,
        all: &mut T,
    ) -> Result<Self, Failure> {
        let own = match &args.capture {
            Some(path) => Some(start(&captures, args, path, all)?),
            None => None,
        };
        let server = match CaptureServer::start(all, captures.clone()) {
            Ok(server) => Some(server),
            Err(error) => {
                say!("`ibfabric capture` cannot ask this process: {error}");
                None
            }
        };
        Ok(Self { captures, own, _server: server })
    }

    /// Ends the program's own capture, and prints the numbers of packets.
    pub(crate) fn finish(&mut self, all: &mut T) {
        let Some(own) = self.own.take() else { return };
        if let Ok(recorded) = self.captures.stop_with(all, own) {
            HAS_FAILED.fetch_or(recorded.error.is_some(), Ordering::Relaxed);
            tell(&recorded);
        }
    }
}

fn start<T: Captured>(
    captures: &Captures<T>,
    args: &CaptureArgs,
    path: &Path,
    all: &mut T,
) -> Result<u64, Failure> {
    if path == Path::new("-") {
        let why = "standard output is for the results: expected a file";
        return Err(Failure::Unusable(format!("cannot write {}: {why}", path.display())));
    }
    let trace = PacketTrace {
        payload: args.capture_payload as u16,
        ring_bytes: args.capture_ring as usize,
        ..PacketTrace::default()
    };
    let options = CaptureOptions {
        target: Target::File(path.to_owned()),
        adapters: Vec::new(),
        selection: Selection { trace, ..Selection::default() },
        autostop: Autostop::default(),
        keep: None,
    };
    captures.start_with(all, options).map_err(Failure::unusable)
}

/// Prints the result of a capture.
fn tell(recorded: &Recorded) {
    let path = &recorded.file;
    let sum = |what: fn(&Counted) -> u64| recorded.counted.iter().map(what).sum::<u64>();
    let captured = sum(|it| it.captured.all());
    let (overwritten, noted) = (sum(|it| it.overwritten.all()), sum(|it| it.noted.all()));
    match &recorded.error {
        None => say!("{path}: {captured} packets captured, {overwritten} overwritten, of {noted}"),
        Some(error) => {
            let unwritten = sum(|it| it.unwritten.all());
            say!(
                "{error}; {captured} packets captured, {unwritten} not written, {overwritten} \
                 overwritten, of {noted}"
            );
        }
    }
}
