//! Subnet administration: groups, paths, and whether groups have the service levels of its paths.

use ib_link::Remote;
use ib_mad::{Backoff, Completion, Failure, Message, Request, Timing};
use ib_types::{Gid, Instant};
use ib_wire::acm::ClientStatus;
use ib_wire::mad::sa::{ComponentMask, PathRecord, SaHeader};
use ib_wire::mad::{Attribute, Mad, MadStatus, Method, MgmtClass, TransactionId};

use super::Service;
use super::config::{Event, RouteProtocol};
use super::endpoint::EndpointKey;
use super::groups::Group;
use super::request::Waiter;
use crate::Address;
use crate::port::PortId;

/// Why subnet administration is asked.
#[derive(Debug)]
pub(super) enum Purpose {
    /// To join a group.
    Join { key: EndpointKey, mgid: Gid },
    /// To leave one.
    Leave,
    /// For the route to a port.
    Route { key: EndpointKey, gid: Gid },
    /// For the route to a LID, for one resolution.
    RouteToLid { key: EndpointKey, lid: u16, tid: u64 },
    /// For all paths of the port, to compare their service levels.
    Compare { key: EndpointKey },
    /// Because a program wants it asked.
    Query { key: EndpointKey, wanted: Box<PathRecord>, waiter: Box<Waiter> },
}

impl Purpose {
    /// Returns the endpoint that wants to know of paths.
    const fn of_paths(&self) -> Option<EndpointKey> {
        match self {
            Self::Route { key, .. }
            | Self::RouteToLid { key, .. }
            | Self::Compare { key }
            | Self::Query { key, .. } => Some(*key),
            Self::Join { .. } | Self::Leave => None,
        }
    }
}

/// Those that wait for the route to a port.
#[derive(Debug, Default)]
pub(super) struct RouteQuery {
    resolutions: Vec<u64>,
}

/// The components of a path between two ports.
const SGID: u8 = 3;
const DGID: u8 = 2;
const DLID: u8 = 4;
const REVERSIBLE: u8 = 11;
const NUMB_PATH: u8 = 12;
const P_KEY: u8 = 13;

