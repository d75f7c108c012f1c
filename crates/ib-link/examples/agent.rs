//! A `NodeAgent` that responds to performance management requests, and counts them by ingress port.
//!
//! ```text
//! $ cargo run -p ib-link --example agent
//! 3 requests arrived at port 2; the last response is to LID 7
//! ```

use std::collections::VecDeque;
use std::io::Write;

use ib_link::{Arrival, Datagram, NodeAgent, Remote};
use ib_types::Instant;
use ib_wire::mad::{Mad, MadStatus, Method, MgmtClass, TransactionId};

/// Responds to all requests, and counts them by ingress port.
#[derive(Default)]
struct CountingAgent {
    by_port: [usize; 3],
    answers: VecDeque<Datagram>,
}

impl NodeAgent for CountingAgent {
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
    let mut agent = CountingAgent::default();
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
    let last = last.ok_or("the agent did not respond")?;
    let count = agent.by_port[2];
    writeln!(
        std::io::stdout(),
        "{count} requests arrived at port 2; the last response is to LID {}",
        last.remote.lid
    )?;
    Ok(())
}
