//! Arguments of `gen`, `route` and `check`.

use std::path::PathBuf;

use clap::Args;
use ib_daemons::routing_files::EngineFiles;
use ib_routing::EngineList;
use ib_topology::generate::Kind;
use ib_types::{Guid, LinkSpeed, LinkWidth, Lmc};

use super::examples::examples_text;
use super::values::{fraction, in_range, lmc};

/// Returns the usage lines and the parameters of all kinds of fabric, for the help of `gen`.
#[must_use]
pub fn kinds() -> String {
    let usages: String = Kind::USAGES.iter().map(|usage| format!("  {usage}\n")).collect();
    format!("{usages}\n{PARAMETERS}")
}

const PARAMETERS: &str = "\
Defaults are in parentheses.
fat-tree: switches of RADIX ports in 2 or 3 LEVELS (2). D:U is the ratio of hosts to uplinks of a
  leaf (1:1). P is the number of parallel links from leaf to spine (1), Q from spine to core (P).
  hosts is the number of hosts per leaf. leaves and spines are the numbers of these switches per
  fabric or, with 3 levels, per pod. Omitted parameters get the values of the largest tree that
  RADIX allows.
xgft: a node of level i has Mi children, and a node of the level below has Wi parents, over Pi
  parallel links (1). Level 0 has the hosts: XGFT(h; M1..Mh; W1..Wh).
k-ary-n-tree: N levels of switches with K ports down and K up.
torus, mesh, hypercube: Xi switches in dimension i, each with hosts (1).
dragonfly: G groups (A*H+1) of A switches, each with P hosts and H links to other groups.
random: S switches of N ports, each with H hosts (1), and L links in total (as many as fit).";

/// The pairs of ports whose packets the search for credit loops considers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ScopeArg {
    /// Packets from host to host.
    #[default]
    Hosts,
    /// Packets from host to host, and packets between hosts and switch port 0.
    Management,
    /// All packets, including packets from switch to switch.
    Everything,
}

/// The format of a generated fabric file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FileFormat {
    /// A net file of ibsim.
    Ibsim,
    /// The output format of ibnetdiscover.
    Ibnetdiscover,
}

/// Arguments of `gen`.
#[derive(Debug, Args)]
#[command(
    after_help = format!("Kinds and their parameters:\n{}", Kind::USAGES.join("\n")),
    after_long_help = format!("Kinds and their parameters:\n{}\n\n{}", kinds(), examples_text("gen"))
)]
pub struct GenArgs {
    /// Kind of fabric; see below.
    pub kind: String,
    /// Parameters of the kind; see below.
    pub parameters: Vec<String>,
    /// File to write; - for standard output [default: -].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Speed of all links: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR.
    #[arg(long, default_value = "NDR")]
    pub speed: LinkSpeed,
    /// Width of all links: 1x, 2x, 4x, 8x or 12x.
    #[arg(long, default_value = "4x")]
    pub width: LinkWidth,
    /// Format of the file. ibsim 0.10 itself reads speeds up to HDR only.
    #[arg(long, value_enum, default_value = "ibsim")]
    pub format: FileFormat,
    /// Fraction of the links between switches to omit, 0 to 1.
    #[arg(long, value_name = "F", default_value_t = 0.0, value_parser = fraction,
        allow_negative_numbers = true)]
    pub drop_links: f64,
    /// Fraction of the switches to omit, 0 to 1. Hosts that lose all links are omitted, too.
    #[arg(long, value_name = "F", default_value_t = 0.0, value_parser = fraction,
        allow_negative_numbers = true)]
    pub drop_switches: f64,
    /// Seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// The fabric and its subnet: arguments shared by `route` and `check`.
