//! Many queue pairs in one HCA.

use ib_hca::{QpCap, SendOp, WcStatus};

use crate::pair::{Pair, Wiring};

#[test]
fn ten_thousand_queue_pairs_work_at_once() {
    const COUNT: usize = 10_000;
    let mut pair = Pair::new(1);
    let cap = QpCap { max_send_wr: 4, max_recv_wr: 4, ..QpCap::default() };
    let wiring = Wiring { cap, timeout: 16, ..Wiring::default() };
    let (near, far) = (pair.region(0, 64, crate::ALL), pair.region(1, 64 * COUNT, crate::ALL));
    let qps: Vec<_> = (0..COUNT).map(|_| pair.connect(&wiring)).collect();
    for (number, [one, other]) in qps.iter().enumerate() {
        pair.receive(1, *other, number as u64, far.data(64 * number, 64));
        pair.send(0, *one, number as u64, SendOp::Send { imm: None }, near.data(0, 64));
        // The CQs are emptied often, because they hold fewer completions than there are messages.
        if number % 1000 == 0 {
            pair.run();
        }
    }
    pair.run();
    let (sent, received) = (pair.done(0), pair.done(1));
    assert_eq!((sent.len(), received.len()), (COUNT, COUNT));
    assert!(sent.iter().chain(&received).all(|wc| wc.status == WcStatus::Success));
    assert_eq!(pair.sides[0].hca.counters().retransmitted, 0);
}
