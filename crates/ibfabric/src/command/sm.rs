//! `ibfabric sm`: manages a subnet; also under OpenSM's name.
//!
//! | module | holds |
//! |---|---|
//! | `request` | what is asked for, by either command line |
//! | `settings`, `conf` | the keys of OpenSM's configuration file; the file |
//! | `place` | the port that the subnet is managed from |
//! | `drive` | the loop that joins manager and port |
//! | `daemon` | the manager with everything around it |
//! | `events` | what the log says of the fabric |
//! | `planner` | the thread that plans |
//! | `cache`, `dump`, `files` | what is written where OpenSM's users look |
//! | `shared`, `console`, `ctl`, `metrics` | what is shown to those who ask |
//! | `perf` | the counters of all ports |
//! | `shown` | what a process that hosts a manager shows of it |
//! | `report` | what is printed when the subnet is up |

use std::ffi::OsString;
use std::io::Write as _;

use ib_os::alarm::Alarm;
use ib_routing::EngineList;
use ib_types::{Guid, Instant};

use crate::cli::opensm;
use crate::cli::sm::{SmAction, SmArgs};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

mod cache;
mod conf;
mod console;
mod ctl;
mod daemon;
mod drive;
mod dump;
mod events;
mod files;
mod metrics;
mod perf;
mod place;
mod planner;
mod report;
mod request;
mod settings;
mod shared;
mod shown;

pub(crate) use daemon::{Daemon, News};
use request::{Asked, Request};
pub(crate) use shown::Shown;

/// Runs `ibfabric sm`.
pub(crate) fn run(args: SmArgs, out: &mut Output) -> Result<Verdict, Failure> {
    match args.action {
        Some(SmAction::Ctl(args)) => ctl::run(&args, out),
        None => answer(Request::from_args(args.serve)?, out),
    }
}

/// Runs under OpenSM's name.
pub(crate) fn run_as_opensm(
    words: impl IntoIterator<Item = OsString>,
    out: &mut Output,
) -> Result<Verdict, Failure> {
    let given = opensm::read(words).map_err(|error| {
        Failure::Unusable(format!("{error}\n`opensm --help` names the options"))
    })?;
    answer(Request::from_opensm(&given)?, out)
}

/// Makes a manager for a fabric in this process that lives in real time; `sm ctl` asks it by a name.
pub(crate) fn hosted(
    engines: &EngineList,
    guid: Guid,
    now: Instant,
    alarm: &Alarm,
    name: &str,
) -> Result<Daemon, Failure> {
    let request = Request::for_fabric(engines, name);
    let shared = shared::Shared::new(alarm.bell());
    let log = daemon::open_log(&request)?;
    drive::serve(&request, &shared, &log)?;
    let config = request.settings.config(&log)?;
    Daemon::new(&request, config, guid, now, Some(alarm.bell()), shared, log)
}

fn answer(asked: Asked, out: &mut Output) -> Result<Verdict, Failure> {
    match asked {
        Asked::Manage(request) => drive::run(&request, out),
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
