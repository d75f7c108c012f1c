use crate::sim::Sim;
use ib_link::Remote;
use ib_wire::mad::sm::CapabilityMask;
use std::time::Duration;

use ib_types::Instant;
use ib_wire::mad::rmpp::{RmppFlags, RmppHeader, RmppType};
use ib_wire::mad::{AttributeId, Mad, Method};

use super::*;
use crate::lab::{self, lid, port};
use crate::options::Options;

/// Returns an SA query.
fn query(method: Method, transaction: u64) -> Mad {
    let mut mad = Mad::new(MgmtClass(3), method, TransactionId(transaction));
    mad.set_attribute_id(AttributeId(0x35));
    mad
}

fn segment(mut mad: Mad, rmpp_type: RmppType, segment: u32) -> Mad {
    let mut header = RmppHeader::zeroed();
    (header.version, header.rmpp_type, header.segment) = (1, rmpp_type, segment);
    header.flags = RmppFlags::ACTIVE;
    mad.set_rmpp(&header);
    mad
}

fn received(sim: &mut Sim, client: ClientId) -> Vec<Datagram> {
    sim.settle(sim.now());
    std::iter::from_fn(|| sim.receive(client))
        .map(|incoming| match incoming {
            Incoming::Received(datagram) => datagram,
            Incoming::Lost(datagram) => panic!("lost {}", datagram.mad),
        })
        .collect()
}

fn respond(sim: &mut Sim, client: ClientId, request: &Datagram) {
    let mut mad = request.mad;
    mad.set_method(Method(mad.method().0 | Method::RESPONSE_BIT));
    sim.submit(client, &request.reply(mad));
}

/// Returns a chain h1, s1, h2 with a requester at h1 and an SM at h2.
fn made() -> (Sim, ClientId, ClientId, Remote) {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let manager = lab::manager(&mut sim, "h2");
    let requester = lab::client(&mut sim, "h1");
    sim.settle(sim.now());
    let remote = Remote::gsi(lid(&sim, "h2"));
    (sim, requester, manager, remote)
}

#[test]
fn clients_of_a_port_receive_their_own_responses() {
    let (mut sim, _, manager, remote) = made();
    let askers: Vec<ClientId> = (0..300).map(|_| lab::client(&mut sim, "h1")).collect();
    for &requester in &askers {
        // All clients use the same transaction ID, with upper bits that the fabric has to replace.
        sim.submit(requester, &Datagram::new(remote, query(Method::GET, 0xabcd_0000_0000_0042)));
    }
    let requests = received(&mut sim, manager);
    assert_eq!(requests.len(), 300);
    let mut stamps: Vec<u64> = requests.iter().map(|r| r.mad.transaction_id().0).collect();
    assert!(stamps.iter().all(|stamp| stamp & 0xffff_ffff_ffff == 0x42));
    stamps.sort_unstable();
    stamps.dedup();
    assert_eq!(stamps.len(), 300, "the transaction IDs differ");
    assert_eq!(lab::assigned(&sim), 300);
    for request in requests.iter().rev() {
        respond(&mut sim, manager, request);
    }
    for &requester in &askers {
        let answers = received(&mut sim, requester);
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].mad.transaction_id().0, 0xabcd_0000_0000_0042);
        assert_eq!(answers[0].remote.lid, remote.lid);
    }
    assert_eq!(std::iter::from_fn(|| sim.next_woken()).count(), 301);
    assert!((lab::assigned(&sim) == 0));
    lab::check_settled(&sim);
    // The response timers expire without effect, because all requests were answered.
    sim.run_until(Instant::ZERO + Duration::from_secs(60));
    assert_eq!(lab::lost(&sim, "no_answer"), 0);
}

