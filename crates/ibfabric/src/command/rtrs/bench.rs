//! `rtrs bench`: how fast a device of a server is, and whether what it has is what was written.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::{Duration, Instant as WallClock};

use ib_block::{Command, Errno, Geometry, Operation};
use ib_net::clock;
use ib_net::rtrs::RemoteDisk;
use serde::Serialize;

use super::pattern::{self, SECTOR};
use super::remote::{self, Use};
use crate::cli::rtrs::{BenchArgs, RwArg};
use crate::failure::{Failure, Verdict, say};
use crate::output::{Format, Output};

/// How many errors are told one by one.
const TOLD: u64 = 10;

/// The names are JSON keys.
#[derive(Serialize)]
struct Report {
    device: String,
    rw: String,
    bs: u64,
    iodepth: u64,
    jobs: u64,
    seconds: f64,
    ios: u64,
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
    let writes = !matches!(args.rw, RwArg::Read | RwArg::Randread);
    let depth = (args.iodepth * args.jobs) as usize;
    let how = Use { writes, depth: depth.max(64), keeps_data: args.verify };
    let (mut disk, geometry) = remote::open(&args.remote, &how)?;
    let blocks = blocks(args, &geometry)?;
    let mut bench = Bench::new(args, blocks);
    bench.run(&mut disk)?;
    if args.verify && writes && bench.errors == 0 {
        bench.read_back(&mut disk)?;
    }
    let report = bench.report(args, &disk);
    remote::close(disk)?;
    match args.format {
        Format::Json => out.json(&report)?,
        Format::Text => print(&report, out)?,
    }
    Ok(Verdict::good_if(report.errors == 0))
}

/// Returns how many blocks of the bench's length are used.
fn blocks(args: &BenchArgs, geometry: &Geometry) -> Result<u64, Failure> {
    let unit = u64::from(geometry.logical_block).max(if args.verify { SECTOR } else { 1 });
    if args.bs == 0 || !args.bs.is_multiple_of(unit) {
        return Err(Failure::Unusable(format!("--bs {}: expected a multiple of {unit}", args.bs)));
    }
    let size = args.size.unwrap_or(geometry.size);
    if size > geometry.size {
        return Err(Failure::Unusable(format!(
            "--size {size}: the device has {} bytes",
            geometry.size
        )));
    }
    let blocks = size / args.bs;
    if blocks < args.iodepth * args.jobs && args.verify {
        return Err(Failure::Unusable(format!(
            "{blocks} blocks of {} bytes: to be verified, there have to be as many as are under way, {}",
            args.bs,
            args.iodepth * args.jobs
        )));
    }
    if blocks == 0 {
        return Err(Failure::Unusable(format!("{size} bytes have no block of {} bytes", args.bs)));
    }
    Ok(blocks)
}

/// A request that is under way.
#[derive(Clone, Copy)]
struct UnderWay {
    begun: WallClock,
    command: Command,
    round: u32,
}

struct Bench<'a> {
    args: &'a BenchArgs,
    blocks: u64,
    random: u64,
    next: u64,
    under_way: Vec<Option<UnderWay>>,
    free: Vec<usize>,
    /// With `--verify`: in which round each block was written last, and which are under way.
    rounds: Vec<u32>,
    busy: BTreeMap<u64, ()>,
    latencies: Vec<u32>,
    begun: WallClock,
    took: Duration,
    ios: u64,
    bytes: u64,
    errors: u64,
    zeros: Vec<u8>,
}

impl<'a> Bench<'a> {
    fn new(args: &'a BenchArgs, blocks: u64) -> Self {
        let depth = (args.iodepth * args.jobs) as usize;
        let rounds = if args.verify { vec![0; blocks as usize] } else { Vec::new() };
        Self {
            args,
            blocks,
            random: args.seed,
            next: 0,
            under_way: vec![None; depth],
            free: (0..depth).rev().collect(),
            rounds,
            busy: BTreeMap::new(),
            latencies: Vec::new(),
            begun: WallClock::now(),
            took: Duration::ZERO,
            ios: 0,
            bytes: 0,
            errors: 0,
            zeros: vec![0; args.bs as usize],
        }
    }

    /// Does what is wanted until the time is over, or everything was moved, or the device is gone.
    fn run(&mut self, disk: &mut RemoteDisk) -> Result<(), Failure> {
        self.begun = WallClock::now();
        let end = self.begun + Duration::from_secs_f64(self.args.runtime.max(0.0));
        let most = self.args.io_size.map(|size| size.div_ceil(self.args.bs));
        let mut begun = 0;
        loop {
            let is_over = WallClock::now() >= end || most.is_some_and(|most| begun >= most);
            while !is_over
                && most.is_none_or(|most| begun < most)
                && let Some(slot) = self.free.pop()
            {
                let (block, writes) = self.choose();
                self.begin(disk, slot, block, writes);
                begun += 1;
            }
            if is_over && self.free.len() == self.under_way.len() {
                break;
            }
            if !self.step(disk)? {
                return Err(Failure::Said);
            }
        }
        self.took = self.begun.elapsed();
        Ok(())
    }

