//! Cached peers of an endpoint and the SA routes to them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use ib_types::{Gid, Instant};
use ib_wire::mad::sa::PathRecord;

use super::config::ServiceConfig;
use super::key::PathTarget;
use crate::Address;
use crate::cache::{AddressCache, BindResult, Peer, PeerKey, SaRoute, Timestamp};

/// SA route to a LID of a port with several LIDs (LMC > 0), if the port's main route [`Peer::route`] leads to another
/// LID.
#[derive(Clone, Copy, Debug)]
pub(super) struct LidRoute {
    pub(super) gid: Gid,
    pub(super) route: SaRoute,
    pub(super) used: Timestamp,
}

/// [`PeerTable::by_lid`] is cleaned up when it has twice as many entries as there are cached peers, plus this number.
const MAX_EXCESS_LIDS: usize = 64;

/// Cached peers of an endpoint: their addresses, LIDs and routes.
#[derive(Debug)]
pub(super) struct PeerTable {
    pub(super) cache: AddressCache,
    /// For each LID: GID of the peer that was last known to have the LID.
    by_lid: HashMap<u16, Gid>,
    /// SA routes by destination LID, other than the main routes ([`Peer::route`]).
    pub(super) lid_routes: BTreeMap<u16, LidRoute>,
    /// Index of the peer slot in `cache` at which the last sweep ended. The next sweep starts after it.
    sweep_position: u32,
}

impl PeerTable {
    /// Returns an empty table for at most this number of addresses.
    pub(super) fn new(max_addresses: usize) -> Self {
        Self {
            cache: AddressCache::new(max_addresses),
            by_lid: HashMap::new(),
            lid_routes: BTreeMap::new(),
            sweep_position: 0,
        }
    }

    /// Removes all routes that the SA returned and, if `keep_preloaded` is false, also the preloaded ones.
    pub(super) fn remove_routes(&mut self, keep_preloaded: bool) {
        self.lid_routes.clear();
        self.cache.for_each(|peer| peer.route = peer.route.filter(|route| route.is_preloaded()));
        if !keep_preloaded {
            self.cache.remove_preloaded_routes();
        }
    }

    /// Adds the preloaded hosts of a configuration.
    pub(super) fn preload_hosts(&mut self, hosts: &[(Address, Gid)], now: Instant) {
        let cache = &mut self.cache;
        for (address, gid) in hosts {
            let peer = cache.peer_of(*gid, now);
            // A preloaded address overrides an address that was learned from a message.
            let owner = cache.lookup(address).filter(|&owner| owner != peer);
            if owner.is_some() && cache.seen(address).is_some() {
                cache.unbind(address);
            }
            cache.bind(address, peer, now, true);
            cache.remove_if_nameless(peer);
        }
    }

    /// Adds a preloaded route.
    pub(super) fn preload_path(&mut self, path: &PathRecord, now: Instant) {
        let key = self.cache.peer_of(path.dgid, now);
        self.cache.bind(&Address::Gid(path.dgid), key, now, true);
        if let Some(peer) = self.cache.peer_mut(key) {
            peer.set_preloaded_route(path, now);
        }
        self.cache.remove_if_nameless(key);
    }

    /// Removes all entries except preloaded ones; returns the number of removed addresses.
    pub(super) fn clear(&mut self) -> usize {
        self.by_lid.clear();
        self.cache.clear()
    }

    /// Stores the LID of a peer; returns the GID of the peer that had the LID before. If the map of LIDs has about
    /// twice as many entries as there are peers, removes the LIDs of peers that are no longer cached.
    pub(super) fn set_lid(&mut self, lid: u16, gid: Gid) -> Option<Gid> {
        let Self { cache, by_lid, .. } = self;
        if by_lid.len() >= 2 * cache.peers() + MAX_EXCESS_LIDS {
            by_lid.retain(|_, gid| cache.by_gid(*gid).is_some());
            by_lid.shrink_to(2 * by_lid.len());
        }
        by_lid.insert(lid, gid)
    }

