//! SA path queries of an endpoint, for pending resolutions or to refresh cached routes.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_types::{Gid, Instant};
use ib_wire::mad::sa::PathRecord;
use ib_wire::mad::{Method, TransactionId};

use super::context::{Context, Timer, backed_off};
use super::key::PathTarget;
use super::sa::{DGID, DLID, NUMB_PATH, P_KEY, REVERSIBLE, SGID, SaRequest};
use crate::cache::{SaRoute, Timestamp};

/// An outstanding path query, or a query that is scheduled for a later time.
#[derive(Debug, Default)]
pub(super) struct PathQuery {
    /// Transaction IDs of the resolutions that wait for the path.
    pub(super) resolutions: Vec<u64>,
    /// Transaction ID of the outstanding SA request.
    request: Option<TransactionId>,
    /// True if the query refreshes a cached route, and no resolution has requested the path.
    is_refresh: bool,
    /// True if a message of a peer contradicts the cached route.
    is_contradicted: bool,
    /// Number of consecutive temporary failures of the query.
    pub(super) failures: u32,
    /// Time of the next attempt to query the path, if an attempt is scheduled.
    retry: Option<Instant>,
}

/// If an endpoint has at least this number of path queries, it starts no further refresh of a cached route.
const MAX_REFRESHES: usize = 1024;

/// Minimum age of a route before the service queries the route again because a peer's message contradicts it.
const CONTRADICTION_DELAY: Duration = Duration::from_secs(10);

/// Shortest and longest delay until a failed refresh is retried.
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// Path queries of an endpoint, at most one for each destination.
#[derive(Debug, Default)]
pub(super) struct PathQueries(BTreeMap<PathTarget, PathQuery>);

impl PathQueries {
    /// Queries a path for a resolution, or to refresh a cached route if `resolution` is `None`. If there is already a
    /// query with the same destination, the resolution waits for it.
    pub(super) fn query(
        &mut self,
        cx: &mut Context<'_>,
        target: PathTarget,
        resolution: Option<u64>,
    ) {
        let is_refresh = resolution.is_none();
        if let Some(query) = self.0.get_mut(&target) {
            query.resolutions.extend(resolution);
            if is_refresh || !query.is_refresh {
                return;
            }
            // A query for a resolution replaces the query for a refresh, because it has a higher priority and more
            // retries.
            query.is_refresh = false;
            cx.cancel_sa(query.request.take());
        } else {
            if is_refresh && self.0.len() >= MAX_REFRESHES {
                return;
            }
            let resolutions = resolution.into_iter().collect();
            let query = PathQuery { resolutions, is_refresh, ..PathQuery::default() };
            self.0.insert(target, query);
        }
        self.send(cx, target);
    }

    fn send(&mut self, cx: &mut Context<'_>, target: PathTarget) {
        let Some(query) = self.0.get_mut(&target) else { return };
        query.retry = None;
        cx.identity.counters.route_queries += 1;
        cx.shared.counters.sa_queries += 1;
        let wanted = PathRecord {
            sgid: cx.port_state().link.gid(),
            reversible: true,
            numb_path: 1,
            p_key: cx.identity.p_key,
            ..PathRecord::zeroed()
        };
        let (to, wanted) = match target {
            PathTarget::Gid(dgid) => (DGID, PathRecord { dgid, ..wanted }),
            PathTarget::Lid(dlid) => (DLID, PathRecord { dlid, ..wanted }),
        };
        let components = [to, SGID, REVERSIBLE, NUMB_PATH, P_KEY];
        let purpose = SaRequest::Path { key: cx.key, target, is_refresh: query.is_refresh };
        query.request = Some(cx.send_sa(Method::GET, &components, &wanted, purpose));
    }

    /// Removes and returns a query whose response was received.
    pub(super) fn complete(&mut self, target: PathTarget) -> PathQuery {
        self.0.remove(&target).unwrap_or_default()
    }

    /// Schedules another attempt to refresh a cached route. `failures` is the number of consecutive failed queries.
    pub(super) fn retry_later(&mut self, cx: &mut Context<'_>, target: PathTarget, failures: u32) {
        let at = cx.now + cx.jitter(backed_off(RETRY, failures - 1));
        let retry = Some(at);
        let query = PathQuery { is_refresh: true, failures, retry, ..PathQuery::default() };
        self.0.insert(target, query);
        cx.set_timer(at, Timer::PathQuery(target));
    }

    /// Queries the SA again for a cached route, because a peer's message contradicts it. If the route was learned less
    /// than 10 s ago, delays the query until the route is 10 s old.
    pub(super) fn query_contradicted(
        &mut self,
        cx: &mut Context<'_>,
        gid: Gid,
        learned: Timestamp,
    ) {
        let target = PathTarget::Gid(gid);
        let age = learned.age(cx.now);
        if age >= CONTRADICTION_DELAY {
            return self.query(cx, target, None);
        }
        if self.0.contains_key(&target) || self.0.len() >= MAX_REFRESHES {
            return;
        }
        let at = cx.now + (CONTRADICTION_DELAY - age);
        let query = PathQuery {
            is_refresh: true,
            is_contradicted: true,
            retry: Some(at),
            ..PathQuery::default()
        };
        self.0.insert(target, query);
        cx.set_timer(at, Timer::PathQuery(target));
    }

    /// Sends a scheduled query if the cached route is still valid, and either in use or contradicted by a peer's
    /// message. Otherwise removes the query.
    ///
    /// `route` is the cached route with the time of its last use. `lifetime` is the lifetime of the route; `None` for
    /// no limit.
    pub(super) fn handle_timer(
        &mut self,
        cx: &mut Context<'_>,
        target: PathTarget,
        route: Option<(SaRoute, Timestamp)>,
        lifetime: Option<Duration>,
    ) {
        let Some(query) = self.0.get(&target) else { return };
        if query.retry.is_none_or(|at| at > cx.now) {
            return;
        }
        let is_useful = route.is_some_and(|(route, used)| {
            (query.is_contradicted || used > route.learned)
                && lifetime.is_none_or(|lifetime| route.learned.age(cx.now) < lifetime)
        });
        if is_useful {
            self.send(cx, target);
        } else {
            self.0.remove(&target);
        }
    }

    /// Removes a completed resolution from a query. Cancels the query if no other resolution
    /// waits for it.
    pub(super) fn leave(&mut self, cx: &mut Context<'_>, target: PathTarget, tid: u64) {
        let Some(query) = self.0.get_mut(&target) else { return };
        query.resolutions.retain(|&it| it != tid);
        if query.resolutions.is_empty() && !query.is_refresh {
            cx.cancel_sa(query.request);
            self.0.remove(&target);
        }
    }

    /// Sends the queries for resolutions again, because the SM or the LID of the port has changed. Cancels refreshes.
    pub(super) fn restart(&mut self, cx: &mut Context<'_>) {
        for (target, query) in std::mem::take(&mut self.0) {
            cx.cancel_sa(query.request);
            if !query.resolutions.is_empty() {
                let resolutions = query.resolutions;
                self.0.insert(target, PathQuery { resolutions, ..PathQuery::default() });
                self.send(cx, target);
            }
        }
    }

    /// Cancels all path queries.
    pub(super) fn cancel_all(&mut self, cx: &mut Context<'_>) {
        for query in std::mem::take(&mut self.0).into_values() {
            cx.cancel_sa(query.request);
        }
    }
}