impl Service {
    /// Asks subnet administration.
    pub(super) fn ask<A: Attribute>(
        &mut self,
        id: PortId,
        method: Method,
        components: &[u8],
        wanted: &A,
        purpose: Purpose,
    ) -> Option<TransactionId> {
        let (timeout, retries) = (self.config.timeout, self.config.retries);
        let port = self.ports.get_mut(&id)?;
        let own = port.state.link;
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, method, TransactionId(0));
        mad.set_attribute(wanted);
        let component_mask = ComponentMask::of(components);
        mad.set_sa(&SaHeader { component_mask, ..mad.sa() });
        let remote = Remote { sl: own.sm_sl, ..Remote::gsi(own.sm_lid) };
        let backoff = Backoff::Doubling { longest: timeout };
        let timing = Timing { timeout: timeout / 4, retries: retries + 2, backoff };
        let request = Request::new(remote, mad).with_timing(timing);
        let started = port.requester.start(request).expect("a method that is answered");
        port.asked.insert(started.0, purpose);
        Some(started)
    }

    /// Forgets that something was asked.
    pub(super) fn cancel(&mut self, id: PortId, request: TransactionId) {
        if let Some(port) = self.ports.get_mut(&id) {
            port.requester.cancel(request);
            port.asked.remove(&request.0);
        }
    }

    /// Takes what subnet administration has said.
    pub(super) fn take_answers(&mut self, now: Instant, id: PortId) {
        while let Some(port) = self.ports.get_mut(&id)
            && let Some(completion) = port.requester.poll_event()
        {
            let Some(purpose) = port.asked.remove(&completion.transaction_id.0) else { continue };
            match purpose {
                Purpose::Leave => {}
                Purpose::Join { key, mgid } => {
                    let answer = record(&completion);
                    let answer = answer.map_err(|(_, why)| (is_refusal(&completion), why));
                    self.joined(now, key, mgid, answer);
                }
                Purpose::Route { key, gid } => {
                    let answer = record(&completion).map_err(|(status, _)| status);
                    self.routed(now, key, gid, answer);
                }
                Purpose::RouteToLid { key, lid, tid } => {
                    let answer = record(&completion).map_err(|(status, _)| status);
                    self.routed_to_lid(now, key, (lid, tid), answer);
                }
                Purpose::Compare { key } => self.compare(now, key, &completion),
                Purpose::Query { key, waiter, .. } => match record::<PathRecord>(&completion) {
                    Ok(path) => self.succeed(&waiter, &path),
                    Err(_) => {
                        let status = of_query(&completion);
                        self.fail(now, key, &waiter, status);
                    }
                },
            }
        }
    }

    /// Gives up some of what an endpoint has asked of paths, whose answers are not believed any more; returns what that
    /// was.
    fn withdraw(&mut self, key: EndpointKey, which: fn(&Purpose) -> bool) -> Vec<Purpose> {
        let Some(port) = self.ports.get_mut(&key.port) else { return Vec::new() };
        let is_it =
            |_: &u64, purpose: &mut Purpose| purpose.of_paths() == Some(key) && which(purpose);
        let withdrawn: Vec<(u64, Purpose)> = port.asked.extract_if(.., is_it).collect();
        for (request, _) in &withdrawn {
            port.requester.cancel(TransactionId(*request));
        }
        withdrawn.into_iter().map(|(_, purpose)| purpose).collect()
    }

    /// Gives up what an endpoint has asked of paths, and tells the programs that wait for it.
    pub(super) fn give_up(&mut self, now: Instant, key: EndpointKey) {
        for purpose in self.withdraw(key, |_| true) {
            if let Purpose::Query { key, waiter, .. } = purpose {
                self.fail(now, key, &waiter, ClientStatus::ENOTCONN);
            }
        }
    }

    /// Gives up a comparison of service levels, which is to be made anew.
    pub(super) fn give_up_comparison(&mut self, key: EndpointKey) {
        self.withdraw(key, |purpose| matches!(purpose, Purpose::Compare { .. }));
    }

    /// Asks again what an endpoint has asked of paths: another manager is to answer, or paths begin elsewhere.
    pub(super) fn ask_again(&mut self, key: EndpointKey) {
        for purpose in self.withdraw(key, |_| true) {
            match purpose {
                Purpose::Route { gid, .. } => self.send_route_query(key, gid),
                Purpose::RouteToLid { lid, tid, .. } => self.ask_route_to_lid(key, lid, tid),
                Purpose::Query { wanted, waiter, .. } => self.query(key, &wanted, *waiter),
                // It is begun anew with the groups.
                Purpose::Compare { .. } | Purpose::Join { .. } | Purpose::Leave => {}
            }
        }
    }

    /// Asks for what a program wants to know.
    pub(super) fn query(&mut self, key: EndpointKey, wanted: &PathRecord, waiter: Waiter) {
        self.counters.sa_queries += 1;
        self.endpoint(key).counters.route_queries += 1;
        let components = components_of(wanted);
        let purpose = Purpose::Query { key, wanted: Box::new(*wanted), waiter: Box::new(waiter) };
        self.ask(key.port, Method::GET, &components, wanted, purpose);
    }

    /// Asks for the route to a port, unless somebody does.
    pub(super) fn ask_route(&mut self, key: EndpointKey, gid: Gid, resolution: Option<u64>) {
        let queries = &mut self.endpoint(key).route_queries;
        if let Some(query) = queries.get_mut(&gid) {
            query.resolutions.extend(resolution);
            return;
        }
        queries.insert(gid, RouteQuery { resolutions: resolution.into_iter().collect() });
        self.send_route_query(key, gid);
    }

    fn send_route_query(&mut self, key: EndpointKey, gid: Gid) {
        let Some(port) = self.ports.get(&key.port) else { return };
        let sgid = port.state.link.gid();
        let endpoint = self.endpoints.get_mut(&key).expect("it was just found");
        let p_key = endpoint.p_key;
        endpoint.counters.route_queries += 1;
        self.counters.sa_queries += 1;
        let wanted = PathRecord {
            dgid: gid,
            sgid,
            reversible: true,
            numb_path: 1,
            p_key,
            ..PathRecord::zeroed()
        };
        let components = [DGID, SGID, REVERSIBLE, NUMB_PATH, P_KEY];
        let purpose = Purpose::Route { key, gid };
        self.ask(key.port, Method::GET, &components, &wanted, purpose);
    }

    /// Asks for the route to a LID.
    pub(super) fn ask_route_to_lid(&mut self, key: EndpointKey, lid: u16, tid: u64) {
        let Some(port) = self.ports.get(&key.port) else { return };
        let sgid = port.state.link.gid();
        let endpoint = self.endpoints.get_mut(&key).expect("it was just found");
        endpoint.counters.route_queries += 1;
        let p_key = endpoint.p_key;
        self.counters.sa_queries += 1;
        let wanted = PathRecord {
            sgid,
            dlid: lid,
            reversible: true,
            numb_path: 1,
            p_key,
            ..PathRecord::zeroed()
        };
        let components = [SGID, DLID, REVERSIBLE, NUMB_PATH, P_KEY];
        let purpose = Purpose::RouteToLid { key, lid, tid };
        self.ask(key.port, Method::GET, &components, &wanted, purpose);
    }

    /// Takes the route to a port, or why there is none.
    fn routed(
        &mut self,
        now: Instant,
        key: EndpointKey,
        gid: Gid,
        answer: Result<PathRecord, ClientStatus>,
    ) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let waiting = endpoint.route_queries.remove(&gid).unwrap_or_default().resolutions;
        let answer = answer.and_then(|path| match path.dgid == gid {
            true => Ok(path),
            false => Err(ClientStatus::EINVAL),
        });
        if let Ok(path) = &answer {
            let peer = endpoint.cache.peer_of(gid, now);
            // A GID is an address as well: that is what keeps a port without a name.
            endpoint.cache.bind(&Address::Gid(gid), peer, now, false);
            let by_lid = Address::Lid(path.dlid);
            if endpoint.cache.lookup(&by_lid) == Some(peer) {
                endpoint.cache.bind(&by_lid, peer, now, false);
            }
            if let Some(peer) = endpoint.cache.peer_mut(peer) {
                peer.set_route(path, now);
            }
            endpoint.cache.remove_if_nameless(peer);
        } else if !matches!(answer, Err(ClientStatus::ETIMEDOUT | ClientStatus::ENOTCONN))
            && let Some(peer) = endpoint.cache.by_gid(gid)
            && let Some(peer) = endpoint.cache.peer_mut(peer)
        {
            peer.route = None;
        }
        for tid in waiting {
            self.finish(now, key, tid, answer);
        }
    }

    fn routed_to_lid(
        &mut self,
        now: Instant,
        key: EndpointKey,
        (lid, tid): (u16, u64),
        answer: Result<PathRecord, ClientStatus>,
    ) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        if let Ok(path) = &answer {
            let peer = endpoint.cache.peer_of(path.dgid, now);
            endpoint.cache.bind(&Address::Lid(lid), peer, now, false);
            if let Some(peer) = endpoint.cache.peer_mut(peer) {
                peer.set_route(path, now);
            }
            endpoint.cache.remove_if_nameless(peer);
        }
        self.finish(now, key, tid, answer);
    }

    /// Asks for all paths of a port, so that their service levels can be compared with those of groups.
    pub(super) fn ask_for_paths(&mut self, key: EndpointKey) {
        let Some(port) = self.ports.get(&key.port) else { return };
        let sgid = port.state.link.gid();
        let Some(endpoint) = self.endpoints.get(&key) else { return };
        if !endpoint.is_unchecked || !port.state.is_active {
            return;
        }
        let p_key = endpoint.p_key;
        self.counters.sa_queries += 1;
        let wanted =
            PathRecord { sgid, reversible: true, numb_path: 1, p_key, ..PathRecord::zeroed() };
        let components = [SGID, REVERSIBLE, NUMB_PATH, P_KEY];
        let purpose = Purpose::Compare { key };
        self.ask(key.port, Method::GET_TABLE, &components, &wanted, purpose);
    }

    /// Compares service levels.
    fn compare(&mut self, now: Instant, key: EndpointKey, completion: &Completion) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        if !std::mem::replace(&mut endpoint.is_unchecked, false) {
            return;
        }
        // Which of them a route will be made of is not known yet, so all have to have the service levels of all paths.
        let groups: Vec<u8> = endpoint.groups.iter().map(Group::sl).collect();
        let sgid = self.ports.get(&key.port).map(|port| port.state.link.gid());
        let event = match &completion.result {
            Ok(message) if message.status().is_ok() => {
                let paths = message.records::<PathRecord>().filter(|path| Some(path.dgid) != sgid);
                let paths: Vec<PathRecord> = paths.collect();
                let other = |path: &PathRecord| groups.iter().copied().find(|&sl| sl != path.sl);
                let others = || paths.iter().filter_map(|path| Some((path, other(path)?)));
                let example = others().next().map(|(path, group)| (group, path.sl, path.dgid));
                let count = (others().count(), paths.len());
                if example.is_some() {
                    endpoint.routes = RouteProtocol::Sa;
                }
                example.map(|(group, given, to)| {
                    let endpoint = self.name(key);
                    Event::RoutesDiffer { endpoint, group, given, to, count }
                })
            }
            Ok(message) => {
                let (endpoint, why) = (self.name(key), message.status().to_string());
                Some(Event::RoutesUnknown { endpoint, why })
            }
            Err(failure) => {
                let (endpoint, why) = (self.name(key), failure.to_string());
                Some(Event::RoutesUnknown { endpoint, why })
            }
        };
        self.events.extend(event);
        self.routes_checked(now, key);
    }
}

