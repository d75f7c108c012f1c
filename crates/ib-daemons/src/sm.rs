//! The subnet manager daemon: its event loop, files, console and metrics.
//!
//! | module | holds |
//! |---|---|
//! | `options` | [`ManagerOptions`], the configuration of the process |
//! | [`settings`], [`conf`] | the keys of OpenSM's configuration file; the file |
//! | [`reasons`] | reasons why keys and options are refused |
//! | `port` | the port of the SM |
//! | `drive` | [`run`], the event loop of SM and port |
//! | `daemon` | the SM with log, files, plans and counters; `hosted` creates one for a simulator |
//! | `events` | log lines of fabric events |
//! | `planner` | the thread that computes plans |
//! | `cache`, `dump`, `files` | files in OpenSM's formats |
//! | `shared`, `console`, `metrics` | state of the SM, replies to `ibfabric sm ctl`, metrics |
//! | `perf` | collection of port counters |
//! | `shown` | state of the SM for the process that hosts it |

use ib_os::alarm::Alarm;
use ib_types::{Guid, Instant};

use crate::error::DaemonError;

mod cache;
pub mod conf;
mod console;
mod daemon;
mod drive;
mod dump;
mod events;
mod files;
mod metrics;
mod options;
mod perf;
mod planner;
mod port;
pub mod reasons;
pub mod settings;
mod shared;
mod shown;

pub use console::SmRequest;
pub(crate) use daemon::{Daemon, News};
pub use drive::{Report, SubnetUp, run};
pub use options::{ManagerOptions, PartitionsSource, SmConfigSource, SmPort};
pub use port::list as list_ports;
pub(crate) use shown::Shown;

/// Creates an SM for a fabric that this process simulates in real time, with a console for `sm ctl`.
pub(crate) fn hosted(
    options: &ManagerOptions,
    guid: Guid,
    now: Instant,
    alarm: &Alarm,
) -> Result<Daemon, DaemonError> {
    let shared = shared::Shared::new(alarm.bell());
    let log = daemon::open_log(options)?;
    drive::serve(options, &shared, &log)?;
    let config = (options.sm_config)(&log).map_err(DaemonError::Failed)?;
    Daemon::new(options, config, guid, now, Some(alarm.bell()), shared, log)
}
