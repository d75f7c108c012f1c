//! Services of datagrams.

use ib_types::QKey;
use ib_wire::mad::cm::{SidrReq, SidrStatus};

use super::*;

fn question() -> SidrParams {
    SidrParams {
        route: route(1, 2),
        service_id: SERVICE,
        p_key: PKey::DEFAULT,
        cma: None,
        private_data: b"who".to_vec(),
    }
}

fn answer() -> SidrAnswer {
    SidrAnswer {
        status: SidrStatus::VALID,
        qpn: qpn(0x42),
        q_key: QKey(0x0123_4567),
        private_data: b"me".to_vec(),
    }
}

fn asked(cm: &mut Cm) -> SidrRequested {
    match cm.poll_event() {
        Some(CmEvent::SidrRequested(asked)) => *asked,
        other => panic!("a question, not {other:?}"),
    }
}

fn resolved(cm: &mut Cm) -> SidrResolved {
    match cm.poll_event() {
        Some(CmEvent::SidrResolved(resolved)) => *resolved,
        other => panic!("an answer, not {other:?}"),
    }
}

#[test]
fn a_question_is_answered() {
    let mut pair = Pair::new();
    let id = pair.here.resolve(NOW, &question()).unwrap();
    let req = sent(&mut pair.here)[0];
    assert!(req.attribute::<SidrReq>().is_some());
    pair.there.handle(NOW, &route(2, 1), &req);
    let heard = asked(&mut pair.there);
    assert_eq!((heard.service_id, heard.p_key, heard.route), (SERVICE, PKey::DEFAULT, route(2, 1)));
    assert_eq!((&heard.private_data[..4], heard.private_data.len()), (&b"who\0"[..], 216));
    // While the consumer thinks, the question that comes again has no answer.
    pair.there.handle(NOW, &route(2, 1), &req);
    assert_eq!((sent(&mut pair.there).len(), events(&mut pair.there).len()), (0, 0));
    pair.there.sidr_answer(NOW, heard.id, &answer()).unwrap();
    let first = sent(&mut pair.there);
    // Afterwards it has the same one.
    pair.there.handle(NOW, &route(2, 1), &req);
    assert_eq!(sent(&mut pair.there), first);
    assert_eq!(first[0].transaction_id(), req.transaction_id());
    pair.here.handle(NOW, &route(1, 2), &first[0]);
    let told = resolved(&mut pair.here);
    assert_eq!((told.id, told.status), (id, SidrStatus::VALID));
    assert_eq!((told.qpn, told.q_key), (qpn(0x42), QKey(0x0123_4567)));
    assert_eq!((&told.private_data[..3], told.private_data.len()), (&b"me\0"[..], 136));
    // It is told once.
    pair.here.handle(NOW, &route(1, 2), &first[0]);
    assert_eq!((pair.here.poll_event(), pair.here.counters().unknown), (None, 1));
    let again = pair.there.sidr_answer(NOW, heard.id, &answer());
    assert_eq!(again, Err(CmError::UnknownQuestion { call: "sidr_answer" }));
    run_out(&mut pair.there);
    assert_eq!((pair.here.questions(), pair.there.questions()), (0, 0));
    assert_eq!(pair.here.poll_timeout(), None);
}

#[test]
fn questions_that_have_no_answer() {
    let mut pair = Pair::new();
    let params = SidrParams { service_id: ServiceId(1), ..question() };
    pair.here.resolve(NOW, &params).unwrap();
    pair.carry(NOW);
    assert_eq!(resolved(&mut pair.here).status, SidrStatus::INVALID_SERVICE_ID);

    pair.here.resolve(NOW, &question()).unwrap();
    pair.carry(NOW);
    let heard = asked(&mut pair.there);
    pair.there.sidr_reject(NOW, heard.id, SidrStatus::REJECTED).unwrap();
    pair.carry(NOW);
    assert_eq!(resolved(&mut pair.here).status, SidrStatus::REJECTED);

    // A silent consumer.
    let settings = CmConfig { consumer_timeout: Duration::from_millis(100), ..config(2) };
    pair.there = Cm::new(settings, [3; 32]);
    pair.there.listen(SERVICE).unwrap();
    pair.here.resolve(NOW, &question()).unwrap();
    pair.carry(NOW);
    let heard = asked(&mut pair.there);
    pair.there.handle_timeout(NOW + Duration::from_millis(100));
    pair.carry(NOW);
    assert_eq!(resolved(&mut pair.here).status, SidrStatus::REJECTED);
    assert!(pair.there.sidr_answer(NOW, heard.id, &answer()).is_err());

    // A silent peer.
    let id = pair.here.resolve(NOW, &question()).unwrap();
    let (_, all) = run_out(&mut pair.here);
    assert_eq!(names(&all), ["SIDR_REQ"; 16]);
    assert_eq!(events(&mut pair.here), [CmEvent::SidrFailed { id }]);
    assert_eq!(pair.here.questions(), 0);
}

#[test]
fn ports_of_rdma_cm() {
    let mut pair = Pair::new();
    let listener = pair.there.listen_cm(PortSpace::UDP, 7).unwrap();
    let addresses = CmaHeader {
        source: "10.0.0.1:5".parse().unwrap(),
        destination: "10.0.0.2".parse().unwrap(),
    };
    let service_id = ServiceId::port(PortSpace::UDP, 7);
    assert_eq!(service_id.to_string(), "0x0000000001110007");
    let params = SidrParams { service_id, cma: Some(addresses), ..question() };
    pair.here.resolve(NOW, &params).unwrap();
    pair.carry(NOW);
    let heard = asked(&mut pair.there);
    assert_eq!((heard.cma, heard.listener), (Some(addresses), listener));
    assert_eq!((&heard.private_data[..4], heard.private_data.len()), (&b"who\0"[..], 180));
    // Without the header it is refused.
    pair.here.resolve(NOW, &SidrParams { cma: None, ..params }).unwrap();
    pair.carry(NOW);
    assert_eq!(resolved(&mut pair.here).status, SidrStatus::REJECTED);
    assert!(pair.there.unlisten(listener));
    assert!(!pair.there.unlisten(listener));
}

#[test]
fn questions_are_bounded() {
    let mut pair = Pair::new();
    pair.there = Cm::new(CmConfig { max_sidr: 2, ..config(2) }, [2; 32]);
    pair.there.listen(SERVICE).unwrap();
    for _ in 0..3 {
        pair.here.resolve(NOW, &question()).unwrap();
    }
    pair.carry(NOW);
    assert_eq!(pair.there.questions(), 2);
    assert_eq!(resolved(&mut pair.here).status, SidrStatus::NO_QP);
    pair.there.resolve(NOW, &question()).unwrap();
    pair.there.resolve(NOW, &question()).unwrap();
    let full = CmError::Full { what: "questions for services", limit: 2 };
    assert_eq!(pair.there.resolve(NOW, &question()), Err(full));
}
