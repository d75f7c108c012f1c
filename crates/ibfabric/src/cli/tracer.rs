//! The arguments of `tracer` and `agent`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use ib_daemons::mad_port::MadPortConfig;
use ib_routing::EngineList;
use ib_types::{Gid, Guid, ServiceLevel};

use super::in_range;
use crate::input::number;

/// One end of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndArg {
    /// A LID.
    Lid(u16),
    /// A GID.
    Gid(Gid),
    /// The GUID of a port of the own subnet.
    Guid(Guid),
}

impl FromStr for EndArg {
    type Err = String;

    /// Reads a LID (a number up to 0xbfff), a GID (with colons) or a port GUID (0x and 16 digits).
    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            "expected a LID of 1 to 49151, a GID or a port GUID of 16 hexadecimal digits";
        if text.contains(':') {
            return text.parse().map(Self::Gid).map_err(|error| format!("{error}: {expected}"));
        }
        if text.len() == 18 && text.starts_with("0x") || text.len() == 16 {
            return text.parse().map(Self::Guid).map_err(|error| format!("{error}: {expected}"));
        }
        let lid = number(text).filter(|lid| (1..=0xbfff).contains(lid));
        lid.map(Self::Lid).ok_or_else(|| expected.to_owned())
    }
}

/// The port that a program speaks through.
#[derive(Debug, Args)]
pub struct StationArgs {
    /// The adapter, such as `mthca0` or `mlx5_0`; the first that has a link without it.
    #[arg(short = 'I', long, visible_alias = "umad", value_name = "DEV[:PORT]", group = "station")]
    pub device: Option<String>,
    /// The port of the adapter.
    #[arg(short = 'p', long, value_name = "PORT", conflicts_with_all = ["ibsim", "attach"],
        value_parser = clap::value_parser!(u8).range(1..=254))]
    pub port: Option<u8>,
    /// A real ibsim or `ibfabric sim` in another process, by the name of its sockets; without a name
    /// the one that the environment names, as Debian's libumad2sim does it.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true,
        default_missing_value = "", group = "station")]
    pub ibsim: Option<String>,
    /// The same, always with a name.
    #[arg(long, value_name = "NAME", group = "station")]
    pub attach: Option<String>,
    /// The node of the simulated fabric to speak through; its first without it, or `SIM_HOST`.
    #[arg(long, value_name = "NODE", conflicts_with_all = ["device", "port"])]
    pub node: Option<String>,
}

impl StationArgs {
    /// Returns the choice of the port.
    pub(crate) fn config(&self) -> MadPortConfig {
        MadPortConfig {
            attach: self.attach.clone(),
            ibsim: self.ibsim.clone(),
            node: self.node.clone(),
            device: self.device.clone(),
            port: self.port,
        }
    }
}

/// Arguments of `tracer`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("destination").required(true)
    .args(["lid", "dgid", "pairs", "all_pairs", "mgid", "mlid"]))]
