//! `--capture`: the packets of a program's queue pairs, collected beside it into a file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ib_capture::Counted;
use ib_hca::trace::{PacketTrace, Selection};
use ib_net::capture::{Autostop, CaptureOptions, CaptureServer, Captures, Recorded, Target};
use ib_net::device::Device;

use crate::cli::rdma::AdapterArgs;
use crate::failure::{Failure, say};

/// Whether a capture of this process's own has not been written: its adapter ends behind the command's last word.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Returns whether the program's own capture was not written to its end.
pub(super) fn has_failed() -> bool {
    HAS_FAILED.load(Ordering::Relaxed)
}

/// The captures of a program: its own, and those that others ask for.
pub(super) struct Tracing {
    captures: Captures,
    own: Option<u64>,
    _server: Option<CaptureServer>,
}

impl Tracing {
    /// Lets others capture what an adapter does, and starts the program's own capture where that is wanted.
    pub(super) fn start(args: &AdapterArgs, device: &mut Device) -> Result<Self, Failure> {
        let captures = Captures::new(device).map_err(Failure::unusable)?;
        let own = match &args.capture {
            Some(path) => Some(start(&captures, args, path, device)?),
            None => None,
        };
        let server = match CaptureServer::start(device, captures.clone()) {
            Ok(server) => Some(server),
            Err(error) => {
                say!("`ibfabric capture` cannot ask this process: {error}");
                None
            }
        };
        Ok(Self { captures, own, _server: server })
    }

    /// Ends the program's own capture, and says what there is in the file.
    pub(super) fn finish(&mut self, device: &mut Device) {
        let Some(own) = self.own.take() else { return };
        if let Ok(recorded) = self.captures.stop_with(device, own) {
            HAS_FAILED.fetch_or(recorded.error.is_some(), Ordering::Relaxed);
            tell(&recorded);
        }
    }
}

fn start(
    captures: &Captures,
    args: &AdapterArgs,
    path: &Path,
    device: &mut Device,
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
        target: Target::File(PathBuf::from(path)),
        selection: Selection { trace, ..Selection::default() },
        autostop: Autostop::default(),
        keep: None,
    };
    captures.start_with(device, options).map_err(Failure::unusable)
}

/// Says what became of a capture.
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
