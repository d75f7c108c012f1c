//! The command line of `rdma`.

use std::net::IpAddr;

use clap::{Args, Subcommand, ValueEnum};
use ib_types::Mtu;

use super::capture::live::CaptureArgs;
use super::examples::examples_text;
use super::values::{ListenAddress, bytes, mtu};

/// Arguments of `rdma`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct RdmaArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: RdmaCommand,
}

impl RdmaCommand {
    /// Returns the subcommand's own number of `--verbose` levels. One more `--verbose` prints run time and peak memory.
    pub(crate) const fn details(&self) -> u8 {
        matches!(self, Self::Devinfo(_) | Self::Serve(_) | Self::Ping(_)) as u8
    }
}

/// The subcommands of `rdma`.
#[derive(Debug, Subcommand)]
pub enum RdmaCommand {
    /// Prints the attributes and counters of the HCA at an address.
    #[command(after_long_help = examples_text("devinfo"))]
    Devinfo(DevinfoArgs),
    /// Serves `rdma bw` and `rdma lat`, and also `rping`, `ucmatose` and the programs of perftest.
    #[command(after_long_help = examples_text("serve"))]
    Serve(ServeArgs),
    /// Pings a server of rping.
    #[command(after_long_help = examples_text("ping"))]
    Ping(PingArgs),
    /// Exchanges messages with a server of ucmatose.
    #[command(after_long_help = examples_text("cmatose"))]
    Cmatose(CmatoseArgs),
    /// Exchanges messages in round trips, interoperable with `ibv_rc_pingpong`.
    #[command(after_long_help = examples_text("pingpong"))]
    Pingpong(PingpongArgs),
    /// Measures bandwidth.
    #[command(after_long_help = examples_text("bw"))]
    Bw(PerfArgs),
    /// Measures latency.
    #[command(after_long_help = examples_text("lat"))]
    Lat(PerfArgs),
}

/// The local HCA.
#[derive(Clone, Debug, Args)]
pub struct AdapterArgs {
    /// Attaches the HCA to a port of the running `ibfabric sim` with this name [default name: the value of
    /// `IBSIM_SOCKNAME`, or sim].
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub attach: Option<String>,
    /// Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port
    /// other than the first [default: first host].
    #[arg(long, value_name = "NODE[:PORT]", requires = "attach")]
    pub node: Option<String>,
    /// Queries this ACM service for paths: a socket, or the TCP port of a host. `RDMA_CM_USE_IB_ACM=1` in the
    /// environment selects the service of this machine. If the service fails, the SA is queried.
    #[arg(long, value_name = "SERVICE", requires = "attach")]
    pub acm: Option<String>,
    /// UDP port of RoCEv2 at both ends. Ports other than 4791 are for tests only.
    #[arg(long, value_name = "PORT", default_value_t = 4791, conflicts_with = "attach")]
    pub udp_port: u16,
    /// More parameters of the transport.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// The capture of the program's own packets.
    #[command(flatten)]
    pub capture: CaptureArgs,
}

/// Parameters of the transport that `rdma` and `rtrs` share.
#[derive(Clone, Debug, Args)]
pub struct TransportArgs {
    /// UDP port of RoCEv2 at the remote end [default: --udp-port].
    #[arg(long, value_name = "PORT", conflicts_with = "attach")]
    pub peer_udp_port: Option<u16>,
    /// Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in
    /// 2^15 corruptions of such packets is not detected.
    #[arg(long, conflicts_with = "attach")]
    pub allow_zero_checksum: bool,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the largest that the network carries].
    #[arg(short, long, value_name = "BYTES", value_parser = mtu)]
    pub mtu: Option<Mtu>,
    /// Microseconds to poll for events before the program sleeps.
    #[arg(long, value_name = "US", default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub busy_poll_us: u64,
}

/// The local address of a program that does not listen for `rdma_cm` connections.
#[derive(Clone, Debug, Args)]
pub struct LocalAddress {
    /// Local address [default: first address of an active interface; a loopback address for peers on
    /// loopback].
    #[arg(long, value_name = "ADDR", conflicts_with = "attach")]
    pub from: Option<IpAddr>,
}

