//! A requester and a responder in virtual time, connected by a lossy wire.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use ib_link::{Datagram, Incoming};
use ib_mad::{Completion, Requester, RequesterConfig, Responder, ResponderConfig, ResponderEvent};
use ib_types::Instant;
use ib_types::rng::Rng;
use ib_wire::mad::{MadStatus, Method};

/// The faults of the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wire {
    /// The probability, in thousandths, that a datagram is lost.
    pub(crate) lost: usize,
    /// The probability, in thousandths, that the loss of a request is reported to the requester.
    pub(crate) reported: usize,
    /// The probability, in thousandths, that a datagram is duplicated.
    pub(crate) duplicated: usize,
    /// The probability, in thousandths, that the response to a request of one MAD has status busy.
    pub(crate) busy: usize,
    /// The maximum delay in microseconds. Delays are random, so datagrams are reordered.
    pub(crate) delay: usize,
}

/// The destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Requester,
    Responder,
}

/// A requester and a responder, the wire between them, and the recorded events.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) requester: Requester,
    pub(crate) responder: Responder,
    pub(crate) completions: Vec<Completion>,
    pub(crate) trace: String,
    pub(crate) datagrams: usize,
    /// The number of failed RMPP responses.
    pub(crate) failed_responses: usize,
    wire: Wire,
    rng: Rng,
    in_flight: BTreeMap<(Instant, u64), (Side, Incoming)>,
    sent: u64,
    traced: bool,
}

impl Pair {
    pub(crate) fn new(
        seed: u64,
        wire: Wire,
        client: RequesterConfig,
        server: ResponderConfig,
    ) -> Self {
        Self {
            now: Instant::ZERO,
            requester: Requester::new(client),
            responder: Responder::new(server),
            completions: Vec::new(),
            trace: String::new(),
            datagrams: 0,
            failed_responses: 0,
            wire,
            rng: Rng::stream(seed, 1),
            in_flight: BTreeMap::new(),
            sent: 0,
            traced: false,
        }
    }

    /// Records every delivered datagram in `trace`.
    pub(crate) fn traced(self) -> Self {
        Self { traced: true, ..self }
    }

    /// Runs until no datagram is in flight and no timer is running.
    pub(crate) fn run(&mut self) {
        loop {
            self.transmit();
            let next = [
                self.in_flight.first_key_value().map(|(&(at, _), _)| at),
                self.requester.poll_timeout(),
                self.responder.poll_timeout(),
            ];
            let Some(next) = next.into_iter().flatten().min() else { return };
            assert!(next >= self.now, "the next deadline is in the past");
            assert!(
                next - Instant::ZERO < Duration::from_secs(100_000),
                "the simulation does not end"
            );
            self.now = next;
            self.deliver();
            self.requester.handle_timeout(self.now);
            self.responder.handle_timeout(self.now);
            self.serve();
            self.completions.extend(std::iter::from_fn(|| self.requester.poll_event()));
        }
    }

    fn transmit(&mut self) {
        while let Some(datagram) = self.requester.poll_transmit(self.now) {
            self.send(Side::Responder, datagram);
        }
        while let Some(datagram) = self.responder.poll_transmit(self.now) {
            self.send(Side::Requester, datagram);
        }
    }

    fn send(&mut self, to: Side, datagram: Datagram) {
        self.datagrams += 1;
        assert!(self.datagrams < 1_000_000, "1,000,000 datagrams were sent");
        if self.drawn(self.wire.lost) {
            if to == Side::Responder && self.drawn(self.wire.reported) {
                self.fly(Side::Requester, Incoming::Lost(datagram));
            }
            return;
        }
        self.fly(to, Incoming::Received(datagram));
        if self.drawn(self.wire.duplicated) {
            self.fly(to, Incoming::Received(datagram));
        }
    }

    fn fly(&mut self, to: Side, incoming: Incoming) {
        let delay = 1 + self.rng.below(self.wire.delay + 1) as u64;
        let at = self.now + Duration::from_micros(delay);
        self.in_flight.insert((at, self.sent), (to, incoming));
        self.sent += 1;
    }

    fn drawn(&mut self, share: usize) -> bool {
        self.rng.below(1000) < share
    }

    fn deliver(&mut self) {
        while let Some(first) =
            self.in_flight.first_entry().filter(|first| first.key().0 <= self.now)
        {
            let (to, incoming) = first.remove();
            if self.traced {
                let (word, datagram) = match &incoming {
                    Incoming::Received(datagram) => ("got", datagram),
                    Incoming::Lost(datagram) => ("lost", datagram),
                };
                let (mad, header) = (&datagram.mad, datagram.mad.rmpp());
                writeln!(self.trace, "{} {to:?} {word} {mad} {header:?}", self.now)
                    .expect("writing to a `String` does not fail");
            }
            match to {
                Side::Requester => self.requester.handle(self.now, &incoming),
                Side::Responder => self.responder.handle(self.now, &incoming),
            };
        }
    }

    /// Responds to requests. A request's attribute modifier is the length of the response in bytes. Responses to Get
    /// are single MADs; other responses are sent by RMPP.
    fn serve(&mut self) {
        while let Some(event) = self.responder.poll_event() {
            let request = match event {
                ResponderEvent::Request(request) => request,
                ResponderEvent::Delivered { .. } => continue,
                ResponderEvent::Failed { .. } => {
                    self.failed_responses += 1;
                    continue;
                }
            };
            let mut header = *request.mad();
            let length = header.attribute_modifier() as usize;
            if request.is_reassembled() {
                assert_eq!(request.data(), pattern(length / 2), "the data of the request differs");
            }
            header.answer(MadStatus::OK);
            if !request.is_reassembled() && self.drawn(self.wire.busy) {
                header.set_status(MadStatus::BUSY);
                self.responder.respond(request.datagram(), header, 256);
            } else if header.method() == Method::GET_RESP {
                self.responder.respond(request.datagram(), header, 256);
            } else {
                // The error is ignored: an earlier response to the same request may still be outstanding.
                let _ = self.responder.respond_message(request.datagram(), header, pattern(length));
            }
        }
    }
}

/// Returns data that differs between segments.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|byte| (byte % 199 + byte / 200) as u8).collect()
}
