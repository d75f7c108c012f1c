//! Peers: messages of other ACM services, and the checks before their claims are accepted.
//!
//! A peer can claim any GID and address, also those of others. Only its LID is reliable, since the fabric writes it.
//!
//! * A claim to a GID or an address of another port is accepted once the old owner does not respond to a check. The
//!   old owner keeps it as long as it responds.
//! * A GID that only the SA or a file has reported keeps the LID reported there. A different claim triggers an SA
//!   query, at most every 10 seconds, and is accepted once the SA confirms it.
//! * A response is accepted only with the random number of an outstanding request. The response to a check must also
//!   come from the port that was checked.
//! * Limits of a port: 16 new GIDs in a minute, 64 addresses for each GID, and a rate limit for requests.

use std::time::Duration;

use ib_link::Route;
use ib_types::{Gid, Instant, Qpn, ServiceLevel};
use ib_wire::mad::acm::AcmMessage;
use ib_wire::mad::{MAD_LENGTH, Method, MgmtClass};

use super::Service;
use super::checks::Candidate;
use super::config::Event;
use super::endpoint::EndpointKey;
use super::meter::Metered;
use super::more::{more, put_more};
use super::resolve::Phase;
use crate::Address;
use crate::cache::{Bound, SaRoute, Stamp, is_of_fabric};
use crate::port::{Action, Destination};

/// Who has sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sender {
    pub(super) gid: Gid,
    lid: u16,
    qpn: Qpn,
    /// The best group that it and the own endpoint have.
    group: u8,
}

impl Service {
    /// Takes a datagram of the protocol.
    pub(super) fn handle_datagram(
        &mut self,
        now: Instant,
        key: EndpointKey,
        route: &Route,
        qpn: Qpn,
        bytes: &[u8],
    ) {
        let Some(port) = self.ports.get(&key.port) else { return };
        let own = port.state.link;
        if !port.state.is_active || !self.endpoints.contains_key(&key) {
            return;
        }
        let (gid, lid) = (route.destination, route.dlid);
        if route.is_global && gid == own.gid() {
            return;
        }
        let is_from_port = route.is_global
            && gid.prefix() == own.gid_prefix
            && !gid.is_multicast()
            && gid.guid().0 != 0
            && matches!(lid, 1..0xc000)
            && qpn.get() > 1
            && qpn != Qpn::MULTICAST;
        let Some(bytes) = <&[u8; MAD_LENGTH]>::try_from(bytes).ok().filter(|_| is_from_port) else {
            self.counters.malformed += 1;
            return;
        };
        let message = AcmMessage::parse(bytes);
        let is_known = message.base_version == 1
            && message.class == MgmtClass::ACM
            && message.class_version == 1
            && message.control == AcmMessage::RESOLVE
            && usize::from(message.gid_count) <= message.gids.len();
        if !is_known {
            self.counters.malformed += 1;
            return;
        }
        let endpoint = self.endpoint(key);
        let metered = endpoint.meter.count(now, lid);
        if metered != Metered::Taken {
            self.counters.flooded += 1;
            if metered == Metered::First {
                let endpoint = self.name(key);
                self.events.push_back(Event::Flood { endpoint, lid });
            }
            return;
        }
        let group = endpoint.best(message.groups());
        let sender = Sender { gid, lid, qpn, group: group.unwrap_or(crate::cache::NO_GROUP) };
        match message.method {
            Method::GET => self.question(now, key, sender, &message, bytes),
            Method::GET_RESP if message.status.is_ok() => {
                self.answer(now, key, sender, &message, bytes);
            }
            _ => self.counters.malformed += 1,
        }
    }

    /// Takes a question of another service: who asks is known from now on, whoever is asked for.
    fn question(
        &mut self,
        now: Instant,
        key: EndpointKey,
        sender: Sender,
        message: &AcmMessage,
        bytes: &[u8; MAD_LENGTH],
    ) {
        let field = |length: u8, kind, field| match length {
            64 => Address::from_field(kind, field).ok(),
            _ => None,
        };
        let source = field(message.source_length, message.source_type, &message.source);
        let wanted =
            field(message.destination_length, message.destination_type, &message.destination);
        let (Some(source), Some(wanted)) = (source, wanted) else {
            self.counters.malformed += 1;
            return;
        };
        // GIDs and LIDs are the fabric's to give: nobody is believed to have another's.
        let may_have = |address: &Address| match address {
            Address::Gid(gid) => *gid == sender.gid,
            Address::Lid(lid) => *lid == sender.lid,
            _ => true,
        };
        if !may_have(&source) {
            self.counters.malformed += 1;
            return;
        }
        self.counters.heard += 1;
        let mut addresses = vec![source];
        addresses.extend(told(bytes));
        addresses.retain(|address| !is_of_fabric(address));
        self.learn(now, key, sender, &addresses);
        let own = self.ports[&key.port].state.link;
        let is_own = match &wanted {
            Address::Gid(gid) => *gid == own.gid(),
            Address::Lid(lid) => *lid == own.lid,
            address => self.is_own(key, address),
        };
        let endpoint = self.endpoint(key);
        let group = endpoint.groups.get(usize::from(sender.group)).map(|group| group.mgid);
        let (Some(group), true) = (group, is_own) else { return };
        let p_key = endpoint.p_key;
        let mut answer = AcmMessage {
            base_version: 1,
            class: MgmtClass::ACM,
            class_version: 1,
            method: Method::GET_RESP,
            control: AcmMessage::RESOLVE,
            transaction_id: message.transaction_id,
            gid_count: 1,
            ..AcmMessage::zeroed()
        };
        answer.gids[0] = group;
        let mut bytes = answer.to_bytes();
        put_more(&mut bytes, &wanted, &endpoint.addresses);
        let Some(to) = self.way_to(key, sender.gid, sender.lid, sender.qpn) else { return };
        self.counters.answers += 1;
        self.act(key.port, Action::Send { p_key, to, bytes: Box::new(bytes) });
    }

