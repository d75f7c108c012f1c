//! Tests with arbitrary messages: the CM does not panic, its tables stay limited, and all connections end.

use proptest::prelude::*;

use super::*;

/// Generates messages with arbitrary content. The communication IDs are small, so that they match existing connections.
fn datagram() -> impl Strategy<Value = (u16, Vec<u8>, u8, u8)> {
    (0x0f_u16..0x1e, prop::collection::vec(any::<u8>(), 232), 0_u8..6, 0_u8..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cm_handles_arbitrary_messages(
        script in prop::collection::vec((datagram(), 0_u8..12, 0_u64..3_000), 1..120),
    ) {
        let config = CmConfig { max_connections: 8, max_half_open: 4, max_sidr: 4, ..config(1) };
        let mut cm = Cm::new(config, [9; 32]);
        cm.listen(SERVICE).unwrap();
        cm.listen_cm(PortSpace::TCP, 7).unwrap();
        let mut now = NOW;
        let mut ids = Vec::new();
        let mut number = 0x100;
        for ((attribute, content, own, peer), action, millis) in script {
            now += Duration::from_millis(millis);
            cm.handle_timeout(now);
            let mut mad = Mad::new(MgmtClass::COMMUNICATION, Method::SEND, TransactionId(1));
            mad.set_attribute_id(AttributeId(attribute));
            mad.0[24..].copy_from_slice(&content);
            let own = ids.get(usize::from(own)).map_or(0, |id: &ConnectionId| id.get());
            mad.0[24..28].copy_from_slice(&u32::from(peer).to_be_bytes());
            match attribute {
                0x10 => {
                    mad.0[32..40].copy_from_slice(&SERVICE.0.to_be_bytes());
                    mad.0[40..48].copy_from_slice(&u64::from(peer).to_be_bytes());
                    mad.0[67] &= 0xf9;
                    mad.0[74] = 0x30;
                }
                0x17 => mad.0[32..40].copy_from_slice(&SERVICE.0.to_be_bytes()),
                _ => mad.0[28..32].copy_from_slice(&own.to_be_bytes()),
            }
            cm.handle(now, &route(1, 2), &mad);
            let id = ids.last().copied().unwrap_or(ConnectionId(1));
            // A call that the state does not allow fails and changes nothing, so its error is ignored.
            let _ = match action {
                0 => cm.accept(now, id, &acceptance(0x10)),
                1 => cm.reject(now, id, ib_wire::mad::cm::RejectReason::CONSUMER, b""),
                2 => cm.established(id, b""),
                3 => cm.message_received(id),
                4 => cm.disconnect(now, id, b""),
                5 => cm.close(now, id),
                6 => cm.mra(now, id, 31, b""),
                7 | 8 => {
                    number += 1;
                    cm.connect(now, &request(number)).map(|id| ids.push(id))
                }
                _ => Ok(()),
            };
            while let Some(event) = cm.poll_event() {
                if let CmEvent::Requested(requested) = event {
                    ids.push(requested.id);
                }
            }
            while cm.poll_transmit().is_some() {}
            prop_assert!(cm.connections() <= 8 && cm.connections.half_open() <= 4 && cm.sidr_requests() <= 8);
        }
        for id in ids {
            let _ = cm.close(now, id);
        }
        while let Some(at) = cm.poll_timeout() {
            cm.handle_timeout(at);
        }
        prop_assert_eq!((cm.connections(), cm.connections.half_open(), cm.sidr_requests()), (0, 0, 0));
        prop_assert!(cm.connections.has_empty_indices());
    }

    #[test]
    fn cm_handles_arbitrary_mads(content in prop::collection::vec(any::<u8>(), 256)) {
        let mut cm = manager(1);
        let mad = Mad(content.try_into().unwrap());
        prop_assert_eq!(cm.handle(NOW, &route(1, 2), &mad), mad.0[1] == 7);
        prop_assert_eq!(cm.connections(), 0);
    }
}

#[test]
fn other_classes_and_methods_are_not_handled() {
    let mut cm = manager(1);
    let mad = Mad::new(MgmtClass::PERFORMANCE, Method::GET, TransactionId(1));
    assert!(!cm.handle(NOW, &route(1, 2), &mad));
    let mad = Mad::new(MgmtClass::COMMUNICATION, Method::GET, TransactionId(1));
    assert!(cm.handle(NOW, &route(1, 2), &mad));
    assert_eq!((cm.counters().received, cm.counters().malformed), (1, 1));
}
