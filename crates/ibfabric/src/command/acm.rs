//! `ibfabric acm`: the service of IB ACM.
//!
//! | module | holds |
//! |---|---|
//! | `settings` | what options and files say |
//! | `daemon` | the loop that joins programs, service and ports |
//! | `lock` | the file that keeps a second service from starting |
//! | `station` | the ports: of simulators, of this machine |
//! | `console`, `ctl`, `metrics` | what is shown to those who ask |

use crate::cli::acm::{AcmAction, AcmArgs};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

mod console;
mod ctl;
mod daemon;
mod lock;
mod metrics;
mod settings;
mod station;

/// Runs `ibfabric acm`.
pub(crate) fn run(args: AcmArgs, out: &mut Output) -> Result<Verdict, Failure> {
    match args.action {
        Some(AcmAction::Ctl(args)) => ctl::run(&args, out),
        None => daemon::run(args.serve, out),
    }
}
