//! The command line, as clap types.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub mod acm;
pub mod acme;
pub mod capture;
mod examples;
pub(crate) mod opensm;
pub mod rdma;
pub mod routing;
pub mod rtrs;
pub mod run;
pub mod sim;
pub mod sm;
pub mod tracer;
pub mod up;
pub(crate) mod values;

pub use examples::examples;
pub use routing::{
    CheckArgs, EngineArgs, FileFormat, GenArgs, RouteArgs, RoutingArgs, ScopeArg, SubnetArgs, kinds,
};

use examples::examples_text;

/// Returns the clap definition of the command line, from which man pages and completions are generated.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// One InfiniBand stack in userspace.
///
/// Exit status: 0 no problems found, 1 problems found (such as an unreachable LID or a credit loop), 2
/// unusable input, 3 inconclusive.
#[derive(Debug, Parser)]
#[command(name = "ibfabric", version, max_term_width = 100)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses a command line whose first word is the program's name.
    ///
    /// # Errors
    /// Returns clap's error. For `--help` and `--version`, the text to print is such an error, too.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let words: Vec<OsString> = words.into_iter().collect();
        let matches = command
            .try_get_matches_from_mut(&words)
            .map_err(|error| sim::misplaced(&mut command, &words).unwrap_or(error))?;
        sim::check(&mut command, &matches)?;
        Self::from_arg_matches(&matches)
    }
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Generates a fabric file.
    Gen(GenArgs),
    /// Computes, checks and dumps the forwarding tables of a fabric.
    #[command(after_long_help = examples_text("route"))]
    Route(Box<RouteArgs>),
    /// Checks forwarding tables: unreachable LIDs, forwarding loops, credit loops, link load.
    #[command(after_long_help = examples_text("check"))]
    Check(Box<CheckArgs>),
    /// Simulates a fabric that clients of ibsim attach to.
    #[command(after_long_help = examples_text("sim"))]
    Sim(Box<sim::SimArgs>),
    /// Runs a subnet manager (SM) with subnet administration (SA).
    #[command(after_long_help = examples_text("sm"))]
    Sm(Box<sm::SmArgs>),
    /// Traces the paths of packets hop by hop, and validates them against the forwarding tables.
    ///
    /// Exit status: 0 all paths are proven correct, 1 a path is proven wrong, 2 unusable input, 3 some paths
    /// could not be proven, and none is proven wrong.
    #[command(after_long_help = examples_text("tracer"))]
    Tracer(Box<tracer::TracerArgs>),
    /// Responds to requests of ibtracer and ibping at a port.
    #[command(after_long_help = examples_text("agent"))]
    Agent(tracer::AgentArgs),
    /// Runs RDMA over RoCEv2 with a software HCA: server, ping tests and benchmarks.
    #[command(after_long_help = examples_text("rdma"))]
    Rdma(rdma::RdmaArgs),
    /// Runs an unmodified verbs program on a simulated fabric or over RoCEv2.
    #[command(after_long_help = examples_text("run"))]
    Run(run::RunArgs),
    /// Serves, benchmarks and verifies block devices over RTRS.
    #[command(after_long_help = examples_text("rtrs"))]
    Rtrs(rtrs::RtrsArgs),
    /// Exports a block device of an RTRS server as an NBD export on this machine.
    #[command(after_long_help = examples_text("nbd"))]
    Nbd(Box<rtrs::NbdArgs>),
    /// Resolves names, addresses and paths for local programs, in place of ibacm.
    #[command(after_long_help = examples_text("acm"))]
    Acm(acm::AcmArgs),
    /// Queries ACM services for paths, endpoints and counters, and writes their configuration files, in place
    /// of `ib_acme`.
    #[command(after_long_help = examples_text("acme"))]
    Acme(Box<acme::AcmeArgs>),
    /// Runs the whole stack on a simulated fabric until it is stopped: SM, ACM service, agents, a block device and a
    /// web page.
    #[command(after_long_help = examples_text("up"))]
    Up(Box<up::UpArgs>),
    /// Tests the whole stack on a simulated fabric: routes, names, paths, a block device over two paths whose links
    /// are cut, and a capture of its packets.
    #[command(after_long_help = examples_text("selftest"))]
    Selftest(Box<up::SelftestArgs>),
    /// Captures the packets of queue pairs, and reads and compares capture files.
    #[command(after_long_help = examples_text("capture"))]
    Capture(capture::CaptureArgs),
}
