//! Metrics of the ACM service for Prometheus.

use std::collections::BTreeMap;

use ib_acm::Service;
use ib_acm::service::EndpointView;
use ib_types::prometheus::{MetricType, Page};
use ib_wire::acm::PerfCounters;

use super::server::Server;

/// The name, the help text and the value of a gauge of an endpoint.
type EndpointGauge = (&'static str, &'static str, fn(&EndpointView) -> usize);

/// Returns the name, the help text and the value of each counter of the service.
pub(super) fn counters(
    service: &Service,
    server: &Server,
) -> Vec<(&'static str, &'static str, u64)> {
    let counters = service.counters();
    let rejected = server.rejected();
    vec![
        (
            "multicasts",
            "Multicast address resolution requests sent, including announcements",
            counters.multicasts,
        ),
        ("announcements", "Address announcements sent", counters.announcements),
        ("checks", "Unicast requests sent to verify a cached peer", counters.checks),
        ("answers", "Address resolution responses sent", counters.answers),
        ("heard", "Address resolution requests received", counters.heard),
        ("sa_queries", "SA path queries sent", counters.sa_queries),
        ("joins", "SA requests to join multicast groups", counters.joins),
        ("malformed", "Datagrams received that are not ACM messages", counters.malformed),
        ("unasked", "Responses received without an outstanding request", counters.unasked),
        (
            "flooded",
            "Messages dropped because their port exceeded the rate limit",
            counters.flooded,
        ),
        ("conflicts", "Claims to an address that another port holds", counters.conflicts),
        (
            "refused",
            "Addresses and GIDs refused because of the limit of a port or of the cache",
            counters.refused,
        ),
        ("malformed_programs", "Clients that sent a malformed request", rejected.malformed),
        (
            "crowded_programs",
            "Clients refused because too many were connected",
            rejected.over_limit,
        ),
    ]
}

/// Returns the metrics in Prometheus text format.
pub(super) fn page(service: &Service, server: &Server) -> String {
    let mut page = Page::default();
    for (name, help, value) in counters(service, server) {
        let name = format!("ibfabric_acm_{name}_total");
        page.family(&name, MetricType::Counter, help).sample(&[], value);
    }
    let gauges = [
        ("programs", "Connected clients", server.client_count()),
        ("waiting", "Pending requests of clients", service.pending()),
    ];
    for (name, help, value) in gauges {
        page.family(&format!("ibfabric_acm_{name}"), MetricType::Gauge, help).sample(&[], value);
    }
    let endpoints = service.endpoints();
    let labels = |it: &EndpointView| {
        [
            ("device", it.device.to_string()),
            ("port", it.port.to_string()),
            ("pkey", format!("{:#06x}", it.p_key.0)),
        ]
    };
    for (index, name) in PerfCounters::NAMES.iter().enumerate() {
        let name = name.to_lowercase().replace(" count", "").replace(' ', "_");
        let name = format!("ibfabric_acm_{name}_total");
        let mut family = page.family(&name, MetricType::Counter, "Counter of ib_acme -P");
        for endpoint in &endpoints {
            family.sample(&labels(endpoint), endpoint.counters.values()[index]);
        }
    }
    let gauges: [EndpointGauge; 3] = [
        ("up", "1 if the endpoint is up", |it| it.is_up.into()),
        ("known", "Cached addresses", |it| it.cached_addresses),
        ("peers", "Ports that hold the cached addresses", |it| it.cached_peers),
    ];
    for (name, help, value) in gauges {
        let name = format!("ibfabric_acm_{name}");
        let mut family = page.family(&name, MetricType::Gauge, help);
        for endpoint in &endpoints {
            family.sample(&labels(endpoint), value(endpoint));
        }
    }
    page.into_text()
}

/// Returns the counters as a JSON object.
pub(super) fn counts(service: &Service, server: &Server) -> BTreeMap<String, u64> {
    counters(service, server).into_iter().map(|(name, _, value)| (name.to_owned(), value)).collect()
}
