//! The command lines of `rtrs` and `nbd`.

use std::net::{IpAddr, SocketAddr};
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
use ib_types::Mtu;

pub use control::{ControlArgs, CtlAction, CtlArgs, MountArgs};

use super::capture::live::CaptureArgs;
use super::{bytes, examples_text, in_range, mtu};
use crate::output::Format;

mod control;

/// The port of RNBD's server.
pub const PORT: u16 = 1234;

/// Arguments of `rtrs`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct RtrsArgs {
    /// What is done.
    #[command(subcommand)]
    pub command: RtrsCommand,
}

/// What `rtrs` does.
#[derive(Debug, Subcommand)]
pub enum RtrsCommand {
    /// Serves block devices to clients of RNBD: of this project, and to Linux kernels.
    #[command(after_long_help = examples_text("rtrs-serve"))]
    Serve(Box<ServeArgs>),
    /// Measures and verifies a device of a server, of this project or of a Linux kernel.
    #[command(after_long_help = examples_text("rtrs-bench"))]
    Bench(Box<BenchArgs>),
    /// Shows statistics of a program that runs, and changes its paths.
    #[command(after_long_help = examples_text("rtrs-ctl"))]
    Ctl(CtlArgs),
    /// Offers the same as files, as the kernel does below /sys/devices/virtual, until it is told to end.
    #[command(after_long_help = examples_text("rtrs-mount"))]
    Mount(MountArgs),
}

/// How packets go.
#[derive(Clone, Debug, Args)]
pub struct LinkArgs {
    /// A running `ibfabric sim`, by the name of its sockets, at ports of which the adapters are.
    #[arg(long, value_name = "NAME")]
    pub attach: Option<String>,
    /// A node of the simulated fabric, with `:PORT` behind it where that is not its first port; an address, a GID or a LID
    /// will do, too; several may be given. The first host without it.
    #[arg(long, value_name = "NODE[:PORT]", requires = "attach")]
    pub node: Vec<String>,
    /// Asks a service of IB ACM for paths and for names, at a socket or a host's TCP port, as `RDMA_CM_USE_IB_ACM=1` in the
    /// environment does for the one of this machine; where it fails, subnet administration.
    #[arg(long, value_name = "SERVICE", requires = "attach")]
    pub acm: Option<String>,
    /// The UDP port of RoCEv2 here: another one than 4791 only makes sense between tests.
    #[arg(long, value_name = "PORT", default_value_t = 4791, conflicts_with = "attach")]
    pub udp_port: u16,
    /// The UDP port at the other end, when it is another one.
    #[arg(long, value_name = "PORT", conflicts_with = "attach")]
    pub peer_udp_port: Option<u16>,
    /// Takes IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One of 2^15
    /// corruptions of such packets is not detected.
    #[arg(long, conflicts_with = "attach")]
    pub allow_zero_checksum: bool,
    /// The largest packets in bytes: 256, 512, 1024, 2048 or 4096; what the network carries without it.
    #[arg(short, long, value_name = "BYTES", value_parser = mtu)]
    pub mtu: Option<Mtu>,
    /// How long something to do is looked for until the program sleeps, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 0)]
    pub spin: u64,
    /// A file with a key, of at least 16 bytes, that both ends have to know. Linux knows none.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

impl LinkArgs {
    fn config(&self) -> LinkConfig {
        LinkConfig {
            attach: self.attach.clone(),
            node: self.node.clone(),
            acm: self.acm.clone(),
            udp_port: self.udp_port,
            peer_udp_port: self.peer_udp_port,
            allow_zero_checksum: self.allow_zero_checksum,
            mtu: self.mtu,
            spin: self.spin,
            key_file: self.key_file.clone(),
        }
    }
}

/// Arguments of `rtrs serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// An own address to listen at; several may be given. Addresses of loopback and of private networks are good ones.
    #[arg(
        long,
        value_name = "ADDR",
        required_unless_present = "attach",
        conflicts_with = "attach"
    )]
    #[arg(value_parser = own_address)]
    pub listen: Vec<IpAddr>,
    /// A device that is offered: a file, a block device, or so much memory (mem:64M); several may be given.
    #[arg(long, value_name = "NAME=FILE|mem:SIZE|DEVICE", required = true)]
    pub export: Vec<ExportArg>,
    /// The port of `rdma_cm`.
    #[arg(short, long, value_name = "PORT", default_value_t = PORT)]
    pub port: u16,
    /// How many requests a session may have under way.
    #[arg(long, value_name = "N", default_value = "512", value_parser = in_range(1, 8192))]
    pub queue_depth: u64,
    /// The longest data of a request in bytes; the chunks, with headers, are a power of two for Linux.
    #[arg(long, value_name = "BYTES", default_value = "126976", value_parser = bytes::<u64>(4096, 4 << 20))]
    pub max_io_size: u64,
    /// Lets the keys of chunks stay open: faster, and a client can change what it has written while it is processed.
    #[arg(long)]
    pub no_always_invalidate: bool,
    /// A network whose clients may connect, as ADDR/BITS; several may be given; everybody without it.
    #[arg(long, value_name = "CIDR", conflicts_with = "attach")]
    pub allow: Vec<Network>,
    /// How others see and change it.
    #[command(flatten)]
    pub control: ControlArgs,
    /// The capture of its own packets.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// How packets go.
    #[command(flatten)]
    pub link: LinkArgs,
}

