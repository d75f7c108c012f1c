//! The configuration of the benchmark of a block device.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// The configuration of a benchmark.
#[derive(Clone, Debug)]
pub struct BenchConfig {
    /// The mix of commands.
    pub rw: ReadWrite,
    /// Block sizes, the sizes of the commands.
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
    /// Maximum number of bytes that are read and written.
    pub io_size: Option<u64>,
    /// Number of bytes of the device that are used; `None` for all.
    pub size: Option<u64>,
    /// True if verifiable data is written, and read data is compared with it.
    pub verify: bool,
    /// Duration for which the device is idle before the benchmark.
    pub idle: Duration,
    /// Seed of offsets and sizes.
    pub seed: u64,
}

/// Mix of commands, named as by fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    /// Random reads and writes, half of each.
    Randrw,
    /// Sequential discards.
    Trim,
    /// Random discards.
    Randtrim,
}

/// Range of block sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// The smallest.
    pub least: u64,
    /// The largest.
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
    /// Returns true if data on the device is changed.
    #[must_use]
    pub const fn changes(&self) -> bool {
        !matches!(self.rw, ReadWrite::Read | ReadWrite::Randread)
    }

    /// Returns true if blocks are discarded.
    #[must_use]
    pub const fn discards(&self) -> bool {
        self.changes() && self.trim > 0 || matches!(self.rw, ReadWrite::Trim | ReadWrite::Randtrim)
    }
}

impl ReadWrite {
    /// Returns true if offsets are random.
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
