//! Routes that subnet administration tells: asked for, kept, asked for again before they are too old.

use std::time::Duration;

use ib_types::{Gid, Instant};
use ib_wire::mad::sa::PathRecord;
use ib_wire::mad::{Method, TransactionId};

use super::administration::{Denial, Purpose};
use super::config::RouteProtocol;
use super::endpoint::{Endpoint, EndpointKey};
use super::levels::Standing;
use super::resolve::Way;
use super::{Due, Service, ServiceConfig, backed_off};
use crate::Address;
use crate::cache::{Bound, Peer, SaRoute, Stamp};
use crate::port::PortState;

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// To a port.
    Gid(Gid),
    /// To one of the LIDs of a port.
    Lid(u16),
}

/// A route that is asked for, or will be again because subnet administration was busy.
#[derive(Debug, Default)]
pub(super) struct RouteQuery {
    /// Who waits for it.
    resolutions: Vec<u64>,
    /// The request, while there is one.
    request: Option<TransactionId>,
    /// Whether it only keeps what is known fresh.
    is_refresh: bool,
    /// Whether somebody says that it is wrong.
    is_doubted: bool,
    /// How often there was no answer that counts.
    failures: u32,
    /// When it is asked for again.
    retry: Option<Instant>,
}

/// The route to a LID of a port that has several, beside the one that leads to the port.
#[derive(Clone, Copy, Debug)]
pub(super) struct LidRoute {
    gid: Gid,
    route: SaRoute,
    used: Stamp,
}

/// Who tells the route to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Teller {
    /// The group that both sides have joined.
    Group,
    /// Subnet administration.
    Sa,
    /// That is not known before service levels have been compared.
    Awaited,
}

/// The components of a path between two ports.
pub(super) const DGID: u8 = 2;
pub(super) const SGID: u8 = 3;
pub(super) const DLID: u8 = 4;
pub(super) const REVERSIBLE: u8 = 11;
pub(super) const NUMB_PATH: u8 = 12;
pub(super) const P_KEY: u8 = 13;

/// The most routes of an endpoint that are asked for without anybody who waits.
const MOST_REFRESHES: usize = 1024;

/// How old a route is at least that is asked for because somebody says that it is wrong.
const DOUBT: Duration = Duration::from_secs(10);

/// The shortest and the longest time until a route is asked for again that was not told.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

impl Endpoint {
    /// Returns who tells the route to a peer.
    pub(super) fn teller(&self, peer: &Peer) -> Teller {
        if self.routes == RouteProtocol::Sa || peer.lid == 0 {
            return Teller::Sa;
        }
        match self.levels.standing() {
            Standing::Trusted => Teller::Group,
            Standing::Awaited => Teller::Awaited,
            Standing::Unknown => Teller::Sa,
            Standing::Known => {
                let level = self.levels.of(peer.gid);
                let best = self.groups.get(usize::from(peer.group)).and_then(|it| it.record());
                let is_its = match best {
                    Some(record) => level == Some(record.sl),
                    // Others are asked which group they have, where that may help.
                    None => self
                        .groups
                        .iter()
                        .any(|it| it.record().is_some_and(|it| level == Some(it.sl))),
                };
                if is_its { Teller::Group } else { Teller::Sa }
            }
        }
    }

    /// Returns the LID to which the way to a peer leads; 0 where it is not known.
    fn lid_of(&self, gid: Gid) -> u16 {
        let peer = self.cache.by_gid(gid).and_then(|peer| self.cache.peer(peer));
        peer.map_or(0, |peer| peer.route.map_or(peer.lid, SaRoute::dlid))
    }

    /// Returns the route of subnet administration to a target, and when it was used last.
    fn route_to(&self, target: Target) -> Option<(SaRoute, Stamp)> {
        match target {
            Target::Gid(gid) => {
                let peer = self.cache.peer(self.cache.by_gid(gid)?)?;
                Some((peer.route?, peer.used))
            }
            Target::Lid(lid) => self.lid_routes.get(&lid).map(|it| (it.route, it.used)),
        }
    }
}

