//! Peers that are asked whether they still are where they were, and what is believed when they are silent.

use ib_types::{Gid, Instant, Qpn};
use ib_wire::mad::MAD_LENGTH;

use super::config::Event;
use super::endpoint::EndpointKey;
use super::peers::{Sender, told};
use super::route::Target;
use super::{Due, Service};
use crate::Address;
use crate::cache::{PeerKey, is_of_fabric};

/// What is believed when a check is not answered.
#[derive(Clone, Debug)]
pub(super) enum Candidate {
    /// The peer is at another LID, with these addresses.
    Moved(Sender, Vec<Address>),
    /// The address belongs to another peer.
    Owner(Sender, Address),
    /// The address is not the peer's any more, which has others.
    Nobody(Address),
}

/// A question to a peer, whether it still is where it was.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) gid: Gid,
    pub(super) lid: u16,
    qpn: Qpn,
    address: Address,
    attempts: u32,
    candidate: Option<Candidate>,
    /// Whether it was silent when it was asked for another of its addresses.
    is_second: bool,
}

/// The most checks of an endpoint at a time.
const MOST_CHECKS: usize = 1024;

impl Service {
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
            Some(Candidate::Owner(_, address) | Candidate::Nobody(address)) => {
                Some(address.clone())
            }
            _ => endpoint.cache.address_to_ask(peer_key, None).cloned(),
        };
        let (Some(address), true) = (address, peer.qpn != 0) else {
            // Nobody can be asked: what a file says stays, and so does what subnet administration says of a GID.
            let is_claimed = matches!(candidate, Some(Candidate::Moved(..) | Candidate::Owner(..)));
            self.counters.conflicts += u64::from(is_claimed);
            return;
        };
        endpoint.checked.insert(gid);
        let check = Check { gid, lid, qpn, address, attempts: 0, candidate, is_second: false };
        endpoint.checks.insert(tid, check);
        self.check_due(now, key, tid);
    }

    /// Asks a peer that is in use whether it still is where it was, or whether one of its addresses still is its own: a
    /// peer may tell one address at a time, and each is known for so long only.
    pub(super) fn check_known(&mut self, now: Instant, key: EndpointKey, peer_key: PeerKey) {
        let limit = self.config.check_age();
        let Some(peer) = self.endpoint(key).cache.peer(peer_key) else { return };
        let is_old = limit.is_some_and(|limit| peer.confirmed.age(now) >= limit);
        if is_old || !self.check_address(now, key, peer_key) {
            self.check(now, key, peer_key, None);
        }
    }

    /// Asks a peer for an address of its that grows old; returns whether there is one.
    fn check_address(&mut self, now: Instant, key: EndpointKey, peer_key: PeerKey) -> bool {
        let Some(age) = self.config.address_age() else { return false };
        let cache = &self.endpoint(key).cache;
        let Some(address) = cache.aging_address(peer_key, now, age, |_| true).cloned() else {
            return false;
        };
        let gid = cache.peer(peer_key).map(|peer| peer.gid);
        match (is_of_fabric(&address), gid) {
            (false, _) => self.check(now, key, peer_key, Some(Candidate::Nobody(address))),
            // Whatever the peer says, it says with its GID and from its LID.
            (true, _) if cache.address_to_ask(peer_key, None).is_some() => {
                self.check(now, key, peer_key, None);
            }
            (true, Some(gid)) => self.ask_route(key, Target::Gid(gid), None),
            (true, None) => return false,
        }
        true
    }

    /// Leaves out the GIDs and LIDs of a peer that has just answered which it did not answer with, once they are old:
    /// asking again would tell no more of them. Whoever asks for one has subnet administration say whose it is.
    fn leave_out_of_fabric(&mut self, now: Instant, key: EndpointKey, gid: Gid) {
        let Some(age) = self.config.address_age() else { return };
        let cache = &mut self.endpoint(key).cache;
        while let Some(peer_key) = cache.by_gid(gid)
            && let Some(address) = cache.aging_address(peer_key, now, age, is_of_fabric).cloned()
        {
            cache.unbind(&address);
        }
    }

    /// Goes on with a peer that has been asked: others of its addresses may grow old as well.
    fn check_further(&mut self, now: Instant, key: EndpointKey, gid: Gid) {
        if let Some(peer_key) = self.endpoint(key).cache.by_gid(gid) {
            self.check_address(now, key, peer_key);
        }
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
            return self.not_checked(now, key, gid);
        };
        self.counters.checks += 1;
        self.send_question(key, &address, &source, tid, Some(to));
        let patience = self.config.patience(attempt) / 4;
        let patience = self.about(patience);
        self.at(now + patience, Due::Check(key, tid));
    }

    /// A peer has said that it still is where it was.
    pub(super) fn confirmed(
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
        let mut addresses = vec![check.address.clone()];
        addresses.extend(told(bytes));
        self.learn(now, key, sender, &addresses);
        self.checked(now, key, check.gid);
        self.leave_out_of_fabric(now, key, check.gid);
        self.check_further(now, key, check.gid);
        let (address, other) = match check.candidate {
            None | Some(Candidate::Nobody(_)) => return,
            Some(Candidate::Owner(other, address)) => (address, other.gid),
            // Whoever claims a GID may have told nothing else.
            Some(Candidate::Moved(other, addresses)) => {
                (addresses.into_iter().next().unwrap_or(check.address), other.gid)
            }
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
                // Another one that has it by now, or that is elsewhere, has not been asked.
                if peer_key.is_some() && endpoint.cache.lookup(&address) == peer_key {
                    endpoint.cache.unbind(&address);
                }
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
            Some(Candidate::Nobody(address)) => {
                if peer_key.is_some() && endpoint.cache.lookup(&address) == peer_key {
                    endpoint.cache.unbind(&address);
                    // Another peer may have it now.
                    self.begin_resolution(now, key, &address, None);
                }
            }
            None => {
                // It may have lost that address alone: nobody says that an address is not its own.
                let other = peer_key.and_then(|it| {
                    endpoint.cache.address_to_ask(it, Some(&check.address)).cloned()
                });
                if let Some(address) = other.filter(|_| !check.is_second) {
                    endpoint.checked.insert(gid);
                    let check = Check { address, attempts: 0, is_second: true, ..check };
                    endpoint.checks.insert(tid, check);
                    return self.check_due(now, key, tid);
                }
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
        self.check_further(now, key, gid);
    }
}