pub struct TracerArgs {
    /// The port to trace from.
    #[command(flatten)]
    pub station: StationArgs,
    /// A fabric that is simulated inside this process, in virtual time, with a subnet manager at its
    /// first host and agents on all nodes.
    #[arg(long, value_name = "FABRIC", group = "station", conflicts_with = "port")]
    pub sim: Option<PathBuf>,
    /// The engines that route the fabric of --sim.
    #[arg(short = 'R', long, value_name = "LIST", requires = "sim")]
    pub engine: Option<EngineList>,
    /// Commands for the fabric of --sim, a line each, that are run when it is up: what the console of
    /// `ibfabric sim` takes.
    #[arg(long, value_name = "FILE", requires = "sim")]
    pub commands: Option<PathBuf>,
    /// Does not let the subnet manager of --sim hear of what --commands does.
    #[arg(long, requires = "commands")]
    pub deaf_manager: bool,
    /// How often a request is repeated.
    #[arg(short = 'r', long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub retries: u32,
    /// How long an answer is awaited, in milliseconds.
    #[arg(short = 't', long, value_name = "MS", default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(1..=600_000))]
    pub timeout: u32,
    /// The LID to trace the way to.
    #[arg(short = 'l', long, value_name = "LID", value_parser = in_range(1, 0xbfff))]
    pub lid: Option<u64>,
    /// The GID to trace the way to: subnet administration tells its LID.
    #[arg(short = 'g', long, value_name = "GID")]
    pub dgid: Option<Gid>,
    /// Traces the ways of a file: lines of two LIDs, GIDs or port GUIDs, the start first.
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub pairs: Option<PathBuf>,
    /// Traces the ways between all hosts that subnet administration knows.
    #[arg(long, conflicts_with = "from")]
    pub all_pairs: bool,
    /// Traces the tree of a multicast group from the own port, by its GID: subnet administration tells
    /// its LID and its members. Members that are not reached, or twice, are reported.
    #[arg(long, value_name = "GID", conflicts_with_all = ["from", "reverse"])]
    pub mgid: Option<Gid>,
    /// Traces the tree of a multicast LID; nobody has to tell the members.
    #[arg(long, value_name = "LID", conflicts_with_all = ["from", "reverse"],
        value_parser = in_range(0xc000, 0xfffe))]
    pub mlid: Option<u64>,
    /// The key by which subnet administration tells members; 1 without it.
    #[arg(long, value_name = "KEY", requires = "mgid")]
    pub smkey: Option<u64>,
    /// Where the way starts: a LID, a GID or a port GUID; the own port without it.
    #[arg(long, value_name = "END")]
    pub from: Option<EndArg>,
    /// Traces the way back as well.
    #[arg(long, conflicts_with_all = ["pairs", "all_pairs"])]
    pub reverse: bool,
    /// Where the tables and links are learned from.
    #[arg(long, value_enum, default_value = "direct")]
    pub via: ViaArg,
    /// Asks no agents: shows the paths by the tables, which proves nothing.
    #[arg(long)]
    pub no_agents: bool,
    /// Counts at each switch by which port it sends what goes to the destination's own LID.
    #[arg(long, conflicts_with_all = ["no_agents", "mgid", "mlid"])]
    pub exact: bool,
    /// The probability that silence is chance, below which it counts as a fault.
    #[arg(long, value_name = "P", default_value_t = 1e-6, value_parser = probability)]
    pub error_probability: f64,
    /// The service level of requests to agents.
    #[arg(long, value_name = "SL", default_value = "0", value_parser = service_level)]
    pub sl: ServiceLevel,
    /// Sends requests to agents with a global route header.
    #[arg(long)]
    pub grh: bool,
    /// The M_Key of nodes that do not answer subnet management without one.
    #[arg(short = 'y', long, value_name = "KEY", default_value = "0", value_parser = in_range(0, u64::MAX))]
    pub mkey: u64,
    /// How many requests are under way at a time.
    #[arg(long, value_name = "N", default_value_t = 64,
        value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub window: u16,
    /// Names for node GUIDs, in place of the nodes' own descriptions.
    #[arg(long, value_name = "FILE")]
    pub node_name_map: Option<PathBuf>,
    /// Shows the whole way, with what is known of each hop.
    #[arg(short, long)]
    pub verbose: bool,
    /// Which ports are shown with -v: those that the way enters by, or also those it leaves by.
    #[arg(long, value_enum, default_value = "in")]
    pub ports: PortsArg,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: TraceFormat,
}

/// Where tables and links are learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ViaArg {
    /// From the nodes, over directed routes.
    Direct,
    /// From subnet administration: records of links, ports and tables. So the fabric is
    /// compared with what its manager believes.
    Sa,
}

/// Which ports of a way are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PortsArg {
    /// Those that the way enters nodes by.
    In,
    /// Also those that it leaves nodes by.
    Both,
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceFormat {
    /// Lines for people.
    Text,
    /// One JSON object.
    Json,
    /// The lines of ibtracert, of every way.
    Ibtracert,
}

/// Arguments of `agent`.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// The port to answer at.
    #[command(flatten)]
    pub station: StationArgs,
    /// What ibping is told; the name of the machine without it.
    #[arg(long, value_name = "NAME")]
    pub host_name: Option<String>,
}

/// Reads a probability that is neither 0 nor 1.
fn probability(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|&it: &f64| it > 0.0 && it < 1.0);
    found.ok_or_else(|| "expected a probability above 0 and below 1, such as 1e-6".to_owned())
}

/// Reads a service level.
fn service_level(text: &str) -> Result<ServiceLevel, String> {
    let level = number(text).and_then(ServiceLevel::new);
    level.ok_or_else(|| "expected a service level of 0 to 15".to_owned())
}
