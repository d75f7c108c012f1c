//! `rtrs bench`: how fast a device of a server is, and whether what it has is what was written.
//!
//! | file | holds |
//! |---|---|
//! | `bench/jobs.rs` | the next request of each job |
//! | `bench/ledger.rs` | data written to each sector, and requests in flight |
//! | `bench/pattern.rs` | verifiable content of sectors |

use std::io::Write as _;
use std::time::{Duration, Instant as WallClock};

use ib_block::{Command, Errno, Geometry, Operation};
use ib_daemons::rtrs::remote::{self, Use};
use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_os::signals::{Order, Orders};
use ib_rnbd::Reads;
use ib_storage::nbd::Backing as _;
use ib_storage::rtrs::RemoteDisk;
use serde::Serialize;

use self::jobs::Jobs;
use self::ledger::Ledger;
use crate::cli::rtrs::{BenchArgs, Lengths};
use crate::command::summary::counted;
use crate::failure::{Failure, Verdict, say};
use crate::output::{Format, Output};

mod jobs;
mod ledger;
mod pattern;

/// How many errors are told one by one.
const TOLD: u64 = 10;

/// How often a place is looked for that nothing is in flight to, before something has to end first.
const TRIES: u32 = 64;

/// The names are JSON keys.
#[derive(Serialize)]
struct Report {
    device: String,
    rw: String,
    /// The longest; `bs_min` is the shortest.
    bs: u64,
    bs_min: u64,
    iodepth: u64,
    jobs: u64,
    seconds: f64,
    ios: u64,
    flushes: u64,
    iops: f64,
    mib_per_s: f64,
    latency_us: Latency,
    errors: u64,
    failovers: u64,
    reconnects: u64,
}

/// The names are JSON keys.
#[derive(Serialize)]
struct Latency {
    min: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

pub(super) fn run(args: &BenchArgs, out: &mut Output) -> Result<Verdict, Failure> {
    if args.verify && !args.changes() {
        let why = "--verify compares with what it has written itself: expected a --rw that writes";
        return Err(Failure::Unusable(why.to_owned()));
    }
    let alarm = Alarm::new().map_err(Failure::unusable)?;
    let failed = |error| Failure::unusable(format_args!("waiting for signals: {error}"));
    let mut orders = Orders::catch_end(&alarm.bell()).map_err(failed)?;
    let depth = (args.iodepth * args.jobs) as usize;
    let reads = if args.verify { Reads::Copied } else { Reads::Dropped };
    let how = Use { writes: args.changes(), depth: depth.max(64), reads };
    let mut opened = remote::open(&args.remote.config(), &how, &mut orders)?;
    let measured = measure(args, &mut opened.disk, &opened.geometry, orders);
    // Whatever has ended it: the device is free at once for others.
    let closed = opened.close();
    let report = measured?;
    closed?;
    match args.format {
        Format::Json => out.json(&report)?,
        Format::Text => print(&report, out)?,
    }
    Ok(Verdict::good_if(report.errors == 0))
}

fn measure(
    args: &BenchArgs,
    disk: &mut RemoteDisk,
    geometry: &Geometry,
    orders: Orders,
) -> Result<Report, Failure> {
    let mut bench = Bench::new(args, Jobs::new(args, geometry)?, orders);
    bench.rest(disk)?;
    bench.run(disk)?;
    if bench.ledger.is_some() && bench.errors == 0 {
        bench.read_back(disk)?;
    }
    if bench.is_ended {
        say!("ended early: these are the figures until then");
    }
    Ok(bench.report(disk))
}

/// A request that is in flight.
#[derive(Clone, Copy)]
struct UnderWay {
    begun: WallClock,
    command: Command,
    /// That of a write to be verified.
    round: u32,
}

/// What is done next.
enum Next {
    Do(Command),
    /// Something has to end before.
    Later,
    Over,
}

struct Bench<'a> {
    args: &'a BenchArgs,
    orders: Orders,
    /// Whether somebody has ended it.
    is_ended: bool,
    jobs: Jobs,
    under_way: Vec<Option<UnderWay>>,
    free: Vec<usize>,
    /// With `--verify`.
    ledger: Option<Ledger>,
    latencies: Vec<u32>,
    begun: WallClock,
    took: Duration,
    ios: u64,
    flushes: u64,
    /// Of all requests that were begun, in bytes.
    asked: u64,
    /// Of all that have ended well.
    bytes: u64,
    errors: u64,
    buffer: Vec<u8>,
}

