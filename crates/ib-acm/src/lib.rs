//! IB ACM: names, addresses and routes resolved without flooding subnet administration.
//!
//! | module | holds |
//! |---|---|
//! | [`address`] | [`Address`]: what is resolved |
//! | [`config`] | the files that the service is told by: options, addresses, hosts and routes known before |
//!
//! The protocol with programs of the same machine is that of rdma-core's ibacm, [`ib_wire::acm`]; the one with other
//! machines, over multicast groups, is [`ib_wire::mad::acm`].

pub mod address;
pub mod config;

pub use address::Address;
