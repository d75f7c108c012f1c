//! `ibfabric rtrs`: block devices over RTRS, served and measured.
//!
//! | file | subcommand |
//! |---|---|
//! | `serve.rs` | `serve` |
//! | `bench.rs` | `bench` |
//! | `ctl.rs` | `ctl` |
//! | `mount.rs` | `mount` |
//! | `control.rs` | what of statistics and paths others may see and change |
//! | `remote.rs` | what `bench` and `nbd` share: the device |
//! | `ways.rs` | adapters, paths |

use crate::cli::rtrs::{RtrsArgs, RtrsCommand};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

mod bench;
mod control;
mod ctl;
mod mount;
pub(super) mod remote;
mod serve;
mod ways;

pub(crate) fn run(args: &RtrsArgs, out: &mut Output) -> Result<Verdict, Failure> {
    match &args.command {
        RtrsCommand::Serve(args) => serve::run(args, out),
        RtrsCommand::Bench(args) => bench::run(args, out),
        RtrsCommand::Ctl(args) => ctl::run(args, out),
        RtrsCommand::Mount(args) => mount::run(args, out),
    }
}
