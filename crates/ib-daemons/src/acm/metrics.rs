//! Metrics of a service in the text format of Prometheus.

use ib_acm::Service;
use ib_acm::service::EndpointView;
use ib_types::prometheus::{MetricType, Page};
use ib_wire::acm::PerfCounters;
use serde_json::Value;

use super::server::Server;

/// A gauge of an endpoint: name, description, value.
type Gauge = (&'static str, &'static str, fn(&EndpointView) -> usize);

/// Returns the counters of the service: name, description, value.
pub(super) fn counts(service: &Service, server: &Server) -> Vec<(&'static str, &'static str, u64)> {
    let counters = service.counters();
    let rejected = server.rejected();
    vec![
        ("multicasts", "Questions sent to groups", counters.multicasts),
        ("announcements", "Questions to groups that only tell who asks", counters.announcements),
        ("checks", "Questions to one port, whether it still is where it was", counters.checks),
        ("answers", "Questions of others that were answered", counters.answers),
        ("heard", "Questions of others that were heard", counters.heard),
        ("sa_queries", "Requests to subnet administration for paths", counters.sa_queries),
        ("joins", "Requests to join groups", counters.joins),
        ("malformed", "Messages of others that are none", counters.malformed),
        ("unasked", "Answers that nobody has asked for", counters.unasked),
        ("flooded", "Questions of ports that ask too fast", counters.flooded),
        ("conflicts", "Claims to addresses that other ports have", counters.conflicts),
        (
            "refused",
            "Addresses and GIDs beyond those that a port may have, or that there is room for",
            counters.refused,
        ),
        ("malformed_programs", "Programs that sent what is no request", rejected.malformed),
        ("crowded_programs", "Programs beyond the most", rejected.crowded),
    ]
}

/// Returns the page of metrics.
pub(super) fn page(service: &Service, server: &Server) -> String {
    let mut page = Page::default();
    for (name, help, value) in counts(service, server) {
        let name = format!("ibfabric_acm_{name}_total");
        page.family(&name, MetricType::Counter, help).sample(&[], value);
    }
    let gauges = [
        ("programs", "Connected clients", server.clients()),
        ("waiting", "Requests that wait", service.pending()),
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
    for (place, name) in PerfCounters::NAMES.iter().enumerate() {
        let name = name.to_lowercase().replace(" count", "").replace(' ', "_");
        let name = format!("ibfabric_acm_{name}_total");
        let mut family = page.family(&name, MetricType::Counter, "As ib_acme -P shows it");
        for endpoint in &endpoints {
            family.sample(&labels(endpoint), endpoint.counters.values()[place]);
        }
    }
    let gauges: [Gauge; 3] = [
        ("up", "Whether the endpoint is in service", |it| it.is_up.into()),
        ("known", "Cached addresses", |it| it.cached_addresses),
        ("peers", "Ports of the cached addresses", |it| it.cached_peers),
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

/// Returns the counts as an object.
pub(super) fn data(service: &Service, server: &Server) -> Value {
    counts(service, server)
        .into_iter()
        .map(|(name, _, value)| (name.to_owned(), Value::from(value)))
        .collect()
}
