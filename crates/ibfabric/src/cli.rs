//! The command line, as clap types.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub mod acm;
pub mod acme;
pub mod capture;
mod completions;
mod examples;
mod groups;
pub mod hca;
pub(crate) mod opensm;
pub mod rdma;
pub mod routing;
pub mod rtrs;
pub mod run;
pub mod sim;
pub mod sm;
pub mod statuses;
pub mod tracer;
pub mod up;
pub(crate) mod values;

pub use completions::CompletionsArgs;
pub use examples::examples;
pub use routing::{
    CheckArgs, EngineArgs, FileFormat, GenArgs, RouteArgs, RoutingArgs, ScopeArg, SubnetArgs, kinds,
};

use examples::examples_text;

/// Returns the clap definition of the command line, from which man pages and completions are generated.
#[must_use]
pub fn command() -> clap::Command {
    let command = Cli::command();
    let template = groups::help_template(&command);
    command.help_template(template)
}

/// One InfiniBand stack in userspace.
#[derive(Debug, Parser)]
#[command(name = "ibfabric", version, max_term_width = 100, after_help = statuses::summary())]
pub struct Cli {
    /// Prints errors only, without results, notes or progress. The exit status reports the result.
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub quiet: bool,
    /// Prints more details. May be repeated. After the command's own levels of detail, one more repetition prints
    /// its run time and peak memory.
    #[arg(short, long, global = true, action = clap::ArgAction::Count,
        help_heading = "Global options")]
    pub verbose: u8,
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
        let mut command = command();
        let words: Vec<OsString> = words.into_iter().collect();
        let matches = command
            .try_get_matches_from_mut(&words)
            .map_err(|error| sim::misplaced(&mut command, &words).unwrap_or(error))?;
        sim::check(&mut command, &matches)?;
        Self::from_arg_matches(&matches)
    }
}

impl Command {
    /// Returns the command's own number of `--verbose` levels. A further `--verbose` prints run time and peak memory.
    pub(crate) const fn details(&self) -> u8 {
        match self {
            Self::Sm(args) if args.action.is_none() => 3,
            Self::Tracer(_) | Self::Acme(_) => 1,
            Self::Rdma(args) => args.command.details(),
            Self::Capture(args) => matches!(args.command, capture::CaptureCommand::Read(_)) as u8,
            _ => 0,
        }
    }

    /// Returns true if standard output carries data that the user has requested, which --quiet does not suppress.
    pub(crate) fn writes_data(&self) -> bool {
        let is_standard = |path: &std::path::Path| path == std::path::Path::new("-");
        match self {
            Self::Gen(args) => args.output.as_deref().is_none_or(is_standard),
            Self::Completions(_) => true,
            Self::Run(args) => args.env,
            _ => false,
        }
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
    #[command(after_long_help = examples_text("tracer"))]
    Tracer(Box<tracer::TracerArgs>),
    /// Responds to requests of ibtracer and ibping at a port.
    #[command(after_long_help = examples_text("agent"))]
    Agent(tracer::AgentArgs),
    /// Runs RDMA over RoCEv2 with a software HCA: server, ping tests and benchmarks.
    #[command(after_long_help = examples_text("rdma"))]
    Rdma(rdma::RdmaArgs),
    /// Shares an IP address of this machine among programs, each of which has an own HCA over RoCEv2.
    #[command(after_long_help = examples_text("hca"))]
    Hca(hca::HcaArgs),
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
    /// Prints the completion script of a shell.
    #[command(after_long_help = examples_text("completions"))]
    Completions(CompletionsArgs),
}
