//! What services of others say, what is believed of it, and checks.
//!
//! A port can say anything of itself but its LID, which the fabric writes; and it can say anything of others. So:
//!
//! * Who says that a GID has moved to its LID, or that an address is its own which another port has, is believed once the
//!   old owner has been asked and is silent. The old owner stays as long as it answers.
//! * An answer counts only with the number of a question that is open, which nobody can guess; that to a check only from
//!   the port that was asked.
//! * A port has 64 addresses at most, and so many questions in a second.
//!
//! A message has room behind its groups. There a service of this kind says which other addresses it has: `reserved`, the
//! byte 23, is their number, and each is a type, a length and its bytes. Others write zero there and do not look.

use std::collections::HashMap;
use std::time::Duration;

use ib_link::Route;
use ib_types::{Gid, Instant, Qpn, ServiceLevel};
use ib_wire::mad::acm::{AcmMessage, AddressType};
use ib_wire::mad::{MAD_LENGTH, Method, MgmtClass};

use super::config::Event;
use super::endpoint::EndpointKey;
use super::resolve::Phase;
use super::{Due, Service};
use crate::Address;
use crate::cache::{Bound, PeerKey, Stamp};
use crate::port::{Action, Destination};

/// Who has sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sender {
    gid: Gid,
    lid: u16,
    qpn: Qpn,
    /// The best group that it and the own endpoint have.
    group: u8,
}

/// What is believed when a check is not answered.
#[derive(Clone, Debug)]
pub(super) enum Candidate {
    /// The peer is at another LID, with these addresses.
    Moved(Sender, Vec<Address>),
    /// The address belongs to another peer.
    Owner(Sender, Address),
}

/// A question to a peer, whether it still is where it was.
#[derive(Debug)]
pub(super) struct Check {
    gid: Gid,
    lid: u16,
    qpn: Qpn,
    address: Address,
    attempts: u32,
    candidate: Option<Candidate>,
}

/// The most checks of an endpoint at a time.
const MOST_CHECKS: usize = 1024;

/// How many questions of a port are taken in a second, and how many at once.
const QUESTIONS: u32 = 1024;
const BURST: u32 = 4096;

/// How often it is told that a port asks too fast.
const TELL_FLOOD: Duration = Duration::from_secs(60);

/// Measures how fast ports ask.
#[derive(Debug, Default)]
pub(super) struct Meter {
    ports: HashMap<u16, Rate>,
}

#[derive(Debug)]
struct Rate {
    left: u32,
    filled: Instant,
    told: Option<Instant>,
}

/// What a meter says of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metered {
    Taken,
    /// It is too much, for the first time in a while.
    First,
    Dropped,
}

impl Meter {
    fn count(&mut self, now: Instant, lid: u16) -> Metered {
        let fresh = Rate { left: BURST, filled: now, told: None };
        let rate = self.ports.entry(lid).or_insert(fresh);
        let earned = now.since(rate.filled).as_secs_f64() * f64::from(QUESTIONS);
        if earned >= 1.0 {
            rate.left = rate.left.saturating_add(earned.min(f64::from(BURST)) as u32).min(BURST);
            rate.filled = now;
        }
        if let Some(left) = rate.left.checked_sub(1) {
            rate.left = left;
            return Metered::Taken;
        }
        if rate.told.is_some_and(|told| now.since(told) < TELL_FLOOD) {
            return Metered::Dropped;
        }
        rate.told = Some(now);
        Metered::First
    }
}

/// The byte that counts further addresses.
const COUNT: usize = 23;

/// Where groups begin in a message.
const GROUPS: usize = 152;

/// Writes the addresses beside one that there is room for behind the groups of a message.
pub(super) fn put_more(bytes: &mut [u8; MAD_LENGTH], told: &Address, all: &[Address]) {
    let mut at = GROUPS + 16 * usize::from(bytes[20]);
    for address in all.iter().filter(|it| *it != told) {
        let (kind, field) = address.to_field();
        let length = match kind {
            AddressType::NAME => field.iter().position(|&byte| byte == 0).unwrap_or(field.len()),
            AddressType::IPV4 => 4,
            AddressType::IPV6 | AddressType::GID => 16,
            _ => continue,
        };
        if let Some(room) = bytes.get_mut(at..at + 2 + length) {
            room[0] = kind.0;
            room[1] = length as u8;
            room[2..].copy_from_slice(&field[..length]);
            at += 2 + length;
            bytes[COUNT] += 1;
        }
    }
}

