//! An address on its way to an answer: what is known, questions to groups, attempts, turns.

use std::time::Duration;

use ib_types::{Gid, Instant};
use ib_wire::acm::ClientStatus;
use ib_wire::mad::sa::{LifeTimeCode, PathRecord, Selector};

use super::endpoint::{Endpoint, EndpointKey};
use super::request::{Question, Started, Waiter, Wanted};
use super::route::{Target, Teller, has_old_route, sa_way};
use super::{Due, Service};
use crate::Address;
use crate::cache::{NO_GROUP, Peer, PeerKey, SaRoute};
use crate::port::PortState;

/// How far a resolution has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for its turn, or for the group that everybody has.
    Queued,
    /// Its owner, of which nothing was heard for long, is asked whether it still is where it was.
    Checking { gid: Gid },
    /// Others have been asked so often.
    Asking { attempts: u32 },
    /// Its route is asked for, or waits for service levels to be compared.
    Routing,
}

/// An address that is being resolved.
#[derive(Debug)]
pub(super) struct Resolution {
    pub(super) address: Address,
    pub(super) phase: Phase,
    pub(super) waiters: Vec<Waiter>,
    /// Until when, at most.
    end: Instant,
    /// When it is asked for again.
    again: Option<Instant>,
    /// Whether it is one of those that have their turn.
    has_turn: bool,
    /// Whether nobody waited for it when it got its turn.
    is_idle: bool,
    /// The route that it waits for.
    routing: Option<Target>,
}

/// What is known of the way to a peer.
pub(super) enum Way {
    /// All.
    Path(Box<PathRecord>),
    /// All, but it grows old.
    Aging(Box<PathRecord>),
    /// All, but it is so old that the owner is to be asked first.
    Stale(PeerKey),
    /// Its route is not.
    NoRoute,
    /// Who it is, but not how it is reached.
    NoGroup,
    /// Nothing that still counts.
    Nothing,
}

impl Service {
    /// Begins to answer a question, which is counted among those that wait.
    pub(super) fn start(
        &mut self,
        now: Instant,
        key: EndpointKey,
        question: Question,
        waiter: &Waiter,
    ) -> Started {
        let is_active = self.ports.get(&key.port).is_some_and(|port| port.state.is_active);
        if !is_active {
            return Started::Failed(ClientStatus::ENOTCONN);
        }
        if self.waiting > self.config.most_waiting {
            return Started::Failed(ClientStatus::ENOMEM);
        }
        let address = match question.wanted {
            Wanted::OfSa(wanted) => {
                self.query(now, key, wanted, waiter.clone());
                return Started::Waits;
            }
            Wanted::Address(address) => address,
        };
        if let Some(path) = self.path_to_own(key, &address) {
            return Started::Path(path);
        }
        match self.way(now, key, &address) {
            Way::Path(path) => {
                self.count_hit(key);
                return Started::Path(*path);
            }
            Way::Aging(path) => {
                self.count_hit(key);
                self.refresh(now, key, &address);
                return Started::Path(*path);
            }
            way => {
                if question.no_delay {
                    if let Way::Stale(peer_key) = way {
                        // Whoever asks again may have more luck.
                        self.check(now, key, peer_key, None);
                    }
                    return Started::Failed(ClientStatus::ENODATA);
                }
            }
        }
        self.begin_resolution(now, key, &address, Some(waiter.clone()));
        Started::Waits
    }

    fn count_hit(&mut self, key: EndpointKey) {
        let counters = &mut self.endpoint(key).counters;
        counters.address_cached += 1;
        counters.route_cached += 1;
    }

