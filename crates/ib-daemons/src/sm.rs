//! The subnet manager daemon: its event loop, its files, its console and its metrics.
//!
//! | module | holds |
//! |---|---|
//! | `options` | [`ManagerOptions`], the configuration of the SM's process |
//! | [`settings`], [`conf`] | the keys of OpenSM's configuration file; reading and writing this file |
//! | [`reasons`] | the reasons why keys and options of OpenSM are refused |
//! | `port` | opening the port of the SM |
//! | `drive` | [`run`], the event loop of the SM with its port |
//! | `daemon` | the SM with its log, files, plans and counters; `hosted` creates one for a simulator |
//! | `events` | log lines of fabric events |
//! | `planner` | computation of plans in another thread |
//! | `cache`, `dump`, `files` | reading and writing of files in OpenSM's formats |
//! | `shared`, `console`, `metrics` | the state of the SM, the replies to `ibfabric sm ctl`, the metrics |
//! | `perf` | collection of port counters |
//! | `shown` | the state of the SM for the process in which it runs |

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
pub use console::data::{MetricSample, SmRoutes, SmStatus, SmTable};
pub(crate) use daemon::{Daemon, News};
pub use drive::{Report, SubnetUp, run};
pub use options::{ManagerOptions, PartitionsSource, SmConfigSource, SmPort};
pub use port::list as list_ports;
pub(crate) use shown::Shown;

/// Creates an SM for a fabric that this process simulates in real time. The SM serves a console for `sm ctl`.
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
