//! What must hold whatever fails: every write that was confirmed can be read, nothing older is, and no request is
//! forgotten. Where a single path fails at a time, and nothing else is wrong, requests go on within the bounds of
//! `bounds.rs`.
//!
//! `RTRS_RUNS` says how many runs there are, `RTRS_SEED` where they begin. Each follows from its seed alone.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_rtrs::{
    ClientConfig, ClientEvent, Direction, EndReason, Errno, PathId, PathState, ServerConfig,
    ServerEvent,
};

use ib_types::Instant;

use crate::bounds::{LINK_DOWN, STALL, idle};
use crate::faults::{Totals, Violation, disturb, number, random_client};
use crate::lab::{Lab, Rng, quick_client, small_server};

/// How many blocks there are, and how long each is.
const BLOCKS: u64 = 24;
const BLOCK: usize = 1024;

/// How many requests a run makes.
const REQUESTS: u64 = 400;

/// What a block may hold: what was last confirmed, and what is being written.
#[derive(Clone, Debug)]
struct Block {
    confirmed: u64,
    writing: Option<u64>,
    reads: u32,
    /// Whether it is not known what of a write was done: nothing is asked of it any more.
    is_unknown: bool,
}

/// A request under way.
struct Under {
    direction: Direction,
    block: u64,
    /// What a read may find.
    allowed: Vec<u64>,
    begun: Instant,
}

/// What a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// What clients of this project do.
    Fenced,
    /// What Linux does.
    Unfenced,
    /// The server's user sometimes carries out an old write after a newer one, which it must not.
    Wrong,
}

