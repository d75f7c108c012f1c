//! Tests of invalid calls, of full tables and queues, and of the protection against floods.

use ib_wire::mad::TransactionId;
use ib_wire::mad::cm::{RejectReason, Rtu};

use super::*;
use crate::connection::message;

#[test]
fn errors_name_call_and_object() {
    let mut cm = manager(1);
    let id = ConnectionId(0xab);
    let unknown = CmError::UnknownConnection { call: "close", id };
    assert_eq!(cm.close(NOW, id), Err(unknown));
    let id = cm.connect(NOW, &request(0x10)).unwrap();
    let wrong = CmError::WrongState { call: "disconnect", id, state: State::ReqSent };
    assert_eq!(cm.disconnect(NOW, id, b""), Err(wrong));
    let too_long = |length, limit| CmError::PrivateDataTooLong { message: "REQ", length, limit };
    let params = ConnectParams { private_data: vec![0; 93], ..request(0x10) };
    assert_eq!(cm.connect(NOW, &params), Err(too_long(93, 92)));
    let addresses = CmaHeader {
        source: "10.0.0.1:5".parse().unwrap(),
        destination: "10.0.0.2".parse().unwrap(),
    };
    let params = ConnectParams { private_data: vec![0; 57], cma: Some(addresses), ..request(0x10) };
    assert_eq!(cm.connect(NOW, &params), Err(too_long(57, 56)));
    let mixed = CmaHeader { destination: "::1".parse().unwrap(), ..addresses };
    let params = ConnectParams { cma: Some(mixed), ..request(0x10) };
    assert_eq!(cm.connect(NOW, &params), Err(CmError::MixedFamilies));
    let params = ConnectParams { retry_count: 8, ..request(0x10) };
    let error = cm.connect(NOW, &params).unwrap_err();
    assert!(matches!(error, CmError::OutOfRange { value: 8, least: 0, most: 7, .. }), "{error}");
    cm.listen(SERVICE).unwrap();
    assert_eq!(cm.listen(SERVICE), Err(CmError::ServiceInUse { service: SERVICE }));
    assert_eq!(cm.connections(), 1);
}

#[test]
fn parameters_out_of_range_are_rejected() {
    let mut cm = manager(1);
    let good = request(0x10);
    let far = Route { flow_label: 1 << 20, ..good.route };
    let bad = [
        ConnectParams { rnr_retry_count: 8, ..good.clone() },
        ConnectParams { local_ack_timeout: 32, ..good.clone() },
        ConnectParams { qpn: Qpn::GSI, ..good.clone() },
        ConnectParams { qpn: Qpn::MULTICAST, ..good.clone() },
        ConnectParams { path_mtu: ib_wire::mad::sm::MtuCode(6), ..good.clone() },
        ConnectParams { rate: ib_wire::mad::sa::RateCode(64), ..good.clone() },
        ConnectParams { route: far, ..good.clone() },
        ConnectParams {
            transport: ib_wire::mad::cm::connect::TransportService::RD,
            ..good.clone()
        },
    ];
    for params in bad {
        assert!(matches!(cm.connect(NOW, &params), Err(CmError::OutOfRange { .. })));
    }
    assert!(cm.connect(NOW, &good).is_ok());
    // If configuration values exceed the range of their fields, the maximum is used.
    let config = CmConfig { retries: 200, response_timeout: 99, ..config(1) };
    let mut cm = Cm::new(config, [0; 32]);
    cm.connect(NOW, &good).unwrap();
    let req: ib_wire::mad::cm::Req = sent(&mut cm)[0].attribute().unwrap();
    assert_eq!((req.max_cm_retries, req.local_cm_response_timeout), (15, 31));
}

#[test]
fn number_of_connections_is_limited() {
    let mut cm = Cm::new(CmConfig { max_connections: 2, ..config(1) }, [1; 32]);
    cm.connect(NOW, &request(0x10)).unwrap();
    cm.connect(NOW, &request(0x11)).unwrap();
    let error = cm.connect(NOW, &request(0x12)).unwrap_err();
    assert_eq!(error, CmError::Full { what: "connections", limit: 2 });
    run_out(&mut cm);
    assert!(cm.connect(NOW, &request(0x12)).is_ok());
}

#[test]
fn number_of_half_open_requests_is_limited() {
    let mut pair = Pair::new();
    pair.there = Cm::new(CmConfig { max_half_open: 4, ..config(2) }, [2; 32]);
    pair.there.listen(SERVICE).unwrap();
    let mut ids = Vec::new();
    for number in 0..10 {
        ids.push(pair.here.connect(NOW, &request(0x10 + number)).unwrap());
    }
    pair.carry(NOW);
    assert_eq!((pair.there.connections(), pair.there.connections.half_open()), (4, 4));
    let found = events(&mut pair.here);
    assert_eq!(found.len(), 6);
    for event in found {
        assert!(matches!(event, CmEvent::Rejected { reason: RejectReason::NO_RESOURCES, .. }));
    }
    // A rejected REQ no longer counts as half-open, so the CM accepts another one.
    let id = requested(&mut pair.there).id;
    pair.there.reject(NOW, id, RejectReason::CONSUMER, b"").unwrap();
    pair.here.connect(NOW, &request(0x30)).unwrap();
    pair.carry(NOW);
    assert_eq!(pair.there.connections.half_open(), 4);
}

