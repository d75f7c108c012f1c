//! Traits and types between protocol engines and the links that carry their MADs and packets.
//!
//! Protocol engines own no sockets or threads, and do not read a clock. A driver passes MADs and
//! the time to an engine, and polls it for MADs to send and for its next deadline.
//!
//! | module | contents |
//! |---|---|
//! | [`link`] | [`MadLink`]: a port that sends and receives MADs |
//! | [`agent`] | [`NodeAgent`]: a protocol engine that serves management classes at a node |
//! | [`datagram`] | [`Datagram`]: a MAD and the addresses of both ends |
//! | [`route`] | [`Route`]: the addresses of packets between two ports |
//! | [`trace`] | [`MessageBlock`], [`PacketRecord`], [`PacketSource`]: capture records of queue pairs |
//! | [`upper_bits`] | [`UpperBits`]: the bits of transaction IDs that ibsim overwrites |
//!
//! Creates a received request, and the reply to it:
//!
//! ```
//! use ib_link::{Datagram, Remote};
//! use ib_wire::mad::{Mad, MadStatus, Method, MgmtClass, TransactionId};
//!
//! let request = Mad::new(MgmtClass::PERFORMANCE, Method::GET, TransactionId(1));
//! let received = Datagram::new(Remote::gsi(7), request);
//! let mut response = received.mad;
//! response.answer(MadStatus::OK);
//! let reply = received.reply(response);
//! assert_eq!((reply.remote.lid, reply.mad.method()), (7, Method::GET_RESP));
//! ```

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
