use ib_link::Remote;
use std::time::Duration;

use ib_link::Incoming;
use ib_types::Instant;
use ib_wire::mad::rmpp::{RmppFlags, RmppHeader, RmppType};
use ib_wire::mad::{Mad, MadStatus, Method, TransactionId};

use super::*;
use crate::lab::{self, lid, node};
use crate::options::Options;

const CLASS: MgmtClass = MgmtClass(0x30);

/// An agent that sends an RMPP ACK for a request at once. If `answers` is true, it also sends the
/// response one second later.
struct Slow {
    answers: bool,
    due: Vec<(Instant, Datagram)>,
}

impl NodeAgent for Slow {
    fn classes(&self) -> &[MgmtClass] {
        &[CLASS]
    }

    fn handle(&mut self, now: Instant, _: Arrival, datagram: &Datagram) {
        let mut mad = datagram.mad;
        mad.answer(MadStatus::OK);
        if self.answers {
            self.due.push((now + Duration::from_secs(1), datagram.reply(mad)));
        }
        mad.set_rmpp(&RmppHeader {
            version: 1,
            rmpp_type: RmppType::ACK,
            flags: RmppFlags::ACTIVE,
            ..RmppHeader::zeroed()
        });
        self.due.push((now, datagram.reply(mad)));
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let index = self.due.iter().position(|(at, _)| *at <= now)?;
        Some(self.due.remove(index).1)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due.iter().map(|(at, _)| *at).min()
    }
}

#[test]
fn acknowledgement_by_an_agent_is_not_a_response() {
    for answers in [true, false] {
        let mut sim = lab::ready(&lab::row(1), Options::default());
        let at = node(&sim, "h2");
        sim.host(at, Box::new(Slow { answers, due: Vec::new() }));
        let client = lab::client(&mut sim, "h1");
        let mad = Mad::new(CLASS, Method::GET, TransactionId(5));
        let remote = Remote::gsi(lid(&sim, "h2"));
        let Some(Incoming::Received(ack)) = lab::query(&mut sim, client, remote, mad) else {
            panic!("no acknowledgement")
        };
        assert_eq!(ack.mad.rmpp().rmpp_type, RmppType::ACK);
        assert_eq!(lab::assigned(&sim), 1, "an ACK does not complete the request");
        // The request is not assigned to `other`, so it does not fail when `other` detaches.
        let other = lab::client(&mut sim, "h2");
        sim.detach(other);
        assert_eq!(sim.receive(client), None);
        sim.run_until(Instant::ZERO + Duration::from_secs(31));
        match sim.receive(client) {
            Some(Incoming::Received(answer)) => {
                assert!(answers);
                assert_eq!(answer.mad.transaction_id(), TransactionId(5));
            }
            Some(Incoming::Lost(lost)) => {
                assert!(!answers);
                assert_eq!(lost.mad, mad);
            }
            None => panic!("neither a response nor a loss"),
        }
        assert_eq!(sim.receive(client), None);
        lab::check_settled(&sim);
        assert!((lab::assigned(&sim) == 0) && (sim.outstanding() == 0));
    }
}
