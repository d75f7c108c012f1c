//! The fabric and its clock.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::time::Duration;

use ib_link::NodeAgent;
use ib_topology::{Fabric, LinkRate, NodeId, PortId};
use ib_types::rng::Rng;
use ib_types::{Instant, Mtu};
use ib_wire::mad::sm::{PhysState, PortState};
use ib_wire::mad::smp::HopNode;
use slab::Slab;

use crate::client::{Client, Request, RequestKey};
use crate::event::{Event, EventQueue, Timer};
use crate::link::{Flight, SharedHold};
use crate::log::{Entry, Log, LogLevel};
use crate::node::{LINEAR_CAPACITY, MULTICAST_CAPACITY, Node};
use crate::port::Port;
use crate::script::Script;
use crate::stats::Stats;
use crate::tap::Tap;
use crate::transport::Receiver;

/// How a fabric behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seeds all that is random.
    pub seed: u64,
    /// How long a packet takes from the end of one port to that of the next, beside the time of its
    /// bytes: cable and switch.
    pub latency: Duration,
    /// The buffer of each VL of a port in bytes, at least one packet of the greatest MTU.
    pub lane_buffer: u32,
    /// The largest payload that ports can carry; a subnet manager says how much they do.
    pub mtu_cap: Mtu,
    /// `LinearFDBCap` of all switches: the number of LIDs that they can forward, from LID 0 on.
    pub linear_fdb_cap: u16,
    /// `MulticastFDBCap` of all switches: the number of multicast LIDs that they can forward.
    pub multicast_fdb_cap: u16,
    /// How many packets of subnet management may wait to leave by a port.
    pub management_buffer: usize,
    /// How long a client has to answer a request that was handed to it.
    pub answer_within: Duration,
    /// How much is logged.
    pub log: LogLevel,
    /// Whether packets are kept for [`Sim::take_packets`].
    pub tap: bool,
}

impl Default for Options {
    /// Seed 0, 200 ns per hop, 16 KiB per VL, an MTU of 2048 bytes as ibsim has it, 4096 packets of subnet management, 30 s to answer,
    /// no log.
    fn default() -> Self {
        Self {
            seed: 0,
            latency: Duration::from_nanos(200),
            lane_buffer: 16 * 1024,
            mtu_cap: Mtu::B2048,
            linear_fdb_cap: LINEAR_CAPACITY,
            multicast_fdb_cap: MULTICAST_CAPACITY,
            management_buffer: 4096,
            answer_within: Duration::from_secs(30),
            log: LogLevel::Off,
            tap: false,
        }
    }
}

/// A client's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A fabric whose time runs when it is told to.
pub struct Sim {
    pub(crate) options: Options,
    now: Instant,
    steps: u64,
    pub(crate) nodes: Vec<Node>,
    /// What every packet asks of a node and nothing changes, close together.
    places: Vec<Place>,
    pub(crate) ports: Vec<Port>,
    pub(crate) names: HashMap<String, NodeId>,
    pub(crate) queue: EventQueue<Event>,
    /// How many of the events are not timers.
    pub(crate) in_transit: usize,
    pub(crate) flights: Slab<Flight>,
    /// Room that several copies of a packet stand in.
    pub(crate) shared: Slab<SharedHold>,
    /// The packets so far.
    pub(crate) packets: u64,
    pub(crate) clients: Vec<Option<Client>>,
    /// Where the search for a client's number starts.
    pub(crate) next_client: u32,
    pub(crate) clients_of: BTreeMap<PortId, Vec<ClientId>>,
    pub(crate) requests: Slab<Request>,
    /// The requests that clients were handed to answer, by the transaction under which
    /// they were and the port at which.
    pub(crate) handed: BTreeMap<(u64, PortId), RequestKey>,
    /// The clients for which something has come.
    pub(crate) woken: VecDeque<ClientId>,
    pub(crate) request_number: u32,
    pub(crate) agents: Vec<AgentSlot>,
    pub(crate) agents_of: BTreeMap<(NodeId, u8), u32>,
    /// Packets for queue pairs that are neither of clients nor of agents, by end port.
    pub(crate) receivers: BTreeMap<PortId, Receiver>,
    /// The open ports whose owners have something to do.
    pub(crate) woken_ports: VecDeque<PortId>,
    /// Memory for the payload of packets.
    pub(crate) spare: Vec<Vec<u8>>,
    pub(crate) rng: Rng,
    pub(crate) log: Log,
    pub(crate) tap: Option<Tap>,
    pub(crate) stats: Stats,
    pub(crate) script: Script,
    pub(crate) unplugged: BTreeMap<PortId, PortId>,
    pub(crate) latency: u64,
    pub(crate) guid_changes: u64,
    pub(crate) route_changes: u64,
}

/// What never changes of a node.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The index of port 0.
    first_port: u32,
    hop: HopNode,
}

