//! `ibfabric capture`: packet captures of queue pairs.
//!
//! | file | subcommand |
//! |---|---|
//! | `live.rs` | `list`, `start`, `change`, `stop`: captures of running programs |
//! | `read.rs` | `read`: the packets of a file |
//! | `correlate.rs` | `correlate`: latencies and losses, from the packets captured at both ends of connections |

use crate::cli::capture::{CaptureArgs, CaptureCommand};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

pub(crate) mod correlate;
pub(crate) mod live;
pub(crate) mod read;

pub(crate) fn run(args: &CaptureArgs, out: &mut Output) -> Result<Verdict, Failure> {
    match &args.command {
        CaptureCommand::List(args) => live::list(args, out),
        CaptureCommand::Start(args) => live::start(args, out),
        CaptureCommand::Change(args) => live::change(args, out),
        CaptureCommand::Stop(args) => live::stop(args, out),
        CaptureCommand::Read(args) => read::run(args, out),
        CaptureCommand::Correlate(args) => correlate::run(args, out),
    }
}
