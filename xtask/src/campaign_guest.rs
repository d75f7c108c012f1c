//! READs between the kernel's soft RoCE in a Linux guest and `ibfabric rdma`, over an impaired wire.
//!
//! In half of the runs, the kernel is the requester. `ping` and `rping` compare the data: the server READs the client's
//! data and WRITEs it back. The perftest programs keep many READs outstanding.

use std::time::Duration;

use ib_types::rng::Rng;
use interop::guest::{BESIDE_V4, GUEST_V4};
use interop::{BootError, Guest, GuestOptions, Running as Program, TAP};

use crate::wire::{Impairment, Wire};
use crate::{TaskResult, release_binary};

type Failed = Box<dyn std::error::Error>;

/// The MTU of the link. It results in a path MTU of 4096.
const MTU: u32 = 9000;

/// Time limit of a run. It is long, because soft RoCE waits about a second for each lost packet. At 5 % loss, 101 READs
/// of 64 KiB lose about 150 packets.
const LIMIT: Duration = Duration::from_secs(600);
const LISTENS: Duration = Duration::from_secs(20);

/// Option of `ibfabric rdma`. It is needed because soft RoCE sends IPv4 packets without a UDP checksum.
const ZERO_CHECKSUM: &str = "--allow-zero-checksum";

/// The pair of programs that a run uses.
#[derive(Clone, Copy, Debug)]
enum Programs {
    /// `rdma ping` with a server in the guest, or `rping -c` in the guest with ibfabric's server.
    Ping,
    /// `rdma bw --op read` with a server in the guest, or `ib_read_bw` in the guest with ibfabric's server.
    Bandwidth,
}

/// The parameters that a seed selects for a run.
#[derive(Debug)]
struct Cell {
    programs: Programs,
    /// True if the kernel is the requester of the READs.
    kernel_reads: bool,
    size: u32,
    depth: u32,
    /// The impairment of packets that the guest sends, and of packets that ibfabric sends.
    impairment: [Impairment; 2],
}

fn pick<T: Copy>(number: &mut u64, of: &[T]) -> T {
    let digit = *number % of.len() as u64;
    *number /= of.len() as u64;
    of[digit as usize]
}

impl Cell {
    /// Returns the parameters that the seed selects. Consecutive seeds select very different parameters.
    fn new(seed: u64) -> Self {
        const CELLS: u64 = 2 * 2 * 3 * 3 * 3 * 3;
        let mut number = seed.wrapping_mul(77) % CELLS;
        let kernel_reads = pick(&mut number, &[true, false]);
        let programs = pick(&mut number, &[Programs::Bandwidth, Programs::Ping]);
        let loss = pick(&mut number, &[0.01, 0.001, 0.05]);
        let directions = pick(&mut number, &[[true, true], [true, false], [false, true]]);
        let depth = pick(&mut number, &[16, 1, 128]);
        let size = pick(&mut number, &[4096, 64, 65_536]);
        let impairment = directions.map(|loses| Impairment {
            loss: if loses { loss } else { 0.0 },
            ..Impairment::default()
        });
        Self { programs, kernel_reads, size, depth, impairment }
    }

    /// Returns the number of READs or pings of a run.
    const fn count(&self) -> u32 {
        match (self.programs, self.size) {
            (Programs::Ping, _) => 100,
            (_, 65_536) => 100 + self.depth,
            _ => 1000,
        }
    }

    /// Returns the options for the number of READs, their size, and how many are outstanding at a time. perftest and
    /// `rdma bw` have the same options.
    fn measure(&self) -> [String; 6] {
        let words = ["-n", "-s", "-t"].map(str::to_owned);
        let [n, s, t] = words;
        [n, self.count().to_string(), s, self.size.to_string(), t, self.depth.to_string()]
    }

    /// Returns the options for the number of pings and their size. The size is at most what `rping` permits.
    fn pings(&self) -> [String; 4] {
        let size = self.size.min(65_000).to_string();
        ["-C".to_owned(), self.count().to_string(), "-S".to_owned(), size]
    }
}

