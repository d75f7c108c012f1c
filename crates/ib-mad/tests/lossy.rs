//! Requests over a lossy wire: every request ends exactly once, and two runs with the same seed are identical.

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

/// Creates requester and responder with random configuration and random requests.
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
        let request = request(&mut rng, longest, timing);
        pair.requester.start(request).expect("the method has a response");
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

/// Checks that each request has ended exactly once; returns the number of responses.
fn check(pair: &Pair, requests: usize, seed: u64) -> usize {
    let ids: BTreeSet<_> = pair.completions.iter().map(|end| end.transaction_id).collect();
    assert_eq!(ids.len(), pair.completions.len(), "seed {seed}: a request ended twice");
    assert_eq!(pair.completions.len(), requests, "seed {seed}: a request did not end");
    assert_eq!((pair.requester.outstanding(), pair.responder.outstanding()), (0, 0));
    let mut answered = 0;
    for end in &pair.completions {
        let Ok(message) = &end.result else { continue };
        answered += 1;
        let length = message.mad().attribute_modifier() as usize;
        if message.is_reassembled() {
            assert!(message.data() == pattern(length), "seed {seed}: the data differs");
        } else {
            let plain = message.mad().method() == Method::GET_RESP;
            assert!(plain || message.status() == MadStatus::BUSY, "seed {seed}");
        }
    }
    answered
}

#[test]
fn all_requests_succeed_without_loss() {
    for seed in 0..300 {
        let wire = Wire { delay: 2_000, duplicated: 50, ..Wire::default() };
        let mut pair = pair(seed, wire, 100_000, 3);
        let requests = pair.requester.outstanding();
        pair.run();
        assert_eq!(check(&pair, requests, seed), requests, "seed {seed}");
    }
}

#[test]
fn every_request_ends_once_on_a_lossy_wire() {
    let (mut all, mut answered) = (0, 0);
    let mut reasons = BTreeSet::new();
    for seed in 0..3_000 {
        let mut rng = Rng::stream(seed, 2);
        let wire = Wire {
            lost: rng.below(400),
            reported: rng.below(1000),
            duplicated: rng.below(300),
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
    assert!(answered * 2 > all, "{answered} of {all} requests succeeded");
    assert!(answered < all, "all {all} requests succeeded: expected failures");
    assert!(reasons.is_superset(&["timed out", "lost"].into()), "{reasons:?}");
}

#[test]
fn requests_succeed_with_enough_retries() {
    for seed in 0..200 {
        let wire = Wire { lost: 200, duplicated: 100, delay: 20_000, ..Wire::default() };
        let mut pair = pair(seed, wire, 20_000, 30);
        let requests = pair.requester.outstanding();
        pair.run();
        assert_eq!(check(&pair, requests, seed), requests, "seed {seed}");
    }
}

#[test]
fn runs_with_the_same_seed_are_equal() {
    let mut traces = BTreeSet::new();
    for seed in 0..100 {
        let run = || {
            let wire = Wire { lost: 100, reported: 500, duplicated: 100, busy: 100, delay: 9_000 };
            let mut pair = pair(seed, wire, 4_000, 4).traced();
            pair.run();
            (pair.trace, pair.completions)
        };
        let first = run();
        assert_eq!(first, run());
        traces.insert(first.0);
    }
    assert!(traces.len() > 90, "only {} traces differ", traces.len());
}
