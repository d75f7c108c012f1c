//! An independent model of retry exhaustion. From the packets on the wire alone, the model counts the consecutive
//! losses of the oldest unacknowledged packet.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::Psn;
use ib_wire::packet::{Acknowledgement, Aeth, Bth, Header, Operation, Reth};

use crate::pair::Fate;

/// The requests of one direction, as observed on the wire. The index of a packet is its distance from the first PSN.
#[derive(Debug)]
pub(crate) struct Exhaustion {
    first: Psn,
    mtu: u32,
    /// Outstanding responses with data: the index range of each READ or atomic (end exclusive).
    reads: BTreeMap<i32, i32>,
    /// The index of the oldest packet without a response.
    oldest: i32,
    /// Number of consecutive losses of the oldest packet or its response. If a packet in `early` becomes the oldest,
    /// its earlier loss is counted.
    losses: u32,
    /// Indices of packets after `oldest`. The last transmission of each was lost, or arrived out of order and was
    /// dropped by its receiver.
    early: BTreeSet<i32>,
    /// The index of the request packet that the responder expects.
    expected: i32,
    /// Maximum of `losses` so far.
    pub(crate) most_losses: u32,
}

impl Exhaustion {
    pub(crate) fn new(first: Psn, mtu: usize) -> Self {
        let (reads, early) = (BTreeMap::new(), BTreeSet::new());
        Self {
            first,
            mtu: mtu as u32,
            reads,
            oldest: 0,
            losses: 0,
            early,
            expected: 0,
            most_losses: 0,
        }
    }

    /// Processes a packet from or to the requester.
    pub(crate) fn observe(&mut self, is_request: bool, fate: Fate, bytes: &[u8]) {
        let Some((bth, rest)) = bytes.split_first_chunk() else { return };
        let bth = Bth::parse(bth);
        let Some(operation) = bth.opcode.operation() else { return };
        let index = bth.psn.distance_from(self.first);
        if is_request == operation.is_response() {
            return;
        }
        let header = |header: Header| {
            let at = bth.opcode.headers().and_then(|headers| headers.offset(header));
            at.and_then(|at| rest.get(at..))
        };
        if is_request {
            let reth = header(Header::Reth).and_then(|bytes| bytes.first_chunk()).map(Reth::parse);
            self.request(operation, index, reth.map_or(0, |reth| reth.dma_length), fate);
            return;
        }
        let aeth = header(Header::Aeth).and_then(|bytes| bytes.first_chunk()).map(Aeth::parse);
        if operation != Operation::Acknowledge && index > self.oldest {
            self.early.insert(index);
        }
        // The index of the first packet that the response does not acknowledge.
        let reached = match operation {
            Operation::Acknowledge => {
                let is_ack = aeth
                    .is_some_and(|aeth| matches!(aeth.syndrome.decode(), Acknowledgement::Ack(_)));
                // A NAK acknowledges all packets before its PSN.
                self.before_read(if is_ack { index + 1 } else { index })
            }
            _ if self.before_read(index) == index => index + 1,
            _ => self.before_read(index),
        };
        match fate {
            Fate::Lost if reached > self.oldest => self.lose(),
            Fate::Lost => {}
            Fate::Delivered => self.reach(reached),
        }
    }

    fn request(&mut self, operation: Operation, index: i32, length: u32, fate: Fate) {
        let count = match operation {
            Operation::ReadRequest => length.div_ceil(self.mtu).max(1) as i32,
            Operation::CompareSwap | Operation::FetchAdd => 1,
            _ => 0,
        };
        if count > 0 {
            self.reads.entry(index).or_insert(index + count);
        }
        if fate == Fate::Lost && index == self.oldest {
            self.lose();
        } else if fate == Fate::Lost || index > self.expected {
            self.early.insert(index);
        } else {
            self.early.remove(&index);
        }
        if fate == Fate::Delivered && index == self.expected {
            self.expected = index + count.max(1);
        }
    }

    /// Returns `index`, but at most the index of the first packet whose response data is outstanding.
    fn before_read(&self, index: i32) -> i32 {
        let mut awaited = self.reads.iter().filter(|(_, end)| **end > self.oldest);
        awaited.next().map_or(index, |(first, _)| index.min((*first).max(self.oldest)))
    }

    fn lose(&mut self) {
        self.losses += 1;
        self.most_losses = self.most_losses.max(self.losses);
    }

    fn reach(&mut self, index: i32) {
        if index > self.oldest {
            self.early = self.early.split_off(&index);
            (self.oldest, self.losses) = (index, self.early.contains(&index).into());
            while self.reads.first_key_value().is_some_and(|(_, end)| *end <= index) {
                self.reads.pop_first();
            }
        }
    }

    /// Returns the number of consecutive losses of the oldest unacknowledged packet.
    pub(crate) const fn losses(&self) -> u32 {
        self.losses
    }
}

#[test]
fn model_counts_losses_of_the_oldest_packet_only() {
    use ib_wire::packet::{Opcode, Transport};
    let packet = |operation, psn: u32, tail: &[u8]| {
        let opcode = Opcode::new(Transport::Rc, operation).expect("RC has the operation");
        let psn = Psn::truncated(psn);
        [&Bth { opcode, psn, ..Bth::default() }.to_bytes()[..], tail].concat()
    };
    let reth = |length: u32| [&[0; 12][..], &length.to_be_bytes()].concat();
    let read = |psn, length| packet(Operation::ReadRequest, psn, &reth(length));
    let response = |psn| packet(Operation::ReadResponseMiddle, psn, &[]);
    let mut model = Exhaustion::new(Psn::truncated(0), 256);
    model.observe(true, Fate::Delivered, &read(0, 512));
    model.observe(true, Fate::Lost, &read(2, 256));
    assert_eq!(model.losses(), 0, "the loss of a packet after the oldest one is not counted yet");
    model.observe(false, Fate::Lost, &response(0));
    model.observe(true, Fate::Lost, &read(0, 512));
    model.observe(false, Fate::Delivered, &response(1));
    assert_eq!(model.losses(), 2, "a response out of order does not reset the number of losses");
    model.observe(false, Fate::Delivered, &response(0));
    assert_eq!(
        (model.losses(), model.most_losses),
        (1, 2),
        "the response that arrived out of order is now the oldest, and counts as lost"
    );
    model.observe(false, Fate::Lost, &response(1));
    assert_eq!(model.losses(), 2);
    model.observe(false, Fate::Delivered, &response(1));
    // This ACK of a later PSN does not complete READ 2, whose response data has not arrived.
    model.observe(false, Fate::Delivered, &packet(Operation::Acknowledge, 5, &[0x1f, 0, 0, 1]));
    assert_eq!(model.losses(), 1, "the earlier loss of READ 2, now the oldest packet, is counted");
    model.observe(true, Fate::Lost, &read(2, 256));
    assert_eq!(model.losses(), 2);
}
