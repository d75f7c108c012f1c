//! The command lines of `tracer` and `agent`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use ib_daemons::mad_port::MadPortConfig;
use ib_routing::EngineList;
use ib_types::{Gid, Guid, ServiceLevel};

use super::values::in_range;
use ib_daemons::input::number;

/// An end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndArg {
    /// A LID.
    Lid(u16),
    /// A GID.
    Gid(Gid),
    /// A port GUID of the local subnet.
    Guid(Guid),
}

impl FromStr for EndArg {
    type Err = String;

    /// Parses a LID (1 to 0xbfff), a GID (with colons) or a port GUID (16 hexadecimal digits, with or without
    /// 0x).
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

/// The local port, which sends and receives MADs.
#[derive(Debug, Args)]
pub struct StationArgs {
    /// HCA, such as `mthca0` or `mlx5_0` [default: first HCA with an active link].
    #[arg(short = 'I', long, visible_alias = "umad", value_name = "DEV[:PORT]", group = "station")]
    pub device: Option<String>,
    /// Port number, at the HCA of -I.
    #[arg(short = 'p', long, value_name = "PORT", conflicts_with = "attach",
        value_parser = clap::value_parser!(u8).range(1..=254))]
    pub port: Option<u8>,
    /// Attaches to the running simulator with this name: an ibsim or an `ibfabric sim` [default name: from the
    /// environment variables that libumad2sim reads].
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", group = "station")]
    pub attach: Option<String>,
    /// Node of the simulated fabric to attach to [default: with --attach the value of `SIM_HOST`, or the first node].
    #[arg(long, value_name = "NODE", conflicts_with_all = ["device", "port"])]
    pub node: Option<String>,
}

