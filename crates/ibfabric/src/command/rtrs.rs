//! `ibfabric rtrs`: block devices over RTRS, served and measured.
//!
//! | file | subcommand |
//! |---|---|
//! | `serve.rs` | `serve` |
//! | `bench.rs` | `bench` |
//! | `remote.rs` | what `bench` and `nbd` share: adapters, paths, the device |

use crate::cli::rtrs::{RtrsArgs, RtrsCommand};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

mod bench;
pub(super) mod remote;
mod serve;

pub(crate) fn run(args: &RtrsArgs, out: &mut Output) -> Result<Verdict, Failure> {
    match &args.command {
        RtrsCommand::Serve(args) => serve::run(args, out),
        RtrsCommand::Bench(args) => bench::run(args, out),
    }
}
