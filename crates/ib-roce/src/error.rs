//! Errors of RoCEv2 sockets.

use std::io;
use std::net::IpAddr;

use crate::icrc::MAX_PACKET;

/// Error of [`RoceSender::push`](crate::RoceSender::push).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The buffers of the system and of the sender are full. The caller can push the packet again
    /// when the socket is writable.
    #[error("the send buffer is full: push again when the socket is writable")]
    Full,
    /// The size of the packet is invalid.
    #[error("the packet has {length} bytes: expected a multiple of 4 from 12 to {MAX_PACKET}")]
    Length {
        /// Size of the packet in bytes.
        length: usize,
    },
    /// The route's source address is not that of the socket, or the addresses have different
    /// families.
    #[error(
        "a socket bound to {socket} cannot send from {own} to {peer}: expected its own address, and one address family"
    )]
    Route {
        /// Source address of the route.
        own: IpAddr,
        /// Destination address of the route.
        peer: IpAddr,
        /// Address of the socket.
        socket: IpAddr,
    },
}

/// Error of opening a RoCEv2 socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoceError {
    /// The socket cannot be bound to the address and port. Port 4791 is in use if the kernel's
    /// driver `rdma_rxe` is loaded.
    #[error("cannot bind UDP port {port} of {address}: {source}{}", hint(source))]
    Bind {
        /// The local IP address.
        address: IpAddr,
        /// The local UDP port.
        port: u16,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A required socket option cannot be set.
    #[error("cannot set {option} of the UDP socket for {address}: {source}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// The local IP address.
        address: IpAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The network interfaces cannot be listed.
    #[error("cannot list the network interfaces: {0}")]
    Interfaces(#[source] io::Error),
}

/// Returns the probable cause of an error of `bind`. The text of [`RoceError::Bind`] appends it.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another HCA or the kernel driver rdma_rxe uses it: expected an address that no other process uses"
        }
        io::ErrorKind::AddrNotAvailable => "; no network interface has this address",
        _ => "",
    }
}
