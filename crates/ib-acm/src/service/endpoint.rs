//! Ports and their endpoints: how they come into service and go, groups, announcements.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use ib_link::Route;
use ib_mad::{Requester, RequesterConfig};
use ib_types::{Gid, Instant, PKey, QKey, Qpn, ServiceLevel};
use ib_wire::acm::PerfCounters;
use ib_wire::mad::acm::{AcmMessage, group_gid};
use ib_wire::mad::sa::{JoinState, MCMemberRecord, PathRecord, Selector};
use ib_wire::mad::{Method, TransactionId};
use rand::Rng;

use super::config::{Event, GroupSpec, RouteProtocol};
use super::peers::{Check, Meter};
use super::request::Waiter;
use super::resolve::Resolution;
use super::route::{Purpose, RouteQuery};
use super::{Due, PortEntry, Service};
use crate::Address;
use crate::cache::{Cache, SaRoute};
use crate::port::{Action, Destination, PortId, PortState};

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
}

/// How far a group is joined.
#[derive(Clone, Debug)]
pub(super) enum GroupState {
    /// Not at all, or it will be tried again.
    Out,
    /// Subnet administration is asked.
    Asked,
    /// It is.
    In(Box<MCMemberRecord>),
}

/// A group of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) spec: GroupSpec,
    pub(super) mgid: Gid,
    pub(super) state: GroupState,
    /// How often it could not be joined since it last could.
    failures: u32,
    /// The request that asks for it.
    request: Option<TransactionId>,
    /// When it is tried again.
    retry: Option<Instant>,
}

impl Group {
    /// Returns what is known of it, once it is joined.
    pub(super) fn record(&self) -> Option<&MCMemberRecord> {
        match &self.state {
            GroupState::In(record) => Some(record),
            GroupState::Out | GroupState::Asked => None,
        }
    }
}

/// A port in a partition, with names.
pub(super) struct Endpoint {
    pub(super) p_key: PKey,
    pub(super) addresses: Vec<Address>,
    /// The groups, the least wanted first.
    pub(super) groups: Vec<Group>,
    /// Whether its port has a queue pair of it.
    pub(super) is_open: bool,
    /// Who tells its routes.
    pub(super) routes: RouteProtocol,
    /// Whether service levels are still to be compared before routes are made of groups.
    pub(super) is_unchecked: bool,
    pub(super) cache: Cache,
    /// Where the cache was looked at last.
    pub(super) hand: u32,
    pub(super) resolutions: BTreeMap<u64, Resolution>,
    pub(super) by_address: BTreeMap<Address, u64>,
    /// Those that wait for their turn.
    pub(super) queue: VecDeque<u64>,
    /// How many have their turn.
    pub(super) asking: usize,
    /// Routes that subnet administration is asked for, by the peer's GID.
    pub(super) route_queries: BTreeMap<Gid, RouteQuery>,
    pub(super) checks: BTreeMap<u64, Check>,
    /// Peers that are being checked.
    pub(super) checked: BTreeSet<Gid>,
    /// Which peer has a LID.
    pub(super) by_lid: HashMap<u16, Gid>,
    pub(super) meter: Meter,
    pub(super) counters: PerfCounters,
    announcements: u32,
    /// When its groups are joined again.
    rejoin: Option<Instant>,
    /// Whether others are to be told of it once its groups are joined.
    is_news: bool,
    /// Those who wait for the comparison of service levels.
    pub(super) unchecked: Vec<u64>,
}

