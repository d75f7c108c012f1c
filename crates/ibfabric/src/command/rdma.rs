//! `ibfabric rdma`: a software adapter at an address of this machine, and programs on it.
//!
//! | file | subcommand |
//! |---|---|
//! | `devinfo.rs` | `devinfo` |
//! | `serve.rs` | `serve`: clients of ours and of others |
//! | `rping.rs` | `ping`, and rping's protocol |
//! | `cmatose.rs` | `cmatose`, and the protocol of ucmatose |
//! | `pingpong.rs` | `pingpong` |
//! | `perf.rs` | `bw`, `lat` |
//! | `perftest.rs` | the protocol of perftest, for `bw`, `lat` and `serve` |
//! | `capture.rs` | `--capture`: their packets in a file |
//! | `stage.rs` | what they share: the adapter, buffers, completions |

use crate::cli::rdma::{RdmaArgs, RdmaCommand};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

mod capture;
mod cmatose;
mod devinfo;
mod perf;
mod perftest;
mod pingpong;
mod rping;
mod serve;
mod stage;

pub(crate) fn run(args: &RdmaArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let verdict = match &args.command {
        RdmaCommand::Devinfo(args) => devinfo::run(args, out),
        RdmaCommand::Serve(args) => serve::run(args, out),
        RdmaCommand::Ping(args) => rping::run(args, out),
        RdmaCommand::Cmatose(args) => cmatose::run(args, out),
        RdmaCommand::Pingpong(args) => pingpong::run(args, out),
        RdmaCommand::Bw(args) => perf::bandwidth(args, out),
        RdmaCommand::Lat(args) => perf::latency(args, out),
    }?;
    // What is in the file is a part of the answer.
    Ok(if capture::has_failed() { Verdict::Bad } else { verdict })
}
