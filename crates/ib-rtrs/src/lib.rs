//! RTRS 2.0: a client and a server that transfer blocks of data over RDMA, on several paths between HCAs.
//!
//! Client and server also interoperate with the RTRS of a Linux kernel. Both are engines without socket, thread or
//! clock. An engine posts work requests to software HCAs ([`ib_hca`]). The program that uses an engine is the owner of
//! these HCAs: it drives them, and passes their events and those of their connection managers to the engine.
//!
//! | module | holds |
//! |---|---|
//! | [`client`] | [`Client`]: a session with a server, its paths and requests |
//! | [`server`] | [`Server`]: sessions of clients, their requests and responses |
//! | [`tree`] | the statistics and control files of sessions and paths, as in IBTRS and Linux |
//! | [`stats`] | statistics of paths |
//! | [`address`] | [`Address`], [`PathAddress`]: text form of path addresses |
//! | `connection` | [`Adapters`]: how client and server access HCAs; a connection of a path: its queue pair; detection of dead peers |
//! | `proof` | mutual authentication by a shared key |
//!
//! # Data placement
//! The server's memory is divided into chunks, one for each request in flight. For each request, the client writes a
//! header of its user and an RTRS message into a chunk. For a write, it also writes the data. The server's user reads
//! the header and the data in the chunk.
//!
//! The client's user registers memory for the data of its requests ([`Client::register`]). The HCA sends the data of a
//! write directly from this memory. The server writes the data of a read directly into this memory, through a key that
//! is valid only while the read is in flight. An RTRS read has only one descriptor. If a read has several segments, its
//! data is therefore received in a bounce buffer of the session, and then copied.
//!
//! # Example
//! Client and server are connected in memory, and write a block:
//! ```
//! use std::net::{Ipv4Addr, SocketAddr};
//!
//! use ib_cm::{Cm, CmConfig};
//! use ib_hca::{Hca, HcaConfig, HcaEvent, MAX_PACKET, Memory};
//! use ib_link::Route;
//! use ib_rtrs::{
//!     Adapter, AdapterId, Adapters, Client, ClientConfig, Direction, Errno, Outcome, PathSpec, Request,
//!     Segment, Server, ServerConfig,
//! };
//! use ib_types::{Gid, Guid, Instant, Mtu};
//! use ib_wire::mad::MgmtClass;
//!
//! /// An HCA and its connection manager.
//! struct Node {
//!     hca: Hca,
//!     cm: Cm,
//!     gid: Gid,
//! }
//!
//! impl Node {
//!     fn new(address: Ipv4Addr) -> Self {
//!         let [.., number] = address.octets();
//!         let (gid, ca_guid) = (Gid(address.to_ipv6_mapped().into()), Guid(number.into()));
//!         Self {
//!             hca: Hca::new(HcaConfig::new(ca_guid, vec![gid]), [number; 32]),
//!             cm: Cm::new(CmConfig { ca_guid, ..CmConfig::default() }, [number; 32]),
//!             gid,
//!         }
//!     }
//!
//!     /// Passes received MADs to the connection manager, and returns the other events.
//!     fn events(&mut self, now: Instant) -> Vec<HcaEvent> {
//!         let mut events = Vec::new();
//!         while let Some(event) = self.hca.poll_event() {
//!             match event {
//!                 HcaEvent::Mad { route, mad, .. } if mad.class() == MgmtClass::COMMUNICATION => {
//!                     self.cm.handle(now, &route, &mad);
//!                 }
//!                 event => events.push(event),
//!             }
//!         }
//!         events
//!     }
//!
//!     /// Delivers all packets to the other HCA.
//!     fn transmit(&mut self, now: Instant, to: &mut Hca) {
//!         while let Some((route, mad)) = self.cm.poll_transmit() {
//!             self.hca.send_mad(route, mad);
//!         }
//!         let mut packet = vec![0; MAX_PACKET];
//!         while let Some(sent) = self.hca.poll_transmit(now, &mut packet) {
//!             let Route { source, destination, .. } = sent.route;
//!             let route = Route { source: destination, destination: source, ..sent.route };
//!             to.handle(now, &route, &packet[..sent.length]);
//!         }
//!     }
//! }
//!
//! impl Adapters for Node {
//!     fn get(&mut self, _: AdapterId) -> Option<Adapter<'_>> {
//!         Some(Adapter { hca: &mut self.hca, cm: &mut self.cm })
//!     }
//! }
//!
//! let (now, id) = (Instant::ZERO, AdapterId(0));
//! let addresses = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
//! let [mut near, mut far] = addresses.map(Node::new);
//! let mut server = Server::new(ServerConfig::default(), [3; 32]);
//! server.listen(&mut far, id, 1234)?;
//! let mut client = Client::new(ClientConfig::new("backup"), [4; 32]);
//! let memory = Memory::zeroed(512)?;
//! let buffer = client.register(&mut near, memory.clone())?;
//! let [source, destination] = addresses.map(|address| SocketAddr::new(address.into(), 1234));
//! let route = Route { source: near.gid, destination: far.gid, is_global: true, ..Route::default() };
//! client.add_path(now, &mut near, PathSpec::new(id, source, destination, route, Mtu::B1024))?;
//!
//! memory.write(0, &[0x2a; 512])?;
//! let request = Request {
//!     cpu: 0,
//!     direction: Direction::Write,
//!     header: b"block 7",
//!     data: &[Segment { buffer, offset: 0, length: 512 }],
//!     user: 1,
//!     is_admin: false,
//! };
//! let mut is_sent = false;
//! let completion = loop {
//!     near.transmit(now, &mut far.hca);
//!     far.transmit(now, &mut near.hca);
//!     for event in near.events(now) {
//!         client.handle_hca(now, &mut near, 0, id, &event);
//!     }
//!     while let Some(event) = near.cm.poll_event() {
//!         client.handle_cm(now, &mut near, id, event);
//!     }
//!     for event in far.events(now) {
//!         server.handle_hca(now, &mut far, 0, id, &event);
//!     }
//!     while let Some(event) = far.cm.poll_event() {
//!         server.handle_cm(now, &mut far, id, event);
//!     }
//!     is_sent |= !is_sent && client.request(now, &mut near, &request).is_ok();
//!     while let Some(write) = server.poll_request() {
//!         let chunks = server.memory(write.session).expect("the session is up");
//!         assert_eq!(chunks.to_vec(write.header_offset, 7)?, b"block 7");
//!         assert_eq!(chunks.to_vec(write.data_offset, 512)?, [0x2a; 512]);
//!         server.complete(now, &mut far, write.id, Errno::OK, 0);
//!     }
//!     if let Some(completion) = client.poll_completion() {
//!         break completion;
//!     }
//! };
//! assert_eq!(completion.outcome, Outcome::Answered(Errno::OK));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod address;
pub mod client;
mod connection;
mod proof;
pub mod server;
pub mod stats;
pub mod tree;

