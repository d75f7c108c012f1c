//! The command line of `capture`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ib_capture::correlate::EventKind;
use ib_types::Qpn;

use super::examples_text;
use crate::input::number;
use crate::output::Format;

/// Arguments of `capture`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct CaptureArgs {
    /// What is done.
    #[command(subcommand)]
    pub command: CaptureCommand,
}

/// What `capture` does.
#[derive(Debug, Subcommand)]
pub enum CaptureCommand {
    /// Matches the packets of both ends, and tells where the time of messages goes.
    ///
    /// Exit status: 0 packets were matched, 1 none was seen at both ends, 2 a file is unusable.
    #[command(after_long_help = examples_text("correlate"))]
    Correlate(CorrelateArgs),
}

/// Arguments of `capture correlate`.
#[derive(Debug, Args)]
pub struct CorrelateArgs {
    /// What was captured at one end, or at both: a pcapng or pcap file.
    pub file: PathBuf,
    /// What was captured at the other end.
    #[arg(value_name = "FILE2")]
    pub second: Option<PathBuf>,
    /// Only connections of this queue pair; can be given more than once.
    #[arg(long = "qpn", value_name = "N", value_parser = qpn)]
    pub qpns: Vec<Qpn>,
    /// Measures the time from each such event to the next one of --to: `qp 0x11 receive SEND`. After the direction
    /// there is SEND, WRITE, READ, ATOMIC, response, ACK, NAK, the name of a packet such as `SEND middle`, or
    /// nothing for any packet; `file 1` or `file 2` before it tells apart queue pairs that have the same number.
    #[arg(long, value_name = "EVENT", requires = "to")]
    pub from: Option<EventKind>,
    /// The events that are measured to.
    #[arg(long, value_name = "EVENT", requires = "from")]
    pub to: Option<EventKind>,
    /// Lists every message, which takes 136 bytes of memory each.
    #[arg(long)]
    pub messages: bool,
    /// Writes a page with a timeline, histograms and tables.
    #[arg(long, value_name = "PAGE")]
    pub html: Option<PathBuf>,
    /// Another UDP port of RoCEv2 than 4791; can be given more than once.
    #[arg(long = "udp-port", value_name = "PORT")]
    pub udp_ports: Vec<u16>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Reads the number of a queue pair.
fn qpn(text: &str) -> Result<Qpn, String> {
    number(text).and_then(Qpn::new).ok_or_else(|| "expected a number of 0 to 0xffffff".to_owned())
}
