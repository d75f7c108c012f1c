//! The connection manager: how two queue pairs find each other and part; IBTA volume 1, chapter 12.
//!
//! | module | holds |
//! |---|---|
//! | [`config`] | [`CmConfig`], [`Ece`], [`CmCounters`], [`timeout`] |
//! | [`params`] | what a consumer says: [`ConnectParams`], [`AcceptParams`], [`SidrParams`], [`SidrAnswer`] |
//! | [`event`] | [`CmEvent`]: what a consumer is told |
//! | [`service`], [`cma`] | [`ServiceId`], [`PortSpace`], listeners; the addresses of `rdma_cm` |
//! | [`connection`] | [`ConnectionId`], [`State`] |
//! | `active`, `passive` | REQ, REP and RTU of the side that asks and of the other one |
//! | `refuse` | REJ and MRA |
//! | `disconnect` | DREQ, DREP, time-wait, stale connections |
//! | `sidr` | services of datagrams |
//! | [`error`], `timers` | what a consumer can do wrong; the table of deadlines |
//!
//! It knows no queue pairs: whoever owns them gets events and calls methods. Messages come and go
//! over QP1, with the [`Route`] that each travels by.
//!
//! ```
//! use ib_cm::{AcceptParams, Cm, CmConfig, CmEvent, ConnectParams, ServiceId};
//! use ib_link::Route;
//! use ib_types::{Guid, Instant, Psn, Qpn};
//!
//! let config = |guid| CmConfig { ca_guid: Guid(guid), ..CmConfig::default() };
//! let (mut here, mut there) = (Cm::new(config(1), [1; 32]), Cm::new(config(2), [2; 32]));
//! let now = Instant::ZERO;
//! let route = Route { slid: 1, dlid: 2, ..Route::default() };
//! let back = Route { slid: 2, dlid: 1, ..route };
//!
//! there.listen(ServiceId(0x1234))?;
//! let (qpn, psn) = (Qpn::truncated(17), Psn::truncated(1000));
//! let id = here.connect(now, &ConnectParams::new(route, ServiceId(0x1234), qpn, psn))?;
//!
//! let (_, req) = here.poll_transmit().expect("a REQ");
//! there.handle(now, &back, &req);
//! let Some(CmEvent::Requested(requested)) = there.poll_event() else { panic!() };
//! assert_eq!(requested.req.local_qpn, qpn);
//! let (qpn, psn) = (Qpn::truncated(99), Psn::truncated(5));
//! there.accept(now, requested.id, &AcceptParams::new(qpn, psn))?;
//!
//! let (_, rep) = there.poll_transmit().expect("a REP");
//! here.handle(now, &route, &rep);
//! let Some(CmEvent::Connected(connected)) = here.poll_event() else { panic!() };
//! assert_eq!(connected.rep.local_qpn, qpn);
//! // The queue pair is programmed, then:
//! here.established(id, b"")?;
//!
//! let (_, rtu) = here.poll_transmit().expect("an RTU");
//! there.handle(now, &back, &rtu);
//! assert!(matches!(there.poll_event(), Some(CmEvent::Established { .. })));
//! # Ok::<(), ib_cm::CmError>(())
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ib_link::Route;
use ib_types::{Guid, Instant, Qpn};
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass};
use rand::rngs::ChaCha12Rng;
use rand::{Rng, SeedableRng};

mod active;
pub mod cma;
pub mod config;
pub mod connection;
mod disconnect;
pub mod error;
pub mod event;
pub mod params;
mod passive;
mod refuse;
pub mod service;
mod sidr;
mod timers;

pub use cma::CmaHeader;
pub use config::{CmConfig, CmCounters, Ece, timeout};
pub use connection::{ConnectionId, State};
pub use error::CmError;
pub use event::{
    Cause, CmEvent, Connected, Failure, Requested, SidrRequested, SidrResolved, accepted_mtu,
};
pub use params::{AcceptParams, ConnectParams, SidrAnswer, SidrParams};
pub use service::{ListenerId, PortSpace, ServiceId};
pub use sidr::{SidrId, SidrRequestId};

use connection::Connection;
use service::Listeners;
use sidr::Questions;
use timers::{Deadlines, Key, Timer};