/// Makes a run with a seed. Returns what has happened, or what must not happen.
fn run(seed: u64, kind: Kind) -> Result<Totals, Violation> {
    let fence = kind != Kind::Unfenced;
    let mut rng = Rng::new(seed ^ 0x5eed);
    let links = 2 + rng.below(3) as usize;
    let client = random_client(&mut rng, ClientConfig { fence, ..quick_client() });
    let server = ServerConfig {
        always_invalidate: rng.chance(0.7),
        queue_depth: 1 + rng.below(16) as u16,
        ..small_server()
    };
    let mut lab = Lab::connected(seed, links, client, server);
    lab.repeats = kind == Kind::Wrong;
    if seed.is_multiple_of(2) {
        lab.answer_from_disk();
    }
    // One path at a time is cut, or says that it has no link, and nothing else is wrong.
    let is_gentle = fence && rng.chance(0.25);
    let kinds = if is_gentle { 2 } else { 3 };
    let stall = Duration::from_micros([50, 2_000, 400_000][rng.below(kinds) as usize]);
    let long = !is_gentle && rng.chance(0.3);
    lab.backend = Box::new(move |rng, _| {
        if long && rng.chance(0.01) {
            return Duration::from_millis(rng.below(12_000));
        }
        Duration::from_nanos(rng.below(stall.as_nanos() as u64))
    });
    for link in lab.links.iter_mut().filter(|_| !is_gentle) {
        disturb(link, &mut rng);
    }
    let block = Block { confirmed: 0, writing: None, reads: 0, is_unknown: false };
    let mut blocks = vec![block; BLOCKS as usize];
    let mut under: BTreeMap<u64, Under> = BTreeMap::new();
    let (mut asked, mut next_fault) = (0_u64, lab.now);
    let mut repairs: Vec<(Instant, usize)> = Vec::new();
    let end = lab.now + Duration::from_secs(600);
    let (mut watch, mut unknown) = (Watch::default(), 0);
    while asked < REQUESTS || !under.is_empty() {
        if blocks.iter().all(|block| block.is_unknown) {
            // Nothing more can be asked.
            asked = REQUESTS;
        }
        if lab.now >= end {
            return Err(format!("{} requests are forgotten", under.len()).into());
        }
        if is_gentle && asked < REQUESTS && lab.now >= next_fault {
            next_fault = lab.now + Duration::from_micros(rng.below(800_000));
            // What a short cut has lost is sent again before the next one.
            let oldest = under.values().map(|it| lab.now.since(it.begun)).max();
            if oldest.is_none_or(|oldest| oldest <= stall + LINK_DOWN) {
                watch.fail_one(&mut lab, &mut rng, &mut repairs);
            }
        } else if asked < REQUESTS && lab.now >= next_fault {
            next_fault = lab.now + Duration::from_micros(rng.below(800_000));
            let link = rng.below(links as u64) as usize;
            let cut = Duration::from_micros(rng.below(6_000_000));
            if rng.chance(0.5) {
                lab.links[link].is_cut = true;
                repairs.push((lab.now + cut, link));
            }
            if rng.chance(0.3) {
                let id = ib_rtrs::AdapterId(link as u32);
                lab.client.link_down(lab.now, &mut lab.sides[0], id);
            }
            change_paths(&mut lab, &mut rng, links);
            let path = lab.server.paths().next();
            if rng.chance(0.1)
                && let Some(path) = path
            {
                lab.server.disconnect_path(lab.now, &mut lab.sides[1], path);
            }
        }
        let now = lab.now;
        repairs.retain(|&(at, link)| {
            let is_due = at <= now || asked >= REQUESTS;
            if is_due {
                lab.links[link].is_cut = false;
            }
            !is_due
        });
        if asked < REQUESTS && rng.chance(0.6) {
            let at = rng.below(BLOCKS);
            let direction = if rng.chance(0.5) { Direction::Write } else { Direction::Read };
            if begin(&mut lab, &mut blocks, &mut under, asked + 1, at, direction) {
                asked += 1;
            }
        }
        let step = lab.now + Duration::from_micros(1 + rng.below(3_000));
        while lab.step(step) {}
        let done = std::mem::take(&mut lab.done);
        for completion in done {
            // Without fences that is told of what was under way when the last path was lost.
            let is_unknown =
                kind == Kind::Unfenced && completion.outcome.errno() == Errno::ECONNABORTED;
            if !completion.outcome.errno().is_ok() && !is_unknown {
                return Err(format!("{completion:?}").into());
            }
            let Under { direction, block, allowed, begun } =
                under.remove(&completion.user).expect("it ends once");
            if is_gentle {
                watch.check(lab.now, begun + stall)?;
            }
            let state = &mut blocks[block as usize];
            state.is_unknown |= is_unknown && direction == Direction::Write;
            unknown += u64::from(is_unknown);
            if direction == Direction::Write {
                state.confirmed = completion.user;
                state.writing = None;
                continue;
            }
            state.reads -= 1;
            if is_unknown || state.is_unknown {
                continue;
            }
            let place = place_of(completion.user);
            let read = lab.memory.to_vec(place, BLOCK).expect("it lies within");
            let found = u64::from_le_bytes(*read.first_chunk().expect("a block is longer"));
            if read != stamp(found) {
                return Err(
                    Violation::Stale("is torn".to_owned()).of(format_args!("block {block}"))
                );
            }
            if !allowed.contains(&found) {
                let why = format!("block {block} holds {found}: expected one of {allowed:?}");
                return Err(Violation::Stale(why));
            }
        }
    }
    if lab.client.requests() != 0 {
        return Err("requests are under way that nobody has made".to_owned().into());
    }
    for (at, block) in blocks.iter().enumerate() {
        let found = lab.disk.to_vec(at * BLOCK, BLOCK).expect("it lies within");
        if !block.is_unknown && found != stamp(block.confirmed) {
            let why = format!("block {at} at the end does not hold {}", block.confirmed);
            return Err(Violation::Stale(why));
        }
    }
    if is_gentle {
        cut_idle(&mut lab, &mut rng)?;
    }
    let failed_over = lab.paths.iter().filter_map(|&path| lab.client.stats(path));
    let fenced =
        |event: &ServerEvent| matches!(event, ServerEvent::PathDown { why: EndReason::Fenced, .. });
    Ok(Totals {
        failed_over: failed_over.map(|stats| stats.failed_over).sum(),
        unknown,
        lost: lab.events.iter().filter(|(_, event)| *event == ClientEvent::Lost).count() as u64,
        fenced: lab.server_events.iter().filter(|(_, event)| fenced(event)).count() as u64,
    })
}

/// What holds as long as a single path fails at a time.
#[derive(Debug, Default)]
struct Watch {
    /// When a port has said last that it has no link.
    reported: Option<Instant>,
}

impl Watch {
    /// Cuts a link of which the port says so, or does not, once everything is as it should be.
    fn fail_one(&mut self, lab: &mut Lab, rng: &mut Rng, repairs: &mut Vec<(Instant, usize)>) {
        let is_up = |path: &PathId| lab.client.path_state(*path) == Some(PathState::Connected);
        if !lab.paths.iter().all(is_up) || !repairs.is_empty() {
            return;
        }
        let link = rng.below(lab.links.len() as u64) as usize;
        lab.links[link].is_cut = true;
        repairs.push((lab.now + Duration::from_micros(rng.below(6_000_000)), link));
        self.reported = rng.chance(0.5).then_some(lab.now);
        if self.reported.is_some() {
            let hca = &mut lab.sides[0].0[link].hca;
            hca.set_port_active(false);
            hca.set_port_active(true);
        }
    }

    /// Fails when a request ends later than it may.
    fn check(&self, now: Instant, due: Instant) -> Result<(), String> {
        let bound =
            if self.reported.is_some_and(|at| now.since(at) < STALL) { LINK_DOWN } else { STALL };
        let took = now.since(due);
        if took <= bound { Ok(()) } else { Err(format!("a request stands still for {took:?}")) }
    }
}

