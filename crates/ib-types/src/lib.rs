//! Identifiers and link attributes of InfiniBand.
//!
//! This is the lowest layer of ibfabric: small `Copy` types that every other crate speaks, with
//! the checks that make an illegal value unrepresentable. It does no I/O and reads no clock.
//!
//! | module | holds |
//! |---|---|
//! | [`address`] | [`Guid`], [`Gid`], [`Lid`], [`Lmc`]: what a node, a port and a path are called |
//! | [`deadlines`] | [`Deadlines`]: the timers of a state machine, in the order of their deadlines |
//! | [`errno`] | [`Errno`]: error numbers of Linux, as on the wire |
//! | [`link`] | [`LinkWidth`], [`LinkSpeed`]: what a link can carry |
//! | [`node`] | [`NodeKind`]: channel adapter, switch or router |
//! | [`prometheus`] | [`Page`](prometheus::Page): metrics in the text format of Prometheus |
//! | [`qos`] | [`ServiceLevel`], [`VirtualLane`]: how traffic is kept apart on a link |
//! | [`rng`] | [`Rng`](rng::Rng): seeded random numbers, the same in every release |
//! | [`text`] | [`escaped`](text::escaped): text of peers, safe for terminals and logs |
//! | [`time`] | [`Instant`]: a moment of a clock that may be virtual |
//! | [`transport`] | [`Qpn`], [`Psn`], [`PKey`], [`QKey`]: queue pairs, sequence numbers and keys |
//!
//! ```
//! use ib_types::{Guid, Lid, LinkSpeed, LinkWidth};
//!
//! let guid: Guid = "0x0002c90300a1b2c3".parse()?;
//! assert_eq!(guid.to_string(), "0x0002c90300a1b2c3");
//! assert_eq!(Lid::unicast(0x17)?.get(), 23);
//! assert_eq!(LinkSpeed::Ndr.megabits_per_second(LinkWidth::X4), 425_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod address;
pub mod deadlines;
pub mod errno;
pub mod link;
pub mod node;
pub mod prometheus;
pub mod qos;
pub mod rng;
pub mod text;
pub mod time;
pub mod transport;

pub use address::{Gid, Guid, Lid, Lmc};
pub use deadlines::Deadlines;
pub use errno::Errno;
pub use link::{LinkSpeed, LinkWidth};
pub use node::NodeKind;
pub use qos::{ServiceLevel, VirtualLane};
pub use time::Instant;
pub use transport::{Mtu, PKey, Psn, QKey, Qpn};
