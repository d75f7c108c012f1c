//! A campaign of random runs of reliable connections, in virtual time, over a wire that loses, delays, reorders and
//! duplicates packets.
//!
//! Every run checks its data, the order and number of completions, and that each atomic is executed once. A run may
//! fail only if, by the model of `exhaustion.rs`, one packet was lost more times in succession than there are retries.
//!
//! `HCA_RUNS` is the number of runs, and `HCA_FIRST` is the first seed. A run is determined by its seed. Therefore
//! `HCA_FIRST=SEED HCA_RUNS=1` repeats it, and so does `cargo xtask campaign hca --runs 1 --first SEED`.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use ib_hca::{AccessFlags, QpCap, SendOp, Wc, WcOpcode, WcStatus};
use ib_types::{Mtu, Psn};

use crate::exhaustion::Exhaustion;
use crate::pair::{Faults, Pair, Region, Rng, Wiring};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Send,
    Write,
    WriteImmediate,
    Read,
    CompareSwap,
    FetchAdd,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Send,
        Self::Write,
        Self::WriteImmediate,
        Self::Read,
        Self::CompareSwap,
        Self::FetchAdd,
    ];

    const fn is_atomic(self) -> bool {
        matches!(self, Self::CompareSwap | Self::FetchAdd)
    }

    const fn opcode(self) -> WcOpcode {
        match self {
            Self::Send => WcOpcode::Send,
            Self::Write | Self::WriteImmediate => WcOpcode::RdmaWrite,
            Self::Read => WcOpcode::RdmaRead,
            Self::CompareSwap => WcOpcode::CompSwap,
            Self::FetchAdd => WcOpcode::FetchAdd,
        }
    }
}

/// One cell of the matrix: a combination of operation, sizes and faults.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// The operation; `None` if operations alternate.
    kind: Option<Kind>,
    mtu: Mtu,
    size: usize,
    depth: usize,
    faults: [Faults; 2],
    delay: Duration,
    backlog: Duration,
    batches: Duration,
    nanos_per_packet: [u64; 2],
    retry_cnt: u8,
}

/// Removes the lowest digit from a number in mixed radix, and returns the digit.
fn digit(number: &mut u64, radix: usize) -> usize {
    let digit = *number % radix as u64;
    *number /= radix as u64;
    digit as usize
}

impl Cell {
    /// Returns the cell for a seed. Consecutive seeds visit all cells of the matrix.
    fn new(seed: u64, rng: &mut Rng) -> Self {
        // Number of combinations of operation and size. Each of four operations has four sizes, and so has the mix of
        // all six operations. Each of the two atomics has one size.
        const SHAPES: u64 = 22;
        const CELLS: u64 = SHAPES * 3 * 3 * 3 * 2 * 2 * 3;
        // Multiplication by a prime that does not divide the number of cells spreads few seeds over the whole matrix.
        let mut number = seed.wrapping_mul(3571) % CELLS;
        let shape = digit(&mut number, SHAPES as usize);
        let depth = [1, 16, 128][digit(&mut number, 3)];
        let loss = [0.001, 0.01, 0.05][digit(&mut number, 3)];
        let direction = digit(&mut number, 3);
        let late = [0.0, 0.02][digit(&mut number, 2)];
        let double = [0.0, 0.02][digit(&mut number, 2)];
        let (delay, jitter) = [(2, 0), (50, 100), (1000, 1000)][digit(&mut number, 3)];
        let (kind, size) = match shape {
            0..16 => (Some(Kind::ALL[shape / 4]), shape % 4),
            16..20 => (None, shape - 16),
            _ => (Some(Kind::ALL[shape - 16]), 0),
        };
        let mtu = if size >= 2 || rng.chance(0.5) { Mtu::B4096 } else { Mtu::B1024 };
        let faults = [0, 1].map(|from| Faults {
            loss: if direction == 1 - from { 0.0 } else { loss },
            double,
            late,
            late_by: Duration::from_micros([20, 3000][rng.below(2)]),
            jitter: Duration::from_micros(jitter),
        });
        Self {
            kind,
            mtu,
            size: [64, mtu.bytes(), 1 << 16, 1 << 20][size],
            depth,
            faults,
            delay: Duration::from_micros(delay),
            // The queueing delay of links is kept below the ACK timeout of 67 ms.
            backlog: Duration::from_micros([2, 50, 5000][rng.below(3)]),
            batches: Duration::from_nanos([1, 1, 50_000][rng.below(3)]),
            nanos_per_packet: [0, 1].map(|_| [0, 300, 4000][rng.below(3)]),
            // With only 2 retries some connections fail, as the model expects.
            retry_cnt: if rng.chance(0.9) { 7 } else { 2 },
        }
    }