#[test]
fn unsolicited_mads_go_to_the_sm_or_the_queue_pair() {
    let (mut sim, requester, manager, remote) = made();
    let other = sim
        .attach(port(&sim, "h2.1"), ClientOptions { queue_pair: 77, ..ClientOptions::default() })
        .unwrap();
    sim.submit(requester, &Datagram::new(remote, query(Method::SEND, 1)));
    let before = lab::lost(&sim, "no_receiver");
    let to_77 = Remote { qpn: Qpn::truncated(77), ..remote };
    sim.submit(requester, &Datagram::new(to_77, query(Method::SEND, 2)));
    let to_78 = Remote { qpn: Qpn::truncated(78), ..remote };
    sim.submit(requester, &Datagram::new(to_78, query(Method::SEND, 3)));
    assert_eq!(received(&mut sim, manager).len(), 1);
    let came = received(&mut sim, other);
    assert_eq!((came.len(), came[0].local_qpn.get()), (1, 77));
    assert!(
        matches!(sim.receive(requester), Some(Incoming::Lost(lost)) if lost.mad.transaction_id().0 == 3)
    );
    assert_eq!(sim.counters(port(&sim, "h2.1")).qp1_dropped, 1);
    sim.set_is_sm(manager, false);
    sim.submit(requester, &Datagram::new(remote, query(Method::SEND, 4)));
    sim.settle(sim.now());
    assert!(matches!(sim.receive(requester), Some(Incoming::Lost(_))));
    // Only the MADs with the transaction IDs 3 and 4 are lost. The trap about the missing SM is not
    // lost: the port does not send it before an earlier trap is repressed.
    assert_eq!(lab::lost(&sim, "no_receiver"), before + 2);
    lab::check_settled(&sim);
}

#[test]
fn losses_are_reported_only_on_request() {
    let (mut sim, requester, _, _) = made();
    let silent = sim.attach(port(&sim, "h1.1"), ClientOptions::default()).unwrap();
    let nowhere = Remote::gsi(999);
    for client in [requester, silent] {
        sim.submit(client, &Datagram::new(nowhere, query(Method::GET, 5)));
    }
    sim.settle(sim.now());
    let Some(Incoming::Lost(lost)) = sim.receive(requester) else {
        panic!("the loss is not reported")
    };
    assert_eq!(
        (lost.mad, lost.remote),
        (query(Method::GET, 5), nowhere),
        "the lost MAD is returned unchanged"
    );
    assert_eq!(sim.receive(silent), None);
    for client in [requester, silent] {
        let report = sim.client_report(client);
        assert_eq!((report.sent, report.received, report.lost), (1, 0, 1));
    }
    lab::check_settled(&sim);
}

#[test]
fn missing_response_is_reported_after_the_time_limit() {
    let (mut sim, requester, manager, remote) = made();
    sim.submit(requester, &Datagram::new(remote, query(Method::GET, 5)));
    let requests = received(&mut sim, manager);
    sim.run_until(Instant::ZERO + Duration::from_secs(29));
    assert_eq!(sim.receive(requester), None);
    sim.run_until(Instant::ZERO + Duration::from_secs(31));
    assert!(matches!(sim.receive(requester), Some(Incoming::Lost(_))));
    assert_eq!(lab::lost(&sim, "no_answer"), 1);
    assert!((lab::assigned(&sim) == 0));
    // The client still receives the late response, although its request has already failed.
    respond(&mut sim, manager, &requests[0]);
    assert_eq!(received(&mut sim, requester).len(), 1);
    lab::check_settled(&sim);
}

#[test]
fn repeated_request_gets_one_response() {
    let (mut sim, requester, manager, remote) = made();
    for _ in 0..3 {
        sim.submit(requester, &Datagram::new(remote, query(Method::GET, 5)));
    }
    let requests = received(&mut sim, manager);
    assert_eq!((requests.len(), lab::assigned(&sim), sim.outstanding()), (3, 1, 1));
    respond(&mut sim, manager, &requests[2]);
    assert_eq!(received(&mut sim, requester).len(), 1);
    lab::check_settled(&sim);
    sim.run_until(Instant::ZERO + Duration::from_secs(60));
    assert_eq!(sim.receive(requester), None);
}

