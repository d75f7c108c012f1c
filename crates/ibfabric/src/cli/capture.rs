//! The command line of `capture`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ib_capture::correlate::EventKind;
use ib_types::Qpn;
use ib_wire::mad::MgmtClass;
use ib_wire::packet::Opcode;

use super::examples_text;
use crate::input::number;
use crate::output::Format;

pub mod live;

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
    /// Lists the programs of this user whose queue pairs can be captured, their queue pairs and captures.
    #[command(after_long_help = examples_text("list"))]
    List(live::ListArgs),
    /// Starts to capture queue pairs of a running program, and those that it makes later.
    ///
    /// The program writes the file itself, in a thread that takes no processor from anybody, until `capture stop`,
    /// a limit or its own end. What that thread is too slow for is written over, counted and told.
    #[command(after_long_help = examples_text("start"))]
    Start(Box<live::StartArgs>),
    /// Changes what a running capture keeps from now on.
    #[command(after_long_help = examples_text("change"))]
    Change(live::ChangeArgs),
    /// Ends captures, and tells what is in their files.
    #[command(after_long_help = examples_text("stop"))]
    Stop(live::StopArgs),
    /// Shows the packets of a capture file, whoever wrote it.
    ///
    /// pcapng and pcap are read, RoCEv2 on Ethernet or IP and InfiniBand, also cut short. Standard error has what
    /// there was in all. Exit status: 0 the file was read to its end, 2 it is none or is cut off.
    #[command(after_long_help = examples_text("read"))]
    Read(Box<ReadArgs>),
    /// Matches the packets of both ends, and tells where the time of messages goes.
    ///
    /// Exit status: 0 packets were matched, 1 none was seen at both ends, 2 a file is unusable.
    #[command(after_long_help = examples_text("correlate"))]
    Correlate(Box<CorrelateArgs>),
}

/// Arguments of `capture read`.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// The capture file; - for standard input.
    pub file: PathBuf,
    /// How packets are printed: a line each, or an object each on a line of its own.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Shows only packets to or from this queue pair; may be given several times.
    #[arg(long, value_name = "N", value_parser = qpn)]
    pub qpn: Vec<Qpn>,
    /// Shows only packets with this operation code, or whose operation has these words in its name, such as
    /// `rdma write`; may be given several times.
    #[arg(long, value_name = "NAME|CODE", value_parser = opcodes)]
    pub opcode: Vec<Opcodes>,
    /// Shows only datagrams of this management class: sm, sa, pm, cm, acm, its name or its number.
    #[arg(long, value_name = "NAME", value_parser = class)]
    pub class: Option<Classes>,
    /// Shows only what was sent, or received, as far as the file tells.
    #[arg(long, value_enum)]
    pub direction: Option<DirectionArg>,
    /// A UDP port of RoCEv2 beside 4791; may be given several times.
    #[arg(long, value_name = "PORT")]
    pub udp_port: Vec<u16>,
    /// Ends after so many packets that were shown.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Shows every field, on several lines.
    #[arg(short, long)]
    pub verbose: bool,
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

/// Which way packets went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DirectionArg {
    /// From the adapter.
    Send,
    /// To the adapter.
    Receive,
}

/// Operation codes that go by a name.
#[derive(Clone, Debug)]
pub struct Opcodes(pub Vec<Opcode>);

/// Management classes that go by a name.
#[derive(Clone, Debug)]
pub struct Classes(pub Vec<MgmtClass>);

fn qpn(text: &str) -> Result<Qpn, String> {
    let qpn = number::<u32>(text).and_then(Qpn::new);
    qpn.ok_or_else(|| "expected a number of 0 to 0xffffff".to_owned())
}

/// Reads a code, or words that follow each other in the names of operations.
fn opcodes(text: &str) -> Result<Opcodes, String> {
    if let Some(code) = number(text) {
        return Ok(Opcodes(vec![Opcode(code)]));
    }
    let lower = text.to_lowercase().replace(['-', '_'], " ");
    // As events of `correlate` have it.
    let wanted: Vec<&str> = lower
        .split_whitespace()
        .map(|word| if word == "ack" { "acknowledge" } else { word })
        .collect();
    let has = |opcode: &Opcode| {
        let name = opcode.to_string().to_lowercase();
        let words: Vec<&str> = name.split(' ').collect();
        opcode.is_known()
            && !wanted.is_empty()
            && words.windows(wanted.len()).any(|part| part == wanted)
    };
    let found: Vec<Opcode> = (0..=u8::MAX).map(Opcode).filter(has).collect();
    if found.is_empty() {
        return Err("expected a code of 0 to 255, or words as in \"RC RDMA WRITE only\"".to_owned());
    }
    Ok(Opcodes(found))
}

fn class(text: &str) -> Result<Classes, String> {
    let lower = text.to_lowercase();
    let short = match lower.as_str() {
        "sm" | "smp" => vec![MgmtClass::SUBN_LID_ROUTED, MgmtClass::SUBN_DIRECTED_ROUTE],
        "sa" => vec![MgmtClass::SUBN_ADM],
        "pm" | "pma" => vec![MgmtClass::PERFORMANCE],
        "cm" => vec![MgmtClass::COMMUNICATION],
        _ => Vec::new(),
    };
    if !short.is_empty() {
        return Ok(Classes(short));
    }
    if let Some(code) = number(text) {
        return Ok(Classes(vec![MgmtClass(code)]));
    }
    let is_named =
        |class: &MgmtClass| class.name().is_some_and(|name| name.eq_ignore_ascii_case(text));
    match (0..=u8::MAX).map(MgmtClass).find(is_named) {
        Some(class) => Ok(Classes(vec![class])),
        None => {
            Err("expected sm, sa, pm, cm, acm, a name such as SubnMgtDR, or a number".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_has_a_short_name() {
        let codes = |text: &str| opcodes(text).expect("it is known").0;
        assert_eq!(codes("ack"), codes("acknowledge"));
        assert_eq!(codes("RC ACK"), [Opcode::RC_ACKNOWLEDGE]);
        assert_eq!(codes("atomic_ack"), codes("atomic acknowledge"));
    }
}
