//! The arguments of `sim`.

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
use crate::output::Format;

/// Returns the command of the console that a word is, whatever its case.
fn console_command(word: &str) -> Option<&'static str> {
    let commands = CONSOLE.lines().filter(|line| !line.starts_with(' '));
    let mut names = commands.filter_map(|line| line.split_whitespace().next());
    names.find(|name| name.eq_ignore_ascii_case(word))
}

/// Arguments of `sim`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SimArgs {
    /// What to do with a simulator that runs.
    #[command(subcommand)]
    pub action: Option<SimAction>,
    /// The fabric to simulate.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// What can be done with a simulator that runs.
#[derive(Debug, Subcommand)]
pub enum SimAction {
    /// Tells a running simulator what to do, or asks it.
    ///
    /// Without a command it reads commands from standard input, one per line. `help` lists them.
    #[command(after_long_help = super::examples_text("ctl"))]
    Ctl(CtlArgs),
}

/// Arguments of `sim FABRIC`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The fabric: ibnetdiscover output, an ibsim net file or an opensm-subnet.lst; - for standard
    /// input.
    #[arg(required = true)]
    pub fabric: Option<PathBuf>,
    /// The name of the sockets: what clients find in `IBSIM_SOCKNAME`.
    #[arg(long, value_name = "NAME", default_value = "sim", env = "IBSIM_SOCKNAME",
        value_parser = socket_name)]
    pub socket: String,
    /// Listens on this UDP port of the loopback device in place of Unix sockets; clients find it in
    /// `IBSIM_SERVER_PORT`. Clients have the ports behind it, as far as these are free. Its
    /// console is that of `sim ctl --port N`.
    #[arg(long, value_name = "N", value_parser = port, conflicts_with = "replay")]
    pub port: Option<u16>,
    /// Runs a subnet manager at the first host with these engines [default: auto]. READY is printed
    /// once the subnet is up. `sm ctl --socket NAME-sm` queries it.
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true,
        default_missing_value = "auto", conflicts_with = "replay")]
    pub sm: Option<EngineList>,
    /// Has agents for ibtracer and ibping on these nodes, names with commas between them; on all nodes
    /// without names.
    #[arg(long, value_name = "NODES", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    pub agents: Option<String>,
    /// The seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Commands and the moments at which they are run: lines of `at TIME COMMAND`.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Makes so many random faults within the time of --random-time, and mends them at its end.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub random_faults: usize,
    /// The time in which random faults happen, such as 30s.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time,
        requires = "random_faults")]
    pub random_time: Duration,
    /// IP addresses of ports that are not the derived ones: lines of `GUID ADDRESS …`.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub addresses: Option<PathBuf>,
    /// Writes every packet that is sent or lost to a pcapng file; - for standard output.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Writes what happens to a file; - for standard error.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// How much is logged by --log.
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "events", requires = "log")]
    pub log_level: LevelArg,
    /// Writes everything that clients and consoles send to a file, for --replay.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Runs what was recorded again, without sockets and as fast as it goes, and ends. With the same
    /// fabric, seed and script it logs the same.
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// How long a packet takes from port to port beside the time of its bytes.
    #[arg(long, value_name = "TIME", default_value = "200ns", value_parser = time)]
    pub latency: Duration,
    /// The buffer of each lane of a port in bytes, at least 4224.
    #[arg(long, value_name = "BYTES", default_value_t = 16_384,
        value_parser = super::bytes::<u32>(4224, u32::MAX as u64))]
    pub lane_buffer: u32,
    /// The largest payload of packets that ports can carry, in bytes: 256, 512, 1024, 2048 or 4096. A subnet
    /// manager says how much they do.
    #[arg(long, value_name = "BYTES", default_value = "2048", value_parser = super::mtu)]
    pub mtu: Mtu,
    /// `LinearFDBCap` of all switches: the number of LIDs that they can forward, from LID 0 on.
    #[arg(short = 'L', long, value_name = "N", default_value_t = 49_152,
        value_parser = clap::value_parser!(u16).range(2..=49_152))]
    pub linear_cap: u16,
    /// `MulticastFDBCap` of all switches: the number of multicast LIDs that they can forward.
    #[arg(short = 'M', long, value_name = "N", default_value_t = 1024,
        value_parser = clap::value_parser!(u16).range(1..=16_383))]
    pub mcast_cap: u16,
    /// How long a client has to answer a request that was handed to it before whoever asked is told
    /// that it failed.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub answer_within: Duration,
}