#[test]
fn same_transaction_of_another_request_fails_the_older() {
    let (mut sim, requester, manager, remote) = made();
    let first = query(Method::GET, 5);
    let mut second = first;
    second.set_attribute_id(AttributeId(0x11));
    // The fabric replaces the upper 16 bits of a transaction ID, so the third query has the same
    // transaction ID in the fabric as the other queries.
    let third = query(Method::GET, 5 | 7 << 48);
    for (before, mad) in [(None, first), (Some(first), second), (Some(second), third)] {
        sim.submit(requester, &Datagram::new(remote, mad));
        sim.settle(sim.now());
        match (before, sim.receive(requester)) {
            (None, None) => {}
            (Some(before), Some(Incoming::Lost(lost))) => assert_eq!(lost.mad, before),
            other => panic!("{other:?}"),
        }
    }
    let requests = received(&mut sim, manager);
    respond(&mut sim, manager, &requests[2]);
    let answers = received(&mut sim, requester);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].mad.transaction_id(), third.transaction_id());
    lab::check_settled(&sim);
}

#[test]
fn segments_of_a_request_are_one_request() {
    let (mut sim, requester, manager, remote) = made();
    for number in 1..=3 {
        let mad = segment(query(Method::GET_MULTI, 5), RmppType::DATA, number);
        sim.submit(requester, &Datagram::new(remote, mad));
    }
    assert_eq!(received(&mut sim, manager).len(), 3);
    assert_eq!(sim.receive(requester), None, "nothing is lost");
    assert_eq!(sim.outstanding(), 1);
}

#[test]
fn same_transaction_at_two_ports_has_two_responses() {
    let fabric = lab::fabric(
        &[("h1", 1), ("h2", 1), ("h3", 1), ("s1", 3)],
        &["h1.1 s1.1", "h2.1 s1.2", "h3.1 s1.3"],
    );
    let mut sim = lab::ready(&fabric, Options::default());
    let requester = lab::client(&mut sim, "h1");
    let managers = ["h2", "h3"].map(|name| (lab::manager(&mut sim, name), lid(&sim, name)));
    sim.settle(sim.now());
    while sim.receive(requester).is_some() {}
    for (_, lid) in managers {
        sim.submit(requester, &Datagram::new(Remote::gsi(lid), query(Method::GET, 5)));
    }
    sim.settle(sim.now());
    assert_eq!((lab::assigned(&sim), sim.outstanding()), (2, 2));
    // One responder sends its response, the other detaches.
    let requests = received(&mut sim, managers[0].0);
    respond(&mut sim, managers[0].0, &requests[0]);
    assert_eq!(received(&mut sim, requester).len(), 1);
    sim.detach(managers[1].0);
    sim.settle(sim.now());
    assert!(
        matches!(sim.receive(requester), Some(Incoming::Lost(lost)) if lost.remote.lid == managers[1].1)
    );
    lab::check_settled(&sim);
}

#[test]
fn detach_cancels_own_requests_and_fails_assigned_ones() {
    let (mut sim, requester, manager, remote) = made();
    sim.submit(requester, &Datagram::new(remote, query(Method::GET, 1)));
    sim.settle(sim.now());
    sim.submit(requester, &Datagram::new(remote, query(Method::GET, 2)));
    // The requester detaches while one request waits for its response, and one is in flight.
    assert_eq!((lab::assigned(&sim), sim.net.flights.len()), (1, 1));
    sim.detach(requester);
    assert_eq!((lab::assigned(&sim), sim.outstanding()), (0, 0));
    sim.detach(requester);
    sim.submit(requester, &Datagram::new(remote, query(Method::GET, 3)));
    let requests = received(&mut sim, manager);
    assert_eq!(requests.len(), 2);
    // A client that attaches now does not receive the responses to the detached client.
    let next = lab::client(&mut sim, "h1");
    assert_ne!(next, requester);
    for request in &requests {
        respond(&mut sim, manager, request);
    }
    assert_eq!(received(&mut sim, next).len(), 0);
    assert_eq!(lab::lost(&sim, "client_left"), 2);
    lab::check_settled(&sim);

    // The responder detaches while it has one unanswered request, and one request is in flight.
    sim.submit(next, &Datagram::new(remote, query(Method::GET, 1)));
    sim.settle(sim.now());
    sim.submit(next, &Datagram::new(remote, query(Method::GET, 2)));
    sim.detach(manager);
    assert!(
        matches!(sim.receive(next), Some(Incoming::Lost(lost)) if lost.mad.transaction_id().0 == 1)
    );
    sim.settle(sim.now());
    assert!(
        matches!(sim.receive(next), Some(Incoming::Lost(lost)) if lost.mad.transaction_id().0 == 2)
    );
    assert!(!sim.port_info(port(&sim, "h2.1")).capability_mask.contains(CapabilityMask::SM));
    lab::check_settled(&sim);
}

