//! Complete message exchanges between two CMs, and their events.

use ib_types::Mtu;
use ib_wire::mad::cm::{ConnectPath, ReferencedMessage, RejectReason, Rep, Req};
use ib_wire::mad::sm::MtuCode;

use super::*;
use crate::connection::message;

#[test]
fn connection_is_established_and_disconnected() {
    let mut pair = Pair::new();
    let params = ConnectParams {
        private_data: b"hello".to_vec(),
        responder_resources: 3,
        initiator_depth: 4,
        srq: true,
        ..request(0x10)
    };
    let here = pair.here.connect(NOW, &params).unwrap();
    assert_eq!(pair.carry(NOW), ["REQ"]);
    let incoming = requested(&mut pair.there);
    assert_eq!((incoming.service_id, incoming.cma), (SERVICE, None));
    assert_eq!((&incoming.private_data[..6], incoming.private_data.len()), (&b"hello\0"[..], 92));
    // The REQ offers no ECE that identifies an HCA of ibfabric. Therefore the queue pair must also accept packets whose
    // ICRC can be checked only in part (`is_weak`).
    assert_eq!(
        (incoming.route, incoming.path),
        (route(2, 1), Route { is_weak: true, ..route(2, 1) })
    );
    assert_eq!((incoming.req.responder_resources, incoming.req.initiator_depth), (3, 4));
    assert_eq!((incoming.req.local_qpn, incoming.req.starting_psn), (qpn(0x10), psn(0x10 + 1000)));
    assert!(incoming.req.srq && !incoming.req.flow_control);

    let accepted = AcceptParams { private_data: b"welcome".to_vec(), ..acceptance(0x20) };
    pair.there.accept(NOW, incoming.id, &accepted).unwrap();
    assert_eq!(pair.carry(NOW), ["REP"]);
    let [CmEvent::Connected(connected)] = &events(&mut pair.here)[..] else { panic!() };
    assert_eq!(connected.id, here);
    assert_eq!((connected.rep.local_qpn, connected.rep.starting_psn), (qpn(0x20), psn(2032)));
    assert_eq!(connected.rep.failover_accepted, 0);
    assert_eq!(&connected.private_data[..8], b"welcome\0");
    pair.here.established(here, b"ready").unwrap();
    assert_eq!(pair.carry(NOW), ["RTU"]);
    let found = events(&mut pair.there);
    let [CmEvent::Established { id, private_data: Some(data) }] = &found[..] else { panic!() };
    assert_eq!((*id, &data[..6], data.len()), (incoming.id, &b"ready\0"[..], 224));

    pair.there.disconnect(NOW, incoming.id, b"bye").unwrap();
    assert_eq!(pair.carry(NOW), ["DREQ", "DREP"]);
    let found = events(&mut pair.here);
    let [CmEvent::Disconnected { id, cause: Cause::Remote, private_data }] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((*id, &private_data[..4]), (here, &b"bye\0"[..]));
    assert!(matches!(
        events(&mut pair.there)[..],
        [CmEvent::Disconnected { cause: Cause::Local, .. }]
    ));
    // Time-wait lasts for the ACK timeout of the REQ, whose exponent is 19 (2.1 s).
    for (cm, id) in [(&mut pair.here, here), (&mut pair.there, incoming.id)] {
        assert_eq!(cm.poll_timeout(), Some(NOW + timeout(19)));
        assert_eq!(run_out(cm).0, NOW + timeout(19));
        assert_eq!(events(cm), [CmEvent::TimeWaitExited { id }]);
        assert_eq!((cm.connections(), cm.connections.half_open()), (0, 0));
        assert!(cm.connections.has_empty_indices());
    }
}

#[test]
fn hca_connects_to_itself() {
    let mut cm = manager(1);
    cm.listen(SERVICE).unwrap();
    let carry = |cm: &mut Cm| {
        while let Some((_, mad)) = cm.poll_transmit() {
            assert!(cm.handle(NOW, &route(1, 1), &mad));
        }
    };
    let params = ConnectParams { route: route(1, 1), ..request(0x10) };
    let active = cm.connect(NOW, &params).unwrap();
    carry(&mut cm);
    let passive = requested(&mut cm).id;
    cm.accept(NOW, passive, &acceptance(0x20)).unwrap();
    carry(&mut cm);
    assert!(matches!(events(&mut cm)[..], [CmEvent::Connected(_)]));
    cm.established(active, b"").unwrap();
    carry(&mut cm);
    let states = [active, passive].map(|id| cm.state(id));
    assert_eq!(states, [Some(State::Established); 2]);
    cm.disconnect(NOW, active, b"").unwrap();
    cm.disconnect(NOW, passive, b"").unwrap();
    carry(&mut cm);
    assert_eq!([active, passive].map(|id| cm.state(id)), [Some(State::TimeWait); 2]);
    run_out(&mut cm);
    assert_eq!(cm.connections(), 0);
}

