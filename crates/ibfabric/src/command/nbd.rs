//! `ibfabric nbd`: exports a device of an RTRS server over NBD.

use crate::cli::rtrs::NbdArgs;
use crate::failure::{Failure, Verdict};
use crate::output::Output;

pub(crate) fn run(args: &NbdArgs, out: &mut Output) -> Result<Verdict, Failure> {
    Ok(ib_daemons::rtrs::nbd(&args.config(), out)?.into())
}