    /// Returns the path to an own address, where such are resolved without question.
    fn path_to_own(&self, key: EndpointKey, address: &Address) -> Option<PathRecord> {
        let own = &self.ports.get(&key.port)?.state;
        let is_own = match address {
            Address::Gid(gid) => *gid == own.link.gid(),
            Address::Lid(lid) => lid >> own.link.lmc == own.link.lid >> own.link.lmc,
            address => self.is_own(key, address),
        };
        (is_own && self.config.loopback).then(|| PathRecord {
            dgid: own.link.gid(),
            sgid: own.link.gid(),
            dlid: own.link.lid,
            slid: own.link.lid,
            reversible: true,
            numb_path: 1,
            p_key: self.endpoints[&key].p_key,
            mtu_selector: Selector::EXACTLY,
            mtu: own.mtu,
            rate_selector: Selector::EXACTLY,
            rate: own.rate,
            life_time_selector: Selector::EXACTLY,
            life_time: LifeTimeCode(0),
            ..PathRecord::zeroed()
        })
    }

    /// Returns what is known of the way to an address, which is asked for.
    pub(super) fn way(&mut self, now: Instant, key: EndpointKey, address: &Address) -> Way {
        match (self.way_of_owner(now, key, address), address) {
            (Way::Path(path) | Way::Aging(path), Address::Lid(lid)) if path.dlid != *lid => {
                self.way_to_lid(now, key, *lid, &path)
            }
            (way, _) => way,
        }
    }

