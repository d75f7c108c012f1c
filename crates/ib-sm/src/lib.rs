//! The subnet manager.
//!
//! | module | holds |
//! |---|---|
//! | [`manager`] | [`SubnetManager`]: sweeps, plans, writes |
//! | [`config`] | [`SmConfig`] |
//! | `discovery`, `found` | the exploration by directed routes, and what it has found |
//! | [`partition`] | [`Partitions`]: who may talk to whom |
//! | [`plan`] | [`PlanJob`]: LIDs and routes of what was found |
//! | `cache` | routes that are kept while hosts and leaf switches come and go |
//! | `election` | which of several managers manages |
//! | `multicast` | the tree of each multicast group |
//! | `configuration`, `tables` | what has to be written, in which order |
//! | [`qos`] | [`QosConfig`]: service levels on VLs, and the VLs' turns |
//! | `sa` | the SA: what ports ask about the subnet |
//! | `lanes` | the VLs of links: OperVLs and SL-to-VL tables |
//! | [`alarm`] | [`Alarm`]: conditions that an administrator must know |
//! | [`fault`] | what is wrong |

pub mod alarm;
mod cache;
pub mod config;
mod configuration;
mod discovery;
mod election;
pub mod fault;
mod found;
mod lanes;
pub mod manager;
mod multicast;
pub mod partition;
pub mod plan;
pub mod qos;
mod sa;
mod tables;

pub use alarm::{Alarm, AlarmKind, RaisedAlarm};
pub use config::{PartEnforce, SmConfig};
pub use configuration::Written;
pub use fault::Fault;
pub use manager::{
    Exploration, LinkChange, PortChange, PortStatus, SmCounters, SmEvent, SubnetManager,
    SweepReport,
};
pub use partition::Partitions;
pub use plan::{Plan, PlanError, PlanJob, RoutingConfig, TableQuality};
pub use qos::{PortQos, QosConfig, QosError};