/// Arguments of `rdma devinfo`.
#[derive(Debug, Args)]
pub struct DevinfoArgs {
    /// The local address.
    #[command(flatten)]
    pub local: LocalAddress,
    /// The HCA.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// Also prints the limits and counters of the HCA.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Prints the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `rdma serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Local address to listen at [default: first address of an active interface].
    #[arg(long, value_name = "ADDR[:PORT]", conflicts_with = "attach")]
    pub listen: Option<ListenAddress>,
    /// The HCA.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// `rdma_cm` port for `rdma bw`, `rdma lat` and other clients of ibfabric, unless --listen has a port.
    #[arg(short, long, value_name = "PORT", default_value_t = PORT)]
    pub port: u16,
    /// Also serves `rping` at --rping-port.
    #[arg(long)]
    pub rping: bool,
    /// `rdma_cm` port for rping clients.
    #[arg(long, value_name = "PORT", default_value_t = RPING_PORT)]
    pub rping_port: u16,
    /// Also serves `ucmatose` at --ucmatose-port.
    #[arg(long)]
    pub ucmatose: bool,
    /// `rdma_cm` port for ucmatose clients.
    #[arg(long, value_name = "PORT", default_value_t = UCMATOSE_PORT)]
    pub ucmatose_port: u16,
    /// Messages to exchange with clients of ucmatose.
    #[command(flatten)]
    pub messages: Messages,
    /// Also serves clients of this program of perftest 4.5-0.17 at --perftest-port. The clients need the option
    /// `-R`.
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub perftest: Option<PerftestArg>,
    /// `rdma_cm` port for perftest clients.
    #[arg(long, value_name = "PORT", default_value_t = PERFTEST_PORT)]
    pub perftest_port: u16,
    /// Message size of the `ib_write_lat` client in bytes. The client does not report this size to the server.
    #[arg(long, value_name = "BYTES", default_value = "2", value_parser = bytes::<u64>(1, MOST))]
    pub perftest_size: u64,
    /// Exits after N connections have ended. The exit status is 2 if a client violated its protocol [default: never].
    #[arg(long, value_name = "N")]
    pub exit_after: Option<u64>,
    /// Prints received messages.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// Arguments of `rdma ping`.
#[derive(Debug, Args)]
pub struct PingArgs {
    /// Server: an IP address; with --attach also NODE, NODE:PORT, a GID or a LID.
    #[arg(value_name = "PEER")]
    pub peer: String,
    /// The local address.
    #[command(flatten)]
    pub local: LocalAddress,
    /// The HCA.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// `rdma_cm` port of the server.
    #[arg(short, long, value_name = "PORT", default_value_t = RPING_PORT)]
    pub port: u16,
    /// Number of pings.
    #[arg(short = 'C', long, value_name = "N", default_value_t = 10)]
    pub count: u64,
    /// Size of a ping in bytes, or with the suffix K.
    #[arg(short = 'S', long, value_name = "BYTES", default_value_t = 64,
        value_parser = bytes::<u32>(2, 65_535))]
    pub size: u32,
    /// Prints the received data of each ping.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Prints the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Number and size of the messages of ucmatose. Both ends need the same values.
#[derive(Clone, Copy, Debug, Args)]
pub struct Messages {
    /// Number of messages of ucmatose in each direction.
    #[arg(short = 'C', long = "messages", value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(..=16_384))]
    pub count: u32,
    /// Size of a message of ucmatose in bytes, or with the suffix K or M.
    #[arg(short = 'S', long = "message-size", value_name = "BYTES", default_value_t = 100,
        value_parser = bytes::<u32>(0, 1 << 24))]
    pub size: u32,
}