/// The server and its device.
#[derive(Clone, Debug, Args)]
pub struct RemoteArgs {
    /// A path to the server: its address, with the own one before an @ where that matters; several may be given. In a
    /// simulated fabric it may be an address (ip:ADDR), a GID (gid:GID), NODE or NODE:PORT, a LID, or a name that the service
    /// of --acm knows; a path without an own end starts at the next one of --node.
    #[arg(long, value_name = "[SRC@]ADDR", required = true)]
    pub path: Vec<RequestedPath>,
    /// The device's name at the server.
    #[arg(long, value_name = "NAME")]
    pub device: String,
    /// The port of `rdma_cm` at the server.
    #[arg(short, long, value_name = "PORT", default_value_t = PORT)]
    pub port: u16,
    /// The name of the session; of this machine and process without it.
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Which path a request takes.
    #[arg(long, value_enum, default_value = "min-inflight")]
    pub policy: PolicyArg,
    /// How many connections each path has; one more than there are processors without it.
    #[arg(long, value_name = "N", value_parser = in_range(1, 4096))]
    pub connections: Option<u64>,
    /// Has the server invalidate the key of each read, instead of closing it here.
    #[arg(long)]
    pub need_invalidation: bool,
    /// How long the device may take to be open at first, in seconds.
    #[arg(long, value_name = "S", default_value = "30", value_parser = seconds)]
    pub wait: Duration,
    /// Believes a server of Linux, which does not say so, to have kept what was not flushed when all paths were lost.
    /// Otherwise the next flush fails once, as what was written before may be gone with that machine.
    #[arg(long)]
    pub trust_cache: bool,
    /// How long to wait before a path that has failed is connected again, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    pub reconnect_delay: u64,
    /// How others see and change it.
    #[command(flatten)]
    pub control: ControlArgs,
    /// The capture of its own packets.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// How packets go.
    #[command(flatten)]
    pub link: LinkArgs,
}

/// Arguments of `rtrs bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The server and its device.
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// What is done.
    #[arg(long, value_enum, default_value = "randread")]
    pub rw: RwArg,
    /// The length of a request, with K, M or G; more than the server takes at once is split.
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = size)]
    pub bs: u64,
    /// Requests of all lengths between two, multiples of the shorter one, as are their places.
    #[arg(long, value_name = "MIN-MAX", conflicts_with = "bs", value_parser = block_sizes)]
    pub bsrange: Option<BlockSizes>,
    /// Flushes after so many writes.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub fsync: u64,
    /// Discards a place after so many writes.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub trim: u64,
    /// How many requests are under way at once, of each job.
    #[arg(long, value_name = "N", default_value = "32", value_parser = in_range(1, 8192))]
    pub iodepth: u64,
    /// How many jobs there are, all in one session; each has an own part of the device for what it does in sequence, and
    /// own random places.
    #[arg(long, value_name = "N", default_value = "1", value_parser = in_range(1, 1024))]
    pub jobs: u64,
    /// How long, in seconds.
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub runtime: Duration,
    /// How much is read or written at most, with K, M or G; as much as there is time for without it.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub io_size: Option<u64>,
    /// How much of the device is used, from its start, with K, M or G; all of it without it.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// Writes what tells where it belongs and how often it was written, and compares what is read with it.
    #[arg(long)]
    pub verify: bool,
    /// How long the device is left alone before, in seconds.
    #[arg(long, value_name = "S", default_value = "0", value_parser = seconds)]
    pub idle: Duration,
    /// The seed of the random places.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `nbd`.
