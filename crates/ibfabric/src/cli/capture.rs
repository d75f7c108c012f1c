//! The command line of `capture`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ib_capture::correlate::EventKind;
use ib_types::Qpn;
use ib_wire::mad::MgmtClass;
use ib_wire::packet::Opcode;

use super::examples::examples_text;
use ib_daemons::input::number;

pub mod live;

/// Arguments of `capture`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct CaptureArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: CaptureCommand,
}

/// The subcommands of `capture`.
#[derive(Debug, Subcommand)]
pub enum CaptureCommand {
    /// Lists the programs of this user that can be captured, with their queue pairs and captures.
    #[command(after_long_help = examples_text("list"))]
    List(live::ListArgs),
    /// Starts to capture the present and future queue pairs of a running program. A low-priority thread of the
    /// program writes the file. The capture ends at `capture stop`, at a limit, or when the program exits. Packets
    /// that the thread cannot write in time are overwritten, counted and reported.
    #[command(after_long_help = examples_text("start"))]
    Start(Box<live::StartArgs>),
    /// Changes the filters of a running capture.
    #[command(after_long_help = examples_text("change"))]
    Change(live::ChangeArgs),
    /// Stops captures, and reports what their files contain.
    #[command(after_long_help = examples_text("stop"))]
    Stop(live::StopArgs),
    /// Prints the packets of a capture file of any program.
    ///
    /// Reads pcapng and pcap files with RoCEv2 over Ethernet or IP, or with InfiniBand packets. The packets may be
    /// truncated. The totals are printed to standard error. The exit status is 0 if the file was read to its end or
    /// to the limit of --count. It is 2 if the file is not a capture file or is cut off.
    #[command(after_long_help = examples_text("read"))]
    Read(Box<ReadArgs>),
    /// Matches the packets that both ends captured, and reports the parts of message latency.
    ///
    /// Exit status: 0 if packets were matched, 1 if no packet was captured at both ends, 2 if a file is unusable.
    #[command(after_long_help = examples_text("correlate"))]
    Correlate(Box<CorrelateArgs>),
}

/// Arguments of `capture read`.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// Capture file; - for standard input.
    pub file: PathBuf,
    /// Prints one JSON object per packet, each on a line of its own.
    #[arg(long)]
    pub json: bool,
    /// Prints only packets from or to this queue pair number (QPN). May be repeated.
    #[arg(long, value_name = "N", value_parser = qpn)]
    pub qpn: Vec<Qpn>,
    /// Prints only packets with this opcode: its code, or words of its name such as `rdma write`. May be
    /// repeated.
    #[arg(long, value_name = "NAME|CODE", value_parser = opcodes)]
    pub opcode: Vec<Opcodes>,
    /// Prints only MADs of this management class: its number, or a name such as sm, sa, pm, cm or acm.
    #[arg(long, value_name = "NAME", value_parser = class)]
    pub class: Option<Classes>,
    /// Prints only sent or only received packets, if the file records the direction.
    #[arg(long, value_enum)]
    pub direction: Option<DirectionArg>,
    /// UDP port of RoCEv2 in addition to 4791. May be repeated.
    #[arg(long, value_name = "PORT")]
    pub udp_port: Vec<u16>,
    /// Stops after N printed packets.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Prints all header fields, on several lines.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// Arguments of `capture correlate`.
#[derive(Debug, Args)]
pub struct CorrelateArgs {
    /// Capture of one end, or of both: a pcapng or pcap file.
    pub file: PathBuf,
    /// Capture of the other end.
    #[arg(value_name = "FILE2")]
    pub second: Option<PathBuf>,
    /// Considers only connections of the queue pair with this number. May be repeated.
    #[arg(long = "qpn", value_name = "N", value_parser = qpn)]
    pub qpns: Vec<Qpn>,
    /// Measures the time from each event of this kind, such as `qp 0x11 receive SEND`, to the next event of
    /// --to. The direction may be followed by SEND, WRITE, READ, ATOMIC, response, ACK, NAK or the name of a
    /// packet such as `SEND middle`. Without such a word, the event is any packet in this direction. A leading
    /// `file 1` or `file 2` distinguishes queue pairs with equal numbers.
    #[arg(long, value_name = "EVENT", requires = "to")]
    pub from: Option<EventKind>,
    /// Kind of event at which the measured time ends.
    #[arg(long, value_name = "EVENT", requires = "from")]
    pub to: Option<EventKind>,
    /// Lists all messages. Takes 136 bytes of memory per message.
    #[arg(long)]
    pub messages: bool,
    /// Writes an HTML page with a timeline, histograms and tables.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// UDP port of RoCEv2 in addition to 4791. May be repeated.
    #[arg(long = "udp-port", value_name = "PORT")]
    pub udp_ports: Vec<u16>,
    /// Prints the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// The direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DirectionArg {
    /// From the HCA.
    Send,
    /// To the HCA.
    Receive,
}

/// The opcodes that a code or a name selects.
#[derive(Clone, Debug)]
pub struct Opcodes(pub Vec<Opcode>);

/// The management classes that a number or a name selects.
#[derive(Clone, Debug)]
pub struct Classes(pub Vec<MgmtClass>);

fn qpn(text: &str) -> Result<Qpn, String> {
    let qpn = number::<u32>(text).and_then(Qpn::new);
    qpn.ok_or_else(|| "expected a number of 0 to 0xffffff".to_owned())
}

/// Parses the code of an opcode, or consecutive words that select all opcodes with these words in their names.
fn opcodes(text: &str) -> Result<Opcodes, String> {
    if let Some(code) = number(text) {
        return Ok(Opcodes(vec![Opcode(code)]));
    }
    let lower = text.to_lowercase().replace(['-', '_'], " ");
    // As in the events of `correlate`, `ack` is short for `acknowledge`.
    let phrase: Vec<&str> = lower
        .split_whitespace()
        .map(|word| if word == "ack" { "acknowledge" } else { word })
        .collect();
    let has = |opcode: &Opcode| {
        let name = opcode.to_string().to_lowercase();
        let words: Vec<&str> = name.split(' ').collect();
        opcode.is_known()
            && !phrase.is_empty()
            && words.windows(phrase.len()).any(|part| part == phrase)
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
    fn ack_is_short_for_acknowledge() {
        let codes = |text: &str| opcodes(text).expect("the text matches an opcode name").0;
        assert_eq!(codes("ack"), codes("acknowledge"));
        assert_eq!(codes("RC ACK"), [Opcode::RC_ACKNOWLEDGE]);
        assert_eq!(codes("atomic_ack"), codes("atomic acknowledge"));
    }
}
