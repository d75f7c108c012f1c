//! The command line of `rdma`.

use std::net::IpAddr;

use clap::{Args, Subcommand, ValueEnum};
use ib_types::Mtu;

use super::capture::live::CaptureArgs;
use super::{bytes, examples_text, mtu};
use crate::output::Format;

/// Arguments of `rdma`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct RdmaArgs {
    /// What is done.
    #[command(subcommand)]
    pub command: RdmaCommand,
}

/// What `rdma` does.
#[derive(Debug, Subcommand)]
pub enum RdmaCommand {
    /// Shows what an adapter at an address is and takes.
    #[command(after_long_help = examples_text("devinfo"))]
    Devinfo(DevinfoArgs),
    /// Serves `rdma bw` and `lat` of others, and the real `rping`, `ucmatose` and programs of perftest.
    #[command(after_long_help = examples_text("serve"))]
    Serve(ServeArgs),
    /// Pings a server of rping.
    #[command(after_long_help = examples_text("ping"))]
    Ping(PingArgs),
    /// Exchanges messages with a server of ucmatose.
    #[command(after_long_help = examples_text("cmatose"))]
    Cmatose(CmatoseArgs),
    /// Sends messages to and fro; with the real `ibv_rc_pingpong` at either end.
    #[command(after_long_help = examples_text("pingpong"))]
    Pingpong(PingpongArgs),
    /// Measures bandwidth.
    #[command(after_long_help = examples_text("bw"))]
    Bw(PerfArgs),
    /// Measures latency.
    #[command(after_long_help = examples_text("lat"))]
    Lat(PerfArgs),
}

/// The adapter.
#[derive(Clone, Debug, Args)]
pub struct AdapterArgs {
    /// The own address; the first of an interface that is up without it, loopback for peers on loopback.
    #[arg(long = "listen", visible_alias = "from", value_name = "ADDR", conflicts_with = "attach")]
    pub address: Option<IpAddr>,
    /// A running `ibfabric sim`, by the name of its sockets, at a port of which the adapter is.
    #[arg(long, value_name = "NAME")]
    pub attach: Option<String>,
    /// The node of the simulated fabric, with `:PORT` behind it where that is not its first port; an
    /// address, a GID or a LID will do, too. The first host without it.
    #[arg(long, value_name = "NODE[:PORT]", requires = "attach")]
    pub node: Option<String>,
    /// Asks a service of IB ACM for paths, at a socket or a host's TCP port, as `RDMA_CM_USE_IB_ACM=1` in the environment
    /// does for the one of this machine; where it fails, subnet administration.
    #[arg(long, value_name = "SERVICE", requires = "attach")]
    pub acm: Option<String>,
    /// The UDP port of RoCEv2, here and there: another one than 4791 only makes sense between tests.
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
    /// The capture of its own packets.
    #[command(flatten)]
    pub capture: CaptureArgs,
}

