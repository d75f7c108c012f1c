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
//! | `deliver`, `sma`, `pma`, `trap` | the agents of a node |
//! | `forward` | directed routes, forwarding tables, multicast |
//! | `link`, `arbiter` | rates, credits, lanes, what waits too long |
//! | [`command`] | what a console or a script can say |
//! | `script`, `fault` | what goes wrong, and when |
//! | [`addresses`] | the IP addresses of ports |
//! | [`counters`], [`stats`], [`log`], [`tap`] | what can be seen |
//!
//! ```
//! use ib_link::{Datagram, Incoming, Remote};
//! use ib_sim::{ClientOptions, Options, Sim};
//! use ib_topology::generate::{GenerateOptions, Kind, generate};
//! use ib_wire::mad::sm::NodeInfo;
//! use ib_wire::mad::{AttributeId, Method, TransactionId, smp};
//!
//! let kind: Kind = "mesh 2x2".parse()?;
//! let fabric = generate(&kind, &GenerateOptions::default())?;
//! let mut sim = Sim::new(&fabric, Options::default());
//! let port = sim.first_end_port().ok_or("the fabric has hosts")?;
//! let client = sim.attach(port, ClientOptions::default());
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
