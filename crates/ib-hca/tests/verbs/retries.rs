//! Retransmission, packet by packet: the test itself acts as the peer of an HCA.

use std::time::Duration;

use ib_hca::{AccessFlags, MAX_PACKET, QpId, QpState, SendOp, WcStatus};
use ib_types::{Mtu, Psn};
use ib_wire::packet::{
    Acknowledgement, Aeth, AtomicEth, Bth, Header, NakCode, Opcode, Operation, Reth, Syndrome,
    Transport,
};

use crate::pair::{Pair, Region, Wiring};

const ALL: AccessFlags = AccessFlags::ALL;

/// The first PSN of side 0, set by [`Pair::connect_with`].
const FIRST: Psn = Psn::truncated(0xff_fff0);

/// An HCA whose peer is the test itself. The HCA is side `side` of a [`Pair`].
struct Bench {
    pair: Pair,
    side: usize,
    qp: QpId,
    /// Memory region of this HCA.
    region: Region,
}

impl Bench {
    fn new(side: usize, wiring: &Wiring) -> Self {
        let mut pair = Pair::new(1);
        let qp = pair.connect(wiring)[side];
        let region = pair.region(side, 1 << 16, ALL);
        Self { pair, side, qp, region }
    }

    /// Delivers a packet to the HCA. `psn` is relative to the first PSN of side 0.
    fn deliver(&mut self, operation: Operation, psn: u32, rest: &[u8]) {
        let bth = Bth {
            opcode: Opcode::new(Transport::Rc, operation).expect("RC has the operation"),
            destination: self.pair.number_of(self.side, self.qp),
            p_key: ib_types::PKey::DEFAULT,
            psn: FIRST.wrapping_add(psn),
            ..Bth::default()
        };
        let (route, now) = (self.pair.route(self.side), self.pair.now);
        let bytes = [&bth.to_bytes()[..], rest].concat();
        self.pair.sides[self.side].hca.handle(now, &route, &bytes);
    }

    fn deliver_read(&mut self, psn: u32, offset: usize, length: u32) {
        let remote = self.region.remote(offset);
        let (virtual_address, r_key) = (remote.addr, remote.rkey);
        let reth = Reth { virtual_address, r_key, dma_length: length };
        self.deliver(Operation::ReadRequest, psn, &reth.to_bytes());
    }

    /// Delivers a WRITE of 8 bytes in one packet that requests no ACK.
    fn deliver_write(&mut self, psn: u32) {
        let remote = self.region.remote(1024);
        let (virtual_address, r_key) = (remote.addr, remote.rkey);
        let reth = Reth { virtual_address, r_key, dma_length: 8 };
        self.deliver(Operation::WriteOnly, psn, &[&reth.to_bytes()[..], &[1; 8]].concat());
    }

    fn deliver_add(&mut self, psn: u32) {
        let remote = self.region.remote(0);
        let (virtual_address, r_key) = (remote.addr, remote.rkey);
        let eth = AtomicEth { virtual_address, r_key, swap_or_add: 1, compare: 0 };
        self.deliver(Operation::FetchAdd, psn, &eth.to_bytes());
    }

    fn deliver_data(&mut self, psn: u32) {
        let aeth = Aeth { syndrome: Syndrome::ACK, msn: 0 };
        self.deliver(Operation::ReadResponseOnly, psn, &[&aeth.to_bytes()[..], &[7; 8]].concat());
    }

    fn deliver_nak(&mut self, psn: u32, code: NakCode) {
        let syndrome = Syndrome::new(Acknowledgement::Nak(code));
        self.deliver(Operation::Acknowledge, psn, &Aeth { syndrome, msn: 0 }.to_bytes());
    }

    /// Polls up to `most` packets from the HCA. Returns their operations and relative PSNs.
    fn take(&mut self, most: usize) -> Vec<(Operation, u32)> {
        let mut buffer = vec![0; MAX_PACKET];
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(sent) =
                self.pair.sides[self.side].hca.poll_transmit(self.pair.now, &mut buffer)
        {
            let bth = Bth::parse(
                buffer[..sent.length].first_chunk().expect("a packet starts with a BTH"),
            );
            let operation = bth.opcode.operation().expect("the opcode is known");
            if operation == Operation::Acknowledge {
                let at = bth.opcode.headers().and_then(|all| all.offset(Header::Aeth));
                assert_eq!(at, Some(0));
            }
            taken.push((operation, bth.psn.distance_from(FIRST).unsigned_abs()));
        }
        taken
    }

    fn take_all(&mut self) -> Vec<(Operation, u32)> {
        self.take(usize::MAX)
    }

    /// Advances the clock, and runs the timers of the HCA.
    fn wait(&mut self, time: Duration) {
        self.pair.now += time;
        let now = self.pair.now;
        self.pair.sides[self.side].hca.handle_timeout(now);
    }

    fn state(&self) -> QpState {
        self.pair.state_of(self.side, self.qp)
    }