/// Tests all sequences of seven events. An event is a REQ from one of three addresses, or the RTU of the
/// oldest half-open connection.
#[test]
fn address_with_most_half_open_connections_yields() {
    for sequence in 0..4_u32.pow(7) {
        let mut cm = Cm::new(CmConfig { max_half_open: 3, ..config(9) }, [9; 32]);
        cm.listen(SERVICE).unwrap();
        let mut peers = [1, 2, 3].map(manager);
        let mut half_open: Vec<(usize, ConnectionId)> = Vec::new();
        let mut evicted = 0;
        for step in 0..7 {
            let peer = (sequence >> (2 * step)) as usize % 4;
            let way = |peer: usize| route(9, peer as u8 + 1);
            if peer == 3 {
                if half_open.is_empty() {
                    continue;
                }
                let (peer, id) = half_open.remove(0);
                let remote_comm_id = id.get();
                let local_comm_id = cm.connections.get(id).unwrap().remote.unwrap().comm_id;
                let rtu = Rtu { local_comm_id, remote_comm_id, ..Rtu::zeroed() };
                cm.handle(NOW, &way(peer), &message(TransactionId(1), &rtu));
                assert!(matches!(events(&mut cm)[..], [CmEvent::Established { .. }]));
                continue;
            }
            peers[peer].connect(NOW, &request(0x10 + step)).unwrap();
            let req = sent(&mut peers[peer])[0];
            cm.handle(NOW, &way(peer), &req);
            if half_open.len() == 3 {
                // The CM ends the oldest half-open connection of the address with the most such connections. If several
                // addresses have equally many, it ends the oldest connection of all these addresses.
                let count = |of| half_open.iter().filter(|(it, _)| *it == of).count();
                let most = [0, 1, 2].map(count).into_iter().max().unwrap();
                let oldest = half_open.iter().position(|(it, _)| count(*it) == most).unwrap();
                let (_, id) = half_open.remove(oldest);
                let failed = CmEvent::Failed { id, why: Failure::Evicted };
                assert_eq!(cm.poll_event(), Some(failed));
                assert_eq!(cm.poll_event(), Some(CmEvent::TimeWaitExited { id }));
                assert_eq!(cm.state(id), None);
                evicted += 1;
            }
            let id = requested(&mut cm).id;
            cm.accept(NOW, id, &acceptance(0x20 + step)).unwrap();
            half_open.push((peer, id));
            let waiting: Vec<ConnectionId> = half_open.iter().map(|(_, id)| *id).collect();
            let mut found: Vec<_> = cm.connections.awaiting_rtu().collect();
            found.sort_unstable();
            assert_eq!(found.into_iter().map(|(_, id)| id).collect::<Vec<_>>(), waiting);
            assert_eq!(cm.connections.half_open(), waiting.len());
        }
        assert_eq!((cm.counters().evicted, cm.counters().refused), (evicted, 0));
    }
}

/// While another address floods the CM with requests, a peer can still connect.
#[test]
fn half_open_flood_does_not_shut_out_other_addresses() {
    let mut pair = Pair::new();
    let mut flooder = manager(3);
    let mut flood = |there: &mut Cm, number: u32| {
        flooder.connect(NOW, &request(0x100 + number)).unwrap();
        let req = sent(&mut flooder)[0];
        there.handle(NOW, &route(2, 3), &req);
        let id = std::iter::from_fn(|| there.poll_event()).find_map(|event| match event {
            CmEvent::Requested(requested) => Some(requested.id),
            _ => None,
        });
        there.accept(NOW, id.expect("the CM reports a REQ"), &acceptance(0x100 + number)).unwrap();
        sent(there);
    };
    (0..2000).for_each(|number| flood(&mut pair.there, number));
    let here = pair.here.connect(NOW, &request(0x10)).unwrap();
    let req = sent(&mut pair.here)[0];
    pair.there.handle(NOW, &route(2, 1), &req);
    let requested = std::iter::from_fn(|| pair.there.poll_event()).find_map(|event| match event {
        CmEvent::Requested(requested) => Some(requested.id),
        _ => None,
    });
    let there = requested.expect("the CM reports a REQ");
    pair.there.accept(NOW, there, &acceptance(0x20)).unwrap();
    let rep = sent(&mut pair.there).pop().expect("the CM sends a REP");
    (2000..3000).for_each(|number| flood(&mut pair.there, number));
    pair.here.handle(NOW, &route(1, 2), &rep);
    pair.here.established(here, b"").unwrap();
    pair.carry(NOW);
    assert_eq!(pair.there.state(there), Some(State::Established));
    // Evicted connections are removed from the table.
    assert_eq!((pair.there.connections.half_open(), pair.there.connections()), (1023, 1024));
}

