//! A requester and a responder receive arbitrary MADs.
//!
//! Checks that every request completes or fails exactly once, and that the limits of message lengths and transfers are
//! not exceeded. The input is a list of events: a byte that selects the event, and its parameters.
#![no_main]

use std::time::Duration;

use ib_link::{Datagram, Incoming, Remote};
use ib_mad::{
    ReceiveLimits, Request, Requester, RequesterConfig, Responder, ResponderConfig, ResponderEvent,
};
use ib_types::Instant;
use ib_wire::mad::{MAD_LENGTH, Mad, MadStatus, Method, MgmtClass, TransactionId};
use libfuzzer_sys::fuzz_target;

const MAX_MESSAGE: usize = 3_000;

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Returns a datagram whose first 40 bytes, source and length are taken from the input.
    fn datagram(&mut self) -> Option<Datagram> {
        let mut bytes = [0; MAD_LENGTH];
        bytes[..40].copy_from_slice(self.take(40)?);
        let ends = self.take(2)?;
        let datagram = Datagram::new(Remote::gsi(ends[0].into()), Mad(bytes));
        Some(Datagram { length: u16::from(ends[1]) + 1, ..datagram })
    }
}

fn requester(receive: ReceiveLimits) -> Requester {
    let mut requester =
        Requester::new(RequesterConfig { window: 3, receive, ..RequesterConfig::default() });
    for (class, method, length) in [
        (MgmtClass::SUBN_ADM, Method::GET_TABLE, None),
        (MgmtClass::SUBN_ADM, Method::GET_MULTI, Some(900)),
        (MgmtClass::PERFORMANCE, Method::SET, None),
        (MgmtClass::SUBN_DIRECTED_ROUTE, Method::GET, None),
    ] {
        let mad = Mad::new(class, method, TransactionId(0));
        let request = match length {
            Some(length) => Request::message(Remote::gsi(9), mad, vec![1; length]),
            None => Request::new(Remote::gsi(9), mad),
        };
        requester.start(request).expect("the method has a response");
    }
    requester
}

fn answer(responder: &mut Responder) {
    while let Some(event) = responder.poll_event() {
        let ResponderEvent::Request(request) = event else { continue };
        assert!(request.data().len() <= MAX_MESSAGE);
        let mut header = *request.mad();
        header.answer(MadStatus::OK);
        let _ = responder.respond_message(request.datagram(), header, vec![1; 700]);
    }
    assert!(responder.outstanding() <= 3);
}

fuzz_target!(|bytes: &[u8]| {
    let receive = ReceiveLimits { window: 8, max_message: MAX_MESSAGE, ..ReceiveLimits::default() };
    let mut requester = requester(receive);
    let config = ResponderConfig { max_transfers: 3, receive, ..ResponderConfig::default() };
    let mut responder = Responder::new(config);
    let (mut now, mut ended) = (Instant::ZERO, 0);
    let mut input = Input(bytes);
    while let Some(event) = input.take(1) {
        while requester.poll_transmit(now).is_some() {}
        while responder.poll_transmit(now).is_some() {}
        match event[0] % 4 {
            0 => now += Duration::from_millis(u64::from(event[0]) * 16),
            kind => {
                let Some(datagram) = input.datagram() else { break };
                let incoming = match kind {
                    1 => Incoming::Lost(datagram),
                    _ => Incoming::Received(datagram),
                };
                requester.handle(now, &incoming);
                responder.handle(now, &incoming);
            }
        }
        requester.handle_timeout(now);
        responder.handle_timeout(now);
        answer(&mut responder);
        while let Some(end) = requester.poll_event() {
            ended += 1;
            assert!(end.result.map_or(0, |message| message.data().len()) <= MAX_MESSAGE);
        }
    }
    for _ in 0..200 {
        while requester.poll_transmit(now).is_some() {}
        while responder.poll_transmit(now).is_some() {}
        let next = [requester.poll_timeout(), responder.poll_timeout()];
        let Some(next) = next.into_iter().flatten().min() else { break };
        now = now.max(next);
        requester.handle_timeout(now);
        responder.handle_timeout(now);
        ended += std::iter::from_fn(|| requester.poll_event()).count();
        answer(&mut responder);
    }
    assert_eq!((ended, requester.outstanding(), responder.outstanding()), (4, 0, 0));
});
