//! `ibfabric acm`: the ACM service. `ctl` queries a running service.

use crate::cli::acm::{AcmAction, AcmArgs};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

mod ctl;

/// Runs `ibfabric acm`.
pub(crate) fn run(args: AcmArgs, out: &mut Output) -> Result<Verdict, Failure> {
    match args.action {
        Some(AcmAction::Ctl(args)) => ctl::run(&args, out),
        None => Ok(ib_daemons::acm::run(args.serve.into(), out)?.into()),
    }
}
