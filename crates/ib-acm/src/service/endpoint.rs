//! Ports and their endpoints: how they come into service and go, groups, announcements.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use ib_mad::{Requester, RequesterConfig};
use ib_types::{Gid, Instant, PKey};
use ib_wire::acm::{ClientStatus, PerfCounters};
use ib_wire::mad::sa::{MCMemberRecord, PathRecord};
use rand::Rng;

use super::checks::Check;
use super::config::{Event, RouteProtocol};
use super::groups::{Group, GroupState};
use super::levels::{Before, Levels};
use super::meter::Meter;
use super::request::Waiter;
use super::resolve::Resolution;
use super::route::{LidRoute, RouteQuery, Target};
use super::{Due, PortEntry, Service};
use crate::Address;
use crate::cache::{Cache, SaRoute};
use crate::port::{Action, PortId, PortState};

/// The number of an endpoint: its port and its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct EndpointKey {
    pub(super) port: PortId,
    /// The partition's key without the bit of full members.
    partition: u16,
}

impl EndpointKey {
    pub(super) const fn new(port: PortId, p_key: PKey) -> Self {
        Self { port, partition: p_key.0 & 0x7fff }
    }

    /// Returns whether it is in the partition that everybody is in.
    pub(super) const fn is_default(self) -> bool {
        self.partition == 0x7fff
    }
}

/// Maximum number of LIDs in the table beyond twice the number of cached peers.
const FEW_LIDS: usize = 64;

/// A port in a partition, with names.
pub(super) struct Endpoint {
    pub(super) p_key: PKey,
    pub(super) addresses: Vec<Address>,
    /// The groups, the least wanted first.
    pub(super) groups: Vec<Group>,
    /// Whether its port has a queue pair of it.
    pub(super) is_open: bool,
    /// Who shall tell its routes.
    pub(super) routes: RouteProtocol,
    /// Which service levels the SA gives.
    pub(super) levels: Levels,
    pub(super) cache: Cache,
    /// Where the cache was looked at last.
    pub(super) hand: u32,
    pub(super) resolutions: BTreeMap<u64, Resolution>,
    pub(super) by_address: BTreeMap<Address, u64>,
    /// Those that wait for their turn: first those of programs, then those that nobody waits for.
    pub(super) queue: VecDeque<u64>,
    pub(super) idle_queue: VecDeque<u64>,
    /// How many have their turn, and how many of them are such that nobody waited for.
    pub(super) asking: usize,
    pub(super) idling: usize,
    /// Whether turns are given just now.
    pub(super) is_turning: bool,
    /// Outstanding and pending route queries to the SA.
    pub(super) route_queries: BTreeMap<Target, RouteQuery>,
    /// Routes to further LIDs of ports that have several.
    pub(super) lid_routes: BTreeMap<u16, LidRoute>,
    pub(super) checks: BTreeMap<u64, Check>,
    /// Peers that are being checked.
    pub(super) checked: BTreeSet<Gid>,
    /// Which peer has a LID, as far as known peers go.
    pub(super) by_lid: HashMap<u16, Gid>,
    pub(super) meter: Meter,
    pub(super) counters: PerfCounters,
    pub(super) announcements: u32,
    /// When its groups are joined again.
    pub(super) rejoin: Option<Instant>,
    /// Whether others are to be told of it once its groups are joined.
    pub(super) is_news: bool,
    /// Those who wait for the comparison of service levels.
    pub(super) unchecked: Vec<u64>,
}

impl Endpoint {
    /// Stores the LID of a peer; returns the peer that had the LID before. LIDs of peers that are no longer cached are
    /// removed once they are as many as those of cached peers.
    pub(super) fn lid_taken(&mut self, lid: u16, gid: Gid) -> Option<Gid> {
        let Self { cache, by_lid, .. } = self;
        if by_lid.len() >= 2 * cache.peers() + FEW_LIDS {
            by_lid.retain(|_, gid| cache.by_gid(*gid).is_some());
            by_lid.shrink_to(2 * by_lid.len());
        }
        by_lid.insert(lid, gid)
    }

    fn new(p_key: PKey, most: usize) -> Self {
        Self {
            p_key,
            addresses: Vec::new(),
            groups: Vec::new(),
            is_open: false,
            routes: RouteProtocol::Sa,
            levels: Levels::default(),
            cache: Cache::new(most),
            hand: 0,
            resolutions: BTreeMap::new(),
            by_address: BTreeMap::new(),
            queue: VecDeque::new(),
            idle_queue: VecDeque::new(),
            asking: 0,
            idling: 0,
            is_turning: false,
            route_queries: BTreeMap::new(),
            lid_routes: BTreeMap::new(),
            checks: BTreeMap::new(),
            checked: BTreeSet::new(),
            by_lid: HashMap::new(),
            meter: Meter::default(),
            counters: PerfCounters::default(),
            announcements: 0,
            rejoin: None,
            is_news: false,
            unchecked: Vec::new(),
        }
    }

