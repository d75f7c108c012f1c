//! Every request ends exactly once, whatever the wire does, and always the same way.

mod netsim;

use std::collections::BTreeSet;
use std::time::Duration;

use ib_link::Remote;
use ib_mad::{
    Backoff, Failure, OnLoss, ReceiveLimits, Request, RequesterConfig, ResponderConfig, Timing,
};
use ib_types::rng::Rng;
use ib_wire::mad::{Mad, MadStatus, Method, MgmtClass, TransactionId};

use netsim::{Pair, Wire, pattern};

/// Builds the pair of a seed with some requests of all kinds.
fn pair(seed: u64, wire: Wire, longest: usize, retries: u32) -> Pair {
    let mut rng = Rng::new(seed);
    let receive = ReceiveLimits { window: 1 + rng.below(64) as u32, ..ReceiveLimits::default() };
    let timing = Timing {
        timeout: Duration::from_millis(50 + rng.below(100) as u64),
        retries,
        backoff: match rng.below(2) {
            0 => Backoff::Fixed,
            _ => Backoff::Doubling { longest: Duration::from_millis(500) },
        },
    };
    let window = 1 + rng.below(4);
    let client = RequesterConfig { window, receive, ..RequesterConfig::default() };
    let server = ResponderConfig { timing, receive, ..ResponderConfig::default() };
    let mut pair = Pair::new(seed, wire, client, server);
    for _ in 0..1 + rng.below(6) {
        pair.requester.start(request(&mut rng, longest, timing)).expect("it is answered");
    }
    pair
}

fn request(rng: &mut Rng, longest: usize, timing: Timing) -> Request {
    let length = match rng.below(4) {
        0 => rng.below(3),
        1 => rng.below(500),
        2 => 200 * rng.below(longest / 200 + 1),
        _ => rng.below(longest + 1),
    };
    let class = if rng.below(2) == 0 { MgmtClass::SUBN_ADM } else { MgmtClass::TRACER };
    let kind = rng.below(3);
    let method = [Method::GET, Method::GET_TABLE, Method::GET_MULTI][kind];
    let mut mad = Mad::new(class, method, TransactionId(0));
    mad.set_attribute_modifier(length as u32);
    let remote = Remote::gsi(9);
    let request = match kind {
        2 => Request::message(remote, mad, pattern(length / 2)),
        _ => Request::new(remote, mad),
    };
    let on_loss = if rng.below(2) == 0 { OnLoss::Fail } else { OnLoss::Retry };
    Request { on_loss, ..request.with_timing(timing) }
}

/// Checks that everything ended as it must; returns how many requests were answered.
fn check(pair: &Pair, requests: usize, seed: u64) -> usize {
    let ids: BTreeSet<_> = pair.completions.iter().map(|end| end.transaction_id).collect();
    assert_eq!(ids.len(), pair.completions.len(), "seed {seed}: one ended twice");
    assert_eq!(pair.completions.len(), requests, "seed {seed}: one never ended");
    assert_eq!((pair.requester.outstanding(), pair.responder.outstanding()), (0, 0));
    let mut answered = 0;
    for end in &pair.completions {
        let Ok(message) = &end.result else { continue };
        answered += 1;
        let length = message.mad().attribute_modifier() as usize;
        if message.is_reassembled() {
            assert!(message.data() == pattern(length), "seed {seed}: a message is damaged");
        } else {
            let plain = message.mad().method() == Method::GET_RESP;
            assert!(plain || message.status() == MadStatus::BUSY, "seed {seed}");
        }
    }
    answered
}

#[test]
fn a_good_wire_answers_everything() {
    for seed in 0..300 {
        let wire = Wire { delay: 2_000, doubled: 50, ..Wire::default() };
        let mut pair = pair(seed, wire, 100_000, 3);
        let requests = pair.requester.outstanding();
        pair.run();
        assert_eq!(check(&pair, requests, seed), requests, "seed {seed}");
    }
}

#[test]
fn every_request_ends_once_on_a_bad_wire() {
    let (mut all, mut answered) = (0, 0);
    let mut reasons = BTreeSet::new();
    for seed in 0..3_000 {
        let mut rng = Rng::stream(seed, 2);
        let wire = Wire {
            lost: rng.below(400),
            told: rng.below(1000),
            doubled: rng.below(300),
            busy: rng.below(300),
            delay: rng.below(60_000),
        };
        let longest = if seed % 50 == 0 { 100_000 } else { 6_000 };
        let mut pair = pair(seed, wire, longest, 4);
        let requests = pair.requester.outstanding();
        pair.run();
        all += requests;
        answered += check(&pair, requests, seed);
        reasons.extend(pair.completions.iter().filter_map(|end| match end.result {
            Err(Failure::TimedOut { .. }) => Some("timed out"),
            Err(Failure::Lost { .. }) => Some("lost"),
            Err(Failure::Aborted { .. }) => Some("aborted"),
            Err(Failure::Refused { .. }) => Some("refused"),
            _ => None,
        }));
    }
    assert!(answered * 2 > all, "{answered} of {all} were answered");
    assert!(answered < all, "nothing was tested");
    assert!(reasons.is_superset(&["timed out", "lost"].into()), "{reasons:?}");
}

#[test]
fn enough_retries_overcome_a_bad_wire() {
    for seed in 0..200 {
        let wire = Wire { lost: 200, doubled: 100, delay: 20_000, ..Wire::default() };
        let mut pair = pair(seed, wire, 20_000, 30);
        let requests = pair.requester.outstanding();
        pair.run();
        assert_eq!(check(&pair, requests, seed), requests, "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let mut traces = BTreeSet::new();
    for seed in 0..100 {
        let run = || {
            let wire = Wire { lost: 100, told: 500, doubled: 100, busy: 100, delay: 9_000 };
            let mut pair = pair(seed, wire, 4_000, 4).traced();
            pair.run();
            (pair.trace, pair.completions)
        };
        let first = run();
        assert_eq!(first, run());
        traces.insert(first.0);
    }
    assert!(traces.len() > 90, "{} traces", traces.len());
}
