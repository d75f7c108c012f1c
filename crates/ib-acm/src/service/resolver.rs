//! Address and route resolution of one endpoint.
//!
//! [`Resolver`] owns the parts of an endpoint, and passes results from one part to another. A part never calls the
//! resolver. The resolver is a single module, because the results of every part pass through it.

use ib_link::Route;
use ib_mad::Completion;
use ib_types::{Gid, Instant, Qpn};
use ib_wire::acm::ClientStatus;
use ib_wire::mad::sa::PathRecord;

use super::announcements::Announcements;
use super::client_queries::ClientQueries;
use super::config::ServiceConfig;
use super::context::{Context, Timer};
use super::datagram::{self, Message, Sender, respond, send_request};
use super::event::Event;
use super::groups::{JoinResult, MulticastGroups};
use super::key::PathTarget;
use super::lookup::{PathLookup, lookup, loopback_path};
use super::path_queries::PathQueries;
use super::peer_table::has_aging_route;
use super::peers::{CheckResult, Peers};
use super::pending::PendingRequest;
use super::request::{RequestTarget, ResolveRequest};
use super::resolutions::{NextStep, ResolutionState, Resolutions};
use super::route_policy::{KnownLevels, RoutePolicy, RouteSource};
use super::sa::{SaError, SaRequest, attribute_of};
use crate::Address;
use crate::cache::{NO_GROUP, PeerKey};

/// Result of a client request.
#[derive(Debug)]
pub(super) enum Response {
    /// No result yet. The response is queued later.
    Pending,
    /// The path, which is known immediately.
    Path(PathRecord),
    /// The request failed.
    Failed(ClientStatus),
}

/// Resolves addresses and routes for an endpoint.
#[derive(Debug)]
pub(super) struct Resolver {
    pub(super) groups: MulticastGroups,
    announcements: Announcements,
    pub(super) policy: RoutePolicy,
    pub(super) peers: Peers,
    path_queries: PathQueries,
    pub(super) resolutions: Resolutions,
    client_queries: ClientQueries,
    /// True while [`Resolver::dispatch`] starts queued resolutions.
    is_dispatching: bool,
}

impl Resolver {
    /// Returns a resolver with an empty cache.
    pub(super) fn new(config: &ServiceConfig) -> Self {
        Self {
            groups: MulticastGroups::default(),
            announcements: Announcements::default(),
            policy: RoutePolicy::default(),
            peers: Peers::new(config.max_destinations),
            path_queries: PathQueries::default(),
            resolutions: Resolutions::default(),
            client_queries: ClientQueries::default(),
            is_dispatching: false,
        }
    }

    /// Joins the groups of the endpoint. Joins them again if they are joined already.
    pub(super) fn start(&mut self, cx: &mut Context<'_>, known: KnownLevels) {
        let (is_active, has_datagrams) = (cx.port_state().is_active, cx.port_state().has_datagrams);
        if !is_active {
            return;
        }
        if has_datagrams {
            let indices_changed = self.groups.join_all(cx);
            self.policy.set_protocol(cx.config().route_protocol);
            if indices_changed {
                self.peers.table.cache.for_each(|peer| peer.group = NO_GROUP);
            }
        }
        self.compare_service_levels(cx, known);
        if !has_datagrams {
            cx.report(Event::Up { endpoint: cx.name(), groups: 0 });
        }
    }

    /// Leaves all groups and fails all requests, because the endpoint is removed.
    pub(super) fn stop(&mut self, cx: &mut Context<'_>) {
        self.groups.leave_all(cx);
        self.fail_all(cx);
    }

    /// Fails all requests, because the port is down.
    pub(super) fn pause(&mut self, cx: &mut Context<'_>) {
        self.fail_all(cx);
        self.peers.checks.clear();
        self.groups.pause();
    }

