//! Peers of an endpoint: the claims of other ACM services, and the checks before claims are accepted.
//!
//! A peer can claim any GID and address, even those of other ports. Only its source LID is reliable, because the fabric
//! delivers responses to this LID.
//!
//! * A claim to a GID or an address of another port is accepted only if the old owner does not respond to a check.
//! * If only the SA or a file has reported a GID, the GID keeps the reported LID. A different claim triggers an SA
//!   query, at most every 10 seconds, and is accepted once the SA confirms it.
//! * A response is accepted only with the random number of an outstanding request. The response to a check must also
//!   come from the port that was checked.
//! * A port can claim 16 new GIDs in a minute, and 64 addresses for each GID. The rate of its requests is limited, too.

use std::time::Duration;

use ib_types::Gid;

use super::checks::{CheckAttempt, Claim, PeerCheck, PeerChecks};
use super::context::Context;
use super::datagram::Sender;
use super::event::Event;
use super::groups::MulticastGroups;
use super::key::PathTarget;
use super::limiter::RequestLimiter;
use super::path_queries::PathQueries;
use super::peer_table::PeerTable;
use crate::Address;
use crate::cache::{BindResult, NO_GROUP, PeerKey, SaRoute, Timestamp, is_assigned_by_sm};

/// Two GIDs that were confirmed with the same LID within this time are assumed to belong to the same port. If more time
/// passes between the confirmations, the GID that was confirmed earlier is checked.
const SHARED_LID: Duration = Duration::from_secs(1);

/// Result of a check whose timer expired.
#[derive(Debug)]
pub(super) enum CheckResult {
    /// The check continues with another request.
    Pending,
    /// The peer cannot be checked.
    Unreachable(Gid),
    /// The peer did not respond, and the cache was updated.
    Silent {
        gid: Gid,
        /// Addresses that another peer has claimed and now owns.
        found: Vec<Address>,
        /// Address that has no owner now and has to be resolved.
        unowned: Option<Address>,
    },
}

/// The cached peers of an endpoint, their checks, and the rate limits of their claims.
#[derive(Debug)]
pub(super) struct Peers {
    pub(super) table: PeerTable,
    pub(super) checks: PeerChecks,
    pub(super) limiter: RequestLimiter,
}

impl Peers {
    /// Creates an empty table for at most this number of addresses.
    pub(super) fn new(max_addresses: usize) -> Self {
        Self {
            table: PeerTable::new(max_addresses),
            checks: PeerChecks::default(),
            limiter: RequestLimiter::default(),
        }
    }

    /// Stores the LID and the addresses that a peer claims, as far as they are accepted. Returns true if the peer was
    /// updated.
    ///
    /// If a claim contradicts the cached data of a port, starts a check of this port or an SA query.
    pub(super) fn learn(
        &mut self,
        cx: &mut Context<'_>,
        groups: &MulticastGroups,
        queries: &mut PathQueries,
        sender: Sender,
        addresses: &[Address],
    ) -> bool {
        let (now, lmc) = (cx.now, cx.port_state().link.lmc);
        let Sender { gid, lid, qpn, group } = sender;
        let cache = &mut self.table.cache;
        if cache.by_gid(gid).is_none() && !self.limiter.admit_gid(now, lid, gid) {
            cx.shared.counters.refused += 1;
            return false;
        }
        let is_elsewhere = |route: SaRoute| (route.dlid() ^ lid) >> lmc != 0;
        let key = cache.peer_of(gid, now);
        let Some(peer) = cache.peer_mut(key) else { return false };
        if let (0, Some(route)) = (peer.qpn, peer.route.filter(|&route| is_elsewhere(route))) {
            // The port that is cached for the GID has no ACM service, so it cannot be checked. The SA is queried for
            // the LID of the GID.
            cx.shared.counters.conflicts += 1;
            queries.query_contradicted(cx, gid, route.learned);
            return false;
        }
        if peer.lid != 0 && peer.lid != lid && peer.qpn != 0 {
            let moved = Claim::Moved(sender, addresses.to_vec());
            self.check(cx, groups, key, Some(moved));
            return false;
        }
        (peer.lid, peer.qpn, peer.confirmed) = (lid, qpn.get(), Timestamp::of(now));
        peer.route = peer.route.filter(|&route| !is_elsewhere(route));
        if group != NO_GROUP || peer.group == NO_GROUP {
            peer.group = group;
        }
        // The former peer of this LID may have got another LID, so it is checked. It is not checked if it was confirmed
        // within `SHARED_LID`, because both peers may then be GIDs of one port.
        let mut others = Vec::new();
        let former = self.table.set_lid(lid, gid).filter(|&former| former != gid);
        let cache = &mut self.table.cache;
        if let Some(former) = former.and_then(|former| cache.by_gid(former))
            && cache
                .peer(former)
                .is_some_and(|peer| peer.lid == lid && peer.confirmed.age(now) > SHARED_LID)
        {
            others.push((former, None));
        }
        cache.confirm_source(key, gid, lid, now);
        for address in addresses {
            match cache.bind(address, key, now, false) {
                BindResult::New | BindResult::Same => {}
                BindResult::TooMany => cx.shared.counters.refused += 1,
                BindResult::Other(owner) => {
                    others.push((owner, Some(Claim::Owner(sender, address.clone()))));
                }
            }
        }
        cache.remove_if_nameless(key);
        for (other, claim) in others {
            self.check(cx, groups, other, claim);
        }
        true
    }