    /// Takes an answer of another service.
    fn answer(
        &mut self,
        now: Instant,
        key: EndpointKey,
        sender: Sender,
        message: &AcmMessage,
        bytes: &[u8; MAD_LENGTH],
    ) {
        let tid = message.transaction_id.0;
        let endpoint = self.endpoint(key);
        if let Some(check) = endpoint.checks.get(&tid) {
            if (check.gid, check.lid) == (sender.gid, sender.lid) {
                self.confirmed(now, key, tid, sender, bytes);
            } else {
                self.counters.unasked += 1;
            }
            return;
        }
        let asked = endpoint.resolutions.get(&tid);
        let asked = asked.filter(|it| matches!(it.phase, Phase::Asking { .. }));
        let Some(address) = asked.map(|it| it.address.clone()) else {
            self.counters.unasked += 1;
            return;
        };
        if sender.group == crate::cache::NO_GROUP {
            // It names no group that was offered.
            self.counters.malformed += 1;
            return;
        }
        // What was known of the address was not good enough, or else nobody would have been asked.
        let former = endpoint.cache.lookup(&address).and_then(|peer| endpoint.cache.peer(peer));
        if former.is_some_and(|peer| peer.gid != sender.gid) {
            endpoint.cache.unbind(&address);
        }
        let mut addresses = vec![address];
        addresses.extend(told(bytes));
        self.learn(now, key, sender, &addresses);
    }

    /// Notes where a peer is and which addresses it has, as far as that can be believed.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        key: EndpointKey,
        sender: Sender,
        addresses: &[Address],
    ) {
        let lmc = self.ports[&key.port].state.link.lmc;
        let endpoint = self.endpoint(key);
        let Sender { gid, lid, qpn, group } = sender;
        if endpoint.cache.by_gid(gid).is_none() && !endpoint.meter.may_have(now, lid, gid) {
            self.counters.refused += 1;
            return;
        }
        let is_elsewhere = |route: SaRoute| (route.dlid() ^ lid) >> lmc != 0;
        let peer_key = endpoint.cache.peer_of(gid, now);
        let Some(peer) = endpoint.cache.peer_mut(peer_key) else { return };
        if let (0, Some(route)) = (peer.qpn, peer.route.filter(|&route| is_elsewhere(route))) {
            // There is no peer to check: the SA reports the owner and the LID of the GID.
            self.counters.conflicts += 1;
            return self.doubt_route(now, key, gid, route.learned);
        }
        if peer.lid != 0 && peer.lid != lid && peer.qpn != 0 {
            let moved = Candidate::Moved(sender, addresses.to_vec());
            return self.check(now, key, peer_key, Some(moved));
        }
        (peer.lid, peer.qpn, peer.confirmed) = (lid, qpn.get(), Stamp::of(now));
        peer.route = peer.route.filter(|&route| !is_elsewhere(route));
        if group != crate::cache::NO_GROUP || peer.group == crate::cache::NO_GROUP {
            peer.group = group;
        }
        // Whoever was at that LID before is elsewhere, unless the port has several GIDs.
        let former = endpoint.lid_taken(lid, gid).filter(|&former| former != gid);
        let mut others = Vec::new();
        if let Some(former) = former.and_then(|former| endpoint.cache.by_gid(former))
            && endpoint.cache.peer(former).is_some_and(|peer| {
                peer.lid == lid && peer.confirmed.age(now) > Duration::from_secs(1)
            })
        {
            others.push((former, None));
        }
        endpoint.cache.heard_from(peer_key, gid, lid, now);
        let mut refused = 0;
        for address in addresses {
            match endpoint.cache.bind(address, peer_key, now, false) {
                Bound::New | Bound::Same => {}
                Bound::TooMany => refused += 1,
                Bound::Other(owner) => {
                    let owner_of = Candidate::Owner(sender, address.clone());
                    others.push((owner, Some(owner_of)));
                }
            }
        }
        endpoint.cache.remove_if_nameless(peer_key);
        self.counters.refused += refused;
        for (other, candidate) in others {
            self.check(now, key, other, candidate);
        }
        for address in addresses {
            self.address_found(now, key, address);
        }
    }

    /// Returns the way to a peer, as datagrams take it.
    pub(super) fn way_to(
        &self,
        key: EndpointKey,
        gid: Gid,
        lid: u16,
        qpn: Qpn,
    ) -> Option<Destination> {
        let own = self.ports.get(&key.port)?.state.link;
        let record = self.endpoints.get(&key)?.least()?;
        let route = Route {
            source: own.gid(),
            destination: gid,
            slid: own.lid,
            dlid: lid,
            sl: ServiceLevel::new(record.sl).unwrap_or_default(),
            is_global: true,
            ..Route::default()
        };
        Some(Destination { route, qpn })
    }
}

/// Returns the further addresses that a peer says it has, but for GIDs and LIDs: these are the fabric's to give, and
/// nobody is believed to have another's.
pub(super) fn told(bytes: &[u8; MAD_LENGTH]) -> impl Iterator<Item = Address> {
    more(bytes).into_iter().filter(|address| !is_of_fabric(address))
}
