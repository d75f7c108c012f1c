//! Service levels: whether routes that are made of groups have those of subnet administration.
//!
//! Subnet administration is asked for all paths of a port. A route is made of a group when the group has the service level
//! of the path to that very port; until that is known, and for all others, subnet administration tells the route.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_mad::Completion;
use ib_types::{Gid, Instant};
use ib_wire::mad::sa::PathRecord;
use ib_wire::mad::{MadStatus, Method, TransactionId};

use super::administration::{Denial, Purpose, denial};
use super::config::{Event, RouteProtocol};
use super::endpoint::EndpointKey;
use super::route::{NUMB_PATH, P_KEY, REVERSIBLE, SGID};
use super::{Due, Service, backed_off};

/// How far a comparison has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// None is wanted: groups are trusted.
    #[default]
    Trusted,
    /// It is under way.
    Awaited,
    /// Subnet administration has not told its paths.
    Unknown,
    /// It has.
    Known,
}

/// What service levels that were compared before are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// They count until others are told.
    Counts,
    /// Nothing: another manager may give others, or paths begin elsewhere.
    IsOver,
}

/// The service levels that subnet administration gives to the paths of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Levels {
    standing: Standing,
    /// That of all paths, where they have the same one: that of ports that are new as well.
    common: Option<u8>,
    /// Those of ports, where they differ.
    each: BTreeMap<Gid, u8>,
    /// A path, and how many there are.
    example: Option<(u8, Gid)>,
    paths: usize,
    /// How often subnet administration has not told its paths since it last has.
    failures: u32,
    /// How often in a row groups had other service levels.
    rounds: u32,
    /// How often a single path had another service level than was known.
    surprises: u32,
    /// When it is asked next.
    due: Option<Instant>,
    /// How many paths, and of how many, were said to have another service level.
    told: Option<(usize, usize)>,
}

/// No service level: paths to a port have several.
const SEVERAL: u8 = u8::MAX;

/// When paths are asked for: after how long in any case, how much longer for each one that is known and counts until then,
/// and after how long at most.
const SOON: Duration = Duration::from_millis(200);
const PER_PATH: Duration = Duration::from_millis(2);
const LATEST: Duration = Duration::from_secs(30);

/// The shortest and the longest time until subnet administration is asked again that has not told its paths, and that has
/// told one that had another service level before.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The same where groups have had other service levels.
const ROUND: [Duration; 2] = [Duration::from_mins(5), Duration::from_hours(1)];

impl Levels {
    /// Returns how far the comparison has come.
    pub(super) const fn standing(&self) -> Standing {
        self.standing
    }

    /// Returns the service level of the path to a port, as far as it is known.
    pub(super) fn of(&self, gid: Gid) -> Option<u8> {
        self.each.get(&gid).copied().or(self.common)
    }

    /// Takes all paths to others.
    pub(super) fn take(&mut self, paths: &[PathRecord]) {
        self.each.clear();
        for path in paths {
            let level = self.each.entry(path.dgid).or_insert(path.sl);
            if *level != path.sl {
                *level = SEVERAL;
            }
        }
        let first = paths.first();
        self.common = first.map(|path| path.sl);
        if paths.iter().all(|path| Some(path.sl) == self.common) {
            self.each.clear();
        } else {
            self.common = None;
        }
        (self.example, self.paths) = (first.map(|path| (path.sl, path.dgid)), paths.len());
        (self.standing, self.failures) = (Standing::Known, 0);
    }

    /// Returns how many paths have another service level than some group, and an example: the service level of the group,
    /// that of the path, and where it leads.
    fn differing(&self, groups: &[u8]) -> (usize, Option<(u8, u8, Gid)>) {
        let other = |level: u8| groups.iter().copied().find(|&group| group != level);
        if let (Some(_), Some((level, gid))) = (self.common, self.example) {
            let found = other(level).map(|group| (group, level, gid));
            return (if found.is_some() { self.paths } else { 0 }, found);
        }
        let differ = || self.each.iter().filter_map(|(&to, &it)| Some((other(it)?, it, to)));
        (differ().count(), differ().next())
    }
}

impl Service {
    /// Has service levels compared anew, as far as that is wanted; until then no route is made of groups, unless what was
    /// compared before still counts.
    pub(super) fn compare_soon(&mut self, now: Instant, key: EndpointKey, before: Before) {
        let check = self.config.check_routes;
        let due = self.endpoint(key).levels.due;
        self.give_up_comparison(key);
        let endpoint = self.endpoint(key);
        let is_wanted =
            check && endpoint.routes == RouteProtocol::Acm && !endpoint.groups.is_empty();
        let levels = &mut endpoint.levels;
        match (is_wanted, before) {
            (false, _) => *levels = Levels::default(),
            (true, Before::Counts) if levels.standing == Standing::Known => {}
            (true, _) => {
                let (standing, told) = (Standing::Awaited, levels.told);
                *levels = Levels { standing, told, ..Levels::default() };
            }
        }
        if is_wanted {
            // Whoever has to wait for it is not kept waiting; all others do not ask for much at the same moment.
            let levels = &self.endpoint(key).levels;
            let counts = levels.standing == Standing::Known;
            let paths = if counts { levels.paths } else { 0 };
            let delay = (SOON + PER_PATH * paths.min(100_000) as u32).min(LATEST);
            let at = now + self.about(delay);
            self.compare_at(key, due.filter(|_| counts).map_or(at, |due| due.min(at)));
        } else {
            self.routes_checked(now, key);
        }
    }

