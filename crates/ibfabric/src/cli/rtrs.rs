//! The command lines of `rtrs` and `nbd`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use ib_daemons::rtrs::bench::{BenchConfig, BlockSizes, ReadWrite};
use ib_daemons::rtrs::{
    Endpoint, Export, LinkConfig, NbdConfig, RemoteDeviceConfig, RtrsServeConfig,
};
pub use ib_daemons::rtrs::{Network, RequestedPath, Store};
use ib_rtrs::Policy;
use ib_storage::nbd::NbdAddress;

pub use control::{ControlArgs, CtlAction, CtlArgs, MountArgs};

use super::capture::live::CaptureArgs;
use super::examples::examples_text;
use super::rdma::TransportArgs;
use super::values::{ListenAddress, bytes, in_range, simulator, size};

mod control;

/// The default `rdma_cm` port of RNBD servers.
pub const PORT: u16 = 1234;

/// The port that IANA has assigned to NBD.
const NBD_PORT: u16 = 10_809;

/// Arguments of `rtrs`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct RtrsArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: RtrsCommand,
}

/// The subcommands of `rtrs`.
#[derive(Debug, Subcommand)]
pub enum RtrsCommand {
    /// Serves block devices to the RNBD clients of ibfabric and of Linux kernels.
    #[command(after_long_help = examples_text("rtrs-serve"))]
    Serve(Box<ServeArgs>),
    /// Benchmarks and verifies a device of an RNBD server, which is ibfabric or a Linux kernel.
    #[command(after_long_help = examples_text("rtrs-bench"))]
    Bench(Box<BenchArgs>),
    /// Prints statistics of a running RTRS server or client, and changes its paths.
    #[command(after_long_help = examples_text("rtrs-ctl"))]
    Ctl(CtlArgs),
    /// Mounts the control files of `rtrs ctl` as a file system, like the kernel's files in /sys/devices/virtual.
    /// Exits when the file system is unmounted, or on a signal.
    #[command(after_long_help = examples_text("rtrs-mount"))]
    Mount(MountArgs),
}

/// The local ports, and parameters of the transport.
#[derive(Clone, Debug, Args)]
pub struct LinkArgs {
    /// Attaches to ports of the running `ibfabric sim` with this name [default name: the value of
    /// `IBSIM_SOCKNAME`, or sim].
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub attach: Option<String>,
    /// Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port
    /// other than the first. May be repeated [default: first host].
    #[arg(long, value_name = "NODE[:PORT]", requires = "attach")]
    pub node: Vec<String>,
    /// Queries this ACM service for names and paths: a socket, or the TCP port of a host.
    /// `RDMA_CM_USE_IB_ACM=1` in the environment selects the service of this machine. If the service fails,
    /// the SA is queried.
    #[arg(long, value_name = "SERVICE", requires = "attach")]
    pub acm: Option<String>,
    /// Local UDP port of RoCEv2. Ports other than 4791 are for tests only.
    #[arg(long, value_name = "PORT", default_value_t = 4791, conflicts_with = "attach")]
    pub udp_port: u16,
    /// More parameters of the transport.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// File with a shared key of at least 16 bytes, which both ends need. Linux does not support keys.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

impl LinkArgs {
    fn config(&self) -> LinkConfig {
        LinkConfig {
            attach: self.attach.as_deref().map(simulator),
            node: self.node.clone(),
            acm: self.acm.clone(),
            udp_port: self.udp_port,
            peer_udp_port: self.transport.peer_udp_port,
            allow_zero_checksum: self.transport.allow_zero_checksum,
            mtu: self.transport.mtu,
            spin: self.transport.busy_poll_us,
            key_file: self.key_file.clone(),
        }
    }
}

/// Arguments of `rtrs serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Local address and `rdma_cm` port to listen at, preferably on loopback or on a private network. May be
    /// repeated.
    #[arg(
        long,
        value_name = "ADDR[:PORT]",
        required_unless_present = "attach",
        conflicts_with = "attach"
    )]
    #[arg(value_parser = own_address)]
    pub listen: Vec<ListenAddress>,
    /// Device to export: a file, a block device, or memory of the size SIZE, such as mem:64M. May be repeated.
    #[arg(long, value_name = "NAME=FILE|mem:SIZE|DEVICE", required = true)]
    pub export: Vec<ExportArg>,
    /// `rdma_cm` port for --attach, and for each --listen without a port.
    #[arg(short, long, value_name = "PORT", default_value_t = PORT)]
    pub port: u16,
    /// Queue depth of a session: maximum number of outstanding requests.
    #[arg(long, value_name = "N", default_value = "512", value_parser = in_range(1, 8192))]
    pub queue_depth: u64,
    /// Maximum data size of a request, in bytes. Linux clients require that the sum of this size and the header size
    /// is a power of two. The default meets this condition.
    #[arg(long, value_name = "BYTES", default_value = "126976", value_parser = bytes::<u64>(4096, 4 << 20))]
    pub max_io_size: u64,
    /// Does not invalidate the rkeys of chunks after each request. This is faster, but a client can change
    /// written data while the server processes it.
    #[arg(long)]
    pub no_always_invalidate: bool,
    /// Network of accepted clients, as ADDR/BITS. May be repeated [default: all clients].
    #[arg(long, value_name = "CIDR", conflicts_with = "attach")]
    pub allow: Vec<Network>,
    /// The control socket and metrics.
    #[command(flatten)]
    pub control: ControlArgs,
    /// The capture of the program's own packets.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// The local ports, and parameters of the transport.
    #[command(flatten)]
    pub link: LinkArgs,
}

