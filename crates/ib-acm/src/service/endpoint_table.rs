//! Ports and endpoints of a machine: how they are created, changed and removed.

use std::collections::{BTreeMap, HashMap, HashSet};

use ib_types::{Instant, PKey};
use ib_wire::acm::PerfCounters;
use ib_wire::mad::sa::PathRecord;
use rand::Rng;

use super::config::ServiceConfig;
use super::context::{Context, Identity, Shared};
use super::event::Event;
use super::key::EndpointKey;
use super::peer_table::PeerTable;
use super::resolver::Resolver;
use super::route_policy::KnownLevels;
use super::sa::LocalPort;
use crate::Address;
use crate::port::{Action, PortId, PortState};

/// An endpoint: a port in a partition, with names and addresses.
pub(super) struct Endpoint {
    pub(super) identity: Identity,
    pub(super) resolver: Resolver,
    /// True if the port has a UD QP in the partition.
    has_qp: bool,
}

/// P_Key and addresses of each endpoint that a port is to have.
type WantedEndpoints = BTreeMap<EndpointKey, (PKey, Vec<Address>)>;

/// The ports and endpoints of a machine.
#[derive(Default)]
pub(super) struct EndpointTable {
    pub(super) ports: BTreeMap<PortId, LocalPort>,
    pub(super) endpoints: BTreeMap<EndpointKey, Endpoint>,
    /// Endpoints by address. An address such as the name of the machine may have several endpoints.
    by_address: HashMap<Address, Vec<EndpointKey>>,
    /// Sum of the counters of removed endpoints, plus the counters of requests that no endpoint handled.
    pub(super) other_counters: PerfCounters,
}