    /// Returns what is known of the way to whoever has an address, as far as is known.
    fn way_of_owner(&mut self, now: Instant, key: EndpointKey, address: &Address) -> Way {
        let Some(port) = self.ports.get(&key.port) else { return Way::Nothing };
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return Way::Nothing };
        let peer_key = match address {
            Address::Gid(gid) => endpoint.cache.use_gid(*gid, now),
            address => endpoint.cache.use_address(address, now),
        };
        let Some(peer_key) = peer_key else { return Way::Nothing };
        let config = &self.config;
        let seen = endpoint.cache.seen(address).map(|seen| seen.age(now));
        if seen.zip(config.address_limit()).is_some_and(|(age, limit)| age >= limit) {
            endpoint.cache.unbind(address);
            return Way::Nothing;
        }
        let is_aging_address = seen.zip(config.address_age()).is_some_and(|(age, it)| age >= it);
        let Some(peer) = endpoint.cache.peer(peer_key) else { return Way::Nothing };
        let age = peer.confirmed.age(now);
        let aging = is_aging_address || config.check_age().is_some_and(|limit| age >= limit);
        if peer.qpn != 0 && config.check_interval.is_some_and(|interval| age >= 2 * interval) {
            return Way::Stale(peer_key);
        }
        match endpoint.teller(peer) {
            Teller::Awaited => Way::NoRoute,
            Teller::Group => match path_by_group(endpoint, peer, &port.state) {
                None => Way::NoGroup,
                Some(path) if aging => Way::Aging(Box::new(path)),
                Some(path) => Way::Path(Box::new(path)),
            },
            Teller::Sa => match sa_way(config, now, peer, &port.state) {
                Way::Path(path) if aging && peer.qpn != 0 => Way::Aging(path),
                way => way,
            },
        }
    }

    /// Has what is known of an address confirmed, while it is still good.
    fn refresh(&mut self, now: Instant, key: EndpointKey, address: &Address) {
        let Some(endpoint) = self.endpoints.get(&key) else { return };
        let found = match address {
            Address::Gid(gid) => endpoint.cache.by_gid(*gid),
            address => endpoint.cache.lookup(address),
        };
        let Some(peer_key) = found else { return };
        let Some(peer) = endpoint.cache.peer(peer_key) else { return };
        let (gid, has_queue_pair) = (peer.gid, peer.qpn != 0);
        let is_by_sa = endpoint.teller(peer) == Teller::Sa;
        let has_old_route = is_by_sa && has_old_route(&self.config, now, peer);
        if has_queue_pair {
            self.check_known(now, key, peer_key);
        }
        if has_old_route {
            self.ask_route(key, Target::Gid(gid), None);
        }
        if let Address::Lid(lid) = address
            && self.endpoint(key).lid_routes.contains_key(lid)
        {
            self.ask_route(key, Target::Lid(*lid), None);
        }
    }

    /// Begins to resolve an address, or joins who is at it.
    pub(super) fn begin_resolution(
        &mut self,
        now: Instant,
        key: EndpointKey,
        address: &Address,
        waiter: Option<Waiter>,
    ) {
        let endpoint = self.endpoint(key);
        if let Some(tid) = endpoint.by_address.get(address) {
            let tid = *tid;
            let resolution = endpoint.resolutions.get_mut(&tid).expect("both are kept alike");
            let is_wanted_now = waiter.is_some() && resolution.waiters.is_empty();
            resolution.waiters.extend(waiter);
            if is_wanted_now {
                self.begin_again(now, key, tid);
            }
            return;
        }
        let tid = self.number();
        let end = now + self.config.limit();
        let is_idle = waiter.is_none();
        let resolution = Resolution {
            address: address.clone(),
            phase: Phase::Queued,
            waiters: waiter.into_iter().collect(),
            end,
            again: None,
            has_turn: false,
            is_idle: false,
            routing: None,
        };
        let endpoint = self.endpoint(key);
        endpoint.by_address.insert(address.clone(), tid);
        endpoint.resolutions.insert(tid, resolution);
        match is_idle {
            true => endpoint.idle_queue.push_back(tid),
            false => endpoint.queue.push_back(tid),
        }
        self.at(end, Due::Resolution(key, tid));
        self.next_turns(now, key);
    }

    /// Begins anew with an address that nobody has waited for: a program does now, and has all of its time.
    fn begin_again(&mut self, now: Instant, key: EndpointKey, tid: u64) {
        let end = now + self.config.limit();
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let Some(resolution) = endpoint.resolutions.get_mut(&tid) else { return };
        let before = std::mem::replace(&mut resolution.end, end);
        self.due.remove(&(before, Due::Resolution(key, tid)));
        self.due.insert((end, Due::Resolution(key, tid)));
        if !resolution.has_turn {
            endpoint.queue.push_back(tid);
            self.next_turns(now, key);
        } else if let Phase::Asking { attempts } = &mut resolution.phase {
            *attempts = 0;
            self.ask_group(now, key, tid);
        }
    }

    /// Gives those their turn that wait for it. Those that nobody waits for have turns of their own, half as many as those
    /// of programs.
    pub(super) fn next_turns(&mut self, now: Instant, key: EndpointKey) {
        let depth = self.config.resolve_depth.max(1);
        // Those that end at once have others get their turn: here, not one within the other.
        match self.endpoints.get_mut(&key) {
            Some(endpoint) if !endpoint.is_turning => endpoint.is_turning = true,
            _ => return,
        }
        while let Some(endpoint) = self.endpoints.get_mut(&key) {
            let of_program = match endpoint.asking - endpoint.idling {
                asking if asking < depth => endpoint.queue.pop_front(),
                _ => None,
            };
            let next = of_program.or_else(|| match endpoint.idling {
                idling if idling < depth.div_ceil(2) => endpoint.idle_queue.pop_front(),
                _ => None,
            });
            let Some(tid) = next else {
                endpoint.is_turning = false;
                return;
            };
            // Those that have ended while they waited are still in the queue, and one that a program has come to wait for
            // is in both.
            let has_none = |it: &&mut Resolution| !it.has_turn;
            if let Some(resolution) = endpoint.resolutions.get_mut(&tid).filter(has_none) {
                let is_idle = resolution.waiters.is_empty();
                if of_program.is_none() && !is_idle {
                    // It has its turn among those of programs.
                    continue;
                }
                (resolution.has_turn, resolution.is_idle) = (true, is_idle);
                endpoint.asking += 1;
                endpoint.idling += usize::from(is_idle);
                self.go_on(now, key, tid);
            }
        }
    }

    /// Does what is next for an address.
    fn go_on(&mut self, now: Instant, key: EndpointKey, tid: u64) {
        let Some(resolution) = self.endpoint(key).resolutions.get(&tid) else { return };
        let address = resolution.address.clone();
        match self.way(now, key, &address) {
            Way::Path(path) | Way::Aging(path) => {
                self.endpoint(key).counters.address_cached += 1;
                self.finish(now, key, tid, Ok(*path));
            }
            Way::Stale(peer_key) => {
                let endpoint = self.endpoint(key);
                let gid = endpoint.cache.peer(peer_key).expect("just seen").gid;
                if let Some(resolution) = endpoint.resolutions.get_mut(&tid) {
                    resolution.phase = Phase::Checking { gid };
                }
                self.check(now, key, peer_key, None);
                if !self.endpoint(key).checked.contains(&gid) {
                    // There are too many checks, or nobody could answer.
                    self.not_checked(now, key, gid);
                }
            }
            Way::NoRoute => self.route(now, key, tid, &address),
            Way::NoGroup | Way::Nothing => match address {
                // Subnet administration knows those.
                Address::Gid(_) | Address::Lid(_) => self.route(now, key, tid, &address),
                _ => self.ask_group(now, key, tid),
            },
        }
    }

    /// Asks all others for an address.
    fn ask_group(&mut self, now: Instant, key: EndpointKey, tid: u64) {
        let has_datagrams = self.ports.get(&key.port).is_some_and(|it| it.state.has_datagrams);
        let endpoint = self.endpoint(key);
        let is_in = endpoint.least().is_some();
        let source = endpoint.addresses.first().cloned();
        let Some(resolution) = endpoint.resolutions.get_mut(&tid) else { return };
        let address = resolution.address.clone();
        let attempts = match resolution.phase {
            Phase::Asking { attempts } => attempts,
            Phase::Queued | Phase::Routing | Phase::Checking { .. } => 0,
        };
        let Some(source) = source.filter(|_| has_datagrams) else {
            // Nobody can be asked, or could answer.
            return self.finish(now, key, tid, Err(ClientStatus::ENODATA));
        };
        // An endpoint that is not in the group yet waits as long as one whose question was lost.
        resolution.phase = Phase::Asking { attempts: attempts + 1 };
        if is_in {
            self.endpoint(key).counters.address_queries += 1;
            self.send_question(key, &address, &source, tid, None);
        }
        let patience = self.config.patience(attempts);
        let at = now + self.about(patience);
        if let Some(resolution) = self.endpoint(key).resolutions.get_mut(&tid) {
            let (before, end) = (resolution.again.replace(at), resolution.end);
            if let Some(before) = before.filter(|&before| before != end) {
                self.due.remove(&(before, Due::Resolution(key, tid)));
            }
        }
        self.at(at, Due::Resolution(key, tid));
    }

    /// A question may not have been answered in time.
    pub(super) fn resolution_due(&mut self, now: Instant, key: EndpointKey, tid: u64) {
        let retries = self.config.retries;
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let Some(resolution) = endpoint.resolutions.get(&tid) else { return };
        let is_over = resolution.end <= now;
        match resolution.phase {
            Phase::Asking { attempts } if !is_over && attempts <= retries => {
                self.ask_group(now, key, tid);
            }
            Phase::Queued | Phase::Routing | Phase::Checking { .. } if !is_over => {}
            _ => self.finish(now, key, tid, Err(ClientStatus::ETIMEDOUT)),
        }
    }

    /// Goes on with addresses whose owner has been checked.
    pub(super) fn checked(&mut self, now: Instant, key: EndpointKey, gid: Gid) {
        for tid in self.waiting_for_check(key, gid) {
            self.go_on(now, key, tid);
        }
    }

    /// Goes on with addresses whose owner cannot be checked: others are asked for them.
    pub(super) fn not_checked(&mut self, now: Instant, key: EndpointKey, gid: Gid) {
        for tid in self.waiting_for_check(key, gid) {
            let Some(resolution) = self.endpoint(key).resolutions.get(&tid) else { continue };
            match resolution.address.clone() {
                address @ (Address::Gid(_) | Address::Lid(_)) => {
                    self.route(now, key, tid, &address);
                }
                _ => self.ask_group(now, key, tid),
            }
        }
    }

    fn waiting_for_check(&self, key: EndpointKey, gid: Gid) -> Vec<u64> {
        let Some(endpoint) = self.endpoints.get(&key) else { return Vec::new() };
        let of_it = |it: &Resolution| it.phase == Phase::Checking { gid };
        let waiting = endpoint.resolutions.iter().filter(|(_, it)| of_it(it));
        waiting.map(|(&tid, _)| tid).collect()
    }

    /// Goes on with an address whose owner is known now.
    pub(super) fn address_found(&mut self, now: Instant, key: EndpointKey, address: &Address) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let Some(&tid) = endpoint.by_address.get(address) else { return };
        let Some(resolution) = endpoint.resolutions.get(&tid) else { return };
        if matches!(resolution.phase, Phase::Asking { .. }) {
            self.go_on(now, key, tid);
        }
    }

    /// Gets the route to an address.
    fn route(&mut self, now: Instant, key: EndpointKey, tid: u64, address: &Address) {
        let endpoint = self.endpoint(key);
        let Some(resolution) = endpoint.resolutions.get_mut(&tid) else { return };
        resolution.phase = Phase::Routing;
        let peer = endpoint.cache.lookup(address).and_then(|peer| endpoint.cache.peer(peer));
        if peer.is_some_and(|peer| endpoint.teller(peer) == Teller::Awaited) {
            endpoint.unchecked.push(tid);
            return;
        }
        let target = match address {
            Address::Lid(lid) => Some(Target::Lid(*lid)),
            Address::Gid(gid) => Some(Target::Gid(*gid)),
            _ => peer.map(|peer| Target::Gid(peer.gid)),
        };
        let Some(target) = target else {
            return self.finish(now, key, tid, Err(ClientStatus::ETIMEDOUT));
        };
        let resolution = endpoint.resolutions.get_mut(&tid);
        let before = resolution.and_then(|it| it.routing.replace(target));
        if let Some(before) = before.filter(|&before| before != target) {
            self.leave_route(key, before, tid);
        }
        self.ask_route(key, target, Some(tid));
    }

    /// Goes on with those that waited for service levels to be compared.
    pub(super) fn routes_checked(&mut self, now: Instant, key: EndpointKey) {
        let waiting = std::mem::take(&mut self.endpoint(key).unchecked);
        for tid in waiting {
            self.go_on(now, key, tid);
        }
    }

    /// Ends a resolution.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        key: EndpointKey,
        tid: u64,
        result: Result<PathRecord, ClientStatus>,
    ) {
        let endpoint = self.endpoint(key);
        let Some(resolution) = endpoint.resolutions.remove(&tid) else { return };
        endpoint.by_address.remove(&resolution.address);
        if resolution.has_turn {
            endpoint.asking = endpoint.asking.saturating_sub(1);
            let idling = usize::from(resolution.is_idle);
            endpoint.idling = endpoint.idling.saturating_sub(idling);
        }
        for queue in [&mut endpoint.queue, &mut endpoint.idle_queue] {
            if queue.len() > 64 + 2 * endpoint.resolutions.len() {
                queue.retain(|queued| endpoint.resolutions.contains_key(queued));
            }
        }
        self.due.remove(&(resolution.end, Due::Resolution(key, tid)));
        if let Some(target) = resolution.routing {
            self.leave_route(key, target, tid);
        }
        for waiter in &resolution.waiters {
            match &result {
                Ok(path) => self.succeed(waiter, path),
                Err(status) => self.fail(now, key, waiter, *status),
            }
        }
        self.next_turns(now, key);
    }
}

