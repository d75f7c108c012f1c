//! Cache lookup: finds the path to an address.

use ib_types::Gid;
use ib_wire::mad::sa::{LifeTimeCode, PathRecord, Selector};

use super::config::ServiceConfig;
use super::context::Context;
use super::groups::MulticastGroups;
use super::peer_table::{PeerTable, has_aging_route, route_lifetime};
use super::route_policy::{RoutePolicy, RouteSource};
use crate::Address;
use crate::cache::{NO_GROUP, Peer, PeerKey, Timestamp};

/// Result of looking up a path in the cache.
#[derive(Debug)]
pub(super) enum PathLookup {
    /// A valid path.
    Fresh(Box<PathRecord>),
    /// A path that is valid but due for a refresh: the caller can use the path, and has to refresh it.
    Aging(Box<PathRecord>),
    /// The peer is cached, but has to be verified before its path is used.
    Stale(PeerKey),
    /// The owner of the address is cached, but the route to the owner is not.
    NoRoute,
    /// The owner of the address is cached, but no multicast group is known that both the owner and the endpoint have
    /// joined.
    NoGroup,
    /// The address is not cached.
    Unknown,
}

/// Looks up the path to an address, and marks the address as used.
pub(super) fn lookup(
    cx: &Context<'_>,
    peers: &mut PeerTable,
    groups: &MulticastGroups,
    policy: &RoutePolicy,
    address: &Address,
) -> PathLookup {
    match (lookup_owner(cx, peers, groups, policy, address), address) {
        (PathLookup::Fresh(path) | PathLookup::Aging(path), Address::Lid(lid))
            if path.dlid != *lid =>
        {
            lookup_lid(cx, peers, *lid, &path)
        }
        (found, _) => found,
    }
}

/// Looks up the path to the owner of an address.
fn lookup_owner(
    cx: &Context<'_>,
    peers: &mut PeerTable,
    groups: &MulticastGroups,
    policy: &RoutePolicy,
    address: &Address,
) -> PathLookup {
    let (now, config, cache) = (cx.now, cx.config(), &mut peers.cache);
    let key = match address {
        Address::Gid(gid) => cache.use_gid(*gid, now),
        address => cache.use_address(address, now),
    };
    let Some(key) = key else { return PathLookup::Unknown };
    let age = cache.seen(address).map(|seen| seen.age(now));
    if age.zip(config.address_lifetime()).is_some_and(|(age, lifetime)| age >= lifetime) {
        cache.unbind(address);
        return PathLookup::Unknown;
    }
    let is_old = |(age, limit)| age >= limit;
    let is_address_aging = age.zip(config.address_check_age()).is_some_and(is_old);
    let Some(peer) = cache.peer(key) else { return PathLookup::Unknown };
    let age = peer.confirmed.age(now);
    let is_aging = is_address_aging || config.peer_check_age().is_some_and(|limit| age >= limit);
    if peer.qpn != 0 && config.check_interval.is_some_and(|interval| age >= 2 * interval) {
        return PathLookup::Stale(key);
    }
    match policy.source(groups, peer) {
        RouteSource::Pending => PathLookup::NoRoute,
        RouteSource::Group => match group_path(cx, groups, peer) {
            None => PathLookup::NoGroup,
            Some(path) if is_aging => PathLookup::Aging(Box::new(path)),
            Some(path) => PathLookup::Fresh(Box::new(path)),
        },
        RouteSource::Sa => match lookup_sa_route(cx, peer) {
            PathLookup::Fresh(path) if is_aging && peer.qpn != 0 => PathLookup::Aging(path),
            found => found,
        },
    }
}

/// Looks up the SA route to a peer.
fn lookup_sa_route(cx: &Context<'_>, peer: &Peer) -> PathLookup {
    let Some(route) = peer.route else { return PathLookup::NoRoute };
    let age = route.learned.age(cx.now);
    let path = Box::new(route.path(cx.port_state().link.gid(), peer.gid));
    match route_lifetime(cx.config(), peer) {
        Some(lifetime) if age >= lifetime => PathLookup::NoRoute,
        _ if has_aging_route(cx.config(), cx.now, peer) => PathLookup::Aging(path),
        _ => PathLookup::Fresh(path),
    }
}

/// Looks up the route to `lid`. `main` is the path to the owner of this LID, but has another destination LID.
fn lookup_lid(cx: &Context<'_>, peers: &mut PeerTable, lid: u16, main: &PathRecord) -> PathLookup {
    let own = cx.port_state().link;
    if (main.dlid ^ lid) >> own.lmc != 0 {
        // The port has got other LIDs: the requested LID is no longer one of them.
        peers.cache.unbind(&Address::Lid(lid));
        peers.lid_routes.remove(&lid);
        return PathLookup::Unknown;
    }
    let Some(cached) = peers.lid_routes.get_mut(&lid).filter(|it| it.gid == main.dgid) else {
        return PathLookup::NoRoute;
    };
    cached.used = Timestamp::of(cx.now);
    let age = cached.route.learned.age(cx.now);
    let path = Box::new(cached.route.path(own.gid(), cached.gid));
    match cx.config().route_lifetime(false) {
        Some(lifetime) if age >= lifetime => PathLookup::NoRoute,
        Some(lifetime) if age >= ServiceConfig::refresh_age(lifetime) => PathLookup::Aging(path),
        _ => PathLookup::Fresh(path),
    }
}

/// Derives the path to a peer from the most preferred multicast group that the peer and the endpoint have joined.
fn group_path(cx: &Context<'_>, groups: &MulticastGroups, peer: &Peer) -> Option<PathRecord> {
    if peer.group == NO_GROUP || peer.gid == Gid::ZERO {
        return None;
    }
    let own = cx.port_state().link;
    let record = groups.record(peer.group)?;
    Some(PathRecord {
        dgid: peer.gid,
        sgid: own.gid(),
        dlid: peer.lid,
        slid: own.lid,
        flow_label: record.flow_label,
        hop_limit: record.hop_limit,
        traffic_class: record.traffic_class,
        reversible: true,
        numb_path: 1,
        p_key: cx.identity.p_key,
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

/// Returns the path to an address of this endpoint; `None` for other addresses, and if loopback is not configured.
pub(super) fn loopback_path(cx: &Context<'_>, address: &Address) -> Option<PathRecord> {
    let own = cx.port_state();
    let is_own = match address {
        Address::Gid(gid) => *gid == own.link.gid(),
        Address::Lid(lid) => lid >> own.link.lmc == own.link.lid >> own.link.lmc,
        address => cx.is_own(address),
    };
    (is_own && cx.config().loopback).then(|| PathRecord {
        dgid: own.link.gid(),
        sgid: own.link.gid(),
        dlid: own.link.lid,
        slid: own.link.lid,
        reversible: true,
        numb_path: 1,
        p_key: cx.identity.p_key,
        mtu_selector: Selector::EXACTLY,
        mtu: own.mtu,
        rate_selector: Selector::EXACTLY,
        rate: own.rate,
        life_time_selector: Selector::EXACTLY,
        life_time: LifeTimeCode(0),
        ..PathRecord::zeroed()
    })
}
