//! ACM service for InfiniBand: resolves names, addresses and routes, with few SA queries. It is compatible with
//! rdma-core's ibacm.
//!
//! | module | holds |
//! |---|---|
//! | [`address`] | [`Address`]: names and addresses that are resolved |
//! | [`service`] | [`Service`]: responds to clients, queries other services and the SA |
//! | [`port`] | [`Port`]: interface between a service and a port of an HCA |
//! | `cache` | cached addresses, peers and routes |
//! | [`config`] | configuration files: options, addresses, preloaded hosts and routes |
//! | [`client`] | [`client::Client`]: client of a service |
//!
//! [`ib_wire::acm`] is the protocol between clients and the service of their machine. [`ib_wire::mad::acm`] is the
//! protocol between services of different machines, which uses multicast groups.
//!
//! # Example
//! A service resolves an address of its own machine for a client:
//! ```
//! use ib_acm::{Address, ClientId, PortId, PortState, Service, ServiceConfig};
//! use ib_link::LinkPort;
//! use ib_types::{Guid, Instant, PKey};
//! use ib_wire::acm::{ByteOrder, ClientHeader, ClientStatus, EntryFlags, HEADER_LENGTH, Resolve};
//! use ib_wire::mad::{sa::RateCode, sm::MtuCode};
//!
//! let now = Instant::ZERO;
//! let name = Address::name("node-17")?;
//! // Real services use a random seed.
//! let mut service = Service::new(ServiceConfig::default(), [7; 32]);
//! let link = LinkPort { port_guid: Guid(0x17), lid: 5, number: 1, ..LinkPort::default() };
//! let port = PortState {
//!     device: "mlx5_0".into(),
//!     port_count: 1,
//!     link,
//!     is_active: true,
//!     mtu: MtuCode::MTU_4096,
//!     rate: RateCode::GBPS_100,
//!     p_keys: vec![PKey::DEFAULT],
//!     registrations: 0,
//!     has_datagrams: true,
//!     names: vec![name.clone()],
//! };
//! service.set_port(now, PortId(1), &port);
//!
//! // A client message: RESOLVE with a destination.
//! let mut message = Vec::new();
//! let destination = name.to_entry(EntryFlags::DESTINATION).unwrap();
//! Resolve::request([0; 8], vec![destination]).put(ByteOrder::NATIVE, &mut message);
//! let header = ClientHeader::parse(message.first_chunk().unwrap());
//!
//! let mut response = Vec::new();
//! let client_message = (&header, &message[HEADER_LENGTH..], ByteOrder::NATIVE);
//! assert!(service.request(now, ClientId(1), client_message, &mut response));
//! let header = ClientHeader::parse(response.first_chunk().unwrap());
//! assert_eq!(header.status, ClientStatus::SUCCESS);
//! let response = Resolve::parse(header, &response[HEADER_LENGTH..], ByteOrder::NATIVE);
//! assert_eq!(response.entries[0].path_record().dlid, 5);
//! # Ok::<(), ib_acm::address::AddressError>(())
//! ```

// Unit tests and integration tests share a file that refers to the crate as `ib_acm`.
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
