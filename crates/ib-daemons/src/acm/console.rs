//! Requests of `ibfabric acm ctl` and their replies.

use std::fmt::Write as _;
use std::path::Path;

use ib_acm::service::{CachedAddressView, EndpointView, NO_DATAGRAMS};
use ib_acm::{Address, Service};
use ib_control::lines::Reply;
use ib_control::queue::RequestSender;
use ib_os::clock;
use ib_wire::acm::PerfCounters;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::data::{AcmCachedAddress, AcmEndpoint, AcmFlushed, AcmStatus};
use super::metrics;
use super::server::Server;

/// A request to a running ACM service. It is sent as a line of JSON, such as `"status"` or
/// `{"known":{"address":null}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AcmRequest {
    /// Report the endpoints and the counters of the service.
    Status,
    /// Report the cached addresses.
    Known {
        /// The only cached address to report; `None` to report all of them.
        address: Option<String>,
    },
    /// Remove all cached addresses.
    Flush,
    /// Read the configuration, address and route files again.
    Reload,
    /// Report the metrics.
    Metrics,
}

/// Returns the name of the control socket of a service with the given client socket. The name contains the canonical
/// path. So all relative paths and symbolic links to one client socket give the same name. Equal relative paths in
/// different directories give different names.
pub fn name(socket: &Path) -> String {
    if let Ok(canonical) = socket.canonicalize() {
        return format!("ibfabric-acm:{}", canonical.display());
    }
    // While the service starts, the socket does not exist yet. Then only the path of its directory can be made
    // canonical.
    let socket = std::path::absolute(socket).unwrap_or_else(|_| socket.to_owned());
    let parent = socket.parent().and_then(|parent| parent.canonicalize().ok());
    let canonical = match (parent, socket.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => socket,
    };
    format!("ibfabric-acm:{}", canonical.display())
}

impl AcmRequest {
    /// Parses a request line. If it is invalid, the error is the reply line.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| {
            let reason = format!("found `{line}`, expected a request such as \"status\": {error}");
            Reply::failed(reason).to_line()
        })
    }

    /// Executes a request and returns the reply line. For [`AcmRequest::Reload`], the caller must first read the
    /// configuration, address and route files again.
    pub(super) fn execute(&self, service: &mut Service, server: &Server) -> String {
        let result = match self {
            Self::Status => Ok(status(service, server)),
            Self::Known { address: None } => Ok(known(service, None)),
            Self::Known { address: Some(address) } => match Address::parse(address) {
                Ok(address) => Ok(known(service, Some(&address))),
                Err(error) => Err(format!("{address}: {error}")),
            },
            Self::Flush => {
                let count = service.flush();
                let data = AcmFlushed { forgotten: count };
                Ok((format!("removed {count} cached addresses"), value(data)))
            }
            Self::Reload => {
                let text = "the files were read again; the log contains warnings about them";
                Ok((text.to_owned(), Value::Null))
            }
            Self::Metrics => {
                Ok((metrics::page(service, server), value(metrics::counts(service, server))))
            }
        };
        Reply::from(result).to_line()
    }
}

/// Returns the reply line for a service that does not respond.
pub(super) fn no_answer() -> String {
    Reply::failed("the service does not respond").to_line()
}

/// Requests the metrics from the service's event loop; returns an empty text if the loop does not respond.
pub(super) fn request_metrics(requests: &RequestSender) -> String {
    let line = serde_json::to_string(&AcmRequest::Metrics).expect("a request can be serialised");
    let reply = requests.request(&line).and_then(|reply| serde_json::from_str(&reply).ok());
    reply.map(|reply: Reply| reply.text).unwrap_or_default()
}

/// Returns data as a JSON value.
fn value(data: impl Serialize) -> Value {
    serde_json::to_value(data).expect("texts and numbers can be converted to JSON")
}

fn status(service: &Service, server: &Server) -> (String, Value) {
    let endpoints = service.endpoints();
    let mut text = String::new();
    for endpoint in &endpoints {
        let EndpointView {
            device,
            port,
            p_key,
            is_up,
            cached_addresses: known,
            cached_peers: peers,
            ..
        } = endpoint;
        let state = if *is_up { "in service" } else { "out of service" };
        let _ = writeln!(text, "{device} port {port} pkey {:#06x}: {state}", p_key.0);
        for address in &endpoint.addresses {
            let _ = writeln!(text, "  address {address}");
        }
        if !endpoint.has_datagrams {
            let _ = writeln!(text, "  {NO_DATAGRAMS}");
        }
        for group in &endpoint.groups {
            let _ = writeln!(text, "  group   {group}");
        }
        let _ = writeln!(text, "  cached: {known} addresses of {peers} ports");
        for (name, value) in PerfCounters::NAMES.iter().zip(endpoint.counters.values()) {
            let _ = writeln!(text, "  {name}: {value}");
        }
    }
    let (clients, pending) = (server.client_count(), service.pending());
    let _ = writeln!(text, "{clients} clients, {pending} pending requests");
    for (name, _, value) in metrics::counters(service, server) {
        let _ = writeln!(text, "{}: {value}", name.replace('_', " "));
    }
    let endpoint = |it: &EndpointView| {
        let values = PerfCounters::NAMES.iter().zip(it.counters.values());
        AcmEndpoint {
            device: it.device.to_string(),
            port: it.port,
            pkey: it.p_key.0,
            up: it.is_up,
            addresses: it.addresses.iter().map(Address::to_string).collect(),
            groups: it.groups.iter().map(ToString::to_string).collect(),
            known: it.cached_addresses,
            peers: it.cached_peers,
            counters: values
                .map(|(name, value)| (name.to_lowercase().replace(' ', "_"), value))
                .collect(),
            datagrams: it.has_datagrams,
        }
    };
    let data = AcmStatus {
        endpoints: endpoints.iter().map(endpoint).collect(),
        programs: clients,
        waiting: pending,
        counts: metrics::counts(service, server),
    };
    (text, value(data))
}

fn known(service: &Service, address: Option<&Address>) -> (String, Value) {
    let known = service.cached(clock::now(), address);
    let mut text = String::new();
    for CachedAddressView { address, gid, lid, qpn, age, is_preloaded, route } in &known {
        let age = match is_preloaded {
            true => "from a file".to_owned(),
            false => format!("last seen {} s ago", age.as_secs()),
        };
        let route = if route.is_some() { ", route of the SA" } else { "" };
        let _ = writeln!(text, "{address}: {gid} LID {lid} qp {qpn:#08x}, {age}{route}");
    }
    if known.is_empty() {
        text.push_str("no cached addresses\n");
    }
    let view = |it: &CachedAddressView| AcmCachedAddress {
        address: it.address.to_string(),
        gid: it.gid.to_string(),
        lid: it.lid,
        qpn: it.qpn,
        age_s: it.age.as_secs(),
        preloaded: it.is_preloaded,
        sa_route: it.route.is_some(),
    };
    (text, value(known.iter().map(view).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn console_name_follows_a_link_to_the_socket() {
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
        let (socket, link) = (directory.path().join("socket"), directory.path().join("link"));
        let before = name(&socket);
        let _listener = UnixListener::bind(&socket).expect("the path is free");
        symlink("socket", &link).expect("the link can be created");
        assert_eq!(name(&socket), before, "the name is the same before the socket exists");
        assert_eq!(name(&link), before);
    }
}