impl ServeArgs {
    /// Returns the configuration of the simulator's process.
    pub(crate) fn config(&self) -> SimConfig {
        let name = self.port.map_or_else(|| self.socket.clone(), |port| port.to_string());
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
            lane_buffer: self.lane_buffer,
            mtu: self.mtu,
            linear_cap: self.linear_cap,
            mcast_cap: self.mcast_cap,
            answer_within: self.answer_within,
        }
    }
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelArg {
    /// Clients, links, states, traps, commands and lost packets.
    Events,
    /// Datagrams that are sent and delivered, too.
    Datagrams,
    /// Every packet at every port.
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
    /// The name of the simulator's sockets. Without it and --port the environment decides as for
    /// clients: `IBSIM_SERVER_PORT` (7070) where `IBSIM_SERVER_NAME` is set, else `IBSIM_SOCKNAME`
    /// (sim).
    #[arg(long, value_name = "NAME", value_parser = socket_name, conflicts_with = "port")]
    pub socket: Option<String>,
    /// The UDP port that the simulator was started with.
    #[arg(long, value_name = "N", value_parser = port)]
    pub port: Option<u16>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// The command, such as `unlink '"node"[1]'`, `stats` or `help`; behind `--` where a word of it
    /// begins with a hyphen.
    pub command: Vec<String>,
}

/// Refuses a name of sockets on the command line beside what does without them. One of the environment,
/// which is there for the clients, is none of the command line's.
pub(super) fn check(command: &mut clap::Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some(matches) = matches.subcommand_matches("sim") else { return Ok(()) };
    let given = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
    let other = ["port", "replay"].into_iter().find(|other| given(other));
    match other.filter(|_| given("socket")) {
        None => Ok(()),
        Some(other) => {
            let sim = command.find_subcommand_mut("sim").expect("it was found in the words");
            let message = format!("the argument '--socket' cannot be used with '--{other}'");
            Err(sim.error(ErrorKind::ArgumentConflict, message))
        }
    }
}

/// Returns what is wrong with words that are none of `sim FABRIC`, because they are for the console.
pub(super) fn misplaced(command: &mut clap::Command, words: &[OsString]) -> Option<clap::Error> {
    // Of words with an error in them, as much as can be understood.
    let matches = command.clone().ignore_errors(true).try_get_matches_from(words).ok()?;
    let fabric: &PathBuf = matches.subcommand_matches("sim")?.get_one("fabric")?;
    let message = console_hint(fabric)?;
    let sim = command.find_subcommand_mut("sim").expect("it was found in the words");
    Some(sim.error(ErrorKind::UnknownArgument, message))
}

/// Returns what to say of a file that is not there because its name is a command of the console.
pub(crate) fn console_hint(fabric: &Path) -> Option<String> {
    let command = console_command(fabric.to_str()?)?;
    let found = fabric.display();
    Some(format!(
        "{found} is a command for a simulator that runs: expected a fabric, or `ibfabric sim ctl {command} ...`"
    ))
}

/// Reads the number of a UDP port with room for clients behind it.
fn port(text: &str) -> Result<u16, String> {
    const ROOM: u16 = 200;
    const LAST: u16 = u16::MAX - ROOM;
    text.parse().ok().filter(|port| (1..=LAST).contains(port)).ok_or_else(|| {
        format!("expected 1 to {LAST}: clients have the ports behind it, and {ROOM} need room")
    })
}

/// Reads a name that sockets can be called by, with what is put behind it.
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
