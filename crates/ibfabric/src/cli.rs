//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use ib_daemons::routing_files::EngineFiles;
use ib_routing::EngineList;
use ib_topology::generate::Kind;
use ib_types::{Guid, LinkSpeed, LinkWidth, Lmc, Mtu};

pub mod acm;
pub mod acme;
pub mod capture;
mod examples;
pub(crate) mod opensm;
pub mod rdma;
pub mod rtrs;
pub mod run;
pub mod sim;
pub mod sm;
pub mod tracer;
pub mod up;

pub use examples::examples;

use crate::input::number;
use crate::output::Format;

/// Returns the command line as clap knows it, for man pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Returns the kinds of fabric and their parameters, as the help of `gen` explains them.
#[must_use]
pub fn kinds() -> String {
    let usages: String = Kind::USAGES.iter().map(|usage| format!("  {usage}\n")).collect();
    format!("{usages}\n{PARAMETERS}")
}

const PARAMETERS: &str = "\
fat-tree: switches of RADIX ports in 2 or 3 LEVELS (2). D:U is a leaf's hosts to its links up
  (1:1), P the parallel links from leaf to spine (1), Q those from spine to core (P). hosts are
  those of a leaf; leaves and spines those of the fabric or, in 3 levels, of a pod. What is not
  given is chosen so that the tree is as large as RADIX allows.
xgft: a node of level i has Mi children, and one of the level below has Wi parents, over Pi
  parallel links (1). Level 0 is the hosts: XGFT(h; M1..Mh; W1..Wh).
k-ary-n-tree: N levels of switches with K ports down and K up.
torus, mesh, hypercube: Xi switches along dimension i, hosts on each switch (1).
dragonfly: groups of A switches, each with P hosts and H links to other groups; G groups (A*H+1).
random: S switches of N ports, each with H hosts (1); L links in all, as many as fit without it.";

/// Returns the examples of a subcommand for its help.
fn examples_text(subcommand: &str) -> String {
    let examples = examples(subcommand).iter();
    let lines: Vec<String> =
        examples.map(|(what, command)| format!("  {what}\n    {command}")).collect();
    format!("Examples:\n{}", lines.join("\n"))
}

/// One InfiniBand stack in userspace.
///
/// Exit status: 0 the answer is good, 1 it is bad (something is unreachable, a credit loop), 2 the
/// input is unusable, 3 the answer is not known.
#[derive(Debug, Parser)]
#[command(name = "ibfabric", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads a command line, the program's name first.
    ///
    /// # Errors
    /// Fails with what clap says of it, which may be the help that was asked for.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let words = sm::joined(words.into_iter().collect());
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
    /// Writes a fabric file.
    Gen(GenArgs),
    /// Computes, checks and dumps the forwarding tables of a fabric.
    #[command(after_long_help = examples_text("route"))]
    Route(Box<RouteArgs>),
    /// Checks anybody's forwarding tables.
    #[command(after_long_help = examples_text("check"))]
    Check(Box<CheckArgs>),
    /// Simulates a fabric that ibsim's clients attach to.
    #[command(after_long_help = examples_text("sim"))]
    Sim(Box<sim::SimArgs>),
    /// Manages a subnet.
    #[command(after_long_help = examples_text("sm"))]
    Sm(Box<sm::SmArgs>),
    /// Validates the ways that packets take, hop by hop.
    ///
    /// Exit status: 0 all paths are proven good, 1 a path is proven bad, 2 the input is unusable, 3 a
    /// path is not proven, and none is proven bad.
    #[command(after_long_help = examples_text("tracer"))]
    Tracer(Box<tracer::TracerArgs>),
    /// Answers ibtracer and ibping at a port.
    #[command(after_long_help = examples_text("agent"))]
    Agent(tracer::AgentArgs),
    /// RDMA from this machine without an adapter: RoCEv2 over UDP.
    #[command(after_long_help = examples_text("rdma"))]
    Rdma(rdma::RdmaArgs),
    /// Runs an unmodified verbs program on a simulated fabric or over RoCEv2.
    #[command(after_long_help = examples_text("run"))]
    Run(run::RunArgs),
    /// Block devices over RTRS: served, measured and verified.
    #[command(after_long_help = examples_text("rtrs"))]
    Rtrs(rtrs::RtrsArgs),
    /// Offers a device of a server to programs of this machine, over NBD.
    #[command(after_long_help = examples_text("nbd"))]
    Nbd(Box<rtrs::NbdArgs>),
    /// Resolves names, addresses and routes for the programs of a machine, as ibacm does
    #[command(after_long_help = examples_text("acm"))]
    Acm(acm::AcmArgs),
    /// Asks services of IB ACM for paths, endpoints and counters, and writes their files, as `ib_acme` does
    #[command(after_long_help = examples_text("acme"))]
    Acme(Box<acme::AcmeArgs>),
    /// Everything at once on a simulated fabric: manager, names, agents, a block device and its trace.
    #[command(after_long_help = examples_text("up"))]
    Up(Box<up::UpArgs>),
    /// Captures of queue pairs: started, read and compared.
    #[command(after_long_help = examples_text("capture"))]
    Capture(capture::CaptureArgs),
}

