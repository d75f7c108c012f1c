use std::num::NonZeroU8;

use ib_wire::acm::{ClientOpcode, ClientStatus};
use ib_wire::mad::sa::PathRecord;
use proptest::prelude::*;

use super::super::{
    Answer, CounterScope, Pipeline, Reply, ReplyDefect, Request, RequestError, ResolveOptions,
    TransactionNumber,
};
use super::{answer, counters, endpoint, resolved};
use crate::Address;

const ONE: NonZeroU8 = NonZeroU8::MIN;

fn address(text: &str) -> Address {
    Address::parse(text).unwrap()
}

/// Returns requests of every type, and the data of a valid reply to each.
fn samples() -> Vec<(Request, Vec<u8>)> {
    let options = ResolveOptions::default();
    let to = |text: &str| Request::resolve(None, &address(text), options).unwrap();
    vec![
        (to("10.1.2.3"), resolved(7, Some([10, 0, 0, 1]))),
        (Request::perf(&CounterScope::Service).unwrap(), counters(&[1, 2, 3, 4, 5, 6, 1 << 40])),
        (Request::endpoint(ONE, 0), endpoint(0x17, &["node1", "10.0.0.1"])),
        (Request::endpoint(ONE, 1), endpoint(0x18, &[])),
        (to("fd00::7"), resolved(8, None)),
        (Request::perf(&CounterScope::Address(address("node1"))).unwrap(), counters(&[])),
    ]
}

/// Starts requests and returns their bytes.
fn start(pipeline: &mut Pipeline, requests: &[Request]) -> Vec<(TransactionNumber, Vec<u8>)> {
    requests.iter().map(|request| pipeline.start(request)).collect()
}

fn poll(pipeline: &mut Pipeline) -> Vec<Answer> {
    std::iter::from_fn(|| pipeline.poll_answer().unwrap()).collect()
}