    /// Reads every block that was written, and compares it.
    fn read_back(&mut self, disk: &mut RemoteDisk) -> Result<(), Failure> {
        let written: Vec<u64> =
            (0..self.blocks).filter(|block| self.rounds[*block as usize] > 0).collect();
        let (ios, bytes, count) = (self.ios, self.bytes, self.latencies.len());
        let mut left = written.into_iter();
        loop {
            while let Some(slot) = self.free.pop() {
                let Some(block) = left.next() else {
                    self.free.push(slot);
                    break;
                };
                self.begin(disk, slot, block, false);
            }
            if self.free.len() == self.under_way.len() {
                break;
            }
            if !self.step(disk)? {
                return Err(Failure::Said);
            }
        }
        // It is no part of what was measured.
        (self.ios, self.bytes) = (ios, bytes);
        self.latencies.truncate(count);
        Ok(())
    }

    /// Returns the next block, and whether it is written.
    fn choose(&mut self) -> (u64, bool) {
        loop {
            let block = match self.args.rw {
                RwArg::Read | RwArg::Write => {
                    self.next += 1;
                    (self.next - 1) % self.blocks
                }
                _ => pattern::next(&mut self.random) % self.blocks,
            };
            // Two at once could end in any order, so nobody could say what there should be.
            if self.args.verify && self.busy.contains_key(&block) {
                continue;
            }
            let writes = match self.args.rw {
                RwArg::Read | RwArg::Randread => false,
                RwArg::Write | RwArg::Randwrite => true,
                RwArg::Randrw => pattern::next(&mut self.random).is_multiple_of(2),
            };
            return (block, writes);
        }
    }

    fn begin(&mut self, disk: &mut RemoteDisk, slot: usize, block: u64, writes: bool) {
        let operation = if writes { Operation::Write } else { Operation::Read };
        let (offset, length) = (block * self.args.bs, self.args.bs);
        let command = Command { operation, offset, length, fua: false };
        let mut round = 0;
        if self.args.verify {
            round = self.rounds[block as usize] + u32::from(writes);
            self.busy.insert(block, ());
            if writes {
                pattern::fill(&mut self.zeros, offset, round);
            }
        }
        self.under_way[slot] = Some(UnderWay { begun: WallClock::now(), command, round });
        disk.submit(slot as u64, command, if writes { &self.zeros } else { &[] });
    }

    /// Moves what can be moved; returns false once the device is gone.
    fn step(&mut self, disk: &mut RemoteDisk) -> Result<bool, Failure> {
        let failed = |error| Failure::unusable(format_args!("driving the adapters: {error}"));
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
        let nanoseconds = begun.elapsed().as_nanos();
        self.latencies.push(u32::try_from(nanoseconds).unwrap_or(u32::MAX));
        self.ios += 1;
        let found = if errno.is_ok() {
            self.bytes += command.length;
            match (self.args.verify, command.operation) {
                (true, Operation::Read) => pattern::check(data, command.offset, round),
                _ => Ok(()),
            }
        } else {
            Err(errno.to_string())
        };
        if self.args.verify {
            let block = command.offset / self.args.bs;
            self.busy.remove(&block);
            if command.operation == Operation::Write {
                // What has failed may have been written, or not.
                self.rounds[block as usize] = if errno.is_ok() { round } else { 0 };
            }
        }
        if let Err(why) = found {
            self.errors += 1;
            let Command { operation, offset, length, .. } = command;
            if self.errors <= TOLD {
                say!("{operation} of {length} bytes at {offset}: {why}");
            }
        }
    }

    fn report(&mut self, args: &BenchArgs, disk: &RemoteDisk) -> Report {
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
            bs: args.bs,
            iodepth: args.iodepth,
            jobs: args.jobs,
            seconds,
            ios: self.ios,
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
    let Report { device, rw, bs, iodepth, jobs, seconds, ios, iops, mib_per_s, .. } = report;
    let Latency { min, p50, p90, p99, p999, max } = report.latency_us;
    writeln!(
        out,
        "{device}: {rw}, blocks of {bs} bytes, {iodepth} at once, {jobs} jobs: {ios} in {seconds:.2} s"
    )?;
    writeln!(out, "{iops:.0} IO/s, {mib_per_s:.1} MiB/s")?;
    writeln!(
        out,
        "latency in µs: min {min:.1}, p50 {p50:.1}, p90 {p90:.1}, p99 {p99:.1}, p99.9 {p999:.1}, max {max:.1}"
    )?;
    let Report { errors, failovers, reconnects, .. } = report;
    writeln!(out, "{errors} errors, {failovers} failovers, {reconnects} reconnects")?;
    Ok(())
}
