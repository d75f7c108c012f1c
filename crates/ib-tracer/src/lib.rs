//! ibtracer: builds the source route to a destination and validates the path taken, hop by hop.
//!
//! | module | holds |
//! |---|---|
//! | [`agent`] | [`TracerAgent`]: what every node along the way runs |
//! | [`tracer`] | [`Tracer`]: the client, for one way or for many |
//! | [`trace`] | [`Trace`]: what came of one way |
//! | [`tree`] | [`Tree`]: what came of the tree of a multicast group |
//! | [`atlas`] | [`Atlas`]: what the client has learned of the fabric |
//!
//! The client reads the forwarding tables along a way, over directed routes or from subnet
//! administration, and asks the agent of each hop by which port a request to the hop's own LID came
//! in. The agent alone knows that, so a switch whose tables read well and that forwards otherwise is
//! found.
//!
//! A request to a hop takes the way to the *hop's own* LID, which need not be a part of the way to the
//! destination. So a hop is [`Verdict::Validated`] only where both enter it by the same link, and
//! [`Verdict::OwnRouteOnly`] elsewhere; the destination itself is always asked.
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