/// Cuts a link over which nothing goes any more; fails when that is seen later than it may.
fn cut_idle(lab: &mut Lab, rng: &mut Rng) -> Result<(), String> {
    let heartbeats = lab.client.config().heartbeats;
    lab.links.iter_mut().for_each(|link| link.is_cut = false);
    let is_up = |lab: &Lab, path: PathId| lab.client.path_state(path) == Some(PathState::Connected);
    let soon = lab.now + Duration::from_secs(60);
    while !lab.paths.iter().all(|&path| is_up(lab, path)) {
        if !lab.step(soon) {
            return Err("a path is not connected again".to_owned());
        }
    }
    lab.run_for(Duration::from_nanos(rng.below(heartbeats.interval.as_nanos() as u64)));
    let link = rng.below(lab.links.len() as u64) as usize;
    lab.links[link].is_cut = true;
    let bound = lab.now + idle(heartbeats);
    while is_up(lab, lab.paths[link]) {
        if !lab.step(bound) {
            return Err("nobody has seen that an idle path is cut".to_owned());
        }
    }
    Ok(())
}

/// Removes a path, as long as another is connected, or adds one where there is none.
fn change_paths(lab: &mut Lab, rng: &mut Rng, links: usize) {
    if !rng.chance(0.15) {
        return;
    }
    let is_up = |&&path: &&PathId| lab.client.path_state(path) == Some(PathState::Connected);
    let up: Vec<PathId> = lab.paths.iter().filter(is_up).copied().collect();
    if up.len() > 1 {
        let path = up[rng.below(up.len() as u64) as usize];
        lab.client.remove_path(lab.now, &mut lab.sides[0], path);
    }
    let is_used = |link: usize| {
        let mut specs = lab.client.paths().filter_map(|path| lab.client.spec(path));
        specs.any(|spec| spec.adapter.0 as usize == link)
    };
    let unused = (0..links).find(|&link| !is_used(link));
    if let Some(link) = unused {
        lab.add_path(link);
    }
}

/// Makes a request, unless a write of the block is under way, or a read of what would be written.
fn begin(
    lab: &mut Lab,
    blocks: &mut [Block],
    under: &mut BTreeMap<u64, Under>,
    user: u64,
    at: u64,
    direction: Direction,
) -> bool {
    let block = &mut blocks[at as usize];
    if block.is_unknown {
        return false;
    }
    if direction == Direction::Write && (block.writing.is_some() || block.reads > 0) {
        return false;
    }
    let place = place_of(user);
    if under.keys().any(|&other| place_of(other) == place) {
        return false;
    }
    if direction == Direction::Write {
        lab.memory.write(place, &stamp(user)).expect("it lies within");
    }
    let piece = (place, BLOCK as u32);
    if lab.io(direction, at * BLOCK as u64, piece, user).is_err() {
        return false;
    }
    let mut allowed = vec![block.confirmed];
    match direction {
        Direction::Write => block.writing = Some(user),
        Direction::Read => {
            block.reads += 1;
            allowed.extend(block.writing);
        }
    }
    under.insert(user, Under { direction, block: at, allowed, begun: lab.now });
    true
}

fn place_of(user: u64) -> usize {
    (user % 64) as usize * BLOCK
}

/// Returns what a write puts into a block; zeros before the first.
fn stamp(user: u64) -> Vec<u8> {
    user.to_le_bytes().repeat(BLOCK / 8)
}

#[test]
fn nothing_is_lost_whatever_fails() {
    let (first, runs) = (number("RTRS_SEED", 1_u64), number("RTRS_RUNS", 25));
    let mut all = Totals::default();
    for seed in first..first + runs {
        all += run(seed, Kind::Fenced).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    assert!(runs < 10 || all.failed_over > runs && all.lost > 0 && all.fenced > 0, "{all:?}");
}

#[test]
fn the_campaign_notices_an_old_write_that_comes_after_a_newer_one() {
    let notices = |seed| run(seed, Kind::Wrong).is_err_and(|why| why.is_stale());
    let noticed = (1..=10).filter(|&seed| notices(seed)).count();
    assert!(noticed >= 5, "{noticed} of 10");
}

#[test]
fn without_fences_nothing_is_forgotten_and_the_campaign_notices_what_they_are_for() {
    let (mut all, mut stale) = (Totals::default(), 0);
    // Of 4,000 runs one notices that an old write comes late.
    for seed in (1..=100).chain([1560]) {
        match run(seed, Kind::Unfenced) {
            Ok(seen) => {
                assert_eq!(seen.fenced, 0);
                all += seen;
            }
            // An old write, which a dead path has left on its way, comes after a newer one.
            Err(why) if why.is_stale() => stale += 1,
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    assert!(all.failed_over > 100 && all.unknown > 0, "{all:?}");
    assert_eq!(stale, 1);
}
