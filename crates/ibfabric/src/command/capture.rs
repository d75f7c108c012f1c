//! `ibfabric capture`: captures of RDMA packets.
//!
//! | file | subcommand |
//! |---|---|
//! | `live.rs` | `list`, `start`, `change`, `stop`: captures of running programs |

use crate::cli::capture::{CaptureArgs, CaptureCommand};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

mod live;

pub(crate) fn run(args: &CaptureArgs, out: &mut Output) -> Result<Verdict, Failure> {
    match &args.command {
        CaptureCommand::List(args) => live::list(args, out),
        CaptureCommand::Start(args) => live::start(args, out),
        CaptureCommand::Change(args) => live::change(args, out),
        CaptureCommand::Stop(args) => live::stop(args, out),
    }
}