#[test]
fn requests_fail_at_once_when_their_sm_detaches() {
    let (mut sim, requester, manager, remote) = made();
    let others = [lab::client(&mut sim, "h2"), lab::client(&mut sim, "h2")];
    sim.submit(requester, &Datagram::new(remote, query(Method::GET, 1)));
    sim.settle(sim.now());
    assert_eq!(lab::assigned(&sim), 1);
    // The request is not assigned to this client, so the client's detach does not fail it.
    sim.detach(others[0]);
    sim.settle(sim.now());
    assert_eq!(sim.receive(requester), None);
    sim.detach(manager);
    assert!(
        matches!(sim.receive(requester), Some(Incoming::Lost(lost)) if lost.mad == query(Method::GET, 1))
    );
    sim.settle(sim.now());
    lab::check_settled(&sim);
    assert!((lab::assigned(&sim) == 0) && (sim.outstanding() == 0));
}

#[test]
fn late_response_is_not_delivered_to_the_sm_of_the_port() {
    let (mut sim, requester, manager, remote) = made();
    let local = lab::manager(&mut sim, "h1");
    sim.settle(sim.now());
    while sim.receive(local).is_some() {}
    sim.submit(requester, &Datagram::new(remote, query(Method::GET, 1)));
    let requests = received(&mut sim, manager);
    sim.detach(requester);
    respond(&mut sim, manager, &requests[0]);
    assert_eq!(received(&mut sim, local).len(), 0);
}

#[test]
fn client_ids_wrap_around() {
    let (mut sim, requester, manager, _) = made();
    let at = port(&sim, "h1.1");
    let first = sim.attach(at, ClientOptions::default()).unwrap();
    sim.detach(first);
    for _ in 0..70_000 {
        let id = sim.attach(at, ClientOptions::default()).unwrap();
        assert!(id != requester && id != manager && id.0 < 65_534);
        sim.detach(id);
    }
    assert_eq!(sim.net.clients.at(at), [requester]);
    // The highest client ID works like any other.
    sim.net.clients.set_next(65_533);
    let last = sim.attach(at, ClientOptions::default()).unwrap();
    assert_eq!(last.0, 65_533);
    let (status, mad) = lab::get(&mut sim, last, &[1], (AttributeId::NODE_INFO, 0));
    assert_eq!((status.0, mad.transaction_id().0), (0, 7));
}

#[test]
fn attach_fails_when_all_client_ids_are_in_use() {
    let (mut sim, requester, _, _) = made();
    let at = port(&sim, "h1.1");
    let nowhere = PortId(999);
    let refused = sim.attach(nowhere, ClientOptions::default());
    assert_eq!(refused, Err(AttachError::NoSuchPort(nowhere)));
    for _ in 2..MAX_CLIENTS {
        sim.attach(at, ClientOptions::default()).unwrap();
    }
    assert_eq!(sim.attach(at, ClientOptions::default()), Err(AttachError::Full));
    sim.detach(requester);
    assert_eq!(
        sim.attach(at, ClientOptions::default()),
        Ok(requester),
        "the detached client's ID is the only free one"
    );
    assert_eq!(sim.attach(at, ClientOptions::default()), Err(AttachError::Full));
}

