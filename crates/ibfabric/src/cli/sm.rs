//! The command line of `sm`.

use std::path::PathBuf;

use clap::Args;
use ib_routing::EngineList;
use ib_types::Lmc;

use super::{EngineArgs, lmc};
use crate::output::Format;

/// Arguments of `sm`.
#[derive(Debug, Args)]
pub struct SmArgs {
    /// Where the subnet is.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// The engines to try, in order: minhop updn ftree lash dor file; then minhop, unless
    /// no_fallback is among them.
    #[arg(
        short = 'R',
        long,
        visible_alias = "routing_engine",
        value_name = "LIST",
        default_value = "minhop"
    )]
    pub engine: EngineList,
    /// 2^N LIDs for every channel adapter port.
    #[arg(short = 'l', long, value_name = "N", value_parser = lmc, default_value = "0")]
    pub lmc: Lmc,
    /// Assigns all LIDs anew, whatever the ports have.
    #[arg(short = 'r', long, alias = "reassign_lids")]
    pub reassign_lids: bool,
    /// Who may talk to whom, as OpenSM's partition file has it; all ports are full members of the
    /// default partition without it.
    #[arg(short = 'P', long, value_name = "FILE")]
    pub pconfig: Option<PathBuf>,
    /// The priority among managers, 0 to 15: the higher one wins, then the lower port GUID.
    #[arg(short = 'p', long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(0..=15))]
    pub priority: u8,
    /// Seconds between light sweeps; 0 for none.
    #[arg(short = 's', long, value_name = "S", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(0..=86_400))]
    pub sweep: u32,
    /// Options of single engines.
    #[command(flatten)]
    pub engines: EngineArgs,
    /// How many SMPs may be on their way.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub maxsmps: u32,
    /// Milliseconds that an answer is waited for.
    #[arg(short = 't', long, value_name = "MS", default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    pub timeout: u32,
    /// How often an SMP without answer is repeated.
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub retries: u32,
    /// Ends when the subnet is up.
    #[arg(short = 'o', long)]
    pub once: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Where a subnet is.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PlaceArgs {
    /// A fabric that is simulated inside this process, in virtual time; nobody else can reach it.
    #[arg(long, value_name = "FABRIC", requires = "once")]
    pub sim: Option<PathBuf>,
    /// A real ibsim or `ibfabric sim` in another process, by the name of its sockets; without a name
    /// the one that the environment names, as Debian's libumad2sim does it.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    pub ibsim: Option<String>,
}
