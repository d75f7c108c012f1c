//! Groups of endpoints: how they are joined and left, and what is sent to their members.

use std::time::Duration;

use ib_link::Route;
use ib_types::{Gid, Instant, PKey, QKey, Qpn, ServiceLevel};
use ib_wire::mad::acm::{AcmMessage, group_gid};
use ib_wire::mad::sa::{JoinState, MCMemberRecord, Selector};
use ib_wire::mad::{Method, TransactionId};

use super::administration::{Denial, Purpose};
use super::config::{Event, GroupSpec, RouteProtocol};
use super::endpoint::{Endpoint, EndpointKey};
use super::levels::Before;
use super::{Due, Service, backed_off};
use crate::Address;
use crate::port::{Action, Destination, PortState};

/// How far a group is joined.
#[derive(Clone, Debug)]
pub(super) enum GroupState {
    /// Not at all, or it will be tried again.
    Out,
    /// Subnet administration is asked.
    Asked,
    /// It is.
    In(Box<MCMemberRecord>),
}

/// A group of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) spec: GroupSpec,
    pub(super) mgid: Gid,
    pub(super) state: GroupState,
    /// How often it could not be joined since it last could.
    failures: u32,
    /// The request that asks for it.
    request: Option<TransactionId>,
    /// When it is tried again.
    retry: Option<Instant>,
}

impl Group {
    /// Returns what is known of it, once it is joined.
    pub(super) fn record(&self) -> Option<&MCMemberRecord> {
        match &self.state {
            GroupState::In(record) => Some(record),
            GroupState::Out | GroupState::Asked => None,
        }
    }

    /// Returns its service level: the one that is wanted, until subnet administration tells it.
    pub(super) fn sl(&self) -> u8 {
        self.record().map_or(self.spec.sl, |record| record.sl)
    }
}

/// How many groups fit into a message.
const MOST_GROUPS: usize = 6;

/// The shortest and the longest time until a group that cannot be joined is tried again.
const REJOIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// When an endpoint that has come into service first says who it is, and again.
const ANNOUNCE: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(5)];

impl Service {
    /// Begins, or begins again, with the groups of an endpoint. `before` is what its service levels are worth.
    pub(super) fn begin(&mut self, now: Instant, key: EndpointKey, before: Before) {
        let Some(port) = self.ports.get(&key.port) else { return };
        if !port.state.is_active {
            return;
        }
        if !port.state.has_datagrams {
            self.compare_soon(now, key, before);
            let endpoint = self.name(key);
            self.events.push_back(Event::Up { endpoint, groups: 0 });
            return;
        }
        let specs = self.specs(&port.state);
        let routes = self.config.route_protocol;
        self.rejoin_never(key);
        let endpoint = self.endpoint(key);
        let p_key = endpoint.p_key;
        let mut old = std::mem::take(&mut endpoint.groups);
        let places: Vec<Gid> = old.iter().map(|group| group.mgid).collect();
        for spec in specs {
            let mgid = group_gid(p_key, spec.sl, spec.rate, spec.mtu);
            let kept = old.iter().position(|group| group.mgid == mgid).map(|at| old.remove(at));
            // Whether the manager still knows of it is not known: it is joined again, and goes on meanwhile.
            let fresh = || Group {
                spec,
                mgid,
                state: GroupState::Out,
                failures: 0,
                request: None,
                retry: None,
            };
            endpoint.groups.push(Group { spec, failures: 0, ..kept.unwrap_or_else(fresh) });
        }
        endpoint.routes = routes;
        endpoint.is_news = true;
        let count = endpoint.groups.len();
        if !endpoint.groups.iter().map(|group| group.mgid).eq(places) {
            // The numbers of groups have changed.
            endpoint.cache.for_each(|peer| peer.group = crate::cache::NO_GROUP);
        }
        for group in &old {
            self.leave_group(key, group);
        }
        for group in 0..count {
            self.join(key, group, true);
        }
        self.compare_soon(now, key, before);
    }

