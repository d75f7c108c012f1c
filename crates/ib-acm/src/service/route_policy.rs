//! Decides whether the route to a peer is derived from a multicast group or queried from the SA.
//!
//! With `route_prot acm`, the route to a peer is derived from a group if the path to the peer has the service level of
//! the group. To compare the service levels, the endpoint queries all paths of its port from the SA. Resolutions wait
//! for the result. The route to a peer is queried from the SA if the path has another service level. It is also queried
//! if the service level is unknown, because the SA did not return the paths.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_mad::Completion;
use ib_types::{Gid, Instant};
use ib_wire::mad::sa::PathRecord;
use ib_wire::mad::{MadStatus, Method};

use super::context::{Context, Timer, backed_off};
use super::event::Event;
use super::groups::MulticastGroups;
use super::sa::{NUMB_PATH, P_KEY, REVERSIBLE, SGID, SaError, SaRequest};
use crate::cache::Peer;
use crate::config::options::RouteProtocol;

/// Progress of the comparison of service levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Comparison {
    /// Service levels are not compared, so routes are derived from groups without a comparison.
    #[default]
    Disabled,
    /// All paths of the port are being queried from the SA.
    Pending,
    /// The SA did not return the paths.
    Failed,
    /// The service levels of all paths are known.
    Complete,
}

/// Source of the route to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteSource {
    /// The route is derived from the multicast group that both ports have joined.
    Group,
    /// The route is queried from the SA.
    Sa,
    /// The source of the route is not known until service levels are compared.
    Pending,
}

/// Treatment of known service levels when all paths are queried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownLevels {
    /// Known service levels remain in use until the SA returns others.
    Keep,
    /// The service levels are invalid, because there is another SM or the port has another LID.
    Discard,
}

/// Value of `by_port` for a destination port whose paths have different service levels.
const SEVERAL: u8 = u8::MAX;

/// Shortest delay before the query of all paths.
const QUERY_DELAY: Duration = Duration::from_millis(200);
/// Additional delay before the query of all paths, for each path whose service level is known and remains in use.
const QUERY_DELAY_PER_PATH: Duration = Duration::from_millis(2);
/// Longest delay before the query of all paths.
const QUERY_DELAY_MAX: Duration = Duration::from_secs(30);

/// Shortest and longest delay before the query of all paths is repeated. The query is repeated if it failed, or if the
/// response to a query of a single path had an unexpected service level.
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// Shortest and longest delay before the query of all paths is repeated, while service levels of paths differ from the
/// service levels of groups.
const RECOMPARE: [Duration; 2] = [Duration::from_mins(5), Duration::from_hours(1)];

/// Route protocol of an endpoint, and the service levels that the SA gives to its paths.
#[derive(Debug, Default)]
pub(super) struct RoutePolicy {
    protocol: RouteProtocol,
    levels: ServiceLevels,
}

/// Service levels of the paths of an endpoint.
#[derive(Debug, Default)]
struct ServiceLevels {
    comparison: Comparison,
    /// Service level of all paths, if it is the same for all. It is also assumed for the paths to new ports.
    common: Option<u8>,
    /// Service levels by destination port. Empty if all paths have the same service level.
    by_port: BTreeMap<Gid, u8>,
    /// Service level and destination of the first path. They are reported as an example if this service level differs
    /// from the service level of a group.
    example: Option<(u8, Gid)>,
    /// Number of paths whose service levels are stored.
    paths: usize,
    /// Number of failed queries of all paths since the last successful query.
    failures: u32,
    /// Number of consecutive comparisons in which service levels of paths differed from those of groups.
    mismatches: u32,
    /// Number of responses to queries of a single path whose service level differed from the stored one.
    surprises: u32,
    /// Time of the next query of all paths.
    next_query: Option<Instant>,
    /// Counts in the last report of differences: paths whose service level differs from the service level of a group,
    /// and all paths.
    reported: Option<(usize, usize)>,
}

impl ServiceLevels {
    /// Returns the service level of the path to a port; `None` if it is not known.
    fn of(&self, gid: Gid) -> Option<u8> {
        self.by_port.get(&gid).copied().or(self.common)
    }