/// The server, the session and the device.
#[derive(Clone, Debug, Args)]
pub struct RemoteArgs {
    /// Path to the server: the server's IP address, optionally preceded by a local address and @. May be repeated. On
    /// a simulated fabric, an address is an IP address (ip:ADDR), a GID (gid:GID), NODE, NODE:PORT, a LID, or a name
    /// that --acm resolves. Paths without a local address use the ports of --node in turn.
    #[arg(long, value_name = "[SRC@]ADDR", required = true)]
    pub path: Vec<RequestedPath>,
    /// Name of the device at the server.
    #[arg(long, value_name = "NAME")]
    pub device: String,
    /// `rdma_cm` port of the server.
    #[arg(short, long, value_name = "PORT", default_value_t = PORT)]
    pub port: u16,
    /// Name of the session [default: made from the host name and the process ID].
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Multipath policy: selects the path of a request.
    #[arg(long, value_enum, default_value = "min-inflight")]
    pub policy: PolicyArg,
    /// Number of connections per path [default: number of processors + 1].
    #[arg(long, value_name = "N", value_parser = in_range(1, 4096))]
    pub connections: Option<u64>,
    /// Requests the server to invalidate the rkey of each read, instead of invalidating it locally.
    #[arg(long)]
    pub need_invalidation: bool,
    /// Time limit in seconds for opening the device at startup.
    #[arg(long, value_name = "S", default_value = "30", value_parser = seconds)]
    pub connect_timeout: Duration,
    /// Trusts a Linux server to keep unflushed writes when all paths are lost. Without this option, the first
    /// flush after such a loss fails, because the server may have lost the writes. Servers of ibfabric report lost
    /// writes themselves.
    #[arg(long)]
    pub trust_cache: bool,
    /// Delay in milliseconds before a failed path is reconnected.
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    pub reconnect_delay: u64,
    /// The control socket and metrics.
    #[command(flatten)]
    pub control: ControlArgs,
    /// The capture of the program's own packets.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// The local ports, and parameters of the transport.
    #[command(flatten)]
    pub link: LinkArgs,
}

