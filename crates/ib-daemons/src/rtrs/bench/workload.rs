//! The sequence of commands of each job.

use std::ops::Range;

use ib_block::{Command, Geometry, Operation};
use ib_types::rng::Rng;

use super::config::{BenchConfig, BlockSizes, ReadWrite};
use super::pattern::SECTOR;

/// The reason why a workload does not fit a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WorkloadError {
    /// A block size is 0 or not a multiple of `unit`.
    #[error("block size {sizes}: expected multiples of {unit} bytes that are not 0")]
    BlockSize {
        /// The configured range of block sizes.
        sizes: BlockSizes,
        /// Block sizes must be multiples of this number of bytes.
        unit: u64,
    },
    /// The workload contains discards, which the device does not support.
    #[error("the device does not support discards: expected no --trim, and no trim in --rw")]
    NoDiscard,
    /// The workload needs more bytes than the device has.
    #[error("--size is {size} bytes: expected at most {device} bytes, the size of the device")]
    Size {
        /// The number of bytes that the configuration requests.
        size: u64,
        /// The number of bytes of the device.
        device: u64,
    },
    /// The share of the device that each job gets is smaller than a block.
    #[error("{size} bytes are too few for {jobs} jobs: each job needs a block of {block} bytes")]
    Jobs {
        /// Total number of bytes that the jobs use.
        size: u64,
        /// The number of jobs.
        jobs: u64,
        /// The largest configured block size in bytes.
        block: u64,
    },
    /// There are fewer blocks than outstanding commands, which must not overlap if data is verified.
    #[error(
        "{size} bytes have {blocks} blocks: --verify needs one for each of {depth} outstanding requests"
    )]
    Blocks {
        /// Total number of bytes that the jobs use.
        size: u64,
        /// The number of blocks of the largest configured size that fit into `size`.
        blocks: u64,
        /// Maximum number of outstanding commands of all jobs together.
        depth: u64,
    },
}

/// The command sequence of one job. For sequential access, the job uses its own part of the device.
#[derive(Clone, Debug)]
struct Job {
    part: Range<u64>,
    next: u64,
    random: Rng,
}

/// Generates the commands of all jobs.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    rw: ReadWrite,
    sizes: BlockSizes,
    /// Number of bytes that the jobs use, from the start of the device.
    size: u64,
    jobs: Vec<Job>,
    flush: Every,
    discard: Every,
}

/// Counter of the writes that remain until the next flush or discard. A flush or discard is due after every `count`
/// writes, or never if `count` is 0.
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

    /// Returns true if the flush or discard is due now. If it is due, restarts the counter.
    fn is_due(&mut self) -> bool {
        let due = self.count > 0 && self.left == 0;
        if due {
            self.left = self.count;
        }
        due
    }
}

impl Workload {
    /// Creates the workload for a device with the given geometry.
    pub(super) fn new(config: &BenchConfig, geometry: &Geometry) -> Result<Self, WorkloadError> {
        let unit = u64::from(geometry.logical_block).max(if config.verify { SECTOR } else { 1 });
        let sizes = config.sizes;
        let BlockSizes { least, most } = sizes;
        if least == 0 || !least.is_multiple_of(unit) || !most.is_multiple_of(unit) {
            return Err(WorkloadError::BlockSize { sizes, unit });
        }
        if config.discards() && geometry.discard.is_none() {
            return Err(WorkloadError::NoDiscard);
        }
        let size = config.size.unwrap_or(geometry.size);
        if size > geometry.size {
            return Err(WorkloadError::Size { size, device: geometry.size });
        }
        let size = size / least * least;
        let part = size / config.jobs / least * least;
        if part < most {
            return Err(WorkloadError::Jobs { size, jobs: config.jobs, block: most });
        }
        let (blocks, depth) = (size / most, config.iodepth * config.jobs);
        if config.verify && blocks < depth {
            return Err(WorkloadError::Blocks { size, blocks, depth });
        }
        let job = |number: u64| Job {
            part: number * part..(number + 1) * part,
            next: number * part,
            random: Rng::new(config.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9))),
        };
        Ok(Self {
            rw: config.rw,
            sizes,
            size,
            jobs: (0..config.jobs).map(job).collect(),
            flush: Every::new(config.fsync),
            discard: Every::new(config.trim),
        })
    }

    /// Returns the number of bytes that the jobs use, from the start of the device.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the next command of a job.
    pub(super) fn next(&mut self, job: usize) -> Command {
        if self.flush.is_due() {
            return Command::FLUSH;
        }
        let operation =
            if self.discard.is_due() { Operation::Discard } else { self.operation(job) };
        let BlockSizes { least, most } = self.sizes;
        let job = &mut self.jobs[job];
        let length = match most - least {
            0 => least,
            more => least + job.random.next_u64() % (more / least + 1) * least,
        };
        let offset = match self.rw.is_random() {
            // Random offsets are multiples of the smallest block size.
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
            ReadWrite::Write | ReadWrite::Randwrite => Operation::Write,
            ReadWrite::Trim | ReadWrite::Randtrim => Operation::Discard,
            ReadWrite::Randrw if self.jobs[job].random.next_u64().is_multiple_of(2) => {
                Operation::Write
            }
            ReadWrite::Read | ReadWrite::Randread | ReadWrite::Randrw => Operation::Read,
        }
    }
}

#[cfg(test)]
mod tests;
