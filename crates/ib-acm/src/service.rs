//! The ACM service: resolves addresses and routes for clients, and responds to the services of other machines.
//!
//! | module | holds |
//! |---|---|
//! | `endpoint_table` | ports and endpoints: creation, changes, removal |
//! | `source` | selection of the endpoints that resolve a client request |
//! | `status` | endpoints, caches and counters, for queries of clients and for the console |
//! | `resolver` | address and route resolution of one endpoint; owns the state of the modules from `groups` to `limiter` |
//! | `groups` | multicast groups: join, leave, repeated joins |
//! | `announcements` | announcements of the endpoint's addresses |
//! | `route_policy` | choice between routes derived from groups and routes of the SA; comparison of service levels |
//! | `path_queries` | SA path queries and their retries |
//! | `client_queries` | SA queries that clients specify |
//! | `resolutions` | addresses being resolved: states, queues, time limits |
//! | `lookup` | lookup of a path in the cache |
//! | `peers`, `checks` | claims of peers, and the checks before a claim is accepted |
//! | `peer_table` | cached peers and routes |
//! | `limiter` | rate limits of peers |
//! | `datagram`, `further_addresses` | messages between services |
//! | `request`, `pending` | requests of clients, and the responses |
//! | `sa` | SA requests of a port: priority, timing, errors |
//! | `context` | timers, random numbers, counters and events, which the other modules share |
//! | `config`, `event`, `key` | configuration; events and counters; identifiers |
//!
//! The service owns no socket and no clock. Its owner passes messages of clients to [`Service::request`], and datagrams
//! and MADs to [`Service::handle`]. After these calls and after [`Service::handle_timeout`], the owner calls
//! [`Service::poll_action`], [`Service::poll_reply`] and [`Service::poll_event`] until they return `None`.
//! [`Service::drive`] makes these calls for the input and the actions of a [`Port`].

use std::collections::VecDeque;
use std::time::Duration;

use ib_types::Instant;
use ib_wire::acm::{
    ByteOrder, ClientHeader, ClientOpcode, ClientStatus, Entry, EntryFlags, PerfCounters, Resolve,
};
use ib_wire::mad::sa::PathRecord;
use rand::rngs::ChaCha12Rng;
use rand::{Rng, SeedableRng};

mod announcements;
mod checks;
mod client_queries;
mod config;
mod context;
mod datagram;
mod endpoint_table;
mod event;
mod further_addresses;
mod groups;
mod key;
mod limiter;
mod lookup;
mod path_queries;
mod peer_table;
mod peers;
mod pending;
mod request;
mod resolutions;
mod resolver;
mod route_policy;
mod sa;
mod source;
mod status;

pub use config::{Assignment, GroupSpec, ServiceConfig};
pub use event::{EndpointName, Event, NO_DATAGRAMS, ServiceCounters};
pub use pending::ClientId;
pub use source::SourceOf;
pub use status::{CachedAddressView, EndpointView, RouteView};

use crate::Address;
use crate::port::{Action, Arrived, Port, PortId, PortState};
use context::{Shared, Timers};
use endpoint_table::EndpointTable;
use key::EndpointKey;
use pending::{PendingRequest, PendingRequests};
use request::ResolveRequest;
use resolver::Response;
use source::{SelectedEndpoint, select_endpoints};

/// The ACM service of a machine.
pub struct Service {
    shared: Shared,
    table: EndpointTable,
    source_of: SourceOf,
    /// Time of the next cache sweep.
    next_sweep: Option<Instant>,
}

impl Service {
    /// Creates a service without ports. The seed determines the transaction IDs, which peers must not be able to guess.
    /// It has to come from the system's random number generator, except for reproducible runs.
    #[must_use]
    pub fn new(config: ServiceConfig, seed: [u8; 32]) -> Self {
        let shared = Shared {
            config,
            rng: ChaCha12Rng::from_seed(seed),
            timers: Timers::default(),
            counters: ServiceCounters::default(),
            events: VecDeque::new(),
            pending: PendingRequests::default(),
        };
        let table = EndpointTable::default();
        Self { shared, table, source_of: Box::new(|_| None), next_sweep: None }
    }

    /// Sets the function that chooses the source address for a destination address, if a request has no source.
    pub fn set_source_of(&mut self, source_of: SourceOf) {
        self.source_of = source_of;
    }

    /// Returns the configuration of the service.
    #[must_use]
    pub const fn config(&self) -> &ServiceConfig {
        &self.shared.config
    }

    /// Returns the counters of the service.
    #[must_use]
    pub const fn counters(&self) -> &ServiceCounters {
        &self.shared.counters
    }

    /// Returns the number of pending client requests.
    #[must_use]
    pub const fn pending(&self) -> usize {
        self.shared.pending.count
    }

    /// Returns the sum of each counter over all endpoints, including removed ones.
    #[must_use]
    pub fn perf_counters(&self) -> PerfCounters {
        self.table.counters()
    }

    /// Returns the state of all endpoints, in the order of their indices, which start with 1.
    #[must_use]
    pub fn endpoints(&self) -> Vec<EndpointView> {
        self.table.views()
    }

