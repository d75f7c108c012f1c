//! Tests two CMs in virtual time. The wire between them loses, duplicates and delays messages. All
//! connections end. Both sides agree on the result if the loss rate is not extreme.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_wire::mad::cm::RejectReason;

use super::*;

/// The faults of the wire. Rates are in thousandths of the messages.
#[derive(Clone, Copy, Debug)]
struct Wire {
    lost: u32,
    repeated: u32,
    /// The maximum delay of a message in milliseconds.
    millis: u32,
}

/// The behaviour of the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Accept,
    /// Accepts after 500 ms, when the peer has already retransmitted the REQ.
    AcceptLate,
    Reject,
    Ignore,
}

/// The result of a connection on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Established,
    Failed,
}

struct Simulation {
    sides: [Cm; 2],
    random: ChaCha12Rng,
    wire: Wire,
    now: Instant,
    /// Messages in flight, by delivery time and sequence number, and their destination sides.
    in_flight: BTreeMap<(Instant, u64), (usize, Mad)>,
    next: u64,
    behaviour: Behaviour,
    to_accept: VecDeque<(Instant, ConnectionId)>,
    ends: [BTreeMap<ConnectionId, Outcome>; 2],
    /// For each side: established connections that have not ended.
    live: [BTreeSet<ConnectionId>; 2],
    removed: [u32; 2],
}

impl Simulation {
    fn new(seed: u64, wire: Wire, behaviour: Behaviour) -> Self {
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        let mut seeds = [[0; 32]; 2];
        seeds.iter_mut().for_each(|seed| random.fill_bytes(seed));
        let settings = |guid| CmConfig { time_wait: Some(Duration::from_secs(20)), ..config(guid) };
        let sides = [Cm::new(settings(1), seeds[0]), Cm::new(settings(2), seeds[1])];
        let mut simulation = Self {
            sides,
            random,
            wire,
            now: NOW,
            in_flight: BTreeMap::new(),
            next: 0,
            behaviour,
            to_accept: VecDeque::new(),
            ends: Default::default(),
            live: Default::default(),
            removed: [0; 2],
        };
        for side in &mut simulation.sides {
            side.listen(SERVICE).unwrap();
        }
        simulation
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.random.next_u32() % limit
    }

    fn is_hit(&mut self, thousandths: u32) -> bool {
        self.below(1_000) < thousandths
    }

    fn connect(&mut self, side: usize, number: u32) -> ConnectionId {
        let (own, other) = if side == 0 { (1, 2) } else { (2, 1) };
        let params = ConnectParams { route: route(own, other), ..request(number) };
        self.sides[side].connect(self.now, &params).unwrap()
    }

    /// Lets the consumers of both CMs handle their events, and passes all messages of the CMs to the wire.
    fn settle(&mut self) {
        for side in 0..2 {
            while let Some(event) = self.sides[side].poll_event() {
                self.consume(side, event);
            }
        }
        for side in 0..2 {
            while let Some((_, mad)) = self.sides[side].poll_transmit() {
                let copies = if self.is_hit(self.wire.repeated) { 2 } else { 1 };
                for _ in 0..copies {
                    if self.is_hit(self.wire.lost) {
                        continue;
                    }
                    let delay = u64::from(1 + self.below(self.wire.millis));
                    let at = self.now + Duration::from_millis(delay);
                    self.in_flight.insert((at, self.next), (1 - side, mad));
                    self.next += 1;
                }
            }
        }
    }

    fn consume(&mut self, side: usize, event: CmEvent) {
        let (now, cm) = (self.now, &mut self.sides[side]);
        match event {
            CmEvent::Requested(requested) => match self.behaviour {
                Behaviour::Accept => accept(cm, now, requested.id),
                Behaviour::AcceptLate => {
                    assert_eq!(side, 1);
                    let at = now + Duration::from_millis(500);
                    self.to_accept.push_back((at, requested.id));
                }
                Behaviour::Reject => {
                    cm.reject(now, requested.id, RejectReason::CONSUMER, b"").unwrap();
                }
                Behaviour::Ignore => {}
            },
            CmEvent::Connected(connected) => {
                cm.established(connected.id, b"").unwrap();
                self.ends[side].insert(connected.id, Outcome::Established);
                self.live[side].insert(connected.id);
            }
            CmEvent::Established { id, .. } => {
                self.ends[side].insert(id, Outcome::Established);
                self.live[side].insert(id);
            }
            CmEvent::Rejected { id, .. } | CmEvent::Failed { id, .. } => {
                assert_eq!(self.ends[side].insert(id, Outcome::Failed), None);
            }
            CmEvent::Disconnected { id, .. } => {
                self.live[side].remove(&id);
                // If a side receives a DREQ before the RTU, its connection counts as failed.
                self.ends[side].entry(id).or_insert(Outcome::Failed);
            }
            CmEvent::TimeWaitExited { id } => {
                assert!(!self.live[side].contains(&id));
                assert_eq!(cm.state(id), None);
                self.removed[side] += 1;
            }
            other => panic!("{other:?}"),
        }
    }