/// An agent of a node.
pub(crate) struct AgentSlot {
    pub(crate) node: NodeId,
    pub(crate) agent: Box<dyn NodeAgent>,
    /// When it wants to be called, as far as a timer is set.
    pub(crate) wakes: Option<Instant>,
}

impl Sim {
    /// Makes a fabric as a file describes it: all links up, no LIDs, nothing configured.
    ///
    /// # Panics
    /// Panics when the buffer of a VL holds no packet of 4,096 bytes.
    #[must_use]
    pub fn new(fabric: &Fabric, options: Options) -> Self {
        assert!(options.lane_buffer >= 4224, "a lane holds at least a packet of 4,096 bytes");
        let mut nodes = Vec::with_capacity(fabric.node_count());
        let mut places = Vec::with_capacity(fabric.node_count());
        let mut ports = Vec::new();
        for (id, node) in fabric.nodes() {
            let fastest = fabric
                .ports_of(id)
                .filter(|(_, port)| port.peer.is_some())
                .map(|(_, port)| port.rate)
                .max_by_key(|rate| rate.megabits_per_second())
                .unwrap_or(LinkRate::DEFAULT);
            let mut made = Node::new(node);
            made.set_table_capacities((options.linear_fdb_cap, options.multicast_fdb_cap));
            let hop = HopNode { kind: node.kind, ports: made.ports };
            places.push(Place { first_port: ports.len() as u32, hop });
            nodes.push(made);
            for (_, port) in fabric.ports_of(id) {
                let rate = match (port.peer, port.number) {
                    (Some(_), _) => port.rate,
                    (None, 0) => LinkRate::DEFAULT,
                    (None, _) => fastest,
                };
                let mut made = Port::new(id, node.kind, port.number, (port.guid, rate));
                if port.peer.is_none() {
                    made.set_active(LinkRate::DEFAULT);
                }
                if let Some(mask) = port.enabled_widths {
                    made.enable_widths(mask);
                }
                made.cable = port.peer;
                made.set_mtu_cap(node.kind, options.mtu_cap);
                ports.push(made);
            }
        }
        let names = fabric.nodes().map(|(id, node)| (node.name.clone(), id)).collect();
        let mut sim = Self {
            now: Instant::ZERO,
            steps: 0,
            nodes,
            places,
            ports,
            names,
            queue: EventQueue::new(),
            in_transit: 0,
            flights: Slab::new(),
            shared: Slab::new(),
            packets: 0,
            clients: Vec::new(),
            next_client: 0,
            clients_of: BTreeMap::new(),
            requests: Slab::new(),
            handed: BTreeMap::new(),
            woken: VecDeque::new(),
            request_number: 0,
            agents: Vec::new(),
            agents_of: BTreeMap::new(),
            receivers: BTreeMap::new(),
            woken_ports: VecDeque::new(),
            spare: Vec::new(),
            rng: Rng::stream(options.seed, 0x51_4d),
            log: Log::default(),
            tap: options.tap.then(Tap::default),
            stats: Stats::default(),
            script: Script::default(),
            unplugged: BTreeMap::new(),
            latency: options.latency.as_nanos() as u64,
            guid_changes: 0,
            route_changes: 0,
            options,
        };
        for (one, other) in fabric.links() {
            for port in [one, other] {
                let info = &mut sim.port_mut(port).info;
                info.port_state = PortState::INIT;
                info.phys_state = PhysState::LINK_UP;
            }
        }
        sim.log.level = sim.options.log;
        sim
    }

