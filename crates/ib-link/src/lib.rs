//! What joins engines to the world: the traits between them and the types that pass through.
//!
//! | module | holds |
//! |---|---|
//! | [`datagram`] | [`Datagram`]: a management datagram and who is at the other end |
//! | [`link`] | [`MadLink`]: a port that sends and receives datagrams, whatever is behind it |
//! | [`agent`] | [`NodeAgent`]: an engine that serves management classes of a node |
//! | [`route`] | [`Route`]: how packets of queue pairs travel between two ports |
//! | [`trace`] | [`MessageBlock`], [`PacketRecord`]: what adapters note of queue pairs, and how it is read |
//! | [`upper_bits`] | [`UpperBits`]: what a simulator writes over in transactions |
//!
//! An engine knows neither sockets nor the simulator: it is handed datagrams and the time, and is
//! asked what it wants to send and when it wants to be called again.

pub mod agent;
pub mod datagram;
pub mod link;
pub mod route;
pub mod trace;
pub mod upper_bits;

pub use agent::{Arrival, NodeAgent};
pub use datagram::{Datagram, Remote};
pub use link::{Incoming, LinkError, LinkPort, MadLink};
pub use route::Route;
pub use trace::{Direction, MessageBlock, PacketCounts, PacketRecord, PacketSource};
pub use upper_bits::UpperBits;
