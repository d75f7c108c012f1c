//! Checks of cached peers: unicast requests that verify that a peer still has its LID and addresses.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::{Gid, Qpn};

use super::context::{Context, Timer};
use super::datagram::{Sender, send_request, unicast};
use super::groups::MulticastGroups;
use crate::Address;
use crate::cache::Peer;

/// Claim about a peer. The claim is accepted if the peer does not respond to a check.
#[derive(Clone, Debug)]
pub(super) enum Claim {
    /// The checked peer has moved to the LID of this sender, and has these addresses.
    Moved(Sender, Vec<Address>),
    /// The address belongs to this sender, not to the checked peer.
    Owner(Sender, Address),
    /// The checked peer no longer has this address.
    Released(Address),
}

/// An outstanding check of a peer.
#[derive(Debug)]
pub(super) struct PeerCheck {
    pub(super) gid: Gid,
    pub(super) lid: u16,
    qpn: Qpn,
    /// Requested address: one of the peer's cached addresses.
    pub(super) address: Address,
    attempts: u32,
    pub(super) claim: Option<Claim>,
    /// True if the peer did not respond to the first check. The second check requests another address of the same
    /// peer.
    pub(super) is_second: bool,
}

/// Maximum number of outstanding checks of an endpoint.
const MAX_CHECKS: usize = 1024;

/// Result of an attempt to check a peer.
#[derive(Debug)]
pub(super) enum CheckAttempt {
    /// A request was sent to the peer, or the check is no longer outstanding.
    Sent,
    /// No request can be sent: the base group is not joined, or the endpoint has no address.
    Unreachable(Gid),
    /// The peer did not respond to any attempt.
    Silent(PeerCheck),
}

/// Outstanding checks of an endpoint, at most one for each peer.
#[derive(Debug, Default)]
pub(super) struct PeerChecks {
    by_tid: BTreeMap<u64, PeerCheck>,
    peers: BTreeSet<Gid>,
}

impl PeerChecks {
    /// Returns the check with this transaction ID.
    pub(super) fn get(&self, tid: u64) -> Option<&PeerCheck> {
        self.by_tid.get(&tid)
    }

    /// Returns true if a peer is being checked.
    pub(super) fn is_checking(&self, gid: Gid) -> bool {
        self.peers.contains(&gid)
    }

    /// Returns true if a peer can be checked now.
    pub(super) fn can_start(&self, gid: Gid) -> bool {
        self.by_tid.len() < MAX_CHECKS && !self.is_checking(gid)
    }

    /// Starts to check a peer: sends it a request for `address`, one of the peer's addresses.
    pub(super) fn start(
        &mut self,
        cx: &mut Context<'_>,
        groups: &MulticastGroups,
        tid: u64,
        peer: &Peer,
        address: Address,
        claim: Option<Claim>,
    ) {
        let (gid, lid, qpn) = (peer.gid, peer.lid, Qpn::truncated(peer.qpn));
        let check = PeerCheck { gid, lid, qpn, address, attempts: 0, claim, is_second: false };
        self.insert(tid, check);
        self.attempt(cx, groups, tid);
    }

    /// Starts the second check of a peer that did not respond to the first check, `silent`. `address` is another
    /// address of this peer.
    pub(super) fn start_second(
        &mut self,
        cx: &mut Context<'_>,
        groups: &MulticastGroups,
        tid: u64,
        silent: PeerCheck,
        address: Address,
    ) -> CheckAttempt {
        self.insert(tid, PeerCheck { address, attempts: 0, is_second: true, ..silent });
        self.attempt(cx, groups, tid)
    }

    fn insert(&mut self, tid: u64, check: PeerCheck) {
        self.peers.insert(check.gid);
        self.by_tid.insert(tid, check);
    }

    /// Sends the request of a check. Removes the check if the request cannot be sent, or if no attempt is left.
    pub(super) fn attempt(
        &mut self,
        cx: &mut Context<'_>,
        groups: &MulticastGroups,
        tid: u64,
    ) -> CheckAttempt {
        let Some(check) = self.by_tid.get_mut(&tid) else { return CheckAttempt::Sent };
        if check.attempts > cx.config().retries {
            let check = self.remove(tid).expect("the check was just found");
            return CheckAttempt::Silent(check);
        }
        let attempt = check.attempts;
        check.attempts += 1;
        let to = unicast(cx, groups, check.gid, check.lid, check.qpn);
        let (Some(source), Some(to)) = (cx.identity.addresses.first().cloned(), to) else {
            let gid = check.gid;
            self.remove(tid);
            return CheckAttempt::Unreachable(gid);
        };
        cx.shared.counters.checks += 1;
        send_request(cx, groups, &check.address, &source, tid, Some(to));
        let timeout = cx.config().attempt_timeout(attempt) / 4;
        let at = cx.now + cx.jitter(timeout);
        cx.set_timer(at, Timer::PeerCheck(tid));
        CheckAttempt::Sent
    }

    /// Removes a check.
    pub(super) fn remove(&mut self, tid: u64) -> Option<PeerCheck> {
        let check = self.by_tid.remove(&tid)?;
        self.peers.remove(&check.gid);
        Some(check)
    }

    /// Removes all checks of peers.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_tid.is_empty() && self.peers.is_empty()
    }
}
