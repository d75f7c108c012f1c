//! The command line of captures in running programs.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ib_cm::{PortSpace, ServiceId};
use ib_daemons::own_capture::OwnCapture;
use ib_hca::trace::Trigger;
use ib_types::Qpn;

use super::{DirectionArg, Opcodes, opcodes, qpn};
use crate::cli::values::bytes;
use ib_daemons::input::number;

/// Options of programs that capture their own packets.
#[derive(Clone, Debug, Args)]
pub struct CaptureArgs {
    /// Writes the packets of all queue pairs to a pcapng file, and reports the number of lost packets.
    #[arg(short = 'w', long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Maximum number of payload bytes to capture per message.
    #[arg(long, value_name = "BYTES", default_value = "4096", requires = "pcap",
        value_parser = bytes::<u64>(0, 4096))]
    pub pcap_payload: u64,
    /// Size of each queue pair's ring buffer for packets, in bytes; a power of two.
    #[arg(long, value_name = "BYTES", default_value = "4194304", requires = "pcap",
        value_parser = ring)]
    pub pcap_ring: u64,
}

impl CaptureArgs {
    /// Returns the capture that the options specify, if any.
    pub(crate) fn own(&self) -> Option<OwnCapture> {
        Some(OwnCapture {
            path: self.pcap.clone()?,
            payload: self.pcap_payload as u16,
            ring_bytes: self.pcap_ring as usize,
        })
    }
}

/// The selection of a running program.
#[derive(Clone, Debug, Args)]
pub struct ProgramArgs {
    /// Process ID; required if several programs can be captured.
    #[arg(long)]
    pub pid: Option<u32>,
    /// Address of an HCA of the process [default: all HCAs].
    #[arg(long, value_name = "ADDR")]
    pub device: Option<IpAddr>,
}

/// Arguments of `capture list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// The selected programs.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Prints the last messages of this queue pair. Programs record these messages even if no capture runs. May be
    /// repeated.
    #[arg(long, value_name = "QPN", value_parser = qpn)]
    pub messages: Vec<Qpn>,
    /// Prints the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Filters of a capture, and its snap length.
#[derive(Clone, Debug, Args)]
pub struct KeepArgs {
    /// Captures only sent or only received packets.
    #[arg(long, value_enum)]
    pub direction: Option<DirectionArg>,
    /// Captures only packets with this opcode: its code, or words of its name such as `rdma write`. May be
    /// repeated.
    #[arg(long, value_name = "NAME|CODE", value_parser = opcodes)]
    pub opcode: Vec<Opcodes>,
    /// Maximum number of payload bytes to capture per message. MADs are captured whole.
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = bytes::<u64>(0, 4096))]
    pub payload: u64,
}

/// Arguments of `capture start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// The selected program.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Captures only this queue pair. Queue pair 1 carries GMPs. May be repeated [default: all].
    #[arg(long, value_name = "N", value_parser = qpn)]
    pub qpn: Vec<Qpn>,
    /// Captures only queue pairs that are connected to this IP address, GID or LID, and datagrams from and to this
    /// address. May be repeated.
    #[arg(long, value_name = "ADDR|LID", value_parser = peer)]
    pub peer: Vec<PeerArg>,
    /// Captures only queue pairs that are connected to this `rdma_cm` port. A number from 0x10000 on is a
    /// service ID. May be repeated.
    #[arg(long, value_name = "PORT|ID", value_parser = service)]
    pub service: Vec<ServiceId>,
    /// The filters.
    #[command(flatten)]
    pub keep_args: KeepArgs,
    /// Size of each queue pair's ring buffer for packets, in bytes; a power of two.
    #[arg(long, value_name = "BYTES", default_value = "4194304", value_parser = ring)]
    pub buffer_size: u64,
    /// Waits for an event: `error` (the queue pair fails), `retransmission`, or `drop` (the HCA drops a received
    /// packet). Then writes the packets before the event and N packets after it, and stops the capture of
    /// this queue pair.
    #[arg(long, value_name = "EVENT[:N]", value_parser = trigger)]
    pub trigger: Option<(Trigger, u32)>,
    /// Number of packets before the event of --trigger that are written for each queue pair [default: all in the ring
    /// buffer].
    #[arg(long, value_name = "N", requires = "trigger")]
    pub keep: Option<u64>,
    /// File to write, in pcapng format; - for standard output, such as a pipe to tshark. With -, the command runs
    /// until the capture ends.
    #[arg(short = 'w', long, value_name = "FILE")]
    pub pcap: PathBuf,
    /// Stops the capture after S seconds (`duration:S`), after N packets (`packets:N`), or at a file size of KB
    /// times 1000 bytes (`filesize:KB`). May be repeated.
    #[arg(short = 'a', long, value_name = "LIMIT:N", value_parser = end)]
    pub autostop: Vec<Limit>,
    /// Starts a new file after S seconds (`duration:S`), at a file size of KB times 1000 bytes (`filesize:KB`), or
    /// after N packets (`packets:N`). Each file has a number and the time in its name. `files:N` keeps only the last
    /// N files. May be repeated.
    #[arg(short = 'b', long, value_name = "LIMIT:N", value_parser = part)]
    pub ring_buffer: Vec<Limit>,
    /// Prints the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `capture change`.
