//! The service: it answers programs of its machine and services of others, and asks those and subnet administration.
//!
//! | module | holds |
//! |---|---|
//! | `config` | [`ServiceConfig`], [`ServiceCounters`], [`Event`] |
//! | `endpoint` | ports and their endpoints: how they come into service and go |
//! | `groups` | groups joined and left, questions and announcements to their members |
//! | `request` | what programs ask, and the answers |
//! | `source` | the endpoints that questions start from |
//! | `resolve` | an address on its way to an answer: questions to groups, attempts |
//! | `peers` | what services of others say, what is believed of it |
//! | `checks` | peers that are asked whether they still are where they were |
//! | `more` | the further addresses of a port in a message |
//! | `meter` | how fast ports ask |
//! | `administration` | what is asked of subnet administration, in which order, and what its answers mean |
//! | `route` | routes that it tells |
//! | `query` | what programs want it asked |
//! | `levels` | whether groups have the service levels of its paths |
//!
//! The service owns no socket and no clock. What programs say is handed to [`Service::request`], what comes to ports to
//! [`Service::handle`]. After either, and after [`Service::handle_timeout`], its owner asks [`Service::poll_action`],
//! [`Service::poll_reply`] and [`Service::poll_event`] until they return nothing. [`Service::drive`] does that for a
//! [`Port`].

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use ib_mad::Requester;
use ib_types::{Instant, PKey};
use ib_wire::acm::PerfCounters;
use rand::rngs::ChaCha12Rng;
use rand::{Rng, SeedableRng};

mod administration;
mod checks;
mod config;
mod endpoint;
mod groups;
mod levels;
mod meter;
mod more;
mod peers;
mod query;
mod request;
mod resolve;
mod route;
mod source;

pub use config::{
    Assignment, EndpointName, Event, GroupSpec, NO_DATAGRAMS, RouteProtocol, ServiceConfig,
    ServiceCounters,
};
pub use request::{ClientId, EndpointView, KnownView, RouteView};

use crate::Address;
use crate::port::{Action, Arrived, Port, PortId, PortState};
use administration::Purpose;
use endpoint::{Endpoint, EndpointKey};
use query::Query;
use route::Target;

/// Returns the own address from which a program would speak to another one.
pub type SourceOf = Box<dyn FnMut(IpAddr) -> Option<IpAddr> + Send>;

/// A port and what is under way at it.
struct PortEntry {
    state: PortState,
    requester: Requester,
    /// What is asked of subnet administration, by the number of the request.
    asked: BTreeMap<u64, Purpose>,
    actions: VecDeque<Action>,
}

/// What is due at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A question has not been answered.
    Resolution(EndpointKey, u64),
    /// What a program wanted subnet administration asked has not been answered.
    Query(u64),
    /// A route is asked for again that was not told before.
    Route(EndpointKey, Target),
    /// A check has not been answered.
    Check(EndpointKey, u64),
    /// An endpoint tells who it is.
    Announcement(EndpointKey),
    /// A group is to be joined, again perhaps.
    Join(EndpointKey, usize),
    /// All groups of an endpoint are joined again: a manager may have forgotten it.
    Rejoin(EndpointKey),
    /// Service levels are to be compared.
    RouteCheck(EndpointKey),
    /// The caches are looked through.
    Sweep,
}

/// The service of a machine.
pub struct Service {
    config: ServiceConfig,
    rng: ChaCha12Rng,
    ports: BTreeMap<PortId, PortEntry>,
    endpoints: BTreeMap<EndpointKey, Endpoint>,
    /// Whose own addresses are: several ports of a machine may have its name.
    own: HashMap<Address, Vec<EndpointKey>>,
    due: BTreeSet<(Instant, Due)>,
    replies: VecDeque<(ClientId, Vec<u8>)>,
    events: VecDeque<Event>,
    counters: ServiceCounters,
    /// Those of requests that no endpoint could be found for, and of endpoints that are gone.
    lost: PerfCounters,
    /// How many requests wait.
    waiting: usize,
    /// What programs want subnet administration asked.
    queries: BTreeMap<u64, Query>,
    /// Requests that several endpoints are at, and how many of them still are.
    races: BTreeMap<u64, usize>,
    source_of: SourceOf,
}

impl Service {
    /// Returns a service without ports. What peers may not guess is drawn from the seed: it has to come from the
    /// system's randomness unless a run shall be repeated.
    #[must_use]
    pub fn new(config: ServiceConfig, seed: [u8; 32]) -> Self {
        Self {
            config,
            rng: ChaCha12Rng::from_seed(seed),
            ports: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            own: HashMap::new(),
            due: BTreeSet::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            counters: ServiceCounters::default(),
            lost: PerfCounters::default(),
            waiting: 0,
            queries: BTreeMap::new(),
            races: BTreeMap::new(),
            source_of: Box::new(|_| None),
        }
    }

