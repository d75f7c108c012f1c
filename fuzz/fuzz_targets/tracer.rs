//! A tracer receives arbitrary responses, and an agent receives arbitrary requests. The traces must end, and the agent
//! must not send MADs indefinitely.
#![no_main]

use std::time::Duration;

use ib_link::{Arrival, Datagram, Incoming, LinkPort, NodeAgent, Remote};
use ib_mad::Timing;
use ib_tracer::{FactSource, Target, Tracer, TracerAgent, TracerConfig};
use ib_types::{Guid, Instant};
use ib_wire::mad::{Mad, Method};
use libfuzzer_sys::fuzz_target;

/// The maximum number of iterations of the loop that drives the tracer.
const MOST_ROUNDS: usize = 100_000;

/// The rest of the input, from which bytes are read. Reading returns zeros after the end of the input.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let settings = bytes.byte();
    let config = TracerConfig {
        via: if settings & 1 == 0 { FactSource::DirectedRoutes } else { FactSource::SaRecords },
        agents: settings & 2 == 0,
        grh: settings & 4 != 0,
        timing: Timing { timeout: Duration::from_millis(1), retries: 0, ..Timing::default() },
        ..TracerConfig::default()
    };
    let own = LinkPort {
        node_guid: Guid(0x10),
        port_guid: Guid(0x11),
        number: 1,
        lid: 1,
        sm_lid: 2,
        ..LinkPort::default()
    };
    let mut tracer = Tracer::new(&config, own);
    let mut agent = TracerAgent::new("fuzz");
    for lid in [5, 6] {
        let _ = tracer.start(None, Target::Lid(lid));
    }
    let _ = tracer.start(Some(Target::Lid(7)), Target::Lid(5));
    let _ = tracer.start_tree(0xc000 + u16::from(bytes.byte()));
    let mut now = Instant::ZERO;
    for round in 0.. {
        assert!(round < MOST_ROUNDS, "the trace does not end");
        let mut answers = Vec::new();
        while let Some(request) = tracer.poll_transmit(now) {
            let mut mad: Mad = request.mad;
            mad.set_method(Method(mad.method().0 | 0x80));
            // The content of the response is taken from the input.
            let length = usize::from(bytes.byte());
            for at in 0..length.min(232) {
                mad.0[24 + at] = bytes.byte();
            }
            let arrival = Arrival { port: Some(bytes.byte()), lid: 1 };
            agent.handle(now, arrival, &Datagram::new(Remote::gsi(1), mad));
            while agent.poll_transmit(now).is_some() {}
            if length % 8 != 7 {
                answers.push(Incoming::Received(request.reply(mad)));
            }
        }
        for answer in answers {
            tracer.handle(now, &answer);
        }
        while tracer.poll_event().is_some() {}
        while tracer.poll_tree().is_some() {}
        if tracer.outstanding() == 0 {
            return;
        }
        if let Some(at) = tracer.poll_timeout() {
            now = now.max(at);
        }
        tracer.handle_timeout(now);
    }
});
