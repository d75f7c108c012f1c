//! The datagrams between ibsim and its clients.
//!
//! A client, most often Debian's `libumad2sim.so` inside an unmodified tool, talks to the simulator over
//! two sockets: control messages of 80 bytes, each of which is answered, and requests of 288 bytes
//! that carry one management datagram each way. The sockets are Unix datagram sockets with abstract
//! names or, when both sides want it, UDP on the loopback device.
//!
//! | module | holds |
//! |---|---|
//! | [`message`] | the two messages |
//! | [`server`] | the simulator's side |
//! | [`client`] | the other side: a [`MadLink`](ib_link::MadLink) through a node of the simulator |

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr as UnixAddress;

pub mod client;
pub mod message;
pub mod server;

/// Returns the abstract name of a socket; the zero behind it is part of the name for ibsim.
fn socket_name(base: &str, what: &str) -> io::Result<UnixAddress> {
    UnixAddress::from_abstract_name(format!("{base}:{what}\0"))
}