impl Service {
    /// Asks for a route, unless somebody does, for a resolution or to keep it fresh.
    pub(super) fn ask_route(&mut self, key: EndpointKey, target: Target, resolution: Option<u64>) {
        let endpoint = self.endpoint(key);
        let is_refresh = resolution.is_none();
        if let Some(query) = endpoint.route_queries.get_mut(&target) {
            query.resolutions.extend(resolution);
            if is_refresh || !query.is_refresh {
                return;
            }
            // What somebody waits for now is asked before what nobody does, and with more patience.
            query.is_refresh = false;
            if let Some(request) = query.request.take() {
                self.cancel(key.port, request);
            }
        } else {
            if is_refresh && endpoint.route_queries.len() >= MOST_REFRESHES {
                return;
            }
            let resolutions = resolution.into_iter().collect();
            let query = RouteQuery { resolutions, is_refresh, ..RouteQuery::default() };
            endpoint.route_queries.insert(target, query);
        }
        self.send_route_query(key, target);
    }

    fn send_route_query(&mut self, key: EndpointKey, target: Target) {
        let Some(port) = self.ports.get(&key.port) else { return };
        let sgid = port.state.link.gid();
        let endpoint = self.endpoint(key);
        let p_key = endpoint.p_key;
        let Some(query) = endpoint.route_queries.get_mut(&target) else { return };
        query.retry = None;
        let is_refresh = query.is_refresh;
        endpoint.counters.route_queries += 1;
        self.counters.sa_queries += 1;
        let wanted =
            PathRecord { sgid, reversible: true, numb_path: 1, p_key, ..PathRecord::zeroed() };
        let (to, wanted) = match target {
            Target::Gid(dgid) => (DGID, PathRecord { dgid, ..wanted }),
            Target::Lid(dlid) => (DLID, PathRecord { dlid, ..wanted }),
        };
        let components = [to, SGID, REVERSIBLE, NUMB_PATH, P_KEY];
        let purpose = Purpose::Route { key, target, is_refresh };
        let request = self.ask(key.port, Method::GET, &components, &wanted, purpose);
        if let Some(query) = self.endpoint(key).route_queries.get_mut(&target) {
            query.request = request;
        }
    }