    /// Returns what is known of the group that everybody has, once it is joined.
    pub(super) fn least(&self) -> Option<&MCMemberRecord> {
        self.groups.first()?.record()
    }

    /// Returns the own groups that are joined, the least wanted first.
    pub(super) fn joined(&self) -> impl Iterator<Item = Gid> {
        self.groups.iter().filter(|group| group.record().is_some()).map(|group| group.mgid)
    }

    /// Returns the place of the best own group among some.
    pub(super) fn best(&self, theirs: &[Gid]) -> Option<u8> {
        let fits = |group: &Group| group.record().is_some() && theirs.contains(&group.mgid);
        self.groups.iter().rposition(fits).map(|place| place as u8)
    }
}

impl Service {
    /// Tells what a port is now, or that it is there.
    ///
    /// What of the cache a change has made wrong is dropped, groups are joined again where they have to be.
    pub fn set_port(&mut self, now: Instant, id: PortId, state: &PortState) {
        let timeout = self.config.timeout;
        let depth = self.config.sa_depth.max(1);
        let first = self.rng.next_u32();
        let before = match self.ports.get_mut(&id) {
            Some(port) => Some(std::mem::replace(&mut port.state, state.clone())),
            None => {
                let config =
                    RequesterConfig { tag: 0x2c, window: depth, first, ..Default::default() };
                let requester = Requester::new(config);
                let (asked, actions) = (BTreeMap::new(), VecDeque::new());
                let entry = PortEntry { state: state.clone(), requester, asked, actions };
                self.ports.insert(id, entry);
                self.at(now + timeout, Due::Sweep);
                None
            }
        };
        let wanted = self.wanted(id, state);
        for key in self.keys_of(id) {
            match wanted.get(&key) {
                None => self.close(now, key, "its partition or its names are gone"),
                // What others know of it, and what it knows, was made with the other key.
                Some((p_key, _)) if *p_key != self.endpoints[&key].p_key => {
                    self.close(now, key, "its membership of the partition has changed");
                }
                Some(_) => {}
            }
        }
        let is_new = |key: &EndpointKey| !self.endpoints.contains_key(key);
        let fresh: Vec<EndpointKey> = wanted.keys().copied().filter(is_new).collect();
        for (key, (p_key, addresses)) in wanted {
            self.open(now, key, p_key, addresses, state);
        }
        let Some(before) = before else {
            for key in fresh {
                self.begin(now, key, Before::IsOver);
            }
            return;
        };
        let (old, new) = (&before.link, &state.link);
        let is_other_subnet = old.gid_prefix != new.gid_prefix || old.port_guid != new.port_guid;
        let is_other_manager = old.sm_lid != new.sm_lid;
        let is_wanted_again = before.registrations != state.registrations;
        let is_moved = old.lid != new.lid || old.lmc != new.lmc;
        let is_other_link = before.mtu != state.mtu || before.rate != state.rate;
        let comes = state.is_active && !before.is_active;
        let asks_again = is_other_subnet || is_other_manager || is_wanted_again || is_moved;
        for key in self.keys_of(id) {
            if fresh.contains(&key) {
                self.begin(now, key, Before::IsOver);
                continue;
            }
            if is_other_subnet {
                self.endpoint(key).cache = Cache::new(self.config.most_destinations);
                self.endpoint(key).by_lid.clear();
                self.endpoint(key).lid_routes.clear();
                self.preload(now, key);
            } else if asks_again || comes {
                // Paths of the SA begin at the own LID, and another manager may route otherwise, as may one
                // that has begun again. What files say of the same LID and the same manager counts on.
                let keeps_files = !is_other_manager && !is_moved;
                let endpoint = self.endpoint(key);
                endpoint.lid_routes.clear();
                let is_of_file = |route: &SaRoute| route.is_of_file();
                endpoint.cache.for_each(|peer| peer.route = peer.route.filter(is_of_file));
                if !keeps_files {
                    endpoint.cache.forget_file_routes();
                }
            }
            if !state.is_active {
                // What has changed meanwhile is wrong all the same when it comes back.
                if before.is_active {
                    self.pause(now, key);
                }
                continue;
            }
            if asks_again {
                self.routes_again(key);
                self.query_again(now, key);
            }
            if comes || is_other_subnet || is_other_manager || is_moved || is_other_link {
                self.begin(now, key, Before::IsOver);
            } else if is_wanted_again {
                // The manager is the same one: what it has said counts until it says something else.
                self.begin(now, key, Before::Counts);
            }
        }
    }