/// Reads a number in a range as OpenSM's options do: decimal, or hexadecimal after `0x`, or octal
/// after `0`.
fn in_range(min: u64, max: u64) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        number::<u64>(text)
            .filter(|value| (min..=max).contains(value))
            .ok_or_else(|| format!("expected a number of {min} to {max}"))
    }
}

/// Reads a number of bytes in a range, with K, M or G for powers of 1024.
fn bytes<T: TryFrom<u64>>(min: u64, max: u64) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let value = number::<u64>(text).or_else(|| rtrs::size(text).ok());
        let value = value.filter(|value| (min..=max).contains(value));
        let value = value.and_then(|value| T::try_from(value).ok());
        value.ok_or_else(|| format!("expected a number of {min} to {max}, or one with K, M or G"))
    }
}

/// Reads an LMC.
fn lmc(text: &str) -> Result<Lmc, String> {
    let lmc = number(text).and_then(|value| Lmc::new(value).ok());
    lmc.ok_or_else(|| "expected an LMC of 0 to 7".to_owned())
}

/// Reads a fraction.
fn fraction(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "expected a fraction of 0 to 1".to_owned())
}

/// Whose packets are looked at in the search for credit loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ScopeArg {
    /// Those from host to host.
    #[default]
    Hosts,
    /// Also those between hosts and switches' own ports.
    Management,
    /// Also those from switch to switch.
    Everything,
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
#[command(
    after_help = format!("Kinds and their parameters:\n{}", Kind::USAGES.join("\n")),
    after_long_help = format!("Kinds and their parameters:\n{}\n\n{}", kinds(), examples_text("gen"))
)]
pub struct GenArgs {
    /// The kind of fabric.
    pub kind: String,
    /// The kind's parameters: see below.
    pub parameters: Vec<String>,
    /// The file to write; standard output without it, or for -.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The speed of every link: SDR DDR QDR FDR10 FDR EDR HDR NDR XDR.
    #[arg(long, default_value = "NDR")]
    pub speed: LinkSpeed,
    /// The width of every link: 1x 2x 4x 8x 12x.
    #[arg(long, default_value = "4x")]
    pub width: LinkWidth,
    /// The format to write. ibsim 0.10 itself knows speeds up to HDR.
    #[arg(long, value_enum, default_value = "ibsim")]
    pub format: FileFormat,
    /// The fraction of the links between switches to leave out, 0 to 1.
    #[arg(long, value_name = "F", default_value_t = 0.0, value_parser = fraction,
        allow_negative_numbers = true)]
    pub drop_links: f64,
    /// The fraction of the switches to leave out, 0 to 1, and with them the hosts that have no link
    /// left.
    #[arg(long, value_name = "F", default_value_t = 0.0, value_parser = fraction,
        allow_negative_numbers = true)]
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
    #[arg(short = 'l', long, value_name = "N", value_parser = lmc)]
    pub lmc: Option<Lmc>,
    /// Gives enhanced switch ports 0 the LMC as well.
    #[arg(long, alias = "lmc_esp0")]
    pub lmc_esp0: bool,
    /// Assigns all LIDs anew, whatever the fabric file and --guid2lid say.
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
    /// Demands that every LID can be reached from every switch: also from switches without hosts,
    /// and also switches' own LIDs, which up/down routing may leave out.
    #[arg(long)]
    pub strict: bool,
    /// Whose packets the search for credit loops looks at.
    #[arg(long, value_enum, default_value = "hosts")]
    pub scope: ScopeArg,
    /// The lanes of service levels, as OpenSM's opensm-sl2vl.dump has them; SL n on VL n without
    /// it.
    #[arg(long, value_name = "FILE")]
    pub sl2vl: Option<PathBuf>,
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
    /// How it is routed.
    #[command(flatten)]
    pub routing: RoutingArgs,
    /// Writes OpenSM's dump files into this directory.
    #[arg(long, visible_alias = "dump_files_dir", value_name = "DIR")]
    pub dump_dir: Option<PathBuf>,
    /// Writes a page with the fabric, the loads and the hops drawn.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

