//! Tests reliable connections over a wire that corrupts packets. The packets have no UDP checksum,
//! so that only the ICRC detects corruptions. Tests run in memory and in virtual time, and are
//! determined by their seeds.

use std::sync::Arc;

use ib_hca::{
    AccessFlags, CqId, Data, Hca, HcaConfig, Memory, QpCap, QpConnection, QpId, QpInitAttr, QpType,
    RemoteAddress, SendFlags, SendOp, SendWr, Sge, WcStatus,
};
use ib_types::rng::Rng;
use ib_types::{Guid, Mtu, PKey, Psn};
use ib_wire::packet::{RoceAddresses, RoceNetwork};

use super::icrc::{Headers, IcrcCheck, Tables};
use super::*;

/// Size of a block in bytes. A block is sent as packets of 1,024 bytes.
const BLOCK: usize = 4096;
/// Number of blocks that a run writes.
const BLOCKS: usize = 200;

const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

/// On average, one of this many packets is corrupted.
const CORRUPTION: u64 = 20;

struct Side {
    hca: Hca,
    cq: CqId,
    qp: QpId,
    memory: Arc<Memory>,
    key: u32,
}

fn route_from(side: usize) -> Route {
    route(ADDRESSES[side].into(), ADDRESSES[1 - side].into())
}

fn network(from: usize, identification: u16) -> RoceNetwork {
    RoceNetwork {
        addresses: RoceAddresses::V4 {
            source: ADDRESSES[from],
            destination: ADDRESSES[1 - from],
            identification,
            fragment: 0x4000,
        },
        source_port: 4791,
        destination_port: 4791,
    }
}

/// Returns two connected queue pairs. If `is_weak` is true, they also accept packets whose ICRC matches only an
/// identification that no sender of this module uses. Such packets have a weak route ([`Route::is_weak`]).
fn connected(is_weak: bool) -> [Side; 2] {
    let mut sides = [0, 1].map(|side: usize| {
        let config = HcaConfig::new(Guid(side as u64 + 1), vec![route_from(side).source]);
        let mut hca = Hca::new(config, [side as u8; 32]);
        let pd = hca.alloc_pd().unwrap();
        let cq = hca.create_cq(1024).unwrap();
        let cap = QpCap { max_send_wr: 256, ..QpCap::default() };
        let init = QpInitAttr { qp_type: QpType::Rc, send_cq: cq, recv_cq: cq, srq: None, cap };
        let qp = hca.create_qp(pd, &init).unwrap();
        let memory = Memory::zeroed(BLOCK * BLOCKS).unwrap();
        let range = (&memory, 0, memory.len());
        let mr = hca.reg_mr(pd, range, 0, AccessFlags::ALL).unwrap();
        let key = hca.key(mr).unwrap();
        Side { hca, cq, qp, memory, key }
    });
    let numbers = [0, 1].map(|at: usize| sides[at].hca.query_qp(sides[at].qp).unwrap().0);
    for (at, side) in sides.iter_mut().enumerate() {
        let connection = QpConnection {
            pkey: PKey::DEFAULT,
            access: AccessFlags::ALL,
            route: Route { is_weak, ..route_from(at) },
            path_mtu: Mtu::B1024,
            dest_qp_num: numbers[1 - at],
            rq_psn: Psn::truncated(5),
            sq_psn: Psn::truncated(5),
            max_dest_rd_atomic: 4,
            max_rd_atomic: 4,
            min_rnr_timer: 1,
            timeout: 10,
            retry_cnt: 7,
            rnr_retry: 7,
        };
        for attr in [connection.to_init(), connection.to_rtr(), connection.to_rts()] {
            side.hca.modify_qp(Instant::ZERO, side.qp, &attr).unwrap();
        }
    }
    sides
}

/// Changes a bit or a burst of eight bytes. Half of the corrupted packets get a matching ICRC for
/// an identification that no sender of this module uses.
fn corrupt(packet: &mut [u8], from: usize, rng: &mut Rng) {
    let end = packet.len() - ICRC;
    let at = rng.below(end);
    if rng.below(2) == 0 {
        packet[at] ^= 1 << rng.below(8);
    } else {
        for (byte, noise) in packet[at..end].iter_mut().zip(rng.next_u64().to_le_bytes()) {
            *byte ^= noise;
        }
    }
    if rng.below(2) == 0 {
        let identification = 64 + rng.below(65_536 - 64) as u16;
        let icrc = network(from, identification).icrc(&packet[..end]);
        packet[end..].copy_from_slice(&icrc.to_be_bytes());
    }
}