    fn fail_all(&mut self, cx: &mut Context<'_>) {
        self.path_queries.cancel_all(cx);
        self.policy.cancel_query(cx);
        self.client_queries.fail_all(cx);
        for request in self.resolutions.remove_all() {
            cx.fail(&request, ClientStatus::ENOTCONN);
        }
    }

    /// Sends pending SA queries again, because the SM or the LID of the port has changed.
    pub(super) fn restart_queries(&mut self, cx: &mut Context<'_>) {
        self.path_queries.restart(cx);
        self.client_queries.restart(cx);
    }

    /// Announces changed addresses of the endpoint.
    pub(super) fn announce(&mut self, cx: &mut Context<'_>) {
        self.announcements.start(cx);
    }

    /// Compares service levels again if the configuration requires it. Otherwise continues the resolutions that wait
    /// for the comparison.
    fn compare_service_levels(&mut self, cx: &mut Context<'_>, known: KnownLevels) {
        if !self.policy.schedule_query(cx, &self.groups, known) {
            self.resume_after_comparison(cx);
        }
    }

    /// Handles a timer that expired at `at`.
    pub(super) fn handle_timer(&mut self, cx: &mut Context<'_>, at: Instant, timer: Timer) {
        match timer {
            Timer::Resolution(tid) => self.handle_resolution_timer(cx, tid),
            Timer::ClientQuery(number) => self.client_queries.handle_timer(cx, number),
            Timer::PathQuery(target) => {
                let route = self.peers.table.route_to(target);
                let lifetime = self.peers.table.lifetime_of(cx.config(), target);
                self.path_queries.handle_timer(cx, target, route, lifetime);
            }
            Timer::PeerCheck(tid) => self.handle_check_timer(cx, tid),
            Timer::Announcement => self.announcements.handle_timer(cx, &self.groups),
            Timer::Join(index) => self.groups.handle_join_timer(cx, at, index),
            Timer::Rejoin => self.groups.handle_rejoin_timer(cx, at),
            Timer::AllPaths => self.policy.handle_timer(cx),
        }
    }

    /// Handles a completed SA request.
    pub(super) fn handle_sa(
        &mut self,
        cx: &mut Context<'_>,
        request: SaRequest,
        completion: &Completion,
    ) {
        match request {
            SaRequest::Leave => {}
            SaRequest::Join { mgid, .. } => {
                match self.groups.handle_join(cx, mgid, attribute_of(completion)) {
                    None => return,
                    Some(JoinResult::Failed) => {}
                    Some(JoinResult::Joined) => self.policy.compare(cx, &self.groups),
                    Some(JoinResult::ServiceLevelChanged) => {
                        self.compare_service_levels(cx, KnownLevels::Discard);
                    }
                }
                self.complete_joins(cx);
            }
            SaRequest::Path { target, .. } => {
                self.handle_path(cx, target, attribute_of(completion));
            }
            SaRequest::AllPaths { .. } => {
                self.policy.handle_paths(cx, &self.groups, completion);
                self.resume_after_comparison(cx);
            }
            SaRequest::ClientQuery { number, .. } => {
                self.client_queries.handle_response(cx, number, completion);
            }
        }
    }

    /// If all joins are completed, announces the endpoint and starts queued resolutions.
    fn complete_joins(&mut self, cx: &mut Context<'_>) {
        let Some(is_changed) = self.groups.complete_joins(cx) else { return };
        if is_changed {
            let groups = self.groups.joined().count();
            cx.report(Event::Up { endpoint: cx.name(), groups });
            self.announcements.start(cx);
        }
        self.dispatch(cx);
    }

