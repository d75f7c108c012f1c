//! The daemon of the subnet manager: its event loop and what it shows.
//!
//! | module | holds |
//! |---|---|
//! | `options` | [`ManagerOptions`], the configuration of the process |
//! | [`settings`], [`conf`] | the keys of OpenSM's configuration file; the file |
//! | [`reasons`] | reasons why keys and options are refused |
//! | `port` | the port that the subnet is managed from |
//! | `drive` | [`run`], the loop that joins manager and port |
//! | `daemon` | the manager with log, files, plans and counters; `hosted` makes one for a simulator |
//! | `events` | log lines of fabric events |
//! | `planner` | the thread that plans |
//! | `cache`, `dump`, `files` | files in OpenSM's formats |
//! | `shared`, `console`, `metrics` | state, answers to `ibfabric sm ctl`, metrics |
//! | `perf` | the counters of all ports |
//! | `shown` | state of the manager for the process that hosts it |

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
pub use options::{ManagerOptions, PartitionsSource, Place, SmConfigSource};
pub use port::list as list_ports;
pub(crate) use shown::Shown;

/// Makes a manager for a fabric in this process that lives in real time; `sm ctl` asks it by a name.
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