impl StationArgs {
    /// Returns the configuration that selects the local port.
    pub(crate) fn config(&self) -> MadPortConfig {
        MadPortConfig {
            attach: self.attach.clone(),
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
    /// The local port, where paths start by default.
    #[command(flatten)]
    pub station: StationArgs,
    /// Simulates this fabric in the process, in virtual time, with an SM at its first host and agents on all
    /// nodes.
    #[arg(long, value_name = "FABRIC", group = "station", conflicts_with = "port")]
    pub sim: Option<PathBuf>,
    /// Routing engines of the SM of --sim, in order of preference.
    #[arg(short = 'R', long, value_name = "LIST", requires = "sim")]
    pub engine: Option<EngineList>,
    /// File of commands for the fabric of --sim, one per line. They are executed when the subnet is up. Their syntax
    /// is that of `ibfabric sim ctl`.
    #[arg(long, value_name = "FILE", requires = "sim")]
    pub commands: Option<PathBuf>,
    /// The SM of --sim does not receive the traps that --commands cause.
    #[arg(long, requires = "commands")]
    pub suppress_traps: bool,
    /// Number of retries of a request.
    #[arg(short = 'r', long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub retries: u32,
    /// Response timeout in milliseconds.
    #[arg(short = 't', long, visible_alias = "timeout", value_name = "MS", default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(1..=600_000))]
    pub response_timeout: u32,
    /// Traces the path to this LID.
    #[arg(short = 'l', long, value_name = "LID", value_parser = in_range(1, 0xbfff))]
    pub lid: Option<u64>,
    /// Traces the path to this GID. The SA is queried for the LID.
    #[arg(short = 'g', long, value_name = "GID")]
    pub dgid: Option<Gid>,
    /// Traces the paths of a file. Each line has a source and a destination: LIDs, GIDs or port GUIDs.
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub pairs: Option<PathBuf>,
    /// Traces the paths between all pairs of hosts that are registered with the SA.
    #[arg(long, conflicts_with = "from")]
    pub all_pairs: bool,
    /// Traces the tree of the multicast group with this GID from the local port. The SA provides the MLID and
    /// the members. Members that the tree does not reach, or reaches twice, are reported.
    #[arg(long, value_name = "GID", conflicts_with_all = ["from", "reverse"])]
    pub mgid: Option<Gid>,
    /// Traces the tree of this multicast LID, without a list of members.
    #[arg(long, value_name = "LID", conflicts_with_all = ["from", "reverse"],
        value_parser = in_range(0xc000, 0xfffe))]
    pub mlid: Option<u64>,
    /// `SM_Key` in the SA query for the members of the group. The SA returns the members only if the key is right
    /// [default: 1].
    #[arg(long, value_name = "KEY", requires = "mgid")]
    pub smkey: Option<u64>,
    /// Source of the path: a LID, a GID or a port GUID [default: the local port].
    #[arg(long, value_name = "END")]
    pub from: Option<EndArg>,
    /// Traces the reverse path as well.
    #[arg(long, conflicts_with_all = ["pairs", "all_pairs"])]
    pub reverse: bool,
    /// Source of the forwarding tables and links.
    #[arg(long, value_enum, default_value = "direct")]
    pub via: ViaArg,
    /// Sends no requests to agents. Prints the paths in the forwarding tables, without a proof that packets take
    /// these paths.
    #[arg(long)]
    pub no_agents: bool,
    /// Reads port counters to verify out of which port each switch sends packets to the destination LID. This takes
    /// some hundred requests per hop. All pairs of 1,200 hosts take minutes instead of seconds.
    #[arg(long, conflicts_with_all = ["no_agents", "mgid", "mlid"])]
    pub exact: bool,
    /// Significance level: missing responses count as a fault if random packet loss would cause them with a probability
    /// of at most P.
    #[arg(long, value_name = "P", default_value_t = 1e-6, value_parser = probability)]
    pub error_probability: f64,
    /// Service level of requests to agents.
    #[arg(long, value_name = "SL", default_value = "0", value_parser = service_level)]
    pub sl: ServiceLevel,
    /// Adds a GRH to requests to agents.
    #[arg(long)]
    pub grh: bool,
    /// M_Key of nodes that require one.
    #[arg(short = 'y', long, value_name = "KEY", default_value = "0", value_parser = in_range(0, u64::MAX))]
    pub mkey: u64,
    /// Maximum number of outstanding requests.
    #[arg(long, value_name = "N", default_value_t = 64,
        value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub window: u16,
    /// Node name map: file of node GUIDs and names. The names are printed instead of the node descriptions.
    #[arg(long, value_name = "FILE")]
    pub node_name_map: Option<PathBuf>,
    /// Prints all hops of each path, with the evidence for each hop.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Ports that -v prints: only ingress ports, or ingress and egress ports.
    #[arg(long, value_enum, default_value = "in")]
    pub ports: PortsArg,
    /// Prints the result as one JSON object.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Output format of the result.
    #[arg(long, value_enum, default_value = "text")]
    pub format: TraceFormat,
}

impl TracerArgs {
    /// Returns the output format that the options select.
    pub(crate) const fn output(&self) -> TraceFormat {
        if self.json { TraceFormat::Json } else { self.format }
    }
}

/// The source of forwarding tables and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ViaArg {
    /// SMPs to the nodes, over directed routes.
    Direct,
    /// Records of the SA about links, ports and forwarding tables. The tracer then compares the fabric with the SM's
    /// view of the fabric.
    Sa,
}

/// The ports of a path that are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PortsArg {
    /// Ingress ports.
    In,
    /// Ingress and egress ports.
    Both,
}

/// The output format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceFormat {
    /// Text.
    Text,
    /// One JSON object, which --json selects.
    #[value(skip)]
    Json,
    /// The output of ibtracert, for each path.
    Ibtracert,
}

/// Arguments of `agent`.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// The port of the agent.
    #[command(flatten)]
    pub station: StationArgs,
    /// Host name in responses to ibping [default: name of the machine].
    #[arg(long, value_name = "NAME")]
    pub host_name: Option<String>,
}

/// Parses a probability above 0 and below 1.
fn probability(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|&it: &f64| it > 0.0 && it < 1.0);
    found.ok_or_else(|| "expected a probability above 0 and below 1, such as 1e-6".to_owned())
}

/// Parses a service level.
fn service_level(text: &str) -> Result<ServiceLevel, String> {
    let level = number(text).and_then(ServiceLevel::new);
    level.ok_or_else(|| "expected a service level of 0 to 15".to_owned())
}