/// Returns the record of an answer, or the status for programs and what people are told.
fn record<A: Attribute>(completion: &Completion) -> Result<A, (ClientStatus, String)> {
    match &completion.result {
        Ok(message) if message.status().is_ok() => {
            let absent = || (ClientStatus::EINVAL, "its answer is of another kind".to_owned());
            message.mad().attribute().ok_or_else(absent)
        }
        Ok(message) => {
            let status = message.status();
            let code = match status.class_specific() {
                // No records, or a GID that nobody has.
                3 | 5 => ClientStatus::ENODATA,
                1 => ClientStatus::ENOMEM,
                _ => ClientStatus::EINVAL,
            };
            Err((code, status.to_string()))
        }
        Err(failure) => {
            let code = match failure {
                Failure::TimedOut { .. } => ClientStatus::ETIMEDOUT,
                _ => ClientStatus::ENOTCONN,
            };
            Err((code, failure.to_string()))
        }
    }
}

/// Returns whether subnet administration says no, rather than nothing or that it is busy.
fn is_refusal(completion: &Completion) -> bool {
    let status = completion.result.as_ref().map_or(MadStatus::OK, Message::status);
    !status.is_ok() && status.0 & MadStatus::BUSY.0 == 0
}

/// Returns what a program is told that wanted subnet administration asked: the status of its class as it is.
fn of_query(completion: &Completion) -> ClientStatus {
    match &completion.result {
        Ok(message) if message.status().class_specific() != 0 => {
            ClientStatus(message.status().class_specific())
        }
        Ok(_) => ClientStatus::EINVAL,
        Err(_) => ClientStatus::ETIMEDOUT,
    }
}

/// Returns the components of a path that are not zero, as ibacm takes what a program gives.
fn components_of(path: &PathRecord) -> Vec<u8> {
    let set = [
        (0, path.service_id != 0),
        (DGID, path.dgid != Gid::ZERO),
        (SGID, path.sgid != Gid::ZERO),
        (DLID, path.dlid != 0),
        (5, path.slid != 0),
        (8, path.flow_label != 0),
        (9, path.hop_limit != 0),
        (10, path.traffic_class != 0),
        (REVERSIBLE, path.reversible),
        (NUMB_PATH, path.numb_path != 0),
        (P_KEY, path.p_key.0 != 0),
        (14, path.qos_class != 0),
        (15, path.sl != 0),
        (16, path.mtu.0 != 0),
        (17, path.mtu.0 != 0),
        (18, path.rate.0 != 0),
        (19, path.rate.0 != 0),
        (20, path.life_time.0 != 0),
        (21, path.life_time.0 != 0),
    ];
    set.into_iter().filter(|&(_, is_set)| is_set).map(|(component, _)| component).collect()
}
