//! The subnet manager (SM) and subnet administration (SA).
//!
//! | module | holds |
//! |---|---|
//! | [`manager`] | [`SubnetManager`]: sweeps, plans, writes |
//! | [`config`] | [`SmConfig`] |
//! | `discovery`, `found` | discovery by directed routes, and the discovered subnet |
//! | [`partition`] | [`Partitions`]: partitions and their members |
//! | [`plan`] | [`PlanJob`]: LIDs and routes of the discovered subnet |
//! | `managed` | what the SM knows of the subnet, and what it has written to it |
//! | `cache` | routes that are kept while hosts and leaf switches leave and return |
//! | `election` | election of the master among several SMs |
//! | `multicast` | the tree of each multicast group |
//! | `configuration`, `tables` | attributes and tables to write, and their order |
//! | [`qos`] | [`QosConfig`]: SL-to-VL tables and VL arbitration entries |
//! | `sa` | the SA: queries about the subnet |
//! | `vls` | the VLs of links: OperVLs and SL-to-VL tables |
//! | [`alarm`] | [`Alarm`]: conditions that need the administrator's attention |
//! | [`fault`] | faults of nodes and links |

pub mod alarm;
mod cache;
pub mod config;
mod configuration;
mod discovery;
mod election;
pub mod fault;
mod found;
mod managed;
pub mod manager;
mod multicast;
pub mod partition;
pub mod plan;
pub mod qos;
mod sa;
mod tables;
mod vls;

pub use alarm::{Alarm, AlarmKind, RaisedAlarm};
pub use config::{PartEnforce, RoutingConfig, SmConfig};
pub use configuration::Written;
pub use fault::Fault;
pub use manager::{
    Exploration, LinkChange, PortChange, PortStatus, SmCounters, SmEvent, SubnetManager,
    SweepReport,
};
pub use partition::Partitions;
pub use plan::{Plan, PlanError, PlanJob, TableQuality};
pub use qos::{PortQos, QosConfig, QosError};