    /// Returns the cached entries in the order of their addresses. `only` selects one address; `None` selects all.
    #[must_use]
    pub fn cached(&self, now: Instant, only: Option<&Address>) -> Vec<CachedAddressView> {
        self.table.cached(now, only)
    }

    /// Returns the addresses that are being resolved, in ascending order.
    #[must_use]
    pub fn resolving(&self) -> Vec<Address> {
        self.table.resolving()
    }

    /// Removes all cached entries that are not preloaded; returns the number of removed addresses.
    pub fn flush(&mut self) -> usize {
        let endpoints = self.table.endpoints.values_mut();
        endpoints.map(|endpoint| endpoint.resolver.peers.table.clear()).sum()
    }

    /// Adds a port or updates its state.
    pub fn set_port(&mut self, now: Instant, id: PortId, state: &PortState) {
        self.next_sweep.get_or_insert(now + self.shared.config.timeout);
        self.table.set_port(now, &mut self.shared, id, state);
    }

    /// Removes a port and its endpoints.
    pub fn remove_port(&mut self, now: Instant, id: PortId) {
        self.table.remove_port(now, &mut self.shared, id);
    }

    /// Removes all endpoints, which leave their groups. The owner calls this before the service exits.
    pub fn leave(&mut self, now: Instant) {
        self.table.remove_all(now, &mut self.shared);
    }

    /// Replaces the configuration. Cached data is kept, except hosts that are no longer preloaded. The caller has to
    /// add preloaded routes again with [`Service::preload_paths`].
    pub fn configure(&mut self, now: Instant, config: ServiceConfig) {
        let before = std::mem::replace(&mut self.shared.config, config);
        // The next sweep is rescheduled, because the new configuration may have another interval.
        self.next_sweep = Some(now + self.shared.config.timeout);
        self.table.reconfigure(now, &mut self.shared, &before);
    }

    /// Removes the preloaded routes of a port.
    pub fn remove_preloaded_paths(&mut self, id: PortId) {
        self.table.remove_preloaded_paths(id);
    }

