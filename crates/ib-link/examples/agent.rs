//! An agent of a node, as engines see it: it is handed datagrams and the time, and asked what it has to send.
//!
//! ```text
//! $ cargo run -p ib-link --example agent
//! 3 requests came in by port 2; the last answer is to LID 7
//! ```

use std::collections::VecDeque;
use std::io::Write;

use ib_link::{Arrival, Datagram, NodeAgent, Remote};
use ib_types::Instant;
use ib_wire::mad::{Mad, MadStatus, Method, MgmtClass, TransactionId};

/// Answers whatever it is asked, and counts by which port.
#[derive(Default)]
struct Counting {
    by_port: [usize; 3],
    answers: VecDeque<Datagram>,
}

impl NodeAgent for Counting {
    fn classes(&self) -> &[MgmtClass] {
        &[MgmtClass::PERFORMANCE]
    }

    fn handle(&mut self, _: Instant, arrival: Arrival, datagram: &Datagram) {
        if let Some(count) = arrival.port.and_then(|port| self.by_port.get_mut(usize::from(port))) {
            *count += 1;
        }
        let mut answer = *datagram;
        answer.mad.answer(MadStatus::OK);
        self.answers.push_back(answer);
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant) -> Option<Datagram> {
        self.answers.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut agent = Counting::default();
    let now = Instant::ZERO;
    let mut last = None;
    for number in 1..=3 {
        let mad = Mad::new(MgmtClass::PERFORMANCE, Method::GET, TransactionId(number));
        let arrival = Arrival { port: Some(2), lid: 4 };
        agent.handle(now, arrival, &Datagram::new(Remote::gsi(7), mad));
        while let Some(answer) = agent.poll_transmit(now) {
            last = Some(answer);
        }
    }
    let last = last.ok_or("it answers")?;
    let count = agent.by_port[2];
    writeln!(
        std::io::stdout(),
        "{count} requests came in by port 2; the last answer is to LID {}",
        last.remote.lid
    )?;
    Ok(())
}