    /// Stores the service levels of all paths.
    fn store(&mut self, paths: &[PathRecord]) {
        self.by_port.clear();
        for path in paths {
            let level = self.by_port.entry(path.dgid).or_insert(path.sl);
            if *level != path.sl {
                *level = SEVERAL;
            }
        }
        let first = paths.first();
        self.common = first.map(|path| path.sl);
        if paths.iter().all(|path| Some(path.sl) == self.common) {
            self.by_port.clear();
        } else {
            self.common = None;
        }
        (self.example, self.paths) = (first.map(|path| (path.sl, path.dgid)), paths.len());
        (self.comparison, self.failures) = (Comparison::Complete, 0);
    }

    /// Returns the number of paths whose service level differs from the service level of a group. Also returns an
    /// example: the service levels of the group and of the path, and the destination of the path.
    ///
    /// If the paths have different service levels, all paths to the same port count as one path.
    fn differing(&self, groups: &[u8]) -> (usize, Option<(u8, u8, Gid)>) {
        let other = |level: u8| groups.iter().copied().find(|&group| group != level);
        if let (Some(_), Some((level, gid))) = (self.common, self.example) {
            let found = other(level).map(|group| (group, level, gid));
            return (if found.is_some() { self.paths } else { 0 }, found);
        }
        let differ = || self.by_port.iter().filter_map(|(&to, &it)| Some((other(it)?, it, to)));
        (differ().count(), differ().next())
    }
}

impl RoutePolicy {
    #[cfg(test)]
    pub(super) fn store_levels(&mut self, paths: &[PathRecord]) {
        self.levels.store(paths);
    }

    /// Sets the route protocol.
    pub(super) const fn set_protocol(&mut self, protocol: RouteProtocol) {
        self.protocol = protocol;
    }

    /// Returns the source of the route to a peer.
    pub(super) fn source(&self, groups: &MulticastGroups, peer: &Peer) -> RouteSource {
        if self.protocol == RouteProtocol::Sa || peer.lid == 0 {
            return RouteSource::Sa;
        }
        match self.levels.comparison {
            Comparison::Disabled => RouteSource::Group,
            Comparison::Pending => RouteSource::Pending,
            Comparison::Failed => RouteSource::Sa,
            Comparison::Complete => {
                let level = self.levels.of(peer.gid);
                let is_equal = match groups.record(peer.group) {
                    Some(record) => level == Some(record.sl),
                    // Address resolution has not found the group that the endpoint and the peer have in common yet. Any
                    // joined group may be this group, so a joined group with the service level of the path suffices for
                    // now.
                    None => groups.service_levels().any(|group| level == Some(group)),
                };
                if is_equal { RouteSource::Group } else { RouteSource::Sa }
            }
        }
    }

    /// Schedules a query of all paths. Returns false if the configuration requires no comparison of service levels.
    pub(super) fn schedule_query(
        &mut self,
        cx: &mut Context<'_>,
        groups: &MulticastGroups,
        known: KnownLevels,
    ) -> bool {
        let scheduled = self.levels.next_query;
        self.cancel_query(cx);
        if !cx.config().check_routes || self.protocol != RouteProtocol::Acm || groups.is_empty() {
            self.levels = ServiceLevels::default();
            return false;
        }
        let is_known = known == KnownLevels::Keep && self.levels.comparison == Comparison::Complete;
        if !is_known {
            let (comparison, reported) = (Comparison::Pending, self.levels.reported);
            self.levels = ServiceLevels { comparison, reported, ..ServiceLevels::default() };
        }
        // If no service levels are known, resolutions wait for this query, so its delay is short. Otherwise the delay
        // is longer, so that not all services query the SA at the same time.
        let paths = if is_known { self.levels.paths } else { 0 };
        let delay = QUERY_DELAY + QUERY_DELAY_PER_PATH * paths.min(100_000) as u32;
        let at = cx.now + cx.jitter(delay.min(QUERY_DELAY_MAX));
        self.query_at(cx, scheduled.filter(|_| is_known).map_or(at, |scheduled| scheduled.min(at)));
        true
    }

    /// Cancels a scheduled or outstanding query of all paths.
    pub(super) fn cancel_query(&mut self, cx: &mut Context<'_>) {
        if let Some(at) = self.levels.next_query.take() {
            cx.clear_timer(at, Timer::AllPaths);
        }
        cx.port.cancel_all(SaRequest::AllPaths { key: cx.key });
    }

    fn query_at(&mut self, cx: &mut Context<'_>, at: Instant) {
        if let Some(old) = self.levels.next_query.replace(at) {
            cx.clear_timer(old, Timer::AllPaths);
        }
        cx.set_timer(at, Timer::AllPaths);
    }