    /// Starts a check of a peer. If the peer does not respond to it, `claim` is accepted.
    pub(super) fn check(
        &mut self,
        cx: &mut Context<'_>,
        groups: &MulticastGroups,
        key: PeerKey,
        claim: Option<Claim>,
    ) {
        let tid = cx.random();
        let cache = &self.table.cache;
        let Some(peer) = cache.peer(key).filter(|peer| self.checks.can_start(peer.gid)) else {
            return;
        };
        let address = match &claim {
            Some(Claim::Owner(_, address) | Claim::Released(address)) => Some(address.clone()),
            _ => cache.address_to_query(key, None).cloned(),
        };
        match address.filter(|_| peer.qpn != 0) {
            Some(address) => self.checks.start(cx, groups, tid, peer, address, claim),
            // A port without an ACM service cannot respond, so its preloaded data and the GIDs that the SA reported are
            // kept.
            None => {
                let is_claimed = matches!(claim, Some(Claim::Moved(..) | Claim::Owner(..)));
                cx.shared.counters.conflicts += u64::from(is_claimed);
            }
        }
    }

    /// Verifies a peer in use. A message confirms only the addresses that it contains, so a recently confirmed peer can
    /// have addresses in use that were not confirmed recently. In this case, verifies the oldest of these addresses.
    pub(super) fn verify(
        &mut self,
        cx: &mut Context<'_>,
        groups: &MulticastGroups,
        queries: &mut PathQueries,
        key: PeerKey,
    ) {
        let Some(peer) = self.table.cache.peer(key) else { return };
        let age = peer.confirmed.age(cx.now);
        let is_old = cx.config().peer_check_age().is_some_and(|limit| age >= limit);
        if is_old || !self.verify_address(cx, groups, queries, key) {
            self.check(cx, groups, key, None);
        }
    }

    /// Verifies an address that is in use and was not confirmed recently. Returns false if the peer has no such
    /// address.
    fn verify_address(
        &mut self,
        cx: &mut Context<'_>,
        groups: &MulticastGroups,
        queries: &mut PathQueries,
        key: PeerKey,
    ) -> bool {
        let Some(age) = cx.config().address_check_age() else { return false };
        let cache = &self.table.cache;
        let Some(address) = cache.aging_address(key, cx.now, age, |_| true).cloned() else {
            return false;
        };
        let gid = cache.peer(key).map(|peer| peer.gid);
        match (is_assigned_by_sm(&address), gid) {
            (false, _) => self.check(cx, groups, key, Some(Claim::Released(address))),
            // Any response of the peer confirms its GID and its LID, so a check with any of its addresses suffices.
            (true, _) if cache.address_to_query(key, None).is_some() => {
                self.check(cx, groups, key, None);
            }
            (true, Some(gid)) => queries.query(cx, PathTarget::Gid(gid), None),
            (true, None) => return false,
        }
        true
    }

    /// After a completed check of a peer: verifies the peer's next address that is in use and was not confirmed
    /// recently.
    pub(super) fn verify_next_address(
        &mut self,
        cx: &mut Context<'_>,
        groups: &MulticastGroups,
        queries: &mut PathQueries,
        gid: Gid,
    ) {
        if let Some(key) = self.table.cache.by_gid(gid) {
            self.verify_address(cx, groups, queries, key);
        }
    }

