//! What is asked for next: where, how much, and what.

use std::ops::Range;

use ib_block::{Command, Geometry, Operation};
use ib_types::rng::Rng;

use super::pattern::SECTOR;
use crate::cli::rtrs::{BenchArgs, Lengths, RwArg};
use crate::failure::Failure;

/// One stream of requests, with an own part of the device where it goes from place to place.
#[derive(Clone, Debug)]
struct Job {
    part: Range<u64>,
    next: u64,
    random: Rng,
}

/// All streams of requests.
#[derive(Clone, Debug)]
pub(super) struct Jobs {
    rw: RwArg,
    lengths: Lengths,
    size: u64,
    all: Vec<Job>,
    /// After how many writes a flush comes, and how many are left until then; the same for places that are forgotten.
    flush: Every,
    discard: Every,
}

/// Something that comes after so many writes; never when that is 0.
#[derive(Clone, Copy, Debug)]
struct Every {
    count: u64,
    left: u64,
}

impl Every {
    const fn new(count: u64) -> Self {
        Self { count, left: count }
    }

    /// Counts a write.
    fn count(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Returns whether it comes now, and begins to count again.
    fn is_due(&mut self) -> bool {
        let due = self.count > 0 && self.left == 0;
        if due {
            self.left = self.count;
        }
        due
    }
}

impl Jobs {
    /// Plans what was asked for on a device.
    pub(super) fn new(args: &BenchArgs, geometry: &Geometry) -> Result<Self, Failure> {
        let unusable = |text: String| Err(Failure::Unusable(text));
        let unit = u64::from(geometry.logical_block).max(if args.verify { SECTOR } else { 1 });
        let lengths = args.bsrange.unwrap_or(Lengths { least: args.bs, most: args.bs });
        let (option, Lengths { least, most }) =
            (if args.bsrange.is_some() { "--bsrange" } else { "--bs" }, lengths);
        if least == 0 || !least.is_multiple_of(unit) || !most.is_multiple_of(unit) {
            return unusable(format!("{option} {lengths}: expected multiples of {unit}"));
        }
        if args.discards() && geometry.discard.is_none() {
            return unusable(format!("{}: the device does not discard", args.remote.device));
        }
        let size = args.size.unwrap_or(geometry.size);
        if size > geometry.size {
            return unusable(format!("--size {size}: the device has {} bytes", geometry.size));
        }
        let size = size / least * least;
        let part = size / args.jobs / least * least;
        if part < most {
            return unusable(format!(
                "{size} bytes for {} jobs: each needs room for a request of {most} bytes",
                args.jobs
            ));
        }
        let depth = args.iodepth * args.jobs;
        if args.verify && size / most < depth {
            return unusable(format!(
                "{size} bytes have room for {} requests of {most} bytes: to be verified, there have to be as many as \
                 are under way, {depth}",
                size / most
            ));
        }
        let job = |number: u64| Job {
            part: number * part..(number + 1) * part,
            next: number * part,
            random: Rng::new(args.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9))),
        };
        Ok(Self {
            rw: args.rw,
            lengths,
            size,
            all: (0..args.jobs).map(job).collect(),
            flush: Every::new(args.fsync),
            discard: Every::new(args.trim),
        })
    }

    /// Returns how much of the device is used, in bytes.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Returns how long requests are.
    pub(super) const fn lengths(&self) -> Lengths {
        self.lengths
    }

    /// Returns how long the longest requests are, in bytes.
    pub(super) const fn longest(&self) -> u64 {
        self.lengths.most
    }

    /// Returns what a job asks for next.
    pub(super) fn next(&mut self, job: usize) -> Command {
        if self.flush.is_due() {
            return Command::FLUSH;
        }
        let operation =
            if self.discard.is_due() { Operation::Discard } else { self.operation(job) };
        let Lengths { least, most } = self.lengths;
        let job = &mut self.all[job];
        let length = match most - least {
            0 => least,
            more => least + job.random.next_u64() % (more / least + 1) * least,
        };
        let offset = match self.rw.is_random() {
            // Requests of one length start at multiples of it; others at multiples of the least.
            true if least == most => job.random.next_u64() % (self.size / least) * least,
            true => job.random.next_u64() % ((self.size - length) / least + 1) * least,
            false => {
                let begin =
                    if job.next + length > job.part.end { job.part.start } else { job.next };
                job.next = begin + length;
                begin
            }
        };
        if operation == Operation::Write {
            self.flush.count();
            self.discard.count();
        }
        Command { operation, offset, length, fua: false }
    }

    fn operation(&mut self, job: usize) -> Operation {
        match self.rw {
            RwArg::Write | RwArg::Randwrite => Operation::Write,
            RwArg::Trim | RwArg::Randtrim => Operation::Discard,
            RwArg::Randrw if self.all[job].random.next_u64().is_multiple_of(2) => Operation::Write,
            RwArg::Read | RwArg::Randread | RwArg::Randrw => Operation::Read,
        }
    }
}

#[cfg(test)]
mod tests;