    /// Returns the time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns when the next thing happens; `None` when nothing will until somebody does something.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.queue.next_at()
    }

    /// Processes all events up to a time, which is the current time afterwards.
    ///
    /// # Panics
    /// Panics if the time is [`Instant::NEVER`]. Events may repeat indefinitely, such as a trap that no SM
    /// represses, and such a run would never return. [`Sim::settle`] runs a fabric until no packet is in flight.
    pub fn run_until(&mut self, moment: Instant) {
        assert!(moment < Instant::NEVER, "a fabric cannot run until a moment that never comes");
        while let Some((at, event)) = self.queue.pop_by(moment) {
            self.step(at, event);
        }
        self.now = self.now.max(moment);
    }

    /// Lets the next thing happen that happens by a moment; returns false when there is none. By
    /// [`Instant::NEVER`] that may be true indefinitely: see [`Sim::run_until`].
    pub fn run_step(&mut self, moment: Instant) -> bool {
        match self.queue.pop_by(moment) {
            Some((at, event)) => {
                self.step(at, event);
                true
            }
            None => false,
        }
    }

    /// Lets everything happen that happens by a moment, and then lets the clock run ahead of it
    /// until no packet is on its way any more.
    ///
    /// With that, a simulator that serves the real world answers at once: what takes microseconds
    /// in the fabric is not waited for, but what waits for seconds is.
    pub fn settle(&mut self, moment: Instant) {
        loop {
            let until = if self.in_transit > 0 { Instant::NEVER } else { self.now.max(moment) };
            let Some((at, event)) = self.queue.pop_by(until) else { break };
            self.step(at, event);
        }
        self.now = self.now.max(moment);
    }

    /// Lets happen what happens by a moment of the real world's clock, as [`Sim::settle`] does, but
    /// packets run ahead of that clock by no more than [`Sim::AHEAD`], and no more than
    /// [`Sim::BATCH`] things happen. What is left happens with the next calls; see [`Sim::due`].
    ///
    /// With that, whoever serves others comes back to them however much is going on in the fabric.
    pub fn keep_up(&mut self, moment: Instant) {
        let ahead = moment + Self::AHEAD;
        for _ in 0..Self::BATCH {
            let until = if self.in_transit > 0 { ahead } else { moment };
            let Some((at, event)) = self.queue.pop_by(until) else {
                self.now = self.now.max(moment);
                return;
            };
            self.step(at, event);
        }
    }

    /// Returns when [`Sim::keep_up`] has something to do; `None` when it will not until somebody does
    /// something.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let at = self.queue.next_at()?;
        let ahead = if self.in_transit > 0 { Self::AHEAD } else { Duration::ZERO };
        Some(Instant::from_nanos(at.as_nanos().saturating_sub(ahead.as_nanos() as u64)))
    }

    /// How far the fabric's clock runs ahead of the real one while packets are on their way.
    pub const AHEAD: Duration = Duration::from_millis(1);

    /// How much happens in one call of [`Sim::keep_up`] at most.
    pub const BATCH: usize = 10_000;

    /// Returns how many things have happened. What was told a fabric is told it again in the same
    /// state when as many have happened and the clock shows the same.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Lets things happen until so many have in all, and sets the clock forward to a moment.
    pub fn repeat(&mut self, steps: u64, moment: Instant) {
        while self.steps < steps
            && let Some((at, event)) = self.queue.pop_by(Instant::NEVER)
        {
            self.step(at, event);
        }
        self.now = self.now.max(moment);
    }

    fn step(&mut self, at: Instant, event: Event) {
        self.steps += 1;
        self.now = self.now.max(at);
        match event {
            Event::Arrive { port, flight, epoch } => {
                self.in_transit -= 1;
                self.arrive(port, flight, epoch);
            }
            Event::Sent { port, epoch } => {
                self.in_transit -= 1;
                self.sent(port, epoch);
            }
            Event::Credit { port, lane, blocks, epoch } => {
                self.in_transit -= 1;
                self.credit(port, (lane, blocks), epoch);
            }
            Event::Timer(timer) => self.timer(timer),
        }
    }

    fn timer(&mut self, timer: Timer) {
        match timer {
            Timer::HeadOfQueue { port, lane, epoch } => self.head_of_queue(port, lane, epoch),
            Timer::Answer { request } => self.no_answer(request),
            Timer::Trap { node, transaction } => self.send_trap(node, transaction),
            Timer::Lease { port } => self.lease_ends(port),
            Timer::Agent { agent } => self.wake_agent(agent),
            Timer::Script { step } => self.script_step(step),
            Timer::Flap { flap } => self.flap(flap),
        }
    }

    /// Lets something happen at a moment.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Instant, event: Event) {
        if !matches!(event, Event::Timer(_)) {
            self.in_transit += 1;
        }
        self.queue.push(at, event);
    }

    #[inline]
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    #[inline]
    pub(crate) fn port(&self, id: PortId) -> &Port {
        &self.ports[id.index()]
    }

    #[inline]
    pub(crate) fn port_mut(&mut self, id: PortId) -> &mut Port {
        &mut self.ports[id.index()]
    }

    /// Returns a port that is known to exist.
    #[inline]
    pub(crate) fn port_id(&self, node: NodeId, number: u8) -> PortId {
        PortId(self.places[node.index()].first_port + u32::from(number))
    }

    /// Returns what the rules of directed routes ask of a node.
    #[inline]
    pub(crate) fn hop_node(&self, node: NodeId) -> HopNode {
        self.places[node.index()].hop
    }

    /// Forgets what a manager has told a port.
    pub(crate) fn reset_port(&mut self, port: PortId) {
        let kind = self.node(self.port(port).node).kind;
        let most = self.options.mtu_cap;
        let port = self.port_mut(port);
        port.reset(kind);
        port.set_mtu_cap(kind, most);
    }

    /// Sets the state of a port and says so.
    pub(crate) fn set_state(&mut self, port: PortId, to: PortState) {
        let from = self.port(port).info.port_state;
        if from != to {
            if from == PortState::ACTIVE {
                self.port_mut(port).inactive_since = self.now;
            }
            self.port_mut(port).info.port_state = to;
            self.route_changes += 1;
            self.log(Entry::State { port, from, to });
            self.wake_port(port);
        }
    }
}

#[cfg(test)]
mod tests;
