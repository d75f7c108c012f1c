//! `ibfabric completions`: prints the completion script of a shell.

use std::io::Write as _;

use clap_complete::{Shell, generate};

use crate::cli::CompletionsArgs;
use crate::failure::{Failure, Verdict};
use crate::output::Output;

pub(crate) fn run(args: CompletionsArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let mut script = Vec::new();
    generate(Shell::from(args.shell), &mut crate::cli::command(), "ibfabric", &mut script);
    out.write_all(&script)?;
    Ok(Verdict::Good)
}