/// The counts of a test run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    corrupted: u64,
    /// Number of blocks that arrived corrupted although their writes succeeded.
    torn: usize,
    succeeded: usize,
}

/// Writes all blocks from one HCA to the other over a wire that corrupts packets. `is_weak` is passed to [`connected`].
fn run(seed: u64, is_weak: bool) -> Outcome {
    let (mut rng, mut outcome) = (Rng::new(seed), Outcome::default());
    let mut sides = connected(is_weak);
    let mut now = Instant::ZERO;
    for (number, block) in (0..BLOCKS).map(|number| (number, packet(number + 1, BLOCK))) {
        sides[0].memory.write(number * BLOCK, &block).unwrap();
        let (addr, key) = ((number * BLOCK) as u64, sides[0].key);
        let to = RemoteAddress { addr, rkey: sides[1].key };
        let data = Data::One(Sge { addr, length: BLOCK as u32, lkey: key });
        let op = SendOp::Write { to, imm: None };
        let flags = SendFlags { signaled: true, ..SendFlags::default() };
        let wr = SendWr { wr_id: number as u64, op, data, flags };
        let Side { hca, qp, .. } = &mut sides[0];
        hca.post_send(now, *qp, wr).unwrap();
    }
    let mut buffer = vec![0; MAX_PACKET + ICRC];
    let mut is_ended = false;
    while !is_ended {
        let mut moved = false;
        for from in [0, 1] {
            for batch in 0..16 {
                let Some(sent) = sides[from].hca.poll_transmit(now, &mut buffer) else { break };
                moved = true;
                let icrc = network(from, batch).icrc(&buffer[..sent.length]);
                buffer[sent.length..][..ICRC].copy_from_slice(&icrc.to_be_bytes());
                let packet = &mut buffer[..sent.length + ICRC];
                if rng.next_u64().is_multiple_of(CORRUPTION) {
                    outcome.corrupted += 1;
                    corrupt(packet, from, &mut rng);
                }
                let [source, destination] = [ADDRESSES[from], ADDRESSES[1 - from]];
                let headers = Headers::new(source.into(), destination.into(), 4791, 4791);
                let Some(icrc) = headers.check(Tables::get(), packet, batch) else { continue };
                let is_weak = matches!(icrc, IcrcCheck::ConsistentWithSomeId { .. });
                let back = Route { is_weak, ..route_from(1 - from) };
                let bytes = &packet[..sent.length];
                sides[1 - from].hca.handle(now, &back, bytes);
            }
        }
        for side in &mut sides {
            while let Some(wc) = side.hca.poll_cq(side.cq) {
                outcome.succeeded += usize::from(wc.status == WcStatus::Success);
                is_ended |= wc.status != WcStatus::Success;
            }
        }
        is_ended |= outcome.succeeded == BLOCKS;
        if !moved && !is_ended {
            let due = sides.iter().filter_map(|side| side.hca.poll_timeout()).min();
            now = due.expect("a queue pair that has work has a timer");
            sides.iter_mut().for_each(|side| side.hca.handle_timeout(now));
        }
    }
    let blocks = sides.each_ref().map(|side| side.memory.to_vec(0, BLOCK * BLOCKS).unwrap());
    let pairs = blocks[0].chunks(BLOCK).zip(blocks[1].chunks(BLOCK));
    outcome.torn = pairs.take(outcome.succeeded).filter(|(sent, got)| sent != got).count();
    outcome
}

#[test]
fn corruptions_between_hcas_of_this_project_are_detected() {
    let runs = std::env::var("CORRUPTION_RUNS").map_or(20, |runs| runs.parse().unwrap());
    let mut corrupted = 0;
    for seed in 0..runs {
        let outcome = run(seed, false);
        assert_eq!((outcome.torn, outcome.succeeded), (0, BLOCKS), "seed {seed}: {outcome:?}");
        corrupted += outcome.corrupted;
    }
    assert!(corrupted > runs * BLOCKS as u64 / CORRUPTION, "{corrupted} packets were corrupted");
}

/// The identifications that other senders use are not known. Therefore a corruption is undetected
/// if its ICRC matches any identification.
#[test]
fn corrupted_packets_of_others_may_tear_blocks() {
    let torn: usize = (0..20).map(|seed| run(seed, true).torn).sum();
    assert!(torn > 20, "{torn} blocks torn");
}
