//! The command line of what is done with running programs.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ib_cm::{PortSpace, ServiceId};
use ib_daemons::own_capture::OwnCapture;
use ib_hca::trace::Trigger;
use ib_types::Qpn;

use super::{DirectionArg, Opcodes, opcodes, qpn};
use crate::cli::bytes;
use crate::input::number;
use crate::output::Format;

/// How a program captures its own packets.
#[derive(Clone, Debug, Args)]
pub struct CaptureArgs {
    /// Writes the packets of all queue pairs to a pcapng file, and says how many of them were not
    /// collected in time.
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// How many bytes of the payload of each message are captured.
    #[arg(long, value_name = "BYTES", default_value = "4096", requires = "capture",
        value_parser = bytes::<u64>(0, 4096))]
    pub capture_payload: u64,
    /// How many bytes of each queue pair wait to be collected: a power of two.
    #[arg(long, value_name = "BYTES", default_value = "4194304", requires = "capture",
        value_parser = ring)]
    pub capture_ring: u64,
}

impl CaptureArgs {
    /// Returns the capture that the options ask for.
    pub(crate) fn own(&self) -> Option<OwnCapture> {
        Some(OwnCapture {
            path: self.capture.clone()?,
            payload: self.capture_payload as u16,
            ring_bytes: self.capture_ring as usize,
        })
    }
}

/// Which program.
#[derive(Clone, Debug, Args)]
pub struct ProgramArgs {
    /// The process; needed where there are several.
    #[arg(long)]
    pub pid: Option<u32>,
    /// The address of an adapter: without it all adapters of a process are captured.
    #[arg(long, value_name = "ADDR")]
    pub device: Option<IpAddr>,
}

/// Arguments of `capture list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Which programs.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Shows the last messages of this queue pair, which are always noted; may be given several times.
    #[arg(long, value_name = "QPN", value_parser = qpn)]
    pub messages: Vec<Qpn>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Which of the packets are kept, and how much of them.
#[derive(Clone, Debug, Args)]
pub struct KeepArgs {
    /// Only what is sent, or only what is received.
    #[arg(long, value_enum)]
    pub direction: Option<DirectionArg>,
    /// Only packets with this operation code, or whose operation has these words in its name, such as
    /// `rdma write`; may be given several times.
    #[arg(long, value_name = "NAME|CODE", value_parser = opcodes)]
    pub opcode: Vec<Opcodes>,
    /// How many bytes of the payload of each message are kept. Management datagrams are kept whole.
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = bytes::<u64>(0, 4096))]
    pub payload: u64,
}

/// Arguments of `capture start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Which program.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Only this queue pair, 1 for management datagrams; may be given several times. Without any all are captured.
    #[arg(long, value_name = "N", value_parser = qpn)]
    pub qpn: Vec<Qpn>,
    /// Only queue pairs that are connected to this address, GID or LID, and datagrams to and from there; may be
    /// given several times.
    #[arg(long, value_name = "ADDR|LID", value_parser = peer)]
    pub peer: Vec<PeerArg>,
    /// Only queue pairs that are connected to this port of `rdma_cm`, or, from 0x10000 on, this service id; may be
    /// given several times.
    #[arg(long, value_name = "PORT|ID", value_parser = service)]
    pub service: Vec<ServiceId>,
    /// What is kept.
    #[command(flatten)]
    pub keep_args: KeepArgs,
    /// How many bytes of each queue pair's packets wait to be written: a power of two.
    #[arg(long, value_name = "BYTES", default_value = "4194304", value_parser = ring)]
    pub ring: u64,
    /// Waits for this: `error` (the queue pair fails), `retransmission` or `drop` (a packet that came in has no
    /// effect). Then writes what was before it, and with `:N` behind it N packets more, and ends the trace of the
    /// queue pair.
    #[arg(long, value_name = "EVENT[:N]", value_parser = trigger)]
    pub trigger: Option<(Trigger, u32)>,
    /// How many packets of a queue pair from before the trigger are written; all that its ring holds without it.
    #[arg(long, value_name = "N", requires = "trigger")]
    pub keep: Option<u64>,
    /// The pcapng file; - for standard output, which may be a pipe to tshark: then the command ends with the
    /// capture.
    #[arg(short, long, value_name = "FILE")]
    pub write: PathBuf,
    /// Ends by itself: `duration:S` seconds, `filesize:KB` kilobytes of 1000 bytes at most, `packets:N`.
    #[arg(short = 'a', long, value_name = "LIMIT:N", value_parser = end)]
    pub autostop: Vec<Limit>,
    /// Begins another file, with a number and the time in its name: after `duration:S`, `filesize:KB` or
    /// `packets:N`; with `files:N` only the last N are kept.
    #[arg(short = 'b', long, value_name = "LIMIT:N", value_parser = part)]
    pub ring_buffer: Vec<Limit>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `capture change`.
#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// Which program.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// The number of the capture.
    pub capture: u64,
    /// Only what is sent, only what is received, or both.
    #[arg(long, value_enum)]
    pub direction: Option<WayArg>,
    /// Only packets with this operation code, or whose operation has these words in its name; `all` for all. May be
    /// given several times.
    #[arg(long, value_name = "NAME|CODE", value_parser = opcodes_or_all)]
    pub opcode: Vec<Opcodes>,
    /// How many bytes of the payload of each message are kept.
    #[arg(long, value_name = "BYTES", value_parser = bytes::<u64>(0, 4096))]
    pub payload: Option<u64>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `capture stop`.
#[derive(Debug, Args)]
pub struct StopArgs {
    /// Which programs; all of them without it.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// The numbers of the captures; all of them without any.
    pub captures: Vec<u64>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Which way packets go that are kept from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WayArg {
    /// From the adapter.
    Send,
    /// To the adapter.
    Receive,
    /// Either.
    Both,
}

/// The other end of queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerArg {
    /// An address, or a GID.
    Address(IpAddr),
    /// A LID.
    Lid(u16),
}

/// A limit of files, by the names that dumpcap has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So long.
    Duration(Duration),
    /// So many bytes.
    Bytes(u64),
    /// So many packets.
    Packets(u64),
    /// So many files.
    Files(u64),
}

/// Reads operation codes; all of them are none in particular.
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

/// Reads the length of a ring.
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
    let after = number(after).ok_or("expected a number of packets behind the colon")?;
    Ok((trigger, after))
}

/// Reads when a capture ends.
fn end(text: &str) -> Result<Limit, String> {
    let expected = "expected duration:S, filesize:KB or packets:N";
    match limit(text, expected)? {
        Limit::Files(_) => Err(expected.to_owned()),
        limit => Ok(limit),
    }
}

/// Reads when a file ends, or how many there are.
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