    /// Takes a port away with all that it has.
    pub fn remove_port(&mut self, now: Instant, id: PortId) {
        for key in self.keys_of(id) {
            self.close(now, key, "its port is gone");
        }
        self.ports.remove(&id);
    }

    /// Leaves the groups of all endpoints, as it is polite before the end.
    pub fn leave(&mut self, now: Instant) {
        let keys: Vec<EndpointKey> = self.endpoints.keys().copied().collect();
        for key in keys {
            self.close(now, key, "the service ends");
        }
    }

    /// Takes another configuration. Endpoints that stay keep what they know, but for what only files have said and say no
    /// more: routes of files are forgotten until they are told again ([`Service::preload_paths`]).
    pub fn configure(&mut self, now: Instant, config: super::ServiceConfig) {
        let before = std::mem::replace(&mut self.config, config);
        for port in self.ports.values_mut() {
            port.requester.set_window(self.config.sa_depth.max(1));
        }
        // How often the caches are looked through may be another matter now.
        self.due.retain(|&(_, due)| due != Due::Sweep);
        self.at(now + self.config.timeout, Due::Sweep);
        let stays: HashSet<&(Address, Gid)> = self.config.hosts.iter().collect();
        for endpoint in self.endpoints.values_mut() {
            for (address, gid) in before.hosts.iter().filter(|it| !stays.contains(it)) {
                endpoint.cache.unbind_preloaded(address, *gid);
            }
            endpoint.cache.forget_file_routes();
            endpoint.cache.set_most(self.config.most_destinations);
        }
        let keys: Vec<EndpointKey> = self.endpoints.keys().copied().collect();
        for key in keys {
            self.preload(now, key);
        }
        let states: Vec<(PortId, PortState)> =
            self.ports.iter().map(|(&id, port)| (id, port.state.clone())).collect();
        for (id, state) in states {
            self.set_port(now, id, &state);
            for key in self.keys_of(id) {
                self.begin(now, key, Before::Counts);
            }
        }
    }

    pub(super) fn keys_of(&self, id: PortId) -> Vec<EndpointKey> {
        self.endpoints.keys().copied().filter(|key| key.port == id).collect()
    }

    /// Returns an endpoint.
    ///
    /// # Panics
    /// Panics when it is gone.
    pub(super) fn endpoint(&mut self, key: EndpointKey) -> &mut Endpoint {
        self.endpoints.get_mut(&key).expect("an endpoint that was just found")
    }

    /// Returns the endpoints that a port shall have, and their addresses.
    fn wanted(&self, id: PortId, state: &PortState) -> BTreeMap<EndpointKey, (PKey, Vec<Address>)> {
        let mut wanted: BTreeMap<EndpointKey, (PKey, Vec<Address>)> = BTreeMap::new();
        let own = |p_key: PKey| {
            state.p_keys.iter().copied().find(|own| own.0 & 0x7fff == p_key.0 & 0x7fff)
        };
        let mut add = |p_key: PKey, address: Option<&Address>| {
            let key = EndpointKey::new(id, p_key);
            let (_, addresses) = wanted.entry(key).or_insert_with(|| (p_key, Vec::new()));
            if let Some(address) = address
                && !addresses.contains(address)
            {
                addresses.push(address.clone());
            }
        };
        for it in &self.config.assignments {
            if it.device == state.device
                && it.port == state.link.number
                && let Some(p_key) = own(it.p_key)
            {
                add(p_key, Some(&it.address));
            }
        }
        if let Some(p_key) = own(PKey::DEFAULT) {
            add(p_key, None);
            for name in &state.names {
                add(p_key, Some(name));
            }
        }
        wanted
    }

    /// Makes an endpoint, or gives it other addresses.
    fn open(
        &mut self,
        now: Instant,
        key: EndpointKey,
        p_key: PKey,
        addresses: Vec<Address>,
        state: &PortState,
    ) {
        let most = self.config.most_destinations;
        let endpoint = self.endpoints.entry(key).or_insert_with(|| Endpoint::new(p_key, most));
        let is_new = !endpoint.is_open;
        endpoint.p_key = p_key;
        let old = std::mem::replace(&mut endpoint.addresses, addresses.clone());
        let changed = old != addresses;
        for address in old.iter().filter(|address| !addresses.contains(address)) {
            if let Some(owners) = self.own.get_mut(address) {
                owners.retain(|owner| *owner != key);
            }
        }
        for address in addresses {
            let owners = self.own.entry(address).or_default();
            if !owners.contains(&key) {
                owners.push(key);
            }
        }
        self.own.retain(|_, owners| !owners.is_empty());
        if is_new && state.has_datagrams {
            self.endpoint(key).is_open = true;
            self.act(key.port, Action::Open { p_key });
        }
        if is_new {
            self.preload(now, key);
            if !state.has_datagrams {
                let (endpoint, routes) = (self.name(key), self.config.route_protocol);
                self.events.push_back(Event::NoDatagrams { endpoint, routes });
            }
        } else if changed {
            self.announce_soon(now, key);
        }
    }

