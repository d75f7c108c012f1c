//! `ibfabric sm`: runs a subnet manager; also under OpenSM's name.
//!
//! | module | holds |
//! |---|---|
//! | `request` | the configuration, from the command line of `ibfabric sm` or of OpenSM |
//! | `report` | the report that is printed when the subnet is up |
//! | `ctl` | queries to a running SM |

use std::ffi::OsString;
use std::io::Write as _;

use ib_daemons::DaemonError;
use ib_daemons::sm::{ManagerOptions, SubnetUp, conf};
use ib_routing::EngineList;

use crate::cli::opensm;
use crate::cli::sm::{SmAction, SmArgs};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

mod ctl;
pub(crate) mod report;
mod request;

use request::{Asked, Request};

/// Runs `ibfabric sm`.
pub(crate) fn run(args: SmArgs, out: &mut Output) -> Result<Verdict, Failure> {
    match args.action {
        Some(SmAction::Ctl(args)) => ctl::run(&args, out),
        None => answer(Request::from_args(args.serve)?, out),
    }
}

/// Runs the SM with OpenSM's command line.
pub(crate) fn run_as_opensm(
    words: impl IntoIterator<Item = OsString>,
    out: &mut Output,
) -> Result<Verdict, Failure> {
    let given = opensm::read(words).map_err(|error| {
        Failure::Unusable(format!("{error}\n`opensm --help` lists the options"))
    })?;
    answer(Request::from_opensm(&given)?, out)
}

fn answer(asked: Asked, out: &mut Output) -> Result<Verdict, Failure> {
    match asked {
        Asked::Manage(request) => manage(&request, out),
        Asked::Print(text) => {
            write!(out, "{text}")?;
            Ok(Verdict::Good)
        }
        Asked::Create(path, settings) => {
            conf::write(&path, &settings)?;
            writeln!(out, "wrote the configuration file {}", path.display())?;
            Ok(Verdict::Good)
        }
    }
}

/// Runs the SM; prints a report each time that the subnet comes up.
fn manage(request: &Request, out: &mut Output) -> Result<Verdict, Failure> {
    // An SM that runs in the background has no standard output, so pending output is written first.
    out.flush()?;
    let requested = request.settings.config.routing.engines.to_string();
    let mut print = |up: &SubnetUp<'_>| {
        report::print(up, requested.clone(), request.format, out).map_err(DaemonError::from)
    };
    Ok(ib_daemons::sm::run(&request.options(), &mut print)?.into())
}

/// Returns the options of an SM for a simulated fabric in this process.
pub(crate) fn hosted_options(engines: &EngineList, name: &str) -> ManagerOptions {
    Request::for_fabric(engines, name).options()
}
