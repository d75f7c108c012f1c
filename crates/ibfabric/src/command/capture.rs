//! `ibfabric capture`: captures of RDMA packets.
//!
//! | file | subcommand |
//! |---|---|
//! | `read.rs` | `read`: the packets of a file |

use crate::cli::capture::{CaptureArgs, CaptureCommand};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

mod read;

pub(crate) fn run(args: &CaptureArgs, out: &mut Output) -> Result<Verdict, Failure> {
    match &args.command {
        CaptureCommand::Read(args) => read::run(args, out),
    }
}