impl EndpointTable {
    /// Returns the context and the resolver of an endpoint; `None` if the endpoint was removed.
    pub(super) fn get<'a>(
        &'a mut self,
        now: Instant,
        shared: &'a mut Shared,
        key: EndpointKey,
    ) -> Option<(Context<'a>, &'a mut Resolver)> {
        let port = self.ports.get_mut(&key.port)?;
        let Endpoint { identity, resolver, .. } = self.endpoints.get_mut(&key)?;
        Some((Context { now, key, shared, port, identity }, resolver))
    }

    /// Returns the endpoints of a port.
    fn keys_of(&self, id: PortId) -> Vec<EndpointKey> {
        self.endpoints.keys().copied().filter(|key| key.port == id).collect()
    }

    /// Returns the endpoints that have an address.
    pub(super) fn with_address(&self, address: &Address) -> &[EndpointKey] {
        self.by_address.get(address).map_or(&[], Vec::as_slice)
    }

    /// Returns the first endpoint with this address that is up. If none is up, returns the first endpoint with the
    /// address.
    pub(super) fn owner(&self, address: &Address) -> Option<EndpointKey> {
        let owners = self.with_address(address);
        owners.iter().find(|key| self.is_up(**key)).or(owners.first()).copied()
    }

    /// Returns true if the port of the endpoint is active and the base group is joined. A port without UD QPs needs no
    /// group.
    pub(super) fn is_up(&self, key: EndpointKey) -> bool {
        let port = self.ports.get(&key.port).map(|port| &port.state);
        let is_joined =
            || self.endpoints.get(&key).is_some_and(|it| it.resolver.groups.base().is_some());
        port.is_some_and(|port| port.is_active && (!port.has_datagrams || is_joined()))
    }

    /// Adds a port or updates its state.
    ///
    /// Invalidates the data that depends on the previous state of the port, and joins groups again if necessary.
    pub(super) fn set_port(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        id: PortId,
        state: &PortState,
    ) {
        let first = shared.rng.next_u32();
        let before = match self.ports.get_mut(&id) {
            Some(port) => Some(std::mem::replace(&mut port.state, state.clone())),
            None => {
                let port = LocalPort::new(state.clone(), &shared.config, first);
                self.ports.insert(id, port);
                None
            }
        };
        let wanted = wanted_endpoints(&shared.config, id, state);
        for key in self.keys_of(id) {
            match wanted.get(&key) {
                None => {
                    self.remove(now, shared, key, "the partition or the addresses were removed");
                }
                // The membership bit of the P_Key has changed. The endpoint is removed and added again, because its QP
                // and its SA queries use the whole P_Key.
                Some((p_key, _)) if *p_key != self.endpoints[&key].identity.p_key => {
                    let why = "the port's membership of the partition has changed";
                    self.remove(now, shared, key, why);
                }
                Some(_) => {}
            }
        }
        let is_new = |key: &EndpointKey| !self.endpoints.contains_key(key);
        let new: HashSet<EndpointKey> = wanted.keys().copied().filter(is_new).collect();
        for (key, (p_key, addresses)) in wanted {
            self.set_endpoint(now, shared, key, p_key, addresses);
        }
        for key in self.keys_of(id) {
            let Some((mut cx, resolver)) = self.get(now, shared, key) else { continue };
            match before.as_ref().filter(|_| !new.contains(&key)) {
                Some(before) => update(&mut cx, resolver, before),
                None => resolver.start(&mut cx, KnownLevels::Discard),
            }
        }
    }

    /// Removes a port and its endpoints.
    pub(super) fn remove_port(&mut self, now: Instant, shared: &mut Shared, id: PortId) {
        for key in self.keys_of(id) {
            self.remove(now, shared, key, "the port was removed");
        }
        self.ports.remove(&id);
    }

    /// Removes all endpoints. Each endpoint leaves its groups.
    pub(super) fn remove_all(&mut self, now: Instant, shared: &mut Shared) {
        let keys: Vec<EndpointKey> = self.endpoints.keys().copied().collect();
        for key in keys {
            self.remove(now, shared, key, "the service exits");
        }
    }

    /// Applies a changed configuration, which replaces `before`. Removes preloaded routes, and hosts that are no longer
    /// preloaded. Keeps other cached data.
    pub(super) fn reconfigure(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        before: &ServiceConfig,
    ) {
        let config = &shared.config;
        let kept: HashSet<_> = config.hosts.iter().collect();
        for endpoint in self.endpoints.values_mut() {
            let table = &mut endpoint.resolver.peers.table;
            for (address, gid) in before.hosts.iter().filter(|it| !kept.contains(it)) {
                table.cache.unbind_preloaded(address, *gid);
            }
            table.cache.remove_preloaded_routes();
            table.cache.set_max(config.max_destinations);
            table.preload_hosts(&config.hosts, now);
        }
        for port in self.ports.values_mut() {
            port.requester.set_window(config.sa_depth.max(1));
        }
        let states: Vec<(PortId, PortState)> =
            self.ports.iter().map(|(&id, port)| (id, port.state.clone())).collect();
        for (id, state) in states {
            self.set_port(now, shared, id, &state);
            for key in self.keys_of(id) {
                if let Some((mut cx, resolver)) = self.get(now, shared, key) {
                    resolver.start(&mut cx, KnownLevels::Keep);
                }
            }
        }
    }

    /// Sets the addresses of an endpoint. Adds the endpoint if it does not exist.
    fn set_endpoint(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        key: EndpointKey,
        p_key: PKey,
        addresses: Vec<Address>,
    ) {
        let endpoint = self.endpoints.entry(key).or_insert_with(|| {
            let counters = PerfCounters::default();
            let identity = Identity { p_key, addresses: Vec::new(), counters };
            Endpoint { identity, resolver: Resolver::new(&shared.config), has_qp: false }
        });
        let lacks_qp = !endpoint.has_qp;
        let old = std::mem::replace(&mut endpoint.identity.addresses, addresses.clone());
        let is_changed = old != addresses;
        for address in old.iter().filter(|address| !addresses.contains(address)) {
            self.unindex(address, key);
        }
        for address in addresses {
            let owners = self.by_address.entry(address).or_default();
            if !owners.contains(&key) {
                owners.push(key);
            }
        }
        if lacks_qp {
            self.start_endpoint(now, shared, key, p_key);
        } else if is_changed && let Some((mut cx, resolver)) = self.get(now, shared, key) {
            resolver.announce(&mut cx);
        }
    }

    /// Preloads the cache of an endpoint and, if the port has UD QPs, opens one for the endpoint.
    fn start_endpoint(&mut self, now: Instant, shared: &mut Shared, key: EndpointKey, p_key: PKey) {
        let Some((mut cx, resolver)) = self.get(now, shared, key) else { return };
        resolver.peers.table.preload_hosts(&cx.shared.config.hosts, now);
        let has_qp = cx.port_state().has_datagrams;
        if has_qp {
            cx.act(Action::Open { p_key });
        } else {
            let routes = cx.config().route_protocol;
            cx.report(Event::NoDatagrams { endpoint: cx.name(), routes });
        }
        if let Some(endpoint) = self.endpoints.get_mut(&key) {
            endpoint.has_qp = has_qp;
        }
    }

    fn unindex(&mut self, address: &Address, key: EndpointKey) {
        if let Some(owners) = self.by_address.get_mut(address) {
            owners.retain(|owner| *owner != key);
            if owners.is_empty() {
                self.by_address.remove(address);
            }
        }
    }

    /// Removes an endpoint.
    fn remove(&mut self, now: Instant, shared: &mut Shared, key: EndpointKey, why: &'static str) {
        let has_qp = self.endpoints.get(&key).is_some_and(|endpoint| endpoint.has_qp);
        let Some((mut cx, resolver)) = self.get(now, shared, key) else { return };
        resolver.stop(&mut cx);
        if has_qp {
            cx.act(Action::Close { p_key: cx.identity.p_key });
        }
        cx.report(Event::Down { endpoint: cx.name(), why });
        let Some(Endpoint { identity, .. }) = self.endpoints.remove(&key) else { return };
        for address in &identity.addresses {
            self.unindex(address, key);
        }
        self.other_counters = sum_of(&self.other_counters, &identity.counters);
    }

    /// Removes the preloaded routes of a port.
    pub(super) fn remove_preloaded_paths(&mut self, id: PortId) {
        for endpoint in self.endpoints.iter_mut().filter(|(key, _)| key.port == id) {
            endpoint.1.resolver.peers.table.cache.remove_preloaded_routes();
        }
    }

    /// Adds preloaded routes that start at a port.
    pub(super) fn preload_paths<'a>(
        &mut self,
        now: Instant,
        id: PortId,
        paths: impl IntoIterator<Item = &'a PathRecord>,
    ) {
        let Some(port) = self.ports.get(&id) else { return };
        let own = port.state.link;
        let keys = self.keys_of(id);
        for path in paths {
            if path.sgid != own.gid() || path.slid != own.lid {
                continue;
            }
            for key in &keys {
                if let Some(Endpoint { identity, resolver, .. }) = self.endpoints.get_mut(key) {
                    let path = PathRecord { p_key: identity.p_key, ..*path };
                    resolver.peers.table.preload_path(&path, now);
                }
            }
        }
    }
}

