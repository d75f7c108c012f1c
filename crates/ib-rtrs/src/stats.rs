//! Statistics of paths. Tables have one row per processor,
//! [`ClientConfig::processors`](crate::ClientConfig::processors) rows in total.

use std::time::Duration;

use crate::Direction;

mod histogram;

pub use histogram::LatencyHistogram;

/// Number of columns of [`ClientPathStats::sg_entries`]: one each for 1 to 15 SGEs, and one for 16 or more.
pub const SG_COLUMNS: usize = 16;

/// Number of ranges of [`Latencies::counts`]: up to 1 ms, 2 ms, 4 ms and so on to 65,536 ms, and a range for longer
/// latencies.
pub const LATENCY_RANGES: usize = 18;

/// Counts of requests and bytes, by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of reads.
    pub reads: u64,
    /// Number of bytes of reads, including the user's headers.
    pub read_bytes: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of bytes of writes, including the user's headers.
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

/// Statistics of how many completions each poll of a CQ has returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// Maximum number of completions that one poll has returned.
    pub most: u64,
    /// Total number of completions.
    pub total: u64,
    /// Number of polls that have returned at least one completion.
    pub calls: u64,
}

impl Completions {
    /// Counts the completions that one poll has returned.
    pub(crate) fn count(&mut self, found: u64) {
        self.most = self.most.max(found);
        self.total += found;
        self.calls += 1;
    }

    /// Returns the mean number of completions per poll, rounded down; 0 if no poll has returned a completion.
    #[must_use]
    pub fn average(&self) -> u64 {
        self.total.checked_div(self.calls).unwrap_or(0)
    }
}

/// Latencies of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Latency histograms of reads and of writes.
    pub histograms: [LatencyHistogram; 2],
    /// Numbers of reads and of writes by latency range: up to 1 ms, up to 2 ms, up to 4 ms, and so on.
    pub counts: [[u64; 2]; LATENCY_RANGES],
    /// Maximum latencies of reads and of writes.
    pub longest: [Duration; 2],
    /// Sums of the latencies of all reads and of all writes.
    pub total: [Duration; 2],
}

impl Latencies {
    pub(crate) fn count(&mut self, direction: Direction, took: Duration) {
        let column = direction as usize;
        self.histograms[column].count(took);
        let millis = took.as_nanos().div_ceil(1_000_000).max(1);
        let range = millis.next_power_of_two().trailing_zeros() as usize;
        self.counts[range.min(LATENCY_RANGES - 1)][column] += 1;
        self.longest[column] = self.longest[column].max(took);
        self.total[column] = self.total[column].saturating_add(took);
    }
}

/// Statistics of one path at the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientPathStats {
    /// For each processor, the number of requests with 1, 2, 3 … SGEs. The last column counts all requests with
    /// [`SG_COLUMNS`] or more SGEs.
    pub sg_entries: Vec<[u64; SG_COLUMNS]>,
    /// For each processor, the number of its requests whose completions arrived on another processor.
    pub migrated_from: Vec<u64>,
    /// For each processor, the number of completions that arrived on it for requests of other processors.
    pub migrated_to: Vec<u64>,
    /// Counts of successful and failed reconnects.
    pub reconnects: Reconnects,
    /// Latencies of requests.
    pub latencies: Latencies,
    /// Statistics of how many completions each poll of the CQ has returned.
    pub completions: Completions,
    /// Counts of requests and bytes.
    pub traffic: Traffic,
    /// Number of requests that were in flight when the path failed, summed over all failures of the path.
    pub failed_over: u64,
}

/// Counts of a path's reconnects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconnects {
    /// Number of successful reconnects.
    pub succeeded: u64,
    /// Number of failed attempts to reconnect.
    pub failed: u64,
}

/// Selects which statistics of a client's path are reset.
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
            sg_entries: vec![[0; SG_COLUMNS]; processors],
            migrated_from: vec![0; processors],
            migrated_to: vec![0; processors],
            ..Self::default()
        }
    }

    /// Counts a request by its number of SGEs.
    pub(crate) fn count_sg_entries(&mut self, cpu: u32, entries: usize) {
        let row = row(cpu, self.sg_entries.len());
        if let Some(row) = self.sg_entries.get_mut(row).filter(|_| entries > 0) {
            row[entries.min(SG_COLUMNS) - 1] += 1;
        }
    }

    /// Counts a completion that arrived on processor `to` for a request of processor `from`, if the two differ.
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

/// Returns the row of a processor. Processors beyond the configured number share rows with other processors.
const fn row(cpu: u32, rows: usize) -> usize {
    if rows == 0 { 0 } else { cpu as usize % rows }
}

/// Statistics of one path at the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerPathStats {
    /// Counts of requests and bytes.
    pub traffic: Traffic,
    /// Statistics of how many completions each poll of the CQ has returned.
    pub completions: Completions,
}

/// Selects which statistics of a server's path are reset.
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
