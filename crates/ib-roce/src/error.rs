//! Errors of RoCEv2 sockets.

use std::io;
use std::net::IpAddr;

use crate::icrc::MAX_PACKET;

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The system's buffers and the own one are full. The packet may be pushed again when the socket
    /// is writable.
    #[error("the system takes no more packets now")]
    Full,
    /// No packet has such a length.
    #[error("a packet of {length} bytes: it has to be a multiple of 4 from 12 to {MAX_PACKET}")]
    Length {
        /// The length in bytes.
        length: usize,
    },
    /// The socket does not send from that address or not to that one.
    #[error("a socket of {socket} cannot send from {own} to {peer}")]
    Route {
        /// The own address of the route.
        own: IpAddr,
        /// The address of the other end.
        peer: IpAddr,
        /// The address of the socket.
        socket: IpAddr,
    },
}

/// Why there is no socket for RoCEv2.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoceError {
    /// The address and port cannot be had. Port 4791 is taken where the kernel's driver `rdma_rxe`
    /// is loaded.
    #[error("binding UDP port {port} of {address}: {source}")]
    Bind {
        /// The address.
        address: IpAddr,
        /// The port.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The system refuses an option that is necessary.
    #[error("setting {option} of the UDP socket for {address}: {source}")]
    Option {
        /// The option.
        option: &'static str,
        /// The address.
        address: IpAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system does not tell its interfaces.
    #[error("listing the network interfaces: {0}")]
    Interfaces(#[source] io::Error),
}
