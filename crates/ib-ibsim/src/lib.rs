//! The protocol between ibsim and its clients.
//!
//! A client, usually Debian's `libumad2sim.so` inside an unmodified tool, has two sockets. The control socket carries
//! messages of 80 bytes, each of which gets a reply. The data socket carries requests of 288 bytes with one MAD in both
//! directions. Sockets are Unix datagram sockets with abstract names, or UDP sockets on the loopback device.
//!
//! | module | holds |
//! |---|---|
//! | [`message`] | the messages of both sockets |
//! | [`server`] | the simulator's side |
//! | [`client`] | the client's side: a [`MadLink`](ib_link::MadLink) at a node of the simulator |

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr as UnixAddress;

pub mod client;
pub mod message;
pub mod server;

/// Returns the abstract name of a socket. ibsim includes the trailing NUL in the name.
fn socket_name(base: &str, what: &str) -> io::Result<UnixAddress> {
    UnixAddress::from_abstract_name(format!("{base}:{what}\0"))
}