#[test]
fn all_segments_of_a_response_are_delivered() {
    let (mut sim, requester, manager, remote) = made();
    sim.submit(requester, &Datagram::new(remote, query(Method(0x12), 9)));
    let request = received(&mut sim, manager)[0];
    let mut answer = request.mad;
    answer.set_method(Method(0x92));
    for number in 1..=3 {
        sim.submit(manager, &request.reply(segment(answer, RmppType::DATA, number)));
    }
    let segments = received(&mut sim, requester);
    let numbers: Vec<u32> = segments.iter().map(|s| s.mad.rmpp().segment).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert!(segments.iter().all(|s| s.mad.transaction_id().0 == 9));
    // The acknowledgement has the method and the transaction ID of the request.
    let ack = segment(query(Method(0x12), 9), RmppType::ACK, 3);
    sim.submit(requester, &Datagram::new(remote, ack));
    let acks = received(&mut sim, manager);
    assert_eq!(acks.len(), 1);
    assert_eq!(acks[0].mad.transaction_id(), request.mad.transaction_id());
    lab::check_settled(&sim);
    assert!((lab::assigned(&sim) == 0) && (sim.outstanding() == 0));
}

#[test]
fn every_segment_has_the_transaction_of_its_client() {
    const WHOLE: u64 = 0xabcd_0000_0000_0009;
    let (mut sim, requester, manager, remote) = made();
    let plain = lab::client(&mut sim, "h1");
    for (client, transaction) in [(requester, WHOLE), (plain, 9)] {
        sim.submit(client, &Datagram::new(remote, query(Method(0x12), transaction)));
    }
    let requests = received(&mut sim, manager);
    let answer = |sim: &mut Sim, request: &Datagram, numbers: std::ops::Range<u32>| {
        let mut answer = request.mad;
        answer.set_method(Method(0x92));
        for number in numbers {
            sim.submit(manager, &request.reply(segment(answer, RmppType::DATA, number)));
        }
    };
    let transactions = |sim: &mut Sim, client| -> Vec<u64> {
        received(sim, client).iter().map(|came| came.mad.transaction_id().0).collect()
    };
    for request in &requests {
        answer(&mut sim, request, 1..4);
    }
    assert_eq!(transactions(&mut sim, requester), [WHOLE; 3]);
    assert_eq!(transactions(&mut sim, plain), [9; 3]);
    assert_eq!(sim.outstanding(), 0);

    // After 4,095 further MADs of the client, a late segment still gets the upper bits of the
    // client's transaction ID.
    for number in 0..4_095u64 {
        sim.submit(
            requester,
            &Datagram::new(remote, query(Method::SEND, 0x7777_0000_0000_1000 + number)),
        );
    }
    answer(&mut sim, &requests[0], 4..5);
    assert_eq!(transactions(&mut sim, requester), [WHOLE]);
    sim.submit(requester, &Datagram::new(remote, query(Method::SEND, 0x7777_0000_0000_0999)));
    answer(&mut sim, &requests[0], 5..6);
    assert_eq!(transactions(&mut sim, requester), [9], "only 4,096 transactions are stored");

    // These transaction IDs have the lower bits of `WHOLE`, but other upper bits: 0x1234 and zero.
    for transaction in [0x1234_0000_0000_0009, 9] {
        sim.submit(requester, &Datagram::new(remote, query(Method(0x12), transaction)));
        let request = received(&mut sim, manager).pop().unwrap();
        answer(&mut sim, &request, 1..3);
        assert_eq!(transactions(&mut sim, requester), [transaction; 2]);
    }

    // Segments for a detached client are delivered to no other client.
    sim.detach(requester);
    let next = lab::client(&mut sim, "h1");
    answer(&mut sim, &requests[0], 6..7);
    for other in [next, plain, manager] {
        assert_eq!(transactions(&mut sim, other), [0u64; 0]);
    }
    assert_eq!(lab::lost(&sim, "client_left"), 1);
    lab::check_settled(&sim);
}

#[test]
fn acknowledgement_is_not_a_response() {
    let (mut sim, requester, manager, remote) = made();
    sim.submit(
        requester,
        &Datagram::new(remote, segment(query(Method(0x14), 9), RmppType::DATA, 1)),
    );
    let request = received(&mut sim, manager)[0];
    let mut mad = request.mad;
    mad.set_method(Method(0x94));
    sim.submit(manager, &request.reply(segment(mad, RmppType::ACK, 1)));
    assert_eq!(received(&mut sim, requester).len(), 1);
    assert_eq!(lab::assigned(&sim), 1, "an ACK does not complete the request");
    sim.run_until(Instant::ZERO + Duration::from_secs(31));
    assert!(matches!(sim.receive(requester), Some(Incoming::Lost(_))));
}