/// Makes and ends the connections of one HCA.
///
/// Its owner passes on what arrives at QP1 ([`Cm::handle`]), calls [`Cm::handle_timeout`] when
/// [`Cm::poll_timeout`] says, and after either and after any other call asks [`Cm::poll_transmit`]
/// and [`Cm::poll_event`] until they return nothing.
///
/// What a peer says is believed when it names both communication IDs, which are random; addresses
/// are not compared, for a peer of several ports may answer from any of them.
#[derive(Debug)]
pub struct Cm {
    config: CmConfig,
    random: ChaCha12Rng,
    listeners: Listeners,
    connections: BTreeMap<ConnectionId, Box<Connection>>,
    /// By the peer's HCA and number.
    by_remote: BTreeMap<(Guid, u32), ConnectionId>,
    /// By the peer's HCA and queue pair, those in time-wait left out.
    by_qpn: BTreeMap<(Guid, Qpn), ConnectionId>,
    half_open: usize,
    questions: Questions,
    deadlines: Deadlines,
    outgoing: VecDeque<(Route, Mad)>,
    events: VecDeque<CmEvent>,
    counters: CmCounters,
    /// Since when refusals are counted, and how many more there may be within a second.
    second: Instant,
    refusals: u32,
}

/// How many answers may wait for [`Cm::poll_transmit`], and how many events for [`Cm::poll_event`],
/// beyond one of each connection, before what peers send is dropped.
const MOST_WAITING: usize = 1_024;

impl Cm {
    /// Returns a manager without connections.
    ///
    /// The seed makes its communication IDs; they guard connections against third parties as long as
    /// nobody else can guess it.
    #[must_use]
    pub fn new(config: CmConfig, seed: [u8; 32]) -> Self {
        Self {
            second: Instant::ZERO,
            refusals: config.refusals_per_second,
            config,
            random: ChaCha12Rng::from_seed(seed),
            listeners: Listeners::default(),
            connections: BTreeMap::new(),
            by_remote: BTreeMap::new(),
            by_qpn: BTreeMap::new(),
            half_open: 0,
            questions: Questions::default(),
            deadlines: Deadlines::default(),
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
            counters: CmCounters::default(),
        }
    }

    /// Starts to take requests for a service, of connections and of datagrams.
    ///
    /// # Errors
    /// Fails with [`CmError::ServiceInUse`] when somebody listens for it.
    pub fn listen(&mut self, service: ServiceId) -> Result<ListenerId, CmError> {
        self.listeners.add(service, false)
    }

    /// Starts to take requests for a port of `rdma_cm`, whose private data starts with a
    /// [`CmaHeader`]. Requests with a header that is not legal are refused.
    ///
    /// # Errors
    /// Fails with [`CmError::ServiceInUse`] when somebody listens for it.
    pub fn listen_cm(&mut self, space: PortSpace, port: u16) -> Result<ListenerId, CmError> {
        self.listeners.add(ServiceId::port(space, port), true)
    }

    /// Stops to take requests; those that came stay. Returns false when nobody listens by this
    /// number.
    pub fn unlisten(&mut self, id: ListenerId) -> bool {
        self.listeners.remove(id)
    }

    /// Takes a datagram that arrived at QP1. `route` is seen from here: its source is the own GID.
    ///
    /// Returns false for other classes, which are left to others.
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

