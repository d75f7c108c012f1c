//! A long response over a link that loses every fifth datagram: lost segments are retransmitted.
//!
//! ```text
//! $ cargo run -p ib-mad --example lossy
//! 20000 bytes in … datagrams, … of them lost, after … ms
//! ```

use std::io::Write;

use ib_link::{Incoming, Remote};
use ib_mad::{Request, Requester, Responder, ResponderEvent};
use ib_types::Instant;
use ib_wire::mad::{Mad, MadStatus, Method, MgmtClass, TransactionId};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut requester = Requester::new(Default::default());
    let mut responder = Responder::new(Default::default());
    let table = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE, TransactionId(0));
    requester.start(Request::new(Remote::gsi(7), table))?;

    let (mut now, mut sent, mut lost) = (Instant::ZERO, 0, 0);
    let mut arrives = || {
        sent += 1;
        lost += usize::from(sent % 5 == 0);
        sent % 5 != 0
    };
    let message = loop {
        while let Some(datagram) = requester.poll_transmit(now) {
            if arrives() {
                responder.handle(now, &Incoming::Received(datagram));
            }
        }
        while let Some(ResponderEvent::Request(request)) = responder.poll_event() {
            let mut header = *request.mad();
            header.answer(MadStatus::OK);
            responder.respond_message(request.datagram(), header, vec![42; 20_000])?;
        }
        let mut idle = true;
        while let Some(datagram) = responder.poll_transmit(now) {
            idle = false;
            if arrives() {
                requester.handle(now, &Incoming::Received(datagram));
            }
        }
        if let Some(completion) = requester.poll_event() {
            break completion.result?;
        }
        if idle {
            // Nothing is in flight: advance the time to the next deadline.
            let due = [requester.poll_timeout(), responder.poll_timeout()];
            now = due.into_iter().flatten().min().ok_or("no timer is running")?;
            requester.handle_timeout(now);
            responder.handle_timeout(now);
        }
    };
    let (bytes, ms) = (message.data().len(), now.as_nanos() / 1_000_000);
    writeln!(
        std::io::stdout(),
        "{bytes} bytes in {sent} datagrams, {lost} of them lost, after {ms} ms"
    )?;
    Ok(())
}
