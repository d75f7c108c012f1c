//! `ibfabric nbd`: a device of a server for programs of this machine.

use crate::cli::rtrs::NbdArgs;
use crate::failure::{Failure, Verdict};
use crate::output::Output;

pub(crate) fn run(args: &NbdArgs, out: &mut Output) -> Result<Verdict, Failure> {
    Ok(ib_daemons::rtrs::nbd(&args.config(), out)?.into())
}