/// Arguments of `rtrs bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The server and its device.
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Access pattern.
    #[arg(long, value_enum, default_value = "randread")]
    pub rw: RwArg,
    /// Request size, in bytes or with the suffix K, M or G. Requests that are larger than the server accepts are
    /// split.
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = size)]
    pub bs: u64,
    /// Random request sizes from MIN to MAX. Sizes and offsets are multiples of MIN.
    #[arg(long, value_name = "MIN-MAX", conflicts_with = "bs", value_parser = block_sizes)]
    pub bsrange: Option<BlockSizes>,
    /// Flushes after every N writes; 0 for never.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub fsync: u64,
    /// Discards a block after every N writes; 0 for never.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub trim: u64,
    /// Number of outstanding requests per job.
    #[arg(long, value_name = "N", default_value = "32", value_parser = in_range(1, 8192))]
    pub iodepth: u64,
    /// Number of jobs, all in one session. Each job has its own part of the device for sequential access, and its own
    /// random offsets.
    #[arg(long, value_name = "N", default_value = "1", value_parser = in_range(1, 1024))]
    pub numjobs: u64,
    /// Run time in seconds.
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub runtime: Duration,
    /// Maximum number of bytes to read or write, with or without the suffix K, M or G [default: limited only by
    /// --runtime].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub io_size: Option<u64>,
    /// Size of the used part of the device, from its start, in bytes or with the suffix K, M or G [default:
    /// the whole device].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// Writes blocks that contain their offset and a write count, and verifies blocks that are read.
    #[arg(long)]
    pub verify: bool,
    /// Idle time in seconds before the benchmark starts.
    #[arg(long, value_name = "S", default_value = "0", value_parser = seconds)]
    pub start_delay: Duration,
    /// Seed of the random offsets.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Prints the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `nbd`.
#[derive(Debug, Args)]
pub struct NbdArgs {
    /// The server and its device.
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Unix socket for NBD clients.
    #[arg(
        long,
        value_name = "PATH",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    pub socket: Option<PathBuf>,
    /// TCP address for NBD clients, on loopback [default port: 10809].
    #[arg(long, value_name = "ADDR[:PORT]")]
    pub listen: Option<ListenAddress>,
    /// Exports the device read-only.
    #[arg(long)]
    pub read_only: bool,
    /// Maximum number of outstanding requests of the device.
    #[arg(long, value_name = "N", default_value = "128", value_parser = in_range(1, 8192))]
    pub queue_depth: u64,
}

impl ServeArgs {
    /// Returns the configuration of the server.
    pub(crate) fn config(&self) -> RtrsServeConfig {
        let export =
            |export: &ExportArg| Export { name: export.name.clone(), store: export.store.clone() };
        RtrsServeConfig {
            listen: self.listen.iter().map(|listen| listen.with_default_port(self.port)).collect(),
            export: self.export.iter().map(export).collect(),
            port: self.port,
            queue_depth: self.queue_depth,
            max_io_size: self.max_io_size,
            no_always_invalidate: self.no_always_invalidate,
            allow: self.allow.clone(),
            control: self.control.config(),
            capture: self.capture.own(),
            link: self.link.config(),
        }
    }
}

impl RemoteArgs {
    /// Returns the configuration of the session and its device.
    pub(crate) fn config(&self) -> RemoteDeviceConfig {
        RemoteDeviceConfig {
            path: self.path.clone(),
            device: self.device.clone(),
            port: self.port,
            session: self.session.clone(),
            policy: match self.policy {
                PolicyArg::RoundRobin => Policy::RoundRobin,
                PolicyArg::MinInflight => Policy::MinInflight,
                PolicyArg::MinLatency => Policy::MinLatency,
            },
            connections: self.connections,
            need_invalidation: self.need_invalidation,
            wait: self.connect_timeout,
            trust_cache: self.trust_cache,
            reconnect_delay: self.reconnect_delay,
            control: self.control.config(),
            capture: self.capture.own(),
            link: self.link.config(),
        }
    }
}