    /// Runs until the time `until`, or until no message is in flight and no timer is running.
    fn run(&mut self, until: Instant) {
        self.settle();
        for steps in 0.. {
            assert!(steps < 100_000, "the simulation does not end");
            let wakes = [
                self.in_flight.first_key_value().map(|(&(at, _), _)| at),
                self.to_accept.front().map(|&(at, _)| at),
                self.sides[0].poll_timeout(),
                self.sides[1].poll_timeout(),
            ];
            let Some(at) = wakes.into_iter().flatten().min().filter(|at| *at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            let now = self.now;
            while let Some(entry) =
                self.in_flight.first_entry().filter(|entry| entry.key().0 <= now)
            {
                let (side, mad) = entry.remove();
                let over = if side == 0 { route(1, 2) } else { route(2, 1) };
                assert!(self.sides[side].handle(now, &over, &mad));
            }
            while let Some((_, id)) = self.to_accept.pop_front_if(|(at, _)| *at <= now) {
                if self.sides[1].state(id) == Some(State::ReqReceived) {
                    accept(&mut self.sides[1], now, id);
                }
            }
            for side in &mut self.sides {
                side.handle_timeout(now);
            }
            self.settle();
        }
        if until < Instant::NEVER {
            self.now = until;
        }
    }

    /// Disconnects established connections on one or both sides, and runs until all connections are removed.
    fn finish(&mut self) {
        for side in 0..2 {
            let ids: Vec<_> = self.live[side].iter().copied().collect();
            for id in ids {
                if self.is_hit(700) || self.live[1 - side].is_empty() {
                    self.sides[side].disconnect(self.now, id, b"").unwrap();
                }
            }
        }
        let later = self.now + Duration::from_secs(60);
        self.run(later);
        // If the wire lost all DREQs of one side, the other side is still connected. The consumer of this other side
        // then closes the connection.
        for side in 0..2 {
            for id in std::mem::take(&mut self.live[side]) {
                self.sides[side].close(self.now, id).unwrap();
            }
        }
        self.run(Instant::NEVER);
        for (side, cm) in self.sides.iter().enumerate() {
            assert_eq!((cm.connections(), cm.connections.half_open()), (0, 0), "side {side}");
            assert!(cm.connections.has_empty_indices());
            assert_eq!(cm.poll_timeout(), None);
            assert_eq!(cm.counters().malformed, 0);
        }
        assert!(self.in_flight.is_empty());
    }
}

fn accept(cm: &mut Cm, now: Instant, id: ConnectionId) {
    // Each connection has a different queue pair.
    cm.accept(now, id, &acceptance(0x10_0000 | id.get() & 0xf_ffff)).unwrap();
}

const LATER: Instant = Instant::from_nanos(300_000_000_000);

/// Simulates one connection. Returns the results on both sides.
fn simulate(seed: u64, wire: Wire, behaviour: Behaviour) -> [Option<Outcome>; 2] {
    let mut simulation = Simulation::new(seed, wire, behaviour);
    let id = simulation.connect(0, 0x10);
    simulation.run(LATER);
    assert!(simulation.ends[1].len() <= 1, "a retransmitted REQ is not a new request");
    let ends = [simulation.ends[0].get(&id).copied(), simulation.ends[1].values().next().copied()];
    assert!(ends[0].is_some(), "the active side always has a result");
    let live = simulation.live.each_ref().map(BTreeSet::len);
    simulation.finish();
    if behaviour == Behaviour::Accept || behaviour == Behaviour::AcceptLate {
        // If a REJ has ended the established connection of a side, this connection counts as failed.
        [0, 1].map(|side| match ends[side] {
            Some(Outcome::Established) if live[side] == 0 => Some(Outcome::Failed),
            end => end,
        })
    } else {
        ends
    }
}

#[test]
fn both_sides_establish_with_moderate_loss() {
    for seed in 0..3_000 {
        let lost = (seed % 31 * 10) as u32;
        let wire = Wire { lost, repeated: 150, millis: 1 + (seed % 7 * 50) as u32 };
        let behaviour = [Behaviour::Accept, Behaviour::AcceptLate][seed as usize % 2];
        let ends = simulate(seed, wire, behaviour);
        assert_eq!(ends, [Some(Outcome::Established); 2], "seed {seed}: {wire:?} {behaviour:?}");
    }
}

#[test]
fn all_connections_end_with_extreme_loss() {
    let mut counts = BTreeMap::new();
    for seed in 0..2_000 {
        let lost = 600 + (seed % 41 * 10) as u32;
        let wire = Wire { lost, repeated: 300, millis: 1_500 };
        let ends = simulate(seed, wire, Behaviour::Accept);
        *counts.entry(format!("{ends:?}")).or_insert(0) += 1;
    }
    // At this loss rate, at least three combinations of both sides' results occur.
    assert!(counts.len() >= 3, "{counts:?}");
}

#[test]
fn rejected_and_ignored_requests_fail_at_both_sides() {
    for seed in 0..1_000 {
        let wire = Wire { lost: 200, repeated: 200, millis: 300 };
        for behaviour in [Behaviour::Reject, Behaviour::Ignore] {
            let [here, there] = simulate(seed, wire, behaviour);
            assert_eq!(here, Some(Outcome::Failed));
            assert_ne!(there, Some(Outcome::Established));
        }
    }
}

#[test]
fn many_connections_in_both_directions_establish() {
    for seed in 0..60 {
        let wire = Wire { lost: 150, repeated: 150, millis: 250 };
        let mut simulation = Simulation::new(seed, wire, Behaviour::Accept);
        for number in 0..20 {
            simulation.connect(0, 0x1000 + number);
            simulation.connect(1, 0x2000 + number);
        }
        simulation.run(LATER);
        for ends in &simulation.ends {
            assert_eq!(ends.len(), 40);
            assert!(ends.values().all(|end| *end == Outcome::Established), "seed {seed}");
        }
        simulation.finish();
        assert_eq!(simulation.removed, [40; 2]);
    }
}