    /// Returns false for a message on a connection with an HCA of this project, which sends no weak packets.
    fn accepts_weak(&self, mad: &Mad) -> bool {
        // In all messages but those that begin a connection the receiver's number is the second one.
        let number = match mad.attribute_id() {
            AttributeId::CM_REQ | AttributeId::CM_SIDR_REQ | AttributeId::CM_SIDR_REP => {
                return true;
            }
            _ => u32::from_be_bytes([mad.0[28], mad.0[29], mad.0[30], mad.0[31]]),
        };
        self.connections.get(&ConnectionId(number)).is_none_or(|connection| connection.accepts_weak)
    }

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((key, timer)) = self.deadlines.take_due(now) {
            match key {
                Key::Connection(id) => match timer {
                    Timer::Response => self.handle_silence(now, id),
                    Timer::Consumer => self.handle_silent_consumer(now, id),
                    Timer::TimeWait => self.forget(id),
                },
                Key::Asked(id) => self.handle_sidr_silence(now, id),
                Key::Served(id) => self.handle_sidr_timer(now, id, timer),
            }
        }
    }

    /// Returns the next datagram to be sent from QP1 to QP1, and how it travels.
    pub fn poll_transmit(&mut self) -> Option<(Route, Mad)> {
        let datagram = self.outgoing.pop_front()?;
        self.counters.sent += 1;
        Some(datagram)
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<CmEvent> {
        self.events.pop_front()
    }

    /// Returns when [`Cm::handle_timeout`] has something to do; `None` while nothing is waited for.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// Returns the state of a connection; `None` when there is none of this number.
    #[must_use]
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        self.connections.get(&id).map(|connection| connection.state)
    }

    /// Returns the number of connections, those in time-wait included.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns the number of questions for services of datagrams that are remembered, own ones and
    /// those of others.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.questions.len()
    }

    /// Returns what it has seen and dropped.
    #[must_use]
    pub const fn counters(&self) -> CmCounters {
        self.counters
    }

    /// Returns a random number that no connection and no question has; never 0.
    fn free_number(&mut self) -> u32 {
        loop {
            let number = self.random.next_u32();
            let is_taken = self.connections.contains_key(&ConnectionId(number))
                || self.questions.has_asked(SidrId(number));
            if number != 0 && !is_taken {
                return number;
            }
        }
    }

    /// Returns the connection of a number, for a call of the consumer.
    fn lookup(&self, call: &'static str, id: ConnectionId) -> Result<&Connection, CmError> {
        self.connections
            .get(&id)
            .map(|connection| &**connection)
            .ok_or(CmError::UnknownConnection { call, id })
    }

    /// Returns the connection of a pair of numbers in a message: the own one, that of the peer.
    fn find(&self, own: u32, peers: u32) -> Option<&Connection> {
        let connection = self.connections.get(&ConnectionId(own))?;
        connection.remote.filter(|remote| remote.comm_id == peers)?;
        Some(connection)
    }

    fn get_mut(&mut self, id: ConnectionId) -> &mut Connection {
        self.connections.get_mut(&id).expect("the connection was looked up before")
    }

    /// Puts a connection into a state and stops its timer.
    fn enter(&mut self, id: ConnectionId, state: State) {
        let connection = self.get_mut(id);
        let before = std::mem::replace(&mut connection.state, state);
        self.half_open += usize::from(state.is_half_open());
        self.half_open -= usize::from(before.is_half_open());
        self.deadlines.stop(Key::Connection(id));
    }

    /// Sends a message that awaits an answer, and starts to wait.
    fn send_awaiting(&mut self, now: Instant, id: ConnectionId, mad: Mad) {
        let connection = self.get_mut(id);
        connection.left = connection.retries;
        connection.is_extended = false;
        connection.last = Some(mad);
        let (route, interval) = (connection.route, connection.interval);
        self.deadlines.set(Key::Connection(id), Timer::Response, now + interval);
        self.send(route, mad);
    }

    /// Sends a message that may be needed again.
    fn send_remembered(&mut self, id: ConnectionId, mad: Mad) {
        let connection = self.get_mut(id);
        connection.last = Some(mad);
        let route = connection.route;
        self.send(route, mad);
    }

    /// Sends what was last sent once more, because what it answers came again.
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

    /// Sends an answer, unless too many wait. A peer that asked will ask again.
    fn reply(&mut self, route: Route, mad: Mad) {
        if self.outgoing.len() < self.config.max_connections.saturating_add(MOST_WAITING) {
            self.send(route, mad);
        } else {
            self.counters.overflowed += 1;
        }
    }

    /// Answers somebody with whom there is no connection, but not more of them than so many in a second.
    fn reply_to_anybody(&mut self, route: Route, mad: Mad) {
        if self.refusals == 0 {
            self.counters.limited += 1;
            return;
        }
        self.refusals -= 1;
        self.reply(route, mad);
    }

    /// Returns true when the owner has not asked for events for too long.
    fn is_congested(&self) -> bool {
        self.events.len() >= self.config.max_connections.saturating_add(MOST_WAITING)
    }
}

#[cfg(test)]
mod tests;