/// Updates an endpoint whose port was in the state `before` and has changed.
fn update(cx: &mut Context<'_>, resolver: &mut Resolver, before: &PortState) {
    let state = cx.port_state();
    let (old, new) = (&before.link, &state.link);
    let is_other_subnet = old.gid_prefix != new.gid_prefix || old.port_guid != new.port_guid;
    let is_other_sm = old.sm_lid != new.sm_lid;
    let is_reregistered = before.registrations != state.registrations;
    let is_moved = old.lid != new.lid || old.lmc != new.lmc;
    let is_other_link = before.mtu != state.mtu || before.rate != state.rate;
    let (is_active, was_active) = (state.is_active, before.is_active);
    let comes_up = is_active && !was_active;
    let is_queried_again = is_other_subnet || is_other_sm || is_reregistered || is_moved;
    if is_other_subnet {
        let config = &cx.shared.config;
        let table = &mut resolver.peers.table;
        *table = PeerTable::new(config.max_destinations);
        table.preload_hosts(&config.hosts, cx.now);
    } else if is_queried_again || comes_up {
        // Routes from the SA are valid only for the port's LID and for the SM that computed them. A new or restarted SM
        // may compute other routes. Preloaded routes remain valid if the LID and the SM are the same as before.
        resolver.peers.table.remove_routes(!is_other_sm && !is_moved);
    }
    if !is_active {
        if was_active {
            resolver.pause(cx);
            cx.report(Event::Down { endpoint: cx.name(), why: "the port is not active" });
        }
        return;
    }
    if is_queried_again {
        resolver.restart_queries(cx);
    }
    if comes_up || is_other_subnet || is_other_sm || is_moved || is_other_link {
        resolver.start(cx, KnownLevels::Discard);
    } else if is_reregistered {
        // The SM is the same as before, so service levels remain valid until the SA reports other ones.
        resolver.start(cx, KnownLevels::Keep);
    }
}

/// Returns the endpoints that a port is to have, according to the configuration and the names of the port.
fn wanted_endpoints(config: &ServiceConfig, id: PortId, state: &PortState) -> WantedEndpoints {
    let mut wanted = WantedEndpoints::new();
    let own_p_key =
        |p_key: PKey| state.p_keys.iter().copied().find(|own| own.0 & 0x7fff == p_key.0 & 0x7fff);
    let mut add = |p_key: PKey, address: Option<&Address>| {
        let key = EndpointKey::new(id, p_key);
        let (_, addresses) = wanted.entry(key).or_insert_with(|| (p_key, Vec::new()));
        if let Some(address) = address
            && !addresses.contains(address)
        {
            addresses.push(address.clone());
        }
    };
    for it in &config.assignments {
        if it.device == state.device
            && it.port == state.link.number
            && let Some(p_key) = own_p_key(it.p_key)
        {
            add(p_key, Some(&it.address));
        }
    }
    if let Some(p_key) = own_p_key(PKey::DEFAULT) {
        add(p_key, None);
        for name in &state.names {
            add(p_key, Some(name));
        }
    }
    wanted
}

/// Returns the sum of two sets of counters, counter by counter.
pub(super) const fn sum_of(one: &PerfCounters, other: &PerfCounters) -> PerfCounters {
    PerfCounters {
        errors: one.errors + other.errors,
        resolves: one.resolves + other.resolves,
        no_data: one.no_data + other.no_data,
        address_queries: one.address_queries + other.address_queries,
        address_cached: one.address_cached + other.address_cached,
        route_queries: one.route_queries + other.route_queries,
        route_cached: one.route_cached + other.route_cached,
    }
}