    /// Stores a path that the SA returned, and completes the resolutions that wait for it.
    fn handle_path(
        &mut self,
        cx: &mut Context<'_>,
        target: PathTarget,
        response: Result<PathRecord, SaError>,
    ) {
        let query = self.path_queries.complete(target);
        let response = response.and_then(|path| match target {
            PathTarget::Gid(gid) if path.dgid != gid => Err(SaError::mismatch()),
            PathTarget::Lid(lid) if path.dlid != lid => Err(SaError::mismatch()),
            _ => Ok(path),
        });
        match &response {
            Ok(path) => {
                let lmc = cx.port_state().link.lmc;
                if self.peers.table.store_path(target, path, lmc, cx.now) {
                    self.policy.store_level(cx, path.dgid, path.sl);
                }
            }
            Err(error) if error.is_final => self.peers.table.remove_route(target),
            Err(_) if self.peers.table.route_to(target).is_some() => {
                self.path_queries.retry_later(cx, target, query.failures + 1);
            }
            Err(_) => {}
        }
        let result = response.map_err(|error| error.status);
        for tid in query.resolutions {
            self.finish(cx, tid, result);
        }
    }

    /// Handles a datagram of another ACM service.
    pub(super) fn handle_datagram(
        &mut self,
        cx: &mut Context<'_>,
        route: &Route,
        qpn: Qpn,
        bytes: &[u8],
    ) {
        let limiter = &mut self.peers.limiter;
        match datagram::parse(cx, &self.groups, limiter, route, qpn, bytes) {
            None => {}
            Some((sender, Message::Request { tid, wanted, addresses })) => {
                self.learn(cx, sender, &addresses);
                respond(cx, &self.groups, &sender, tid, &wanted);
            }
            Some((sender, Message::Response { tid, addresses })) => {
                self.handle_response(cx, sender, tid.0, addresses);
            }
        }
    }

    /// Handles a peer's response to a check or to an address resolution request.
    fn handle_response(
        &mut self,
        cx: &mut Context<'_>,
        sender: Sender,
        tid: u64,
        further: Vec<Address>,
    ) {
        if let Some(check) = self.peers.checks.get(tid) {
            if (check.gid, check.lid) == (sender.gid, sender.lid) {
                self.confirm(cx, sender, tid, further);
            } else {
                cx.shared.counters.unasked += 1;
            }
            return;
        }
        let is_querying =
            |state: ResolutionState| matches!(state, ResolutionState::QueryingGroup { .. });
        let Some(resolution) = self.resolutions.get(tid).filter(|it| is_querying(it.state)) else {
            cx.shared.counters.unasked += 1;
            return;
        };
        if sender.group == NO_GROUP {
            // The peer has named none of the groups that the request listed.
            cx.shared.counters.malformed += 1;
            return;
        }
        // The service queries the base group only if it has no usable cached owner of the address. A cached owner is
        // therefore unusable here, and the sender of the response replaces it.
        let mut addresses = vec![resolution.address.clone()];
        let table = &mut self.peers.table;
        if table.owner(&addresses[0]).is_some_and(|peer| peer.gid != sender.gid) {
            table.cache.unbind(&addresses[0]);
        }
        addresses.extend(further);
        self.learn(cx, sender, &addresses);
    }

    /// Handles the response of a peer to a check.
    fn confirm(&mut self, cx: &mut Context<'_>, sender: Sender, tid: u64, further: Vec<Address>) {
        let Some(check) = self.peers.checks.remove(tid) else { return };
        let gid = check.gid;
        let mut addresses = vec![check.address.clone()];
        addresses.extend(further);
        self.learn(cx, sender, &addresses);
        self.resume_checked(cx, gid);
        self.peers.remove_aging_fabric_addresses(cx, gid);
        self.peers.verify_next_address(cx, &self.groups, &mut self.path_queries, gid);
        Peers::reject_claim(cx, check);
    }

    /// Stores the claims of a peer, and continues the resolutions of its addresses.
    fn learn(&mut self, cx: &mut Context<'_>, sender: Sender, addresses: &[Address]) {
        let Self { peers, groups, path_queries, .. } = self;
        if peers.learn(cx, groups, path_queries, sender, addresses) {
            self.resume_found(cx, addresses);
        }
    }

