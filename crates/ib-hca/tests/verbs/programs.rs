//! Random programs of verbs. They are run over a wire with faults, and their results are compared with a model.
//!
//! In the model, the requests of a queue pair take effect one after the other. If a request changes memory that an
//! earlier READ reads, it has a fence, as verbs require.

use std::collections::VecDeque;
use std::time::Duration;

use ib_hca::{
    AccessFlags, Data, QpCap, QpState, SendFlags, SendOp, SendWr, Wc, WcOpcode, WcStatus,
};
use ib_types::Mtu;

use crate::pair::{Faults, Pair, Region, Rng, Wiring};

/// Size in bytes of the memory that each side exposes to the other side.
const OFFERED: usize = 40_000;

/// Size in bytes of the private memory of each side.
const OWN: usize = 60_000;

/// Size in bytes of the buffer of each receive.
const ROOM: usize = 6000;

/// Expected memory contents and completions after the program of one side.
struct Model {
    /// Contents of the other side's exposed memory.
    offered: Vec<u8>,
    /// Contents of the private memory of the side that runs the program.
    own: Vec<u8>,
    /// Completions of requests on the side that runs the program.
    sent: Vec<(u64, WcStatus, Option<WcOpcode>)>,
    /// Completions of receives on the other side.
    received: Vec<(u64, WcOpcode, u32, Option<u32>)>,
    /// Contents of the buffers of the other side's receives.
    rooms: Vec<u8>,
}

/// The requests and receives that one side of the pair posts in a run.
struct Program {
    requests: VecDeque<SendWr>,
    receives: usize,
    model: Model,
    /// True if the program ends with request 1000, which fails, and request 1001, which is flushed. Request 1000 is
    /// posted after all requests before it have completed, because a failed responder sends no further responses.
    fails: bool,
    /// ID of the last request before request 1000.
    last: u64,
}

/// Memory regions that the requests of one side access.
struct Regions {
    own: Region,
    offered: Region,
    rooms: Region,
}

fn at(rng: &mut Rng, size: usize, length: usize) -> usize {
    rng.below(size - length + 1)
}

fn length(rng: &mut Rng, most: usize) -> usize {
    match rng.below(6) {
        0 => 0,
        1 => 1 + rng.below(16),
        2 => rng.below(300),
        3 => 256 << rng.below(5),
        _ => rng.below(most),
    }
    .min(most)
}

/// Returns 8 bytes in native byte order as a number.
fn number(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("the caller passes 8 bytes"))
}

