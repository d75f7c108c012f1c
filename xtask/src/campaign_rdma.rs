//! `ibfabric rdma` between two network namespaces over an impaired wire. The parameters are those of the `ib-hca`
//! campaign, but with real processes and sockets.
//!
//! The requester retries seven times. So a request fails only if one of its packets, or the response, is lost eight
//! times in succession. At 5 % loss in both directions, the probability of this is about 10^-8. So a failed run shows
//! an error of ibfabric.
//!
//! The seed determines the command and the impairment of a run. It does not determine the times at which packets are
//! sent.

use std::time::Duration;

use ib_types::rng::Rng;
use interop::Running as Program;

use crate::running::Running;
use crate::wire::{ADDRESSES, Impairment, Wire};
use crate::{TaskResult, release_binary};

type Failed = Box<dyn std::error::Error>;

/// Time limit of a run.
const LIMIT: Duration = Duration::from_secs(300);

/// The parameters that a seed selects for a run.
#[derive(Debug)]
struct Cell {
    /// The operation of `bw`; `None` if the run uses `ping`, which compares the data of READs and WRITEs.
    operation: Option<&'static str>,
    size: usize,
    depth: usize,
    impairment: [Impairment; 2],
}

/// Returns true if the operation is an atomic operation on 8 bytes.
fn is_atomic(operation: &str) -> bool {
    matches!(operation, "fetch-add" | "compare-swap")
}

fn pick<T: Copy>(number: &mut u64, of: &[T]) -> T {
    let digit = *number % of.len() as u64;
    *number /= of.len() as u64;
    of[digit as usize]
}

impl Cell {
    /// Returns the parameters that the seed selects. Consecutive seeds select very different parameters.
    fn new(seed: u64) -> Self {
        const CELLS: u64 = 8 * 4 * 3 * 3 * 3 * 2 * 2 * 3;
        let mut number = seed.wrapping_mul(1_567) % CELLS;
        const OPERATIONS: [Option<&str>; 8] = [
            Some("read"),
            Some("write"),
            Some("send"),
            Some("write-imm"),
            Some("fetch-add"),
            Some("compare-swap"),
            Some("read"),
            None,
        ];
        let operation = pick(&mut number, &OPERATIONS);
        let size = pick(&mut number, &[64, 4096, 1 << 16, 1 << 20]);
        let size = if operation.is_some_and(is_atomic) { 8 } else { size };
        let depth = pick(&mut number, &[1, 16, 128]);
        let loss = pick(&mut number, &[0.001, 0.01, 0.05]);
        let directions = pick(&mut number, &[[true, true], [true, false], [false, true]]);
        let late = pick(&mut number, &[0.0, 0.02]);
        let double = pick(&mut number, &[0.0, 0.02]);
        let micros = Duration::from_micros;
        let (delay, jitter) = pick(
            &mut number,
            &[(0, 0), (100, 200), (1000, 1000)].map(|(a, b)| (micros(a), micros(b))),
        );
        let impairment = directions.map(|loses| Impairment {
            loss: if loses { loss } else { 0.0 },
            corruption: 0.0,
            double,
            late,
            late_by: micros(3000),
            delay,
            jitter,
        });
        Self { operation, size, depth, impairment }
    }

    /// Returns the command-line arguments of the client.
    fn arguments(&self) -> Vec<String> {
        let (subcommand, count) = match (self.operation, self.depth, self.size) {
            (None, ..) => ("ping", 100),
            (_, 1, ..4097) => ("bw", 200),
            (_, 1, _) => ("bw", 10),
            (_, _, ..4097) => ("bw", 3000),
            (_, depth, 65536) => ("bw", 2 * depth),
            (_, depth, _) => ("bw", depth.div_ceil(2)),
        };
        let mut arguments: Vec<String> =
            ["rdma", subcommand, ADDRESSES[1], "--from", ADDRESSES[0]].map(Into::into).into();
        let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        match self.operation {
            None => {
                option("--count", count.to_string());
                option("--size", self.size.min(65_535).to_string());
            }
            Some(operation) => {
                option("--op", operation.to_owned());
                option("--size", self.size.to_string());
                option("--tx-depth", self.depth.to_string());
                option("--iters", count.max(self.depth).to_string());
            }
        }
        arguments
    }
}

/// Runs the seeds. Fails if one of them fails.
pub(crate) fn run(first: u64, runs: u64) -> TaskResult {
    let binary = release_binary()?;
    let mut failures = Vec::new();
    for seed in first..first + runs {
        let cell = Cell::new(seed);
        match run_cell(&binary, seed, &cell) {
            Ok(line) => eprintln!("seed {seed}: {line}"),
            Err(why) => {
                eprintln!("seed {seed}: FAILED: {why}\n{cell:?}");
                failures.push(seed);
            }
        }
    }
    eprintln!(
        "{runs} runs, {} failures {failures:?}; `cargo xtask campaign rdma --runs 1 --first SEED` repeats a run",
        failures.len()
    );
    if failures.is_empty() { Ok(()) } else { Err("a run over an impaired wire failed".into()) }
}

fn run_cell(binary: &std::path::Path, seed: u64, cell: &Cell) -> Result<String, Failed> {
    let mut wire = Wire::new(9000, cell.impairment, Rng::new(seed).next_u64())?;
    let mut server = wire.command(1, binary);
    server.args(["rdma", "serve", "--listen", ADDRESSES[1]]);
    if cell.operation.is_none() {
        server.arg("--rping");
    }
    let server = Running::ready(&mut server)?;
    let mut client = wire.command(0, binary);
    client.args(cell.arguments());
    let done = Program::start(client)?.wait(LIMIT)?;
    drop(server);
    let [there, back] = wire.stop();
    let arguments = cell.arguments()[1..].join(" ");
    let lost = format!(
        "{} and {} packets lost of {} and {}",
        there.lost,
        back.lost,
        there.passed + there.lost,
        back.passed + back.lost
    );
    if !done.success() {
        return Err(
            format!("{arguments}: status {}: {}; {lost}", done.status, done.output.trim()).into()
        );
    }
    let figures = done.output.lines().last().unwrap_or_default().split_whitespace();
    let figures = figures.collect::<Vec<_>>().join(" ");
    Ok(format!("{arguments}: {figures}; {lost}; {:.1} s", done.elapsed.as_secs_f64()))
}