    fn handle_check_timer(&mut self, cx: &mut Context<'_>, tid: u64) {
        let Self { peers, groups, path_queries, .. } = self;
        match peers.handle_check_timer(cx, groups, path_queries, tid) {
            CheckResult::Pending => {}
            CheckResult::Unreachable(gid) => self.resume_unchecked(cx, gid),
            CheckResult::Silent { gid, found, unowned } => {
                self.resume_found(cx, &found);
                if let Some(address) = unowned {
                    self.resolve(cx, &address, None);
                }
                self.resume_checked(cx, gid);
                self.peers.verify_next_address(cx, &self.groups, &mut self.path_queries, gid);
            }
        }
    }

    /// Handles a client request.
    pub(super) fn request(
        &mut self,
        cx: &mut Context<'_>,
        request: ResolveRequest,
        pending: &PendingRequest,
    ) -> Response {
        if !cx.port_state().is_active {
            return Response::Failed(ClientStatus::ENOTCONN);
        }
        if cx.shared.pending.count > cx.config().max_pending {
            return Response::Failed(ClientStatus::ENOMEM);
        }
        let address = match request.target {
            RequestTarget::SaQuery(path) => {
                self.client_queries.start(cx, path, pending.clone());
                return Response::Pending;
            }
            RequestTarget::Address(address) => address,
        };
        if let Some(path) = loopback_path(cx, &address) {
            return Response::Path(path);
        }
        match self.lookup(cx, &address) {
            PathLookup::Fresh(path) => {
                count_cached(cx);
                return Response::Path(*path);
            }
            PathLookup::Aging(path) => {
                count_cached(cx);
                self.refresh(cx, &address);
                return Response::Path(*path);
            }
            found if request.no_delay => {
                if let PathLookup::Stale(key) = found {
                    self.peers.check(cx, &self.groups, key, None);
                }
                return Response::Failed(ClientStatus::ENODATA);
            }
            _ => {}
        }
        self.resolve(cx, &address, Some(pending.clone()));
        Response::Pending
    }

    fn lookup(&mut self, cx: &Context<'_>, address: &Address) -> PathLookup {
        lookup(cx, &mut self.peers.table, &self.groups, &self.policy, address)
    }

    /// Refreshes the cached path to an address.
    fn refresh(&mut self, cx: &mut Context<'_>, address: &Address) {
        let table = &self.peers.table;
        let key = match address {
            Address::Gid(gid) => table.cache.by_gid(*gid),
            address => table.cache.lookup(address),
        };
        let Some((key, peer)) = key.and_then(|key| Some((key, table.cache.peer(key)?))) else {
            return;
        };
        let (gid, has_service) = (peer.gid, peer.qpn != 0);
        let is_route_aging = self.policy.source(&self.groups, peer) == RouteSource::Sa
            && has_aging_route(cx.config(), cx.now, peer);
        if has_service {
            self.verify(cx, key);
        }
        if is_route_aging {
            self.path_queries.query(cx, PathTarget::Gid(gid), None);
        }
        if let Address::Lid(lid) = address
            && self.peers.table.lid_routes.contains_key(lid)
        {
            self.path_queries.query(cx, PathTarget::Lid(*lid), None);
        }
    }

    fn verify(&mut self, cx: &mut Context<'_>, key: PeerKey) {
        self.peers.verify(cx, &self.groups, &mut self.path_queries, key);
    }

    /// Resolves an address for a client request, or in the background.
    pub(super) fn resolve(
        &mut self,
        cx: &mut Context<'_>,
        address: &Address,
        request: Option<PendingRequest>,
    ) {
        match self.resolutions.start(cx, address, request) {
            NextStep::None => {}
            NextStep::Dispatch => self.dispatch(cx),
            NextStep::QueryGroup(tid) => self.query_group(cx, tid),
        }
    }

    /// Starts queued resolutions.
    fn dispatch(&mut self, cx: &mut Context<'_>) {
        // A resolution that completes immediately calls this function again. The inner call returns, because the loop
        // below starts further resolutions.
        if std::mem::replace(&mut self.is_dispatching, true) {
            return;
        }
        let depth = cx.config().resolve_depth.max(1);
        while let Some(tid) = self.resolutions.next(depth) {
            self.advance(cx, tid);
        }
        self.is_dispatching = false;
    }

