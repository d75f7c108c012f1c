//! The client: a session with a server, its paths and its requests.
//!
//! | module | holds |
//! |---|---|
//! | `config` | [`ClientConfig`], [`Policy`], [`PathSpec`] |
//! | `event` | [`ClientEvent`], [`Completion`], [`Outcome`], [`Failure`] |
//! | `session` | [`Limits`] of the server, the state that all paths share, and requests in flight: one slot for each chunk of the server |
//! | `path` | the paths: their state and objects, and the selection of a path for each request |
//! | `liveness` | heartbeats and probes of a path |
//! | `registrations` | memory that is registered at HCAs |
//! | `connect` | connecting a path |
//! | `info` | the addresses of the server's chunks |
//! | `requests` | [`Request`]: submission of requests, and completions: responses, heartbeats, failures |
//! | `failover` | retransmission or completion of the requests of failed paths |
//! | `fencing` | failed paths, and the requests that wait for their fences |
//! | `close` | adding, disconnecting and removing paths; the end of the session |
//!
//! A path that fails is reconnected after a delay. A session is up once a path is connected and each other path has
//! been connected or has failed once. Requests are sent over any connected path.

use std::collections::VecDeque;
use std::sync::Arc;

use ib_cm::CmEvent;
use ib_hca::{AsyncEvent, HcaEvent, Memory};
use ib_types::{Deadlines, Instant};
use rand::rngs::ChaCha12Rng;
use rand::{Rng, SeedableRng};

mod close;
pub(crate) use requests::heartbeat;
mod config;
mod connect;
mod event;
mod failover;
mod fencing;
mod info;
mod liveness;
mod path;
mod registrations;
mod requests;
mod session;

pub use close::AddError;
pub use config::{ClientConfig, NameError, PathSpec, Policy};
pub use event::{ClientEvent, Completion, Failure, Outcome, RequestError};
pub use path::{PathId, PathState};
pub use requests::{BufferId, Request, RequestId, Segment};
pub use session::Limits;

use fencing::Fencing;
use path::Paths;
use registrations::Registrations;
use session::{Session, Slots};

use crate::connection::{AdapterId, Adapters, SetupError};
use crate::stats::{ClientPathStats, ClientStat};

/// The timers of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// Timeout of connecting the path, until the info response has arrived.
    Connect,
    /// End of the heartbeat interval.
    Heartbeat,
    /// Next check for requests in flight for longer than [`ClientConfig::io_timeout`].
    IoTimeout,
    /// Next check for silence of the server, while requests are in flight.
    Probe,
    /// End of the delay before the path is reconnected.
    Reconnect,
    /// Timeout of waiting for the server to confirm a disconnect.
    Close,
    /// Earliest deadline of all fences of the session. This timer belongs to no path. Its key has a path number that no
    /// path has.
    Fence,
}

/// A session with a server.
///
/// The owner of the client passes events of HCAs to [`Client::handle_hca`] and [`Client::handle_cm`]. It calls
/// [`Client::handle_timeout`] at the time that [`Client::poll_timeout`] returns. After each call, the owner polls
/// [`Client::poll_completion`] and [`Client::poll_event`] until they return `None`.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    rng: ChaCha12Rng,
    session: Session,
    paths: Paths,
    registrations: Registrations,
    slots: Slots,
    fencing: Fencing,
    timers: Deadlines<(PathId, Timer)>,
    events: VecDeque<ClientEvent>,
    completions: VecDeque<Completion>,
    /// Paths that have failed during the current call. [`Client::settle`] handles them.
    failed: VecDeque<(PathId, Failure)>,
    /// Paths that were connected during the current call. [`Client::settle`] handles them.
    newly_connected: VecDeque<PathId>,
}

impl Client {
    /// Creates a session without paths. Adding a path by [`Client::add_path`] connects the session.
    ///
    /// The client derives UUIDs and nonces from `seed`. Take the seed from the system's random number generator, except
    /// in repeatable tests.
    #[must_use]
    pub fn new(config: ClientConfig, seed: [u8; 32]) -> Self {
        let mut rng = ChaCha12Rng::from_seed(seed);
        Self {
            session: Session::new(uuid(&mut rng)),
            rng,
            paths: Paths::new(config.processors),
            registrations: Registrations::default(),
            slots: Slots::default(),
            fencing: Fencing::default(),
            timers: Deadlines::default(),
            events: VecDeque::new(),
            completions: VecDeque::new(),
            failed: VecDeque::new(),
            newly_connected: VecDeque::new(),
            config,
        }
    }

    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// Sets the policy that selects a path for each request.
    pub const fn set_policy(&mut self, policy: Policy) {
        self.config.policy = policy;
    }

    /// Sets after how many failed attempts in succession the client stops reconnecting a path; `None` for no limit.
    pub const fn set_max_reconnect_attempts(&mut self, most: Option<u32>) {
        self.config.max_reconnect_attempts = most;
    }

    /// Returns the limits of the server; `None` before the first connection.
    #[must_use]
    pub const fn limits(&self) -> Option<Limits> {
        self.session.limits()
    }

    /// Returns the maximum length of the data of a request in bytes; 0 before the first connection.
    #[must_use]
    pub fn max_io_size(&self) -> u32 {
        self.limits().map_or(0, |limits| limits.max_io_size)
    }

    /// Returns the IDs of the paths.
    pub fn paths(&self) -> impl Iterator<Item = PathId> {
        self.paths.iter().map(|path| path.id)
    }

    /// Returns the specification of a path.
    #[must_use]
    pub fn spec(&self, id: PathId) -> Option<&PathSpec> {
        self.paths.get(id).map(|path| &path.spec)
    }