fn program(rng: &mut Rng, regions: &Regions) -> Program {
    let mut model = Model {
        offered: regions.offered.bytes(0, OFFERED),
        own: regions.own.bytes(0, OWN),
        sent: Vec::new(),
        received: Vec::new(),
        rooms: Vec::new(),
    };
    let (mut requests, mut receives) = (VecDeque::new(), 0);
    let mut has_read = false;
    let count = 1 + rng.below(25);
    let fails = rng.chance(0.1);
    for wr_id in 0..count as u64 {
        let imm = rng.chance(0.3).then(|| rng.next() as u32);
        let flags = SendFlags {
            signaled: rng.chance(0.5) || fails && wr_id + 1 == count as u64,
            solicited: rng.chance(0.1),
            fence: has_read || rng.chance(0.1),
        };
        let kind = rng.below(10);
        let (op, data, opcode) = match kind {
            0..=3 => {
                let length = length(rng, ROOM);
                let from = at(rng, OWN / 2, length);
                let bytes = model.own[from..from + length].to_vec();
                let id = receives as u64;
                model.received.push((id, WcOpcode::Recv, length as u32, imm));
                model.rooms.resize(receives * ROOM, 0);
                model.rooms.extend(&bytes);
                receives += 1;
                let pieces = pieces(rng, regions, from, length, &bytes);
                (SendOp::Send { imm }, pieces, WcOpcode::Send)
            }
            4 | 5 => {
                let length = length(rng, 20_000);
                let (from, to) = (at(rng, OWN / 2, length), at(rng, OFFERED, length));
                let bytes = model.own[from..from + length].to_vec();
                model.offered[to..to + length].copy_from_slice(&bytes);
                if imm.is_some() {
                    let id = receives as u64;
                    model.received.push((id, WcOpcode::RecvRdmaWithImm, length as u32, imm));
                    model.rooms.resize(receives * ROOM, 0);
                    receives += 1;
                }
                let to = regions.offered.remote(to);
                let pieces = pieces(rng, regions, from, length, &bytes);
                (SendOp::Write { to, imm }, pieces, WcOpcode::RdmaWrite)
            }
            6 | 7 => {
                let length = length(rng, 20_000);
                let (from, to) = (at(rng, OFFERED, length), OWN / 2 + at(rng, OWN / 2, length));
                let bytes = model.offered[from..from + length].to_vec();
                model.own[to..to + length].copy_from_slice(&bytes);
                has_read = true;
                let from = regions.offered.remote(from);
                (SendOp::Read { from }, regions.own.data(to, length), WcOpcode::RdmaRead)
            }
            _ => {
                let offset = 8 * rng.below(OFFERED / 8);
                let to = OWN / 2 + at(rng, OWN / 2, 8);
                let before = number(&model.offered[offset..offset + 8]);
                model.own[to..to + 8].copy_from_slice(&before.to_ne_bytes());
                has_read = true;
                let remote = regions.offered.remote(offset);
                let (after, op, opcode) = if kind == 8 {
                    let add = rng.next();
                    let op = SendOp::FetchAdd { at: remote, add };
                    (before.wrapping_add(add), op, WcOpcode::FetchAdd)
                } else {
                    let compare = if rng.chance(0.5) { before } else { rng.next() };
                    let swap = rng.next();
                    let after = if compare == before { swap } else { before };
                    let op = SendOp::CompareSwap { at: remote, compare, swap };
                    (after, op, WcOpcode::CompSwap)
                };
                model.offered[offset..offset + 8].copy_from_slice(&after.to_ne_bytes());
                (op, regions.own.data(to, 8), opcode)
            }
        };
        if flags.signaled {
            model.sent.push((wr_id, WcStatus::Success, Some(opcode)));
        }
        requests.push_back(SendWr { wr_id, op, data, flags });
    }
    if fails {
        // Request 1000 fails because of its invalid R_Key. Request 1001 is flushed.
        let mut to = regions.offered.remote(0);
        to.rkey ^= 0x100;
        for wr_id in [1000, 1001] {
            let op = SendOp::Write { to, imm: None };
            let (data, flags) = (regions.own.data(0, 10), SendFlags::default());
            requests.push_back(SendWr { wr_id, op, data, flags });
        }
        model.sent.push((1000, WcStatus::RemAccessErr, None));
        model.sent.push((1001, WcStatus::WrFlushErr, None));
    }
    Program { requests, receives, model, fails, last: count as u64 - 1 }
}

/// Returns the data of a request: in one SGE, in several SGEs, or inline.
fn pieces(rng: &mut Rng, regions: &Regions, from: usize, length: usize, bytes: &[u8]) -> Data {
    match rng.below(3) {
        0 if length <= 256 => Data::Inline(bytes.into()),
        1 => {
            let (mut start, end, mut sges) = (from, from + length, Vec::new());
            while start < end && sges.len() < 3 {
                let part = 1 + rng.below(end - start);
                sges.push(regions.own.sge(start, part));
                start += part;
            }
            sges.push(regions.own.sge(start, end - start));
            Data::Many(sges.into())
        }
        _ => regions.own.data(from, length),
    }
}

fn regions(pair: &mut Pair, rng: &mut Rng, side: usize) -> Regions {
    let own = pair.region(side, OWN, AccessFlags::LOCAL_WRITE);
    let offered = pair.region(1 - side, OFFERED, AccessFlags::ALL);
    let rooms = pair.region(1 - side, 40 * ROOM, AccessFlags::LOCAL_WRITE);
    for region in [&own, &offered] {
        let bytes: Vec<u8> = (0..region.memory.len()).map(|_| rng.next() as u8).collect();
        region.memory.write(0, &bytes).expect("the range is within the memory");
    }
    Regions { own, offered, rooms }
}