    /// Queries all paths of the port.
    pub(super) fn handle_timer(&mut self, cx: &mut Context<'_>) {
        self.levels.next_query = None;
        if !cx.port_state().is_active || self.levels.comparison == Comparison::Disabled {
            return;
        }
        self.cancel_query(cx);
        cx.shared.counters.sa_queries += 1;
        let wanted = PathRecord {
            sgid: cx.port_state().link.gid(),
            reversible: true,
            numb_path: 1,
            p_key: cx.identity.p_key,
            ..PathRecord::zeroed()
        };
        let components = [SGID, REVERSIBLE, NUMB_PATH, P_KEY];
        let purpose = SaRequest::AllPaths { key: cx.key };
        cx.send_sa(Method::GET_TABLE, &components, &wanted, purpose);
    }

    /// Handles the SA's response to the query of all paths. Known service levels remain in use after a failure.
    pub(super) fn handle_paths(
        &mut self,
        cx: &mut Context<'_>,
        groups: &MulticastGroups,
        completion: &Completion,
    ) {
        let own = cx.port_state().link.gid();
        match paths_of(completion) {
            Ok(mut paths) => {
                paths.retain(|path| path.dgid != own);
                self.levels.store(&paths);
                self.compare(cx, groups);
            }
            Err(SaError { reason, .. }) => {
                let levels = &mut self.levels;
                levels.failures += 1;
                if levels.comparison == Comparison::Pending {
                    levels.comparison = Comparison::Failed;
                }
                let failures = levels.failures;
                if failures == 1 && levels.comparison == Comparison::Failed {
                    cx.report(Event::RoutesUnknown { endpoint: cx.name(), why: reason });
                }
                let delay = cx.jitter(backed_off(RETRY, failures - 1));
                self.query_at(cx, cx.now + delay);
            }
        }
    }

    /// Compares the service levels of paths with the service levels of joined groups. If some differ, schedules another
    /// query of all paths, since the SM may change the service levels.
    pub(super) fn compare(&mut self, cx: &mut Context<'_>, groups: &MulticastGroups) {
        let groups: Vec<u8> = groups.service_levels().collect();
        let levels = &mut self.levels;
        if levels.comparison != Comparison::Complete || groups.is_empty() {
            return;
        }
        let (count, example) = levels.differing(&groups);
        let found = example.map(|_| (count, levels.paths));
        let before = std::mem::replace(&mut levels.reported, found);
        if example.is_none() && levels.paths > 0 {
            levels.mismatches = 0;
            if before.is_some() {
                cx.report(Event::RoutesAgree { endpoint: cx.name() });
            }
            return;
        }
        if levels.next_query.is_none() {
            let mismatches = levels.mismatches;
            levels.mismatches += 1;
            let delay = cx.jitter(backed_off(RECOMPARE, mismatches));
            self.query_at(cx, cx.now + delay);
        }
        if let Some((group, given, to)) = example.filter(|_| before != found) {
            let (endpoint, count) = (cx.name(), found.unwrap_or_default());
            cx.report(Event::RoutesDiffer { endpoint, group, given, to, count });
        }
    }

    /// Stores the service level of a single path. If it differs from the known service level, schedules a query of all
    /// paths, since other service levels may have changed as well.
    pub(super) fn store_level(&mut self, cx: &mut Context<'_>, gid: Gid, level: u8) {
        let levels = &mut self.levels;
        let known = levels.of(gid);
        // If paths to the port have different service levels, the service level of a single path does not show whether
        // the SM has changed a service level.
        let is_known = known == Some(level) || known == Some(SEVERAL);
        if levels.comparison != Comparison::Complete || is_known {
            return;
        }
        levels.by_port.insert(gid, level);
        if known.is_none() {
            levels.paths += 1;
        } else {
            let delay = backed_off(RETRY, levels.surprises);
            levels.surprises += 1;
            let at = cx.now + cx.jitter(delay);
            if levels.next_query.is_none_or(|next| next > at) {
                self.query_at(cx, at);
            }
        }
    }
}

/// Returns the paths in a response of the SA. If the SA reports that there are no paths, returns an empty list.
fn paths_of(completion: &Completion) -> Result<Vec<PathRecord>, SaError> {
    match &completion.result {
        Ok(message) if message.status().is_ok() => Ok(message.records().collect()),
        Ok(message) if message.status() == MadStatus::SA_NO_RECORDS => Ok(Vec::new()),
        _ => Err(SaError::from_completion(completion)),
    }
}
