//! RoCEv2 over an ordinary UDP socket, without a driver or privileges. In this crate, a packet
//! extends from the BTH to the end of the pad.
//!
//! | module | holds |
//! |---|---|
//! | `socket` | [`RoceSocket`]: a sender and a receiver on one UDP socket |
//! | `options` | [`RoceOptions`], [`RoceCounters`] and [`RoceError`] of a socket |
//! | `send` | [`RoceSender`]: sends packets as datagrams, with GSO and `sendmmsg` |
//! | `receive` | [`RoceReceiver`]: receives datagrams and returns their packets, with GRO and `recvmmsg` |
//! | `icrc` | [`IcrcCheck`]: computation of the ICRC, and its check without the whole IP header |
//! | `interface` | [`RoceInterface`]: GIDs, MTU and GUID of the machine's network interfaces |
//! | `udp` | the UDP socket, control messages and addresses of the system |
//!
//! # Ports
//!
//! A socket sends from the port that it is bound to, 4791 by default. RoCEv2 specifies a source
//! port of 49152 or above for each flow, but other implementations accept packets from any port. In
//! networks with several paths (ECMP), all flows between two addresses therefore use the same path.
//!
//! # Addresses
//!
//! A socket has one address family. An HCA with GIDs of both families opens two sockets.
//!
//! # Identifications
//!
//! The ICRC covers the identification of IPv4, which the system chooses. For an unconnected socket
//! with "don't fragment", the system sends packets with identification 0, and the segments of a GSO
//! datagram with 0, 1, 2 and so on. The senders of this crate rely on that. The system does not
//! report the identification of received packets; [`IcrcCheck`] describes the consequences.
//!
//! # Example
//! Two sockets exchange a packet:
//! ```
//! use std::net::Ipv4Addr;
//! use ib_link::Route;
//! use ib_os::clock;
//! use ib_roce::{RoceOptions, RoceSocket};
//!
//! // The sockets have different ports here, because both are on the same machine.
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
//! let packet = there.receiver.receive()?.expect("the packet has arrived");
//! assert_eq!(packet.bytes, [0x64; 12]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod icrc;
mod interface;
mod options;
mod receive;
mod send;
mod socket;
mod udp;

pub use icrc::{IcrcCheck, MAX_PACKET};
pub use interface::{RoceInterface, active_mtu};
pub use options::{
    ErrorCounters, PushError, RoceCounters, RoceError, RoceOptions, RoceReceiveCounters,
    RoceSendCounters,
};
pub use receive::{RocePacket, RoceReceiver};
pub use send::RoceSender;
pub use socket::RoceSocket;
pub use udp::{address_of, gid_of};

#[cfg(test)]
mod tests;
