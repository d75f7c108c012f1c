//! Collects the counters of ports with performance management (PM) queries.
//!
//! Queries are addressed by LID. At most [`WINDOW`] queries are outstanding. New queries are sent only while the SM is
//! idle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ib_link::{Datagram, Incoming, Remote};
use ib_mad::{Request, Requester, RequesterConfig, Timing};
use ib_sm::PortStatus;
use ib_types::{Guid, Instant};
use ib_wire::mad::pm::{PmCapabilityMask, PortCounters, PortCountersExtended};
use ib_wire::mad::sm::PortState;
use ib_wire::mad::{AttributeId, ClassPortInfo, Mad, Method, MgmtClass, TransactionId};

use super::shared::{Counts, PortCounts, lock};

/// Tag in the transaction IDs of PM queries. It distinguishes them from other requests of the SM.
const TAG: u16 = 0x70;

/// Maximum number of outstanding queries.
const WINDOW: usize = 16;

/// A port whose counters are queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    node: Guid,
    port: u8,
    lid: u16,
}

/// A performance management query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Query {
    /// Query of the ClassPortInfo of a port's node.
    Ability(Target),
    Narrow(Target),
    Wide(Target),
}

/// The collector of port counters.
pub(super) struct Perf {
    interval: Duration,
    timing: Timing,
    requester: Requester,
    targets: Vec<Target>,
    queue: VecDeque<Query>,
    outstanding: BTreeMap<TransactionId, Query>,
    /// For each node GUID: true if the node has 64-bit counters.
    wide: BTreeMap<Guid, bool>,
    /// Start of the next collection; `None` while counters are collected.
    next: Option<Instant>,
    began: Instant,
    counts: Arc<Mutex<Counts>>,
}

impl Perf {
    pub(super) fn new(interval: Duration, timing: Timing, counts: Arc<Mutex<Counts>>) -> Self {
        Self {
            interval,
            timing,
            requester: Requester::new(RequesterConfig {
                tag: TAG,
                window: WINDOW,
                first: std::process::id().wrapping_shl(8) | 1,
                ..RequesterConfig::default()
            }),
            targets: Vec::new(),
            queue: VecDeque::new(),
            outstanding: BTreeMap::new(),
            wide: BTreeMap::new(),
            next: None,
            began: Instant::ZERO,
            counts,
        }
    }

    /// Sets the ports whose counters are collected. Called after each sweep.
    pub(super) fn set_ports(&mut self, now: Instant, ports: &[PortStatus]) {
        let has_link = |port: &&PortStatus| {
            let info = port.info.as_ref();
            port.lid != 0
                && port.number > 0
                && info.is_some_and(|i| i.port_state.0 > PortState::DOWN.0)
        };
        let target =
            |port: &PortStatus| Target { node: port.node_guid, port: port.number, lid: port.lid };
        self.targets = ports.iter().filter(has_link).map(target).collect();
        self.targets.sort_unstable();
        let known: BTreeSet<(Guid, u8)> = self.targets.iter().map(|t| (t.node, t.port)).collect();
        lock(&self.counts).ports.retain(|key, _| known.contains(key));
        let nodes: BTreeSet<Guid> = self.targets.iter().map(|target| target.node).collect();
        self.wide.retain(|node, _| nodes.contains(node));
        self.next.get_or_insert(now);
    }

