//! Ports of a simulated fabric for HCAs in other processes.
//!
//! | module | holds |
//! |---|---|
//! | `frame` | what stands in a slot: a packet or a management datagram, with its addresses |
//! | `ring` | slots in memory that two processes share, in both directions |
//! | `message` | what the two tell each other over the socket |
//! | [`server`] | the simulator's side |
//! | [`client`] | the HCA's side |
//!
//! A simulator called NAME listens on the abstract Unix socket `NAME:data` (`SOCK_SEQPACKET`), of its own user
//! only. A client says hello with the version that it speaks and the port that it wants. The answer
//! describes the port and brings three files: sealed memory with a ring of slots in each direction, and an
//! event counter that wakes either side. Packets and datagrams go through the rings; each ring has
//! [`SLOTS`] of them, which are the credits: who finds none waits until it is told of one. The socket carries
//! what is rare, such as a new LID, and its end tells that the other side has gone.
//!
//! HCAs of several processes can share a port if they serve different classes of management datagrams, such as a
//! service of IB ACM beside a program with connections. Each has a block of queue pair numbers of its own, by which the
//! simulator tells whose a packet is; packets to multicast groups go to all of them.
//!
//! The simulator believes nothing that a client may write: it reads every number once, checks it, and
//! copies what it takes before it looks at it. A client believes the simulator.

pub mod client;
mod frame;
mod message;
mod ring;
pub mod server;

pub use client::{AttachError, AttachOptions, AttachedPort, locate};
pub use frame::Frame;
pub use message::{Place, PortDetails};
pub use ring::SLOTS;
pub use server::{AttachServer, Said};

use ib_hca::QpnBlock;

/// The version of the protocol: of hello and of the rings.
pub const VERSION: u32 = 4;

/// How many HCAs can share a port: each has a block of queue pair numbers of its own.
pub const BLOCKS: u8 = 1 << BLOCK_BITS;

/// The upper bits of a queue pair number that tell the block.
const BLOCK_BITS: u8 = 2;

/// Returns a block of queue pair numbers, of those that HCAs at a port have.
///
/// # Panics
/// Panics if there is no such block: expected a number below [`BLOCKS`].
#[must_use]
pub const fn qpn_block(number: u8) -> QpnBlock {
    QpnBlock::new(number, BLOCK_BITS)
}

/// Returns the name of the socket of a simulator.
fn name(base: &str) -> String {
    format!("{base}:data")
}