#[derive(Debug, Args)]
pub struct NbdArgs {
    /// The server and its device.
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Where programs connect: a socket in the file system.
    #[arg(long, value_name = "PATH", required_unless_present = "tcp", conflicts_with = "tcp")]
    pub socket: Option<PathBuf>,
    /// Where programs connect: an address of loopback and a port, 10809 being the usual one.
    #[arg(long, value_name = "ADDR:PORT")]
    pub tcp: Option<SocketAddr>,
    /// Offers the device to be read only.
    #[arg(long)]
    pub read_only: bool,
    /// How many requests of the device may be under way.
    #[arg(long, value_name = "N", default_value = "128", value_parser = in_range(1, 8192))]
    pub depth: u64,
}

impl ServeArgs {
    /// Returns the configuration of the server.
    pub(crate) fn config(&self) -> RtrsServeConfig {
        let export =
            |export: &ExportArg| Export { name: export.name.clone(), store: export.store.clone() };
        RtrsServeConfig {
            listen: self.listen.clone(),
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
            wait: self.wait,
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
            address: match (&self.socket, self.tcp) {
                (Some(path), _) => NbdAddress::Unix(path.clone()),
                (None, Some(address)) => NbdAddress::Tcp(address),
                (None, None) => unreachable!("one of both is asked for"),
            },
            read_only: self.read_only,
            depth: self.depth as usize,
        }
    }
}

/// What `rtrs bench` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RwArg {
    /// Reads one place after the other.
    Read,
    /// Writes one place after the other.
    Write,
    /// Reads random places.
    Randread,
    /// Writes random places.
    Randwrite,
    /// Reads and writes random places, half of each.
    Randrw,
    /// Discards one place after the other.
    Trim,
    /// Discards random places.
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
            jobs: self.jobs,
            runtime: self.runtime,
            io_size: self.io_size,
            size: self.size,
            verify: self.verify,
            idle: self.idle,
            seed: self.seed,
        }
    }
}

/// Parses MIN-MAX.
fn block_sizes(text: &str) -> Result<BlockSizes, String> {
    let (least, most) = text.split_once('-').ok_or("expected MIN-MAX, such as 512-1M")?;
    let (least, most) = (size(least)?, size(most)?);
    if least > most {
        return Err(format!("{least} is more than {most}"));
    }
    Ok(BlockSizes { least, most })
}

/// Which path a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyArg {
    /// One after the other.
    RoundRobin,
    /// That with the fewest requests under way.
    MinInflight,
    /// That whose last heartbeat was fastest.
    MinLatency,
}

/// Reads an own address.
fn own_address(text: &str) -> Result<IpAddr, String> {
    match text.parse()? {
        Endpoint::Ip(address) => Ok(address),
        Endpoint::Gid(_) => Err(format!("{text:?}: a GID needs --attach and --node")),
        Endpoint::Name(_) => Err(format!("{text:?}: expected an IP address")),
    }
}

/// A device that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportArg {
    /// Its name.
    pub name: String,
    /// Where its data lies.
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

/// Reads a time in seconds, with or without a fraction, of up to a year.
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

/// Reads a size in bytes, with K, M, G or T for powers of 1024.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?}: expected a number of bytes, with K, M, G or T behind it");
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let (digits, unit) = match bare.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(digits) => (digits, 10 * (1 + "KMGT".find(&bare[digits.len()..]).unwrap_or(0) as u32)),
        None => (bare, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests;
