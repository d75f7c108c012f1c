//! The cache and the counters of a host's ACM service, and resolve requests to it.

use ib_acm::service::CachedAddressView;
use ib_acm::{Address, Service};
use ib_sim::Sim;
use ib_topology::PortId;
use ib_types::Instant;
use ib_wire::acm::{ClientStatus, Entry, PerfCounters};
use ib_wire::mad::sa::PathRecord;
use serde::Serialize;

use super::model::json;
use crate::up::path_request::destination;
use crate::up::web::{Json, Refusal};

/// Summary of an ACM service. The field names are JSON keys.
#[derive(Serialize)]
pub(super) struct Summary {
    /// Number of destinations: those in the cache plus those being resolved.
    lines: usize,
}

/// The response with the state of an ACM service. The field names are JSON keys.
#[derive(Serialize)]
struct AcmResponse {
    addresses: Vec<String>,
    endpoints: Vec<Endpoint>,
    destinations: Vec<Destination>,
    counters: Vec<(&'static str, u64)>,
}
/// An endpoint: one port in one partition.
#[derive(Serialize)]
struct Endpoint {
    pkey: String,
    name: String,
    up: bool,
    groups: Vec<String>,
}
/// A destination whose path is cached or being resolved.
#[derive(Serialize)]
struct Destination {
    to: String,
    kind: &'static str,
    state: &'static str,
    lid: Option<u16>,
    sl: Option<u8>,
    gid: Option<String>,
    /// Seconds since the destination last confirmed its address; `None` while it is being resolved.
    age: Option<f64>,
}

/// The response to a resolve request. The field names are JSON keys.
#[derive(Serialize)]
struct Resolved {
    path: Path,
    /// Virtual time from the request to its response, in microseconds.
    microseconds: f64,
}

/// A path record.
#[derive(Serialize)]
struct Path {
    slid: u16,
    dlid: u16,
    sl: u8,
    mtu: Option<u16>,
    rate: String,
    sgid: String,
    dgid: String,
    pkey: String,
}

impl Summary {
    pub(super) fn of(service: &Service, now: Instant) -> Self {
        Self { lines: service.cached(now, None).len() + service.resolving().len() }
    }
}

/// Returns the response with the state of an ACM service.
pub(super) fn acm(service: &Service, now: Instant) -> Json {
    let endpoints = service.endpoints();
    let addresses = endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
    let addresses = addresses.map(|address| format!("{} {address}", kind(address))).collect();
    let known = service.cached(now, None).into_iter().map(|known| {
        let CachedAddressView { address, gid, lid, age, route, .. } = known;
        Destination {
            to: address.to_string(),
            kind: kind(&address),
            state: "resolved",
            lid: (lid != 0).then_some(lid).or(route.map(|route| route.dlid)),
            sl: route.map(|route| route.sl),
            gid: Some(gid.to_string()),
            age: Some(age.as_secs_f64()),
        }
    });
    let resolving = service.resolving().into_iter().map(|address| Destination {
        to: address.to_string(),
        kind: kind(&address),
        state: "resolving",
        lid: None,
        sl: None,
        gid: None,
        age: None,
    });
    let destinations = known.chain(resolving).collect();
    let endpoints = endpoints.iter().map(|endpoint| Endpoint {
        pkey: format!("{:#06x}", endpoint.p_key.0),
        name: endpoint.addresses.first().map(ToString::to_string).unwrap_or_default(),
        up: endpoint.is_up,
        groups: endpoint.groups.iter().map(ToString::to_string).collect(),
    });
    let endpoints = endpoints.collect();
    json(&AcmResponse { addresses, endpoints, destinations, counters: counters(service) })
}

/// Parses the destination address of a resolve request that is sent from the host at port `from`. Returns it as an
/// entry of a RESOLVE message.
pub(super) fn destination_of(sim: &Sim, from: PortId, to: &str) -> Result<Entry, Refusal> {
    let to = Address::parse(to.trim()).map_err(Refusal::bad)?;
    let prefix = sim.link_port(from).gid_prefix;
    Ok(destination(&match to {
        // A GID is written like an IPv6 address. An address with the subnet's prefix is taken as a GID.
        Address::V6(address) if (u128::from(address) >> 64) as u64 == prefix => {
            Address::Gid(ib_types::Gid::from_bytes(address.octets()))
        }
        to => to,
    }))
}

/// Returns the response to a resolve request that has taken the given time.
pub(super) fn resolved(
    found: Result<PathRecord, ClientStatus>,
    microseconds: f64,
) -> Result<Json, Refusal> {
    let path = found.map_err(Refusal::not_found)?;
    let path = Path {
        slid: path.slid,
        dlid: path.dlid,
        sl: path.sl,
        mtu: path.mtu.bytes(),
        rate: path.rate.to_string(),
        sgid: path.sgid.to_string(),
        dgid: path.dgid.to_string(),
        pkey: format!("{:#06x}", path.p_key.0),
    };
    Ok(json(&Resolved { path, microseconds }))
}

const fn kind(address: &Address) -> &'static str {
    match address {
        Address::Name(_) => "name",
        Address::V4(_) | Address::V6(_) => "ip",
        Address::Gid(_) => "gid",
        Address::Lid(_) => "lid",
    }
}

/// Returns the counters of an ACM service: those that `ib_acme` prints, and additional ones.
fn counters(service: &Service) -> Vec<(&'static str, u64)> {
    let standard = PerfCounters::NAMES.into_iter().zip(service.perf_counters().values());
    let own = service.counters();
    let own = [
        ("Multicast Requests", own.multicasts),
        ("Unicast Requests", own.checks),
        ("Received Requests", own.heard),
        ("Sent Responses", own.answers),
        ("SA Queries", own.sa_queries),
        ("Multicast Group Joins", own.joins),
    ];
    standard.chain(own).collect()
}