/// Returns the path to a peer by what is known of the group that both have.
fn path_by_group(endpoint: &Endpoint, peer: &Peer, own: &PortState) -> Option<PathRecord> {
    if peer.group == NO_GROUP || peer.gid == Gid::ZERO {
        return None;
    }
    let record = endpoint.groups.get(usize::from(peer.group))?.record()?;
    Some(PathRecord {
        dgid: peer.gid,
        sgid: own.link.gid(),
        dlid: peer.lid,
        slid: own.link.lid,
        flow_label: record.flow_label,
        hop_limit: record.hop_limit,
        traffic_class: record.traffic_class,
        reversible: true,
        numb_path: 1,
        p_key: endpoint.p_key,
        sl: record.sl,
        mtu_selector: Selector::EXACTLY,
        mtu: record.mtu,
        rate_selector: Selector::EXACTLY,
        rate: record.rate,
        life_time_selector: Selector::EXACTLY,
        life_time: record.life_time,
        ..PathRecord::zeroed()
    })
}

impl Service {
    /// Looks through some of the caches: what is in use and grows old is confirmed before it is asked for again, what
    /// is too old goes.
    pub(super) fn sweep(&mut self, now: Instant) {
        let Some(span) = self.config.sweep_span() else { return };
        // All of it in an eighth of that, a little at a time.
        let step = (span / 64).clamp(Duration::from_millis(100), Duration::from_secs(5));
        self.at(now + step, Due::Sweep);
        let share = (step.as_secs_f64() / (span.as_secs_f64() / 8.0)).min(1.0);
        let keys: Vec<EndpointKey> = self.endpoints.keys().copied().collect();
        for key in keys {
            let config = &self.config;
            let (check, limit) = (config.check_age(), config.address_limit());
            let address_age = config.address_age();
            let endpoint = &self.endpoints[&key];
            let (cache, mut hand) = (&endpoint.cache, endpoint.hand);
            let count = (cache.places() as f64 * share).ceil() as u32;
            let (mut old, mut dead): (Vec<PeerKey>, Vec<PeerKey>) = (Vec::new(), Vec::new());
            let mut with_old_route: Vec<Gid> = Vec::new();
            cache.sweep(&mut hand, count, |peer_key, peer| {
                let age = peer.confirmed.age(now);
                let is_used = peer.used > peer.confirmed;
                // A file says where it is as long as it is there.
                let is_of_file = peer.route.is_some_and(SaRoute::is_of_file) && peer.qpn == 0;
                if limit.is_some_and(|limit| age >= limit) && !is_of_file {
                    dead.push(peer_key);
                    return;
                }
                let is_old = is_used && check.is_some_and(|it| age >= it);
                let has_old_address = || {
                    address_age.is_some_and(|it| {
                        cache.aging_address(peer_key, now, it, |_| true).is_some()
                    })
                };
                if peer.qpn != 0 && (is_old || has_old_address()) {
                    old.push(peer_key);
                }
                let is_used = peer.route.is_some_and(|route| peer.used > route.learned);
                if is_used
                    && endpoint.teller(peer) == Teller::Sa
                    && has_old_route(config, now, peer)
                {
                    with_old_route.push(peer.gid);
                }
            });
            self.endpoint(key).hand = hand;
            for peer_key in dead {
                self.forget(key, peer_key);
            }
            for peer_key in old {
                self.check_known(now, key, peer_key);
            }
            for gid in with_old_route {
                self.ask_route(key, Target::Gid(gid), None);
            }
            self.refresh_lid_routes(now, key);
        }
    }

    /// Forgets a peer.
    pub(super) fn forget(&mut self, key: EndpointKey, peer_key: PeerKey) {
        let endpoint = self.endpoint(key);
        if let Some(peer) = endpoint.cache.peer(peer_key)
            && endpoint.by_lid.get(&peer.lid) == Some(&peer.gid)
        {
            endpoint.by_lid.remove(&peer.lid);
        }
        endpoint.cache.remove(peer_key);
    }
}
