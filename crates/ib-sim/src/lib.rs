//! A simulated InfiniBand fabric: nodes, links, faults and virtual time.
//!
//! A [`Sim`] is made from a [`Fabric`](ib_topology::Fabric) and owns no clock and no socket. Time
//! runs when it is told to: [`Sim::run_until`] lets everything happen up to a moment,
//! [`Sim::settle`] serves the real world. A run is a pure function of the fabric, the
//! [`Options`], and what it was told when.
//!
//! | module | holds |
//! |---|---|
//! | [`sim`] | [`Sim`]: the fabric and its clock |
//! | [`client`] | programs that send and receive datagrams at a port |
//! | [`packet`] | [`Packet`]: what travels over a link |
//! | `deliver`, `sma`, `pma`, `congestion`, `trap`, `hosted` | the agents of a node |
//! | `transport` | packets for queue pairs above 1 |
//! | `forward` | directed routes, forwarding tables, multicast |
//! | `link`, `queue`, `arbiter` | rates, credits, VLs, what waits too long |
//! | `cable` | links that come up and go down |
//! | [`command`] | what a console or a script can say |
//! | `script`, `fault` | what goes wrong, and when |
//! | [`addresses`] | the IP addresses of ports |
//! | `view`, [`counters`], [`stats`], [`log`], [`tap`] | what can be seen |
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
mod cable;
pub mod client;
pub mod command;
mod congestion;
pub mod counters;
mod deliver;
mod event;
mod fault;
mod forward;
mod hosted;
#[cfg(test)]
mod lab;
mod link;
pub mod log;
pub mod loss;
mod node;
pub mod packet;
mod pma;
mod port;
mod queue;
pub mod script;
pub mod sim;
mod sim_link;
mod sma;
pub mod stats;
pub mod tap;
mod transport;
mod trap;
mod view;

pub use addresses::Addresses;
pub use client::{AttachError, ClientOptions};
pub use command::{Command, CommandError, Target};
pub use counters::Counters;
pub use log::LogLevel;
pub use loss::Loss;
pub use packet::{MadPayload, Packet, Payload};
pub use script::{FailedStep, Step, StepError, random_faults, read_script};
pub use sim::{ClientId, Options, Sim};
pub use sim_link::SimLink;
pub use stats::Stats;
pub use tap::Tapped;
pub use transport::LostPacket;
