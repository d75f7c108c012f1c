//! Benchmark of a server's block device. It can also verify the data.
//!
//! | module | holds |
//! |---|---|
//! | `config` | [`BenchConfig`] |
//! | `workload` | the next command of each job |
//! | `verifier` | the expected content of each sector, and outstanding commands |
//! | `pattern` | verifiable content of sectors |

use std::time::{Duration, Instant as WallClock};

use hdrhistogram::Histogram;
use ib_block::{Command, Errno, Geometry, Operation};
use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_os::signals::{Order, Orders};
use ib_rnbd::ReadMode;
use ib_storage::nbd::Backing as _;
use ib_storage::rtrs::RemoteDisk;
use schemars::JsonSchema;
use serde::Serialize;

use super::config::RemoteDeviceConfig;
use super::remote::{self, Use};
use crate::error::DaemonError;
use crate::message::{note, say};

mod config;
mod pattern;
mod verifier;
mod workload;

pub use config::{BenchConfig, BlockSizes, ReadWrite};
use verifier::Verifier;
use workload::Workload;

/// Maximum number of errors that are printed. Further errors are only counted.
const PRINTED_ERRORS: u64 = 10;

/// To find a random block that no outstanding command overlaps, at most this many blocks are tried.
const TRIES: u32 = 64;

/// Results of a benchmark. The field names are JSON keys.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BenchReport {
    /// Name of the measured device.
    pub device: String,
    /// The mix of commands.
    pub rw: ReadWrite,
    /// Largest block size in bytes.
    pub bs: u64,
    /// Smallest block size in bytes.
    pub bs_min: u64,
    /// Number of outstanding commands of each job.
    pub iodepth: u64,
    /// Number of jobs, each with a command sequence of its own.
    pub jobs: u64,
    /// Measured duration of the benchmark in seconds.
    pub seconds: f64,
    /// Number of completed reads, writes and discards.
    pub ios: u64,
    /// Number of completed flushes.
    pub flushes: u64,
    /// Reads, writes and discards per second.
    pub iops: f64,
    /// Number of MiB that successful commands have read, written or discarded per second.
    pub mib_per_s: f64,
    /// Latencies of reads, writes and discards.
    pub latency_us: Latency,
    /// Number of failed commands and of reads that returned wrong data.
    pub errors: u64,
    /// Number of commands that were repeated on another path.
    pub failovers: u64,
    /// Number of times that a path was reconnected.
    pub reconnects: u64,
    /// True if a signal stopped the benchmark early.
    pub interrupted: bool,
}

/// Percentiles of latencies in microseconds. The field names are JSON keys.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Latency {
    /// The shortest latency.
    pub min: f64,
    /// The median of the latencies.
    pub p50: f64,
    /// 90 % of the latencies are at most this long.
    pub p90: f64,
    /// 99 % of the latencies are at most this long.
    pub p99: f64,
    /// 99.9 % of the latencies are at most this long.
    pub p999: f64,
    /// The longest latency.
    pub max: f64,
}

/// Measures a block device of a server.
///
/// # Errors
/// Fails if the device cannot be opened or does not suit the workload, or if the server refuses to reopen the device.
pub fn bench(
    remote: &RemoteDeviceConfig,
    config: &BenchConfig,
) -> Result<BenchReport, DaemonError> {
    if config.verify && !config.changes() {
        return Err(DaemonError::Failed(
            "--verify reads back written data: expected a --rw that writes".to_owned(),
        ));
    }
    let alarm = Alarm::new().map_err(DaemonError::failed)?;
    let failed = |error| DaemonError::Failed(format!("cannot wait for signals: {error}"));
    let mut orders = Orders::catch_end(&alarm.bell()).map_err(failed)?;
    let depth = (config.iodepth * config.jobs) as usize;
    let reads = if config.verify { ReadMode::Copied } else { ReadMode::Dropped };
    let how = Use { writes: config.changes(), depth: depth.max(64), reads };
    let mut opened = remote::open(remote, &how, &mut orders)?;
    let measured = measure(remote, config, &mut opened.disk, &opened.geometry, orders);
    // The device is closed even after errors, so that other clients can open it at once.
    let closed = opened.close();
    let report = measured?;
    closed?;
    Ok(report)
}

