//! `ibfabric capture`: what captures of queue pairs tell.
//!
//! | file | subcommand |
//! |---|---|
//! | `correlate.rs` | `correlate`: both ends of connections, side by side |

use crate::cli::capture::{CaptureArgs, CaptureCommand};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

mod correlate;

pub(crate) use correlate::findings::{BINS_PER_DECADE, DRAWN, Findings, Histogram, PairFindings};
pub(crate) use correlate::text::{clocks, drift, end, micros};

pub(crate) fn run(args: &CaptureArgs, out: &mut Output) -> Result<Verdict, Failure> {
    match &args.command {
        CaptureCommand::Correlate(args) => correlate::run(args, out),
    }
}