#[test]
fn response_without_rmpp_type_is_a_response() {
    let (mut sim, requester, manager, remote) = made();
    sim.submit(requester, &Datagram::new(remote, query(Method(0x12), 9)));
    let request = received(&mut sim, manager)[0];
    let mut mad = segment(request.mad, RmppType(0), 0);
    mad.set_method(Method(0x92));
    sim.submit(manager, &request.reply(mad));
    assert_eq!(received(&mut sim, requester).len(), 1);
    lab::check_settled(&sim);
    assert!((lab::assigned(&sim) == 0) && (sim.outstanding() == 0));
}

#[test]
fn detach_with_many_requests_does_not_block_others() {
    const COUNT: u64 = 50_000;
    let (mut sim, requester, manager, remote) = made();
    let other = lab::client(&mut sim, "h1");
    sim.submit(other, &Datagram::new(remote, query(Method::GET, 1)));
    for transaction in 0..COUNT {
        sim.submit(requester, &Datagram::new(remote, query(Method::GET, transaction)));
        sim.settle(sim.now());
    }
    sim.submit(requester, &Datagram::new(remote, query(Method::GET, COUNT)));
    assert_eq!((lab::assigned(&sim) as u64, sim.net.flights.len()), (COUNT + 1, 1));
    sim.detach(requester);
    assert_eq!((lab::assigned(&sim), sim.outstanding()), (1, 1));
    // The request in flight still arrives at the SM, although its sender is detached.
    assert_eq!(received(&mut sim, manager).len() as u64, COUNT + 2);
    lab::check_settled(&sim);

    for transaction in 2..COUNT {
        sim.submit(other, &Datagram::new(remote, query(Method::GET, transaction)));
        sim.settle(sim.now());
    }
    sim.run_until(Instant::ZERO + Duration::from_secs(60));
    let lost = std::iter::from_fn(|| sim.receive(other)).count() as u64;
    assert_eq!(lost, COUNT - 1, "every unanswered request of `other` is reported as lost");
    assert!((lab::assigned(&sim) == 0) && (sim.outstanding() == 0));
}

#[test]
fn client_may_send_a_request_to_its_own_port() {
    let (mut sim, requester, _, _) = made();
    let manager = lab::manager(&mut sim, "h1");
    sim.settle(sim.now());
    while sim.receive(manager).is_some() {}
    let own = Remote::gsi(lid(&sim, "h1"));
    sim.submit(requester, &Datagram::new(own, query(Method::GET, 3)));
    let requests = received(&mut sim, manager);
    respond(&mut sim, manager, &requests[0]);
    assert_eq!(received(&mut sim, requester)[0].mad.transaction_id().0, 3);
    lab::check_settled(&sim);
}

#[test]
fn request_beyond_the_limit_is_lost_at_once() {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let port = sim.first_end_port().unwrap();
    let told = ClientOptions { reports_losses: true, ..ClientOptions::default() };
    let requester = sim.attach(port, told).unwrap();
    let manager = lab::manager(&mut sim, "h2");
    let remote = Remote::smi(lid(&sim, "h2"));
    let most = 65_536;
    for transaction in 0..=most {
        let what = (AttributeId::SM_INFO, 0);
        let mad = ib_wire::mad::smp::lid_request(Method::GET, TransactionId(transaction), what);
        sim.submit(requester, &Datagram::new(remote, mad));
        sim.settle(sim.now());
    }
    let Some(Incoming::Lost(lost)) = sim.receive(requester) else {
        panic!("the last request is not reported as lost")
    };
    assert_eq!(lost.mad.transaction_id(), TransactionId(most));
    assert!(sim.receive(requester).is_none());
    assert_eq!(sim.stats().lost["too_many_requests"], 1);
    // Every response removes one outstanding request. The detach removes all others.
    let first = received(&mut sim, manager)[0];
    respond(&mut sim, manager, &first);
    sim.settle(sim.now());
    assert_eq!(sim.outstanding(), most as usize - 1);
    sim.detach(requester);
    assert!((sim.outstanding() == 0) && (lab::assigned(&sim) == 0));
}
