//! The command line of `capture`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ib_types::Qpn;
use ib_wire::mad::MgmtClass;
use ib_wire::packet::Opcode;

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
    /// Shows the packets of a capture file, whoever wrote it.
    ///
    /// pcapng and pcap are read, RoCEv2 on Ethernet or IP and InfiniBand, also cut short. Standard error has what
    /// there was in all. Exit status: 0 the file was read to its end, 2 it is none or is cut off.
    #[command(after_long_help = examples_text("read"))]
    Read(Box<ReadArgs>),
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
    let wanted: Vec<&str> = lower.split_whitespace().collect();
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