/// Arguments of `rdma cmatose`.
#[derive(Debug, Args)]
pub struct CmatoseArgs {
    /// Server: an IP address; with --attach also NODE, NODE:PORT, a GID or a LID.
    #[arg(value_name = "PEER")]
    pub peer: String,
    /// The local address.
    #[command(flatten)]
    pub local: LocalAddress,
    /// The HCA.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// `rdma_cm` port of the server.
    #[arg(short, long, value_name = "PORT", default_value_t = UCMATOSE_PORT)]
    pub port: u16,
    /// Number of connections. A `ucmatose` server needs the same number in its option `-c`.
    #[arg(short, long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub connections: u32,
    /// Number and size of the messages to exchange.
    #[command(flatten)]
    pub messages: Messages,
    /// Prints the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `rdma pingpong`.
#[derive(Debug, Args)]
pub struct PingpongArgs {
    /// IP address of the server [default: run as the server].
    pub peer: Option<IpAddr>,
    /// The local address.
    #[command(flatten)]
    pub local: LocalAddress,
    /// The HCA.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// TCP port on which the ends exchange their QPNs and addresses.
    #[arg(short, long, value_name = "PORT", default_value_t = 18_515)]
    pub port: u16,
    /// Size of a message in bytes, or with the suffix K, M or G.
    #[arg(short, long, value_name = "BYTES", default_value = "4096", value_parser = bytes::<u64>(0, MOST))]
    pub size: u64,
    /// Number of round trips.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000,
        value_parser = clap::value_parser!(u64).range(1..))]
    pub iters: u64,
    /// Number of receives to post at a time.
    #[arg(short, long, value_name = "N", default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub rx_depth: u32,
    /// Verifies received data, like `ibv_rc_pingpong -c`. Both ends need this option.
    #[arg(short, long)]
    pub chk: bool,
    /// Prints the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// The operation of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OpArg {
    /// SEND.
    Send,
    /// RDMA WRITE.
    Write,
    /// RDMA READ.
    Read,
    /// RDMA WRITE with immediate data; not for `lat`.
    WriteImm,
    /// Atomic Fetch and Add; not for `lat`.
    FetchAdd,
    /// Atomic Compare and Swap; not for `lat`.
    CompareSwap,
}

impl OpArg {
    /// Returns true for the atomic operations, whose operand has 8 bytes.
    #[must_use]
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::FetchAdd | Self::CompareSwap)
    }
}

/// A program of perftest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PerftestArg {
    /// RDMA WRITE, bandwidth.
    #[value(name = "ib_write_bw")]
    WriteBw,
    /// RDMA READ, bandwidth.
    #[value(name = "ib_read_bw")]
    ReadBw,
    /// SEND, bandwidth.
    #[value(name = "ib_send_bw")]
    SendBw,
    /// RDMA WRITE, latency.
    #[value(name = "ib_write_lat")]
    WriteLat,
    /// RDMA READ, latency.
    #[value(name = "ib_read_lat")]
    ReadLat,
    /// SEND, latency.
    #[value(name = "ib_send_lat")]
    SendLat,
}

/// Arguments of `rdma bw` and `rdma lat`.
#[derive(Clone, Debug, Args)]
pub struct PerfArgs {
    /// Server, which runs `ibfabric rdma serve` or a program of perftest.
    #[arg(value_name = "PEER")]
    pub peer: String,
    /// The local address.
    #[command(flatten)]
    pub local: LocalAddress,
    /// The HCA.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// `rdma_cm` port of the server [default: 18516; with --perftest 18515].
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<u16>,
    /// The server is a program of perftest 4.5-0.17 with `-R`, such as `ib_write_bw`. It needs the same
    /// operation, sizes and counts as this client.
    #[arg(long)]
    pub perftest: bool,
    /// Operation to measure.
    #[arg(long, value_enum, default_value = "write")]
    pub op: OpArg,
    /// Message size in bytes, or with the suffix K, M or G; always 8 for atomic operations [default: 65536
    /// for `bw`, 64 for `lat`].
    #[arg(short, long, value_name = "BYTES", value_parser = bytes::<u64>(0, MOST))]
    pub size: Option<u64>,
    /// Number of messages per queue pair.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000,
        value_parser = clap::value_parser!(u64).range(1..))]
    pub iters: u64,
    /// Maximum number of outstanding messages per queue pair.
    #[arg(short = 't', long, value_name = "N", default_value_t = 128,
        value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub tx_depth: u32,
    /// Number of queue pairs.
    #[arg(short = 'q', long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub qp: u32,
    /// Prints errors only. There is no short form, because `-q` is the number of queue pairs, as in perftest.
    #[arg(long, help_heading = "Global options")]
    pub quiet: bool,
    /// Prints the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// The default `rdma_cm` port on which `rdma serve` listens for clients of ibfabric.
pub const PORT: u16 = 18_516;

/// The default `rdma_cm` port of rping servers.
pub const RPING_PORT: u16 = 7174;

/// The default `rdma_cm` port of ucmatose servers.
pub const UCMATOSE_PORT: u16 = 7471;

/// The default `rdma_cm` port of perftest servers.
pub const PERFTEST_PORT: u16 = 18_515;

/// The maximum size of a message, in bytes.
const MOST: u64 = 1 << 30;

#[cfg(test)]
mod tests;
