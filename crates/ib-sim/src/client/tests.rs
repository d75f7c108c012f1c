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

/// Returns a request of subnet administration.
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

/// Returns a row of h1, s1, h2 with an asker at h1 and a manager at h2.
fn made() -> (Sim, ClientId, ClientId, Remote) {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let manager = lab::manager(&mut sim, "h2");
    let asker = lab::client(&mut sim, "h1");
    sim.settle(sim.now());
    let remote = Remote::gsi(lid(&sim, "h2"));
    (sim, asker, manager, remote)
}

#[test]
fn the_clients_of_a_port_get_their_own_answers_with_their_own_transactions() {
    let (mut sim, _, manager, remote) = made();
    let askers: Vec<ClientId> = (0..300).map(|_| lab::client(&mut sim, "h1")).collect();
    for &asker in &askers {
        // The upper 16 bits are the client's, too.
        sim.submit(asker, &Datagram::new(remote, query(Method::GET, 0xabcd_0000_0000_0042)));
    }
    let requests = received(&mut sim, manager);
    assert_eq!(requests.len(), 300);
    let mut stamps: Vec<u64> = requests.iter().map(|r| r.mad.transaction_id().0).collect();
    assert!(stamps.iter().all(|stamp| stamp & 0xffff_ffff_ffff == 0x42));
    stamps.sort_unstable();
    stamps.dedup();
    assert_eq!(stamps.len(), 300, "the fabric tells them apart");
    assert_eq!(lab::handed(&sim), 300);
    for request in requests.iter().rev() {
        respond(&mut sim, manager, request);
    }
    for &asker in &askers {
        let answers = received(&mut sim, asker);
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].mad.transaction_id().0, 0xabcd_0000_0000_0042);
        assert_eq!(answers[0].remote.lid, remote.lid);
    }
    assert_eq!(std::iter::from_fn(|| sim.next_woken()).count(), 301);
    assert!((lab::handed(&sim) == 0));
    lab::check_settled(&sim);
    // The timers of the answers find nothing.
    sim.run_until(Instant::ZERO + Duration::from_secs(60));
    assert_eq!(lab::lost(&sim, "no_answer"), 0);
}

#[test]
fn what_nobody_asked_for_goes_to_the_manager_or_to_the_queue_pair() {
    let (mut sim, asker, manager, remote) = made();
    let other = sim
        .attach(port(&sim, "h2.1"), ClientOptions { queue_pair: 77, ..ClientOptions::default() })
        .unwrap();
    sim.submit(asker, &Datagram::new(remote, query(Method::SEND, 1)));
    let before = lab::lost(&sim, "no_receiver");
    let to_77 = Remote { qpn: Qpn::truncated(77), ..remote };
    sim.submit(asker, &Datagram::new(to_77, query(Method::SEND, 2)));
    let to_78 = Remote { qpn: Qpn::truncated(78), ..remote };
    sim.submit(asker, &Datagram::new(to_78, query(Method::SEND, 3)));
    assert_eq!(received(&mut sim, manager).len(), 1);
    let came = received(&mut sim, other);
    assert_eq!((came.len(), came[0].local_qpn.get()), (1, 77));
    assert!(
        matches!(sim.receive(asker), Some(Incoming::Lost(lost)) if lost.mad.transaction_id().0 == 3)
    );
    assert_eq!(sim.counters(port(&sim, "h2.1")).qp1_dropped, 1);
    sim.set_is_sm(manager, false);
    sim.submit(asker, &Datagram::new(remote, query(Method::SEND, 4)));
    sim.settle(sim.now());
    assert!(matches!(sim.receive(asker), Some(Incoming::Lost(_))));
    // The trap that tells of the manager's end waits for the one before it to be repressed.
    assert_eq!(lab::lost(&sim, "no_receiver"), before + 2);
    lab::check_settled(&sim);
}

#[test]
fn only_who_wants_to_know_is_told_of_losses() {
    let (mut sim, asker, _, _) = made();
    let silent = sim.attach(port(&sim, "h1.1"), ClientOptions::default()).unwrap();
    let nowhere = Remote::gsi(999);
    for client in [asker, silent] {
        sim.submit(client, &Datagram::new(nowhere, query(Method::GET, 5)));
    }
    sim.settle(sim.now());
    let Some(Incoming::Lost(lost)) = sim.receive(asker) else { panic!("not told") };
    assert_eq!((lost.mad, lost.remote), (query(Method::GET, 5), nowhere), "as it was sent");
    assert_eq!(sim.receive(silent), None);
    for client in [asker, silent] {
        let report = sim.client_report(client);
        assert_eq!((report.sent, report.received, report.lost), (1, 0, 1));
    }
    lab::check_settled(&sim);
}

