//! What the service of names at a host knows, and what it is asked.

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

/// How much a service knows; the names are JSON keys.
#[derive(Serialize)]
pub(super) struct Summary {
    /// Addresses of others, those that are asked for among them.
    lines: usize,
}

/// What is told of a service; the names are JSON keys.
#[derive(Serialize)]
struct Told {
    addresses: Vec<String>,
    endpoints: Vec<Endpoint>,
    destinations: Vec<Destination>,
    counters: Vec<(&'static str, u64)>,
}

#[derive(Serialize)]
struct Endpoint {
    pkey: String,
    name: String,
    up: bool,
    groups: Vec<String>,
}

#[derive(Serialize)]
struct Destination {
    to: String,
    kind: &'static str,
    state: &'static str,
    lid: Option<u16>,
    sl: Option<u8>,
    gid: Option<String>,
    /// Seconds since its owner was heard of.
    age: Option<f64>,
}

/// What came of a question; the names are JSON keys.
#[derive(Serialize)]
struct Resolved {
    path: Path,
    /// By the fabric's clock.
    microseconds: f64,
}

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

/// Returns what a service knows.
pub(super) fn names(service: &Service, now: Instant) -> Json {
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
    let asked = service.resolving().into_iter().map(|address| Destination {
        to: address.to_string(),
        kind: kind(&address),
        state: "resolving",
        lid: None,
        sl: None,
        gid: None,
        age: None,
    });
    let destinations = known.chain(asked).collect();
    let endpoints = endpoints.iter().map(|endpoint| Endpoint {
        pkey: format!("{:#06x}", endpoint.p_key.0),
        name: endpoint.addresses.first().map(ToString::to_string).unwrap_or_default(),
        up: endpoint.is_up,
        groups: endpoint.groups.iter().map(ToString::to_string).collect(),
    });
    let endpoints = endpoints.collect();
    json(&Told { addresses, endpoints, destinations, counters: counters(service) })
}

/// Returns what a program has to ask for the path from a port to what a text says.
pub(super) fn question(sim: &Sim, from: PortId, to: &str) -> Result<Entry, Refusal> {
    let to = Address::parse(to.trim()).map_err(Refusal::bad)?;
    let prefix = sim.link_port(from).gid_prefix;
    Ok(destination(&match to {
        // What has the subnet's prefix is a GID, which is written as IPv6 addresses are.
        Address::V6(address) if (u128::from(address) >> 64) as u64 == prefix => {
            Address::Gid(ib_types::Gid::from_bytes(address.octets()))
        }
        to => to,
    }))
}

/// Returns what came of a question that has taken some time.
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

/// Returns what a service has counted, by the names of `ib_acme` and its own.
fn counters(service: &Service) -> Vec<(&'static str, u64)> {
    let asked = PerfCounters::NAMES.into_iter().zip(service.perf_counters().values());
    let own = service.counters();
    let own = [
        ("Questions to groups", own.multicasts),
        ("Questions to one peer", own.checks),
        ("Questions heard", own.heard),
        ("Answers to them", own.answers),
        ("Paths asked of subnet administration", own.sa_queries),
        ("Groups joined", own.joins),
    ];
    asked.chain(own).collect()
}