    /// Takes a route, or why there is none.
    pub(super) fn routed(
        &mut self,
        now: Instant,
        key: EndpointKey,
        target: Target,
        answer: Result<PathRecord, Denial>,
    ) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let query = endpoint.route_queries.remove(&target).unwrap_or_default();
        let answer = answer.and_then(|path| match target {
            Target::Gid(gid) if path.dgid != gid => Err(Denial::foreign()),
            Target::Lid(lid) if path.dlid != lid => Err(Denial::foreign()),
            _ => Ok(path),
        });
        match &answer {
            Ok(path) => self.note_route(now, key, target, path),
            Err(denial) if denial.is_final => self.forget_route(key, target),
            // What is known is as good as before.
            Err(_) => self.route_later(now, key, target, query.failures + 1),
        }
        for tid in query.resolutions {
            self.finish(now, key, tid, answer.clone().map_err(|denial| denial.status));
        }
    }

    /// Notes a route.
    fn note_route(&mut self, now: Instant, key: EndpointKey, target: Target, path: &PathRecord) {
        let lmc = self.ports.get(&key.port).map_or(0, |port| port.state.link.lmc);
        let endpoint = self.endpoint(key);
        let gid = path.dgid;
        let usual = endpoint.lid_of(gid);
        let cache = &mut endpoint.cache;
        let peer_key = cache.peer_of(gid, now);
        let by_lid = Address::Lid(path.dlid);
        match target {
            // A GID is an address as well: that is what keeps a port without a name.
            Target::Gid(_) => {
                cache.bind(&Address::Gid(gid), peer_key, now, false);
                if cache.lookup(&by_lid) == Some(peer_key) {
                    cache.bind(&by_lid, peer_key, now, false);
                }
            }
            Target::Lid(_) => {
                if let Bound::Other(_) = cache.bind(&by_lid, peer_key, now, false) {
                    // Subnet administration knows best whose it is.
                    cache.unbind(&by_lid);
                    cache.bind(&by_lid, peer_key, now, false);
                }
            }
        }
        let is_further = matches!(target, Target::Lid(lid) if usual != 0 && lid != usual
            && (lid ^ usual) >> lmc == 0);
        if is_further {
            let used = endpoint.lid_routes.get(&path.dlid).map_or(Stamp::of(now), |it| it.used);
            let route = LidRoute { gid, route: SaRoute::of(path, now), used };
            endpoint.lid_routes.insert(path.dlid, route);
        }
        if let Some(peer) = cache.peer_mut(peer_key) {
            match is_further {
                true => peer.told(now),
                false => peer.set_route(path, now),
            }
        }
        cache.remove_if_nameless(peer_key);
        if !is_further {
            self.learn_level(now, key, gid, path.sl);
        }
    }

    /// Forgets a route that subnet administration refuses.
    fn forget_route(&mut self, key: EndpointKey, target: Target) {
        let endpoint = self.endpoint(key);
        match target {
            Target::Gid(gid) => {
                if let Some(peer) = endpoint.cache.by_gid(gid)
                    && let Some(peer) = endpoint.cache.peer_mut(peer)
                {
                    peer.route = None;
                }
            }
            Target::Lid(lid) => drop(endpoint.lid_routes.remove(&lid)),
        }
    }

    /// Has a route that is known asked for again after a while, longer each time; one that is not known is left to
    /// whoever asks for it.
    fn route_later(&mut self, now: Instant, key: EndpointKey, target: Target, failures: u32) {
        if self.endpoint(key).route_to(target).is_none() {
            return;
        }
        let at = now + self.about(backed_off(AGAIN, failures - 1));
        let retry = Some(at);
        let query = RouteQuery { is_refresh: true, failures, retry, ..RouteQuery::default() };
        self.endpoint(key).route_queries.insert(target, query);
        self.at(at, Due::Route(key, target));
    }

    /// Has a route that somebody says is wrong asked for again, once it is not quite new.
    pub(super) fn doubt_route(&mut self, now: Instant, key: EndpointKey, gid: Gid, learned: Stamp) {
        let target = Target::Gid(gid);
        let age = learned.age(now);
        if age >= DOUBT {
            return self.ask_route(key, target, None);
        }
        let queries = &mut self.endpoint(key).route_queries;
        if queries.contains_key(&target) || queries.len() >= MOST_REFRESHES {
            return;
        }
        let at = now + (DOUBT - age);
        let retry = Some(at);
        let query =
            RouteQuery { is_refresh: true, is_doubted: true, retry, ..RouteQuery::default() };
        queries.insert(target, query);
        self.at(at, Due::Route(key, target));
    }

    /// Asks for a route again, if it is in use and somebody may still ask for it before it is too old.
    pub(super) fn route_due(&mut self, now: Instant, key: EndpointKey, target: Target) {
        let config = &self.config;
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let Some(query) = endpoint.route_queries.get(&target) else { return };
        if query.retry.is_none_or(|at| at > now) {
            return;
        }
        let is_doubted = query.is_doubted;
        let limit = match target {
            Target::Gid(gid) => {
                let peer = endpoint.cache.by_gid(gid).and_then(|peer| endpoint.cache.peer(peer));
                peer.map_or(Some(Duration::ZERO), |peer| limit_of(config, peer))
            }
            Target::Lid(_) => config.route_limit(false),
        };
        let counts = endpoint.route_to(target).is_some_and(|(route, used)| {
            (is_doubted || used > route.learned)
                && limit.is_none_or(|limit| route.learned.age(now) < limit)
        });
        if counts {
            self.send_route_query(key, target);
        } else {
            endpoint.route_queries.remove(&target);
        }
    }

    /// Takes note that a resolution has ended that waited for a route. What nobody waits for any more keeps nobody else
    /// from being asked.
    pub(super) fn leave_route(&mut self, key: EndpointKey, target: Target, tid: u64) {
        let queries = &mut self.endpoint(key).route_queries;
        let Some(query) = queries.get_mut(&target) else { return };
        query.resolutions.retain(|&it| it != tid);
        if query.resolutions.is_empty() && !query.is_refresh {
            let request = query.request;
            queries.remove(&target);
            if let Some(request) = request {
                self.cancel(key.port, request);
            }
        }
    }

    /// Asks again for the routes that somebody waits for: another manager is to answer, or they begin elsewhere.
    pub(super) fn routes_again(&mut self, key: EndpointKey) {
        let queries = std::mem::take(&mut self.endpoint(key).route_queries);
        for (target, query) in queries {
            if let Some(request) = query.request {
                self.cancel(key.port, request);
            }
            if !query.resolutions.is_empty() {
                let resolutions = query.resolutions;
                let query = RouteQuery { resolutions, ..RouteQuery::default() };
                self.endpoint(key).route_queries.insert(target, query);
                self.send_route_query(key, target);
            }
        }
    }

    /// Gives up all routes that are asked for. Those who wait are told by the caller.
    pub(super) fn give_up_routes(&mut self, key: EndpointKey) {
        for query in std::mem::take(&mut self.endpoint(key).route_queries).into_values() {
            if let Some(request) = query.request {
                self.cancel(key.port, request);
            }
        }
    }

    /// Returns the way to a LID of a port whose usual path leads to another one.
    pub(super) fn way_to_lid(
        &mut self,
        now: Instant,
        key: EndpointKey,
        lid: u16,
        usual: &PathRecord,
    ) -> Way {
        let Some(port) = self.ports.get(&key.port) else { return Way::Nothing };
        let own = port.state.link;
        let limit = self.config.route_limit(false);
        let endpoint = self.endpoint(key);
        if (usual.dlid ^ lid) >> own.lmc != 0 {
            // Whoever had this LID has another one now.
            endpoint.cache.unbind(&Address::Lid(lid));
            endpoint.lid_routes.remove(&lid);
            return Way::Nothing;
        }
        let Some(known) = endpoint.lid_routes.get_mut(&lid).filter(|it| it.gid == usual.dgid)
        else {
            return Way::NoRoute;
        };
        known.used = Stamp::of(now);
        let age = known.route.learned.age(now);
        let path = Box::new(known.route.path(own.gid(), known.gid));
        match limit {
            Some(limit) if age >= limit => Way::NoRoute,
            Some(limit) if age >= ServiceConfig::soon(limit) => Way::Aging(path),
            _ => Way::Path(path),
        }
    }

    /// Has the routes to further LIDs asked for again that are in use and grow old; those that are too old go.
    pub(super) fn refresh_lid_routes(&mut self, now: Instant, key: EndpointKey) {
        let Some(limit) = self.config.route_limit(false) else { return };
        let routes = &mut self.endpoint(key).lid_routes;
        routes.retain(|_, it| it.route.learned.age(now) < limit);
        let is_old = |it: &LidRoute| {
            it.used > it.route.learned && it.route.learned.age(now) >= ServiceConfig::soon(limit)
        };
        let old = routes.iter().filter(|(_, it)| is_old(it)).map(|(&lid, _)| lid);
        for lid in old.collect::<Vec<u16>>() {
            self.ask_route(key, Target::Lid(lid), None);
        }
    }
}