    /// Continues a resolution: completes it from the cache, checks the cached owner, or sends the missing query.
    fn advance(&mut self, cx: &mut Context<'_>, tid: u64) {
        let Some(resolution) = self.resolutions.get(tid) else { return };
        let address = resolution.address.clone();
        match self.lookup(cx, &address) {
            PathLookup::Fresh(path) | PathLookup::Aging(path) => {
                cx.identity.counters.address_cached += 1;
                self.finish(cx, tid, Ok(*path));
            }
            PathLookup::Stale(key) => self.check_owner(cx, tid, key),
            PathLookup::NoRoute => self.query_path(cx, tid, &address),
            PathLookup::NoGroup | PathLookup::Unknown => self.query_address(cx, tid, &address),
        }
    }

    /// Verifies the cached owner of an address.
    fn check_owner(&mut self, cx: &mut Context<'_>, tid: u64, key: PeerKey) {
        let gid = self.peers.table.cache.peer(key).expect("the lookup returned the peer").gid;
        if let Some(resolution) = self.resolutions.get_mut(tid) {
            resolution.state = ResolutionState::CheckingPeer { gid };
        }
        self.peers.check(cx, &self.groups, key, None);
        if !self.peers.checks.is_checking(gid) {
            // The check was not started, because there are too many checks or the peer is unreachable.
            self.resume_unchecked(cx, gid);
        }
    }

    /// Starts the query that resolves an address. For a GID or a LID, it is a path query to the SA. For a name or an IP
    /// address, it is an address resolution request to the base group.
    fn query_address(&mut self, cx: &mut Context<'_>, tid: u64, address: &Address) {
        match address {
            Address::Gid(_) | Address::Lid(_) => self.query_path(cx, tid, address),
            _ => self.query_group(cx, tid),
        }
    }

    /// Sends an address resolution request to the base group, and schedules the next attempt.
    fn query_group(&mut self, cx: &mut Context<'_>, tid: u64) {
        let source = cx.identity.addresses.first().filter(|_| cx.port_state().has_datagrams);
        let source = source.cloned();
        let Some(resolution) = self.resolutions.get_mut(tid) else { return };
        let Some(source) = source else {
            return self.finish(cx, tid, Err(ClientStatus::ENODATA));
        };
        let attempts = match resolution.state {
            ResolutionState::QueryingGroup { attempts } => attempts,
            _ => 0,
        };
        // If the base group is not joined yet, no request is sent, but the attempt counts like one whose request was
        // lost.
        resolution.state = ResolutionState::QueryingGroup { attempts: attempts + 1 };
        if self.groups.base().is_some() {
            cx.identity.counters.address_queries += 1;
            send_request(cx, &self.groups, &resolution.address, &source, tid, None);
        }
        let timeout = cx.config().attempt_timeout(attempts);
        let at = cx.now + cx.jitter(timeout);
        self.resolutions.set_retry(cx, tid, at);
    }

    /// Queries the path to an address, or waits for the comparison of service levels.
    fn query_path(&mut self, cx: &mut Context<'_>, tid: u64, address: &Address) {
        let Some(resolution) = self.resolutions.get_mut(tid) else { return };
        resolution.state = ResolutionState::QueryingPath;
        let peer = self.peers.table.owner(address);
        if peer.is_some_and(|it| self.policy.source(&self.groups, it) == RouteSource::Pending) {
            self.resolutions.await_comparison(tid);
            return;
        }
        let target = match address {
            Address::Lid(lid) => Some(PathTarget::Lid(*lid)),
            Address::Gid(gid) => Some(PathTarget::Gid(*gid)),
            _ => peer.map(|peer| PathTarget::Gid(peer.gid)),
        };
        let Some(target) = target else {
            return self.finish(cx, tid, Err(ClientStatus::ETIMEDOUT));
        };
        let before = resolution.path_query.replace(target);
        if let Some(before) = before.filter(|&before| before != target) {
            self.path_queries.leave(cx, before, tid);
        }
        self.path_queries.query(cx, target, Some(tid));
    }