    /// Gives up a comparison.
    pub(super) fn give_up_comparison(&mut self, key: EndpointKey) {
        let at = self.endpoint(key).levels.due.take();
        if let Some(at) = at {
            self.due.remove(&(at, Due::RouteCheck(key)));
        }
        let Some(port) = self.ports.get_mut(&key.port) else { return };
        let is_it = |_: &u64, purpose: &mut Purpose| *purpose == Purpose::Compare { key };
        let requests: Vec<(u64, Purpose)> = port.asked.extract_if(.., is_it).collect();
        for (request, _) in requests {
            port.requester.cancel(TransactionId(request));
        }
    }

    fn compare_at(&mut self, key: EndpointKey, at: Instant) {
        if let Some(old) = self.endpoint(key).levels.due.replace(at) {
            self.due.remove(&(old, Due::RouteCheck(key)));
        }
        self.at(at, Due::RouteCheck(key));
    }

    /// Asks for all paths of a port, so that their service levels can be compared with those of groups.
    pub(super) fn ask_for_paths(&mut self, key: EndpointKey) {
        let Some(port) = self.ports.get(&key.port) else { return };
        let (sgid, is_active) = (port.state.link.gid(), port.state.is_active);
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        endpoint.levels.due = None;
        let p_key = endpoint.p_key;
        if !is_active || endpoint.levels.standing == Standing::Trusted {
            return;
        }
        self.give_up_comparison(key);
        self.counters.sa_queries += 1;
        let wanted =
            PathRecord { sgid, reversible: true, numb_path: 1, p_key, ..PathRecord::zeroed() };
        let components = [SGID, REVERSIBLE, NUMB_PATH, P_KEY];
        let purpose = Purpose::Compare { key };
        self.ask(key.port, Method::GET_TABLE, &components, &wanted, purpose);
    }

    /// Takes the paths of a port, or why there are none. What was known before counts for as long as there are no others.
    pub(super) fn compare(&mut self, now: Instant, key: EndpointKey, completion: &Completion) {
        let own = self.ports.get(&key.port).map(|port| port.state.link.gid());
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        let levels = &mut endpoint.levels;
        match paths_of(completion) {
            Ok(mut paths) => {
                paths.retain(|path| Some(path.dgid) != own);
                levels.take(&paths);
                self.judge(now, key);
            }
            Err(Denial { why, .. }) => {
                levels.failures += 1;
                let failures = levels.failures;
                if levels.standing == Standing::Awaited {
                    levels.standing = Standing::Unknown;
                }
                if failures == 1 && levels.standing == Standing::Unknown {
                    let endpoint = self.name(key);
                    self.events.push_back(Event::RoutesUnknown { endpoint, why });
                }
                let delay = self.about(backed_off(AGAIN, failures - 1));
                self.compare_at(key, now + delay);
            }
        }
        self.routes_checked(now, key);
    }

    /// Compares the service levels of paths with those of the groups that are joined. Where they differ, they are asked for
    /// again after a while: they may not for ever.
    pub(super) fn judge(&mut self, now: Instant, key: EndpointKey) {
        let endpoint = self.endpoint(key);
        let groups = endpoint.groups.iter().filter_map(|group| group.record());
        let groups: Vec<u8> = groups.map(|record| record.sl).collect();
        let levels = &mut endpoint.levels;
        if levels.standing != Standing::Known || groups.is_empty() {
            return;
        }
        let (count, example) = levels.differing(&groups);
        let found = example.map(|_| (count, levels.paths));
        let before = std::mem::replace(&mut levels.told, found);
        if example.is_none() && levels.paths > 0 {
            levels.rounds = 0;
            if before.is_some() {
                let endpoint = self.name(key);
                self.events.push_back(Event::RoutesAgree { endpoint });
            }
            return;
        }
        if levels.due.is_none() {
            let rounds = levels.rounds;
            levels.rounds += 1;
            let delay = self.about(backed_off(ROUND, rounds));
            self.compare_at(key, now + delay);
        }
        if let Some((group, given, to)) = example.filter(|_| before != found) {
            let (endpoint, count) = (self.name(key), found.unwrap_or_default());
            self.events.push_back(Event::RoutesDiffer { endpoint, group, given, to, count });
        }
    }

    /// Takes the service level of a single path. One that is not what was known means that others may have changed.
    pub(super) fn learn_level(&mut self, now: Instant, key: EndpointKey, gid: Gid, level: u8) {
        let levels = &mut self.endpoint(key).levels;
        let known = levels.of(gid);
        // One path of several tells nothing of the others.
        let is_no_news = known == Some(level) || known == Some(SEVERAL);
        if levels.standing != Standing::Known || is_no_news {
            return;
        }
        levels.each.insert(gid, level);
        if known.is_none() {
            levels.paths += 1;
        } else {
            let delay = backed_off(AGAIN, levels.surprises);
            levels.surprises += 1;
            let at = now + self.about(delay);
            if self.endpoint(key).levels.due.is_none_or(|due| due > at) {
                self.compare_at(key, at);
            }
        }
    }
}

/// Returns the paths of an answer; none where subnet administration says that there is none.
fn paths_of(completion: &Completion) -> Result<Vec<PathRecord>, Denial> {
    match &completion.result {
        Ok(message) if message.status().is_ok() => Ok(message.records().collect()),
        Ok(message) if message.status() == MadStatus::SA_NO_RECORDS => Ok(Vec::new()),
        _ => Err(denial(completion)),
    }
}
