//! Ports that a simulator or an HCA daemon shares with HCAs in other processes.
//!
//! A server has ports and an [`AttachServer`]; an HCA's process attaches to a port with [`AttachedPort`]. A simulator
//! (`ibfabric sim`) has the ports of its fabric. An HCA daemon (`ibfabric hca`) has one port: an IP address of this
//! machine, over RoCEv2. In the text below, *simulator* means either server.
//!
//! | module | contents |
//! |---|---|
//! | [`server`] | [`AttachServer`]: the simulator's side |
//! | [`client`] | [`AttachedPort`]: the HCA's side |
//! | `message` | messages over the socket |
//! | `ring` | slots in shared memory, one ring per direction |
//! | [`demux`] | [`Demultiplexer`]: selects the HCA that gets a packet |
//! | `frame` | [`Frame`]: contents of a slot, a packet or a MAD with its addresses |
//! | `protocol` | protocol version and limits |
//!
//! A simulator called NAME listens on the abstract Unix socket `NAME:data` (`SOCK_SEQPACKET`), and
//! accepts clients of its own user only. A client sends a hello with its protocol version and the
//! requested port. The response describes the port and carries three descriptors: sealed memory
//! with a ring of slots per direction, and two event counters. One event counter wakes the
//! simulator, the other the client. Packets and MADs pass through the rings. Each ring has
//! [`SLOTS`] slots, which are the credits: a sender without a free slot waits until it is notified.
//! The socket carries rare messages, such as a new LID. If the socket is closed, the other process
//! has disconnected.
//!
//! HCAs of several processes can share a port if they serve different management classes. For example, an ACM
//! service can share a port with a program that uses connections. Each HCA has a block of queue pair numbers. The
//! [`Demultiplexer`] of the port selects the HCA that gets a packet.
//!
//! The simulator does not trust a client, which can write to the shared memory at any time. The simulator reads each
//! counter once and checks it, and copies each packet before it parses the packet. A client trusts the simulator.
//!
//! # Example
//! A client attaches to a port and sends a packet to the simulator:
//!
//! ```
//! use std::net::IpAddr;
//!
//! use ib_attach::{
//!     AttachOptions, AttachServer, AttachedPort, ClientEvent, Frame, LinkLayer, PortDetails,
//! };
//! use ib_types::{Mtu, ServiceLevel};
//! use ib_wire::mad::MgmtClass;
//! use ib_wire::mad::sa::RateCode;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let name = format!("attach-example-{}", std::process::id());
//! let mut server = AttachServer::bind(&name)?;
//! let options = AttachOptions { name, node: None };
//! let client = std::thread::spawn(move || {
//!     let mut port = AttachedPort::attach(&options, MgmtClass::COMMUNICATION)?;
//!     let frame = Frame::Packet { slid: 3, dlid: 4, sl: ServiceLevel::default(), grh: None };
//!     assert!(port.send_with(|slot| {
//!         slot[..4].copy_from_slice(b"data");
//!         Some((frame, 4))
//!     }));
//!     port.flush();
//!     Ok::<AttachedPort, ib_attach::AttachError>(port)
//! });
//!
//! let key = loop {
//!     if let [key] = server.accept()[..] {
//!         break key;
//!     }
//! };
//! while !matches!(server.next(key), Some(ClientEvent::Hello { .. })) {}
//! let port = ib_link::LinkPort { lid: 3, ..ib_link::LinkPort::default() };
//! let details = PortDetails {
//!     port,
//!     is_active: true,
//!     mtu: Mtu::B4096,
//!     rate: RateCode::GBPS_100,
//!     registrations: 0,
//!     port_count: 1,
//!     p_keys: vec![0xffff],
//!     node: "host-1".to_owned(),
//!     addresses: vec![IpAddr::from([10, 0, 0, 1])],
//!     qpn_block: 0,
//!     link_layer: LinkLayer::InfiniBand,
//! };
//! server.admit(key, &details)?;
//! let _port = client.join().expect("the client does not panic")?;
//!
//! let mut bytes = Vec::new();
//! let frame = server.take(key, &mut bytes).flatten();
//! assert!(matches!(frame, Some(Frame::Packet { slid: 3, dlid: 4, .. })));
//! assert_eq!(bytes, b"data");
//! # Ok(())
//! # }
//! ```

pub mod client;
pub mod demux;
mod frame;
mod message;
mod protocol;
mod ring;
pub mod server;

pub use client::{AttachError, AttachOptions, AttachedPort, hold, locate};
pub use demux::{AdmissionError, Demultiplexer, Destination};
pub use frame::Frame;
pub use message::{LinkLayer, PortDetails, ResolvedPort};
pub use protocol::{BLOCKS, VERSION, hca_daemon_name, qpn_block};
pub use ring::SLOTS;
pub use server::{AttachServer, ClientEvent};
