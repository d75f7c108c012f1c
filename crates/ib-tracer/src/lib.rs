//! ibtracer: traces the path to a destination, and validates it hop by hop.
//!
//! The client reads the forwarding tables along a path over directed routes. With
//! [`FactSource::SaRecords`] it compares the tables with the SA records. Probes show the port at which a
//! packet arrives at each hop, and so the decision of the preceding switch.
//!
//! A path is proven good only if packets have arrived at every hop and at the destination. A path is proven bad only if
//! one particular component is faulty in every set of faults, of any size, that explains the observations. Otherwise
//! the [`Verdict`] on a hop lists the suspects.
//!
//! The crate owns no socket, thread or clock.
//!
//! | module | contents |
//! |---|---|
//! | [`tracer`] | [`Tracer`]: the client, for one or many paths |
//! | [`agent`] | [`TracerAgent`]: the agent on every node along a path |
//! | [`path`] | [`Hop`], [`Stop`]: the hops of a path, and the reason why it ends |
//! | [`trace`] | [`Trace`]: the verdicts on one path |
//! | [`tree`] | [`Tree`]: the verdicts on the tree of a multicast group |
//! | [`observation`] | [`Observation`]: how many probes were sent and answered, and where they arrived |
//! | [`fabric_model`] | [`FabricModel`]: the queried nodes, links and tables |
//! | `facts`, `probes`, `census` | requests of the client, and the evaluation of responses |
//! | `fault_model`, `diagnosis` | the components that a probe depends on, and the faults that explain all observations |
//! | `trial` | test whether a missing response shows a fault or random loss |
//!
//! # Example
//! An agent compares the arrival port of a request with the expected one:
//!
//! ```
//! use ib_link::{Arrival, Datagram, NodeAgent, Remote};
//! use ib_tracer::TracerAgent;
//! use ib_types::Instant;
//! use ib_wire::mad::vendor::{Oui, SourceRoute};
//! use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass, TransactionId};
//!
//! let mut route = SourceRoute { hop_count: 2, ..SourceRoute::zeroed() };
//! route.ports[..2].copy_from_slice(&[3, 5]);
//! let mut mad = Mad::new(MgmtClass::TRACER, Method::GET, TransactionId(1));
//! mad.set_oui(Oui::OPENIB);
//! mad.set_attribute_id(AttributeId::SOURCE_ROUTE);
//! mad.set_attribute(&route);
//!
//! let mut agent = TracerAgent::new("node1.example");
//! let arrival = Arrival { port: Some(6), lid: 7 };
//! agent.handle(Instant::ZERO, arrival, &Datagram::new(Remote::gsi(7), mad));
//!
//! let response = agent.poll_transmit(Instant::ZERO).expect("the agent responds");
//! assert_eq!(response.mad.status().field_code(), 7, "expected port 5, arrived by port 6");
//! assert_eq!(agent.counters().mismatches, 1);
//! ```

pub mod agent;
mod census;
mod diagnosis;
pub mod fabric_model;
mod facts;
mod fault_model;
pub mod observation;
pub mod path;
mod probes;
pub mod trace;
pub mod tracer;
pub mod tree;
mod trial;

pub use agent::{AgentCounters, TracerAgent};
pub use fabric_model::FactSource;
pub use fabric_model::{End, FabricModel, TracedNode};
pub use observation::{Observation, Probe, Witness};
pub use path::{Hop, MAX_HOPS, NodeNumber, PacketFate, Stop, UNKNOWN_PORT};
pub use trace::{
    AgentState, Component, Judgement, Reason, Suspicion, Target, Trace, TraceError, Verdict,
};
pub use tracer::{TraceId, Tracer, TracerConfig, TracerCounters};
pub use tree::{Branch, BranchEnd, Tree};
