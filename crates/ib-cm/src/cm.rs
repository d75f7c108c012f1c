//! [`Cm`]: dispatches messages, timers and calls.

use std::collections::VecDeque;
use std::time::Duration;

use ib_link::Route;
use ib_types::Instant;
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass};
use rand::rngs::ChaCha12Rng;
use rand::{Rng, SeedableRng};

use crate::config::{CmConfig, CmCounters};
use crate::connection::{Connection, State};
use crate::connections::ConnectionTable;
use crate::error::CmError;
use crate::event::CmEvent;
use crate::id::{ConnectionId, ListenerId, PortSpace, ServiceId, SidrId};
use crate::listeners::Listeners;
use crate::sidr_table::SidrTable;
use crate::timers::{Deadlines, Key, Timer};

mod active;
mod disconnect;
mod passive;
mod reject;
mod sidr;

/// Connection manager of one HCA.
///
/// The owner passes MADs received at QP1 to [`Cm::handle`], and calls [`Cm::handle_timeout`] at the time that
/// [`Cm::poll_timeout`] returns. After any call that can change the CM, the owner polls [`Cm::poll_transmit`] and
/// [`Cm::poll_event`] until both return `None`.
///
/// The CM accepts a message if it contains both communication IDs of the connection, which are random. It does not
/// compare addresses, because a peer with several ports may respond from any of them.
#[derive(Debug)]
pub struct Cm {
    config: CmConfig,
    random: ChaCha12Rng,
    listeners: Listeners,
    connections: ConnectionTable,
    sidr: SidrTable,
    deadlines: Deadlines,
    outgoing: VecDeque<(Route, Mad)>,
    events: VecDeque<CmEvent>,
    counters: CmCounters,
    /// Start of the current interval of one second. Within this interval, the CM may still send `refusals` responses to
    /// peers without a connection.
    second: Instant,
    refusals: u32,
}

/// The queue of responses and the queue of events are limited to the maximum number of connections plus this number.
/// If the queue of responses is full, the CM drops responses. If the queue of events is full, it rejects new REQs and
/// `SIDR_REQ`s.
const MAX_QUEUED: usize = 1_024;

impl Cm {
    /// Creates a CM without connections.
    ///
    /// The seed determines the communication IDs. These IDs protect connections against third parties, so the seed must
    /// be secret.
    #[must_use]
    pub fn new(config: CmConfig, seed: [u8; 32]) -> Self {
        Self {
            second: Instant::ZERO,
            refusals: config.refusals_per_second,
            config,
            random: ChaCha12Rng::from_seed(seed),
            listeners: Listeners::default(),
            connections: ConnectionTable::default(),
            sidr: SidrTable::default(),
            deadlines: Deadlines::default(),
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
            counters: CmCounters::default(),
        }
    }

    /// Listens for connection requests and SIDR requests to a service.
    ///
    /// # Errors
    /// Fails with [`CmError::ServiceInUse`] if the service has a listener.
    pub fn listen(&mut self, service: ServiceId) -> Result<ListenerId, CmError> {
        self.listeners.add(service, false)
    }

    /// Listens on an `rdma_cm` port. The private data of requests to the port starts with a
    /// [`CmaHeader`](crate::CmaHeader). Requests with an invalid header are rejected.
    ///
    /// # Errors
    /// Fails with [`CmError::ServiceInUse`] if the service has a listener.
    pub fn listen_cm(&mut self, space: PortSpace, port: u16) -> Result<ListenerId, CmError> {
        self.listeners.add(ServiceId::port(space, port), true)
    }

    /// Stops listening, but keeps the requests that were already received. Returns false if there is no such listener.
    pub fn unlisten(&mut self, id: ListenerId) -> bool {
        self.listeners.remove(id)
    }

    /// Processes a MAD received at QP1. `route` is the route of the response, so its source GID is the local GID.
    ///
    /// Returns false if the MAD is not of the management class of the CM.
    pub fn handle(&mut self, now: Instant, route: &Route, mad: &Mad) -> bool {
        if mad.class() != MgmtClass::COMMUNICATION {
            return false;
        }
        self.counters.received += 1;
        if now.since(self.second) >= Duration::from_secs(1) {
            (self.second, self.refusals) = (now, self.config.refusals_per_second);
        }
        let is_legal = mad.base_version() == 1
            && mad.class_version() == MgmtClass::COMMUNICATION.version()
            && mad.method() == Method::SEND;
        if !is_legal || route.is_weak && !self.accepts_weak(mad) {
            self.counters.malformed += 1;
            return true;
        }
        match mad.attribute_id() {
            AttributeId::CM_REQ => self.handle_req(now, route, mad),
            AttributeId::CM_REP => self.handle_rep(now, route, mad),
            AttributeId::CM_RTU => self.handle_rtu(mad),
            AttributeId::CM_REJ => self.handle_rej(now, mad),
            AttributeId::CM_MRA => self.handle_mra(now, mad),
            AttributeId::CM_DREQ => self.handle_dreq(now, route, mad),
            AttributeId::CM_DREP => self.handle_drep(now, mad),
            AttributeId::CM_LAP => self.handle_lap(mad),
            AttributeId::CM_SIDR_REQ => self.handle_sidr_req(now, route, mad),
            AttributeId::CM_SIDR_REP => self.handle_sidr_rep(mad),
            _ => self.counters.unsupported += 1,
        }
        true
    }

