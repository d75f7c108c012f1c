//! RoCEv2 over an ordinary UDP socket: packets from the BTH to the end of the pad, without driver
//! or privilege.
//!
//! | module | holds |
//! |---|---|
//! | `socket` | [`RoceSocket`]: a sender and a receiver on one UDP socket |
//! | `send` | [`RoceSender`]: packets become datagrams, many with one call |
//! | `receive` | [`RoceReceiver`]: datagrams become packets |
//! | `options`, `error` | [`RoceOptions`], [`RoceError`], [`PushError`] |
//! | `icrc` | [`IcrcCheck`]: the ICRC, and how it is checked without the whole IP header |
//! | `interface` | [`RoceInterface`]: GIDs, MTU and GUID of the machine's network interfaces |
//! | `counters` | [`RoceCounters`]: what went, what came and what was lost |
//! | `udp`, `control` | the UDP socket, control messages and addresses of the system |
//!
//! # Ports
//!
//! A socket sends from the port that it listens on, 4791 by itself, although RoCEv2 wants a port of
//! 49152 or above for each flow. Other implementations take packets from any port. It takes away
//! from networks with several ways the means to spread flows between the same two addresses.
//!
//! # Addresses
//!
//! A socket has one family. An HCA with GIDs of both opens two.
//!
//! # Identifications
//!
//! The ICRC covers the identification of IPv4, which the system chooses: 0 for the packets of a
//! socket that is not connected and forbids fragments, and 0, 1, 2 and so on for those that it cuts
//! a datagram into. The senders here count on both. The system does not tell the identification of
//! what arrives: see [`IcrcCheck`].
//!
//! ```
//! use std::net::Ipv4Addr;
//! use ib_link::Route;
//! use ib_os::clock;
//! use ib_roce::{RoceOptions, RoceSocket};
//!
//! // Each end has its own port here, since both are on the same machine.
//! let options = RoceOptions { port: 0, ..RoceOptions::new(Ipv4Addr::LOCALHOST.into()) };
//! let (mut here, mut there) = (RoceSocket::bind(&options)?, RoceSocket::bind(&options)?);
//! here.sender.set_peer_port(there.port());
//!
//! let gid = Ipv4Addr::LOCALHOST.into();
//! let route = Route { source: gid, destination: gid, is_global: true, ..Route::default() };
//! here.sender.push(&route, 12, |bth| bth.fill(0x64))?;
//! assert_eq!(here.sender.flush(), 0);
//!
//! there.wait(clock::now() + std::time::Duration::from_secs(10), None)?;
//! let packet = there.receiver.receive()?.expect("what was sent");
//! assert_eq!(packet.bytes, [0x64; 12]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod control;
mod counters;
mod error;
mod icrc;
mod interface;
mod options;
mod receive;
mod send;
mod socket;
mod udp;

pub use control::{address_of, gid_of};
pub use counters::{ErrorCounters, RoceCounters, RoceReceiveCounters, RoceSendCounters};
pub use error::{PushError, RoceError};
pub use icrc::{IcrcCheck, MAX_PACKET};
pub use interface::{RoceInterface, active_mtu};
pub use options::RoceOptions;
pub use receive::{RocePacket, RoceReceiver};
pub use send::RoceSender;
pub use socket::RoceSocket;

#[cfg(test)]
mod tests;