/// Returns the way by a route of subnet administration.
pub(super) fn sa_way(config: &ServiceConfig, now: Instant, peer: &Peer, own: &PortState) -> Way {
    let Some(route) = peer.route else { return Way::NoRoute };
    let age = route.learned.age(now);
    let path = Box::new(route.path(own.link.gid(), peer.gid));
    match limit_of(config, peer) {
        Some(limit) if age >= limit => Way::NoRoute,
        _ if has_old_route(config, now, peer) => Way::Aging(path),
        _ => Way::Path(path),
    }
}

/// Returns how long the route to a peer counts; `None` for as long as the address.
fn limit_of(config: &ServiceConfig, peer: &Peer) -> Option<Duration> {
    match peer.route {
        // The file says it as long as it is there.
        Some(route) if route.is_of_file() => config.route_timeout,
        _ => config.route_limit(peer.qpn != 0),
    }
}

/// Returns whether the route to a peer is to be asked for again before it counts no more.
pub(super) fn has_old_route(config: &ServiceConfig, now: Instant, peer: &Peer) -> bool {
    let limit = match peer.route {
        Some(route) if route.is_of_file() => config.file_route_age(),
        _ => config.route_limit(peer.qpn != 0),
    };
    let limit = limit.filter(|limit| !limit.is_zero());
    let route = peer.route.zip(limit.map(ServiceConfig::soon));
    route.is_some_and(|(route, limit)| route.learned.age(now) >= limit)
}
