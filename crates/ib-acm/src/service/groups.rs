//! Multicast groups of an endpoint: joining, leaving, periodic joins.

use std::time::Duration;

use ib_types::{Gid, Instant, QKey};
use ib_wire::mad::acm::group_gid;
use ib_wire::mad::sa::{JoinState, MCMemberRecord, Selector};
use ib_wire::mad::{Method, TransactionId};

use super::config::{GroupSpec, ServiceConfig};
use super::context::{Context, Timer, backed_off};
use super::event::Event;
use super::sa::{SaError, SaRequest};
use crate::config::options::RouteProtocol;
use crate::port::{Action, PortState};

/// Membership of a multicast group.
#[derive(Clone, Debug)]
enum Membership {
    /// The group is not joined.
    None,
    /// The endpoint has sent a request to join the group, and waits for the SA's response.
    Joining,
    /// Joined, with the SA's record of the group.
    Joined(Box<MCMemberRecord>),
}

/// A multicast group of an endpoint.
#[derive(Clone, Debug)]
struct MulticastGroup {
    spec: GroupSpec,
    mgid: Gid,
    membership: Membership,
    /// Number of failed joins since the last successful join.
    failures: u32,
    /// Outstanding request to the SA to join the group.
    request: Option<TransactionId>,
    /// Time of the next attempt to join, after a failed join.
    retry: Option<Instant>,
}

impl MulticastGroup {
    /// Returns the SA's record of the group; `None` if the endpoint is not a member.
    fn record(&self) -> Option<&MCMemberRecord> {
        match &self.membership {
            Membership::Joined(record) => Some(record),
            Membership::None | Membership::Joining => None,
        }
    }

    /// Returns the service level of the group, or the requested service level until the group is joined.
    fn sl(&self) -> u8 {
        self.record().map_or(self.spec.sl, |record| record.sl)
    }
}

/// Maximum number of groups in a message.
pub(super) const MAX_GROUPS: usize = 6;

/// Shortest and longest delay until a failed join is retried.
const JOIN_RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// Components of [`MCMemberRecord`] in a request to join, as bit numbers of the component mask.
const JOIN_COMPONENTS: [u8; 14] = [0, 1, 2, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16];
/// Components of [`MCMemberRecord`] in a request to leave, as bit numbers of the component mask.
const LEAVE_COMPONENTS: [u8; 3] = [0, 1, 16];

/// Result of a completed join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JoinResult {
    /// The group is joined, and its service level has changed.
    ServiceLevelChanged,
    /// The group is joined.
    Joined,
    /// The group is not joined.
    Failed,
}

/// The multicast groups of an endpoint: the base group, followed by other groups in ascending order of preference.
#[derive(Debug, Default)]
pub(super) struct MulticastGroups {
    groups: Vec<MulticastGroup>,
    /// Time of the next periodic join of all groups.
    rejoin: Option<Instant>,
    /// True if the memberships have changed since the endpoint last started to announce its addresses.
    is_changed: bool,
}

impl MulticastGroups {
    pub(super) const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the record of the base group; `None` if the group is not joined.
    pub(super) fn base(&self) -> Option<&MCMemberRecord> {
        self.record(0)
    }

    /// Returns the record of the group with this index; `None` if the group is not joined.
    pub(super) fn record(&self, index: u8) -> Option<&MCMemberRecord> {
        self.groups.get(usize::from(index))?.record()
    }

    /// Returns the MGID of the group with this index.
    pub(super) fn mgid(&self, index: u8) -> Option<Gid> {
        self.groups.get(usize::from(index)).map(|group| group.mgid)
    }

    /// Returns the MGIDs of joined groups, in ascending order of preference.
    pub(super) fn joined(&self) -> impl Iterator<Item = Gid> {
        self.groups.iter().filter(|group| group.record().is_some()).map(|group| group.mgid)
    }

    /// Returns the service levels of joined groups.
    pub(super) fn service_levels(&self) -> impl Iterator<Item = u8> {
        self.groups.iter().filter_map(MulticastGroup::record).map(|record| record.sl)
    }

    /// Returns the index of the most preferred group that the endpoint and a peer have joined.
    pub(super) fn best_common(&self, peer_groups: &[Gid]) -> Option<u8> {
        let is_common =
            |group: &MulticastGroup| group.record().is_some() && peer_groups.contains(&group.mgid);
        self.groups.iter().rposition(is_common).map(|index| index as u8)
    }