    /// Returns the number of requests in a run: more than `depth`, and fewer for large sizes.
    const fn requests(&self) -> usize {
        match (self.depth, self.size) {
            (1, ..4097) => 50,
            (1, _) => 4,
            (_, ..4097) => 1500,
            (depth, 65536) => depth + 8,
            (depth, _) => depth + 1,
        }
    }
}

/// Result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcome {
    is_exhausted: bool,
    packets: u64,
    retransmitted: u64,
    nanos: u64,
}

/// Memory of a run. On both sides, each request has its own part of the memory; all atomics use the same word.
struct TestMemory {
    near: Region,
    far: Region,
    /// The payload pattern, from which request `n` takes `size` bytes at offset `n * STEP`.
    pattern: Vec<u8>,
    size: usize,
}

const STEP: usize = 24;

impl TestMemory {
    fn new(pair: &mut Pair, cell: &Cell, rng: &mut Rng) -> Self {
        let (count, size) = (cell.requests(), cell.size);
        let mut pattern = Vec::new();
        while pattern.len() < size + count * STEP {
            pattern.extend(rng.next().to_ne_bytes());
        }
        let near = pair.region(0, count * size, AccessFlags::ALL);
        let far = pair.region(1, count * size + 8, AccessFlags::ALL);
        let memory = Self { near, far, pattern, size };
        for number in 0..count {
            let region =
                if kind_of(cell, number) == Kind::Read { &memory.far } else { &memory.near };
            region
                .memory
                .write(number * size, memory.bytes(number))
                .expect("the range is within the memory");
        }
        memory
    }

    /// Returns the bytes that the request with the given number moves.
    fn bytes(&self, number: usize) -> &[u8] {
        &self.pattern[number * STEP..][..self.size]
    }

    fn operation(&self, kind: Kind, number: usize, atomics: u64) -> SendOp {
        let remote = self.far.remote(number * self.size);
        let word = self.far.remote(self.far.memory.len() - 8);
        match kind {
            Kind::Send => SendOp::Send { imm: None },
            Kind::Write => SendOp::Write { to: remote, imm: None },
            Kind::WriteImmediate => SendOp::Write { to: remote, imm: Some(number as u32) },
            Kind::Read => SendOp::Read { from: remote },
            Kind::CompareSwap => {
                SendOp::CompareSwap { at: word, compare: atomics, swap: atomics + 1 }
            }
            Kind::FetchAdd => SendOp::FetchAdd { at: word, add: 1 },
        }
    }
}

fn kind_of(cell: &Cell, number: usize) -> Kind {
    cell.kind.unwrap_or(Kind::ALL[(number * 5 + number / 7) % 6])
}

/// Runs a seed. Returns the outcome, or the rule that was broken.
fn run(seed: u64) -> Result<Outcome, String> {
    let mut rng = Rng::new(seed ^ 0x4c_0557);
    let cell = Cell::new(seed, &mut rng);
    run_cell(seed, &cell, &mut rng).map_err(|why| format!("seed {seed}: {why}\n{cell:?}"))
}

fn run_cell(seed: u64, cell: &Cell, rng: &mut Rng) -> Result<Outcome, String> {
    let mut pair = Pair::new(seed);
    (pair.faults, pair.delay, pair.backlog) = (cell.faults, cell.delay, cell.backlog);
    pair.batches = cell.batches;
    (pair.batches, pair.nanos_per_packet) = (cell.batches, cell.nanos_per_packet);
    let wiring = Wiring {
        mtu: cell.mtu,
        reads: 16,
        timeout: 14,
        retry_cnt: cell.retry_cnt,
        cap: QpCap { max_send_wr: 128, max_recv_wr: 512, ..QpCap::default() },
        ..Wiring::default()
    };
    let qps = pair.connect(&wiring);
    let memory = TestMemory::new(&mut pair, cell, rng);
    let model = Exhaustion::new(Psn::truncated(0xff_fff0), cell.mtu.bytes());
    let model = Rc::new(RefCell::new(model));
    let observed = Rc::clone(&model);
    pair.observer = Some(Box::new(move |from, fate, bytes| {
        observed.borrow_mut().observe(from == 0, fate, bytes);
    }));
    let count = cell.requests();
    let (mut posted, mut done, mut atomics) = (0, Vec::new(), 0);
    let end = pair.now + Duration::from_secs(600);
    while done.len() < posted || posted < count {
        while posted < count && posted - done.len() < cell.depth {
            let kind = kind_of(cell, posted);
            let slot = posted * memory.size;
            if kind == Kind::Send {
                pair.receive(1, qps[1], posted as u64, memory.far.data(slot, memory.size));
            } else if kind == Kind::WriteImmediate {
                pair.receive(1, qps[1], posted as u64, ib_hca::Data::None);
            }
            let length = if kind.is_atomic() { 8 } else { memory.size };
            let operation = memory.operation(kind, posted, atomics);
            atomics += u64::from(kind.is_atomic());
            pair.send(0, qps[0], posted as u64, operation, memory.near.data(slot, length));
            posted += 1;
        }
        let goes_on = pair.step();
        done.extend(pair.done(0));
        if done.iter().any(|wc| wc.status != WcStatus::Success) {
            break;
        }
        if !goes_on && done.len() < posted {
            return Err(format!("{} of {posted} requests have not completed", posted - done.len()));
        }
        if pair.now > end {
            return Err(format!(
                "{} of {count} requests have not completed within 600 s",
                count - done.len()
            ));
        }
    }
    let outcome = Outcome {
        is_exhausted: false,
        packets: pair.packets,
        retransmitted: pair.sides[0].hca.counters().retransmitted,
        nanos: pair.now.as_nanos(),
    };
    if let Some(failed) = done.iter().find(|wc| wc.status != WcStatus::Success) {
        let losses = model.borrow().losses();
        if failed.status == WcStatus::RetryExcErr && losses > u32::from(cell.retry_cnt) {
            return Ok(Outcome { is_exhausted: true, ..outcome });
        }
        let (status, number) = (failed.status, failed.wr_id);
        return Err(format!(
            "request {number} completes with {status:?} after {losses} consecutive losses"
        ));
    }
    pair.run();
    if !pair.done(0).is_empty() {
        return Err("a request has completed twice".into());
    }
    check(cell, &memory, &done, &pair.done(1), atomics)?;
    Ok(outcome)
}

