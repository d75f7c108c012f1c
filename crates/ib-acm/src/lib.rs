//! IB ACM: resolves names, addresses and routes without an SA query for each.
//!
//! | module | holds |
//! |---|---|
//! | [`address`] | [`Address`]: names and addresses that are resolved |
//! | [`service`] | [`Service`]: responds to clients, queries other services and the SA |
//! | [`port`] | [`Port`]: the port of an HCA, as a service uses it |
//! | `cache` | cached addresses, peers and routes |
//! | [`config`] | configuration files: options, addresses, preloaded hosts and routes |
//! | [`client`] | [`client::Client`]: client of a service |
//!
//! The protocol with clients on the same machine is that of rdma-core's ibacm, [`ib_wire::acm`]. The protocol with other
//! machines, over multicast groups, is [`ib_wire::mad::acm`].

// Unit tests and integration tests share a file, which names the crate.
#[cfg(test)]
extern crate self as ib_acm;

pub mod address;
mod cache;
pub mod client;
pub mod config;
pub mod port;
pub mod service;

pub use address::Address;
pub use port::{Action, Arrived, Destination, Port, PortId, PortState};
pub use service::{ClientId, Event, Service, ServiceConfig, ServiceCounters};
