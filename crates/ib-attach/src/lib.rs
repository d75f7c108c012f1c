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
mod ring;
pub mod server;

pub use client::{AttachError, AttachOptions, AttachedPort, locate};
pub use frame::Frame;
pub use message::{Place, PortDetails};
pub use ring::SLOTS;
pub use server::{AttachServer, Said};

use ib_hca::QpnBlock;

/// Protocol version, of the hello and of the rings.
pub const VERSION: u32 = 4;

/// Maximum number of HCAs that share a port; each has a block of queue pair numbers.
pub const BLOCKS: u8 = 1 << BLOCK_BITS;

/// Number of upper bits of a queue pair number that select the block.
const BLOCK_BITS: u8 = 2;

/// Returns a block of queue pair numbers for an HCA at a port.
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