    /// Joins the configured groups and leaves all others. Returns true if the list of groups changed.
    pub(super) fn join_all(&mut self, cx: &mut Context<'_>) -> bool {
        self.cancel_rejoins(cx);
        let mut old = std::mem::take(&mut self.groups);
        let before: Vec<Gid> = old.iter().map(|group| group.mgid).collect();
        for spec in wanted_groups(&cx.shared.config, cx.port_state()) {
            let mgid = group_gid(cx.identity.p_key, spec.sl, spec.rate, spec.mtu);
            // A joined group is joined again, because the SM may have lost the membership. The endpoint continues to
            // use the group while it waits for the response.
            let kept = old.iter().position(|group| group.mgid == mgid).map(|at| old.remove(at));
            let new = || MulticastGroup {
                spec,
                mgid,
                membership: Membership::None,
                failures: 0,
                request: None,
                retry: None,
            };
            self.groups.push(MulticastGroup { spec, failures: 0, ..kept.unwrap_or_else(new) });
        }
        self.is_changed = true;
        for group in &old {
            leave(cx, group);
        }
        for index in 0..self.groups.len() {
            self.join(cx, index, true);
        }
        !self.groups.iter().map(|group| group.mgid).eq(before)
    }

    /// Requests the SA to join a group.
    fn join(&mut self, cx: &mut Context<'_>, index: usize, is_first: bool) {
        let Some(group) = self.groups.get_mut(index).filter(|_| cx.port_state().is_active) else {
            return;
        };
        // An outstanding request to join the group is cancelled, since the SM or the LID of the port may have changed.
        cx.cancel_sa(group.request.take());
        if let Some(at) = group.retry.take() {
            cx.clear_timer(at, Timer::Join(index));
        }
        let GroupSpec { rate, mtu, sl } = group.spec;
        let wanted = MCMemberRecord {
            mgid: group.mgid,
            port_gid: cx.port_state().link.gid(),
            q_key: QKey::GSI,
            mtu_selector: Selector::EXACTLY,
            mtu,
            traffic_class: sl,
            p_key: cx.identity.p_key,
            rate_selector: Selector::EXACTLY,
            rate,
            sl,
            scope: 5,
            join_state: JoinState::FULL_MEMBER,
            ..MCMemberRecord::zeroed()
        };
        if matches!(group.membership, Membership::None) {
            group.membership = Membership::Joining;
        }
        cx.shared.counters.joins += 1;
        let purpose = SaRequest::Join { key: cx.key, mgid: group.mgid, is_first };
        group.request = Some(cx.send_sa(Method::SET, &JOIN_COMPONENTS, &wanted, purpose));
    }

    /// Handles the SA's response to a request to join. Returns `None` if the group is no longer configured.
    pub(super) fn handle_join(
        &mut self,
        cx: &mut Context<'_>,
        mgid: Gid,
        response: Result<MCMemberRecord, SaError>,
    ) -> Option<JoinResult> {
        let index = self.groups.iter().position(|group| group.mgid == mgid)?;
        let group = &mut self.groups[index];
        group.request = None;
        let p_key = cx.identity.p_key;
        let response = response.and_then(|record| {
            if record.mgid == mgid && matches!(record.mlid, 0xc000..=0xfffe) {
                return Ok(record);
            }
            let reason = "the response of the SA names another group".to_owned();
            Err(SaError { reason, ..SaError::mismatch() })
        });
        match response {
            Ok(record) => {
                let old = group.record().map(|record| record.mlid);
                let mlid = record.mlid;
                let is_other_sl = record.sl != group.sl();
                group.failures = 0;
                group.membership = Membership::Joined(Box::new(record));
                // The QP is attached only to the base group, which carries the address resolution messages.
                if index == 0 && old != Some(mlid) {
                    if let Some(mlid) = old {
                        cx.act(Action::Detach { p_key, mgid, mlid });
                    }
                    cx.act(Action::Attach { p_key, mgid, mlid });
                }
                self.is_changed |= old != Some(mlid);
                Some(match is_other_sl {
                    true => JoinResult::ServiceLevelChanged,
                    false => JoinResult::Joined,
                })
            }
            Err(SaError { reason, is_final, .. }) => {
                group.failures += 1;
                // If the SM is busy or does not respond, the endpoint is still a member of the group.
                let lost = group.record().map(|record| record.mlid).filter(|_| is_final);
                if is_final || group.record().is_none() {
                    group.membership = Membership::None;
                }
                if let Some(mlid) = lost.filter(|_| index == 0) {
                    cx.act(Action::Detach { p_key, mgid, mlid });
                }
                cx.report(Event::NotJoined { endpoint: cx.name(), mgid, why: reason });
                let at = cx.now + cx.jitter(backed_off(JOIN_RETRY, group.failures - 1));
                group.retry = Some(at);
                cx.set_timer(at, Timer::Join(index));
                Some(JoinResult::Failed)
            }
        }
    }

