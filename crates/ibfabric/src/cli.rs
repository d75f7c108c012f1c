//! The command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};
use ib_routing::EngineList;
use ib_topology::generate::Kind;
use ib_types::{Guid, LinkSpeed, LinkWidth, Lmc};

use crate::output::Format;

/// Returns the command line as clap knows it, for man pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Returns the kinds of fabric and their parameters, for the help of `gen`.
fn kinds() -> String {
    let usages: String = Kind::USAGES.iter().map(|usage| format!("\n  {usage}")).collect();
    format!("Kinds and their parameters:{usages}")
}

/// One InfiniBand stack in userspace.
///
/// Exit status: 0 the answer is good, 1 it is bad (something is unreachable, a credit loop), 2 the
/// input is unusable.
#[derive(Debug, Parser)]
#[command(name = "ibfabric", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Writes a fabric file.
    Gen(GenArgs),
    /// Computes, checks and dumps the forwarding tables of a fabric.
    Route(Box<RouteArgs>),
    /// Checks anybody's forwarding tables.
    Check(Box<CheckArgs>),
}

/// The format of a fabric file to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FileFormat {
    /// A net file that ibsim reads.
    Ibsim,
    /// What ibnetdiscover prints.
    Ibnetdiscover,
}

/// Arguments of `gen`.
#[derive(Debug, Args)]
#[command(after_help = kinds())]
pub struct GenArgs {
    /// The kind of fabric.
    pub kind: String,
    /// The kind's parameters: see below.
    pub parameters: Vec<String>,
    /// The file to write; standard output without it.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The speed of every link: SDR DDR QDR FDR10 FDR EDR HDR NDR XDR.
    #[arg(long, default_value = "NDR")]
    pub speed: LinkSpeed,
    /// The width of every link: 1x 2x 4x 8x 12x.
    #[arg(long, default_value = "4x")]
    pub width: LinkWidth,
    /// The format to write.
    #[arg(long, value_enum, default_value = "ibsim")]
    pub format: FileFormat,
    /// The fraction of the links between switches to leave out, 0 to 1.
    #[arg(long, value_name = "F", default_value_t = 0.0)]
    pub drop_links: f64,
    /// The fraction of the switches to leave out, 0 to 1.
    #[arg(long, value_name = "F", default_value_t = 0.0)]
    pub drop_switches: f64,
    /// The seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// The fabric and its subnet: what `route` and `check` both need.
#[derive(Debug, Args)]
pub struct SubnetArgs {
    /// The fabric: ibnetdiscover output, an ibsim net file or an opensm-subnet.lst; - for standard
    /// input.
    pub fabric: PathBuf,
    /// The GUID of the port that the subnet manager sits on; the first linked port of the file's
    /// first channel adapter without it.
    #[arg(short = 'g', long = "sm-port", visible_alias = "guid", value_name = "GUID")]
    pub sm_port: Option<Guid>,
    /// 2^N LIDs for every channel adapter port; the most that the fabric file records without it.
    #[arg(short = 'l', long, value_name = "N")]
    pub lmc: Option<Lmc>,
    /// Gives enhanced switch ports 0 the LMC as well.
    #[arg(long, alias = "lmc_esp0")]
    pub lmc_esp0: bool,
    /// Assigns all LIDs anew, whatever the fabric file says.
    #[arg(short = 'r', long, alias = "reassign_lids")]
    pub reassign_lids: bool,
    /// LIDs by port GUID, as OpenSM keeps them.
    #[arg(long, value_name = "FILE")]
    pub guid2lid: Option<PathBuf>,
    /// Names for node GUIDs, in place of the nodes' own descriptions.
    #[arg(long, alias = "node-name-map-file", value_name = "FILE")]
    pub node_name_map: Option<PathBuf>,
    /// The number of threads; all processors without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Adds effective bisection bandwidth and the contention of the shift pattern.
    #[arg(long)]
    pub metrics: bool,
    /// The seed of the random bisections.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `route`.
#[derive(Debug, Args)]
pub struct RouteArgs {
    /// The fabric and its subnet.
    #[command(flatten)]
    pub subnet: SubnetArgs,
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
    /// Options of single engines.
    #[command(flatten)]
    pub engines: EngineArgs,
    /// Writes OpenSM's dump files into this directory.
    #[arg(long, visible_alias = "dump_files_dir", value_name = "DIR")]
    pub dump_dir: Option<PathBuf>,
    /// Writes a page with the fabric, the loads and the hops drawn.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

/// What the engines can be told.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engines")]
pub struct EngineArgs {
    /// GUIDs of root switches, or of channel adapters on them (updn, ftree).
    #[arg(short = 'a', long, visible_alias = "root_guid_file", value_name = "FILE")]
    pub root_guids: Option<PathBuf>,
    /// Port GUIDs of compute nodes (ftree).
    #[arg(short = 'u', long, visible_alias = "cn_guid_file", value_name = "FILE")]
    pub cn_guids: Option<PathBuf>,
    /// Port GUIDs of I/O nodes (ftree).
    #[arg(short = 'G', long, visible_alias = "io_guid_file", value_name = "FILE")]
    pub io_guids: Option<PathBuf>,
    /// How many hops a path to an I/O node may lead back up (ftree).
    #[arg(short = 'H', long, alias = "max_reverse_hops", value_name = "N", default_value_t = 0)]
    pub max_reverse_hops: u8,
    /// Starts numbering the tree at its first root (ftree).
    #[arg(long, alias = "quasi_ftree_indexing")]
    pub quasi_ftree_indexing: bool,
    /// Ports that link load equalisation does not count: a switch GUID and a port per line, or a
    /// port GUID, which stands for the switch port that leads to it.
    #[arg(short = 'i', long, alias = "ignore_guids", value_name = "FILE")]
    pub ignore_guids: Option<PathBuf>,
    /// Port GUIDs to be routed first, in order.
    #[arg(short = 'X', long, alias = "guid_routing_order_file", value_name = "FILE")]
    pub guid_routing_order: Option<PathBuf>,
    /// Ports to be tried first, in order: a switch GUID and its ports per line.
    #[arg(short = 'O', long, aliases = ["dimn_ports_file", "port_search_ordering_file"], value_name = "FILE")]
    pub port_search_ordering: Option<PathBuf>,
    /// Weights of links in hops: a switch GUID, a port and a weight per line.
    #[arg(short = 'w', long, alias = "hop_weights_file", value_name = "FILE")]
    pub hop_weights: Option<PathBuf>,
    /// Identifiers that break ties of rank: a switch GUID and a number per line (updn).
    #[arg(short = 'm', long, alias = "ids_guid_file", value_name = "FILE")]
    pub ids_guids: Option<PathBuf>,
    /// Lets root switches reach each other (updn, ftree).
    #[arg(short = 'z', long, alias = "connect_roots")]
    pub connect_roots: bool,
    /// Counts routes to switches in link load equalisation.
    #[arg(long, alias = "port_profile_switch_nodes")]
    pub port_profile_switch_nodes: bool,
    /// Shifts the search for the least used port from LID to LID.
    #[arg(long)]
    pub port_shifting: bool,
    /// Draws among least used ports by this seed; 0 for none.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub scatter_ports: u32,
    /// The lowest virtual lane to use (lash).
    #[arg(long, alias = "lash_start_vl", value_name = "VL", default_value_t = 0)]
    pub lash_start_vl: u8,
    /// The number of data virtual lanes of every link (lash).
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u8).range(1..=15))]
    pub virtual_lanes: u8,
    /// Forwarding tables to load (file).
    #[arg(short = 'U', long, visible_alias = "lfts_file", value_name = "FILE")]
    pub lfts: Option<PathBuf>,
    /// Lid matrix to load (file).
    #[arg(short = 'M', long, visible_alias = "lid_matrix_file", value_name = "FILE")]
    pub lid_matrix: Option<PathBuf>,
    /// Forwarding tables whose entries are kept wherever they still are least-hop ports (minhop,
    /// updn, dor).
    #[arg(long, value_name = "FILE")]
    pub keep_lfts: Option<PathBuf>,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The fabric and its subnet.
    #[command(flatten)]
    pub subnet: SubnetArgs,
    /// The forwarding tables: OpenSM's opensm-lfts.dump, or what ibroute prints.
    #[arg(short = 'U', long, visible_alias = "lfts_file", value_name = "FILE")]
    pub lfts: PathBuf,
    /// The service level of each pair of switches, as `route --dump-dir` writes it for lash; SL 0
    /// everywhere without it.
    #[arg(long, value_name = "FILE")]
    pub levels: Option<PathBuf>,
}
