//! The command line of `capture`.

use clap::{Args, Subcommand, ValueEnum};
use ib_types::Qpn;
use ib_wire::packet::Opcode;

use super::examples_text;
use crate::input::number;

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