    /// Returns the groups that a port can join, the least wanted first.
    fn specs(&self, state: &PortState) -> Vec<GroupSpec> {
        let rate = |spec: &GroupSpec| spec.rate.megabits_per_second().unwrap_or(0);
        let own = GroupSpec { rate: state.rate, mtu: state.mtu, sl: self.config.least.sl };
        let fits = |spec: &&GroupSpec| spec.mtu.0 <= own.mtu.0 && rate(spec) <= rate(&own);
        let mut specs = vec![self.config.least];
        if self.config.route_protocol == RouteProtocol::Acm {
            let better = |spec: &&GroupSpec| {
                let least = &self.config.least;
                spec.mtu.0 >= least.mtu.0 && rate(spec) >= rate(least)
            };
            let mut wanted: Vec<&GroupSpec> = self.config.groups.iter().filter(fits).collect();
            // Everybody has to count them in the same order.
            wanted.sort_by_key(|spec| (rate(spec), spec.mtu.0, spec.sl));
            for spec in wanted.into_iter().chain([&own]).filter(better) {
                if !specs.contains(spec) {
                    specs.push(*spec);
                }
            }
        }
        // The best ones count.
        while specs.len() > MOST_GROUPS {
            specs.remove(1);
        }
        specs
    }

    /// Asks subnet administration to let an endpoint into a group, for the first time or again.
    pub(super) fn join(&mut self, key: EndpointKey, place: usize, is_first: bool) {
        let Some(port) = self.ports.get(&key.port) else { return };
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let p_key = endpoint.p_key;
        let Some(group) = endpoint.groups.get_mut(place) else { return };
        if !port.state.is_active {
            return;
        }
        let GroupSpec { rate, mtu, sl } = group.spec;
        // What was asked before may have gone to another manager, or from another LID.
        let (before, retry) = (group.request.take(), group.retry.take());
        let wanted = MCMemberRecord {
            mgid: group.mgid,
            port_gid: port.state.link.gid(),
            q_key: QKey::GSI,
            mtu_selector: Selector::EXACTLY,
            mtu,
            traffic_class: sl,
            p_key,
            rate_selector: Selector::EXACTLY,
            rate,
            sl,
            scope: 5,
            join_state: JoinState::FULL_MEMBER,
            ..MCMemberRecord::zeroed()
        };
        if matches!(group.state, GroupState::Out) {
            group.state = GroupState::Asked;
        }
        let components = [0, 1, 2, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16];
        let mgid = group.mgid;
        let purpose = Purpose::Join { key, mgid, is_first };
        self.counters.joins += 1;
        if let Some(at) = retry {
            self.due.remove(&(at, Due::Join(key, place)));
        }
        if let Some(before) = before {
            self.cancel(key.port, before);
        }
        let request = self.ask(key.port, Method::SET, &components, &wanted, purpose);
        let endpoint = self.endpoint(key);
        if let Some(group) = endpoint.groups.get_mut(place).filter(|group| group.mgid == mgid) {
            group.request = request;
        }
    }