fn measure(
    remote: &RemoteDeviceConfig,
    config: &BenchConfig,
    disk: &mut RemoteDisk,
    geometry: &Geometry,
    orders: Orders,
) -> Result<BenchReport, DaemonError> {
    let device = &remote.device;
    let workload = Workload::new(config, geometry)
        .map_err(|error| DaemonError::Failed(format!("{device}: {error}")))?;
    let mut bench = Bench::new(config, workload, orders);
    bench.idle(disk)?;
    bench.run(disk)?;
    if bench.verifier.is_some() && bench.errors == 0 {
        bench.read_back(disk)?;
    }
    if bench.is_ended {
        note!("interrupted: the results cover the time until now");
    }
    Ok(bench.report(device, disk))
}

/// An outstanding command.
#[derive(Clone, Copy)]
struct Outstanding {
    begun: WallClock,
    command: Command,
    /// The number that the verifier has given to a write; 0 for other commands, or if data is not verified.
    round: u32,
}

/// The next action in a phase of the benchmark.
enum Next {
    Submit(Command),
    /// Wait until a command completes.
    Wait,
    Done,
}

struct Bench<'a> {
    config: &'a BenchConfig,
    orders: Orders,
    /// True once a signal has stopped the benchmark.
    is_ended: bool,
    /// The last printed failure of a path.
    last_failure: Option<String>,
    workload: Workload,
    outstanding: Vec<Option<Outstanding>>,
    free: Vec<usize>,
    verifier: Option<Verifier>,
    /// Latencies of reads, writes and discards, in nanoseconds.
    latencies: Histogram<u64>,
    begun: WallClock,
    took: Duration,
    ios: u64,
    flushes: u64,
    /// Total length of all submitted commands in bytes.
    submitted: u64,
    /// Total length of all successful commands in bytes.
    bytes: u64,
    errors: u64,
    buffer: Vec<u8>,
}

impl<'a> Bench<'a> {
    fn new(config: &'a BenchConfig, workload: Workload, orders: Orders) -> Self {
        let depth = (config.iodepth * config.jobs) as usize;
        Self {
            config,
            orders,
            is_ended: false,
            last_failure: None,
            outstanding: vec![None; depth],
            free: (0..depth).rev().collect(),
            verifier: config.verify.then(|| Verifier::new(workload.size())),
            latencies: Histogram::new(3).expect("3 significant digits are allowed"),
            begun: WallClock::now(),
            took: Duration::ZERO,
            ios: 0,
            flushes: 0,
            submitted: 0,
            bytes: 0,
            errors: 0,
            buffer: vec![0; config.sizes.most as usize],
            workload,
        }
    }

    /// Leaves the device idle for the configured time.
    fn idle(&mut self, disk: &mut RemoteDisk) -> Result<(), DaemonError> {
        let begun = WallClock::now();
        while begun.elapsed() < self.config.idle && !self.is_ended {
            if !self.step(disk)? {
                return Err(DaemonError::Reported);
            }
        }
        Ok(())
    }

    /// Runs the workload until its duration is over or its maximum number of bytes is submitted.
    fn run(&mut self, disk: &mut RemoteDisk) -> Result<(), DaemonError> {
        self.begun = WallClock::now();
        let end = self.begun + self.config.runtime;
        let most = self.config.io_size.unwrap_or(u64::MAX);
        self.work(disk, |bench| {
            if bench.submitted >= most || WallClock::now() >= end {
                return Next::Done;
            }
            let Some(slot) = bench.free.last() else { return Next::Wait };
            let job = *slot / bench.config.iodepth as usize;
            for _ in 0..TRIES {
                let command = bench.workload.next(job);
                // The order of overlapping outstanding commands is undefined, so the verifier could not know the
                // content of their blocks.
                if bench.verifier.as_ref().is_none_or(|verifier| verifier.is_free(&command)) {
                    return Next::Submit(command);
                }
            }
            Next::Wait
        })?;
        self.took = self.begun.elapsed();
        Ok(())
    }

    /// Reads all written blocks back and verifies their data. In the report, these reads are counted only as errors, if
    /// they fail.
    fn read_back(&mut self, disk: &mut RemoteDisk) -> Result<(), DaemonError> {
        let before = (self.ios, self.bytes, self.submitted, self.latencies.clone());
        let (mut offset, step) = (0, self.config.sizes.most);
        self.work(disk, |bench| {
            let Some(verifier) = bench.verifier.as_ref() else { return Next::Done };
            while offset < bench.workload.size() {
                let length = step.min(bench.workload.size() - offset);
                if !verifier.was_written(offset, length) {
                    offset += length;
                    continue;
                }
                if bench.free.is_empty() {
                    return Next::Wait;
                }
                let read = Command { operation: Operation::Read, offset, length, fua: false };
                offset += length;
                return Next::Submit(read);
            }
            Next::Done
        })?;
        (self.ios, self.bytes, self.submitted, self.latencies) = before;
        Ok(())
    }

