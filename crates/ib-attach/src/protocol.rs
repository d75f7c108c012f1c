//! Constants of the protocol between servers and HCAs, and the names of the sockets.

use std::net::IpAddr;

use ib_hca::QpnBlock;

/// Protocol version. It covers the messages and the layout of the rings.
pub const VERSION: u32 = 5;

/// Number of blocks of queue pair numbers of a port. Each HCA that shares the port has one block, of 65,536 numbers.
pub const BLOCKS: u16 = 1 << BLOCK_BITS;

/// Number of upper bits of a queue pair number that select the block.
const BLOCK_BITS: u8 = 8;

/// Prefix of the names of HCA daemons.
const HCA_DAEMON: &str = "ibfabric-hca-";

/// Returns block `number` of the queue pair numbers. Each HCA that shares a port uses one block.
#[must_use]
pub const fn qpn_block(number: u8) -> QpnBlock {
    QpnBlock::new(number, BLOCK_BITS)
}

/// Returns the name under which the HCA daemon of an IP address serves its port.
#[must_use]
pub fn hca_daemon_name(address: IpAddr) -> String {
    format!("{HCA_DAEMON}{}", address.to_canonical())
}

/// Returns the IP address of the HCA daemon with this name; `None` if the name is that of a simulator.
pub(crate) fn hca_daemon_address(name: &str) -> Option<&str> {
    name.strip_prefix(HCA_DAEMON)
}

/// Returns the name of the socket of a simulator or HCA daemon.
pub(crate) fn socket_name(base: &str) -> String {
    format!("{base}:data")
}
