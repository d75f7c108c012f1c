//! Peers that are asked whether they still are where they were, and what is believed when they are silent.

use ib_types::{Gid, Instant, Qpn};
use ib_wire::mad::MAD_LENGTH;

use super::config::Event;
use super::endpoint::EndpointKey;
use super::more::more;
use super::peers::Sender;
use super::{Due, Service};
use crate::Address;
use crate::cache::PeerKey;

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
    pub(super) gid: Gid,
    pub(super) lid: u16,
    qpn: Qpn,
    address: Address,
    attempts: u32,
    candidate: Option<Candidate>,
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
}
