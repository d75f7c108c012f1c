//! The subnet manager.
//!
//! | module | holds |
//! |---|---|
//! | [`manager`] | [`SubnetManager`]: sweeps, plans, writes |
//! | [`config`] | [`SmConfig`] |
//! | `discovery`, `found` | the exploration by directed routes, and what it has found |
//! | [`partition`] | [`Partitions`]: who may talk to whom |
//! | [`plan`] | [`PlanJob`]: LIDs and routes of what was found |
//! | `election` | which of several managers manages |
//! | `multicast` | the tree of each multicast group |
//! | `configuration`, `tables` | what has to be written, in which order |
//! | `sa` | subnet administration: what ports ask about the subnet |
//! | [`fault`] | what is wrong |

pub mod config;
mod configuration;
mod discovery;
mod election;
pub mod fault;
mod found;
pub mod manager;
mod multicast;
pub mod partition;
pub mod plan;
mod sa;
mod tables;

pub use config::SmConfig;
pub use configuration::Written;
pub use fault::Fault;
pub use manager::{PortStatus, SmEvent, SubnetManager, SweepReport};
pub use partition::Partitions;
pub use plan::{Plan, PlanError, PlanJob, RoutingConfig};