impl<'a> Bench<'a> {
    fn new(args: &'a BenchArgs, jobs: Jobs, orders: Orders) -> Self {
        let depth = (args.iodepth * args.jobs) as usize;
        Self {
            args,
            orders,
            is_ended: false,
            under_way: vec![None; depth],
            free: (0..depth).rev().collect(),
            ledger: args.verify.then(|| Ledger::new(jobs.size())),
            latencies: Vec::new(),
            begun: WallClock::now(),
            took: Duration::ZERO,
            ios: 0,
            flushes: 0,
            asked: 0,
            bytes: 0,
            errors: 0,
            buffer: vec![0; jobs.longest() as usize],
            jobs,
        }
    }

    /// Leaves the device alone for as long as is wanted.
    fn rest(&mut self, disk: &mut RemoteDisk) -> Result<(), Failure> {
        let begun = WallClock::now();
        while begun.elapsed() < self.args.idle && !self.is_ended {
            if !self.step(disk)? {
                return Err(Failure::Said);
            }
        }
        Ok(())
    }

    /// Does what is wanted until the time is over, or everything was moved, or the device is gone.
    fn run(&mut self, disk: &mut RemoteDisk) -> Result<(), Failure> {
        self.begun = WallClock::now();
        let end = self.begun + self.args.runtime;
        let most = self.args.io_size.unwrap_or(u64::MAX);
        self.work(disk, |bench| {
            if bench.asked >= most || WallClock::now() >= end {
                return Next::Over;
            }
            let Some(slot) = bench.free.last() else { return Next::Later };
            let job = *slot / bench.args.iodepth as usize;
            for _ in 0..TRIES {
                let command = bench.jobs.next(job);
                // Two at once to one place could end in any order, so nobody could say what there should be.
                if bench.ledger.as_ref().is_none_or(|ledger| ledger.is_free(&command)) {
                    return Next::Do(command);
                }
            }
            Next::Later
        })?;
        self.took = self.begun.elapsed();
        Ok(())
    }

    /// Reads everything that was written, and compares it.
    fn read_back(&mut self, disk: &mut RemoteDisk) -> Result<(), Failure> {
        let before = (self.ios, self.bytes, self.asked, self.latencies.len());
        let (mut offset, step) = (0, self.jobs.longest());
        self.work(disk, |bench| {
            let Some(ledger) = bench.ledger.as_ref() else { return Next::Over };
            while offset < bench.jobs.size() {
                let length = step.min(bench.jobs.size() - offset);
                if !ledger.was_written(offset, length) {
                    offset += length;
                    continue;
                }
                if bench.free.is_empty() {
                    return Next::Later;
                }
                let read = Command { operation: Operation::Read, offset, length, fua: false };
                offset += length;
                return Next::Do(read);
            }
            Next::Over
        })?;
        // It is no part of what was measured.
        (self.ios, self.bytes, self.asked) = (before.0, before.1, before.2);
        self.latencies.truncate(before.3);
        Ok(())
    }

    /// Does what a function tells until it says that it is over, and everything has ended.
    fn work(
        &mut self,
        disk: &mut RemoteDisk,
        mut next: impl FnMut(&mut Self) -> Next,
    ) -> Result<(), Failure> {
        while !self.is_ended {
            let is_over = loop {
                match next(self) {
                    Next::Do(command) => self.begin(disk, command),
                    Next::Later if self.free.len() < self.under_way.len() => break false,
                    // Nothing can end any more that would make room.
                    Next::Later => {}
                    Next::Over => break true,
                }
            };
            if is_over && self.free.len() == self.under_way.len() {
                return Ok(());
            }
            if !self.step(disk)? {
                return Err(Failure::Said);
            }
        }
        Ok(())
    }

    fn begin(&mut self, disk: &mut RemoteDisk, command: Command) {
        let Some(slot) = self.free.pop() else { return };
        let data = match command.operation {
            Operation::Write => &mut self.buffer[..command.length as usize],
            _ => &mut [],
        };
        let round = self.ledger.as_mut().map_or(0, |ledger| ledger.begin(&command, data));
        self.asked += command.length;
        self.under_way[slot] = Some(UnderWay { begun: WallClock::now(), command, round });
        disk.submit(slot as u64, command, data);
    }