    /// Handles a received or lost MAD; returns true if it belonged to a PM query.
    pub(super) fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        let taken = self.requester.handle(now, incoming);
        self.collect(now);
        taken
    }

    /// Handles timers that have expired.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.requester.handle_timeout(now);
        self.collect(now);
    }

    /// Returns the time at which the next timer expires.
    pub(super) fn poll_timeout(&self, idle: bool) -> Option<Instant> {
        let next = self.next.filter(|_| idle && !self.targets.is_empty());
        [self.requester.poll_timeout(), next].into_iter().flatten().min()
    }

    /// Returns the next query to send. New queries begin only while the SM is idle.
    pub(super) fn poll_transmit(&mut self, now: Instant, idle: bool) -> Option<Datagram> {
        if idle {
            if self.next.is_some_and(|at| at <= now) && !self.targets.is_empty() {
                self.begin(now);
            }
            while self.requester.outstanding() < WINDOW
                && let Some(query) = self.queue.pop_front()
            {
                let request = self.request(query);
                let id = self.requester.start(request).expect("a Get has a response");
                self.outstanding.insert(id, query);
            }
        }
        self.requester.poll_transmit(now)
    }

    /// Starts a collection.
    fn begin(&mut self, now: Instant) {
        (self.began, self.next) = (now, None);
        let mut unknown = BTreeSet::new();
        let targets = std::mem::take(&mut self.targets);
        for &target in &targets {
            if self.wide.contains_key(&target.node) {
                self.queue_queries(target);
            } else if unknown.insert(target.node) {
                self.queue.push_back(Query::Ability(target));
            }
        }
        self.targets = targets;
    }

    fn queue_queries(&mut self, target: Target) {
        self.queue.push_back(Query::Narrow(target));
        if self.wide.get(&target.node) == Some(&true) {
            self.queue.push_back(Query::Wide(target));
        }
    }

    fn request(&self, query: Query) -> Request {
        let (id, target) = match query {
            Query::Ability(target) => (AttributeId::CLASS_PORT_INFO, target),
            Query::Narrow(target) => (AttributeId::PORT_COUNTERS, target),
            Query::Wide(target) => (AttributeId::PORT_COUNTERS_EXTENDED, target),
        };
        let mut mad = Mad::new(MgmtClass::PERFORMANCE, Method::GET, TransactionId(0));
        mad.set_attribute_id(id);
        let port_select = target.port;
        match query {
            Query::Ability(_) => {}
            Query::Narrow(_) => {
                mad.set_attribute(&PortCounters { port_select, ..PortCounters::zeroed() });
            }
            Query::Wide(_) => {
                let attribute =
                    PortCountersExtended { port_select, ..PortCountersExtended::zeroed() };
                mad.set_attribute(&attribute);
            }
        }
        Request::new(Remote::gsi(target.lid), mad).with_timing(self.timing)
    }

    /// Handles the responses that have arrived. The response to the last query completes the collection.
    fn collect(&mut self, now: Instant) {
        let mut ended = false;
        while let Some(completion) = self.requester.poll_event() {
            let Some(query) = self.outstanding.remove(&completion.transaction_id) else { continue };
            ended = true;
            let answer = completion.result.ok().filter(|answer| answer.status().is_ok());
            let counts = Arc::clone(&self.counts);
            let mut counts = lock(&counts);
            counts.failures += u64::from(answer.is_none());
            let entry = |counts: &mut Counts, target: Target, change: &dyn Fn(&mut PortCounts)| {
                change(counts.ports.entry((target.node, target.port)).or_default());
            };
            match query {
                Query::Ability(target) => {
                    // If the node does not respond, it is queried again in the next collection.
                    let info = answer.and_then(|a| a.mad().attribute::<ClassPortInfo>());
                    if let Some(info) = info {
                        let mask = PmCapabilityMask(info.capability_mask);
                        let wide = mask.contains(PmCapabilityMask::EXTENDED_WIDTH)
                            || mask.contains(PmCapabilityMask::EXTENDED_WIDTH_NO_IETF);
                        self.wide.insert(target.node, wide);
                        let first = self.targets.partition_point(|port| port.node < target.node);
                        let ports = self.targets[first..].iter().copied();
                        let ports = ports.take_while(|port| port.node == target.node);
                        for port in ports.collect::<Vec<_>>() {
                            self.queue_queries(port);
                        }
                    }
                }
                Query::Narrow(target) => {
                    if let Some(found) = answer.and_then(|a| a.mad().attribute::<PortCounters>()) {
                        entry(&mut counts, target, &|port| port.narrow = Some(found));
                    }
                }
                Query::Wide(target) => {
                    let found = answer.and_then(|a| a.mad().attribute::<PortCountersExtended>());
                    if let Some(found) = found {
                        entry(&mut counts, target, &|port| port.wide = Some(found));
                    }
                }
            }
        }
        if ended && self.queue.is_empty() && self.outstanding.is_empty() {
            let mut counts = lock(&self.counts);
            counts.rounds += 1;
            counts.seconds = now.since(self.began).as_secs_f64();
            drop(counts);
            self.next = Some(self.began + self.interval);
        }
    }
}
