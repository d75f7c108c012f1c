//! `ibfabric rdma`: programs that use a software HCA, at an address of this machine or at a port of a simulated
//! fabric.
//!
//! | file | subcommand |
//! |---|---|
//! | `devinfo.rs` | `devinfo` |
//! | `serve.rs` | `serve`: clients of ibfabric, rping, ucmatose and perftest |
//! | `rping.rs` | `ping`, and rping's protocol |
//! | `cmatose.rs` | `cmatose`, and the protocol of ucmatose |
//! | `pingpong.rs` | `pingpong` |
//! | `perf.rs` | `bw`, `lat` |
//! | `perftest.rs` | the protocol of perftest, for `bw`, `lat` and `serve` |
//! | `stage.rs` | common parts: the HCA, buffers, completions |

use crate::cli::rdma::{RdmaArgs, RdmaCommand};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

pub(crate) mod cmatose;
pub(crate) mod devinfo;
pub(crate) mod perf;
mod perftest;
pub(crate) mod pingpong;
pub(crate) mod rping;
mod serve;
mod stage;

pub(crate) fn run(args: &RdmaArgs, out: &mut Output) -> Result<Verdict, Failure> {
    match &args.command {
        RdmaCommand::Devinfo(args) => devinfo::run(args, out),
        RdmaCommand::Serve(args) => serve::run(args, out),
        RdmaCommand::Ping(args) => rping::run(args, out),
        RdmaCommand::Cmatose(args) => cmatose::run(args, out),
        RdmaCommand::Pingpong(args) => pingpong::run(args, out),
        RdmaCommand::Bw(args) => perf::bandwidth(args, out),
        RdmaCommand::Lat(args) => perf::latency(args, out),
    }
}
