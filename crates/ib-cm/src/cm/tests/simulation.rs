//! Two managers over a wire that loses, repeats and delays, with virtual time: whatever happens, both
//! sides come to an end, and mostly to the same one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_wire::mad::cm::RejectReason;

use super::*;

/// What a wire does to datagrams, in thousandths.
#[derive(Clone, Copy, Debug)]
struct Wire {
    lost: u32,
    repeated: u32,
    /// The longest delay.
    millis: u32,
}

/// What a consumer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manners {
    Accepts,
    /// Accepts after half a second, when the REQ has come again.
    Hesitates,
    Refuses,
    Ignores,
}

/// How a connection ended for one side.
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
    /// What is on its way: the moment, a number against equal moments, who gets it.
    flying: BTreeMap<(Instant, u64), (usize, Mad)>,
    next: u64,
    manners: Manners,
    to_accept: VecDeque<(Instant, ConnectionId)>,
    ends: [BTreeMap<ConnectionId, Outcome>; 2],
    /// Those that were established, until they ended.
    live: [BTreeSet<ConnectionId>; 2],
    forgotten: [u32; 2],
}

impl Simulation {
    fn new(seed: u64, wire: Wire, manners: Manners) -> Self {
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
            flying: BTreeMap::new(),
            next: 0,
            manners,
            to_accept: VecDeque::new(),
            ends: Default::default(),
            live: Default::default(),
            forgotten: [0; 2],
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

    /// Lets both sides speak and their consumers act.
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
                    self.flying.insert((at, self.next), (1 - side, mad));
                    self.next += 1;
                }
            }
        }
    }

    fn consume(&mut self, side: usize, event: CmEvent) {
        let (now, cm) = (self.now, &mut self.sides[side]);
        match event {
            CmEvent::Requested(requested) => match self.manners {
                Manners::Accepts => accept(cm, now, requested.id),
                Manners::Hesitates => {
                    assert_eq!(side, 1);
                    let at = now + Duration::from_millis(500);
                    self.to_accept.push_back((at, requested.id));
                }
                Manners::Refuses => {
                    cm.reject(now, requested.id, RejectReason::CONSUMER, b"").unwrap();
                }
                Manners::Ignores => {}
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
                // A DREQ may be faster than the RTU.
                self.ends[side].entry(id).or_insert(Outcome::Failed);
            }
            CmEvent::TimeWaitExited { id } => {
                assert!(!self.live[side].contains(&id));
                assert_eq!(cm.state(id), None);
                self.forgotten[side] += 1;
            }
            other => panic!("{other:?}"),
        }
    }

    /// Runs to a moment, or until nothing is left to do.
    fn run(&mut self, until: Instant) {
        self.settle();
        for steps in 0.. {
            assert!(steps < 100_000, "it does not end");
            let wakes = [
                self.flying.first_key_value().map(|(&(at, _), _)| at),
                self.to_accept.front().map(|&(at, _)| at),
                self.sides[0].poll_timeout(),
                self.sides[1].poll_timeout(),
            ];
            let Some(at) = wakes.into_iter().flatten().min().filter(|at| *at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            let now = self.now;
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= now) {
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

    /// Ends what is established on one side or on both, and lets everything run out.
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
        // What a lost DREQ left behind, the other consumer notices some day by itself.
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
        assert!(self.flying.is_empty());
    }
}

fn accept(cm: &mut Cm, now: Instant, id: ConnectionId) {
    // Each has a queue pair of its own.
    cm.accept(now, id, &acceptance(0x10_0000 | id.get() & 0xf_ffff)).unwrap();
}

const LATER: Instant = Instant::from_nanos(300_000_000_000);

/// One connection over a wire; returns how it ended for both.
fn simulate(seed: u64, wire: Wire, manners: Manners) -> [Option<Outcome>; 2] {
    let mut simulation = Simulation::new(seed, wire, manners);
    let id = simulation.connect(0, 0x10);
    simulation.run(LATER);
    assert!(simulation.ends[1].len() <= 1, "a REQ that comes again is no other request");
    let ends = [simulation.ends[0].get(&id).copied(), simulation.ends[1].values().next().copied()];
    assert!(ends[0].is_some(), "the active side always learns what became of it");
    let live = simulation.live.each_ref().map(BTreeSet::len);
    simulation.finish();
    if manners == Manners::Accepts || manners == Manners::Hesitates {
        // A side that was told by REJ counts as one that failed.
        [0, 1].map(|side| match ends[side] {
            Some(Outcome::Established) if live[side] == 0 => Some(Outcome::Failed),
            end => end,
        })
    } else {
        ends
    }
}

#[test]
fn over_a_fair_wire_both_sides_agree() {
    for seed in 0..3_000 {
        let lost = (seed % 31 * 10) as u32;
        let wire = Wire { lost, repeated: 150, millis: 1 + (seed % 7 * 50) as u32 };
        let manners = [Manners::Accepts, Manners::Hesitates][seed as usize % 2];
        let ends = simulate(seed, wire, manners);
        assert_eq!(ends, [Some(Outcome::Established); 2], "seed {seed}: {wire:?} {manners:?}");
    }
}

#[test]
fn over_a_bad_wire_everybody_comes_to_an_end() {
    let mut counts = BTreeMap::new();
    for seed in 0..2_000 {
        let lost = 600 + (seed % 41 * 10) as u32;
        let wire = Wire { lost, repeated: 300, millis: 1_500 };
        let ends = simulate(seed, wire, Manners::Accepts);
        *counts.entry(format!("{ends:?}")).or_insert(0) += 1;
    }
    // All kinds of ends occur; only a dead wire keeps them apart.
    assert!(counts.len() >= 3, "{counts:?}");
}

#[test]
fn refusals_reach_the_other_side() {
    for seed in 0..1_000 {
        let wire = Wire { lost: 200, repeated: 200, millis: 300 };
        for manners in [Manners::Refuses, Manners::Ignores] {
            let [here, there] = simulate(seed, wire, manners);
            assert_eq!(here, Some(Outcome::Failed));
            assert_ne!(there, Some(Outcome::Established));
        }
    }
}

#[test]
fn many_connections_in_both_directions() {
    for seed in 0..60 {
        let wire = Wire { lost: 150, repeated: 150, millis: 250 };
        let mut simulation = Simulation::new(seed, wire, Manners::Accepts);
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
        assert_eq!(simulation.forgotten, [40; 2]);
    }
}
