//! Unicast routing of InfiniBand subnets: OpenSM's engines, and checks of forwarding tables.
//!
//! A [`Subnet`] is a fabric as a subnet manager discovers it, with LIDs. An [`Engine`] computes the forwarding tables
//! of the subnet. [`mod@check`] checks forwarding tables from an engine or any other source.
//!
//! | module | contents |
//! |---|---|
//! | [`mod@check`] | checks of forwarding tables: reachability, forwarding loops, credit loops, hops, load |
//! | [`metrics`] | metrics of forwarding tables: effective bisection bandwidth, shift contention |
//! | [`dump`] | readers and writers of OpenSM's dump files |
//! | [`engine`] | the trait [`Engine`], the options of engines, and one file per engine |
//! | [`lft`], [`layers`] | forwarding tables and service levels, which engines compute |
//! | [`hops`] | the hop matrix, from which minhop, updn and dor choose ports |
//! | `fill` | the choice of an output port for every LID |
//! | `roots` | the root switches, configured or detected |
//! | [`lids`] | LID assignment |
//! | [`subnet`] | [`Subnet`]: the fabric as discovered by a subnet manager, in OpenSM's order |
//!
//! # Example
//! ```
//! use ib_routing::engine::updn::UpDown;
//! use ib_routing::{Engine, RoutingOptions, Subnet, SubnetOptions, check};
//! use ib_topology::generate::{Kind, Options, generate};
//!
//! let kind = Kind::parse("fat-tree", &["8"])?;
//! let fabric = generate(&kind, &Options::default())?;
//! let subnet = Subnet::discover(&fabric, &SubnetOptions::default())?;
//! let routing = UpDown.route(&subnet, &RoutingOptions::default())?;
//!
//! let report = check::check(&subnet, &routing.lfts, &routing.layers);
//! assert_eq!((report.reach.unreachable, report.credit.loops), (0, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
