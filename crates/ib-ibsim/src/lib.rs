//! The protocol between ibsim and its clients: messages, server and client link.
//!
//! A client, usually Debian's `libumad2sim.so` inside an unmodified tool, has two sockets. The
//! control socket carries messages of 80 bytes, each of which gets a reply. The data socket carries
//! requests of 288 bytes in both directions, each with one MAD. Sockets are Unix datagram sockets
//! with abstract names, or UDP sockets on the loopback device.
//!
//! | module | contents |
//! |---|---|
//! | [`server`] | the simulator's side: attaches clients, receives and sends MADs |
//! | [`client`] | the client's side: a [`MadLink`](ib_link::MadLink) at a node of the simulator |
//! | [`message`] | the messages of the control socket and the data socket |
//!
//! # Example
//! A client's connect message, as the server parses it:
//!
//! ```
//! use ib_ibsim::message::{Connect, Control, kind};
//!
//! let connect = Connect { id: 4711, queue_pair: 0, is_sm: true, node: "host-1".to_owned() };
//! let datagram = Control::new(0, kind::CONNECT, &connect.to_bytes()).to_bytes();
//!
//! let control = Control::parse(&datagram)?;
//! assert_eq!(control.kind, kind::CONNECT);
//! assert_eq!(Connect::parse(&control.payload), connect);
//! # Ok::<(), ib_ibsim::message::MessageError>(())
//! ```

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr as UnixAddress;

pub mod client;
pub mod message;
pub mod server;

/// Returns the abstract name of a socket. As in ibsim, the name includes a trailing NUL.
fn socket_name(base: &str, what: &str) -> io::Result<UnixAddress> {
    UnixAddress::from_abstract_name(format!("{base}:{what}\0"))
}