#[test]
fn requests_have_the_format_of_ibacm() {
    let flags = ResolveOptions { no_delay: true, query_sa: false };
    let (source, destination) = (address("10.0.0.1"), address("node7"));
    let request = Request::resolve(Some(&source), &destination, flags).unwrap();
    let bytes = request.to_bytes([1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(bytes[..6], [1, 1, 0, 0, 0, 0]);
    assert_eq!(bytes[6..8], 160_u16.to_ne_bytes());
    assert_eq!(bytes[8..16], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(bytes[16..20], 1_u32.to_ne_bytes());
    assert_eq!(bytes[20..22], 2_u16.to_ne_bytes());
    assert_eq!(bytes[24..29], [10, 0, 0, 1, 0]);
    assert_eq!(bytes[88..92], (2_u32 | 1 << 30).to_ne_bytes());
    assert_eq!(bytes[92..94], 1_u16.to_ne_bytes());
    assert_eq!(bytes[96..102], *b"node7\0");
    assert_eq!(bytes.len(), 160);

    let bytes = Request::endpoint(NonZeroU8::new(3).unwrap(), 2).to_bytes([9; 8]);
    assert_eq!(bytes[..8], [1, 3, 0, 3, 2, 0, 0, 16]);
    let bytes = Request::perf(&CounterScope::Endpoint(NonZeroU8::new(3).unwrap()))
        .unwrap()
        .to_bytes([9; 8]);
    assert_eq!(bytes[..8], [1, 2, 0, 0, 3, 0, 0, 16]);
    let bytes = Request::perf(&CounterScope::Address(destination)).unwrap().to_bytes([9; 8]);
    assert_eq!(bytes[..8], [1, 2, 0, 0, 0, 0, 0, 88]);
    assert_eq!(bytes[16..20], 1_u32.to_ne_bytes());
}

#[test]
fn gids_and_lids_are_sent_as_path_records() {
    let flags = ResolveOptions { no_delay: false, query_sa: true };
    let lids = [Address::Lid(3), Address::Lid(9)];
    let request = Request::resolve(Some(&lids[0]), &lids[1], flags).unwrap();
    let path = PathRecord { slid: 3, dlid: 9, ..PathRecord::zeroed() };
    assert_eq!(request, Request::resolve_path(&path, flags));
    let bytes = request.to_bytes([0; 8]);
    assert_eq!(bytes[16..20], (1_u32 << 31).to_ne_bytes());
    assert_eq!(bytes[20..22], 0x10_u16.to_ne_bytes());
    let mixed = Request::resolve(Some(&lids[0]), &address("node7"), flags);
    let error = RequestError::Mixed(lids[0].clone(), address("node7"));
    assert_eq!(mixed, Err(error));
    assert_eq!(
        Request::perf(&CounterScope::Address(lids[0].clone())),
        Err(RequestError::NoEndpoint(lids[0].clone()))
    );
}

#[test]
fn replies_may_arrive_in_any_order_without_the_ack_bit() {
    for ack in [false, true] {
        let (requests, data): (Vec<_>, Vec<_>) = samples().into_iter().unzip();
        let mut pipeline = Pipeline::default();
        let started = start(&mut pipeline, &requests);
        assert_eq!(pipeline.outstanding(), requests.len());
        for ((_, request), data) in started.iter().zip(&data).rev() {
            pipeline.handle_bytes(&answer(request, ack, ClientStatus::SUCCESS, data));
        }
        let answers = poll(&mut pipeline);
        let order = answers.iter().map(|answer| answer.transaction);
        assert!(order.eq(started.iter().rev().map(|it| it.0)));
        assert_eq!(pipeline.outstanding(), 0);

        let reply = |index: usize| answers[5 - index].result.clone().unwrap();
        let Reply::Resolved(first) = reply(0) else { panic!("{:?}", reply(0)) };
        assert_eq!(
            (first.path.dlid, first.source, first.paths.len()),
            (7, Some(address("10.0.0.1")), 1)
        );
        let Reply::Counters(counters) = reply(1) else { panic!("{:?}", reply(1)) };
        assert_eq!(counters.known().values(), [1, 2, 3, 4, 5, 6, 1 << 40]);
        let Reply::Endpoint(endpoint) = reply(2) else { panic!("{:?}", reply(2)) };
        assert_eq!((endpoint.index, endpoint.device_guid.0, endpoint.p_key.0), (1, 0x17, 0x8001));
        assert_eq!((&*endpoint.provider, endpoint.addresses.len()), ("ibacmp", 2));
        assert_eq!(endpoint.addresses[1], "10.0.0.1");
        let Reply::Resolved(last) = reply(4) else { panic!("{:?}", reply(4)) };
        assert_eq!((last.path.dlid, last.source), (8, None));
    }
}

#[test]
fn rejected_requests_return_their_status() {
    let mut pipeline = Pipeline::default();
    for (request, _) in samples() {
        let (transaction, bytes) = pipeline.start(&request);
        let status = ClientStatus(99);
        pipeline.handle_bytes(&answer(&bytes, true, status, &[]));
        assert_eq!(poll(&mut pipeline), [Answer { transaction, result: Err(status) }]);
        // The reply to a failed SA query contains the requested path after the header.
        let (transaction, bytes) = pipeline.start(&request);
        pipeline.handle_bytes(&answer(&bytes, false, ClientStatus::ENODATA, &[0; 72]));
        let result = Err(ClientStatus::ENODATA);
        assert_eq!(poll(&mut pipeline), [Answer { transaction, result }]);
    }
}

#[test]
fn replies_to_cancelled_requests_are_dropped() {
    let mut pipeline = Pipeline::default();
    let (request, data) = samples().remove(1);
    let (first, late) = pipeline.start(&request);
    pipeline.forget(first);
    pipeline.forget(first);
    assert_eq!(pipeline.outstanding(), 0);
    let (second, bytes) = pipeline.start(&request);
    for bytes in [late, bytes] {
        pipeline.handle_bytes(&answer(&bytes, true, ClientStatus::SUCCESS, &data));
    }
    let answers = poll(&mut pipeline);
    assert_eq!((answers.len(), answers[0].transaction), (1, second));
}

/// Starts the request `samples()[sample]` twice, and handles a valid reply to the first one. `changes` are offsets and
/// new bytes of the second reply. Returns the defect that the pipeline reports for the changed reply.
fn defect(sample: usize, changes: &[(usize, u8)]) -> ReplyDefect {
    let (request, data) = samples().remove(sample);
    let mut pipeline = Pipeline::default();
    let (_, first) = pipeline.start(&request);
    let first = answer(&first, true, ClientStatus::SUCCESS, &data);
    let (_, second) = pipeline.start(&request);
    let mut second = answer(&second, true, ClientStatus::SUCCESS, &data);
    for &(at, value) in changes {
        second[at] = value;
    }
    pipeline.handle_bytes(&first);
    pipeline.handle_bytes(&second);
    assert!(pipeline.poll_answer().unwrap().is_some());
    let error = pipeline.poll_answer().unwrap_err();
    assert_eq!((error.number, error.offset), (2, first.len() as u64));
    pipeline.handle_bytes(&first);
    assert_eq!(pipeline.poll_answer(), Err(error), "the error persists after a valid reply");
    error.defect
}

#[test]
fn invalid_replies_have_a_reason() {
    let [low, high] = 88_u16.to_ne_bytes();
    assert_eq!(defect(0, &[(0, 2)]), ReplyDefect::Version(2));
    assert_eq!(defect(0, &[(8, 1)]), ReplyDefect::Transaction(0x100_0000_0000_0002));
    assert_eq!(
        defect(0, &[(15, 1)]),
        ReplyDefect::Transaction(1),
        "the first request has completed already"
    );
    let opcode =
        ReplyDefect::Opcode { found: ClientOpcode(0x83), expected: ClientOpcode::PERF_QUERY };
    assert_eq!(defect(1, &[(1, 0x83)]), opcode);
    let (opcode, status) = (ClientOpcode::RESOLVE, ClientStatus::SUCCESS);
    let [odd, zero] = 89_u16.to_ne_bytes();
    let length = ReplyDefect::Length { length: 89, opcode, status };
    assert_eq!(defect(0, &[(6, odd), (7, zero)]), length);
    // First case: the bytes of the length are swapped. Second case: no entry of the reply has the type of a path.
    assert!(matches!(
        defect(0, &[(6, high), (7, low)]),
        ReplyDefect::Length { length: 0x5800 | 0x0058, .. }
    ));
    assert_eq!(defect(0, &[(20, 9), (21, 9)]), ReplyDefect::NoPath(2));
    assert_eq!(defect(1, &[(3, 6)]), ReplyDefect::Counters { counters: 6, length: 72 });
    let opcode = ClientOpcode::PERF_QUERY;
    let length = ReplyDefect::Length { length: 816, opcode, status };
    assert_eq!(defect(1, &[(3, 100), (6, 3), (7, 0x30)]), length);
    assert_eq!(defect(2, &[(31, 1)]), ReplyDefect::Addresses { addresses: 1, length: 224 });
    assert!(matches!(defect(2, &[(7, 225)]), ReplyDefect::Length { length: 225, .. }));
    assert!(matches!(defect(3, &[(7, 80)]), ReplyDefect::Length { length: 80, .. }));
    // Even an error reply must have a complete header.
    assert!(matches!(defect(3, &[(2, 2), (7, 15)]), ReplyDefect::Length { length: 15, .. }));
}

proptest! {
    #[test]
    fn parsing_does_not_depend_on_the_parts(
        pieces in prop::collection::vec(1_usize..200, 1..40),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let (requests, data): (Vec<_>, Vec<_>) = samples().into_iter().unzip();
        let mut whole = Pipeline::default();
        let started = start(&mut whole, &requests);
        let mut bytes: Vec<u8> = started
            .iter()
            .zip(&data)
            .flat_map(|((_, request), data)| answer(request, true, ClientStatus::SUCCESS, data))
            .collect();
        for (index, value) in changes {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        let mut parts = whole.clone();
        let drain = |pipeline: &mut Pipeline, into: &mut Vec<_>| loop {
            match pipeline.poll_answer() {
                Ok(Some(answer)) => into.push(Ok(answer)),
                Ok(None) => break,
                Err(error) => {
                    if !into.last().is_some_and(Result::is_err) {
                        into.push(Err(error));
                    }
                    break;
                }
            }
        };
        let (mut at_once, mut in_pieces) = (Vec::new(), Vec::new());
        whole.handle_bytes(&bytes);
        drain(&mut whole, &mut at_once);
        let (mut rest, mut pieces) = (&bytes[..], pieces.iter().cycle());
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(rest.len().min(*pieces.next().unwrap()));
            parts.handle_bytes(piece);
            drain(&mut parts, &mut in_pieces);
            rest = others;
        }
        prop_assert_eq!(at_once, in_pieces);
    }
}
