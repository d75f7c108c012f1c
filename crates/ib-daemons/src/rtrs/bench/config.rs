//! Configuration of the block device benchmark.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

/// Configuration of the block device benchmark.
#[derive(Clone, Debug)]
pub struct BenchConfig {
    /// The mix of commands.
    pub rw: ReadWrite,
    /// Range of block sizes; each command has one of these sizes.
    pub sizes: BlockSizes,
    /// Number of writes after which a flush follows; 0 for no flushes.
    pub fsync: u64,
    /// Number of writes after which a discard follows; 0 for no discards.
    pub trim: u64,
    /// Number of outstanding commands of each job.
    pub iodepth: u64,
    /// Number of jobs.
    pub jobs: u64,
    /// Duration of the benchmark.
    pub runtime: Duration,
    /// The benchmark ends after it has submitted commands of this total length, in bytes; `None` for no limit.
    pub io_size: Option<u64>,
    /// Number of bytes that the benchmark uses, from the start of the device; `None` for the whole device.
    pub size: Option<u64>,
    /// True if writes contain verifiable data, and the data of reads is verified.
    pub verify: bool,
    /// How long the device stays idle before the benchmark.
    pub idle: Duration,
    /// Seed of the random offsets and sizes.
    pub seed: u64,
}

/// Mix of commands, with the names that fio uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadWrite {
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Random reads.
    Randread,
    /// Random writes.
    Randwrite,
    /// Random reads and writes, half of the commands each.
    Randrw,
    /// Sequential discards.
    Trim,
    /// Random discards.
    Randtrim,
}

/// Range of block sizes. Its limits are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// The smallest block size.
    pub least: u64,
    /// The largest block size.
    pub most: u64,
}

impl Default for BenchConfig {
    fn default() -> Self {
        Self {
            rw: ReadWrite::Randread,
            sizes: BlockSizes { least: 4096, most: 4096 },
            fsync: 0,
            trim: 0,
            iodepth: 32,
            jobs: 1,
            runtime: Duration::from_secs(10),
            io_size: None,
            size: None,
            verify: false,
            idle: Duration::ZERO,
            seed: 1,
        }
    }
}

impl BenchConfig {
    /// Returns true if the workload changes data on the device.
    #[must_use]
    pub const fn changes(&self) -> bool {
        !matches!(self.rw, ReadWrite::Read | ReadWrite::Randread)
    }

    /// Returns true if the workload discards blocks.
    #[must_use]
    pub const fn discards(&self) -> bool {
        self.changes() && self.trim > 0 || matches!(self.rw, ReadWrite::Trim | ReadWrite::Randtrim)
    }
}

impl ReadWrite {
    /// Returns true if the workload uses random offsets.
    #[must_use]
    pub const fn is_random(self) -> bool {
        matches!(self, Self::Randread | Self::Randwrite | Self::Randrw | Self::Randtrim)
    }
}

impl fmt::Display for ReadWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Randread => "randread",
            Self::Randwrite => "randwrite",
            Self::Randrw => "randrw",
            Self::Trim => "trim",
            Self::Randtrim => "randtrim",
        })
    }
}

impl fmt::Display for BlockSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.least == self.most {
            write!(f, "{}", self.least)
        } else {
            write!(f, "{}-{}", self.least, self.most)
        }
    }
}
