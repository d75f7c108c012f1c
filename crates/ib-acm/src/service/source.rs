//! Selection of the endpoints that resolve a client request.

use std::net::IpAddr;

use ib_types::Gid;
use ib_wire::acm::ClientStatus;

use super::endpoint_table::{Endpoint, EndpointTable};
use super::key::EndpointKey;
use super::request::{RequestSource, ResolveRequest};
use super::sa::LocalPort;
use crate::Address;

/// Function that looks up a destination IP address in the system's routing table, and returns the source IP address.
pub type SourceOf = Box<dyn FnMut(IpAddr) -> Option<IpAddr> + Send>;

/// An endpoint, and the source address that the service chose; `None` if the client specified the source.
pub(super) type SelectedEndpoint = (EndpointKey, Option<Address>);

/// Returns the endpoints that resolve a request. Returns several only if the endpoint that reaches the destination has
/// to be found by address resolution.
pub(super) fn select_endpoints(
    table: &EndpointTable,
    source_of: &mut SourceOf,
    request: &ResolveRequest,
) -> Result<Vec<SelectedEndpoint>, ClientStatus> {
    let to = request.address();
    let keys = match &request.source {
        RequestSource::Address(address) => table.with_address(address).to_vec(),
        RequestSource::Port { gid, lid, p_key } => {
            let is_source = |port: &LocalPort| {
                let own = &port.state.link;
                (*gid == Gid::ZERO || *gid == own.gid())
                    && (*lid == 0 || lid >> own.lmc == own.lid >> own.lmc)
            };
            let is_selected = |(key, endpoint): &(&EndpointKey, &Endpoint)| {
                let own = endpoint.identity.p_key;
                let is_in = p_key.0 == 0 || p_key.0 & 0x7fff == own.0 & 0x7fff;
                is_in && table.ports.get(&key.port).is_some_and(is_source)
            };
            table.endpoints.iter().filter(is_selected).map(|(&key, _)| key).collect()
        }
        RequestSource::Any => {
            let own = to.and_then(Address::ip).and_then(source_of).map(Address::from);
            if let Some((key, own)) = own.and_then(|own| Some((table.owner(&own)?, own))) {
                return Ok(vec![(key, Some(own))]);
            }
            // The routing table yields no address of an endpoint as source, so the service chooses the endpoint.
            let keys = table.endpoints.keys().copied();
            let keys = nearest(table, keys, to, request.no_delay);
            let selected = keys.into_iter().map(|key| (key, similar_address(table, key, to)));
            let selected: Vec<SelectedEndpoint> = selected.collect();
            return match selected.is_empty() {
                true => Err(ClientStatus::ENOTCONN),
                false => Ok(selected),
            };
        }
    };
    let keys = nearest(table, keys.into_iter(), to, request.no_delay);
    if keys.is_empty() {
        return Err(ClientStatus::ESRCADDR);
    }
    Ok(keys.into_iter().map(|key| (key, None)).collect())
}

/// Returns the endpoint that owns the address `to`. If there is none, returns an endpoint in the subnet of the GID
/// `to`, or in the subnet of the cached owner of `to` if `to` is not a GID.
///
/// Returns several endpoints only if `to` is a name or an IP address, `no_delay` is false, and none of the endpoints
/// described above is up. These are all endpoints that are up and have an address.
fn nearest(
    table: &EndpointTable,
    keys: impl Iterator<Item = EndpointKey>,
    to: Option<&Address>,
    no_delay: bool,
) -> Vec<EndpointKey> {
    let is_resolvable = matches!(to, Some(Address::Name(_) | Address::V4(_) | Address::V6(_)));
    let rank = |key: EndpointKey| {
        let prefix = table.ports[&key.port].state.link.gid_prefix;
        let Endpoint { identity, resolver, .. } = &table.endpoints[&key];
        let is_near = match to {
            Some(Address::Gid(gid)) => gid.prefix() == prefix,
            Some(to) => {
                let owner = resolver.peers.table.owner(to);
                owner.is_some_and(|peer| peer.gid.prefix() == prefix)
            }
            None => false,
        };
        match to {
            _ if !table.is_up(key) => 4,
            Some(to) if identity.addresses.contains(to) => 0,
            _ if is_near => 1,
            // The endpoint has no address, so it cannot send a request, which must contain a source address.
            _ if is_resolvable && identity.addresses.is_empty() => 3,
            _ => 2,
        }
    };
    let mut ranked: Vec<_> = keys.map(|key| (rank(key), !key.is_default(), key)).collect();
    ranked.sort_unstable();
    let best = ranked.first().map_or(0, |&(rank, ..)| rank);
    let several = is_resolvable && !no_delay && best == 2;
    ranked.retain(|&(rank, ..)| rank == best);
    ranked.truncate(if several { usize::MAX } else { 1 });
    ranked.into_iter().map(|(.., key)| key).collect()
}

/// Returns the endpoint's first address that has the same type as `to`. If there is none, returns its first address.
fn similar_address(
    table: &EndpointTable,
    key: EndpointKey,
    to: Option<&Address>,
) -> Option<Address> {
    let own = &table.endpoints[&key].identity.addresses;
    let is_similar = |own: &&Address| {
        to.is_some_and(|to| std::mem::discriminant(to) == std::mem::discriminant(*own))
    };
    own.iter().find(is_similar).or_else(|| own.first()).cloned()
}