#[test]
fn who_is_not_answered_in_time_is_told() {
    let (mut sim, asker, manager, remote) = made();
    sim.submit(asker, &Datagram::new(remote, query(Method::GET, 5)));
    let requests = received(&mut sim, manager);
    sim.run_until(Instant::ZERO + Duration::from_secs(29));
    assert_eq!(sim.receive(asker), None);
    sim.run_until(Instant::ZERO + Duration::from_secs(31));
    assert!(matches!(sim.receive(asker), Some(Incoming::Lost(_))));
    assert_eq!(lab::lost(&sim, "no_answer"), 1);
    assert!((lab::handed(&sim) == 0));
    // The late answer still comes, as on a real fabric.
    respond(&mut sim, manager, &requests[0]);
    assert_eq!(received(&mut sim, asker).len(), 1);
    lab::check_settled(&sim);
}

#[test]
fn who_asks_again_gets_one_answer() {
    let (mut sim, asker, manager, remote) = made();
    for _ in 0..3 {
        sim.submit(asker, &Datagram::new(remote, query(Method::GET, 5)));
    }
    let requests = received(&mut sim, manager);
    assert_eq!((requests.len(), lab::handed(&sim), sim.outstanding()), (3, 1, 1));
    respond(&mut sim, manager, &requests[2]);
    assert_eq!(received(&mut sim, asker).len(), 1);
    lab::check_settled(&sim);
    sim.run_until(Instant::ZERO + Duration::from_secs(60));
    assert_eq!(sim.receive(asker), None);
}

#[test]
fn another_request_of_the_same_transaction_does_not_hide_the_one_before() {
    let (mut sim, asker, manager, remote) = made();
    let first = query(Method::GET, 5);
    let mut second = first;
    second.set_attribute_id(AttributeId(0x11));
    // The fabric sees only 48 bits of a transaction.
    let third = query(Method::GET, 5 | 7 << 48);
    for (before, mad) in [(None, first), (Some(first), second), (Some(second), third)] {
        sim.submit(asker, &Datagram::new(remote, mad));
        sim.settle(sim.now());
        match (before, sim.receive(asker)) {
            (None, None) => {}
            (Some(before), Some(Incoming::Lost(lost))) => assert_eq!(lost.mad, before),
            other => panic!("{other:?}"),
        }
    }
    let requests = received(&mut sim, manager);
    respond(&mut sim, manager, &requests[2]);
    let answers = received(&mut sim, asker);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].mad.transaction_id(), third.transaction_id());
    lab::check_settled(&sim);
}

#[test]
fn segments_of_a_request_are_one_request() {
    let (mut sim, asker, manager, remote) = made();
    for number in 1..=3 {
        let mad = segment(query(Method::GET_MULTI, 5), RmppType::DATA, number);
        sim.submit(asker, &Datagram::new(remote, mad));
    }
    assert_eq!(received(&mut sim, manager).len(), 3);
    assert_eq!(sim.receive(asker), None, "nothing is lost");
    assert_eq!(sim.outstanding(), 1);
}

#[test]
fn the_same_transaction_at_two_places_has_two_answers() {
    let fabric = lab::fabric(
        &[("h1", 1), ("h2", 1), ("h3", 1), ("s1", 3)],
        &["h1.1 s1.1", "h2.1 s1.2", "h3.1 s1.3"],
    );
    let mut sim = lab::ready(&fabric, Options::default());
    let asker = lab::client(&mut sim, "h1");
    let managers = ["h2", "h3"].map(|name| (lab::manager(&mut sim, name), lid(&sim, name)));
    sim.settle(sim.now());
    while sim.receive(asker).is_some() {}
    for (_, lid) in managers {
        sim.submit(asker, &Datagram::new(Remote::gsi(lid), query(Method::GET, 5)));
    }
    sim.settle(sim.now());
    assert_eq!((lab::handed(&sim), sim.outstanding()), (2, 2));
    // One answers, the other leaves.
    let requests = received(&mut sim, managers[0].0);
    respond(&mut sim, managers[0].0, &requests[0]);
    assert_eq!(received(&mut sim, asker).len(), 1);
    sim.detach(managers[1].0);
    sim.settle(sim.now());
    assert!(
        matches!(sim.receive(asker), Some(Incoming::Lost(lost)) if lost.remote.lid == managers[1].1)
    );
    lab::check_settled(&sim);
}