#[test]
fn simultaneous_disconnects_succeed() {
    let mut pair = Pair::new();
    let (here, there) = pair.connect(NOW);
    pair.here.disconnect(NOW, here, b"").unwrap();
    pair.there.disconnect(NOW, there, b"").unwrap();
    assert_eq!(pair.carry(NOW), ["DREQ", "DREQ", "DREP", "DREP"]);
    for cm in [&mut pair.here, &mut pair.there] {
        let found = events(cm);
        assert!(matches!(found[..], [CmEvent::Disconnected { cause: Cause::Remote, .. }]));
        assert_eq!(cm.counters().unknown, 0);
    }
}

#[test]
fn reject_delivers_reason_and_private_data() {
    let mut pair = Pair::new();
    let here = pair.here.connect(NOW, &request(0x10)).unwrap();
    pair.carry(NOW);
    let there = requested(&mut pair.there).id;
    pair.there.reject(NOW, there, RejectReason::CONSUMER, b"full").unwrap();
    pair.carry(NOW);
    let found = events(&mut pair.here);
    let [CmEvent::Rejected { id, message, reason, info, private_data }] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((*id, *message, *reason), (here, ReferencedMessage::REQ, RejectReason::CONSUMER));
    assert_eq!((info.len(), &private_data[..5], private_data.len()), (0, &b"full\0"[..], 148));
}