    /// Returns true if the CM accepts this message although only a part of its ICRC could be checked. The CM does not
    /// accept such a message for a connection with an HCA of ibfabric.
    fn accepts_weak(&self, mad: &Mad) -> bool {
        // In all messages except REQ and SIDR_REQ, the receiver's communication ID is the second ID in the message.
        let number = match mad.attribute_id() {
            AttributeId::CM_REQ | AttributeId::CM_SIDR_REQ | AttributeId::CM_SIDR_REP => {
                return true;
            }
            _ => u32::from_be_bytes([mad.0[28], mad.0[29], mad.0[30], mad.0[31]]),
        };
        self.connections.get(ConnectionId(number)).is_none_or(|connection| connection.accepts_weak)
    }

    /// Runs the timers that have expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((key, timer)) = self.deadlines.take_due(now) {
            match key {
                Key::Connection(id) => match timer {
                    Timer::Response => self.handle_response_timeout(now, id),
                    Timer::Consumer => self.handle_consumer_timeout(now, id),
                    Timer::TimeWait => self.remove_connection(id),
                },
                Key::SidrSent(id) => self.handle_sidr_timeout(now, id),
                Key::SidrReceived(id) => self.handle_sidr_timer(now, id, timer),
            }
        }
    }

    /// Returns the next MAD to send from QP1 to the peer's QP1, and its route.
    pub fn poll_transmit(&mut self) -> Option<(Route, Mad)> {
        let datagram = self.outgoing.pop_front()?;
        self.counters.sent += 1;
        Some(datagram)
    }

    /// Returns the next event for the consumer.
    pub fn poll_event(&mut self) -> Option<CmEvent> {
        self.events.pop_front()
    }

    /// Returns the time at which [`Cm::handle_timeout`] has to be called; `None` if no timer runs.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// Returns the state of a connection; `None` if there is no such connection.
    #[must_use]
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        self.connections.get(id).map(|connection| connection.state)
    }

    /// Returns the number of connections, including those in time-wait.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns the number of SIDR requests: requests of this CM without a response, and requests of peers.
    #[must_use]
    pub fn sidr_requests(&self) -> usize {
        self.sidr.len()
    }

    /// Returns the counters of the CM.
    #[must_use]
    pub const fn counters(&self) -> CmCounters {
        self.counters
    }

    /// Returns a random communication ID that is not in use and not 0.
    fn free_number(&mut self) -> u32 {
        loop {
            let number = self.random.next_u32();
            let is_taken = self.connections.get(ConnectionId(number)).is_some()
                || self.sidr.sent.contains_key(&SidrId(number));
            if number != 0 && !is_taken {
                return number;
            }
        }
    }

    /// Returns the connection with this ID. If there is none, fails with an error that names `call`.
    fn lookup(&self, call: &'static str, id: ConnectionId) -> Result<&Connection, CmError> {
        self.connections.get(id).ok_or(CmError::UnknownConnection { call, id })
    }

    /// Returns the connection with these communication IDs, the local one and the peer's.
    fn find(&self, own: u32, peers: u32) -> Option<&Connection> {
        let connection = self.connections.get(ConnectionId(own))?;
        connection.remote.filter(|remote| remote.comm_id == peers)?;
        Some(connection)
    }

    fn get_mut(&mut self, id: ConnectionId) -> &mut Connection {
        self.connections.get_mut(id)
    }

    /// Sets the state of a connection and stops its timer.
    fn enter(&mut self, id: ConnectionId, state: State) {
        self.connections.enter(id, state);
        self.deadlines.stop(Key::Connection(id));
    }

    /// Sends a message that needs a response, and starts the timer for the response.
    fn send_awaiting(&mut self, now: Instant, id: ConnectionId, mad: Mad) {
        let connection = self.get_mut(id);
        connection.retries_left = connection.retries;
        connection.is_extended = false;
        connection.last = Some(mad);
        let (route, interval) = (connection.route, connection.interval);
        self.deadlines.set(Key::Connection(id), Timer::Response, now + interval);
        self.send(route, mad);
    }

    /// Sends a message and keeps it for retransmission.
    fn send_cached(&mut self, id: ConnectionId, mad: Mad) {
        let connection = self.get_mut(id);
        connection.last = Some(mad);
        let route = connection.route;
        self.send(route, mad);
    }

    /// Retransmits the message that the CM has sent last for a connection.
    fn repeat(&mut self, id: ConnectionId) {
        let connection = self.get_mut(id);
        if let Some(mad) = connection.last {
            let route = connection.route;
            self.reply(route, mad);
        }
    }

    fn send(&mut self, route: Route, mad: Mad) {
        self.outgoing.push_back((route, mad));
    }

    /// Sends a response. If too many responses are queued, drops it; the peer then repeats its request.
    fn reply(&mut self, route: Route, mad: Mad) {
        if self.outgoing.len() < self.config.max_connections.saturating_add(MAX_QUEUED) {
            self.send(route, mad);
        } else {
            self.counters.overflowed += 1;
        }
    }

    /// Sends a response to a peer without a connection. If the limit of such responses per second is reached, drops the
    /// response.
    fn reply_rate_limited(&mut self, route: Route, mad: Mad) {
        if self.refusals == 0 {
            self.counters.limited += 1;
            return;
        }
        self.refusals -= 1;
        self.reply(route, mad);
    }

    /// Returns true if too many events are queued because the owner has not polled them.
    fn is_congested(&self) -> bool {
        self.events.len() >= self.config.max_connections.saturating_add(MAX_QUEUED)
    }
}

#[cfg(test)]
mod tests;