/// Runs all seeds with one guest. Fails if the run of a seed fails. Does nothing if no guest can run.
pub(crate) fn run(first: u64, runs: u64) -> TaskResult {
    let binary = release_binary()?;
    let guest = match Guest::boot(&GuestOptions { mtu: MTU, ..GuestOptions::default() }) {
        Ok(guest) => guest,
        Err(BootError::Unavailable(why)) => {
            eprintln!("skipped: {why}");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let mut failures = Vec::new();
    for seed in first..first + runs {
        let cell = Cell::new(seed);
        match run_cell(&guest, &binary, seed, &cell) {
            Ok(line) => eprintln!("seed {seed}: {line}"),
            Err(why) => {
                eprintln!("seed {seed}: FAILED: {why}\n{cell:?}");
                failures.push(seed);
            }
        }
    }
    eprintln!("{runs} runs, {} failures {failures:?}", failures.len());
    if failures.is_empty() { Ok(()) } else { Err("a READ failed over an impaired wire".into()) }
}

fn run_cell(
    guest: &Guest,
    binary: &std::path::Path,
    seed: u64,
    cell: &Cell,
) -> Result<String, Failed> {
    let (theirs, own) = (GUEST_V4.to_string(), BESIDE_V4.to_string());
    let ends = ((guest.namespace(), TAP), (&own[..], MTU));
    let mut wire = Wire::to_guest(ends.0, ends.1, cell.impairment, Rng::new(seed).next_u64())?;
    let mut ours = wire.command(0, binary);
    ours.arg("rdma");
    // The requester of the READs is the server of a ping, or the client of perftest. It runs in the guest if
    // `kernel_reads` is true.
    let guest_serves = match cell.programs {
        Programs::Ping => cell.kernel_reads,
        Programs::Bandwidth => !cell.kernel_reads,
    };
    let done = if guest_serves {
        let (command, port) = match cell.programs {
            Programs::Ping => ("rping -s -a 0.0.0.0 -S 65000".to_owned(), 7174),
            Programs::Bandwidth => (format!("ib_read_bw -R {}", cell.measure().join(" ")), 18515),
        };
        let server = guest.start(&command)?;
        guest.await_listener(port, LISTENS)?;
        match cell.programs {
            Programs::Ping => ours.args(["ping", &theirs, "--from", &own]).args(cell.pings()),
            Programs::Bandwidth => ours
                .args(["bw", &theirs, "--from", &own, "--perftest", "--op", "read"])
                .args(cell.measure()),
        };
        ours.arg(ZERO_CHECKSUM);
        let done = Program::start(ours)?.wait(LIMIT)?;
        server.kill()?;
        done
    } else {
        ours.args(["serve", "--listen", &own, ZERO_CHECKSUM]);
        let command = match cell.programs {
            Programs::Ping => {
                ours.arg("--rping");
                format!("rping -c -a {own} -V -v {}", cell.pings().join(" "))
            }
            Programs::Bandwidth => {
                ours.args(["--perftest", "ib_read_bw", "--perftest-size", &cell.size.to_string()]);
                format!("ib_read_bw -R {} {own}", cell.measure().join(" "))
            }
        };
        let server = Program::start(ours)?;
        server.until("READY", LISTENS)?;
        let done = guest.run(&command, LIMIT)?;
        server.kill()?;
        done
    };
    let [there, back] = wire.stop();
    let what = match (cell.programs, cell.kernel_reads) {
        (Programs::Ping, true) => "the kernel's rping -s READs",
        (Programs::Ping, false) => "our serve --rping READs",
        (Programs::Bandwidth, true) => "the kernel's ib_read_bw READs",
        (Programs::Bandwidth, false) => "our bw READs",
    };
    let line = format!(
        "{what}: {0} of {1} bytes, depth {2}; {3} of {5} packets of the guest and {4} of {6} packets of ibfabric \
         lost; {7:.1} s",
        cell.count(),
        cell.size,
        cell.depth,
        there.lost,
        back.lost,
        there.passed + there.lost,
        back.passed + back.lost,
        done.elapsed.as_secs_f64()
    );
    // Known bug of `rping` in the guest: a signal may terminate it after all pings have completed.
    let is_rping = matches!(cell.programs, Programs::Ping) && !guest_serves;
    let pings = done.output.matches("ping data: ").count();
    let is_done = match is_rping {
        true => pings == cell.count() as usize && !done.output.contains("mismatch"),
        false => done.success(),
    };
    if is_done {
        return Ok(line);
    }
    Err(format!("{line}: status {}, {pings} pings: {}", done.status, done.output.trim()).into())
}
