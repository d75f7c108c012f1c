//! The command line of `sim`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Subcommand, ValueEnum};
use ib_daemons::sim::SimConfig;
pub use ib_daemons::sim::{CONSOLE, CONSOLE_NAMES};
use ib_routing::EngineList;
use ib_sim::LogLevel;
use ib_types::Mtu;

use crate::command::sm::hosted_options;

/// Returns the console command with this name, regardless of upper and lower case.
fn console_command(word: &str) -> Option<&'static str> {
    let commands = CONSOLE.lines().filter(|line| !line.starts_with(' '));
    let mut names = commands.filter_map(|line| line.split_whitespace().next());
    names.find(|name| name.eq_ignore_ascii_case(word))
}

/// Arguments of `sim`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SimArgs {
    /// The subcommand, which controls a running simulator. `None` starts a simulator.
    #[command(subcommand)]
    pub action: Option<SimAction>,
    /// Options of the simulator.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// The subcommands of `sim`.
#[derive(Debug, Subcommand)]
pub enum SimAction {
    /// Sends commands to a running simulator.
    ///
    /// Without COMMAND, reads commands from standard input, one per line. `help` lists them.
    #[command(after_long_help = super::examples::examples_text("ctl"))]
    Ctl(CtlArgs),
}

/// Arguments of `sim FABRIC`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Fabric file: ibnetdiscover output, an ibsim net file or an opensm-subnet.lst; - for standard input.
    #[arg(required = true)]
    pub fabric: Option<PathBuf>,
    /// Name of the simulator. Clients specify this name in `IBSIM_SOCKNAME`.
    #[arg(long, value_name = "NAME", default_value = "sim", env = "IBSIM_SOCKNAME",
        value_parser = socket_name)]
    pub name: String,
    /// Listens on this UDP port of the loopback device instead of on Unix sockets. Clients specify the port in
    /// `IBSIM_SERVER_PORT`, and use ports above it. `sim ctl --port N` connects to the console.
    #[arg(long, value_name = "N", value_parser = port, conflicts_with = "replay")]
    pub port: Option<u16>,
    /// Runs an SM at the first host with these routing engines [default: auto]. READY is then printed when the subnet
    /// is up. `sm ctl --name NAME-sm` controls the SM.
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true,
        default_missing_value = "auto", conflicts_with = "replay")]
    pub sm: Option<EngineList>,
    /// Runs agents for ibtracer and ibping on these nodes, separated by commas [default: all nodes].
    #[arg(long, value_name = "NODES", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    pub agents: Option<String>,
    /// Seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// File of console commands. Each line is `at TIME COMMAND`, with the time since the start of the fabric.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Injects N random faults within the time of --random-time, and repairs them at the end of that time.
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub random_faults: u32,
    /// Time within which --random-faults injects faults, such as 30s.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time,
        requires = "random_faults")]
    pub random_time: Duration,
    /// File of IP addresses of ports. They replace the addresses that the simulator assigns. Each line is
    /// `GUID ADDRESS …`.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub addresses: Option<PathBuf>,
    /// Writes all sent and lost packets to a pcapng file; - for standard output.
    #[arg(short = 'w', long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Log file; - for standard error.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Level of detail of --log.
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "events", requires = "log")]
    pub log_level: LevelArg,
    /// Records all input of clients and consoles in a file for --replay.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Replays a file of --record without sockets, as fast as possible, and exits. With the same fabric, seed and
    /// script, the log equals that of the recorded run.
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Latency of a packet from port to port, in addition to its transmission time.
    #[arg(long, value_name = "TIME", default_value = "200ns", value_parser = time)]
    pub latency: Duration,
    /// Receive buffer of each VL of a port, in bytes, at least 4224.
    #[arg(long, value_name = "BYTES", default_value_t = 16_384,
        value_parser = super::values::bytes::<u32>(4224, u32::MAX as u64))]
    pub vl_buffer: u32,
    /// MTU that ports support, in bytes: 256, 512, 1024, 2048 or 4096. The SM sets the active MTU.
    #[arg(long, value_name = "BYTES", default_value = "2048", value_parser = super::values::mtu)]
    pub mtu: Mtu,
    /// `LinearFDBCap` of all switches: number of entries of their linear forwarding tables.
    #[arg(short = 'L', long, value_name = "N", default_value_t = 49_152,
        value_parser = clap::value_parser!(u16).range(2..=49_152))]
    pub linear_cap: u16,
    /// `MulticastFDBCap` of all switches: number of entries of their multicast forwarding tables.
    #[arg(short = 'M', long, value_name = "N", default_value_t = 1024,
        value_parser = clap::value_parser!(u16).range(1..=16_383))]
    pub mcast_cap: u16,
    /// Response timeout of clients. If a client does not respond to a request within this time, the simulator reports
    /// the request as failed to the requester.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub response_timeout: Duration,
}