/// Returns the addresses behind the groups of a message; what is not understood ends them.
fn more(bytes: &[u8; MAD_LENGTH]) -> Vec<Address> {
    let mut rest = &bytes[(GROUPS + 16 * usize::from(bytes[20])).min(MAD_LENGTH)..];
    let mut found = Vec::new();
    for _ in 0..bytes[COUNT] {
        let Some((&[kind, length], behind)) = rest.split_first_chunk::<2>() else { break };
        let Some((address, behind)) = behind.split_at_checked(length.into()) else { break };
        let mut field = [0; 64];
        let Some(room) = field.get_mut(..address.len()) else { break };
        room.copy_from_slice(address);
        let Ok(address) = Address::from_field(AddressType(kind), &field) else { break };
        found.push(address);
        rest = behind;
    }
    found
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
        addresses.extend(more(bytes));
        addresses.retain(|address| !matches!(address, Address::Gid(_) | Address::Lid(_)));
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
        addresses.extend(more(bytes));
        self.learn(now, key, sender, &addresses);
    }

    /// Notes where a peer is and which addresses it has, as far as that can be believed.
    fn learn(&mut self, now: Instant, key: EndpointKey, sender: Sender, addresses: &[Address]) {
        let lmc = self.ports[&key.port].state.link.lmc;
        let endpoint = self.endpoint(key);
        let Sender { gid, lid, qpn, group } = sender;
        let peer_key = endpoint.cache.peer_of(gid, now);
        let Some(peer) = endpoint.cache.peer_mut(peer_key) else { return };
        if peer.lid != 0 && peer.lid != lid && peer.qpn != 0 {
            let moved = Candidate::Moved(sender, addresses.to_vec());
            return self.check(now, key, peer_key, Some(moved));
        }
        (peer.lid, peer.qpn, peer.confirmed) = (lid, qpn.get(), Stamp::of(now));
        if peer.route.is_some_and(|route| (route.dlid() ^ lid) >> lmc != 0) {
            peer.route = None;
        }
        if group != crate::cache::NO_GROUP || peer.group == crate::cache::NO_GROUP {
            peer.group = group;
        }
        // Whoever was at that LID before is elsewhere, unless the port has several GIDs.
        let former = endpoint.by_lid.insert(lid, gid).filter(|&former| former != gid);
        let mut others = Vec::new();
        if let Some(former) = former.and_then(|former| endpoint.cache.by_gid(former))
            && endpoint.cache.peer(former).is_some_and(|peer| {
                peer.lid == lid && peer.confirmed.age(now) > Duration::from_secs(1)
            })
        {
            others.push((former, None));
        }
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

    /// Asks a peer whether it still is where it was, and what is believed when it is silent.
    pub(super) fn check(
        &mut self,
        now: Instant,
        key: EndpointKey,
        peer_key: PeerKey,
        candidate: Option<Candidate>,
    ) {
        let tid = self.number();
        let endpoint = self.endpoint(key);
        let Some(peer) = endpoint.cache.peer(peer_key) else { return };
        let (gid, lid, qpn) = (peer.gid, peer.lid, Qpn::truncated(peer.qpn));
        if endpoint.checks.len() >= MOST_CHECKS || endpoint.checked.contains(&gid) {
            return;
        }
        let address = match &candidate {
            Some(Candidate::Owner(_, address)) => Some(address.clone()),
            _ => endpoint.cache.address_to_ask(peer_key).cloned(),
        };
        let (Some(address), true) = (address, peer.qpn != 0) else {
            // Nobody can be asked: what a file says stays, and so does what subnet administration says of a GID.
            self.counters.conflicts += u64::from(candidate.is_some());
            return;
        };
        endpoint.checked.insert(gid);
        let check = Check { gid, lid, qpn, address, attempts: 0, candidate };
        endpoint.checks.insert(tid, check);
        self.check_due(now, key, tid);
    }

    /// Sends a check, again perhaps, or gives up.
    pub(super) fn check_due(&mut self, now: Instant, key: EndpointKey, tid: u64) {
        let retries = self.config.retries;
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let Some(check) = endpoint.checks.get_mut(&tid) else { return };
        if check.attempts > retries {
            return self.silent(now, key, tid);
        }
        let attempt = check.attempts;
        check.attempts += 1;
        let (gid, lid, qpn, address) = (check.gid, check.lid, check.qpn, check.address.clone());
        let source = endpoint.addresses.first().cloned();
        let (Some(source), Some(to)) = (source, self.way_to(key, gid, lid, qpn)) else {
            self.endpoint(key).checked.remove(&gid);
            self.endpoint(key).checks.remove(&tid);
            return;
        };
        self.counters.checks += 1;
        self.send_question(key, &address, &source, tid, Some(to));
        let patience = self.config.patience(attempt) / 4;
        let patience = self.about(patience);
        self.at(now + patience, Due::Check(key, tid));
    }

    /// A peer has said that it still is where it was.
    fn confirmed(
        &mut self,
        now: Instant,
        key: EndpointKey,
        tid: u64,
        sender: Sender,
        bytes: &[u8; MAD_LENGTH],
    ) {
        let endpoint = self.endpoint(key);
        let Some(check) = endpoint.checks.remove(&tid) else { return };
        endpoint.checked.remove(&check.gid);
        let mut addresses = vec![check.address];
        addresses.extend(more(bytes));
        self.learn(now, key, sender, &addresses);
        self.checked(now, key, check.gid);
        let (address, other) = match check.candidate {
            None => return,
            Some(Candidate::Owner(other, address)) => (address, other.gid),
            Some(Candidate::Moved(other, mut addresses)) => (addresses.swap_remove(0), other.gid),
        };
        self.counters.conflicts += 1;
        let (endpoint, owner) = (self.name(key), check.gid);
        self.events.push_back(Event::Conflict { endpoint, address, owner, other });
    }

    /// A peer is silent: it is not where it was.
    fn silent(&mut self, now: Instant, key: EndpointKey, tid: u64) {
        let endpoint = self.endpoint(key);
        let Some(check) = endpoint.checks.remove(&tid) else { return };
        endpoint.checked.remove(&check.gid);
        let found = endpoint.cache.by_gid(check.gid);
        let peer_key = found.filter(|&peer_key| {
            let peer = endpoint.cache.peer(peer_key);
            peer.is_some_and(|peer| peer.lid == check.lid)
        });
        let gid = check.gid;
        match check.candidate {
            Some(Candidate::Owner(sender, address)) => {
                endpoint.cache.unbind(&address);
                self.learn(now, key, sender, &[address]);
            }
            Some(Candidate::Moved(sender, addresses)) => {
                if let Some(peer_key) = peer_key
                    && let Some(peer) = endpoint.cache.peer_mut(peer_key)
                {
                    (peer.lid, peer.qpn, peer.route) = (0, 0, None);
                }
                self.learn(now, key, sender, &addresses);
            }
            None => {
                let peer = peer_key.and_then(|peer_key| endpoint.cache.peer(peer_key));
                let is_used = peer.is_some_and(|peer| peer.used > peer.confirmed);
                if let Some(peer_key) = peer_key {
                    self.forget(key, peer_key);
                }
                // Whoever asks next shall not have to wait.
                if is_used {
                    self.begin_resolution(now, key, &check.address, None);
                }
            }
        }
        self.checked(now, key, gid);
    }

    /// Returns the way to a peer, as datagrams take it.
    fn way_to(&self, key: EndpointKey, gid: Gid, lid: u16, qpn: Qpn) -> Option<Destination> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_addresses_stand_behind_the_groups() {
        let all: Vec<Address> = ["node1", "10.0.0.1", "fd00::1", "node1-ib0.example"]
            .map(|text| Address::parse(text).expect("an address"))
            .into();
        for groups in 0..=6 {
            let mut bytes = [0; MAD_LENGTH];
            bytes[20] = groups;
            put_more(&mut bytes, &all[0], &all);
            let found = more(&bytes);
            assert_eq!(found.len(), usize::from(bytes[COUNT]));
            assert!(found.iter().all(|address| all[1..].contains(address)), "{found:?}");
            assert_eq!(
                found.len(),
                match groups {
                    0..=3 => 3,
                    4 | 5 => 2,
                    _ => 1,
                }
            );
        }
    }

    #[test]
    fn bytes_that_are_no_addresses_end_them() {
        let mut bytes = [0xff; MAD_LENGTH];
        assert_eq!(more(&bytes), []);
        bytes[20] = 0;
        bytes[COUNT] = 255;
        assert_eq!(more(&bytes), []);
        let room = [2, 4, 10, 0, 0, 1, 1, 3, b'a', b'b', b'c', 9, 9];
        bytes[GROUPS..GROUPS + room.len()].copy_from_slice(&room);
        assert_eq!(more(&bytes).len(), 2);
    }

    #[test]
    fn a_port_that_asks_too_fast_is_slowed_down_and_others_are_not() {
        let mut meter = Meter::default();
        let now = Instant::ZERO;
        let mut taken = 0;
        while meter.count(now, 7) == Metered::Taken {
            taken += 1;
        }
        assert_eq!(taken, BURST);
        assert_eq!(meter.count(now, 7), Metered::Dropped);
        assert_eq!(meter.count(now, 8), Metered::Taken);
        let later = now + Duration::from_secs(1);
        let taken = (0..BURST).filter(|_| meter.count(later, 7) == Metered::Taken).count();
        assert_eq!(taken, QUESTIONS as usize);
    }
}