#[test]
fn a_client_that_leaves_frees_what_it_asked_and_fails_what_it_was_to_answer() {
    let (mut sim, asker, manager, remote) = made();
    sim.submit(asker, &Datagram::new(remote, query(Method::GET, 1)));
    sim.settle(sim.now());
    sim.submit(asker, &Datagram::new(remote, query(Method::GET, 2)));
    // One is handed over, one is on its way; the asker leaves.
    assert_eq!((lab::handed(&sim), sim.net.flights.len()), (1, 1));
    sim.detach(asker);
    assert_eq!((lab::handed(&sim), sim.outstanding()), (0, 0));
    sim.detach(asker);
    sim.submit(asker, &Datagram::new(remote, query(Method::GET, 3)));
    let requests = received(&mut sim, manager);
    assert_eq!(requests.len(), 2);
    // Whoever comes next does not take the answers.
    let next = lab::client(&mut sim, "h1");
    assert_ne!(next, asker);
    for request in &requests {
        respond(&mut sim, manager, request);
    }
    assert_eq!(received(&mut sim, next).len(), 0);
    assert_eq!(lab::lost(&sim, "client_left"), 2);
    lab::check_settled(&sim);

    // Now the one that should answer leaves, with one request handed over and one on its way.
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
fn what_a_manager_was_to_answer_fails_at_once_when_it_dies_whoever_else_is_at_its_port() {
    let (mut sim, asker, manager, remote) = made();
    let others = [lab::client(&mut sim, "h2"), lab::client(&mut sim, "h2")];
    sim.submit(asker, &Datagram::new(remote, query(Method::GET, 1)));
    sim.settle(sim.now());
    assert_eq!(lab::handed(&sim), 1);
    // It was not handed to this one.
    sim.detach(others[0]);
    sim.settle(sim.now());
    assert_eq!(sim.receive(asker), None);
    sim.detach(manager);
    assert!(
        matches!(sim.receive(asker), Some(Incoming::Lost(lost)) if lost.mad == query(Method::GET, 1))
    );
    sim.settle(sim.now());
    lab::check_settled(&sim);
    assert!((lab::handed(&sim) == 0) && (sim.outstanding() == 0));
}

#[test]
fn a_late_answer_is_not_for_the_manager_of_the_port_either() {
    let (mut sim, asker, manager, remote) = made();
    let local = lab::manager(&mut sim, "h1");
    sim.settle(sim.now());
    while sim.receive(local).is_some() {}
    sim.submit(asker, &Datagram::new(remote, query(Method::GET, 1)));
    let requests = received(&mut sim, manager);
    sim.detach(asker);
    respond(&mut sim, manager, &requests[0]);
    assert_eq!(received(&mut sim, local).len(), 0);
}

#[test]
fn numbers_of_clients_come_round() {
    let (mut sim, asker, manager, _) = made();
    let at = port(&sim, "h1.1");
    let first = sim.attach(at, ClientOptions::default()).unwrap();
    sim.detach(first);
    for _ in 0..70_000 {
        let id = sim.attach(at, ClientOptions::default()).unwrap();
        assert!(id != asker && id != manager && id.0 < 65_534);
        sim.detach(id);
    }
    assert_eq!(sim.net.clients.at(at), [asker]);
    // The highest number stamps and is taken off like any other.
    sim.net.clients.set_next(65_533);
    let last = sim.attach(at, ClientOptions::default()).unwrap();
    assert_eq!(last.0, 65_533);
    let (status, mad) = lab::get(&mut sim, last, &[1], (AttributeId::NODE_INFO, 0));
    assert_eq!((status.0, mad.transaction_id().0), (0, 7));
}

#[test]
fn who_comes_when_all_numbers_are_in_use_is_refused() {
    let (mut sim, asker, _, _) = made();
    let at = port(&sim, "h1.1");
    let nowhere = PortId(999);
    let refused = sim.attach(nowhere, ClientOptions::default());
    assert_eq!(refused, Err(AttachError::NoSuchPort(nowhere)));
    for _ in 2..MOST_CLIENTS {
        sim.attach(at, ClientOptions::default()).unwrap();
    }
    assert_eq!(sim.attach(at, ClientOptions::default()), Err(AttachError::Full));
    sim.detach(asker);
    assert_eq!(sim.attach(at, ClientOptions::default()), Ok(asker), "the only free number");
    assert_eq!(sim.attach(at, ClientOptions::default()), Err(AttachError::Full));
}

#[test]
fn an_answer_of_several_segments_comes_as_a_whole() {
    let (mut sim, asker, manager, remote) = made();
    sim.submit(asker, &Datagram::new(remote, query(Method(0x12), 9)));
    let request = received(&mut sim, manager)[0];
    let mut answer = request.mad;
    answer.set_method(Method(0x92));
    for number in 1..=3 {
        sim.submit(manager, &request.reply(segment(answer, RmppType::DATA, number)));
    }
    let segments = received(&mut sim, asker);
    let numbers: Vec<u32> = segments.iter().map(|s| s.mad.rmpp().segment).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert!(segments.iter().all(|s| s.mad.transaction_id().0 == 9));
    // The acknowledgement has the method of the request and the same transaction.
    let ack = segment(query(Method(0x12), 9), RmppType::ACK, 3);
    sim.submit(asker, &Datagram::new(remote, ack));
    let acks = received(&mut sim, manager);
    assert_eq!(acks.len(), 1);
    assert_eq!(acks[0].mad.transaction_id(), request.mad.transaction_id());
    lab::check_settled(&sim);
    assert!((lab::handed(&sim) == 0) && (sim.outstanding() == 0));
}

#[test]
fn every_segment_has_the_transaction_of_its_client() {
    const WHOLE: u64 = 0xabcd_0000_0000_0009;
    let (mut sim, asker, manager, remote) = made();
    let plain = lab::client(&mut sim, "h1");
    for (client, transaction) in [(asker, WHOLE), (plain, 9)] {
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
    assert_eq!(transactions(&mut sim, asker), [WHOLE; 3]);
    assert_eq!(transactions(&mut sim, plain), [9; 3]);
    assert_eq!(sim.outstanding(), 0);

    // Later ones are still the asker's own, however much it has asked since, up to a point.
    for number in 0..4_095u64 {
        sim.submit(
            asker,
            &Datagram::new(remote, query(Method::SEND, 0x7777_0000_0000_1000 + number)),
        );
    }
    answer(&mut sim, &requests[0], 4..5);
    assert_eq!(transactions(&mut sim, asker), [WHOLE]);
    sim.submit(asker, &Datagram::new(remote, query(Method::SEND, 0x7777_0000_0000_0999)));
    answer(&mut sim, &requests[0], 5..6);
    assert_eq!(transactions(&mut sim, asker), [9], "what is remembered has an end");

    // The same number anew has other upper bits, or none.
    for anew in [0x1234_0000_0000_0009, 9] {
        sim.submit(asker, &Datagram::new(remote, query(Method(0x12), anew)));
        let request = received(&mut sim, manager).pop().unwrap();
        answer(&mut sim, &request, 1..3);
        assert_eq!(transactions(&mut sim, asker), [anew; 2]);
    }

    // Nobody else gets what comes for one that has left.
    sim.detach(asker);
    let next = lab::client(&mut sim, "h1");
    answer(&mut sim, &requests[0], 6..7);
    for other in [next, plain, manager] {
        assert_eq!(transactions(&mut sim, other), [0u64; 0]);
    }
    assert_eq!(lab::lost(&sim, "client_left"), 1);
    lab::check_settled(&sim);
}

#[test]
fn acknowledging_a_request_is_not_answering_it() {
    let (mut sim, asker, manager, remote) = made();
    sim.submit(asker, &Datagram::new(remote, segment(query(Method(0x14), 9), RmppType::DATA, 1)));
    let request = received(&mut sim, manager)[0];
    let mut mad = request.mad;
    mad.set_method(Method(0x94));
    sim.submit(manager, &request.reply(segment(mad, RmppType::ACK, 1)));
    assert_eq!(received(&mut sim, asker).len(), 1);
    assert_eq!(lab::handed(&sim), 1, "the answer is still due");
    sim.run_until(Instant::ZERO + Duration::from_secs(31));
    assert!(matches!(sim.receive(asker), Some(Incoming::Lost(_))));
}

#[test]
fn an_answer_without_a_type_is_an_answer() {
    let (mut sim, asker, manager, remote) = made();
    sim.submit(asker, &Datagram::new(remote, query(Method(0x12), 9)));
    let request = received(&mut sim, manager)[0];
    let mut mad = segment(request.mad, RmppType(0), 0);
    mad.set_method(Method(0x92));
    sim.submit(manager, &request.reply(mad));
    assert_eq!(received(&mut sim, asker).len(), 1);
    lab::check_settled(&sim);
    assert!((lab::handed(&sim) == 0) && (sim.outstanding() == 0));
}

#[test]
fn a_client_that_leaves_behind_very_many_requests_holds_up_nobody() {
    const COUNT: u64 = 50_000;
    let (mut sim, asker, manager, remote) = made();
    let other = lab::client(&mut sim, "h1");
    sim.submit(other, &Datagram::new(remote, query(Method::GET, 1)));
    for transaction in 0..COUNT {
        sim.submit(asker, &Datagram::new(remote, query(Method::GET, transaction)));
        sim.settle(sim.now());
    }
    sim.submit(asker, &Datagram::new(remote, query(Method::GET, COUNT)));
    assert_eq!((lab::handed(&sim) as u64, sim.net.flights.len()), (COUNT + 1, 1));
    sim.detach(asker);
    assert_eq!((lab::handed(&sim), sim.outstanding()), (1, 1));
    // The request that was on its way still arrives, and belongs to nobody.
    assert_eq!(received(&mut sim, manager).len() as u64, COUNT + 2);
    lab::check_settled(&sim);

    for transaction in 2..COUNT {
        sim.submit(other, &Datagram::new(remote, query(Method::GET, transaction)));
        sim.settle(sim.now());
    }
    sim.run_until(Instant::ZERO + Duration::from_secs(60));
    let lost = std::iter::from_fn(|| sim.receive(other)).count() as u64;
    assert_eq!(lost, COUNT - 1, "none of them was answered in time");
    assert!((lab::handed(&sim) == 0) && (sim.outstanding() == 0));
}

#[test]
fn a_client_may_ask_its_own_port() {
    let (mut sim, asker, _, _) = made();
    let manager = lab::manager(&mut sim, "h1");
    sim.settle(sim.now());
    while sim.receive(manager).is_some() {}
    let own = Remote::gsi(lid(&sim, "h1"));
    sim.submit(asker, &Datagram::new(own, query(Method::GET, 3)));
    let requests = received(&mut sim, manager);
    respond(&mut sim, manager, &requests[0]);
    assert_eq!(received(&mut sim, asker)[0].mad.transaction_id().0, 3);
    lab::check_settled(&sim);
}

#[test]
fn a_client_that_waits_for_too_much_is_told_at_once() {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let port = sim.first_end_port().unwrap();
    let told = ClientOptions { told_of_losses: true, ..ClientOptions::default() };
    let asker = sim.attach(port, told).unwrap();
    let manager = lab::manager(&mut sim, "h2");
    let remote = Remote::smi(lid(&sim, "h2"));
    let most = 65_536;
    for transaction in 0..=most {
        let what = (AttributeId::SM_INFO, 0);
        let mad = ib_wire::mad::smp::lid_request(Method::GET, TransactionId(transaction), what);
        sim.submit(asker, &Datagram::new(remote, mad));
        sim.settle(sim.now());
    }
    let Some(Incoming::Lost(lost)) = sim.receive(asker) else { panic!("the last one is lost") };
    assert_eq!(lost.mad.transaction_id(), TransactionId(most));
    assert!(sim.receive(asker).is_none());
    assert_eq!(sim.stats().lost["too_many_requests"], 1);
    // Every answer makes room for a question, and leaving for all.
    let first = received(&mut sim, manager)[0];
    respond(&mut sim, manager, &first);
    sim.settle(sim.now());
    assert_eq!(sim.outstanding(), most as usize - 1);
    sim.detach(asker);
    assert!((sim.outstanding() == 0) && (lab::handed(&sim) == 0));
}