/// Runs the programs of a seed. Returns all observable results, so that two runs can be compared.
pub(crate) fn run(seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed ^ 0x70_7067);
    let mut pair = Pair::new(seed);
    let most = [0.0, 0.01, 0.03, 0.07][rng.below(4)];
    let faults = Faults { loss: most, double: most, late: most * 2.0, ..Faults::default() };
    pair.faults = [faults; 2];
    let wiring = Wiring {
        mtu: Mtu::ALL[rng.below(5)],
        reads: 1 + rng.below(4) as u8,
        cap: QpCap { max_send_wr: 1 + rng.below(30) as u32, max_recv_wr: 64, ..QpCap::default() },
        // The ACK timeout is 4.096 µs · 2^7 = 524 µs.
        timeout: 7,
        min_rnr_timer: 1 + rng.below(5) as u8,
        ..Wiring::default()
    };
    let qps = pair.connect(&wiring);
    let regions = [0, 1].map(|side| regions(&mut pair, &mut rng, side));
    let mut programs = [0, 1].map(|side| program(&mut rng, &regions[side]));
    // If a request fails, the receives that the other side's program needs are flushed. Therefore the other side gets
    // an empty program.
    if programs[0].fails || programs[1].fails {
        let quiet = usize::from(programs[0].fails);
        programs[quiet] = Program {
            requests: VecDeque::new(),
            receives: 0,
            model: Model {
                offered: regions[quiet].offered.bytes(0, OFFERED),
                own: regions[quiet].own.bytes(0, OWN),
                sent: Vec::new(),
                received: Vec::new(),
                rooms: Vec::new(),
            },
            fails: false,
            last: 0,
        };
    }
    let mut posted = [0, 0];
    loop {
        for side in [0, 1] {
            let program = &mut programs[side];
            // Each iteration of the outer loop posts a random number of receives.
            while posted[side] < program.receives && rng.chance(0.7) {
                let data = regions[side].rooms.data(posted[side] * ROOM, ROOM);
                pair.receive(1 - side, qps[1 - side], posted[side] as u64, data);
                posted[side] += 1;
            }
            while let Some(wr) = program.requests.front()
                && rng.chance(0.8)
                && pair.state_of(side, qps[side]) == QpState::Rts
                && (wr.wr_id != 1000 || is_done(&pair.sides[side].completions, program.last))
            {
                let now = pair.now;
                if pair.sides[side].hca.post_send(now, qps[side], wr.clone()).is_err() {
                    break;
                }
                program.requests.pop_front();
            }
        }
        let is_posted = (0..2).all(|side| {
            let program = &programs[side];
            let ended = pair.state_of(side, qps[side]) != QpState::Rts;
            (program.requests.is_empty() || ended) && posted[side] == program.receives
        });
        let steps = 1 + rng.below(4);
        let goes_on = (0..steps).all(|_| pair.step());
        if is_posted && !goes_on {
            break;
        }
        if !goes_on {
            pair.now += Duration::from_micros(1);
        }
    }
    pair.run();
    let mut seen = vec![pair.packets, pair.now.as_nanos()];
    let done = [pair.done(0), pair.done(1)];
    for side in [0, 1] {
        check(seed, side, &programs[side], &regions[side], &done);
    }
    for wc in done.iter().flatten() {
        seen.extend([wc.wr_id, wc.status as u64, wc.byte_len.into()]);
    }
    seen
}

/// Returns true if a request has completed.
fn is_done(completions: &[Wc], wr_id: u64) -> bool {
    let is_receive = |wc: &Wc| matches!(wc.opcode, WcOpcode::Recv | WcOpcode::RecvRdmaWithImm);
    completions.iter().any(|wc| wc.wr_id == wr_id && !is_receive(wc))
}

fn check(seed: u64, side: usize, program: &Program, regions: &Regions, done: &[Vec<Wc>; 2]) {
    let is_receive = |wc: &&Wc| matches!(wc.opcode, WcOpcode::Recv | WcOpcode::RecvRdmaWithImm);
    let model = &program.model;
    let sent: Vec<_> = done[side]
        .iter()
        .filter(|wc| !is_receive(wc))
        .map(|wc| {
            let opcode = (wc.status == WcStatus::Success).then_some(wc.opcode);
            // The NAK of request 1000 may be lost. The failed responder does not repeat the NAK, so the requester runs
            // out of retries.
            let is_refused = wc.wr_id == 1000 && wc.status == WcStatus::RetryExcErr;
            let status = if is_refused { WcStatus::RemAccessErr } else { wc.status };
            (wc.wr_id, status, opcode)
        })
        .collect();
    // The completion of request 1001 is missing if request 1000 failed before request 1001 was posted: requests are
    // posted only while the QP is in RTS.
    let expected = match sent.len() + 1 == model.sent.len() && program.fails {
        true => &model.sent[..sent.len()],
        false => &model.sent[..],
    };
    assert_eq!(sent, expected, "seed {seed} side {side}");
    let received: Vec<_> = done[1 - side]
        .iter()
        .filter(is_receive)
        .filter(|wc| wc.status == WcStatus::Success)
        .map(|wc| (wc.wr_id, wc.opcode, wc.byte_len, wc.imm_data))
        .collect();
    assert_eq!(received, model.received, "seed {seed} side {side}");
    let same = |found: Vec<u8>, expected: &[u8], what: &str| {
        let differs = found.iter().zip(expected).position(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed} side {side}: {what}");
    };
    same(regions.offered.bytes(0, OFFERED), &model.offered, "offered memory");
    same(regions.own.bytes(0, OWN), &model.own, "own memory");
    same(regions.rooms.bytes(0, model.rooms.len()), &model.rooms, "receives");
}