    /// Returns the status of each completed request.
    fn ended(&mut self) -> Vec<(u64, WcStatus)> {
        let side = &mut self.pair.sides[self.side];
        let mut ended = Vec::new();
        while let Some(wc) = side.hca.poll_cq(side.cq) {
            ended.push((wc.wr_id, wc.status));
        }
        ended
    }

    /// Posts READs of 8 bytes.
    fn post_reads(&mut self, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let (from, data) = (self.region.remote(0), self.region.data(0, 8));
            self.pair.send(self.side, self.qp, number, SendOp::Read { from }, data);
        }
    }
}

const fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

fn responder(reads: u8) -> Bench {
    Bench::new(1, &Wiring { reads, mtu: Mtu::B256, ..Wiring::default() })
}

/// Returns a requester with 16 READs in flight, after a READ with a round-trip time of 20 µs.
fn requester(retry_cnt: u8) -> Bench {
    let wiring = Wiring { reads: 16, timeout: 14, retry_cnt, ..Wiring::default() };
    let mut bench = Bench::new(0, &wiring);
    bench.post_reads(0..1);
    assert_eq!(bench.take_all(), [(Operation::ReadRequest, 0)]);
    bench.wait(micros(20));
    bench.deliver_data(0);
    bench.post_reads(1..17);
    assert_eq!(bench.take_all().len(), 16);
    assert_eq!(bench.ended(), [(0, WcStatus::Success)]);
    bench
}

const ONLY: Operation = Operation::ReadResponseOnly;

#[test]
fn queued_repeated_responses_use_no_resources() {
    let mut bench = responder(2);
    for psn in [0, 1] {
        bench.deliver_read(psn, 0, 8);
    }
    assert_eq!(bench.take_all(), [(ONLY, 0), (ONLY, 1)]);
    for psn in [0, 1] {
        bench.deliver_read(psn, 0, 8);
    }
    // A new READ shows the responder that the response to the first READ has arrived.
    bench.deliver_read(2, 0, 8);
    assert_eq!(bench.state(), QpState::Rts);
    assert_eq!(bench.take_all(), [(ONLY, 1), (ONLY, 2)]);
}

#[test]
fn unanswered_reads_beyond_the_limit_are_refused() {
    for is_repeated in [false, true] {
        let mut bench = responder(2);
        for psn in [0, 1] {
            bench.deliver_read(psn, 0, 8);
        }
        if is_repeated {
            bench.deliver_read(0, 0, 8);
        }
        bench.deliver_read(2, 0, 8);
        assert_eq!(bench.state(), QpState::Err);
        assert_eq!(bench.take_all(), [(Operation::Acknowledge, 2)]);
    }
}

#[test]
fn repeated_read_replaces_its_queued_response() {
    let mut bench = responder(4);
    for psn in 0..4 {
        bench.deliver_read(psn, 0, 8);
    }
    assert_eq!(bench.take(2), [(ONLY, 0), (ONLY, 1)]);
    // The responses to the requests with PSN 2 and 3 remain queued, however often requests are repeated.
    for psn in [1, 3, 1, 0] {
        bench.deliver_read(psn, 0, 8);
    }
    assert_eq!(bench.take_all(), [(ONLY, 0), (ONLY, 1), (ONLY, 2), (ONLY, 3)]);
}

#[test]
fn repeated_rest_of_a_read_replaces_the_whole() {
    use Operation::{ReadResponseFirst as First, ReadResponseLast as Last};
    let mut bench = responder(4);
    bench.deliver_read(0, 0, 1024);
    bench.deliver_read(4, 0, 512);
    assert_eq!(bench.take(1), [(First, 0)]);
    bench.deliver_read(2, 512, 512);
    assert_eq!(bench.take_all(), [(First, 2), (Last, 3), (First, 4), (Last, 5)]);
    // READ 4 is repeated, and the first packet of its response is sent. Then the rest of READ 0 is repeated. The
    // response to READ 0 has lower PSNs and is sent next. The response to READ 4 then starts again.
    bench.deliver_read(4, 0, 512);
    assert_eq!(bench.take(1), [(First, 4)]);
    bench.deliver_read(2, 512, 512);
    assert_eq!(bench.take_all(), [(First, 2), (Last, 3), (First, 4), (Last, 5)]);
}

/// Linux soft RoCE takes an ACK with the PSN of a READ as its completion, although no data has arrived.
#[test]
fn ack_of_a_duplicate_does_not_cover_a_later_read() {
    let ack = Operation::Acknowledge;
    let mut bench = responder(4);
    for psn in [0, 1] {
        bench.deliver_write(psn);
    }
    bench.deliver_read(2, 0, 512);
    bench.deliver_write(4);
    let data = [(Operation::ReadResponseFirst, 2), (Operation::ReadResponseLast, 3)];
    assert_eq!(bench.take_all(), data);
    bench.deliver_write(0);
    assert_eq!(bench.take_all(), [(ack, 1)]);
    bench.deliver_write(4);
    assert_eq!(bench.take_all(), [(ack, 4)]);
    // The response to the repeated READ also acknowledges the WRITEs before it, so the repeated WRITE gets no ACK.
    bench.deliver_read(2, 0, 512);
    bench.deliver_write(0);
    assert_eq!(bench.take_all(), data);
    // The ACK of a repeated WRITE does not cover the next atomic: the PSN of the ACK is before that of the atomic.
    bench.deliver_add(5);
    assert_eq!(bench.take_all(), [(Operation::AtomicAcknowledge, 5)]);
    bench.deliver_write(4);
    assert_eq!(bench.take_all(), [(ack, 4)]);
}

