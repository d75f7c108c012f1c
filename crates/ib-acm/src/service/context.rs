//! State that the modules share while they handle an input: configuration, timers, random numbers, counters, events,
//! the endpoint and its port.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use ib_types::{Instant, PKey};
use ib_wire::acm::{ClientStatus, PerfCounters};
use ib_wire::mad::{Attribute, Method, TransactionId};
use rand::Rng;
use rand::rngs::ChaCha12Rng;

use super::config::ServiceConfig;
use super::event::{EndpointName, Event, ServiceCounters};
use super::key::{EndpointKey, PathTarget};
use super::pending::{PendingRequest, PendingRequests};
use super::sa::{LocalPort, SaRequest};
use crate::Address;
use crate::port::{Action, PortState};

/// A timer of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Retry or time limit of the address resolution with this transaction ID.
    Resolution(u64),
    /// Time limit of the SA query with this key in `ClientQueries`.
    ClientQuery(u64),
    /// Retry of an SA query for the path to this destination.
    PathQuery(PathTarget),
    /// Response timeout of the peer check with this transaction ID.
    PeerCheck(u64),
    /// Next announcement.
    Announcement,
    /// Retry of a failed join of the group with this index.
    Join(usize),
    /// Periodic join of all groups, since the SM may have lost the memberships.
    Rejoin,
    /// Next SA query for all paths of the port, whose service levels are compared with the service levels of groups.
    AllPaths,
}

/// Running timers in the order of their deadlines.
#[derive(Debug, Default)]
pub(super) struct Timers(BTreeSet<(Instant, Timer, EndpointKey)>);

impl Timers {
    /// Returns the earliest deadline of all timers.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.first().map(|&(at, ..)| at)
    }

    /// Removes and returns an expired timer, its deadline and its endpoint.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<(Instant, Timer, EndpointKey)> {
        self.next().filter(|&at| at <= now)?;
        self.0.pop_first()
    }
}

/// State shared by all endpoints of a service.
pub(super) struct Shared {
    pub(super) config: ServiceConfig,
    pub(super) rng: ChaCha12Rng,
    pub(super) timers: Timers,
    pub(super) counters: ServiceCounters,
    pub(super) events: VecDeque<Event>,
    pub(super) pending: PendingRequests,
}

/// Names, addresses and counters of an endpoint.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) p_key: PKey,
    pub(super) addresses: Vec<Address>,
    pub(super) counters: PerfCounters,
}

/// An endpoint, its port, and the shared state of the service while one input is handled.
pub(super) struct Context<'a> {
    pub(super) now: Instant,
    pub(super) key: EndpointKey,
    pub(super) shared: &'a mut Shared,
    pub(super) port: &'a mut LocalPort,
    pub(super) identity: &'a mut Identity,
}

impl Context<'_> {
    pub(super) const fn config(&self) -> &ServiceConfig {
        &self.shared.config
    }

    /// Returns the state of the endpoint's port.
    pub(super) const fn port_state(&self) -> &PortState {
        &self.port.state
    }

    /// Returns the name of the endpoint for events.
    pub(super) fn name(&self) -> EndpointName {
        let state = self.port_state();
        let (device, p_key) = (state.device.clone(), self.identity.p_key);
        EndpointName { device, port: state.link.number, p_key }
    }

    /// Returns true if the endpoint has the address.
    pub(super) fn is_own(&self, address: &Address) -> bool {
        self.identity.addresses.contains(address)
    }

    /// Returns a number that peers cannot predict.
    pub(super) fn random(&mut self) -> u64 {
        self.shared.rng.next_u64()
    }

    /// Returns a random duration between 75 and 125 % of the given one.
    pub(super) fn jitter(&mut self, time: Duration) -> Duration {
        let random = f64::from(self.shared.rng.next_u32()) / f64::from(u32::MAX);
        time.mul_f64(0.75 + random / 2.0)
    }

    pub(super) fn set_timer(&mut self, at: Instant, timer: Timer) {
        self.shared.timers.0.insert((at, timer, self.key));
    }

    pub(super) fn clear_timer(&mut self, at: Instant, timer: Timer) {
        self.shared.timers.0.remove(&(at, timer, self.key));
    }

    /// Queues an action that the port has to execute.
    pub(super) fn act(&mut self, action: Action) {
        self.port.actions.push_back(action);
    }

    pub(super) fn report(&mut self, event: Event) {
        self.shared.events.push_back(event);
    }

    /// Sends a request to the SA.
    pub(super) fn send_sa<A: Attribute>(
        &mut self,
        method: Method,
        components: &[u8],
        attribute: &A,
        request: SaRequest,
    ) -> TransactionId {
        self.port.send_sa(&self.shared.config, method, components, attribute, request)
    }

    /// Cancels the SA request with this transaction ID, if any.
    pub(super) fn cancel_sa(&mut self, transaction: Option<TransactionId>) {
        if let Some(transaction) = transaction {
            self.port.cancel_sa(transaction);
        }
    }

    /// Responds to a client request with an error.
    pub(super) fn fail(&mut self, request: &PendingRequest, status: ClientStatus) {
        self.shared.pending.fail(request, status, &mut self.identity.counters);
    }
}

/// Returns the delay of a retry. After the first failure, `failures` is 0 and the delay is the shortest one. Each
/// further failure doubles the delay, up to the longest one.
pub(super) fn backed_off([shortest, longest]: [Duration; 2], failures: u32) -> Duration {
    (shortest * (1 << failures.min(10))).min(longest)
}
