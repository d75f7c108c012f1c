//! An ACM client receives arbitrary bytes in pieces, while it sends and cancels requests.
//!
//! Checks that each response belongs to an outstanding request and is returned once. After an error, the client must
//! return only this error. The input is a list of events: a byte that selects the event, and its parameters.
#![no_main]

use std::collections::BTreeSet;
use std::num::NonZeroU8;

use ib_acm::Address;
use ib_acm::client::{CounterScope, Pipeline, Reply, Request, ResolveOptions};
use ib_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fn request(kind: u8) -> Request {
    let node = Address::name("node").expect("the name is valid");
    match kind % 4 {
        0 => Request::perf(&CounterScope::Service).expect("the service has counters"),
        1 => Request::endpoint(NonZeroU8::MIN, kind),
        2 => Request::perf(&CounterScope::Address(node)).expect("a name selects an endpoint"),
        _ => Request::resolve(None, &node, ResolveOptions::default()).expect("the name is valid"),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let mut pipeline = Pipeline::default();
    let mut waiting = BTreeSet::new();
    let mut failed = None;
    while !input.0.is_empty() {
        match input.byte() {
            0 => assert!(waiting.insert(pipeline.start(&request(input.byte())).0)),
            1 => {
                if let Some(first) = waiting.pop_first() {
                    pipeline.forget(first);
                }
            }
            length => {
                let (piece, rest) = input.0.split_at(input.0.len().min(length.into()));
                pipeline.handle_bytes(piece);
                input.0 = rest;
            }
        }
        loop {
            match pipeline.poll_answer() {
                Ok(None) => break,
                Ok(Some(answer)) => {
                    assert!(failed.is_none() && waiting.remove(&answer.transaction));
                    if let Ok(Reply::Resolved(resolved)) = answer.result {
                        assert!(resolved.paths.iter().any(|it| it.record == resolved.path));
                    }
                }
                Err(error) => {
                    assert!(*failed.get_or_insert(error) == error);
                    assert!(error.to_string().contains(&error.offset.to_string()));
                    break;
                }
            }
        }
        assert_eq!(pipeline.outstanding(), waiting.len());
        assert!(failed.is_some() || pipeline.incomplete() < 592);
    }
});