pub use address::{Address, PathAddress};
pub use client::{
    BufferId, Client, ClientConfig, ClientEvent, Completion, Failure, Outcome, PathId, PathSpec,
    PathState, Policy, Request, RequestError, RequestId, Segment,
};
pub use connection::{Adapter, AdapterId, Adapters, SetupError};
pub use ib_types::Errno;
pub use proof::SharedKey;

pub use server::{
    EndReason, ListenError, Refusal, Server, ServerConfig, ServerEvent, ServerPathId,
    ServerRequest, ServerRequestId, SessionId, StoreId,
};

use std::time::Duration;

/// The direction of the data of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the server to the client.
    Read,
    /// From the client to the server.
    Write,
}

/// Timeouts and retries of the queue pairs of a path, and timeouts that are proposed to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Exponent of the local ACK timeout, 1 to 31: packets are retransmitted after 4.096 µs × 2^value.
    pub ack_timeout: u8,
    /// Maximum number of retransmissions of a packet, 0 to 7.
    pub retry_count: u8,
    /// Exponent of the ACK timeout that the REQ proposes to the server. It is large because soft RoCE of a Linux 6.1
    /// server may hang after a retransmission.
    pub peer_ack_timeout: u8,
    /// Exponent of the target ACK delay that a server puts into its REP. A Linux 6.1 client derives its ACK timeout
    /// from this value: 2.1 s for a value up to 17, 4.3 s for 18 and 19, and 4.096 µs × 2^value for a greater value. If
    /// the last packet of a message is lost, the client stalls for its ACK timeout.
    pub target_ack_delay: u8,
}

impl Default for Transport {
    /// By default, a path fails 2.1 s after the first transmission of a packet without an ACK: after eight ACK timeouts
    /// of 268 ms. A Linux server has an ACK timeout of 17 s, and a Linux client one of 2.1 s.
    fn default() -> Self {
        Self { ack_timeout: 16, retry_count: 7, peer_ack_timeout: 22, target_ack_delay: 17 }
    }
}

/// Detection of a dead peer by heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeats {
    /// Time between two heartbeats that the local side sends.
    pub interval: Duration,
    /// The peer counts as dead after this many intervals without a message.
    pub missed_max: u32,
}

impl Default for Heartbeats {
    /// The default is an interval of 5 s and at most 5 missed heartbeats, as in Linux.
    fn default() -> Self {
        Self { interval: Duration::from_secs(5), missed_max: 5 }
    }
}
