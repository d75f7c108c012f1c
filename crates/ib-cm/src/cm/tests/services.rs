//! Tests of service ID resolution (SIDR) for UD services.

use ib_types::QKey;
use ib_wire::mad::cm::{SidrReq, SidrStatus};

use super::*;

fn sidr_params() -> SidrParams {
    SidrParams {
        route: route(1, 2),
        service_id: SERVICE,
        p_key: PKey::DEFAULT,
        cma: None,
        private_data: b"who".to_vec(),
    }
}

fn sidr_response() -> SidrReply {
    SidrReply {
        status: SidrStatus::VALID,
        qpn: qpn(0x42),
        q_key: QKey(0x0123_4567),
        private_data: b"me".to_vec(),
    }
}

fn sidr_requested(cm: &mut Cm) -> SidrRequested {
    match cm.poll_event() {
        Some(CmEvent::SidrRequested(requested)) => *requested,
        other => panic!("found {other:?}, expected a SIDR request"),
    }
}

fn resolved(cm: &mut Cm) -> SidrResolved {
    match cm.poll_event() {
        Some(CmEvent::SidrResolved(resolved)) => *resolved,
        other => panic!("found {other:?}, expected a SIDR response"),
    }
}

#[test]
fn sidr_request_is_answered_once() {
    let mut pair = Pair::new();
    let id = pair.here.resolve(NOW, &sidr_params()).unwrap();
    let req = sent(&mut pair.here)[0];
    assert!(req.attribute::<SidrReq>().is_some());
    pair.there.handle(NOW, &route(2, 1), &req);
    let incoming = sidr_requested(&mut pair.there);
    assert_eq!(
        (incoming.service_id, incoming.p_key, incoming.route),
        (SERVICE, PKey::DEFAULT, route(2, 1))
    );
    assert_eq!((&incoming.private_data[..4], incoming.private_data.len()), (&b"who\0"[..], 216));
    // If the peer repeats its SIDR_REQ before the consumer has responded, the CM sends no response.
    pair.there.handle(NOW, &route(2, 1), &req);
    assert_eq!((sent(&mut pair.there).len(), events(&mut pair.there).len()), (0, 0));
    pair.there.sidr_reply(NOW, incoming.id, &sidr_response()).unwrap();
    let first = sent(&mut pair.there);
    // If the peer repeats its SIDR_REQ after the response, the CM sends the same response again.
    pair.there.handle(NOW, &route(2, 1), &req);
    assert_eq!(sent(&mut pair.there), first);
    assert_eq!(first[0].transaction_id(), req.transaction_id());
    pair.here.handle(NOW, &route(1, 2), &first[0]);
    let response = resolved(&mut pair.here);
    assert_eq!((response.id, response.status), (id, SidrStatus::VALID));
    assert_eq!((response.qpn, response.q_key), (qpn(0x42), QKey(0x0123_4567)));
    assert_eq!((&response.private_data[..3], response.private_data.len()), (&b"me\0"[..], 136));
    // The CM ignores a duplicate response to its SIDR_REQ.
    pair.here.handle(NOW, &route(1, 2), &first[0]);
    assert_eq!((pair.here.poll_event(), pair.here.counters().unknown), (None, 1));
    let again = pair.there.sidr_reply(NOW, incoming.id, &sidr_response());
    assert_eq!(again, Err(CmError::UnknownSidrRequest { call: "sidr_reply" }));
    run_out(&mut pair.there);
    assert_eq!((pair.here.sidr_requests(), pair.there.sidr_requests()), (0, 0));
    assert_eq!(pair.here.poll_timeout(), None);
}

#[test]
fn sidr_requests_are_rejected_or_fail() {
    let mut pair = Pair::new();
    let params = SidrParams { service_id: ServiceId(1), ..sidr_params() };
    pair.here.resolve(NOW, &params).unwrap();
    pair.carry(NOW);
    assert_eq!(resolved(&mut pair.here).status, SidrStatus::INVALID_SERVICE_ID);

    pair.here.resolve(NOW, &sidr_params()).unwrap();
    pair.carry(NOW);
    let incoming = sidr_requested(&mut pair.there);
    pair.there.sidr_reject(NOW, incoming.id, SidrStatus::REJECTED).unwrap();
    pair.carry(NOW);
    assert_eq!(resolved(&mut pair.here).status, SidrStatus::REJECTED);

    // If the consumer does not respond, the CM rejects the SIDR request.
    let settings = CmConfig { consumer_timeout: Duration::from_millis(100), ..config(2) };
    pair.there = Cm::new(settings, [3; 32]);
    pair.there.listen(SERVICE).unwrap();
    pair.here.resolve(NOW, &sidr_params()).unwrap();
    pair.carry(NOW);
    let incoming = sidr_requested(&mut pair.there);
    pair.there.handle_timeout(NOW + Duration::from_millis(100));
    pair.carry(NOW);
    assert_eq!(resolved(&mut pair.here).status, SidrStatus::REJECTED);
    assert!(pair.there.sidr_reply(NOW, incoming.id, &sidr_response()).is_err());

    // If the peer does not respond, the SIDR request fails.
    let id = pair.here.resolve(NOW, &sidr_params()).unwrap();
    let (_, all) = run_out(&mut pair.here);
    assert_eq!(names(&all), ["SIDR_REQ"; 16]);
    assert_eq!(events(&mut pair.here), [CmEvent::SidrFailed { id }]);
    assert_eq!(pair.here.sidr_requests(), 0);
}

#[test]
fn sidr_listener_of_rdma_cm_requires_the_header() {
    let mut pair = Pair::new();
    let listener = pair.there.listen_cm(PortSpace::UDP, 7).unwrap();
    let addresses = CmaHeader {
        source: "10.0.0.1:5".parse().unwrap(),
        destination: "10.0.0.2".parse().unwrap(),
    };
    let service_id = ServiceId::port(PortSpace::UDP, 7);
    assert_eq!(service_id.to_string(), "0x0000000001110007");
    let params = SidrParams { service_id, cma: Some(addresses), ..sidr_params() };
    pair.here.resolve(NOW, &params).unwrap();
    pair.carry(NOW);
    let incoming = sidr_requested(&mut pair.there);
    assert_eq!((incoming.cma, incoming.listener), (Some(addresses), listener));
    assert_eq!((&incoming.private_data[..4], incoming.private_data.len()), (&b"who\0"[..], 180));
    // A request without the `rdma_cm` header is rejected.
    pair.here.resolve(NOW, &SidrParams { cma: None, ..params }).unwrap();
    pair.carry(NOW);
    assert_eq!(resolved(&mut pair.here).status, SidrStatus::REJECTED);
    assert!(pair.there.unlisten(listener));
    assert!(!pair.there.unlisten(listener));
}

#[test]
fn number_of_sidr_requests_is_limited() {
    let mut pair = Pair::new();
    pair.there = Cm::new(CmConfig { max_sidr: 2, ..config(2) }, [2; 32]);
    pair.there.listen(SERVICE).unwrap();
    for _ in 0..3 {
        pair.here.resolve(NOW, &sidr_params()).unwrap();
    }
    pair.carry(NOW);
    assert_eq!(pair.there.sidr_requests(), 2);
    assert_eq!(resolved(&mut pair.here).status, SidrStatus::NO_QP);
    pair.there.resolve(NOW, &sidr_params()).unwrap();
    pair.there.resolve(NOW, &sidr_params()).unwrap();
    let full = CmError::Full { what: "SIDR requests", limit: 2 };
    assert_eq!(pair.there.resolve(NOW, &sidr_params()), Err(full));
}
