//! Constants of the protocol between simulator and HCAs, and the name of the socket.

use ib_hca::QpnBlock;

/// Protocol version. It covers the messages and the layout of the rings.
pub const VERSION: u32 = 5;

/// Maximum number of HCAs that share a port; each has a block of queue pair numbers.
pub const BLOCKS: u8 = 1 << BLOCK_BITS;

/// Number of upper bits of a queue pair number that select the block.
const BLOCK_BITS: u8 = 2;

/// Returns block `number` of the queue pair numbers. Each HCA that shares a port uses one block.
///
/// # Panics
/// Panics if `number` is not less than [`BLOCKS`].
#[must_use]
pub const fn qpn_block(number: u8) -> QpnBlock {
    QpnBlock::new(number, BLOCK_BITS)
}

/// Returns the name of the socket of a simulator.
pub(crate) fn socket_name(base: &str) -> String {
    format!("{base}:data")
}