    /// Has somebody tell the own address that is used towards another one, for programs that name no source.
    pub fn set_source_of(&mut self, source_of: SourceOf) {
        self.source_of = source_of;
    }

    /// Returns how it works.
    #[must_use]
    pub const fn config(&self) -> &ServiceConfig {
        &self.config
    }

    /// Returns what it has done.
    #[must_use]
    pub const fn counters(&self) -> &ServiceCounters {
        &self.counters
    }

    /// Returns how many requests of programs wait.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes something that has come to a port.
    pub fn handle(&mut self, now: Instant, id: PortId, arrived: Arrived) {
        match arrived {
            Arrived::Datagram { p_key, route, qpn, bytes } => {
                self.handle_datagram(now, EndpointKey::new(id, p_key), &route, qpn, &bytes);
            }
            Arrived::Mad(incoming) => {
                let Some(port) = self.ports.get_mut(&id) else { return };
                port.requester.handle(now, &incoming);
                self.take_answers(now, id);
            }
        }
    }

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, due)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            match due {
                Due::Resolution(key, tid) => self.resolution_due(now, key, tid),
                Due::Query(number) => self.query_due(now, number),
                Due::Route(key, target) => self.route_due(now, key, target),
                Due::Check(key, tid) => self.check_due(now, key, tid),
                Due::Announcement(key) => self.announce(now, key),
                Due::Join(key, group) => self.join_due(at, key, group),
                Due::Rejoin(key) => self.rejoin(at, key),
                Due::RouteCheck(key) => self.ask_for_paths(key),
                Due::Sweep => self.sweep(now),
            }
        }
        let ids: Vec<PortId> = self.ports.keys().copied().collect();
        for id in ids {
            let port = self.ports.get_mut(&id).expect("just listed");
            if port.requester.poll_timeout().is_some_and(|at| at <= now) {
                port.requester.handle_timeout(now);
                self.take_answers(now, id);
            }
        }
    }

    /// Returns when [`Service::handle_timeout`] has something to do; `None` for never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = self.due.first().map(|&(at, _)| at);
        let ports = self.ports.values().filter_map(|port| port.requester.poll_timeout());
        own.into_iter().chain(ports).min()
    }

    /// Returns the next thing that a port shall do.
    pub fn poll_action(&mut self, now: Instant, id: PortId) -> Option<Action> {
        let port = self.ports.get_mut(&id)?;
        if let Some(action) = port.actions.pop_front() {
            return Some(action);
        }
        port.requester.poll_transmit(now).map(|datagram| Action::Mad(Box::new(datagram)))
    }

    /// Returns the next answer to a program that has waited. A program that is gone needs none.
    pub fn poll_reply(&mut self) -> Option<(ClientId, Vec<u8>)> {
        self.replies.pop_front()
    }

    /// Returns the next thing to be written down.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes what a port has to tell and has it do what is wanted; returns whether there was anything. `seen` is what
    /// [`Port::changes`] was last, `None` at first.
    pub fn drive(
        &mut self,
        now: Instant,
        id: PortId,
        port: &mut impl Port,
        seen: &mut Option<u64>,
    ) -> bool {
        let mut moved = false;
        let changes = port.changes();
        if *seen != Some(changes) {
            *seen = Some(changes);
            self.set_port(now, id, &port.state());
            moved = true;
        }
        while let Some(arrived) = port.receive() {
            self.handle(now, id, arrived);
            moved = true;
        }
        while let Some(action) = self.poll_action(now, id) {
            port.act(&action);
            moved = true;
        }
        moved
    }

    /// Has something done at some time.
    fn at(&mut self, at: Instant, due: Due) {
        self.due.insert((at, due));
    }

    /// Returns a number that nobody can guess.
    fn number(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Returns a time around another one, a quarter more or less.
    fn about(&mut self, time: Duration) -> Duration {
        time.mul_f64(0.75 + f64::from(self.rng.next_u32()) / f64::from(u32::MAX) / 2.0)
    }

    /// Has a port do something.
    fn act(&mut self, id: PortId, action: Action) {
        if let Some(port) = self.ports.get_mut(&id) {
            port.actions.push_back(action);
        }
    }

    /// Returns the name of an endpoint.
    fn name(&self, key: EndpointKey) -> EndpointName {
        let state = self.ports.get(&key.port).map(|port| &port.state);
        EndpointName {
            device: state.map(|state| state.device.clone()).unwrap_or_default(),
            port: state.map_or(0, |state| state.link.number),
            p_key: self.endpoints.get(&key).map_or(PKey::DEFAULT, |endpoint| endpoint.p_key),
        }
    }
}

/// Returns how long is waited after so many failures that follow a first one: twice as long each time.
fn backed_off([shortest, longest]: [Duration; 2], failures: u32) -> Duration {
    (shortest * (1 << failures.min(10))).min(longest)
}

#[cfg(test)]
mod tests;
