//! Unicast routing of an InfiniBand subnet.
//!
//! From the top down:
//!
//! | module | holds |
//! |---|---|
//! | [`mod@check`] | the proof that tables are sound: reachability, loops, credit loops, hops, load |
//! | [`metrics`] | how well tables spread traffic: bisections and shifts |
//! | [`dump`] | OpenSM's dump files, written and read |
//! | [`engine`] | the trait [`Engine`], its options, and one file per engine |
//! | [`lft`], [`layers`] | what an engine makes: forwarding tables and service levels |
//! | [`hops`] | the lid matrix that minhop, updn and dor choose from |
//! | `fill` | their choice of a port for every LID |
//! | `roots` | root switches, named or detected |
//! | [`lids`] | LID assignment |
//! | [`subnet`] | [`Subnet`]: what a subnet manager on one port of a fabric sees, in OpenSM's order |

pub mod check;
pub mod dump;
pub mod engine;
mod fill;
pub mod hops;
pub mod layers;
pub mod lft;
pub mod lids;
pub mod metrics;
mod roots;
pub mod subnet;

pub use check::{CheckReport, check};
pub use engine::{Engine, EngineError, EngineKind, EngineList, Routing, RoutingOptions};
pub use hops::HopMatrix;
pub use layers::Layers;
pub use lft::{Lfts, NO_PATH, UnknownEntries};
pub use lids::LidOptions;
pub use subnet::{Attachment, EndPortId, Peer, Subnet, SubnetOptions, SwitchId};