    /// Removes GIDs and LIDs of a peer that were not confirmed recently, because the peer has just responded with other
    /// ones. When a removed GID or LID is resolved next, the SA reports its owner.
    pub(super) fn remove_aging_fabric_addresses(&mut self, cx: &Context<'_>, gid: Gid) {
        let Some(age) = cx.config().address_check_age() else { return };
        let cache = &mut self.table.cache;
        while let Some(key) = cache.by_gid(gid)
            && let Some(address) = cache.aging_address(key, cx.now, age, is_assigned_by_sm).cloned()
        {
            cache.unbind(&address);
        }
    }

    /// Rejects the claim that caused this check: that the peer has lost its address or LID to another peer. The peer has
    /// responded.
    pub(super) fn reject_claim(cx: &mut Context<'_>, check: PeerCheck) {
        let (address, other) = match check.claim {
            None | Some(Claim::Released(_)) => return,
            Some(Claim::Owner(other, address)) => (address, other.gid),
            Some(Claim::Moved(other, addresses)) => {
                (addresses.into_iter().next().unwrap_or(check.address), other.gid)
            }
        };
        cx.shared.counters.conflicts += 1;
        let endpoint = cx.name();
        cx.report(Event::Conflict { endpoint, address, owner: check.gid, other });
    }

    /// Continues a check after a response timeout.
    pub(super) fn handle_check_timer(
        &mut self,
        cx: &mut Context<'_>,
        groups: &MulticastGroups,
        queries: &mut PathQueries,
        tid: u64,
    ) -> CheckResult {
        match self.checks.attempt(cx, groups, tid) {
            CheckAttempt::Sent => CheckResult::Pending,
            CheckAttempt::Unreachable(gid) => CheckResult::Unreachable(gid),
            CheckAttempt::Silent(check) => self.handle_silent(cx, groups, queries, tid, check),
        }
    }

    /// Completes a check to which the peer did not respond: accepts the claim or, if the check has no claim, removes
    /// the peer.
    fn handle_silent(
        &mut self,
        cx: &mut Context<'_>,
        groups: &MulticastGroups,
        queries: &mut PathQueries,
        tid: u64,
        mut check: PeerCheck,
    ) -> CheckResult {
        let gid = check.gid;
        let cache = &mut self.table.cache;
        // Ignores the peer if its LID has changed since the check was started.
        let key = cache
            .by_gid(gid)
            .filter(|&key| cache.peer(key).is_some_and(|peer| peer.lid == check.lid));
        let (mut found, mut unowned) = (Vec::new(), None);
        match check.claim.take() {
            Some(Claim::Owner(sender, address)) => {
                // The address remains in the cache if it now belongs to a peer other than the checked one.
                if key.is_some() && cache.lookup(&address) == key {
                    cache.unbind(&address);
                }
                if self.learn(cx, groups, queries, sender, std::slice::from_ref(&address)) {
                    found.push(address);
                }
            }
            Some(Claim::Moved(sender, addresses)) => {
                if let Some(peer) = key.and_then(|key| cache.peer_mut(key)) {
                    (peer.lid, peer.qpn, peer.route) = (0, 0, None);
                }
                if self.learn(cx, groups, queries, sender, &addresses) {
                    found = addresses;
                }
            }
            Some(Claim::Released(address)) => {
                if key.is_some() && cache.lookup(&address) == key {
                    cache.unbind(&address);
                    unowned = Some(address);
                }
            }
            None => {
                // A peer that has lost only the requested address does not respond to the check, so another address is
                // tried.
                let other =
                    key.and_then(|it| cache.address_to_query(it, Some(&check.address)).cloned());
                if let Some(address) = other.filter(|_| !check.is_second) {
                    return match self.checks.start_second(cx, groups, tid, check, address) {
                        CheckAttempt::Unreachable(gid) => CheckResult::Unreachable(gid),
                        CheckAttempt::Sent | CheckAttempt::Silent(_) => CheckResult::Pending,
                    };
                }
                let peer = key.and_then(|key| cache.peer(key));
                let is_used = peer.is_some_and(|peer| peer.used > peer.confirmed);
                if let Some(key) = key {
                    self.table.remove(key);
                }
                // The address is resolved in advance, so that the next client that requests it does not have to wait.
                unowned = is_used.then_some(check.address);
            }
        }
        CheckResult::Silent { gid, found, unowned }
    }
}