#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// The selected program.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Number of the capture.
    pub capture: u64,
    /// Captures only sent packets, only received packets, or both.
    #[arg(long, value_enum)]
    pub direction: Option<WayArg>,
    /// Captures only packets with this opcode: its code, or words of its name; `all` for all packets. May be
    /// repeated.
    #[arg(long, value_name = "NAME|CODE", value_parser = opcodes_or_all)]
    pub opcode: Vec<Opcodes>,
    /// Maximum number of payload bytes to capture per message.
    #[arg(long, value_name = "BYTES", value_parser = bytes::<u64>(0, 4096))]
    pub payload: Option<u64>,
    /// Prints the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `capture stop`.
#[derive(Debug, Args)]
pub struct StopArgs {
    /// The selected programs [default: all].
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Numbers of the captures [default: all].
    pub captures: Vec<u64>,
    /// Prints one JSON object per capture, each on a line of its own.
    #[arg(long)]
    pub json: bool,
}

/// The direction of the packets that `capture change` selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WayArg {
    /// From the HCA.
    Send,
    /// To the HCA.
    Receive,
    /// Both directions.
    Both,
}

/// Remote address of the queue pairs and datagrams to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerArg {
    /// An IP address, or a GID.
    Address(IpAddr),
    /// A LID.
    Lid(u16),
}

/// A condition that stops a capture or starts its next file, in the syntax of dumpcap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Maximum duration of the capture, or of a file.
    Duration(Duration),
    /// Maximum number of bytes of the capture, or of a file.
    Bytes(u64),
    /// Maximum number of packets of the capture, or of a file.
    Packets(u64),
    /// Number of files to keep: older files are deleted.
    Files(u64),
}

/// Parses opcodes. `all` yields an empty list, which stands for all packets.
fn opcodes_or_all(text: &str) -> Result<Opcodes, String> {
    if text == "all" { Ok(Opcodes(Vec::new())) } else { opcodes(text) }
}

fn peer(text: &str) -> Result<PeerArg, String> {
    if let Ok(address) = text.parse() {
        return Ok(PeerArg::Address(address));
    }
    let lid = number::<u16>(text).filter(|&lid| lid != 0);
    lid.map(PeerArg::Lid).ok_or_else(|| "expected an IP address, a GID or a LID".to_owned())
}

fn service(text: &str) -> Result<ServiceId, String> {
    let number = number::<u64>(text).filter(|&number| number != 0);
    let number = number.ok_or_else(|| "expected a port or a service id".to_owned())?;
    Ok(match u16::try_from(number) {
        Ok(port) => ServiceId::port(PortSpace::TCP, port),
        Err(_) => ServiceId(number),
    })
}

/// Parses the size of a ring buffer.
fn ring(text: &str) -> Result<u64, String> {
    let length = bytes::<u64>(64 << 10, 1 << 30)(text)?;
    if length.is_power_of_two() { Ok(length) } else { Err("expected a power of two".to_owned()) }
}

fn trigger(text: &str) -> Result<(Trigger, u32), String> {
    let (name, after) = text.split_once(':').unwrap_or((text, "0"));
    let trigger = match name {
        "error" => Trigger::Error,
        "retransmission" => Trigger::Retransmission,
        "drop" => Trigger::Drop,
        _ => return Err("expected error, retransmission or drop".to_owned()),
    };
    let after = number(after).ok_or("expected a number of packets after the colon")?;
    Ok((trigger, after))
}

/// Parses a value of `--autostop`: a condition that stops a capture.
fn end(text: &str) -> Result<Limit, String> {
    let expected = "expected duration:S, filesize:KB or packets:N";
    match limit(text, expected)? {
        Limit::Files(_) => Err(expected.to_owned()),
        limit => Ok(limit),
    }
}

/// Parses a value of `--ring-buffer`: a condition that starts the next file, or the number of files.
fn part(text: &str) -> Result<Limit, String> {
    limit(text, "expected duration:S, filesize:KB, packets:N or files:N")
}

fn limit(text: &str, expected: &str) -> Result<Limit, String> {
    let (name, value) = text.split_once(':').ok_or(expected)?;
    if !["duration", "filesize", "packets", "files"].contains(&name) {
        return Err(expected.to_owned());
    }
    let least = || format!("`{name}:{value}` is not more than 0: {expected}");
    if name == "duration" {
        let seconds: f64 = value.parse().map_err(|_| expected)?;
        if seconds <= 0.0 {
            return Err(least());
        }
        let duration = Duration::try_from_secs_f64(seconds);
        return duration.map(Limit::Duration).map_err(|_| expected.to_owned());
    }
    let value = match number::<u64>(value).ok_or(expected)? {
        0 => return Err(least()),
        value => value,
    };
    Ok(match name {
        "filesize" => Limit::Bytes(value.saturating_mul(1000)),
        "packets" => Limit::Packets(value),
        _ => Limit::Files(value),
    })
}
