//! The data of replies to `acm ctl`. The field names are JSON keys.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// The endpoints and the counters of the service.
#[derive(Serialize, JsonSchema)]
pub struct AcmStatus {
    pub(super) endpoints: Vec<AcmEndpoint>,
    /// Number of connected clients.
    pub(super) programs: usize,
    /// Number of pending requests.
    pub(super) waiting: usize,
    /// Counters of the service, by name.
    pub(super) counts: BTreeMap<String, u64>,
}

/// An endpoint.
#[derive(Serialize, JsonSchema)]
pub(super) struct AcmEndpoint {
    pub(super) device: String,
    pub(super) port: u8,
    pub(super) pkey: u16,
    pub(super) up: bool,
    pub(super) addresses: Vec<String>,
    /// MGIDs of the multicast groups that the port has joined.
    pub(super) groups: Vec<String>,
    /// Number of cached addresses.
    pub(super) known: usize,
    /// Number of ports that have the cached addresses.
    pub(super) peers: usize,
    /// The counters of `ib_acme -P` for this endpoint, by name.
    pub(super) counters: BTreeMap<String, u64>,
    /// True if the port has UD QPs.
    pub(super) datagrams: bool,
}

/// A cached address.
#[derive(Serialize, JsonSchema)]
pub struct AcmCachedAddress {
    pub(super) address: String,
    pub(super) gid: String,
    pub(super) lid: u16,
    pub(super) qpn: u32,
    pub(super) age_s: u64,
    /// True if the service has preloaded the address from a file.
    pub(super) preloaded: bool,
    /// True if a route to the address is cached: from the SA, or preloaded from a file.
    pub(super) sa_route: bool,
}

/// The result of a cache flush.
#[derive(Serialize, JsonSchema)]
pub struct AcmFlushed {
    /// Number of addresses that were removed from the cache.
    pub(super) forgotten: usize,
}