/// How a subnet is routed.
#[derive(Debug, Args)]
pub struct RoutingArgs {
    /// The routing engines, in order of preference: minhop updn ftree lash dor file. minhop follows
    /// unless no_fallback is among them. auto: minhop, and in the subnet manager updn and lash if
    /// its routes have a credit loop [default: auto].
    #[arg(short = 'R', long, visible_alias = "routing_engine", value_name = "LIST")]
    pub engine: Option<EngineList>,
    /// Options of single engines.
    #[command(flatten)]
    pub engines: EngineArgs,
}

impl RoutingArgs {
    /// Returns the engines to try.
    #[must_use]
    pub fn list(&self) -> EngineList {
        self.engine.clone().unwrap_or_default()
    }
}

/// What the engines can be told.
#[derive(Clone, Debug, Default, Args)]
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
    /// How many hops a path to an I/O node may lead back up (ftree); none without it.
    #[arg(short = 'H', long, alias = "max_reverse_hops", value_name = "N",
        value_parser = in_range(0, 255))]
    pub max_reverse_hops: Option<u64>,
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
    /// Draws among least used ports by this seed; 0, and without it, draws nothing.
    #[arg(long, value_name = "SEED", value_parser = in_range(0, u32::MAX.into()))]
    pub scatter_ports: Option<u64>,
    /// Does not draw for the ports of --guid-routing-order.
    #[arg(long, alias = "guid_routing_order_no_scatter")]
    pub guid_routing_order_no_scatter: bool,
    /// The lowest virtual lane to use; 0 without it (lash).
    #[arg(long, alias = "lash_start_vl", value_name = "VL", value_parser = in_range(0, 14))]
    pub lash_start_vl: Option<u64>,
    /// The number of data virtual lanes of every link; 8 without it (lash).
    #[arg(long, value_name = "N", value_parser = in_range(1, 15))]
    pub virtual_lanes: Option<u64>,
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

impl EngineArgs {
    /// Returns the options of the routing engines.
    pub(crate) fn files(&self) -> EngineFiles {
        EngineFiles {
            root_guids: self.root_guids.clone(),
            cn_guids: self.cn_guids.clone(),
            io_guids: self.io_guids.clone(),
            max_reverse_hops: self.max_reverse_hops,
            quasi_ftree_indexing: self.quasi_ftree_indexing,
            ignore_guids: self.ignore_guids.clone(),
            guid_routing_order: self.guid_routing_order.clone(),
            port_search_ordering: self.port_search_ordering.clone(),
            hop_weights: self.hop_weights.clone(),
            ids_guids: self.ids_guids.clone(),
            connect_roots: self.connect_roots,
            port_profile_switch_nodes: self.port_profile_switch_nodes,
            port_shifting: self.port_shifting,
            scatter_ports: self.scatter_ports,
            guid_routing_order_no_scatter: self.guid_routing_order_no_scatter,
            lash_start_vl: self.lash_start_vl,
            virtual_lanes: self.virtual_lanes,
            lfts: self.lfts.clone(),
            lid_matrix: self.lid_matrix.clone(),
            keep_lfts: self.keep_lfts.clone(),
        }
    }
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

/// Reads an MTU in bytes.
pub(crate) fn mtu(text: &str) -> Result<Mtu, String> {
    let bytes = text.parse::<usize>().ok();
    let mtu = Mtu::ALL.into_iter().find(|mtu| Some(mtu.bytes()) == bytes);
    mtu.ok_or_else(|| "expected 256, 512, 1024, 2048 or 4096".to_owned())
}
