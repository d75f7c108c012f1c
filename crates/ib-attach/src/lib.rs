//! Ports of a simulated fabric for HCAs in other processes.
//!
//! | module | holds |
//! |---|---|
//! | `frame` | contents of a slot: a packet or a MAD, with its addresses |
//! | `ring` | slots in shared memory, one ring per direction |
//! | `message` | messages over the socket |
//! | [`server`] | the simulator's side |
//! | [`client`] | the HCA's side |
//!
//! A simulator called NAME listens on the abstract Unix socket `NAME:data` (`SOCK_SEQPACKET`), of its own user
//! only. A client sends a hello with its protocol version and the requested port. The response
//! describes the port and carries three descriptors: sealed memory with a ring of slots per direction, and an
//! event counter for each side's wake-ups. Packets and MADs pass through the rings. Each ring has [`SLOTS`] slots,
//! which are the credits: a sender without a free slot waits until it is notified. The socket carries rare
//! messages, such as a new LID. If the socket is closed, the other side has disconnected.
//!
//! HCAs of several processes can share a port if they serve different management classes, such as an ACM service and a
//! program with connections. Each HCA has a block of queue pair numbers, by which the simulator finds the HCA of a
//! packet. Packets to multicast groups are passed to all of them.
//!
//! The simulator does not trust a client's memory: it reads every number once and checks it, and copies packets before
//! it reads them. A client trusts the simulator.

pub mod client;
mod frame;
mod message;
mod protocol;
mod ring;
pub mod server;

pub use client::{AttachError, AttachOptions, AttachedPort, locate};
pub use frame::Frame;
pub use message::{PortDetails, ResolvedPort};
pub use protocol::{BLOCKS, VERSION, qpn_block};
pub use ring::SLOTS;
pub use server::{AttachServer, ClientEvent};
