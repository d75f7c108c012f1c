//! ibtracer: builds the source route to a destination and validates the path taken, hop by hop.
//!
//! | module | holds |
//! |---|---|
//! | [`agent`] | [`TracerAgent`]: the agent on every node along a path |
//! | [`tracer`] | [`Tracer`]: the client, for one path or for many |
//! | [`path`] | [`Hop`], [`Stop`]: a path hop by hop, and its end |
//! | [`trace`] | [`Trace`]: the verdicts on one path |
//! | [`tree`] | [`Tree`]: the verdicts on the tree of a multicast group |
//! | [`observation`] | [`Observation`]: how many probes were sent and answered, and where they arrived |
//! | [`atlas`] | [`Atlas`]: the known nodes, links and tables of the fabric |
//! | `fault_model`, `diagnosis` | the components that a probe depends on, and the faults that explain all observations |
//! | `trial` | test of a missing response: fault or random loss |
//!
//! The client reads the forwarding tables along a path over directed routes. With [`Via::Administration`] it
//! compares them with the SA records. Probes show by which port a packet arrives at each hop; the switch
//! before the hop has chosen that port.
//!
//! A path is proven good only if packets were seen at every hop and at the destination. A path is proven bad
//! only if no other component can explain the observations, for any number of faults. Otherwise the
//! [`Verdict`] on a hop lists the suspects.
//!
//! The crate owns no socket, thread or clock.

pub mod agent;
pub mod atlas;
mod census;
mod diagnosis;
mod fact;
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
pub use atlas::{Atlas, End, TracedNode};
pub use fact::Via;
pub use observation::{Observation, Probe, Witness};
pub use path::{Hop, Left, MAX_HOPS, NodeNumber, Stop, UNKNOWN_PORT};
pub use trace::{
    AgentState, Component, Judgement, Reason, Suspicion, Target, Trace, TraceError, Verdict,
};
pub use tracer::{TraceId, Tracer, TracerConfig, TracerCounters};
pub use tree::{Branch, BranchEnd, Tree};
