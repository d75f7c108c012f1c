//! Identifiers, keys and link attributes of InfiniBand, and small helpers for all ibfabric crates.
//!
//! This crate is the lowest layer of ibfabric. It consists mostly of small `Copy` types, whose constructors reject
//! values out of range. The crate does no I/O and reads no clock.
//!
//! | module | contents |
//! |---|---|
//! | [`address`] | [`Guid`], [`Gid`], [`Lid`], [`Lmc`]: addresses of nodes and ports |
//! | [`errno`] | [`Errno`]: Linux error numbers, which RTRS and RNBD carry |
//! | [`link`] | [`LinkWidth`], [`LinkSpeed`], and the signalling rate of a link |
//! | [`node`] | [`NodeKind`]: channel adapter, switch, router |
//! | [`prometheus`] | [`Page`](prometheus::Page): metrics in the text format of Prometheus |
//! | [`rng`] | [`Rng`](rng::Rng): seeded random numbers, identical in every release |
//! | [`text`] | [`escaped`](text::escaped): escapes text of peers for terminals and logs |
//! | [`time`] | [`Instant`]: a timestamp of a real or virtual clock; [`Deadlines`]: the timers of a state machine, ordered by deadline |
//! | [`transport`] | [`Qpn`], [`Psn`], [`PKey`], [`QKey`], [`Mtu`], [`ServiceLevel`] (SL), [`VirtualLane`] (VL) |
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
pub mod errno;
pub mod link;
pub mod node;
pub mod prometheus;
pub mod rng;
pub mod text;
pub mod time;
pub mod transport;

pub use address::{Gid, Guid, Lid, Lmc};
pub use errno::Errno;
pub use link::{LinkSpeed, LinkWidth};
pub use node::NodeKind;
pub use time::{Deadlines, Instant};
pub use transport::{Mtu, PKey, Psn, QKey, Qpn, ServiceLevel, VirtualLane};