#[test]
fn request_for_an_unknown_service_is_rejected() {
    let mut pair = Pair::new();
    let params = ConnectParams { service_id: ServiceId(1), ..request(0x10) };
    pair.here.connect(NOW, &params).unwrap();
    assert_eq!(pair.carry(NOW), ["REQ", "REJ"]);
    let found = events(&mut pair.here);
    let [CmEvent::Rejected { reason, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!(*reason, RejectReason::INVALID_SERVICE_ID);
    assert_eq!((pair.there.connections(), pair.there.counters().refused), (0, 1));
}

/// Delivers a modified REQ. Returns the reason if the REQ is rejected.
fn changed(change: impl Fn(&mut Req)) -> Option<RejectReason> {
    let mut pair = Pair::new();
    pair.here.connect(NOW, &request(0x10)).unwrap();
    let mad = sent(&mut pair.here)[0];
    let mut req: Req = mad.attribute().unwrap();
    change(&mut req);
    pair.there.handle(NOW, &route(2, 1), &message(mad.transaction_id(), &req));
    pair.carry(NOW);
    match events(&mut pair.here).pop() {
        Some(CmEvent::Rejected { reason, .. }) => Some(reason),
        _ => None,
    }
}

#[test]
fn unsupported_transport_and_mtu_are_rejected() {
    use ib_wire::mad::cm::connect::TransportService;
    use ib_wire::mad::sm::MtuCode;

    assert_eq!(changed(|_| {}), None);
    let transport = |kind| move |req: &mut Req| req.transport = kind;
    assert_eq!(changed(transport(TransportService::UC)), None);
    let refused = Some(RejectReason::INVALID_TRANSPORT);
    assert_eq!(changed(transport(TransportService::RD)), refused);
    assert_eq!(changed(transport(TransportService::EXTENDED)), refused);
    for mtu in [0, 6, 15] {
        let refused = Some(RejectReason::INVALID_MTU);
        assert_eq!(changed(|req| req.path_mtu = MtuCode(mtu)), refused);
    }
}

#[test]
fn alternate_path_is_declined_in_the_rep() {
    let mut pair = Pair::new();
    pair.here.connect(NOW, &request(0x10)).unwrap();
    let mad = sent(&mut pair.here)[0];
    let mut req: Req = mad.attribute().unwrap();
    req.alternate_path = ConnectPath { local_lid: 5, ..ConnectPath::zeroed() };
    pair.there.handle(NOW, &route(2, 1), &message(mad.transaction_id(), &req));
    let id = requested(&mut pair.there).id;
    pair.there.accept(NOW, id, &acceptance(0x20)).unwrap();
    let rep: Rep = sent(&mut pair.there)[0].attribute().unwrap();
    assert_eq!(rep.failover_accepted, 1);
}

#[test]
fn reused_qp_of_the_active_side_makes_connection_stale() {
    let mut pair = Pair::new();
    let (_, there) = pair.connect(NOW);
    // The peer restarts: it has another seed, but the same HCA and queue pair.
    pair.here = Cm::new(config(1), [77; 32]);
    let id = pair.here.connect(NOW, &request(0x10)).unwrap();
    assert_eq!(pair.carry(NOW), ["REQ", "REJ", "DREQ", "DREP"]);
    let found = events(&mut pair.here);
    let [CmEvent::Rejected { id: rejected, reason, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((*rejected, *reason), (id, RejectReason::STALE_CONNECTION));
    let found = events(&mut pair.there);
    let [CmEvent::Disconnected { id, cause: Cause::Stale, .. }] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(*id, there);
    // The next attempt to connect succeeds.
    pair.connect(NOW);
}

#[test]
fn other_addresses_cannot_make_a_connection_stale() {
    let mut pair = Pair::new();
    let (_, there) = pair.connect(NOW);
    // A third party at another address claims the queue pair.
    let mut stranger = Cm::new(config(1), [77; 32]);
    let elsewhere = Route { destination: Gid(0xbad), dlid: 99, ..route(2, 1) };
    for service_id in [request(0x10).service_id, ServiceId(0x99)] {
        stranger.connect(NOW, &ConnectParams { service_id, ..request(0x10) }).unwrap();
        for mad in sent(&mut stranger) {
            pair.there.handle(NOW, &elsewhere, &mad);
        }
        let answers = sent(&mut pair.there);
        assert!(answers.iter().all(|mad| mad.attribute_id() == AttributeId::CM_REJ));
        assert!(events(&mut pair.there).is_empty());
        assert_eq!(pair.there.state(there), Some(State::Established));
    }
}

#[test]
fn reused_qp_of_the_passive_side_makes_connection_stale() {
    let mut pair = Pair::new();
    let (old, _) = pair.connect(NOW);
    pair.there = Cm::new(config(2), [77; 32]);
    pair.there.listen(SERVICE).unwrap();
    let id = pair.here.connect(NOW, &request(0x11)).unwrap();
    pair.carry(NOW);
    let there = requested(&mut pair.there).id;
    pair.there.accept(NOW, there, &acceptance(0x20)).unwrap();
    assert_eq!(pair.carry(NOW), ["REP", "REJ", "DREQ", "DREP"]);
    let found = events(&mut pair.here);
    assert!(matches!(
        found[..],
        [
            CmEvent::Disconnected { id: first, cause: Cause::Stale, .. },
            CmEvent::Failed { id: second, why: Failure::Stale },
        ] if first == old && second == id
    ));
    let found = events(&mut pair.there);
    assert!(matches!(
        found[..],
        [CmEvent::Rejected { reason: RejectReason::STALE_CONNECTION, .. }]
    ));
}

#[test]
fn req_without_response_is_sent_sixteen_times() {
    let mut cm = manager(1);
    let id = cm.connect(NOW, &request(0x10)).unwrap();
    let interval = config(1).interval();
    assert_eq!(cm.poll_timeout(), Some(NOW + interval));
    let (_, all) = run_out(&mut cm);
    assert_eq!(names(&all[..16]), ["REQ"; 16]);
    assert_eq!(names(&all[16..]), ["REJ"]);
    assert_eq!(
        events(&mut cm),
        [CmEvent::Failed { id, why: Failure::Unreachable }, CmEvent::TimeWaitExited { id }]
    );
    assert_eq!(cm.counters().resent, 15);
}

#[test]
fn rep_is_retransmitted_as_the_req_specifies() {
    let settings = CmConfig { response_timeout: 17, retries: 3, ..config(1) };
    let mut pair = Pair::new();
    pair.here = Cm::new(settings, [1; 32]);
    pair.here.connect(NOW, &request(0x10)).unwrap();
    pair.carry(NOW);
    let id = requested(&mut pair.there).id;
    pair.there.accept(NOW, id, &acceptance(0x20)).unwrap();
    let mut at = Vec::new();
    while pair.there.state(id) == Some(State::RepSent) {
        let due = pair.there.poll_timeout().unwrap();
        at.push((due - NOW).as_millis());
        pair.there.handle_timeout(due);
    }
    // The CM retransmits three times before it gives up.
    assert_eq!(at, [536, 1073, 1610, 2147]);
    assert_eq!(names(&sent(&mut pair.there)), ["REP", "REP", "REP", "REP", "REJ"]);
    let found = events(&mut pair.there);
    assert_eq!(found, [CmEvent::Failed { id, why: Failure::Unreachable }]);
}

#[test]
fn repeated_rep_is_answered_by_the_same_rtu() {
    let mut pair = Pair::new();
    let here = pair.here.connect(NOW, &request(0x10)).unwrap();
    pair.carry(NOW);
    let there = requested(&mut pair.there).id;
    pair.there.accept(NOW, there, &acceptance(0x20)).unwrap();
    let rep = sent(&mut pair.there)[0];
    pair.here.handle(NOW, &route(1, 2), &rep);
    pair.here.established(here, b"ready").unwrap();
    let first = sent(&mut pair.here);
    assert_eq!(names(&first), ["RTU"]);
    for _ in 0..3 {
        pair.here.handle(NOW, &route(1, 2), &rep);
        assert_eq!(sent(&mut pair.here), first);
    }
}

#[test]
fn mra_extends_the_timeout_once_per_transmission() {
    let mut pair = Pair::new();
    let id = pair.here.connect(NOW, &request(0x10)).unwrap();
    pair.carry(NOW);
    let there = requested(&mut pair.there).id;
    pair.there.mra(NOW, there, 20, b"a moment").unwrap();
    let mra = sent(&mut pair.there)[0];
    pair.here.handle(NOW, &route(1, 2), &mra);
    let until = NOW + timeout(20) + 2 * timeout(14);
    assert_eq!(pair.here.poll_timeout(), Some(until));
    // A duplicate MRA does not extend the timeout again.
    pair.here.handle(NOW + Duration::from_secs(3), &route(1, 2), &mra);
    assert_eq!(pair.here.poll_timeout(), Some(until));
    pair.here.handle_timeout(until);
    assert_eq!(names(&sent(&mut pair.here)), ["REQ"]);
    pair.here.handle(until, &route(1, 2), &mra);
    assert_eq!(pair.here.poll_timeout(), Some(until + timeout(20) + 2 * timeout(14)));
    assert_eq!(pair.here.state(id), Some(State::ReqSent));
    // The consumer timeout is the longer one of the configured timeout and the timeout of the MRA.
    assert_eq!(pair.there.poll_timeout(), Some(NOW + Duration::from_secs(60)));
    pair.there.mra(NOW, there, 31, b"").unwrap();
    assert_eq!(pair.there.poll_timeout(), Some(NOW + timeout(24)));
}

#[test]
fn late_rep_of_a_cancelled_req_is_rejected() {
    let mut pair = Pair::new();
    let here = pair.here.connect(NOW, &request(0x10)).unwrap();
    pair.carry(NOW);
    let there = requested(&mut pair.there).id;
    pair.here.close(NOW, here).unwrap();
    // The REJ is not delivered to the peer.
    assert_eq!(names(&sent(&mut pair.here)), ["REJ"]);
    pair.there.accept(NOW, there, &acceptance(0x20)).unwrap();
    assert_eq!(pair.carry(NOW), ["REP", "REJ"]);
    let found = events(&mut pair.there);
    let [CmEvent::Rejected { id, reason, info, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((*id, *reason), (there, RejectReason::TIMEOUT));
    assert_eq!(info[..], [0, 0, 0, 0, 0, 0, 0, 1]);
}

const ECE: Ece = Ece { vendor_id: 0x02_69_62, options: 1 };

/// Creates a CM. If `ece` is given, the CM offers this enhanced connection establishment (ECE).
fn offering(guid: u8, ece: Option<Ece>) -> Cm {
    let mut cm = Cm::new(CmConfig { ece, ..config(guid) }, [guid; 32]);
    cm.listen(SERVICE).unwrap();
    cm
}

#[test]
fn paths_are_weak_unless_both_ends_offer_the_same_ece() {
    let other = Ece { vendor_id: 0x04_69_62, ..ECE };
    for (offers, is_weak) in [
        ([Some(ECE), Some(ECE)], false),
        ([Some(ECE), None], true),
        ([None, Some(ECE)], true),
        ([None, None], true),
        ([Some(ECE), Some(other)], true),
        ([Some(ECE), Some(Ece { options: 2, ..ECE })], true),
    ] {
        let mut pair = Pair { here: offering(1, offers[0]), there: offering(2, offers[1]) };
        let id = pair.here.connect(NOW, &request(17)).unwrap();
        pair.carry(NOW);
        let found = events(&mut pair.there);
        let [CmEvent::Requested(requested)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(requested.path.is_weak, is_weak, "{offers:?}");
        pair.there.accept(NOW, requested.id, &acceptance(18)).unwrap();
        pair.carry(NOW);
        let found = events(&mut pair.here);
        let [CmEvent::Connected(connected)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(connected.path, Route { is_weak, ..route(1, 2) }, "{offers:?}");
        assert_eq!(
            connected.rep.vendor_id(),
            if is_weak { 0 } else { ECE.vendor_id },
            "{offers:?}"
        );
        pair.here.established(id, b"").unwrap();
        assert_eq!(pair.carry(NOW), ["RTU"]);
    }
}

#[test]
fn rep_with_only_the_vendor_id_leaves_the_path_weak() {
    let mut pair = Pair { here: offering(1, Some(ECE)), there: offering(2, None) };
    pair.here.connect(NOW, &request(17)).unwrap();
    pair.carry(NOW);
    let found = events(&mut pair.there);
    let [CmEvent::Requested(requested)] = &found[..] else { panic!("{found:?}") };
    pair.there.accept(NOW, requested.id, &acceptance(18)).unwrap();
    let [mut mad] = sent(&mut pair.there)[..] else { panic!("expected a REP") };
    let mut rep = mad.attribute::<Rep>().unwrap();
    rep.set_vendor_id(ECE.vendor_id);
    mad.set_attribute(&rep);
    pair.here.handle(NOW, &Route { is_weak: true, ..route(1, 2) }, &mad);
    let found = events(&mut pair.here);
    let [CmEvent::Connected(connected)] = &found[..] else { panic!("{found:?}") };
    assert!(connected.path.is_weak);
}

#[test]
fn weak_messages_of_the_own_vendor_are_dropped() {
    let weak = |from, to| Route { is_weak: true, ..route(from, to) };
    let (mut here, mut there) = (offering(1, Some(ECE)), offering(2, Some(ECE)));
    let id = here.connect(NOW, &request(17)).unwrap();
    let req = sent(&mut here)[0];
    there.handle(NOW, &weak(2, 1), &req);
    assert!(events(&mut there).is_empty());
    there.handle(NOW, &route(2, 1), &req);
    let found = events(&mut there);
    let [CmEvent::Requested(requested)] = &found[..] else { panic!("{found:?}") };
    there.accept(NOW, requested.id, &acceptance(18)).unwrap();
    let rep = sent(&mut there)[0];
    here.handle(NOW, &weak(1, 2), &rep);
    assert!(events(&mut here).is_empty());
    here.handle(NOW, &route(1, 2), &rep);
    assert!(matches!(events(&mut here)[..], [CmEvent::Connected(_)]));
    here.established(id, b"").unwrap();
    here.disconnect(NOW, id, b"").unwrap();
    let [rtu, dreq] = sent(&mut here)[..] else { panic!("expected an RTU and a DREQ") };
    for message in [rtu, dreq] {
        there.handle(NOW, &weak(2, 1), &message);
        assert!(events(&mut there).is_empty());
    }
    assert_eq!((there.counters().malformed, here.counters().malformed), (3, 1));
    there.handle(NOW, &route(2, 1), &rtu);
    assert!(matches!(events(&mut there)[..], [CmEvent::Established { .. }]));
}

#[test]
fn refusal_of_the_path_mtu_names_the_largest_one() {
    let mut pair = Pair::new();
    pair.here.connect(NOW, &request(17)).unwrap();
    pair.carry(NOW);
    let found = events(&mut pair.there);
    let [CmEvent::Requested(requested)] = &found[..] else { panic!("{found:?}") };
    pair.there.reject_mtu(NOW, requested.id, MtuCode::MTU_512).unwrap();
    assert_eq!(pair.carry(NOW), ["REJ"]);
    let found = events(&mut pair.here);
    let [CmEvent::Rejected { reason, info, .. }, ..] = &found[..] else { panic!("{found:?}") };
    assert_eq!((*reason, info[0]), (RejectReason::INVALID_MTU, 0x20));
    assert_eq!(accepted_mtu(*reason, info), Some(Mtu::B512));
    assert_eq!(accepted_mtu(*reason, &[3]), Some(Mtu::B1024));
    assert_eq!(accepted_mtu(*reason, &[]), None);
    assert_eq!(accepted_mtu(RejectReason::CONSUMER, info), None);
}
