//! `ibfabric rtrs`: serves and benchmarks block devices over RTRS.
//!
//! `serve` and `mount` are implemented in `ib-daemons`. `bench.rs` is the load generator, `ctl.rs` queries a
//! running program.

use ib_daemons::rtrs;

use crate::cli::rtrs::{RtrsArgs, RtrsCommand};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

mod bench;
mod ctl;

pub(crate) fn run(args: &RtrsArgs, out: &mut Output) -> Result<Verdict, Failure> {
    match &args.command {
        RtrsCommand::Serve(args) => Ok(rtrs::serve(&args.config(), out)?.into()),
        RtrsCommand::Bench(args) => bench::run(args, out),
        RtrsCommand::Ctl(args) => ctl::run(args, out),
        RtrsCommand::Mount(args) => Ok(rtrs::mount(&args.dir, &args.socket, out)?.into()),
    }
}
