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
    /// Counters by name.
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
    /// GIDs of the multicast groups.
    pub(super) groups: Vec<String>,
    /// Number of cached addresses, and of the ports that have them.
    pub(super) known: usize,
    pub(super) peers: usize,
    /// Counters by name.
    pub(super) counters: BTreeMap<String, u64>,
    /// True if the port has queue pairs for datagrams.
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
    /// True if the address comes from a file.
    pub(super) preloaded: bool,
    /// True if the route of the SA is cached, too.
    pub(super) sa_route: bool,
}

/// The result of a flush.
#[derive(Serialize, JsonSchema)]
pub struct AcmFlushed {
    /// Number of removed addresses.
    pub(super) forgotten: usize,
}
