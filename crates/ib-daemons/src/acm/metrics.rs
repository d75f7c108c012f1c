//! Metrics of a service in the text format of Prometheus.

use std::fmt::Write as _;

use ib_acm::Service;
use ib_acm::service::EndpointView;
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

/// Returns the metrics page.
pub(super) fn page(service: &Service, server: &Server) -> String {
    let mut text = String::new();
    for (name, help, value) in counts(service, server) {
        let _ = writeln!(text, "# HELP ibfabric_acm_{name}_total {help}");
        let _ = writeln!(text, "# TYPE ibfabric_acm_{name}_total counter");
        let _ = writeln!(text, "ibfabric_acm_{name}_total {value}");
    }
    let gauges = [
        ("programs", "Programs that are connected", server.clients()),
        ("waiting", "Requests that wait", service.pending()),
    ];
    for (name, help, value) in gauges {
        let _ = writeln!(text, "# HELP ibfabric_acm_{name} {help}");
        let _ = writeln!(text, "# TYPE ibfabric_acm_{name} gauge\nibfabric_acm_{name} {value}");
    }
    let endpoints = service.endpoints();
    let labels = |index: usize| {
        let it = &endpoints[index];
        format!(
            "device=\"{}\",port=\"{}\",pkey=\"{:#06x}\"",
            it.device.escape_default(),
            it.port,
            it.p_key.0
        )
    };
    for (place, name) in PerfCounters::NAMES.iter().enumerate() {
        let name = name.to_lowercase().replace(" count", "").replace(' ', "_");
        let _ = writeln!(text, "# HELP ibfabric_acm_{name}_total As ib_acme -P shows it");
        let _ = writeln!(text, "# TYPE ibfabric_acm_{name}_total counter");
        for (index, endpoint) in endpoints.iter().enumerate() {
            let value = endpoint.counters.values()[place];
            let _ = writeln!(text, "ibfabric_acm_{name}_total{{{}}} {value}", labels(index));
        }
    }
    let gauges: [Gauge; 3] = [
        ("up", "Whether the endpoint is in service", |it| it.is_up.into()),
        ("known", "Addresses that are known", |it| it.cached_addresses),
        ("peers", "Ports that they belong to", |it| it.cached_peers),
    ];
    for (name, help, value) in gauges {
        let _ = writeln!(text, "# HELP ibfabric_acm_{name} {help}");
        let _ = writeln!(text, "# TYPE ibfabric_acm_{name} gauge");
        for (index, endpoint) in endpoints.iter().enumerate() {
            let _ = writeln!(text, "ibfabric_acm_{name}{{{}}} {}", labels(index), value(endpoint));
        }
    }
    text
}

/// Returns the counters as an object.
pub(super) fn data(service: &Service, server: &Server) -> Value {
    counts(service, server)
        .into_iter()
        .map(|(name, _, value)| (name.to_owned(), Value::from(value)))
        .collect()
}