#[derive(Debug, Args)]
pub struct SubnetArgs {
    /// Fabric file: ibnetdiscover output, an ibsim net file or an opensm-subnet.lst; - for standard input.
    pub fabric: PathBuf,
    /// GUID of the SM's port [default: first linked port of the first HCA in the file].
    #[arg(short = 'g', long = "sm-port", visible_alias = "guid", value_name = "GUID")]
    pub sm_port: Option<Guid>,
    /// LMC: each HCA port gets 2^N LIDs [default: highest LMC in the fabric file].
    #[arg(short = 'l', long, value_name = "N", value_parser = lmc)]
    pub lmc: Option<Lmc>,
    /// Applies the LMC to enhanced switch ports 0 as well.
    #[arg(long, alias = "lmc_esp0")]
    pub lmc_esp0: bool,
    /// Reassigns all LIDs; ignores the LIDs of the fabric file and of --guid2lid.
    #[arg(short = 'r', long, alias = "reassign_lids")]
    pub reassign_lids: bool,
    /// File of port GUIDs and their LIDs, in the format of OpenSM's guid2lid.
    #[arg(long, value_name = "FILE")]
    pub guid2lid: Option<PathBuf>,
    /// File of node GUIDs and names. The names replace the node descriptions.
    #[arg(long, alias = "node-name-map-file", value_name = "FILE")]
    pub node_name_map: Option<PathBuf>,
    /// Number of threads [default: number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Requires every switch to reach every LID. By default, routes to LIDs of switches, and routes from
    /// switches without hosts, may be missing, since up/down routing may omit them.
    #[arg(long)]
    pub strict: bool,
    /// Pairs of ports whose packets the search for credit loops considers.
    #[arg(long, value_enum, default_value = "hosts")]
    pub scope: ScopeArg,
    /// File of SL to VL mappings, in the format of OpenSM's opensm-sl2vl.dump [default: SL n on VL n].
    #[arg(long, value_name = "FILE")]
    pub sl2vl: Option<PathBuf>,
    /// Also prints the effective bisection bandwidth and the contention of the shift pattern.
    #[arg(long)]
    pub metrics: bool,
    /// Seed of the random bisections of --metrics.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Prints the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `route`.
#[derive(Debug, Args)]
pub struct RouteArgs {
    /// The fabric and its subnet.
    #[command(flatten)]
    pub subnet: SubnetArgs,
    /// The routing engines and their options.
    #[command(flatten)]
    pub routing: RoutingArgs,
    /// Directory for OpenSM's dump files.
    #[arg(long, visible_alias = "dump_files_dir", value_name = "DIR")]
    pub dump_dir: Option<PathBuf>,
    /// Writes an HTML report with drawings of the fabric, link loads and hops.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The routing engines of a subnet.
#[derive(Debug, Args)]
pub struct RoutingArgs {
    /// Routing engines in order of preference: minhop, updn, ftree, lash, dor, file. If all of them fail, minhop
    /// is used, unless no_fallback is in the list. auto selects minhop. With auto, the SM also tries updn and
    /// lash if the routes of minhop have a credit loop [default: auto].
    #[arg(short = 'R', long, visible_alias = "routing_engine", value_name = "LIST")]
    pub engine: Option<EngineList>,
    /// Options of specific engines.
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

/// Options of specific routing engines.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Engines")]
pub struct EngineArgs {
    /// File of GUIDs of root switches, or of HCAs attached to them (updn, ftree).
    #[arg(short = 'a', long, visible_alias = "root_guid_file", value_name = "FILE")]
    pub root_guids: Option<PathBuf>,
    /// File of port GUIDs of compute nodes (ftree).
    #[arg(short = 'u', long, visible_alias = "cn_guid_file", value_name = "FILE")]
    pub cn_guids: Option<PathBuf>,
    /// File of port GUIDs of I/O nodes (ftree).
    #[arg(short = 'G', long, visible_alias = "io_guid_file", value_name = "FILE")]
    pub io_guids: Option<PathBuf>,
    /// Maximum number of upward hops after downward hops on a path to an I/O node (ftree) [default: 0].
    #[arg(short = 'H', long, alias = "max_reverse_hops", value_name = "N",
        value_parser = in_range(0, 255))]
    pub max_reverse_hops: Option<u64>,
    /// Starts the indexing of switches at the roots instead of at the first leaf (ftree).
    #[arg(long, alias = "quasi_ftree_indexing")]
    pub quasi_ftree_indexing: bool,
    /// File of ports that link load equalisation ignores. Each line has a switch GUID and a port number, or a port
    /// GUID. A port GUID stands for the switch port that is linked to this port.
    #[arg(short = 'i', long, alias = "ignore_guids", value_name = "FILE")]
    pub ignore_guids: Option<PathBuf>,
    /// File of port GUIDs whose LIDs are routed first, in the order of the file.
    #[arg(short = 'X', long, alias = "guid_routing_order_file", value_name = "FILE")]
    pub guid_routing_order: Option<PathBuf>,
    /// File of the switch ports that the engine considers first when it selects a port, in the order of the file.
    /// Each line has a switch GUID and port numbers.
    #[arg(short = 'O', long, aliases = ["dimn_ports_file", "port_search_ordering_file"], value_name = "FILE")]
    pub port_search_ordering: Option<PathBuf>,
    /// File of link weights, in hops. Each line has a switch GUID, a port number and a weight.
    #[arg(short = 'w', long, alias = "hop_weights_file", value_name = "FILE")]
    pub hop_weights: Option<PathBuf>,
    /// File of identifiers that break ties between switches of equal rank (updn). Each line has a switch GUID
    /// and a number.
    #[arg(short = 'm', long, alias = "ids_guid_file", value_name = "FILE")]
    pub ids_guids: Option<PathBuf>,
    /// Also computes routes between root switches (updn), or from switches above the leaves to other switches
    /// (ftree).
    #[arg(short = 'z', long, alias = "connect_roots")]
    pub connect_roots: bool,
    /// Includes routes to switches in link load equalisation.
    #[arg(long, alias = "port_profile_switch_nodes")]
    pub port_profile_switch_nodes: bool,
    /// Starts the search for the least loaded port one port further whenever the average number of LIDs per
    /// port grows by one.
    #[arg(long)]
    pub port_shifting: bool,
    /// Selects randomly among the least loaded ports, with this seed; 0 disables the random choice [default: 0].
    #[arg(long, value_name = "SEED", value_parser = in_range(0, u32::MAX.into()))]
    pub scatter_ports: Option<u64>,
    /// Exempts the ports of --guid-routing-order from --scatter-ports.
    #[arg(long, alias = "guid_routing_order_no_scatter")]
    pub guid_routing_order_no_scatter: bool,
    /// Lowest VL to use (lash) [default: 0].
    #[arg(long, alias = "lash_start_vl", value_name = "VL", value_parser = in_range(0, 14))]
    pub lash_start_vl: Option<u64>,
    /// Number of data VLs of each link (lash) [default: 8].
    #[arg(long, value_name = "N", value_parser = in_range(1, 15))]
    pub virtual_lanes: Option<u64>,
    /// File of forwarding tables that the engine loads (file).
    #[arg(short = 'U', long, visible_alias = "lfts_file", value_name = "FILE")]
    pub lfts: Option<PathBuf>,
    /// LID matrix file that the engine loads (file).
    #[arg(short = 'M', long, visible_alias = "lid_matrix_file", value_name = "FILE")]
    pub lid_matrix: Option<PathBuf>,
    /// File of existing forwarding tables. An entry is kept if its port is still a least-hop port (minhop,
    /// updn, dor).
    #[arg(long, value_name = "FILE")]
    pub keep_lfts: Option<PathBuf>,
}

impl EngineArgs {
    /// Returns the options of the routing engines as a configuration.
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
    /// File of forwarding tables: OpenSM's opensm-lfts.dump, or the output of ibroute.
    #[arg(short = 'U', long, visible_alias = "lfts_file", value_name = "FILE")]
    pub lfts: PathBuf,
    /// File with the service level of each pair of switches, which `route --dump-dir` writes for lash [default: SL 0
    /// for all].
    #[arg(long, value_name = "FILE")]
    pub sl_file: Option<PathBuf>,
}