impl ServeArgs {
    /// Returns the configuration of the simulator.
    pub(crate) fn config(&self) -> SimConfig {
        let name = self.port.map_or_else(|| self.name.clone(), |port| port.to_string());
        let manager = |engines| hosted_options(engines, &format!("{name}-sm"));
        SimConfig {
            manager: self.sm.as_ref().map(manager),
            agents: self.agents.clone(),
            seed: self.seed,
            script: self.script.clone(),
            random_faults: self.random_faults,
            random_time: self.random_time,
            addresses: self.addresses.clone(),
            pcap: self.pcap.clone(),
            log: self.log.clone(),
            log_level: self.log_level.into(),
            record: self.record.clone(),
            latency: self.latency,
            lane_buffer: self.vl_buffer,
            mtu: self.mtu,
            linear_cap: self.linear_cap,
            mcast_cap: self.mcast_cap,
            answer_within: self.response_timeout,
        }
    }
}

/// The level of detail of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelArg {
    /// Clients, links, port states, traps, commands and lost packets.
    Events,
    /// Events, and sent and delivered datagrams.
    Datagrams,
    /// Events, datagrams, and every packet at every port.
    Hops,
}

impl From<LevelArg> for LogLevel {
    fn from(level: LevelArg) -> Self {
        match level {
            LevelArg::Events => Self::Events,
            LevelArg::Datagrams => Self::Datagrams,
            LevelArg::Hops => Self::Hops,
        }
    }
}

/// Arguments of `sim ctl`.
#[derive(Debug, Args)]
pub struct CtlArgs {
    /// Name of the simulator [default: the simulator that clients would use. If `IBSIM_SERVER_NAME` is set, it has
    /// the UDP port `IBSIM_SERVER_PORT` (7070). Otherwise it has the name `IBSIM_SOCKNAME` (sim)].
    #[arg(long, value_name = "NAME", value_parser = socket_name, conflicts_with = "port")]
    pub name: Option<String>,
    /// UDP port of the simulator: the value of `sim --port`.
    #[arg(long, value_name = "N", value_parser = port)]
    pub port: Option<u16>,
    /// Prints one JSON object per command, each on a line of its own.
    #[arg(long)]
    pub json: bool,
    /// Command, such as `unlink '"node"[1]'`, `stats` or `help`. Words that begin with a hyphen need `--`
    /// before them.
    pub command: Vec<String>,
}

/// Rejects `--name` on the command line together with `--port` or `--replay`. `IBSIM_SOCKNAME` in the
/// environment is accepted, since it is meant for clients.
pub(super) fn check(command: &mut clap::Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some(matches) = matches.subcommand_matches("sim") else { return Ok(()) };
    let given = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
    let other = ["port", "replay"].into_iter().find(|other| given(other));
    match other.filter(|_| given("name")) {
        None => Ok(()),
        Some(other) => {
            let sim = command.find_subcommand_mut("sim").expect("clap has the subcommand `sim`");
            let message = format!("the argument '--name' cannot be used with '--{other}'");
            Err(sim.error(ErrorKind::ArgumentConflict, message))
        }
    }
}

/// Returns an error if the command line of `sim` has a console command in place of the fabric file.
pub(super) fn misplaced(command: &mut clap::Command, words: &[OsString]) -> Option<clap::Error> {
    // clap rejects `words`. With `ignore_errors`, it nevertheless returns the argument `fabric`.
    let matches = command.clone().ignore_errors(true).try_get_matches_from(words).ok()?;
    let fabric: &PathBuf = matches.subcommand_matches("sim")?.get_one("fabric")?;
    let message = console_hint(fabric)?;
    let sim = command.find_subcommand_mut("sim").expect("clap has the subcommand `sim`");
    Some(sim.error(ErrorKind::UnknownArgument, message))
}

/// Returns an error message if the name of the fabric file is a console command.
pub(crate) fn console_hint(fabric: &Path) -> Option<String> {
    let command = console_command(fabric.to_str()?)?;
    let found = fabric.display();
    Some(format!(
        "{found} is a command for a running simulator: expected a fabric, or `ibfabric sim ctl {command} ...`"
    ))
}

/// Parses the simulator's UDP port. Clients use the ports after it, so it must not be one of the last ports.
fn port(text: &str) -> Result<u16, String> {
    const ROOM: u16 = 200;
    const LAST: u16 = u16::MAX - ROOM;
    text.parse()
        .ok()
        .filter(|port| (1..=LAST).contains(port))
        .ok_or_else(|| format!("expected 1 to {LAST}: clients use up to {ROOM} ports after it"))
}

/// Parses the name that the simulator's sockets share. The name must leave room for the sockets' suffixes.
pub(super) fn socket_name(text: &str) -> Result<String, String> {
    const LONGEST: usize = 80;
    match text.len() {
        1..=LONGEST => Ok(text.to_owned()),
        length => Err(format!("found {length} bytes, expected a name of 1 to {LONGEST}")),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    ib_sim::script::parse_duration(text)
        .ok_or_else(|| "expected a time such as 250us, 10ms or 1.5s".to_owned())
}