impl Endpoint {
    fn new(p_key: PKey, most: usize) -> Self {
        Self {
            p_key,
            addresses: Vec::new(),
            groups: Vec::new(),
            is_open: false,
            routes: RouteProtocol::Sa,
            is_unchecked: false,
            cache: Cache::new(most),
            hand: 0,
            resolutions: BTreeMap::new(),
            by_address: BTreeMap::new(),
            queue: VecDeque::new(),
            asking: 0,
            route_queries: BTreeMap::new(),
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

/// How many groups fit into a message.
const MOST_GROUPS: usize = 6;

/// The shortest and the longest time until a group that cannot be joined is tried again.
const REJOIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// When an endpoint that has come into service first says who it is, and again.
const ANNOUNCE: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(5)];

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
        let gone: Vec<EndpointKey> =
            self.keys_of(id).into_iter().filter(|key| !wanted.contains_key(key)).collect();
        for key in gone {
            self.close(now, key, "its partition or its names are gone");
        }
        let is_new = |key: &EndpointKey| !self.endpoints.contains_key(key);
        let fresh: Vec<EndpointKey> = wanted.keys().copied().filter(is_new).collect();
        for (key, (p_key, addresses)) in wanted {
            self.open(now, key, p_key, addresses, state);
        }
        let Some(before) = before else {
            for key in fresh {
                self.begin(now, key);
            }
            return;
        };
        let (old, new) = (&before.link, &state.link);
        let is_other_subnet = old.gid_prefix != new.gid_prefix || old.port_guid != new.port_guid;
        let is_other_manager =
            old.sm_lid != new.sm_lid || before.registrations != state.registrations;
        let is_moved = old.lid != new.lid || old.lmc != new.lmc;
        let is_other_link = before.mtu != state.mtu || before.rate != state.rate;
        let comes = state.is_active && !before.is_active;
        for key in self.keys_of(id) {
            if fresh.contains(&key) {
                self.begin(now, key);
                continue;
            }
            if before.is_active && !state.is_active {
                self.pause(now, key);
                continue;
            }
            if is_other_subnet {
                self.endpoint(key).cache = Cache::new(self.config.most_destinations);
                self.endpoint(key).by_lid.clear();
                self.preload(now, key);
            } else if is_other_manager || is_moved || comes {
                // Paths of subnet administration begin at the own LID, and another manager may route otherwise.
                self.endpoint(key).cache.for_each(|peer| peer.route = None);
            }
            if comes || is_other_subnet || is_other_manager || is_moved || is_other_link {
                self.begin(now, key);
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

    /// Takes another configuration. Endpoints that stay keep what they know.
    pub fn configure(&mut self, now: Instant, config: super::ServiceConfig) {
        self.config = config;
        let states: Vec<(PortId, PortState)> =
            self.ports.iter().map(|(&id, port)| (id, port.state.clone())).collect();
        for (id, state) in states {
            self.set_port(now, id, &state);
            for key in self.keys_of(id) {
                self.begin(now, key);
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
        for address in old {
            if !addresses.contains(&address) && self.own.get(&address) == Some(&key) {
                self.own.remove(&address);
            }
        }
        for address in addresses {
            // Whoever has it first keeps it.
            self.own.entry(address).or_insert(key);
        }
        if is_new && state.has_datagrams {
            self.endpoint(key).is_open = true;
            self.act(key.port, Action::Open { p_key });
        }
        if is_new {
            self.preload(now, key);
            if !state.has_datagrams {
                let endpoint = self.name(key);
                self.events.push_back(Event::NoDatagrams { endpoint });
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
            endpoint.cache.bind(address, peer, now, true);
            endpoint.cache.remove_if_nameless(peer);
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
                let cache = &mut self.endpoint(key).cache;
                let peer = cache.peer_of(path.dgid, now);
                cache.bind(&Address::Gid(path.dgid), peer, now, true);
                if let Some(peer) = cache.peer_mut(peer) {
                    peer.route = Some(SaRoute::of(path, now));
                }
                cache.remove_if_nameless(peer);
            }
        }
    }

    /// Begins, or begins again, with the groups of an endpoint.
    fn begin(&mut self, now: Instant, key: EndpointKey) {
        let Some(port) = self.ports.get(&key.port) else { return };
        if !port.state.is_active || !port.state.has_datagrams {
            return;
        }
        let specs = self.specs(&port.state);
        let routes = self.config.route_protocol;
        let check = self.config.check_routes;
        let endpoint = self.endpoint(key);
        let p_key = endpoint.p_key;
        let mut old = std::mem::take(&mut endpoint.groups);
        let places: Vec<Gid> = old.iter().map(|group| group.mgid).collect();
        for spec in specs {
            let mgid = group_gid(p_key, spec.sl, spec.rate, spec.mtu);
            let kept = old.iter().position(|group| group.mgid == mgid).map(|at| old.remove(at));
            // Whether the manager still knows of it is not known: it is joined again, and goes on meanwhile.
            let fresh = || Group {
                spec,
                mgid,
                state: GroupState::Out,
                failures: 0,
                request: None,
                retry: None,
            };
            endpoint.groups.push(Group { spec, failures: 0, ..kept.unwrap_or_else(fresh) });
        }
        endpoint.routes = routes;
        endpoint.is_news = true;
        endpoint.is_unchecked = routes == RouteProtocol::Acm && check;
        let count = endpoint.groups.len();
        if !endpoint.groups.iter().map(|group| group.mgid).eq(places) {
            // The numbers of groups have changed.
            endpoint.cache.for_each(|peer| peer.group = crate::cache::NO_GROUP);
        }
        for group in old {
            self.leave_group(key, &group);
        }
        for group in 0..count {
            self.join(key, group);
        }
        if self.endpoint(key).is_unchecked {
            let delay = self.about(Duration::from_millis(200));
            self.at(now + delay, Due::RouteCheck(key));
        }
    }

    /// Returns the groups that a port can join, the least wanted first.
    fn specs(&self, state: &PortState) -> Vec<GroupSpec> {
        let rate = |spec: &GroupSpec| spec.rate.megabits_per_second().unwrap_or(0);
        let own = GroupSpec { rate: state.rate, mtu: state.mtu, sl: self.config.least.sl };
        let fits = |spec: &&GroupSpec| spec.mtu.0 <= own.mtu.0 && rate(spec) <= rate(&own);
        let mut specs = vec![self.config.least];
        if self.config.route_protocol == RouteProtocol::Acm {
            let better = |spec: &&GroupSpec| {
                let least = &self.config.least;
                spec.mtu.0 >= least.mtu.0 && rate(spec) >= rate(least)
            };
            let mut wanted: Vec<&GroupSpec> = self.config.groups.iter().filter(fits).collect();
            // Everybody has to count them in the same order.
            wanted.sort_by_key(|spec| (rate(spec), spec.mtu.0, spec.sl));
            for spec in wanted.into_iter().chain([&own]).filter(better) {
                if !specs.contains(spec) {
                    specs.push(*spec);
                }
            }
        }
        // The best ones count.
        while specs.len() > MOST_GROUPS {
            specs.remove(1);
        }
        specs
    }

    /// Asks subnet administration to let an endpoint into a group.
    pub(super) fn join(&mut self, key: EndpointKey, place: usize) {
        let Some(port) = self.ports.get(&key.port) else { return };
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let p_key = endpoint.p_key;
        let Some(group) = endpoint.groups.get_mut(place) else { return };
        if !port.state.is_active {
            return;
        }
        let GroupSpec { rate, mtu, sl } = group.spec;
        // What was asked before may have gone to another manager, or from another LID.
        let (before, retry) = (group.request.take(), group.retry.take());
        let wanted = MCMemberRecord {
            mgid: group.mgid,
            port_gid: port.state.link.gid(),
            q_key: QKey::GSI,
            mtu_selector: Selector::EXACTLY,
            mtu,
            traffic_class: sl,
            p_key,
            rate_selector: Selector::EXACTLY,
            rate,
            sl,
            scope: 5,
            join_state: JoinState::FULL_MEMBER,
            ..MCMemberRecord::zeroed()
        };
        if matches!(group.state, GroupState::Out) {
            group.state = GroupState::Asked;
        }
        let components = [0, 1, 2, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16];
        let mgid = group.mgid;
        let purpose = Purpose::Join { key, mgid };
        self.counters.joins += 1;
        if let Some(at) = retry {
            self.due.remove(&(at, Due::Join(key, place)));
        }
        if let Some(before) = before {
            self.cancel(key.port, before);
        }
        let request = self.ask(key.port, Method::SET, &components, &wanted, purpose);
        let endpoint = self.endpoint(key);
        if let Some(group) = endpoint.groups.get_mut(place).filter(|group| group.mgid == mgid) {
            group.request = request;
        }
    }

    /// Takes what subnet administration has said of a group.
    pub(super) fn joined(
        &mut self,
        now: Instant,
        key: EndpointKey,
        mgid: Gid,
        answer: Result<MCMemberRecord, String>,
    ) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let Some(place) = endpoint.groups.iter().position(|group| group.mgid == mgid) else {
            return;
        };
        let p_key = endpoint.p_key;
        let group = &mut endpoint.groups[place];
        group.request = None;
        let sound =
            |record: &MCMemberRecord| record.mgid == mgid && matches!(record.mlid, 0xc000..=0xfffe);
        let answer = answer.and_then(|record| {
            if sound(&record) {
                Ok(record)
            } else {
                Err("its answer names another group".to_owned())
            }
        });
        match answer {
            Ok(record) => {
                let old = group.record().map(|record| record.mlid);
                let mlid = record.mlid;
                group.failures = 0;
                group.state = GroupState::In(Box::new(record));
                let is_first = place == 0;
                // Only the group that everybody has carries questions.
                if is_first && old != Some(mlid) {
                    if let Some(mlid) = old {
                        self.act(key.port, Action::Detach { p_key, mgid, mlid });
                    }
                    self.act(key.port, Action::Attach { p_key, mgid, mlid });
                }
                let endpoint = self.endpoint(key);
                if endpoint.groups.iter().any(|group| matches!(group.state, GroupState::Asked)) {
                    return;
                }
                if endpoint.groups.iter().all(|group| group.record().is_some()) {
                    self.rejoin_later(now, key);
                }
                let is_news = std::mem::take(&mut self.endpoint(key).is_news);
                if old == Some(mlid) && !is_news {
                    return;
                }
                let groups = Endpoint::joined(self.endpoint(key)).count();
                let endpoint = self.name(key);
                self.events.push_back(Event::Up { endpoint, groups });
                self.announce_soon(now, key);
                self.next_turns(now, key);
            }
            Err(why) => {
                group.failures += 1;
                group.state = GroupState::Out;
                let [shortest, longest] = REJOIN;
                let factor = 1 << (group.failures - 1).min(10);
                let endpoint = self.name(key);
                self.events.push_back(Event::NotJoined { endpoint, mgid, why });
                let at = now + self.about((shortest * factor).min(longest));
                self.endpoint(key).groups[place].retry = Some(at);
                self.at(at, Due::Join(key, place));
                if place > 0 {
                    self.next_turns(now, key);
                }
            }
        }
    }

    /// Has the groups of an endpoint joined again after a while.
    fn rejoin_later(&mut self, now: Instant, key: EndpointKey) {
        let Some(interval) = self.config.check_interval else { return };
        let at = now + self.about(interval);
        if let Some(old) = self.endpoint(key).rejoin.replace(at) {
            self.due.remove(&(old, Due::Rejoin(key)));
        }
        self.at(at, Due::Rejoin(key));
    }

    /// Joins the groups of an endpoint again: nobody tells those whom a manager has forgotten.
    pub(super) fn rejoin(&mut self, key: EndpointKey) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        endpoint.rejoin = None;
        let count = endpoint.groups.len();
        for group in 0..count {
            self.join(key, group);
        }
    }

    /// Has subnet administration take an endpoint out of a group. The answer makes no difference.
    fn leave_group(&mut self, key: EndpointKey, group: &Group) {
        let Some(record) = group.record() else { return };
        let Some(port) = self.ports.get(&key.port) else { return };
        let p_key = self.endpoints.get(&key).map_or(PKey::DEFAULT, |endpoint| endpoint.p_key);
        let (mgid, mlid) = (group.mgid, record.mlid);
        let wanted = MCMemberRecord {
            mgid,
            port_gid: port.state.link.gid(),
            join_state: JoinState::FULL_MEMBER,
            ..MCMemberRecord::zeroed()
        };
        self.act(key.port, Action::Detach { p_key, mgid, mlid });
        let components = [0, 1, 16];
        self.ask(key.port, Method::DELETE, &components, &wanted, Purpose::Leave);
    }

    /// Ends an endpoint.
    fn close(&mut self, now: Instant, key: EndpointKey, why: &'static str) {
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
        self.own.retain(|_, owner| *owner != key);
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

    /// Has an endpoint say soon who it is.
    pub(super) fn announce_soon(&mut self, now: Instant, key: EndpointKey) {
        let count = self.config.announcements;
        if count > 0 {
            self.endpoint(key).announcements = count;
            let delay = self.about(ANNOUNCE[0]);
            self.at(now + delay, Due::Announcement(key));
        }
    }

    /// Says who an endpoint is, by a question for its own address that nobody has to answer.
    pub(super) fn announce(&mut self, now: Instant, key: EndpointKey) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        if endpoint.announcements == 0 || endpoint.least().is_none() {
            return;
        }
        let Some(first) = endpoint.addresses.first().cloned() else { return };
        endpoint.announcements -= 1;
        let goes_on = endpoint.announcements > 0;
        if !self.ports.get(&key.port).is_some_and(|port| port.state.is_active) {
            return;
        }
        let tid = self.number();
        self.counters.announcements += 1;
        self.send_question(key, &first, &first, tid, None);
        if goes_on {
            let delay = self.about(ANNOUNCE[1]);
            self.at(now + delay, Due::Announcement(key));
        }
    }

    /// Asks for an address: a group, or one port.
    pub(super) fn send_question(
        &mut self,
        key: EndpointKey,
        address: &Address,
        source: &Address,
        tid: u64,
        to: Option<Destination>,
    ) {
        let Some(port) = self.ports.get(&key.port) else { return };
        let Some(endpoint) = self.endpoints.get(&key) else { return };
        let own = port.state.link;
        let Some(record) = endpoint.least() else { return };
        let (destination_type, destination) = address.to_field();
        let (source_type, source_field) = source.to_field();
        let mut gids = [Gid::ZERO; MOST_GROUPS];
        let mut count = 0;
        for (slot, gid) in gids.iter_mut().zip(Endpoint::joined(endpoint)) {
            *slot = gid;
            count += 1;
        }
        let message = AcmMessage {
            base_version: 1,
            class: ib_wire::mad::MgmtClass::ACM,
            class_version: 1,
            method: Method::GET,
            control: AcmMessage::RESOLVE,
            transaction_id: TransactionId(tid),
            destination_type,
            destination_length: 64,
            source_type,
            source_length: 64,
            gid_count: count,
            destination,
            source: source_field,
            gids,
            ..AcmMessage::zeroed()
        };
        let mut bytes = message.to_bytes();
        super::peers::put_more(&mut bytes, source, &endpoint.addresses);
        let to = to.unwrap_or_else(|| {
            self.counters.multicasts += 1;
            Destination { route: route_to_group(&own, record), qpn: Qpn::MULTICAST }
        });
        let p_key = endpoint.p_key;
        self.act(key.port, Action::Send { p_key, to, bytes: Box::new(bytes) });
    }

    /// Ends all that waits at an endpoint.
    fn fail_all(&mut self, now: Instant, key: EndpointKey) {
        let endpoint = self.endpoint(key);
        let waiters: Vec<Waiter> = std::mem::take(&mut endpoint.resolutions)
            .into_values()
            .flat_map(|it| it.waiters)
            .collect();
        endpoint.by_address.clear();
        endpoint.queue.clear();
        endpoint.unchecked.clear();
        endpoint.asking = 0;
        endpoint.route_queries.clear();
        for waiter in waiters {
            self.fail(now, key, &waiter, ib_wire::acm::ClientStatus::ENOTCONN);
        }
    }
}

/// Returns the way to the members of a group.
fn route_to_group(own: &ib_link::LinkPort, record: &MCMemberRecord) -> Route {
    Route {
        source: own.gid(),
        destination: record.mgid,
        slid: own.lid,
        dlid: record.mlid,
        sl: ServiceLevel::new(record.sl).unwrap_or_default(),
        is_global: true,
        traffic_class: record.traffic_class,
        flow_label: record.flow_label,
        hop_limit: record.hop_limit,
        ..Route::default()
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