#[test]
fn queue_of_responses_is_limited() {
    let refusals_per_second = 10_000;
    let config = CmConfig { max_connections: 2, refusals_per_second, ..config(1) };
    let mut cm = Cm::new(config, [1; 32]);
    let mut other = manager(2);
    other.connect(NOW, &request(0x10)).unwrap();
    let req = sent(&mut other)[0];
    for _ in 0..5_000 {
        cm.handle(NOW, &route(1, 2), &req);
    }
    assert_eq!(cm.outgoing.len(), 2 + MAX_QUEUED);
    assert_eq!(cm.counters().overflowed, 5_000 - 2 - MAX_QUEUED as u64);
}

#[test]
fn queue_of_events_is_limited() {
    let mut cm = Cm::new(CmConfig { max_connections: 2, ..config(1) }, [1; 32]);
    cm.listen(SERVICE).unwrap();
    let mut now = NOW;
    for number in 0..2_000 {
        let mut other = Cm::new(config(2), [number as u8; 32]);
        other.connect(NOW, &request(0x100 + number)).unwrap();
        let req = sent(&mut other)[0];
        cm.handle(now, &route(1, 2), &req);
        // The consumer does not poll events, so the consumer timeout expires.
        now += Duration::from_secs(300);
        cm.handle_timeout(now);
        cm.handle_timeout(now + Duration::from_secs(100));
        while cm.poll_transmit().is_some() {}
    }
    // The CM refuses REQs once the queue contains 2 + `MAX_QUEUED` events. Each accepted REQ adds three: `Requested`,
    // `Failed` and `TimeWaitExited`.
    assert!(cm.events.len() < 2 + MAX_QUEUED + 3);
    assert!(cm.counters().refused > 1_000);
}

#[test]
fn request_is_rejected_after_the_consumer_timeout() {
    let mut pair = Pair::new();
    pair.here.connect(NOW, &request(0x10)).unwrap();
    pair.carry(NOW);
    let id = requested(&mut pair.there).id;
    pair.there.handle_timeout(NOW + Duration::from_secs(59));
    assert_eq!(pair.there.state(id), Some(State::ReqReceived));
    pair.there.handle_timeout(NOW + Duration::from_secs(60));
    assert_eq!(events(&mut pair.there), [CmEvent::Failed { id, why: Failure::Silent }]);
    assert_eq!(pair.carry(NOW), ["REJ"]);
    let found = events(&mut pair.here);
    assert!(matches!(found[..], [CmEvent::Rejected { reason: RejectReason::CONSUMER, .. }]));
    assert_eq!(pair.there.connections.half_open(), 0);
}

#[test]
fn timeouts_of_peers_are_limited() {
    let config = config(1);
    assert_eq!(config.limited_timeout(0), timeout(12));
    assert_eq!(config.limited_timeout(17), timeout(17));
    assert_eq!(config.limited_timeout(31), timeout(24));
    assert_eq!(timeout(255), timeout(31));
    assert_eq!(timeout(19).as_millis(), 2147);
}

#[test]
fn rejects_per_second_are_limited() {
    let mut cm = Cm::new(CmConfig { refusals_per_second: 10, ..config(1) }, [1; 32]);
    let mut other = manager(2);
    other.connect(NOW, &request(0x10)).unwrap();
    let req = sent(&mut other)[0];
    for second in 0..3 {
        for _ in 0..100 {
            cm.handle(NOW + Duration::from_secs(second), &route(1, 2), &req);
        }
        assert_eq!(sent(&mut cm).len(), 10);
        assert_eq!(cm.counters().limited, (second + 1) * 90);
    }
}

/// Whatever timeouts the REQ specifies, a connection without an RTU ends within twice `half_open_time`.
#[test]
fn half_open_requests_end_within_the_limit() {
    let mut pair = Pair::new();
    let params = request(0x10);
    pair.here.connect(NOW, &params).unwrap();
    let mut mad = sent(&mut pair.here)[0];
    let mut req: ib_wire::mad::cm::Req = mad.attribute().unwrap();
    (req.local_cm_response_timeout, req.max_cm_retries) = (31, 15);
    mad.set_attribute(&req);
    pair.there.handle(NOW, &route(1, 2), &mad);
    let id = requested(&mut pair.there).id;
    pair.there.accept(NOW, id, &acceptance(0x20)).unwrap();
    let mut now = NOW;
    while pair.there.connections.half_open() > 0 {
        now = pair.there.poll_timeout().expect("a half-open connection has a timer");
        pair.there.handle_timeout(now);
        while pair.there.poll_transmit().is_some() {}
    }
    assert!(now.since(NOW) <= Duration::from_secs(40), "{:?}", now.since(NOW));
}