    /// Handles the retry timer or the time limit of a resolution.
    fn handle_resolution_timer(&mut self, cx: &mut Context<'_>, tid: u64) {
        let Some(resolution) = self.resolutions.get(tid) else { return };
        let is_expired = self.resolutions.is_expired(tid, cx.now);
        let attempts = match resolution.state {
            ResolutionState::QueryingGroup { attempts } => Some(attempts),
            _ => None,
        };
        if is_expired || attempts.is_some_and(|attempts| attempts > cx.config().retries) {
            self.finish(cx, tid, Err(ClientStatus::ETIMEDOUT));
        } else if attempts.is_some() {
            self.query_group(cx, tid);
        }
    }

    /// Continues resolutions that waited for the check of this peer. The check is complete.
    fn resume_checked(&mut self, cx: &mut Context<'_>, gid: Gid) {
        for tid in self.resolutions.checking_peer(gid) {
            self.advance(cx, tid);
        }
    }

    /// Queries the addresses of resolutions that waited for the check of this peer. The peer cannot be checked.
    fn resume_unchecked(&mut self, cx: &mut Context<'_>, gid: Gid) {
        for tid in self.resolutions.checking_peer(gid) {
            if let Some(resolution) = self.resolutions.get(tid) {
                let address = resolution.address.clone();
                self.query_address(cx, tid, &address);
            }
        }
    }

    /// Continues resolutions of addresses whose owner is cached now.
    fn resume_found(&mut self, cx: &mut Context<'_>, addresses: &[Address]) {
        for address in addresses {
            if let Some(tid) = self.resolutions.querying_group(address) {
                self.advance(cx, tid);
            }
        }
    }

    /// Continues resolutions that wait for the comparison of service levels.
    fn resume_after_comparison(&mut self, cx: &mut Context<'_>) {
        for tid in self.resolutions.take_awaiting_comparison() {
            self.advance(cx, tid);
        }
    }

    /// Completes a resolution, and responds to its client requests.
    fn finish(&mut self, cx: &mut Context<'_>, tid: u64, result: Result<PathRecord, ClientStatus>) {
        let Some(resolution) = self.resolutions.remove(cx, tid) else { return };
        if let Some(target) = resolution.path_query {
            self.path_queries.leave(cx, target, tid);
        }
        for request in &resolution.requests {
            match &result {
                Ok(path) => cx.shared.pending.succeed(request, path),
                Err(status) => cx.fail(request, *status),
            }
        }
        self.dispatch(cx);
    }

    /// Sweeps a part of the cache: verifies peers in use, refreshes their routes, and removes expired entries. `share`
    /// is the size of the part, as a fraction of the cache.
    pub(super) fn sweep(&mut self, cx: &mut Context<'_>, share: f64) {
        let Self { peers, groups, policy, .. } = self;
        let is_routed_by_sa = |peer: &_| policy.source(groups, peer) == RouteSource::Sa;
        let due = peers.table.sweep(cx.config(), cx.now, share, is_routed_by_sa);
        for key in due.expired {
            self.peers.table.remove(key);
        }
        for key in due.unverified {
            self.verify(cx, key);
        }
        for gid in due.aging_routes {
            self.path_queries.query(cx, PathTarget::Gid(gid), None);
        }
        for lid in self.peers.table.sweep_lid_routes(cx.config(), cx.now) {
            self.path_queries.query(cx, PathTarget::Lid(lid), None);
        }
    }
}

/// Counts a request for which the address and the route were in the cache.
const fn count_cached(cx: &mut Context<'_>) {
    cx.identity.counters.address_cached += 1;
    cx.identity.counters.route_cached += 1;
}