    #[cfg(test)]
    pub(super) fn lid_count(&self) -> usize {
        self.by_lid.len()
    }

    /// Removes a peer.
    pub(super) fn remove(&mut self, key: PeerKey) {
        if let Some(peer) = self.cache.peer(key)
            && self.by_lid.get(&peer.lid) == Some(&peer.gid)
        {
            self.by_lid.remove(&peer.lid);
        }
        self.cache.remove(key);
    }

    /// Returns the cached SA route to a destination, and the time of its last use.
    pub(super) fn route_to(&self, target: PathTarget) -> Option<(SaRoute, Timestamp)> {
        match target {
            PathTarget::Gid(gid) => {
                let peer = self.peer_by_gid(gid)?;
                Some((peer.route?, peer.used))
            }
            PathTarget::Lid(lid) => self.lid_routes.get(&lid).map(|it| (it.route, it.used)),
        }
    }

    /// Returns the lifetime of the route to a destination: `None` for no limit, 0 if the peer is unknown.
    pub(super) fn lifetime_of(
        &self,
        config: &ServiceConfig,
        target: PathTarget,
    ) -> Option<Duration> {
        match target {
            PathTarget::Gid(gid) => {
                let peer = self.peer_by_gid(gid);
                peer.map_or(Some(Duration::ZERO), |peer| route_lifetime(config, peer))
            }
            PathTarget::Lid(_) => config.route_lifetime(false),
        }
    }

    pub(super) fn peer_by_gid(&self, gid: Gid) -> Option<&Peer> {
        self.cache.peer(self.cache.by_gid(gid)?)
    }

    /// Returns the owner of an address.
    pub(super) fn owner(&self, address: &Address) -> Option<&Peer> {
        self.cache.peer(self.cache.lookup(address)?)
    }

    /// Stores the path that the SA returned for a destination. Returns true if the path is now the main route of its
    /// port, and false if it leads to another LID of the port than the main route.
    pub(super) fn store_path(
        &mut self,
        target: PathTarget,
        path: &PathRecord,
        lmc: u8,
        now: Instant,
    ) -> bool {
        let gid = path.dgid;
        let main_lid = self.peer_by_gid(gid).map_or(0, |it| it.route.map_or(it.lid, SaRoute::dlid));
        let cache = &mut self.cache;
        let key = cache.peer_of(gid, now);
        let by_lid = Address::Lid(path.dlid);
        match target {
            // The GID becomes an address of the peer, because the peer may have no other cached address.
            PathTarget::Gid(_) => {
                cache.bind(&Address::Gid(gid), key, now, false);
                if cache.lookup(&by_lid) == Some(key) {
                    cache.bind(&by_lid, key, now, false);
                }
            }
            PathTarget::Lid(_) => {
                if let BindResult::Other(_) = cache.bind(&by_lid, key, now, false) {
                    // The SA assigns LIDs, so its response overrides the cached owner.
                    cache.unbind(&by_lid);
                    cache.bind(&by_lid, key, now, false);
                }
            }
        }
        let is_main = !matches!(target, PathTarget::Lid(lid) if main_lid != 0 && lid != main_lid
            && (lid ^ main_lid) >> lmc == 0);
        if !is_main {
            let used = self.lid_routes.get(&path.dlid).map_or(Timestamp::of(now), |it| it.used);
            let route = LidRoute { gid, route: SaRoute::of(path, now), used };
            self.lid_routes.insert(path.dlid, route);
        }
        if let Some(peer) = cache.peer_mut(key) {
            match is_main {
                true => peer.set_route(path, now),
                false => peer.confirm_by_sa(now),
            }
        }
        cache.remove_if_nameless(key);
        is_main
    }

    /// Removes the route to a destination.
    pub(super) fn remove_route(&mut self, target: PathTarget) {
        match target {
            PathTarget::Gid(gid) => {
                if let Some(key) = self.cache.by_gid(gid)
                    && let Some(peer) = self.cache.peer_mut(key)
                {
                    peer.route = None;
                }
            }
            PathTarget::Lid(lid) => drop(self.lid_routes.remove(&lid)),
        }
    }

