//! What is counted of paths. Tables of processors have as many rows as processors were told of.

use std::time::Duration;

use crate::Direction;

mod micros;

pub use micros::Micros;

/// How many lengths of lists of pieces are told apart: 1 to 15, and more.
pub const SG_LENGTHS: usize = 16;

/// How many ranges of latency are told apart: up to 1 ms, 2 ms, 4 ms … 65,536 ms, and more.
pub const LATENCIES: usize = 18;

/// Requests and bytes each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Reads.
    pub reads: u64,
    /// Bytes of reads, headers of the user included.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of writes, headers of the user included.
    pub write_bytes: u64,
}

impl Traffic {
    /// Counts a request.
    pub(crate) const fn count(&mut self, direction: Direction, bytes: u64) {
        match direction {
            Direction::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Direction::Write => {
                self.writes += 1;
                self.write_bytes += bytes;
            }
        }
    }
}

/// How many completions were found at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// The most at once.
    pub most: u64,
    /// All of them.
    pub total: u64,
    /// How often there were any.
    pub calls: u64,
}

impl Completions {
    /// Counts those that were found at once.
    pub(crate) fn count(&mut self, found: u64) {
        self.most = self.most.max(found);
        self.total += found;
        self.calls += 1;
    }

    /// Returns the mean number at once; 0 before the first.
    #[must_use]
    pub fn average(&self) -> u64 {
        self.total.checked_div(self.calls).unwrap_or(0)
    }
}

/// How long requests took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Reads and writes by finer ranges.
    pub micros: [Micros; 2],
    /// Reads and writes by range: the first took up to 1 ms, the next up to 2 ms, and so on twice as long each.
    pub counts: [[u64; 2]; LATENCIES],
    /// The longest read and the longest write.
    pub longest: [Duration; 2],
    /// How long all reads and all writes took together.
    pub total: [Duration; 2],
}

impl Latencies {
    pub(crate) fn count(&mut self, direction: Direction, took: Duration) {
        let column = direction as usize;
        self.micros[column].count(took);
        let millis = took.as_nanos().div_ceil(1_000_000).max(1);
        let range = millis.next_power_of_two().trailing_zeros() as usize;
        self.counts[range.min(LATENCIES - 1)][column] += 1;
        self.longest[column] = self.longest[column].max(took);
        self.total[column] = self.total[column].saturating_add(took);
    }
}

/// What a client counts of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientPathStats {
    /// By processor: how often requests had 1, 2, 3 … pieces of memory; the last number is of all longer lists.
    pub sg_entries: Vec<[u64; SG_LENGTHS]>,
    /// By processor: completions that were expected there and came elsewhere.
    pub migrated_from: Vec<u64>,
    /// By processor: completions that came there and were expected elsewhere.
    pub migrated_to: Vec<u64>,
    /// Connections made again, and failed attempts.
    pub reconnects: Reconnects,
    /// How long requests took.
    pub latencies: Latencies,
    /// How many completions were found at once.
    pub completions: Completions,
    /// Requests and bytes.
    pub traffic: Traffic,
    /// Requests that another path has taken over from this one.
    pub failed_over: u64,
}

/// Connections made again, and failed attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconnects {
    /// Those that came to something.
    pub succeeded: u64,
    /// Those that did not.
    pub failed: u64,
}

/// Which numbers of a client's path are set to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the fields of `ClientPathStats`")]
pub enum ClientStat {
    All,
    SgEntries,
    Migration,
    Reconnects,
    Latencies,
    Completions,
    Traffic,
}

impl ClientPathStats {
    pub(crate) fn new(processors: usize) -> Self {
        Self {
            sg_entries: vec![[0; SG_LENGTHS]; processors],
            migrated_from: vec![0; processors],
            migrated_to: vec![0; processors],
            ..Self::default()
        }
    }

    /// Counts a request with so many pieces of memory.
    pub(crate) fn count_pieces(&mut self, cpu: u32, pieces: usize) {
        let row = row(cpu, self.sg_entries.len());
        if let Some(row) = self.sg_entries.get_mut(row).filter(|_| pieces > 0) {
            row[pieces.min(SG_LENGTHS) - 1] += 1;
        }
    }

    /// Counts a completion that came to another processor than that of its request.
    pub(crate) fn count_migration(&mut self, from: u32, to: u32) {
        let rows = self.migrated_from.len();
        if from == to || rows == 0 {
            return;
        }
        self.migrated_from[row(from, rows)] += 1;
        self.migrated_to[row(to, rows)] += 1;
    }

    pub(crate) fn reset(&mut self, what: ClientStat) {
        let fresh = Self::new(self.sg_entries.len());
        match what {
            ClientStat::All => *self = fresh,
            ClientStat::SgEntries => self.sg_entries = fresh.sg_entries,
            ClientStat::Migration => {
                (self.migrated_from, self.migrated_to) = (fresh.migrated_from, fresh.migrated_to);
            }
            ClientStat::Reconnects => self.reconnects = fresh.reconnects,
            ClientStat::Latencies => self.latencies = fresh.latencies,
            ClientStat::Completions => self.completions = fresh.completions,
            ClientStat::Traffic => {
                (self.traffic, self.failed_over) = (fresh.traffic, fresh.failed_over);
            }
        }
    }
}

/// Returns the row of a processor; one that nobody has told of has that of another.
const fn row(cpu: u32, rows: usize) -> usize {
    if rows == 0 { 0 } else { cpu as usize % rows }
}

/// What a server counts of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerPathStats {
    /// Requests and bytes.
    pub traffic: Traffic,
    /// How many completions were found at once.
    pub completions: Completions,
}

/// Which numbers of a server's path are set to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the fields of `ServerPathStats`")]
pub enum ServerStat {
    All,
    Traffic,
    Completions,
}

impl ServerPathStats {
    pub(crate) fn reset(&mut self, what: ServerStat) {
        match what {
            ServerStat::All => *self = Self::default(),
            ServerStat::Traffic => self.traffic = Traffic::default(),
            ServerStat::Completions => self.completions = Completions::default(),
        }
    }
}

#[cfg(test)]
mod tests;