/// Checks the completions and the data of a run in which every request has succeeded.
fn check(
    cell: &Cell,
    memory: &TestMemory,
    done: &[Wc],
    received: &[Wc],
    atomics: u64,
) -> Result<(), String> {
    let mut receives = received.iter();
    let mut before = 0_u64;
    for (number, wc) in done.iter().enumerate() {
        let kind = kind_of(cell, number);
        if (wc.wr_id, wc.opcode) != (number as u64, kind.opcode()) {
            return Err(format!("completion {number} is {wc:?}"));
        }
        let slot = number * memory.size;
        if matches!(kind, Kind::Send | Kind::WriteImmediate) {
            let (opcode, imm) = match kind {
                Kind::Send => (WcOpcode::Recv, None),
                _ => (WcOpcode::RecvRdmaWithImm, Some(number as u32)),
            };
            let expected = (number as u64, WcStatus::Success, opcode, memory.size as u32, imm);
            let found = receives.next();
            let found = found.map(|wc| (wc.wr_id, wc.status, wc.opcode, wc.byte_len, wc.imm_data));
            if found != Some(expected) {
                return Err(format!("receive of request {number} is {found:?}"));
            }
        }
        if kind.is_atomic() {
            let original = memory.near.bytes(slot, 8);
            if original != before.to_ne_bytes() {
                return Err(format!(
                    "atomic {number} has returned {original:?}, expected {before}"
                ));
            }
            before += 1;
            continue;
        }
        let region = if kind == Kind::Read { &memory.near } else { &memory.far };
        if region.bytes(slot, memory.size) != memory.bytes(number) {
            return Err(format!("request {number} has transferred wrong data"));
        }
    }
    if let Some(wc) = receives.next() {
        return Err(format!("a receive has completed twice: {wc:?}"));
    }
    let word = memory.far.bytes(memory.far.memory.len() - 8, 8);
    if word != atomics.to_ne_bytes() {
        return Err(format!("after {atomics} atomics, the word is {word:?}"));
    }
    Ok(())
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn requests_complete_unless_retries_are_exhausted() {
    let first = variable("HCA_FIRST").unwrap_or(0);
    let runs = variable("HCA_RUNS").unwrap_or(40);
    let (mut failures, mut exhausted, mut packets, mut retransmitted) = (Vec::new(), 0, 0, 0);
    for seed in first..first + runs {
        if runs > 1000 && (seed - first).is_multiple_of(1000) {
            eprintln!("seed {seed}");
        }
        match run(seed) {
            Ok(outcome) => {
                exhausted += u64::from(outcome.is_exhausted);
                packets += outcome.packets;
                retransmitted += outcome.retransmitted;
                if runs == 1 {
                    eprintln!("{outcome:?}");
                }
                if seed % 50 == 0 && runs <= 1000 {
                    assert_eq!(
                        run(seed),
                        Ok(outcome),
                        "seed {seed}: a second run has another result"
                    );
                }
            }
            Err(why) => {
                eprintln!("{why}");
                failures.push(seed);
            }
        }
    }
    eprintln!(
        "{runs} runs, {} failures, {exhausted} with exhausted retries; {packets} packets, \
         {retransmitted} requests retransmitted",
        failures.len()
    );
    assert_eq!(failures, [0; 0], "HCA_FIRST=SEED HCA_RUNS=1 repeats a run");
}