    /// Returns the state of a path.
    #[must_use]
    pub fn path_state(&self, id: PathId) -> Option<PathState> {
        self.paths.get(id).map(|path| path.state)
    }

    /// Returns the number of requests that are in flight on a path.
    #[must_use]
    pub fn inflight(&self, id: PathId) -> Option<u32> {
        self.paths.get(id).map(|path| path.inflight)
    }

    /// Returns the round-trip time of a path's last heartbeat.
    #[must_use]
    pub fn latency(&self, id: PathId) -> Option<std::time::Duration> {
        self.paths.get(id)?.liveness.latency()
    }

    /// Returns the statistics of a path.
    #[must_use]
    pub fn stats(&self, id: PathId) -> Option<&ClientPathStats> {
        self.paths.get(id).map(|path| &path.stats)
    }

    /// Resets one kind of statistics of a path. Returns false if there is no such path.
    pub fn reset_stats(&mut self, id: PathId, what: ClientStat) -> bool {
        self.paths.get_mut(id).map(|path| path.stats.reset(what)).is_some()
    }

    /// Returns the number of requests that have not completed: they are in flight or wait for a fence.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.slots.in_use()
            - self.slots.with(|slot| slot.state == session::SlotState::Abandoned).len()
    }

    /// Returns the number of the server's chunks that are in use. A chunk is in use until its request has completed and
    /// the server can no longer execute the request.
    #[must_use]
    pub const fn chunks_in_use(&self) -> usize {
        self.slots.in_use()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Returns the next completion of a request.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// Returns the time at which [`Client::handle_timeout`] has to be called; `None` if no timer runs.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Handles the timers that have expired.
    pub fn handle_timeout(&mut self, now: Instant, cx: &mut impl Adapters) {
        while let Some(((id, timer), ())) = self.timers.take_due(now) {
            match timer {
                Timer::Connect => {
                    let why = Failure::ConnectTimeout(self.config.connect_timeout);
                    self.fail_path(now, cx, id, why);
                }
                Timer::Heartbeat => self.end_heartbeat_interval(now, cx, id),
                Timer::IoTimeout => self.check_io_timeout(now, cx, id),
                Timer::Probe => self.probe(now, cx, id),
                Timer::Fence => self.give_up_fences(now, cx),
                Timer::Reconnect => self.start_connecting(now, cx, id),
                Timer::Close => self.path_closed(now, cx, id),
            }
            self.settle(now, cx);
        }
    }

    /// Handles an event of an HCA. `cpu` is the processor on which the event was received.
    pub fn handle_hca(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        cpu: u32,
        adapter: AdapterId,
        event: &HcaEvent,
    ) {
        match event {
            HcaEvent::Completion(cq) => {
                if let Some(id) = self.paths.of_cq(adapter, *cq) {
                    self.handle_completions(now, cx, cpu, id);
                    self.settle(now, cx);
                }
            }
            HcaEvent::Async(AsyncEvent::PortError) => self.link_down(now, cx, adapter),
            HcaEvent::Async(AsyncEvent::PortActive) => self.link_up(now, cx, adapter),
            _ => {}
        }
    }

    /// Handles an event of an HCA's connection manager. Returns the event if it does not belong to this session.
    pub fn handle_cm(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        event: CmEvent,
    ) -> Option<CmEvent> {
        let event = self.dispatch_cm(now, cx, adapter, event);
        self.settle(now, cx);
        event
    }

    /// Fails the paths of an HCA whose port has lost its link. [`Client::handle_hca`] calls this function for
    /// [`AsyncEvent::PortError`].
    pub fn link_down(&mut self, now: Instant, cx: &mut impl Adapters, adapter: AdapterId) {
        for id in self.paths.of_adapter(adapter) {
            let state = self.path_state(id);
            if matches!(state, Some(PathState::Connected | PathState::Connecting)) {
                self.fail_path(now, cx, id, Failure::LinkDown);
            }
        }
        self.settle(now, cx);
    }

    /// After the port of an HCA has regained its link, immediately reconnects those paths of the HCA that wait for a
    /// reconnect.
    pub fn link_up(&mut self, now: Instant, cx: &mut impl Adapters, adapter: AdapterId) {
        for id in self.paths.of_adapter(adapter) {
            if self.path_state(id) == Some(PathState::Waiting) {
                self.timers.set((id, Timer::Reconnect), (), now);
            }
        }
        self.handle_timeout(now, cx);
    }

    /// Registers memory for the data of requests. The memory is kept until it is deregistered.
    ///
    /// # Errors
    /// Fails if an HCA cannot register the memory.
    pub fn register(
        &mut self,
        cx: &mut impl Adapters,
        memory: Arc<Memory>,
    ) -> Result<BufferId, SetupError> {
        self.registrations.register(cx, memory, &self.slots)
    }

    /// Handles all paths that have failed or were connected during the current call.
    fn settle(&mut self, now: Instant, cx: &mut impl Adapters) {
        loop {
            while let Some((id, why)) = self.failed.pop_front() {
                self.fail_path(now, cx, id, why);
            }
            if self.newly_connected.is_empty() {
                return self.give_up(now, cx);
            }
            self.after_path_up(now, cx);
        }
    }
}

/// Returns a random UUID.
fn uuid(rng: &mut ChaCha12Rng) -> [u8; 16] {
    let mut uuid = [0; 16];
    rng.fill_bytes(&mut uuid);
    // The UUID has version 4 (random) and the variant of RFC 9562, section 5.4.
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}