    /// Takes what subnet administration has said of a group.
    pub(super) fn joined(
        &mut self,
        now: Instant,
        key: EndpointKey,
        mgid: Gid,
        answer: Result<MCMemberRecord, Denial>,
    ) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let Some(place) = endpoint.groups.iter().position(|group| group.mgid == mgid) else {
            return;
        };
        let p_key = endpoint.p_key;
        let group = &mut endpoint.groups[place];
        group.request = None;
        let sound =
            |record: &MCMemberRecord| record.mgid == mgid && matches!(record.mlid, 0xc000..=0xfffe);
        let answer = answer.and_then(|record| {
            if sound(&record) {
                Ok(record)
            } else {
                let why = "its answer names another group".to_owned();
                Err(Denial { why, ..Denial::foreign() })
            }
        });
        match answer {
            Ok(record) => {
                let old = group.record().map(|record| record.mlid);
                let mlid = record.mlid;
                let is_other_sl = record.sl != group.sl();
                group.failures = 0;
                group.state = GroupState::In(Box::new(record));
                let is_first = place == 0;
                // Only the group that everybody has carries questions.
                if is_first && old != Some(mlid) {
                    if let Some(mlid) = old {
                        self.act(key.port, Action::Detach { p_key, mgid, mlid });
                    }
                    self.act(key.port, Action::Attach { p_key, mgid, mlid });
                }
                match is_other_sl {
                    true => self.compare_soon(now, key, Before::IsOver),
                    false => self.judge(now, key),
                }
                self.endpoint(key).is_news |= old != Some(mlid);
            }
            Err(Denial { why, is_final: is_refused, .. }) => {
                group.failures += 1;
                // A manager that is silent or busy has put nobody out.
                let lost = group.record().map(|record| record.mlid).filter(|_| is_refused);
                if is_refused || group.record().is_none() {
                    group.state = GroupState::Out;
                }
                if let Some(mlid) = lost.filter(|_| place == 0) {
                    self.act(key.port, Action::Detach { p_key, mgid, mlid });
                }
                let group = &self.endpoint(key).groups[place];
                let delay = backed_off(REJOIN, group.failures - 1);
                let endpoint = self.name(key);
                self.events.push_back(Event::NotJoined { endpoint, mgid, why });
                let at = now + self.about(delay);
                self.endpoint(key).groups[place].retry = Some(at);
                self.at(at, Due::Join(key, place));
            }
        }
        self.settled(now, key);
    }

    /// Goes on with an endpoint once each of its groups is joined or is not: the least one is enough to be in service.
    fn settled(&mut self, now: Instant, key: EndpointKey) {
        let endpoint = self.endpoint(key);
        let is_asked = |group: &Group| matches!(group.state, GroupState::Asked);
        if endpoint.groups.iter().any(is_asked) || endpoint.least().is_none() {
            return;
        }
        let (is_news, groups) = (std::mem::take(&mut endpoint.is_news), endpoint.joined().count());
        self.rejoin_later(now, key);
        if is_news {
            let endpoint = self.name(key);
            self.events.push_back(Event::Up { endpoint, groups });
            self.announce_soon(now, key);
        }
        self.next_turns(now, key);
    }

    /// Has the groups of an endpoint joined again after a while, unless they will be: those that are tried again more often
    /// do not put it off.
    fn rejoin_later(&mut self, now: Instant, key: EndpointKey) {
        let Some(interval) = self.config.check_interval else { return };
        if self.endpoint(key).rejoin.is_some() {
            return;
        }
        let at = now + self.about(interval);
        self.endpoint(key).rejoin = Some(at);
        self.at(at, Due::Rejoin(key));
    }

    /// Has no group of an endpoint joined again later.
    pub(super) fn rejoin_never(&mut self, key: EndpointKey) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        if let Some(at) = endpoint.rejoin.take() {
            self.due.remove(&(at, Due::Rejoin(key)));
        }
        for (place, group) in endpoint.groups.iter_mut().enumerate() {
            if let Some(at) = group.retry.take() {
                self.due.remove(&(at, Due::Join(key, place)));
            }
        }
    }

    /// Tries a group again that could not be joined, if it is still wanted.
    pub(super) fn join_due(&mut self, at: Instant, key: EndpointKey, place: usize) {
        let endpoint = self.endpoints.get(&key);
        let group = endpoint.and_then(|endpoint| endpoint.groups.get(place));
        if group.is_some_and(|group| group.retry == Some(at)) {
            self.join(key, place, false);
        }
    }

    /// Joins the groups of an endpoint again: nobody tells those whom a manager has forgotten.
    pub(super) fn rejoin(&mut self, at: Instant, key: EndpointKey) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        if endpoint.rejoin != Some(at) {
            return;
        }
        endpoint.rejoin = None;
        let count = endpoint.groups.len();
        for group in 0..count {
            self.join(key, group, false);
        }
    }

    /// Has subnet administration take an endpoint out of a group, or out of one that it has been asked to let it into. The
    /// answer makes no difference.
    pub(super) fn leave_group(&mut self, key: EndpointKey, group: &Group) {
        if let Some(request) = group.request {
            self.cancel(key.port, request);
        }
        let mlid = group.record().map(|record| record.mlid);
        if mlid.is_none() && group.request.is_none() {
            return;
        }
        let Some(port) = self.ports.get(&key.port) else { return };
        let p_key = self.endpoints.get(&key).map_or(PKey::DEFAULT, |endpoint| endpoint.p_key);
        let mgid = group.mgid;
        let wanted = MCMemberRecord {
            mgid,
            port_gid: port.state.link.gid(),
            join_state: JoinState::FULL_MEMBER,
            ..MCMemberRecord::zeroed()
        };
        if let Some(mlid) = mlid {
            self.act(key.port, Action::Detach { p_key, mgid, mlid });
        }
        let components = [0, 1, 16];
        self.ask(key.port, Method::DELETE, &components, &wanted, Purpose::Leave);
    }

    /// Has an endpoint say soon who it is.
    pub(super) fn announce_soon(&mut self, now: Instant, key: EndpointKey) {
        let count = self.config.announcements;
        if count > 0 {
            self.endpoint(key).announcements = count;
            let delay = self.about(ANNOUNCE[0]);
            self.at(now + delay, Due::Announcement(key));
        }
    }

    /// Says who an endpoint is, by a question for its own address that nobody has to answer.
    pub(super) fn announce(&mut self, now: Instant, key: EndpointKey) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        if endpoint.announcements == 0 || endpoint.least().is_none() {
            return;
        }
        let Some(first) = endpoint.addresses.first().cloned() else { return };
        endpoint.announcements -= 1;
        let goes_on = endpoint.announcements > 0;
        if !self.ports.get(&key.port).is_some_and(|port| port.state.is_active) {
            return;
        }
        let tid = self.number();
        self.counters.announcements += 1;
        self.send_question(key, &first, &first, tid, None);
        if goes_on {
            let delay = self.about(ANNOUNCE[1]);
            self.at(now + delay, Due::Announcement(key));
        }
    }

    /// Asks for an address: a group, or one port.
    pub(super) fn send_question(
        &mut self,
        key: EndpointKey,
        address: &Address,
        source: &Address,
        tid: u64,
        to: Option<Destination>,
    ) {
        let Some(port) = self.ports.get(&key.port) else { return };
        let Some(endpoint) = self.endpoints.get(&key) else { return };
        let own = port.state.link;
        let Some(record) = endpoint.least() else { return };
        let (destination_type, destination) = address.to_field();
        let (source_type, source_field) = source.to_field();
        let mut gids = [Gid::ZERO; MOST_GROUPS];
        let mut count = 0;
        for (slot, gid) in gids.iter_mut().zip(Endpoint::joined(endpoint)) {
            *slot = gid;
            count += 1;
        }
        let message = AcmMessage {
            base_version: 1,
            class: ib_wire::mad::MgmtClass::ACM,
            class_version: 1,
            method: Method::GET,
            control: AcmMessage::RESOLVE,
            transaction_id: TransactionId(tid),
            destination_type,
            destination_length: 64,
            source_type,
            source_length: 64,
            gid_count: count,
            destination,
            source: source_field,
            gids,
            ..AcmMessage::zeroed()
        };
        let mut bytes = message.to_bytes();
        super::more::put_more(&mut bytes, source, &endpoint.addresses);
        let to = to.unwrap_or_else(|| {
            self.counters.multicasts += 1;
            Destination { route: route_to_group(&own, record), qpn: Qpn::MULTICAST }
        });
        let p_key = endpoint.p_key;
        self.act(key.port, Action::Send { p_key, to, bytes: Box::new(bytes) });
    }
}

/// Returns the way to the members of a group.
fn route_to_group(own: &ib_link::LinkPort, record: &MCMemberRecord) -> Route {
    Route {
        source: own.gid(),
        destination: record.mgid,
        slid: own.lid,
        dlid: record.mlid,
        sl: ServiceLevel::new(record.sl).unwrap_or_default(),
        is_global: true,
        traffic_class: record.traffic_class,
        flow_label: record.flow_label,
        hop_limit: record.hop_limit,
        ..Route::default()
    }
}