#[test]
fn repeated_atomics_are_answered_once_in_order() {
    let atomic = Operation::AtomicAcknowledge;
    let mut bench = responder(4);
    for psn in 0..3 {
        bench.deliver_add(psn);
    }
    assert_eq!(bench.take_all(), [(atomic, 0), (atomic, 1), (atomic, 2)]);
    for psn in [1, 2, 0, 1] {
        bench.deliver_add(psn);
    }
    assert_eq!(bench.take_all(), [(atomic, 0), (atomic, 1), (atomic, 2)]);
    assert_eq!(bench.region.bytes(0, 8), 3_u64.to_ne_bytes());
}

#[test]
fn repeated_read_of_closed_memory_is_dropped() {
    let mut bench = responder(4);
    bench.deliver_read(0, 0, 8);
    assert_eq!(bench.take_all(), [(ONLY, 0)]);
    bench.deliver_read(0, 0, 8);
    let mr = bench.region.mr;
    bench.pair.sides[1].hca.dereg_mr(mr).expect("the region exists");
    assert_eq!(bench.take_all(), []);
    assert_eq!(bench.state(), QpState::Rts);
}

#[test]
fn late_responses_of_one_loss_use_one_retry() {
    let mut bench = requester(1);
    // The response to the READ with PSN 1 is lost. The other responses arrive at growing intervals.
    for psn in 2..17 {
        bench.wait(micros(25 * u64::from(psn)));
        bench.deliver_data(psn);
        bench.take_all();
        assert_eq!(bench.ended(), [], "PSN {psn}");
    }
    bench.deliver_data(1);
    assert_eq!(bench.ended(), [(1, WcStatus::Success)]);
}

#[test]
fn response_to_an_older_transmission_is_not_a_loss() {
    let mut bench = requester(7);
    bench.wait(micros(20));
    bench.deliver_data(2);
    assert_eq!(bench.take(2), [(Operation::ReadRequest, 1), (Operation::ReadRequest, 2)]);
    // Requests from PSN 3 on have not been retransmitted yet, so these responses answer the first transmission.
    for psn in 3..17 {
        bench.wait(micros(1000));
        bench.deliver_data(psn);
    }
    let repeated: Vec<_> = (3..17).map(|psn| (Operation::ReadRequest, psn)).collect();
    assert_eq!(bench.take_all(), repeated);
}

#[test]
fn second_loss_is_repeated_before_the_timeout() {
    let mut bench = requester(1);
    bench.wait(micros(20));
    bench.deliver_data(2);
    assert_eq!(bench.take_all().len(), 16);
    // The response to READ 1 is lost again. A later response shows the loss, but the requester retransmits only after
    // the retransmission timeout.
    bench.wait(micros(1));
    bench.deliver_data(3);
    assert_eq!(bench.take_all(), []);
    bench.wait(micros(1000));
    assert_eq!(bench.take_all().len(), 16);
    assert_eq!(bench.ended(), []);
    // The implied NAK of the first loss has used up the only retry; that of the second loss uses up none. The next ACK
    // timeout fails the request.
    bench.wait(Duration::from_millis(68));
    assert_eq!(bench.ended()[0], (1, WcStatus::RetryExcErr));
}

#[test]
fn repeated_naks_use_one_retry_and_delay_no_timeout() {
    let mut bench = requester(1);
    let mut sent = 0;
    for number in 0..200 {
        bench.deliver_nak(1, NakCode::SEQUENCE);
        sent += bench.take_all().len();
        assert_eq!(bench.ended(), [], "NAK {number}");
        bench.wait(micros(300));
    }
    // The time between two retransmissions doubles, so 200 NAKs within 60 ms cause only 5 to 12 retransmissions.
    assert!((5 * 16..=12 * 16).contains(&sent), "{sent} packets");
    bench.wait(Duration::from_millis(8));
    assert_eq!(bench.ended()[0], (1, WcStatus::RetryExcErr));
}

#[test]
fn progress_restores_all_retries() {
    let mut bench = requester(1);
    for psn in 1..16 {
        bench.wait(Duration::from_millis(68));
        assert_eq!(bench.take(1), [(Operation::ReadRequest, psn)]);
        bench.take_all();
        bench.deliver_data(psn);
        assert_eq!(bench.ended(), [(psn.into(), WcStatus::Success)]);
    }
}
