use std::collections::VecDeque;
use std::time::Duration;

use ib_link::{Datagram, Incoming, LinkPort, Remote};
use ib_wire::mad::{Mad, MadStatus, Method, MgmtClass};

use super::*;
use crate::{Responder, ResponderConfig, ResponderEvent, Timing};

/// A link to a responder at LID 2. The attribute modifier of a request is the length of the
/// response in bytes. Other LIDs do not respond. Time passes only in `wait`.
struct LoopLink {
    now: Instant,
    responder: Responder,
    arrived: VecDeque<Incoming>,
    closed: bool,
    in_flight: usize,
    max_in_flight: usize,
}

impl LoopLink {
    fn new() -> Self {
        Self {
            now: Instant::ZERO,
            responder: Responder::new(ResponderConfig::default()),
            arrived: VecDeque::new(),
            closed: false,
            in_flight: 0,
            max_in_flight: 0,
        }
    }

    fn serve(&mut self) {
        while let Some(event) = self.responder.poll_event() {
            let ResponderEvent::Request(request) = event else { continue };
            self.in_flight -= 1;
            let mut header = *request.mad();
            header.answer(MadStatus::OK);
            let data = vec![5; header.attribute_modifier() as usize];
            self.responder.respond_message(request.datagram(), header, data).unwrap();
        }
        while let Some(datagram) = self.responder.poll_transmit(self.now) {
            self.arrived.push_back(Incoming::Received(datagram));
        }
    }
}

impl MadLink for LoopLink {
    fn port(&mut self) -> Result<LinkPort, LinkError> {
        Ok(LinkPort::default())
    }

    fn send(&mut self, datagram: &Datagram) -> Result<(), LinkError> {
        if self.closed {
            return Err(LinkError::Closed { peer: "the test".into() });
        }
        if datagram.remote.lid == 2 {
            self.in_flight += usize::from(!datagram.mad.is_rmpp());
            self.max_in_flight = self.max_in_flight.max(self.in_flight);
            self.responder.handle(self.now, &Incoming::Received(*datagram));
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<Incoming>, LinkError> {
        Ok(self.arrived.pop_front())
    }

    fn wait(&mut self, until: Instant) -> Result<(), LinkError> {
        self.serve();
        if self.arrived.is_empty() {
            self.now = self.now.max(until);
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        self.now
    }
}

fn request(lid: u16, length: u32) -> Request {
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE, TransactionId(0));
    mad.set_attribute_modifier(length);
    Request::new(Remote::gsi(lid), mad)
}

#[test]
fn call_returns_the_response() {
    let mut link = LoopLink::new();
    let mut client = Client::new(RequesterConfig::default());
    for length in [0, 1, 200, 50_000] {
        let answer = client.call(&mut link, request(2, length)).unwrap();
        assert_eq!(answer.data(), vec![5; length as usize]);
    }
    assert_eq!(link.responder.outstanding(), 0, "the last ACK was not sent");
}

#[test]
fn results_are_in_the_order_of_the_requests() {
    let mut link = LoopLink::new();
    let mut client = Client::new(RequesterConfig { window: 3, ..RequesterConfig::default() });
    let lengths = [9_000, 0, 500, 70, 3_000, 201];
    let mut requests: Vec<_> = lengths.iter().map(|&length| request(2, length)).collect();
    requests.insert(2, request(8, 0));
    let results = client.call_all(&mut link, requests).unwrap();
    let found: Vec<_> = results
        .into_iter()
        .map(|result| result.map_or(None, |message| Some(message.data().len())))
        .collect();
    let expected = [Some(9_000), Some(0), None, Some(500), Some(70), Some(3_000), Some(201)];
    assert_eq!(found, expected);
    assert!(link.max_in_flight <= 3);
}

#[test]
fn call_reports_timeout_invalid_request_and_closed_link() {
    let mut link = LoopLink::new();
    let mut client = Client::new(RequesterConfig::default());
    let timing = Timing { retries: 1, ..Timing::default() };
    let error = client.call(&mut link, request(8, 0).with_timing(timing)).unwrap_err();
    let waited = Duration::from_secs(2);
    let expected = Failure::TimedOut { attempts: 2, waited };
    assert!(matches!(error, CallError::Failed(failure) if failure == expected));
    assert_eq!(link.now() - Instant::ZERO, waited);
    let silent = Mad::new(MgmtClass::SUBN_ADM, Method::SEND, TransactionId(0));
    let requests = vec![request(2, 0), Request::new(Remote::gsi(2), silent)];
    let error = client.call_all(&mut link, requests).unwrap_err();
    assert!(matches!(error, CallError::Start(_)));
    assert_eq!(client.requester().outstanding(), 0);
    link.closed = true;
    let error = client.call(&mut link, request(2, 0)).unwrap_err();
    assert!(matches!(error, CallError::Link(LinkError::Closed { peer }) if peer == "the test"));
    assert_eq!(client.requester().outstanding(), 0);
}
