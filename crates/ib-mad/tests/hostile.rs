//! Checks that requesters and responders neither panic nor exceed their memory limits, for arbitrary input.

use std::time::Duration;

use ib_link::{Datagram, Incoming, Remote};
use ib_mad::{
    ReceiveLimits, Request, Requester, RequesterConfig, Responder, ResponderConfig, ResponderEvent,
    Timing,
};
use ib_types::Instant;
use ib_wire::mad::rmpp::{RmppFlags, RmppHeader, RmppStatus, RmppType};
use ib_wire::mad::{MAD_LENGTH, Mad, Method, MgmtClass, TransactionId};
use proptest::prelude::*;

/// The memory limit of all RMPP messages in bytes.
const MAX_BYTES: usize = 1_500;

const LIMITS: ReceiveLimits = ReceiveLimits {
    window: 8,
    max_message: 4_000,
    message_time: Duration::from_secs(40),
    linger_time: Duration::from_secs(10),
};

/// Generates datagrams that differ little from valid ones.
fn almost_valid() -> impl Strategy<Value = Datagram> {
    let method = prop::sample::select(vec![0x01u8, 0x81, 0x12, 0x92, 0x14, 0x94, 0x05, 0x07]);
    let class = prop::sample::select(vec![3u8, 3, 3, 4, 0x30, 0x81]);
    let header = (0u8..3, 0u8..6, 0u8..8, prop_oneof![Just(0u8), any::<u8>()]);
    let number = prop_oneof![0u32..12, Just(u32::MAX), any::<u32>()];
    let words = (number.clone(), prop_oneof![number, 0u32..300]);
    let ends = (1u64..6, 8u16..10, any::<u16>(), any::<bool>());
    (method, class, header, words, ends).prop_map(|(method, class, header, words, ends)| {
        let (id, lid, length, tagged) = ends;
        let id = TransactionId(id | u64::from(tagged) << 32);
        let mut mad = Mad::new(MgmtClass(class), Method(method), id);
        let (version, rmpp_type, flags, status) = header;
        if class != 4 && class != 0x81 {
            mad.set_rmpp(&RmppHeader {
                version,
                rmpp_type: RmppType(rmpp_type),
                flags: RmppFlags(flags),
                status: RmppStatus(status),
                segment: words.0,
                length_or_window: words.1,
                ..RmppHeader::zeroed()
            });
        }
        Datagram { length, ..Datagram::new(Remote::gsi(lid), mad) }
    })
}

fn any_datagram() -> impl Strategy<Value = Datagram> {
    let random = prop::array::uniform32(any::<u8>()).prop_map(|start| {
        let mut bytes = [0; MAD_LENGTH];
        bytes[..32].copy_from_slice(&start);
        Datagram::new(Remote::gsi(9), Mad(bytes))
    });
    prop_oneof![1 => random, 9 => almost_valid()]
}

fn requester() -> Requester {
    let config = RequesterConfig {
        window: 3,
        receive: LIMITS,
        max_bytes: MAX_BYTES,
        ..RequesterConfig::default()
    };
    let mut requester = Requester::new(config);
    for (class, method, length) in [
        (3, Method::GET_TABLE, None),
        (3, Method::GET_MULTI, Some(900)),
        (0x30, Method::GET, None),
        (4, Method::GET, None),
        (0x81, Method::GET, None),
    ] {
        let mad = Mad::new(MgmtClass(class), method, TransactionId(0));
        let request = match length {
            Some(length) => Request::message(Remote::gsi(9), mad, vec![1; length]),
            None => Request::new(Remote::gsi(9), mad),
        };
        let timing = Timing { timeout: Duration::from_secs(2), ..Timing::default() };
        requester.start(request.with_timing(timing)).expect("the method has a response");
    }
    requester
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn requester_handles_any_input(
        events in prop::collection::vec((any_datagram(), any::<bool>(), 0u64..5_000), 0..60),
    ) {
        let mut requester = requester();
        let mut now = Instant::ZERO;
        let mut ended = 0;
        for (datagram, lost, millis) in events {
            while requester.poll_transmit(now).is_some() {}
            let incoming =
                if lost { Incoming::Lost(datagram) } else { Incoming::Received(datagram) };
            requester.handle(now, &incoming);
            now += Duration::from_millis(millis);
            requester.handle_timeout(now);
            while let Some(end) = requester.poll_event() {
                ended += 1;
                if let Ok(message) = end.result {
                    prop_assert!(message.data().len() <= LIMITS.max_message);
                }
            }
        }
        // All requests end even if no further datagram arrives.
        for _ in 0..200 {
            while requester.poll_transmit(now).is_some() {}
            let Some(next) = requester.poll_timeout() else { break };
            now = now.max(next);
            requester.handle_timeout(now);
            ended += std::iter::from_fn(|| requester.poll_event()).count();
        }
        prop_assert_eq!((ended, requester.outstanding(), requester.poll_timeout()), (5, 0, None));
        prop_assert_eq!(requester.held(), 0);
    }

    #[test]
    fn responder_handles_any_input(
        events in prop::collection::vec((any_datagram(), 0u64..5_000), 0..60),
    ) {
        let config = ResponderConfig {
            max_transfers: 3,
            max_waiting: 4,
            receive: LIMITS,
            max_bytes: MAX_BYTES,
            ..ResponderConfig::default()
        };
        let mut responder = Responder::new(config);
        let mut now = Instant::ZERO;
        for (datagram, millis) in events {
            responder.handle(now, &Incoming::Received(datagram));
            prop_assert!(responder.held() <= MAX_BYTES);
            now += Duration::from_millis(millis);
            responder.handle_timeout(now);
            while let Some(event) = responder.poll_event() {
                let ResponderEvent::Request(request) = event else { continue };
                prop_assert!(request.data().len() <= LIMITS.max_message);
                let mut header = *request.mad();
                header.answer(Default::default());
                let _ = responder.respond_message(request.datagram(), header, vec![1; 1_000]);
            }
            prop_assert!(responder.outstanding() <= 3);
            while responder.poll_transmit(now).is_some() {}
        }
        for _ in 0..200 {
            while responder.poll_transmit(now).is_some() {}
            let Some(next) = responder.poll_timeout() else { break };
            now = now.max(next);
            responder.handle_timeout(now);
        }
        while responder.poll_event().is_some() {}
        let left = (responder.outstanding(), responder.held(), responder.poll_timeout());
        prop_assert_eq!(left, (0, 0, None));
    }
}
