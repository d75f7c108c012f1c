//! IB ACM: names, addresses and routes resolved without flooding subnet administration.
//!
//! | module | holds |
//! |---|---|
//! | [`address`] | [`Address`]: what is resolved |
//! | [`client`] | [`client::Client`]: programs ask a service |
//!
//! The protocol with programs of the same machine is that of rdma-core's ibacm, [`ib_wire::acm`]; the one with other
//! machines, over multicast groups, is [`ib_wire::mad::acm`].

pub mod address;
pub mod client;

pub use address::Address;
