//! A simulated InfiniBand fabric: nodes, links, faults and virtual time.
//!
//! A [`Sim`] is created from a [`Fabric`](ib_topology::Fabric). It reads no clock and has no
//! socket. The caller advances the time: [`Sim::run_until`] runs all events up to a time;
//! [`Sim::settle`] and [`Sim::keep_up`] serve clients in real time. A run is determined by the
//! fabric, the [`Options`], and the calls with their times.
//!
//! | module | contents |
//! |---|---|
//! | [`sim`] | [`Sim`]: the event loop of a fabric |
//! | `control`, `endpoints`, `view` | methods of [`Sim`] for commands and scripts, for clients and open ports, and for queries |
//! | `deliver`, `hosted`, `sma`, `pma`, `congestion` | delivery of packets and the agents of nodes |
//! | `network` | forwarding, links, traps |
//! | `clock`, `event` | virtual time and the event queue |
//! | `fabric`, `node`, `port`, `queue`, `arbiter`, `trap` | the state of nodes and ports |
//! | `flight`, [`packet`] | packets in flight, and their buffer space |
//! | [`client`], `ids`, `open_port` | clients, their outstanding requests, open ports |
//! | [`command`], `script`, `random_faults`, `fault` | commands, scripts and faults |
//! | [`addresses`] | the IP addresses of ports |
//! | [`counters`], `log`, [`tap`], [`loss`] | counters, log, captured packets, statistics and loss reasons |
//!
//! # Example
//! ```
//! use ib_link::{Datagram, Incoming, Remote};
//! use ib_sim::{ClientOptions, Options, Sim};
//! use ib_topology::generate::{self, Kind, generate};
//! use ib_wire::mad::sm::NodeInfo;
//! use ib_wire::mad::{AttributeId, Method, TransactionId, smp};
//!
//! let kind = Kind::parse("mesh", &["2x2"])?;
//! let fabric = generate(&kind, &generate::Options::default())?;
//! let mut sim = Sim::new(&fabric, Options::default());
//! let port = sim.first_end_port().ok_or("the fabric is empty")?;
//! let client = sim.attach(port, ClientOptions::default())?;
//!
//! // Queries the NodeInfo of the switch at the first port by directed route.
//! let attribute = (AttributeId::NODE_INFO, 0);
//! let mad = smp::directed_request(Method::GET, TransactionId(1), attribute, &[1]);
//! sim.submit(client, &Datagram::new(Remote::directed(), mad));
//! sim.settle(sim.now());
//! let Some(Incoming::Received(response)) = sim.receive(client) else {
//!     return Err("no response".into());
//! };
//! let info: NodeInfo = response.mad.attribute().ok_or("not NodeInfo")?;
//! assert_eq!(info.num_ports, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod addresses;
mod arbiter;
pub mod client;
mod clock;
pub mod command;
mod congestion;
mod control;
pub mod counters;
mod deliver;
mod endpoints;
mod event;
mod fabric;
mod fault;
mod flight;
mod hosted;
mod ids;
#[cfg(test)]
mod lab;
mod log;
pub mod loss;
mod network;
mod node;
mod open_port;
mod options;
pub mod packet;
mod pma;
mod port;
mod queue;
mod random_faults;
pub mod script;
pub mod sim;
mod sim_link;
mod sma;
pub mod tap;
mod trap;
mod view;

pub use addresses::Addresses;
pub use client::{AttachError, ClientOptions};
pub use command::{Command, CommandError, Target};
pub use counters::Counters;
pub use ids::ClientId;
pub use loss::{Loss, Stats};
pub use open_port::LostPacket;
pub use options::{LogLevel, Options};
pub use packet::{MadPayload, Packet, Payload};
pub use random_faults::random_faults;
pub use script::{FailedStep, Step, StepError, read_script};
pub use sim::Sim;
pub use sim_link::SimLink;
pub use tap::CapturedPacket;