    /// Adds preloaded routes of a port, for example from a file. Paths that start at other ports are ignored. The
    /// routes become invalid when the SM or the LID of the port changes.
    pub fn preload_paths<'a>(
        &mut self,
        now: Instant,
        id: PortId,
        paths: impl IntoIterator<Item = &'a PathRecord>,
    ) {
        self.table.preload_paths(now, id, paths);
    }

    /// Handles a client message. `message` is its header, its data, and the byte order of the length in the header.
    ///
    /// If the response is known immediately, appends it to `out` and returns true. Otherwise returns false, and
    /// [`Service::poll_reply`] returns the response later.
    pub fn request(
        &mut self,
        now: Instant,
        client: ClientId,
        message: (&ClientHeader, &[u8], ByteOrder),
        out: &mut Vec<u8>,
    ) -> bool {
        let (&header, data, order) = message;
        let pending = PendingRequest { client, header, order, source: None, shared: None };
        let opcode = match header.version {
            ib_wire::acm::VERSION => header.opcode.request(),
            _ => ClientOpcode::default(),
        };
        let done = match opcode {
            ClientOpcode::RESOLVE => return self.resolve(now, &pending, data, out),
            ClientOpcode::PERF_QUERY => self.table.write_counters(&header, data, order, out),
            ClientOpcode::EP_QUERY => self.table.write_endpoint(&header, out),
            _ => Err(ClientStatus::EINVAL),
        };
        if let Err(status) = done {
            pending.write_error(status, out);
        }
        true
    }

    /// Handles a RESOLVE request. Returns true if the response was appended to `out`.
    fn resolve(
        &mut self,
        now: Instant,
        pending: &PendingRequest,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let (request, endpoints) = match self.parse_resolve(pending, data) {
            Ok(parsed) => parsed,
            Err(status) => {
                let counters = &mut self.table.other_counters;
                counters.resolves += 1;
                counters.errors += 1;
                pending.write_error(status, out);
                return true;
            }
        };
        let first =
            self.table.endpoints.get_mut(&endpoints[0].0).expect("the endpoint was just selected");
        first.identity.counters.resolves += 1;
        let shared = (endpoints.len() > 1).then(|| self.shared.rng.next_u64());
        self.shared.pending.add(shared, endpoints.len());
        for (key, source) in endpoints {
            let source = source.and_then(|address| address.to_entry(EntryFlags::SOURCE));
            let pending = PendingRequest { source, shared, ..pending.clone() };
            let endpoint = self.table.get(now, &mut self.shared, key);
            let (mut cx, resolver) = endpoint.expect("the endpoint was just selected");
            match resolver.request(&mut cx, request.clone(), &pending) {
                Response::Pending => {}
                Response::Path(path) => {
                    if cx.shared.pending.remove_resolved(&pending) {
                        pending.write_path(&path, out);
                        return true;
                    }
                }
                Response::Failed(status) => {
                    if cx.shared.pending.remove_failed(&pending) {
                        match status {
                            ClientStatus::ENODATA => cx.identity.counters.no_data += 1,
                            _ => cx.identity.counters.errors += 1,
                        }
                        pending.write_error(status, out);
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Parses a RESOLVE request, and selects the endpoints that resolve it.
    fn parse_resolve(
        &mut self,
        pending: &PendingRequest,
        data: &[u8],
    ) -> Result<(ResolveRequest, Vec<SelectedEndpoint>), ClientStatus> {
        let message = Resolve::parse(pending.header, data, pending.order);
        if data.len() != message.entries.len() * Entry::LENGTH {
            return Err(ClientStatus::EINVAL);
        }
        let request = ResolveRequest::from_entries(&message.entries)?;
        let endpoints = select_endpoints(&self.table, &mut self.source_of, &request)?;
        Ok((request, endpoints))
    }

    /// Handles a datagram or a MAD that a port received.
    pub fn handle(&mut self, now: Instant, id: PortId, arrived: Arrived) {
        match arrived {
            Arrived::Datagram { p_key, route, qpn, bytes } => {
                let key = EndpointKey::new(id, p_key);
                if let Some((mut cx, resolver)) = self.table.get(now, &mut self.shared, key) {
                    resolver.handle_datagram(&mut cx, &route, qpn, &bytes);
                }
            }
            Arrived::Mad(incoming) => {
                if let Some(port) = self.table.ports.get_mut(&id) {
                    port.requester.handle(now, &incoming);
                    self.handle_sa(now, id);
                }
            }
        }
    }

    /// Handles completed SA requests of a port.
    fn handle_sa(&mut self, now: Instant, id: PortId) {
        while let Some(port) = self.table.ports.get_mut(&id)
            && let Some((request, completion)) = port.poll_sa()
        {
            if let Some(key) = request.endpoint()
                && let Some((mut cx, resolver)) = self.table.get(now, &mut self.shared, key)
            {
                resolver.handle_sa(&mut cx, request, &completion);
            }
        }
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, timer, key)) = self.shared.timers.pop_expired(now) {
            if let Some((mut cx, resolver)) = self.table.get(now, &mut self.shared, key) {
                resolver.handle_timer(&mut cx, at, timer);
            }
        }
        if self.next_sweep.is_some_and(|at| at <= now) {
            self.sweep(now);
        }
        let ids: Vec<PortId> = self.table.ports.keys().copied().collect();
        for id in ids {
            let port = self.table.ports.get_mut(&id).expect("the port was just listed");
            if port.requester.poll_timeout().is_some_and(|at| at <= now) {
                port.requester.handle_timeout(now);
                self.handle_sa(now, id);
            }
        }
    }

    /// Sweeps a part of each cache. A cache is swept completely once in an eighth of the shortest lifetime of its
    /// entries.
    fn sweep(&mut self, now: Instant) {
        self.next_sweep = None;
        let Some(lifetime) = self.shared.config.shortest_lifetime() else { return };
        let step = (lifetime / 64).clamp(Duration::from_millis(100), Duration::from_secs(5));
        self.next_sweep = Some(now + step);
        let share = (step.as_secs_f64() / (lifetime.as_secs_f64() / 8.0)).min(1.0);
        let keys: Vec<EndpointKey> = self.table.endpoints.keys().copied().collect();
        for key in keys {
            if let Some((mut cx, resolver)) = self.table.get(now, &mut self.shared, key) {
                resolver.sweep(&mut cx, share);
            }
        }
    }

    /// Returns the time of the next call of [`Service::handle_timeout`]; `None` if no call is needed.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = [self.shared.timers.next(), self.next_sweep];
        let ports = self.table.ports.values().filter_map(|port| port.requester.poll_timeout());
        own.into_iter().flatten().chain(ports).min()
    }

    /// Returns the next action of a port.
    pub fn poll_action(&mut self, now: Instant, id: PortId) -> Option<Action> {
        let port = self.table.ports.get_mut(&id)?;
        if let Some(action) = port.actions.pop_front() {
            return Some(action);
        }
        port.requester.poll_transmit(now).map(|datagram| Action::Mad(Box::new(datagram)))
    }

    /// Returns the next response to a pending request. The caller may drop responses to disconnected clients.
    pub fn poll_reply(&mut self) -> Option<(ClientId, Vec<u8>)> {
        self.shared.pending.poll_response()
    }

    /// Returns the next event for the log.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.events.pop_front()
    }

    /// Passes the state and the input of a port to the service, and executes the service's actions at the port. Returns
    /// true if the state had changed, or if there was input or an action. `seen` is the previous value of
    /// [`Port::changes`], or `None` at the first call.
    pub fn drive(
        &mut self,
        now: Instant,
        id: PortId,
        port: &mut impl Port,
        seen: &mut Option<u64>,
    ) -> bool {
        let mut moved = false;
        let changes = port.changes();
        if *seen != Some(changes) {
            *seen = Some(changes);
            self.set_port(now, id, &port.state());
            moved = true;
        }
        while let Some(arrived) = port.receive() {
            self.handle(now, id, arrived);
            moved = true;
        }
        while let Some(action) = self.poll_action(now, id) {
            port.act(&action);
            moved = true;
        }
        moved
    }
}

#[cfg(test)]
mod tests;