    /// Schedules the next periodic join if all requests to join are completed and the base group is joined.
    ///
    /// Returns true if the endpoint has to announce its addresses; `None` if the endpoint is not up yet.
    pub(super) fn complete_joins(&mut self, cx: &mut Context<'_>) -> Option<bool> {
        let is_joining = |group: &MulticastGroup| matches!(group.membership, Membership::Joining);
        if self.groups.iter().any(is_joining) || self.base().is_none() {
            return None;
        }
        // A retry for a single group does not postpone the periodic join.
        if let (Some(interval), None) = (cx.config().check_interval, self.rejoin) {
            let at = cx.now + cx.jitter(interval);
            self.rejoin = Some(at);
            cx.set_timer(at, Timer::Rejoin);
        }
        Some(std::mem::take(&mut self.is_changed))
    }

    /// Cancels the retries of failed joins and the periodic join.
    pub(super) fn cancel_rejoins(&mut self, cx: &mut Context<'_>) {
        if let Some(at) = self.rejoin.take() {
            cx.clear_timer(at, Timer::Rejoin);
        }
        for (index, group) in self.groups.iter_mut().enumerate() {
            if let Some(at) = group.retry.take() {
                cx.clear_timer(at, Timer::Join(index));
            }
        }
    }

    /// Retries a failed join whose timer expired at `at`.
    pub(super) fn handle_join_timer(&mut self, cx: &mut Context<'_>, at: Instant, index: usize) {
        if self.groups.get(index).is_some_and(|group| group.retry == Some(at)) {
            self.join(cx, index, false);
        }
    }

    /// Joins all groups again, because an SM that has lost a membership does not notify the port.
    pub(super) fn handle_rejoin_timer(&mut self, cx: &mut Context<'_>, at: Instant) {
        if self.rejoin == Some(at) {
            self.rejoin = None;
            for index in 0..self.groups.len() {
                self.join(cx, index, false);
            }
        }
    }

    /// Leaves all groups.
    pub(super) fn leave_all(&mut self, cx: &mut Context<'_>) {
        self.cancel_rejoins(cx);
        for group in std::mem::take(&mut self.groups) {
            leave(cx, &group);
        }
    }

    /// Marks groups that are being joined as not joined, because the port is down.
    pub(super) fn pause(&mut self) {
        for group in &mut self.groups {
            if matches!(group.membership, Membership::Joining) {
                group.membership = Membership::None;
            }
        }
    }
}

/// Requests the SA to remove the endpoint from a group that it has joined or has requested to join. The response is
/// ignored.
fn leave(cx: &mut Context<'_>, group: &MulticastGroup) {
    cx.cancel_sa(group.request);
    let mlid = group.record().map(|record| record.mlid);
    if mlid.is_none() && group.request.is_none() {
        return;
    }
    let (mgid, p_key) = (group.mgid, cx.identity.p_key);
    if let Some(mlid) = mlid {
        cx.act(Action::Detach { p_key, mgid, mlid });
    }
    let member = MCMemberRecord {
        mgid,
        port_gid: cx.port_state().link.gid(),
        join_state: JoinState::FULL_MEMBER,
        ..MCMemberRecord::zeroed()
    };
    cx.send_sa(Method::DELETE, &LEAVE_COMPONENTS, &member, SaRequest::Leave);
}

/// Returns the groups that a port joins: the base group, followed by other groups in ascending order of preference.
fn wanted_groups(config: &ServiceConfig, port: &PortState) -> Vec<GroupSpec> {
    let rate = |spec: &GroupSpec| spec.rate.megabits_per_second().unwrap_or(0);
    let base = config.base_group;
    let own = GroupSpec { rate: port.rate, mtu: port.mtu, sl: base.sl };
    let fits = |spec: &&GroupSpec| spec.mtu.0 <= own.mtu.0 && rate(spec) <= rate(&own);
    let is_better = |spec: &&GroupSpec| spec.mtu.0 >= base.mtu.0 && rate(spec) >= rate(&base);
    let mut specs = vec![base];
    if config.route_protocol == RouteProtocol::Acm {
        let mut wanted: Vec<&GroupSpec> = config.groups.iter().filter(fits).collect();
        // All services sort the groups in the same order, so that two peers prefer the same common group.
        wanted.sort_by_key(|spec| (rate(spec), spec.mtu.0, spec.sl));
        for spec in wanted.into_iter().chain([&own]).filter(is_better) {
            if !specs.contains(spec) {
                specs.push(*spec);
            }
        }
    }
    // Excess groups are removed: the base group and the most preferred groups are kept.
    while specs.len() > MAX_GROUPS {
        specs.remove(1);
    }
    specs
}