/// Arguments of `rdma devinfo`.
#[derive(Debug, Args)]
pub struct DevinfoArgs {
    /// The adapter.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// Shows also how much of everything it takes.
    #[arg(short, long)]
    pub verbose: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `rdma serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The adapter.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// The port of `rdma_cm` for `rdma bw`, `lat` and others of ours.
    #[arg(short, long, value_name = "PORT", default_value_t = PORT)]
    pub port: u16,
    /// Serves also the real `rping`, at its port 7174.
    #[arg(long)]
    pub rping: bool,
    /// The port at which rping is served.
    #[arg(long, value_name = "PORT", default_value_t = RPING_PORT)]
    pub rping_port: u16,
    /// Serves also the real `ucmatose`, at its port 7471.
    #[arg(long)]
    pub ucmatose: bool,
    /// The port at which ucmatose is served.
    #[arg(long, value_name = "PORT", default_value_t = UCMATOSE_PORT)]
    pub ucmatose_port: u16,
    /// What is exchanged with clients of ucmatose.
    #[command(flatten)]
    pub messages: Messages,
    /// Serves also this program of perftest 4.5-0.17, which is to be called with `-R`, at its port 18515.
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub perftest: Option<PerftestArg>,
    /// The port at which perftest is served.
    #[arg(long, value_name = "PORT", default_value_t = PERFTEST_PORT)]
    pub perftest_port: u16,
    /// The size of a message of `ib_write_lat` in bytes, which its client does not tell.
    #[arg(long, value_name = "BYTES", default_value = "2", value_parser = bytes::<u64>(1, MOST))]
    pub perftest_size: u64,
    /// Ends when so many clients have gone, with status 2 if one of them was not understood; never without it.
    #[arg(long, value_name = "N")]
    pub clients: Option<u64>,
    /// Says what comes in.
    #[arg(short, long)]
    pub verbose: bool,
}

/// Arguments of `rdma ping`.
#[derive(Debug, Args)]
pub struct PingArgs {
    /// The server: its address; with --attach also a node, with `:PORT` behind it or without, a GID or a LID.
    #[arg(value_name = "PEER")]
    pub peer: String,
    /// The adapter.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// Its port.
    #[arg(short, long, value_name = "PORT", default_value_t = RPING_PORT)]
    pub port: u16,
    /// How often it is pinged.
    #[arg(short = 'C', long, value_name = "N", default_value_t = 10)]
    pub count: u64,
    /// The size of a ping in bytes, with K.
    #[arg(short = 'S', long, value_name = "BYTES", default_value_t = 64,
        value_parser = bytes::<u32>(2, 65_535))]
    pub size: u32,
    /// Shows the pings.
    #[arg(short, long)]
    pub verbose: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// The messages of ucmatose; both ends have to say the same.
#[derive(Clone, Copy, Debug, Args)]
pub struct Messages {
    /// How many messages of ucmatose go each way.
    #[arg(short = 'C', long = "messages", value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(..=16_384))]
    pub count: u32,
    /// The size of a message of ucmatose in bytes, with K or M.
    #[arg(short = 'S', long = "message-size", value_name = "BYTES", default_value_t = 100,
        value_parser = bytes::<u32>(0, 1 << 24))]
    pub size: u32,
}

/// Arguments of `rdma cmatose`.
#[derive(Debug, Args)]
pub struct CmatoseArgs {
    /// The server: its address; with --attach also a node, with `:PORT` behind it or without, a GID or a LID.
    #[arg(value_name = "PEER")]
    pub peer: String,
    /// The adapter.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// Its port.
    #[arg(short, long, value_name = "PORT", default_value_t = UCMATOSE_PORT)]
    pub port: u16,
    /// How many connections are made, which the server has to expect.
    #[arg(short, long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub connections: u32,
    /// What is exchanged.
    #[command(flatten)]
    pub messages: Messages,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `rdma pingpong`.
#[derive(Debug, Args)]
pub struct PingpongArgs {
    /// The server, by the address at which it listens for TCP; without it this is one.
    pub peer: Option<IpAddr>,
    /// The adapter.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// The TCP port by which the ends tell each other their queue pairs.
    #[arg(short, long, value_name = "PORT", default_value_t = 18_515)]
    pub port: u16,
    /// The size of a message in bytes, with K, M or G.
    #[arg(short, long, value_name = "BYTES", default_value = "4096", value_parser = bytes::<u64>(0, MOST))]
    pub size: u64,
    /// How many messages are exchanged.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000,
        value_parser = clap::value_parser!(u64).range(1..))]
    pub iters: u64,
    /// How many receives are posted at a time.
    #[arg(short, long, value_name = "N", default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub rx_depth: u32,
    /// Checks what comes in, as `ibv_rc_pingpong -c` does; both ends have to.
    #[arg(short, long)]
    pub check: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// What a measurement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OpArg {
    /// SEND into receives.
    Send,
    /// RDMA WRITE.
    Write,
    /// RDMA READ.
    Read,
    /// RDMA WRITE with immediate data; not of `lat`.
    WriteImm,
    /// Atomic Fetch and Add; not of `lat`.
    FetchAdd,
    /// Atomic Compare and Swap; not of `lat`.
    CompareSwap,
}

impl OpArg {
    /// Returns true if the operation changes a word of 8 bytes.
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
    /// The server, which runs `ibfabric rdma serve` or a program of perftest.
    #[arg(value_name = "PEER")]
    pub peer: String,
    /// The adapter.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// Its port; 18516 without it, and 18515 of perftest.
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<u16>,
    /// The server is a program of perftest 4.5-0.17 with `-R` that does the same, such as `ib_write_bw`; sizes
    /// and numbers have to be the same there.
    #[arg(long)]
    pub perftest: bool,
    /// What is done.
    #[arg(long, value_enum, default_value = "write")]
    pub op: OpArg,
    /// The size of a message in bytes, with K, M or G; 65536 for bandwidth and 64 for latency without it. Atomics have 8.
    #[arg(short, long, value_name = "BYTES", value_parser = bytes::<u64>(0, MOST))]
    pub size: Option<u64>,
    /// How many messages; 1000 without it.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000,
        value_parser = clap::value_parser!(u64).range(1..))]
    pub iters: u64,
    /// How many messages are under way on a queue pair.
    #[arg(short = 't', long, value_name = "N", default_value_t = 128,
        value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub tx_depth: u32,
    /// How many queue pairs.
    #[arg(short = 'q', long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub qps: u32,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// The port of our own server.
pub const PORT: u16 = 18_516;

/// The port of rping.
pub const RPING_PORT: u16 = 7174;

/// The port of ucmatose.
pub const UCMATOSE_PORT: u16 = 7471;

/// The port of perftest.
pub const PERFTEST_PORT: u16 = 18_515;

/// The longest message in bytes.
const MOST: u64 = 1 << 30;

#[cfg(test)]
mod tests;
