//! ibtracer: builds the source route to a destination and validates the path taken, hop by hop.
//!
//! | module | holds |
//! |---|---|
//! | [`agent`] | [`TracerAgent`]: the agent on every node along a path |
//! | [`tracer`] | [`Tracer`]: the client, for one path or for many |
//! | [`trace`] | [`Trace`]: the verdicts on one path |
//! | [`tree`] | [`Tree`]: the verdicts on the tree of a multicast group |
//! | [`observation`] | [`Observation`]: how many probes were sent and answered, and where they arrived |
//! | [`atlas`] | [`Atlas`]: what the nodes have reported of the fabric |
//! | `fault_model`, `diagnosis` | what a probe depends on, and which faults explain all observations |
//! | `trial` | whether silence is a fault or chance |
//!
//! The client reads the forwarding tables along a path, over directed routes, and compares them with the
//! records of subnet administration if that is wanted. Probes show by which port a packet arrives at each
//! hop, which the switch before the hop has chosen.
//!
//! A path is proven good only if packets were seen at every hop and at the destination. It is proven bad
//! only if a fault explains what nothing else can explain, whatever the number of faults. Else the
//! [`Verdict`] on a hop lists the suspects.
//!
//! It owns no socket, thread or clock.

pub mod agent;
pub mod atlas;
mod census;
mod diagnosis;
mod facts;
mod fault_model;
pub mod observation;
mod probes;
pub mod trace;
pub mod tracer;
pub mod tree;
mod trial;

pub use agent::{AgentCounters, TracerAgent};
pub use atlas::{Atlas, End, NodeNumber, TracedNode};
pub use observation::{Observation, Probe, Witness};
pub use trace::{
    AgentState, Component, Hop, Judgement, Left, Reason, Stop, Suspicion, Target, Trace,
    TraceError, Verdict,
};
pub use tracer::{TraceId, Tracer, TracerConfig, TracerCounters, Via};
pub use tree::{Branch, BranchEnd, Tree};

/// What an agent tells instead of a port that it does not know.
pub const UNKNOWN_PORT: u8 = 255;

/// The most hops of a way: what a source route has room for.
pub const MAX_HOPS: usize = 64;
