use super::*;

const MOST: usize = 2;
const MTU: usize = 1024;

fn psn(number: u32) -> Psn {
    Psn::truncated(number)
}

fn nak() -> Syndrome {
    Syndrome::new(Acknowledgement::Nak(NakCode::SEQUENCE))
}

/// Queues the response to a READ of `packets` packets.
fn push_read(queue: &mut ResponseQueue, first: u32, packets: u32) {
    let data = ResponseData::Read { addr: 0, rkey: 1, length: packets * MTU as u32 };
    queue.push(MOST, psn(first), packets, 1, data);
}

/// Returns PSN and MSN of the ACK that answers the duplicate packet with PSN `number`. The responder expects PSN 30 and
/// has MSN 9. `reads` holds PSN and MSN of each executed READ.
fn ack_again(number: u32, reads: &[(u32, u32)]) -> (u32, u32) {
    let mut queue = ResponseQueue::default();
    for &(first, msn) in reads {
        let data = ResponseData::Read { addr: 0, rkey: 1, length: 1 };
        queue.push(MOST, psn(first), 1, msn, data);
    }
    queue.clear();
    queue.acknowledge_again(psn(number), psn(30), 9);
    let [Response::Ack { psn, syndrome: Syndrome::ACK, msn }] = *queue.responses.make_contiguous()
    else {
        panic!("{queue:?}")
    };
    (psn.get(), msn)
}

#[test]
fn ack_of_a_duplicate_ends_before_the_next_read() {
    assert_eq!(ack_again(20, &[]), (29, 9));
    // READ 25 was the 7th message, READ 28 the 8th one.
    let reads = [(25, 7), (28, 8)];
    assert_eq!(ack_again(20, &reads), (24, 6));
    assert_eq!(ack_again(26, &reads), (27, 7));
    assert_eq!(ack_again(29, &reads), (29, 9));
}

/// PSNs are compared modulo 2^24. The PSN of a very old READ may therefore count as later than that of the duplicate.
#[test]
fn read_of_half_the_psn_space_ago_does_not_end_an_ack() {
    for distance in [(1 << 23) - 5, 1 << 23, (1 << 23) + 5, (1 << 24) - 31] {
        let old = psn(30).wrapping_sub(distance).get();
        assert_eq!(ack_again(20, &[(old, 7)]), (29, 9), "{distance}");
    }
}

#[test]
fn queued_response_with_a_higher_psn_replaces_the_ack() {
    let mut queue = ResponseQueue::default();
    push_read(&mut queue, 25, 1);
    queue.acknowledge_again(psn(20), psn(30), 9);
    assert_eq!(queued(&queue), [25]);
    queue.acknowledge_again(psn(26), psn(30), 9);
    assert_eq!(queued(&queue), [25, 29]);
}

/// Returns the PSNs of the queued responses.
fn queued(queue: &ResponseQueue) -> Vec<u32> {
    queue.responses.iter().map(|response| response.psn().get()).collect()
}

#[test]
fn later_ack_replaces_a_queued_one() {
    let mut queue = ResponseQueue::default();
    queue.acknowledge(psn(1), Syndrome::ACK, 1);
    queue.acknowledge(psn(2), Syndrome::ACK, 2);
    assert_eq!(queued(&queue), [2]);
    assert!(queue.is_acknowledgement());
}

#[test]
fn ack_before_a_nak_is_dropped() {
    let mut queue = ResponseQueue::default();
    queue.acknowledge(psn(5), nak(), 1);
    queue.acknowledge(psn(4), Syndrome::ACK, 1);
    assert!(matches!(queue.responses[0], Response::Ack { syndrome, .. } if syndrome == nak()));
    assert_eq!(queue.responses.len(), 1);
}

#[test]
fn only_the_final_nak_survives_an_error() {
    let mut queue = ResponseQueue::default();
    push_read(&mut queue, 1, 2);
    queue.acknowledge(psn(3), nak(), 1);
    queue.clear_before_nak();
    assert_eq!(queued(&queue), [3]);
    push_read(&mut queue, 3, 2);
    queue.clear_before_nak();
    assert!(queue.is_empty());
}

#[test]
fn resource_is_free_when_its_response_was_sent() {
    let mut queue = ResponseQueue::default();
    push_read(&mut queue, 1, 1);
    assert!(queue.has_room(MOST) && !queue.has_room(0));
    push_read(&mut queue, 2, 1);
    assert!(!queue.has_room(MOST));
    queue.resources[0].is_answered = true;
    assert!(queue.has_room(MOST));
    push_read(&mut queue, 3, 1);
    assert_eq!(queued(&queue), [2, 3]);
}

#[test]
fn repeated_read_may_request_only_the_rest() {
    let reth =
        |addr: u64, length: u32| Reth { virtual_address: addr, r_key: 1, dma_length: length };
    let mtu = MTU as u32;
    for (number, request, is_repeated) in [
        (10, reth(0, 3 * mtu), true),
        (11, reth(MTU as u64, 2 * mtu), true),
        (11, reth(0, 2 * mtu), false),
        (11, reth(MTU as u64, 3 * mtu), false),
        (13, reth(0, 3 * mtu), false),
    ] {
        let mut queue = ResponseQueue::default();
        push_read(&mut queue, 10, 3);
        queue.clear();
        queue.repeat_read(MTU, psn(number), &request);
        assert_eq!(!queue.is_empty(), is_repeated, "PSN {number}, {request:?}");
    }
}

#[test]
fn repeated_response_restarts_the_one_that_it_interrupts() {
    let mut queue = ResponseQueue::default();
    queue.push(MOST, psn(10), 1, 1, ResponseData::Atomic { original: 0 });
    queue.clear();
    push_read(&mut queue, 11, 3);
    if let Response::Data { next, .. } = &mut queue.responses[0] {
        *next = 2;
    }
    queue.repeat_atomic(psn(10));
    assert_eq!(queued(&queue), [10, 11]);
    assert!(matches!(queue.responses[1], Response::Data { start: 0, next: 0, .. }));
    queue.repeat_atomic(psn(9));
    assert_eq!(queued(&queue), [10, 11]);
}
