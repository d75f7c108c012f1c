//! Console commands of a running service: `ibfabric acm ctl`.

use std::fmt::Write as _;
use std::path::Path;

use ib_acm::service::{CachedAddressView, EndpointView, NO_DATAGRAMS};
use ib_acm::{Address, Service};
use ib_os::clock;
use ib_wire::acm::PerfCounters;
use serde::Serialize;
use serde_json::{Value, json};

use super::metrics;
use super::server::Server;

/// A reply as text and as data; `ok` is false for an error.
#[derive(Serialize)]
struct Reply {
    ok: bool,
    text: String,
    data: Value,
}

/// Returns the name of the console of a service with a socket. It contains the canonical path of the socket: relative paths
/// and symbolic links to one socket name one console, and equal relative paths in different folders do not.
pub fn name(socket: &Path) -> String {
    if let Ok(canonical) = socket.canonicalize() {
        return format!("ibfabric-acm:{}", canonical.display());
    }
    // A service that starts has no socket yet.
    let socket = std::path::absolute(socket).unwrap_or_else(|_| socket.to_owned());
    let parent = socket.parent().and_then(|parent| parent.canonicalize().ok());
    let canonical = match (parent, socket.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => socket,
    };
    format!("ibfabric-acm:{}", canonical.display())
}

/// A command of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Status,
    /// Prints the cached entries of one address or of all.
    Known(Option<Address>),
    Flush,
    Reload,
    Metrics,
}

impl Command {
    /// Parses a line; an error is the message for the user.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["status"] => Ok(Self::Status),
            ["known"] => Ok(Self::Known(None)),
            ["known", address] => match Address::parse(address) {
                Ok(address) => Ok(Self::Known(Some(address))),
                Err(error) => Err(format!("{address}: {error}")),
            },
            ["flush"] => Ok(Self::Flush),
            ["reload"] => Ok(Self::Reload),
            ["metrics"] => Ok(Self::Metrics),
            _ => Err(format!(
                "found `{line}`, expected status, known [ADDRESS], flush, reload or metrics"
            )),
        }
    }

    /// Executes a command and returns the reply. The caller has reloaded the files before [`Command::Reload`].
    pub(super) fn execute(&self, service: &mut Service, server: &Server) -> String {
        reply(Ok(match self {
            Self::Status => status(service, server),
            Self::Known(address) => known(service, address.as_ref()),
            Self::Flush => {
                let count = service.flush();
                (format!("{count} addresses are forgotten"), json!({ "forgotten": count }))
            }
            Self::Reload => {
                ("the files are read again; the log tells of what is wrong".to_owned(), Value::Null)
            }
            Self::Metrics => (metrics::page(service, server), metrics::data(service, server)),
        }))
    }
}

/// Returns the reply with an error.
pub(super) fn error(message: String) -> String {
    reply(Err(message))
}

/// Returns the reply if the daemon has exited.
pub(super) fn no_answer() -> String {
    error("the service does not answer".to_owned())
}

fn reply(answer: Result<(String, Value), String>) -> String {
    let reply = match answer {
        Ok((text, data)) => Reply { ok: true, text, data },
        Err(text) => Reply { ok: false, text, data: Value::Null },
    };
    serde_json::to_string(&reply).expect("text and numbers are valid JSON")
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
        let _ = writeln!(text, "  knows {known} addresses of {peers} ports");
        for (name, value) in PerfCounters::NAMES.iter().zip(endpoint.counters.values()) {
            let _ = writeln!(text, "  {name}: {value}");
        }
    }
    let (clients, waiting) = (server.clients(), service.pending());
    let _ = writeln!(text, "{clients} programs, {waiting} requests wait");
    for (name, _, value) in metrics::counts(service, server) {
        let _ = writeln!(text, "{}: {value}", name.replace('_', " "));
    }
    let endpoint = |it: &EndpointView| {
        let addresses: Vec<String> = it.addresses.iter().map(Address::to_string).collect();
        let groups: Vec<String> = it.groups.iter().map(ToString::to_string).collect();
        let values = PerfCounters::NAMES.iter().zip(it.counters.values());
        let counters: serde_json::Map<String, Value> = values
            .map(|(name, value)| (name.to_lowercase().replace(' ', "_"), value.into()))
            .collect();
        json!({
            "device": it.device, "port": it.port, "pkey": it.p_key.0, "up": it.is_up,
            "addresses": addresses, "groups": groups, "known": it.cached_addresses, "peers": it.cached_peers,
            "counters": counters, "datagrams": it.has_datagrams,
        })
    };
    let counts: serde_json::Map<String, Value> = metrics::counts(service, server)
        .into_iter()
        .map(|(name, _, value)| (name.to_owned(), value.into()))
        .collect();
    let data = json!({
        "endpoints": endpoints.iter().map(endpoint).collect::<Vec<_>>(),
        "programs": clients, "waiting": waiting, "counts": counts,
    });
    (text, data)
}

fn known(service: &Service, address: Option<&Address>) -> (String, Value) {
    let known = service.cached(clock::now(), address);
    let mut text = String::new();
    for CachedAddressView { address, gid, lid, qpn, age, is_preloaded, route } in &known {
        let age = match is_preloaded {
            true => "from a file".to_owned(),
            false => format!("heard of {} s ago", age.as_secs()),
        };
        let route = if route.is_some() { ", route of subnet administration" } else { "" };
        let _ = writeln!(text, "{address}: {gid} LID {lid} qp {qpn:#08x}, {age}{route}");
    }
    if known.is_empty() {
        text.push_str("nothing is known\n");
    }
    let view = |it: &CachedAddressView| {
        json!({
            "address": it.address.to_string(), "gid": it.gid.to_string(), "lid": it.lid,
            "qpn": it.qpn, "age_s": it.age.as_secs(), "preloaded": it.is_preloaded,
            "sa_route": it.route.is_some(),
        })
    };
    (text, known.iter().map(view).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn console_name_follows_a_link_to_the_socket() {
        let place = tempfile::tempdir().expect("a directory");
        let (socket, link) = (place.path().join("socket"), place.path().join("link"));
        let before = name(&socket);
        let _listener = UnixListener::bind(&socket).expect("a socket");
        symlink("socket", &link).expect("a link");
        assert_eq!(name(&socket), before, "the name is the same before the socket exists");
        assert_eq!(name(&link), before);
    }
}