    /// Has the cache of an endpoint know what files say.
    fn preload(&mut self, now: Instant, key: EndpointKey) {
        let endpoint = self.endpoints.get_mut(&key).expect("it was just made");
        for (address, gid) in &self.config.hosts {
            let peer = endpoint.cache.peer_of(*gid, now);
            // What a file says counts more than what a port has said.
            let owner = endpoint.cache.lookup(address).filter(|&owner| owner != peer);
            if owner.is_some() && endpoint.cache.seen(address).is_some() {
                endpoint.cache.unbind(address);
            }
            endpoint.cache.bind(address, peer, now, true);
            endpoint.cache.remove_if_nameless(peer);
        }
    }

    /// Has the endpoints of a port forget the paths that were told by [`Service::preload_paths`].
    pub fn forget_preloaded_paths(&mut self, id: PortId) {
        for key in self.keys_of(id) {
            self.endpoint(key).cache.forget_file_routes();
        }
    }

    /// Has the endpoints of a port know paths from the beginning, such as those of a file; another subnet manager or
    /// another LID of the port makes them count no more. Those that begin elsewhere are left out.
    pub fn preload_paths<'a>(
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
            for &key in &keys {
                let endpoint = self.endpoint(key);
                let path = &PathRecord { p_key: endpoint.p_key, ..*path };
                let cache = &mut endpoint.cache;
                let peer = cache.peer_of(path.dgid, now);
                cache.bind(&Address::Gid(path.dgid), peer, now, true);
                if let Some(peer) = cache.peer_mut(peer) {
                    peer.set_file_route(path, now);
                }
                cache.remove_if_nameless(peer);
            }
        }
    }

    /// Ends an endpoint.
    fn close(&mut self, now: Instant, key: EndpointKey, why: &'static str) {
        self.rejoin_never(key);
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let (p_key, is_open) = (endpoint.p_key, endpoint.is_open);
        let groups = std::mem::take(&mut endpoint.groups);
        for group in &groups {
            self.leave_group(key, group);
        }
        self.fail_all(now, key);
        if is_open {
            self.act(key.port, Action::Close { p_key });
        }
        let name = self.name(key);
        self.events.push_back(Event::Down { endpoint: name, why });
        if let Some(endpoint) = self.endpoints.remove(&key) {
            self.lost = added(&self.lost, &endpoint.counters);
        }
        self.own.retain(|_, owners| {
            owners.retain(|owner| *owner != key);
            !owners.is_empty()
        });
    }

    /// Ends what an endpoint has begun: its port is out of service.
    fn pause(&mut self, now: Instant, key: EndpointKey) {
        self.fail_all(now, key);
        let endpoint = self.endpoint(key);
        endpoint.checks.clear();
        endpoint.checked.clear();
        for group in &mut endpoint.groups {
            if matches!(group.state, GroupState::Asked) {
                group.state = GroupState::Out;
            }
        }
        let endpoint = self.name(key);
        self.events.push_back(Event::Down { endpoint, why: "its port is not active" });
    }

    /// Ends all that waits at an endpoint.
    fn fail_all(&mut self, now: Instant, key: EndpointKey) {
        self.give_up_routes(key);
        self.give_up_comparison(key);
        self.fail_queries(now, key);
        let endpoint = self.endpoint(key);
        let waiters: Vec<Waiter> = std::mem::take(&mut endpoint.resolutions)
            .into_values()
            .flat_map(|it| it.waiters)
            .collect();
        endpoint.by_address.clear();
        endpoint.queue.clear();
        endpoint.idle_queue.clear();
        endpoint.unchecked.clear();
        (endpoint.asking, endpoint.idling) = (0, 0);
        for waiter in waiters {
            self.fail(now, key, &waiter, ClientStatus::ENOTCONN);
        }
    }
}

/// Returns the sums of counters.
pub(super) const fn added(one: &PerfCounters, other: &PerfCounters) -> PerfCounters {
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
