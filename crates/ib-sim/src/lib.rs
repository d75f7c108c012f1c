//! A simulated InfiniBand fabric: nodes, links, faults and virtual time.
//!
//! A [`Sim`] is made from a [`Fabric`](ib_topology::Fabric) and owns no clock and no socket. Time
//! runs when it is told to: [`Sim::run_until`] lets everything happen up to a moment,
//! [`Sim::settle`] serves the real world. A run is a pure function of the fabric, the
//! [`Options`], and what it was told when.
//!
//! | module | holds |
//! |---|---|
//! | [`sim`] | [`Sim`]: the events of a fabric, one after the other |
//! | `control`, `endpoints`, `view` | what can be done with a [`Sim`]: commands and scripts; clients and open ports; queries |
//! | `deliver`, `hosted`, `sma`, `pma`, `congestion` | the agents of a node |
//! | `network` | what moves packets: forwarding, links, traps |
//! | `clock`, `event` | virtual time, and the events ahead |
//! | `fabric`, `node`, `port`, `queue`, `arbiter`, `trap` | the state of nodes and ports |
//! | `flight`, [`packet`] | packets in flight, and the room that they take |
//! | [`client`], `ids`, `open_port` | what is kept for programs that send datagrams, and for HCAs |
//! | [`command`], `script`, `random_faults`, `fault` | what a console or a script can say, and what goes wrong |
//! | [`addresses`] | the IP addresses of ports |
//! | [`counters`], [`stats`], `log`, [`tap`], [`loss`] | what can be seen |
//!
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
//! let port = sim.first_end_port().ok_or("the fabric has hosts")?;
//! let client = sim.attach(port, ClientOptions::default())?;
//!
//! // Asks the switch behind the first port, by directed route.
//! let what = (AttributeId::NODE_INFO, 0);
//! let mad = smp::directed_request(Method::GET, TransactionId(1), what, &[1]);
//! sim.submit(client, &Datagram::new(Remote::directed(), mad));
//! sim.settle(sim.now());
//! let Some(Incoming::Received(answer)) = sim.receive(client) else {
//!     return Err("no answer".into());
//! };
//! let info: NodeInfo = answer.mad.attribute().ok_or("not NodeInfo")?;
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
pub mod stats;
pub mod tap;
mod trap;
mod view;

pub use addresses::Addresses;
pub use client::{AttachError, ClientOptions};
pub use command::{Command, CommandError, Target};
pub use counters::Counters;
pub use ids::ClientId;
pub use loss::Loss;
pub use open_port::LostPacket;
pub use options::{LogLevel, Options};
pub use packet::{MadPayload, Packet, Payload};
pub use random_faults::random_faults;
pub use script::{FailedStep, Step, StepError, read_script};
pub use sim::Sim;
pub use sim_link::SimLink;
pub use stats::Stats;
pub use tap::Tapped;