impl NbdArgs {
    /// Returns the configuration of the NBD server and its device.
    pub(crate) fn config(&self) -> NbdConfig {
        NbdConfig {
            remote: self.remote.config(),
            address: match (&self.socket, self.listen) {
                (Some(path), _) => NbdAddress::Unix(path.clone()),
                (None, Some(listen)) => NbdAddress::Tcp(listen.with_default_port(NBD_PORT)),
                (None, None) => unreachable!("clap requires --socket or --listen"),
            },
            read_only: self.read_only,
            depth: self.queue_depth as usize,
        }
    }
}

/// The access pattern of `rtrs bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RwArg {
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Random reads.
    Randread,
    /// Random writes.
    Randwrite,
    /// Random reads and writes, half of each.
    Randrw,
    /// Sequential discards.
    Trim,
    /// Random discards.
    Randtrim,
}

impl From<RwArg> for ReadWrite {
    fn from(rw: RwArg) -> Self {
        match rw {
            RwArg::Read => Self::Read,
            RwArg::Write => Self::Write,
            RwArg::Randread => Self::Randread,
            RwArg::Randwrite => Self::Randwrite,
            RwArg::Randrw => Self::Randrw,
            RwArg::Trim => Self::Trim,
            RwArg::Randtrim => Self::Randtrim,
        }
    }
}

impl BenchArgs {
    /// Returns the configuration of the benchmark.
    pub(crate) fn config(&self) -> BenchConfig {
        BenchConfig {
            rw: self.rw.into(),
            sizes: self.bsrange.unwrap_or(BlockSizes { least: self.bs, most: self.bs }),
            fsync: self.fsync,
            trim: self.trim,
            iodepth: self.iodepth,
            jobs: self.numjobs,
            runtime: self.runtime,
            io_size: self.io_size,
            size: self.size,
            verify: self.verify,
            idle: self.start_delay,
            seed: self.seed,
        }
    }
}

/// Parses a range of request sizes: MIN-MAX, in bytes or with the suffix K, M, G or T.
fn block_sizes(text: &str) -> Result<BlockSizes, String> {
    let (least, most) = text.split_once('-').ok_or("expected MIN-MAX, such as 512-1M")?;
    let (least, most) = (size(least)?, size(most)?);
    if least > most {
        return Err(format!("{least} is more than {most}"));
    }
    Ok(BlockSizes { least, most })
}

/// The multipath policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyArg {
    /// The paths in turn.
    RoundRobin,
    /// The path with the fewest requests in flight.
    MinInflight,
    /// The path with the shortest round trip of its last heartbeat.
    MinLatency,
}

/// Parses a local address, with an optional port.
fn own_address(text: &str) -> Result<ListenAddress, String> {
    if let Ok(listen) = text.parse() {
        return Ok(listen);
    }
    match text.parse()? {
        Endpoint::Ip(address) => Ok(ListenAddress { address, port: None }),
        Endpoint::Gid(_) => Err(format!("{text:?}: a GID needs --attach and --node")),
        Endpoint::Name(_) => Err(format!("{text:?}: expected an IP address")),
    }
}

/// A device to export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportArg {
    /// The name by which clients open the device.
    pub name: String,
    /// The file, block device or memory that holds the device's data.
    pub store: Store,
}

impl FromStr for ExportArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, store) = text
            .split_once('=')
            .filter(|(name, store)| !name.is_empty() && !store.is_empty())
            .ok_or("expected NAME=FILE, NAME=mem:SIZE or NAME=DEVICE")?;
        let store = match store.strip_prefix("mem:") {
            Some(text) => Store::Memory(size(text)?),
            None => Store::File(store.into()),
        };
        Ok(Self { name: name.to_owned(), store })
    }
}

/// Parses a time in seconds, such as `10` or `0.5`, of at most one year.
fn seconds(text: &str) -> Result<Duration, String> {
    const MOST: Duration = Duration::from_secs(365 * 24 * 3600);
    let duration = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.filter(|it| *it <= MOST).ok_or_else(|| {
        format!(
            "{text:?}: expected seconds, such as 10 or 0.5, and no more than {}",
            MOST.as_secs()
        )
    })
}

#[cfg(test)]
mod tests;
