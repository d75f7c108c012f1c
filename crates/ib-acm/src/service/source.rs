//! The endpoints that questions start from: of those that a program names the one that reaches its destination.

use ib_types::Gid;
use ib_wire::acm::ClientStatus;

use super::endpoint::{Endpoint, EndpointKey};
use super::request::{Question, Source, Waiter};
use super::{PortEntry, Service};
use crate::Address;

/// An endpoint, and its address where that had to be chosen.
type Chosen = (EndpointKey, Option<Address>);

impl Service {
    /// Takes note that an endpoint has found what is wanted; false when another one was faster.
    pub(super) fn wins(&mut self, waiter: &Waiter) -> bool {
        waiter.race.is_none_or(|race| self.races.remove(&race).is_some())
    }

    /// Takes note that an endpoint has not found what is wanted; false when another one has, or still may.
    pub(super) fn loses(&mut self, waiter: &Waiter) -> bool {
        let Some(race) = waiter.race else { return true };
        let Some(left) = self.races.get_mut(&race) else { return false };
        *left -= 1;
        let is_last = *left == 0;
        if is_last {
            self.races.remove(&race);
        }
        is_last
    }

    /// Returns whether an address is an endpoint's own.
    pub(super) fn is_own(&self, key: EndpointKey, address: &Address) -> bool {
        self.own.get(address).is_some_and(|owners| owners.contains(&key))
    }

    /// Returns the endpoint that has an address: the first in service, or else the first.
    pub(super) fn owner(&self, address: &Address) -> Option<EndpointKey> {
        let owners = self.own.get(address)?;
        owners.iter().find(|key| self.is_in_service(**key)).or(owners.first()).copied()
    }

    /// Returns whether an endpoint's port is in service and it has joined the group that everybody has, if it can.
    pub(super) fn is_in_service(&self, key: EndpointKey) -> bool {
        let port = self.ports.get(&key.port).map(|port| &port.state);
        let is_in = || self.endpoints.get(&key).is_some_and(|it| it.least().is_some());
        port.is_some_and(|port| port.is_active && (!port.has_datagrams || is_in()))
    }

    /// Returns the endpoints that a question starts from, and their addresses where these had to be chosen. There are
    /// several where only asking tells which of them reaches the address.
    pub(super) fn sources(&mut self, question: &Question) -> Result<Vec<Chosen>, ClientStatus> {
        let to = question.address();
        let keys: Vec<EndpointKey> = match &question.source {
            Source::Address(address) => self.own.get(address).cloned().unwrap_or_default(),
            Source::Port { gid, lid, p_key } => {
                let fits = |port: &PortEntry| {
                    let own = &port.state.link;
                    (*gid == Gid::ZERO || *gid == own.gid())
                        && (*lid == 0 || lid >> own.lmc == own.lid >> own.lmc)
                };
                let is_it = |(key, endpoint): &(&EndpointKey, &Endpoint)| {
                    let is_in = p_key.0 == 0 || p_key.0 & 0x7fff == endpoint.p_key.0 & 0x7fff;
                    is_in && self.ports.get(&key.port).is_some_and(fits)
                };
                self.endpoints.iter().filter(is_it).map(|(&key, _)| key).collect()
            }
            Source::Open => {
                let routed = to.and_then(Address::ip).and_then(|to| (self.source_of)(to));
                let routed = routed.map(Address::from);
                if let Some((key, own)) = routed.and_then(|own| Some((self.owner(&own)?, own))) {
                    return Ok(vec![(key, Some(own))]);
                }
                // The system knows of no way.
                let keys = self.nearest(self.endpoints.keys().copied(), to, question.no_delay);
                let chosen = keys.into_iter().map(|key| (key, self.address_for(key, to)));
                let chosen: Vec<Chosen> = chosen.collect();
                return if chosen.is_empty() { Err(ClientStatus::ENOTCONN) } else { Ok(chosen) };
            }
        };
        let keys = self.nearest(keys.into_iter(), to, question.no_delay);
        if keys.is_empty() {
            return Err(ClientStatus::ESRCADDR);
        }
        Ok(keys.into_iter().map(|key| (key, None)).collect())
    }

    /// Returns which of some endpoints may reach an address: who has it itself, or who knows it in its own subnet; where
    /// there are none, all who can ask for it.
    fn nearest(
        &self,
        keys: impl Iterator<Item = EndpointKey>,
        to: Option<&Address>,
        no_delay: bool,
    ) -> Vec<EndpointKey> {
        let can_ask = matches!(to, Some(Address::Name(_) | Address::V4(_) | Address::V6(_)));
        let rank = |key: EndpointKey| {
            let prefix = self.ports[&key.port].state.link.gid_prefix;
            let endpoint = &self.endpoints[&key];
            let is_near = match to {
                Some(Address::Gid(gid)) => gid.prefix() == prefix,
                Some(to) => {
                    let peer = endpoint.cache.lookup(to).and_then(|peer| endpoint.cache.peer(peer));
                    peer.is_some_and(|peer| peer.gid.prefix() == prefix)
                }
                None => false,
            };
            match to {
                _ if !self.is_in_service(key) => 4,
                Some(to) if self.is_own(key, to) => 0,
                _ if is_near => 1,
                // Questions say whose they are.
                _ if can_ask && endpoint.addresses.is_empty() => 3,
                _ => 2,
            }
        };
        let mut ranked: Vec<_> = keys.map(|key| (rank(key), !key.is_default(), key)).collect();
        ranked.sort_unstable();
        let best = ranked.first().map_or(0, |&(rank, ..)| rank);
        let several = can_ask && !no_delay && best == 2;
        ranked.retain(|&(rank, ..)| rank == best);
        ranked.truncate(if several { usize::MAX } else { 1 });
        ranked.into_iter().map(|(.., key)| key).collect()
    }

    /// Returns the address of an endpoint that is most like another one.
    fn address_for(&self, key: EndpointKey, to: Option<&Address>) -> Option<Address> {
        let own = &self.endpoints[&key].addresses;
        let alike = |own: &&Address| {
            to.is_some_and(|to| std::mem::discriminant(to) == std::mem::discriminant(*own))
        };
        own.iter().find(alike).or_else(|| own.first()).cloned()
    }
}
