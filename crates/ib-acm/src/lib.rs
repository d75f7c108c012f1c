//! IB ACM: names, addresses and routes resolved without flooding subnet administration.
//!
//! | module | holds |
//! |---|---|
//! | [`address`] | [`Address`]: what is resolved |
//! | [`service`] | [`Service`]: answers programs, asks other services and subnet administration |
//! | [`port`] | [`Port`]: what a service needs of an adapter's port |
//! | `cache` | what a service knows of others |
//! | [`config`] | the files that the service is told by: options, addresses, hosts and routes known before |
//! | [`client`] | [`client::Client`]: programs ask a service |
//!
//! The protocol with programs of the same machine is that of rdma-core's ibacm, [`ib_wire::acm`]; the one with other
//! machines, over multicast groups, is [`ib_wire::mad::acm`].

// What tests of the crate share with those beside it names it alike.
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