    /// Submits the commands that `next` returns. Finishes when `next` has returned `Done` and all commands have
    /// completed, or when a signal has stopped the benchmark.
    fn work(
        &mut self,
        disk: &mut RemoteDisk,
        mut next: impl FnMut(&mut Self) -> Next,
    ) -> Result<(), DaemonError> {
        while !self.is_ended {
            let is_over = loop {
                match next(self) {
                    Next::Submit(command) => self.begin(disk, command),
                    Next::Wait if self.free.len() < self.outstanding.len() => break false,
                    // No command is outstanding, so there is no completion to wait for: call `next` again.
                    Next::Wait => {}
                    Next::Done => break true,
                }
            };
            if is_over && self.free.len() == self.outstanding.len() {
                return Ok(());
            }
            if !self.step(disk)? {
                return Err(DaemonError::Reported);
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
        let round = self.verifier.as_mut().map_or(0, |verifier| verifier.begin(&command, data));
        self.submitted += command.length;
        self.outstanding[slot] = Some(Outstanding { begun: WallClock::now(), command, round });
        disk.submit(slot as u64, command, data);
    }

    /// Performs pending I/O and handles completions, or waits if there are none. Returns false once the device is
    /// closed.
    fn step(&mut self, disk: &mut RemoteDisk) -> Result<bool, DaemonError> {
        let failed = |error| DaemonError::Failed(format!("cannot drive the HCAs: {error}"));
        self.is_ended |= self.orders.take() == Some(Order::End);
        let moved = disk.progress().map_err(failed)?;
        let mut ended = false;
        while let Some((slot, errno)) = disk.poll() {
            ended = true;
            self.end(slot as usize, errno, disk.data());
        }
        if !remote::print_events(disk, &mut self.last_failure) {
            return Ok(false);
        }
        if !moved && !ended {
            disk.wait(clock::now() + Duration::from_millis(100)).map_err(failed)?;
        }
        Ok(true)
    }

    fn end(&mut self, slot: usize, errno: Errno, data: &[u8]) {
        let Some(Outstanding { begun, command, round }) = self.outstanding[slot].take() else {
            return;
        };
        self.free.push(slot);
        if command.operation == Operation::Flush {
            self.flushes += 1;
        } else {
            let nanoseconds = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.latencies.record(nanoseconds).expect("the histogram resizes itself");
            self.ios += 1;
        }
        if errno.is_ok() {
            self.bytes += command.length;
        }
        let found = match &mut self.verifier {
            Some(verifier) => verifier.end(&command, round, errno.is_ok().then_some(data)),
            None => Ok(()),
        };
        let found = if errno.is_ok() { found } else { Err(errno.to_string()) };
        if let Err(why) = found {
            self.errors += 1;
            let Command { operation, offset, length, .. } = command;
            if self.errors <= PRINTED_ERRORS {
                say!("{operation} of {length} bytes at {offset}: {why}");
            }
        }
    }

    fn report(&self, device: &str, disk: &RemoteDisk) -> BenchReport {
        let config = self.config;
        let micros = |nanoseconds: u64| nanoseconds as f64 / 1000.0;
        let at = |quantile| micros(self.latencies.value_at_quantile(quantile));
        let seconds = self.took.as_secs_f64().max(1e-9);
        let stats = || disk.rtrs().paths().filter_map(|path| disk.rtrs().stats(path));
        BenchReport {
            device: device.to_owned(),
            rw: config.rw,
            bs: config.sizes.most,
            bs_min: config.sizes.least,
            iodepth: config.iodepth,
            jobs: config.jobs,
            seconds,
            ios: self.ios,
            flushes: self.flushes,
            iops: self.ios as f64 / seconds,
            mib_per_s: self.bytes as f64 / f64::from(1 << 20) / seconds,
            latency_us: Latency {
                min: micros(self.latencies.min()),
                p50: at(0.5),
                p90: at(0.9),
                p99: at(0.99),
                p999: at(0.999),
                max: micros(self.latencies.max()),
            },
            errors: self.errors,
            failovers: stats().map(|it| it.failed_over).sum(),
            reconnects: stats().map(|it| it.reconnects.succeeded).sum(),
            interrupted: self.is_ended,
        }
    }
}