    /// Moves what can be moved; returns false once the device is gone.
    fn step(&mut self, disk: &mut RemoteDisk) -> Result<bool, Failure> {
        let failed = |error| Failure::unusable(format_args!("driving the adapters: {error}"));
        self.is_ended |= self.orders.take() == Some(Order::End);
        let moved = disk.progress().map_err(failed)?;
        let mut ended = false;
        while let Some((slot, errno)) = disk.poll() {
            ended = true;
            self.end(slot as usize, errno, disk.data());
        }
        if !remote::tell(disk) {
            return Ok(false);
        }
        if !moved && !ended {
            disk.wait(clock::now() + Duration::from_millis(100)).map_err(failed)?;
        }
        Ok(true)
    }

    fn end(&mut self, slot: usize, errno: Errno, data: &[u8]) {
        let Some(UnderWay { begun, command, round }) = self.under_way[slot].take() else { return };
        self.free.push(slot);
        if command.operation == Operation::Flush {
            self.flushes += 1;
        } else {
            let nanoseconds = begun.elapsed().as_nanos();
            self.latencies.push(u32::try_from(nanoseconds).unwrap_or(u32::MAX));
            self.ios += 1;
        }
        if errno.is_ok() {
            self.bytes += command.length;
        }
        let found = match &mut self.ledger {
            Some(ledger) => ledger.end(&command, round, errno.is_ok().then_some(data)),
            None => Ok(()),
        };
        let found = if errno.is_ok() { found } else { Err(errno.to_string()) };
        if let Err(why) = found {
            self.errors += 1;
            let Command { operation, offset, length, .. } = command;
            if self.errors <= TOLD {
                say!("{operation} of {length} bytes at {offset}: {why}");
            }
        }
    }

    fn report(&mut self, disk: &RemoteDisk) -> Report {
        let args = self.args;
        self.latencies.sort_unstable();
        let at = |share: f64| {
            let last = self.latencies.len().saturating_sub(1);
            let nanoseconds = self.latencies.get((last as f64 * share) as usize).copied();
            f64::from(nanoseconds.unwrap_or(0)) / 1000.0
        };
        let seconds = self.took.as_secs_f64().max(1e-9);
        let stats = || disk.rtrs().paths().filter_map(|path| disk.rtrs().stats(path));
        Report {
            device: args.remote.device.clone(),
            rw: format!("{:?}", args.rw).to_lowercase(),
            bs: self.jobs.lengths().most,
            bs_min: self.jobs.lengths().least,
            iodepth: args.iodepth,
            jobs: args.jobs,
            seconds,
            ios: self.ios,
            flushes: self.flushes,
            iops: self.ios as f64 / seconds,
            mib_per_s: self.bytes as f64 / f64::from(1 << 20) / seconds,
            latency_us: Latency {
                min: at(0.0),
                p50: at(0.5),
                p90: at(0.9),
                p99: at(0.99),
                p999: at(0.999),
                max: at(1.0),
            },
            errors: self.errors,
            failovers: stats().map(|it| it.failed_over).sum(),
            reconnects: stats().map(|it| it.reconnects.succeeded).sum(),
        }
    }
}

fn print(report: &Report, out: &mut Output) -> Result<(), Failure> {
    let Report { device, rw, iodepth, jobs, seconds, ios, iops, mib_per_s, .. } = report;
    let bs = Lengths { least: report.bs_min, most: report.bs };
    let Latency { min, p50, p90, p99, p999, max } = report.latency_us;
    writeln!(
        out,
        "{device}: {rw}, blocks of {bs} bytes, {iodepth} at once, {}: {ios} in {seconds:.2} s",
        counted(*jobs, "job")
    )?;
    writeln!(out, "{iops:.0} IO/s, {mib_per_s:.1} MiB/s")?;
    writeln!(
        out,
        "latency in µs: min {min:.1}, p50 {p50:.1}, p90 {p90:.1}, p99 {p99:.1}, p99.9 {p999:.1}, max {max:.1}"
    )?;
    let Report { flushes, errors, failovers, reconnects, .. } = report;
    let flushes =
        if *flushes > 0 { format!("{}, ", counted(*flushes, "flush")) } else { String::new() };
    let counts = [(*errors, "error"), (*failovers, "failover"), (*reconnects, "reconnect")];
    let counts = counts.map(|(count, what)| counted(count, what)).join(", ");
    writeln!(out, "{flushes}{counts}")?;
    Ok(())
}
