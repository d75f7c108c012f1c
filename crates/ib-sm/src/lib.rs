//! The subnet manager (SM) and subnet administration (SA), as a state machine without I/O.
//!
//! The SM discovers a subnet, assigns LIDs, routes it with the engines of `ib-routing`, and programs switches and
//! ports. The SA answers queries about paths, groups, services and records.
//!
//! | module | contents |
//! |---|---|
//! | [`manager`] | [`SubnetManager`]: sweeps, planning, and configuration of the subnet |
//! | [`config`] | [`SmConfig`] |
//! | `discovery`, `discovered_subnet` | discovery by directed routes, and the discovered subnet |
//! | [`partition`] | [`Partitions`]: partitions and their members |
//! | [`plan`] | [`PlanJob`]: LIDs and routes of the discovered subnet |
//! | `managed` | the SM's knowledge of the subnet, and the data from which it computes its writes |
//! | `cache` | routes that are kept while hosts and leaf switches leave and return |
//! | `election` | election of the master among several SMs |
//! | `multicast` | the tree of each multicast group |
//! | `configuration`, `tables` | attributes and tables to write, and their order |
//! | [`qos`] | [`QosConfig`]: SL-to-VL tables and VL arbitration entries |
//! | `sa` | the SA: queries, registrations and notices |
//! | `vls` | the VLs of links: `OperVLs` and SL-to-VL tables |
//! | [`alarm`] | [`Alarm`]: conditions that need the administrator's attention |
//! | [`fault`] | [`Fault`]: inconsistencies and failures that a sweep finds |
//!
//! # Example
//! The example brings up a simulated 3x3 torus in virtual time:
//!
//! ```
//! use ib_sim::{ClientOptions, Options, Sim};
//! use ib_sm::{SmConfig, SmEvent, SubnetManager};
//! use ib_topology::generate::{self, Kind, generate};
//! use ib_types::Instant;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let fabric = generate(&Kind::parse("torus", &["3x3"])?, &generate::Options::default())?;
//! let mut sim = Sim::new(&fabric, Options::default());
//! let port = sim.first_end_port().ok_or("the fabric has no host")?;
//! let client = sim.attach(port, ClientOptions { is_sm: true, ..ClientOptions::default() })?;
//! let mut sm = SubnetManager::new(SmConfig::default(), sim.link_port(port).port_guid, sim.now());
//! let report = loop {
//!     let now = sim.now();
//!     while let Some(incoming) = sim.receive(client) {
//!         sm.handle(now, &incoming);
//!     }
//!     sm.handle_timeout(now);
//!     if let Some(job) = sm.poll_job() {
//!         sm.handle_plan(now, job.run());
//!     }
//!     while let Some(mad) = sm.poll_transmit(now) {
//!         sim.submit(client, &mad);
//!     }
//!     match sm.poll_event() {
//!         Some(SmEvent::SubnetUp(report)) => break report,
//!         Some(_) => {}
//!         None => {
//!             let due = sm.poll_timeout().unwrap_or(Instant::NEVER);
//!             if !sim.run_step(due) {
//!                 sim.run_until(due);
//!             }
//!         }
//!     }
//! };
//! assert_eq!(report.nodes, 18);
//! assert_eq!(report.plan.quality.unreachable_host_pairs, 0);
//! # Ok(())
//! # }
//! ```

pub mod alarm;
mod cache;
pub mod config;
mod configuration;
mod discovered_subnet;
mod discovery;
mod election;
pub mod fault;
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
    DiscoveryStart, LinkChange, PortChange, PortStatus, SmCounters, SmEvent, SubnetManager,
    SweepReport,
};
pub use partition::Partitions;
pub use plan::{Plan, PlanError, PlanJob, TableQuality};
pub use qos::{PortQos, QosConfig, QosError};