    /// Removes expired entries of `lid_routes`. Returns the destination LIDs of routes that are in use and have to be
    /// refreshed.
    pub(super) fn sweep_lid_routes(&mut self, config: &ServiceConfig, now: Instant) -> Vec<u16> {
        let Some(lifetime) = config.route_lifetime(false) else { return Vec::new() };
        self.lid_routes.retain(|_, it| it.route.learned.age(now) < lifetime);
        let is_aging = |it: &LidRoute| {
            let age = it.route.learned.age(now);
            it.used > it.route.learned && age >= ServiceConfig::refresh_age(lifetime)
        };
        self.lid_routes.iter().filter(|(_, it)| is_aging(it)).map(|(&lid, _)| lid).collect()
    }

    /// Sweeps the next part of the cache: finds peers that have expired, or have to be verified or refreshed. `share`
    /// is the size of the part, as a fraction of the cache.
    pub(super) fn sweep(
        &mut self,
        config: &ServiceConfig,
        now: Instant,
        share: f64,
        is_routed_by_sa: impl Fn(&Peer) -> bool,
    ) -> SweepResult {
        let (check_age, lifetime) = (config.peer_check_age(), config.address_lifetime());
        let address_check_age = config.address_check_age();
        let (cache, mut position) = (&self.cache, self.sweep_position);
        let count = (cache.slot_count() as f64 * share).ceil() as u32;
        let mut result = SweepResult::default();
        cache.sweep(&mut position, count, |key, peer| {
            let age = peer.confirmed.age(now);
            // A peer with a preloaded route does not expire if it has no known ACM service.
            let is_preloaded = peer.route.is_some_and(SaRoute::is_preloaded) && peer.qpn == 0;
            if lifetime.is_some_and(|lifetime| age >= lifetime) && !is_preloaded {
                result.expired.push(key);
                return;
            }
            let is_old =
                peer.used > peer.confirmed && check_age.is_some_and(|check_age| age >= check_age);
            let has_old_address = || {
                address_check_age
                    .is_some_and(|it| cache.aging_address(key, now, it, |_| true).is_some())
            };
            if peer.qpn != 0 && (is_old || has_old_address()) {
                result.unverified.push(key);
            }
            let is_route_used = peer.route.is_some_and(|route| peer.used > route.learned);
            if is_route_used && is_routed_by_sa(peer) && has_aging_route(config, now, peer) {
                result.aging_routes.push(peer.gid);
            }
        });
        self.sweep_position = position;
        result
    }
}

/// Result of [`PeerTable::sweep`].
#[derive(Debug, Default)]
pub(super) struct SweepResult {
    /// Peers that have expired and have to be removed.
    pub(super) expired: Vec<PeerKey>,
    /// Peers in use that have to be verified.
    pub(super) unverified: Vec<PeerKey>,
    /// GIDs of ports whose SA routes are in use and have to be refreshed.
    pub(super) aging_routes: Vec<Gid>,
}

/// Returns the lifetime of the route to a peer; `None` if the route expires only together with the peer's address.
pub(super) fn route_lifetime(config: &ServiceConfig, peer: &Peer) -> Option<Duration> {
    match peer.route {
        Some(route) if route.is_preloaded() => config.route_timeout,
        _ => config.route_lifetime(peer.qpn != 0),
    }
}

/// Returns true if the route to a peer has to be refreshed.
pub(super) fn has_aging_route(config: &ServiceConfig, now: Instant, peer: &Peer) -> bool {
    let lifetime = match peer.route {
        Some(route) if route.is_preloaded() => config.preloaded_route_lifetime(),
        _ => config.route_lifetime(peer.qpn != 0),
    };
    let lifetime = lifetime.filter(|lifetime| !lifetime.is_zero());
    let route = peer.route.zip(lifetime.map(ServiceConfig::refresh_age));
    route.is_some_and(|(route, age)| route.learned.age(now) >= age)
}
