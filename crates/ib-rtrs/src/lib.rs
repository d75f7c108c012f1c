//! RTRS: blocks of data over RDMA, by several paths between a client and a server. It speaks version 2.0, so that
//! either end may be a Linux kernel.
//!
//! Both engines use software HCAs ([`ib_hca`]) that their owner drives. They own no socket, thread or clock.
//! The owner passes events of HCAs and their connection managers to an engine. The engine posts its packets to
//! the send queues of the HCAs.
//!
//! | module | holds |
//! |---|---|
//! | [`client`] | [`Client`]: a session with a server, its paths, its requests |
//! | [`server`] | [`Server`]: sessions of clients, their requests and the answers |
//! | [`adapters`] | [`Adapters`]: how engines reach the HCAs of their owner |
//! | [`address`] | [`Address`], [`PathAddress`]: the ends of paths, as they are written |
//! | [`stats`] | what is counted of paths |
//! | [`tree`] | the files by which people and programs see and change all that, as IBTRS and Linux have them |
//! | `connection`, `heartbeat`, `proof` | what both ends share |
//!
//! # Where data lies
//! The server's memory is divided into chunks, of which each request has one: a client writes data, its user's header
//! and a message into it, and the server's user finds them there. The client's data lies in memory that its user has
//! registered ([`Client::register`]). What is written is sent from there. What is read is placed there by the
//! server itself, through a key that is open as long as the request is in flight; only what goes to several
//! pieces of memory goes through a buffer of the session, for the protocol has one destination.
//!
//! ```
//! use ib_rtrs::{
//!     Adapter, AdapterId, Adapters, Client, ClientConfig, Direction, PathAddress, Request, RequestError,
//! };
//! use ib_types::Instant;
//!
//! /// Adapters, if there were any: see `ib_storage::rtrs::Devices`.
//! struct Nowhere;
//!
//! impl Adapters for Nowhere {
//!     fn get(&mut self, _: AdapterId) -> Option<Adapter<'_>> {
//!         None
//!     }
//! }
//!
//! let path: PathAddress = "ip:192.168.77.2@ip:192.168.77.1".parse()?;
//! assert_eq!(path.destination.to_string(), "ip:192.168.77.1");
//!
//! let mut client = Client::new(ClientConfig::new("backup"), [7; 32]);
//! let request = Request {
//!     cpu: 0,
//!     direction: Direction::Write,
//!     header: b"what the server's user is told",
//!     data: &[],
//!     user: 1,
//!     is_admin: false,
//! };
//! let refused = client.request(Instant::ZERO, &mut Nowhere, &request);
//! assert_eq!(refused, Err(RequestError::NoPath));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod adapters;
pub mod address;
pub mod client;
mod connection;
mod heartbeat;
mod proof;
pub mod server;
pub mod stats;
pub mod tree;

pub use adapters::{Adapter, AdapterId, Adapters};
pub use address::{Address, PathAddress};
pub use client::{
    BufferId, Client, ClientConfig, ClientEvent, Completion, Failure, Outcome, PathId, PathSpec,
    PathState, Policy, Request, RequestError, RequestId, Segment,
};
pub use connection::SetupError;
pub use ib_types::Errno;
pub use proof::SharedKey;

pub use server::{
    EndReason, ListenError, Refusal, Server, ServerConfig, ServerEvent, ServerPathId,
    ServerRequest, ServerRequestId, SessionId, StoreId,
};

use std::time::Duration;

/// Which way the data of a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the server to the client.
    Read,
    /// From the client to the server.
    Write,
}

/// How packets are repeated, and how long peers are told to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// After which time packets are sent again, an exponent: 4.096 µs × 2^value, 1 to 31.
    pub ack_timeout: u8,
    /// How often they are, 0 to 7.
    pub retry_count: u8,
    /// The ACK timeout in a REQ to the server, an exponent. Soft RoCE of a Linux 6.1 server may hang after a
    /// retransmission, so the value is large.
    pub peer_ack_timeout: u8,
    /// The target ACK delay in a REP to the client, an exponent. A Linux 6.1 client derives its ACK timeout from it:
    /// 2.1 s up to 17, 4.3 s up to 19, then 4.096 µs × 2^value. The client stalls for this time after each lost last packet.
    pub target_ack_delay: u8,
}

impl Default for Transport {
    /// 268 ms seven times, which makes 2.1 s; Linux servers wait for 17 s, and Linux clients for 2.1 s.
    fn default() -> Self {
        Self { ack_timeout: 16, retry_count: 7, peer_ack_timeout: 22, target_ack_delay: 17 }
    }
}

/// How it is found out that nobody is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeats {
    /// The time between two.
    pub interval: Duration,
    /// How many intervals may pass without a sign of life.
    pub missed_max: u32,
}

impl Default for Heartbeats {
    /// Every 5 s, of which 5 may be missed, as with Linux.
    fn default() -> Self {
        Self { interval: Duration::from_secs(5), missed_max: 5 }
    }
}
