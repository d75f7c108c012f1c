//! Histogram of latencies, from 1 µs to 134 s.

use std::time::Duration;

/// Number of ranges: four for each power of two, up to 2^27 µs (134 s).
const RANGES: usize = 104;

/// A histogram of latencies.
///
/// Below 4 µs, each microsecond is a range. From 4 µs on, each power of two is divided into four ranges, so that the
/// relative error is at most a quarter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyHistogram {
    counts: [u64; RANGES],
    longest: Duration,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { counts: [0; RANGES], longest: Duration::ZERO }
    }
}

impl LatencyHistogram {
    pub(super) fn count(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.counts[range(micros).min(RANGES - 1)] += 1;
        self.longest = self.longest.max(took);
    }

    /// Adds the counts of another histogram to this histogram.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.longest = self.longest.max(other.longest);
    }

    /// Returns each range that contains requests: its exclusive upper limit in microseconds, and its number of
    /// requests. The last range includes all longer latencies.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().copied().enumerate();
        counts.filter(|&(_, count)| count > 0).map(|(range, count)| (end(range), count))
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns a quantile: the upper limit of the range that contains it, but at most the maximum latency. `share` is
    /// from 0 to 1. Returns 0 if there are no requests.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = ((self.requests() as f64 * share).ceil() as u64).max(1);
        let mut before = 0;
        for (end, count) in self.ranges() {
            before += count;
            if before >= wanted {
                return Duration::from_micros(end).min(self.longest);
            }
        }
        self.longest
    }

    /// Returns the maximum latency.
    #[must_use]
    pub const fn longest(&self) -> Duration {
        self.longest
    }
}

/// Returns the index of the range that contains a time in microseconds. From 4 µs on, the index consists of the
/// position of the most significant bit, and of the next two bits.
const fn range(micros: u64) -> usize {
    match micros.checked_ilog2() {
        Some(power) if power >= 2 => {
            4 * (power as usize - 1) + (micros >> (power - 2) & 3) as usize
        }
        _ => micros as usize,
    }
}

/// Returns the exclusive upper limit of a range in microseconds.
const fn end(range: usize) -> u64 {
    if range < 4 {
        return range as u64 + 1;
    }
    let (power, quarter) = (range / 4 + 1, range as u64 % 4);
    (4 + quarter + 1) << (power - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_within_the_limits_of_its_range() {
        for micros in (0..5000).chain([1 << 20, (1 << 27) - 1]) {
            let found = range(micros);
            assert!(end(found) > micros, "{micros}");
            assert!(found == 0 || end(found - 1) <= micros, "{micros}");
            let width = end(found) - if found == 0 { 0 } else { end(found - 1) };
            assert!(width == 1 || width * 4 <= micros, "{micros}: {width}");
        }
        assert_eq!(range((1 << 27) - 1), RANGES - 1);
    }

    #[test]
    fn quantiles_and_ranges_match_counted_latencies() {
        let mut micros = LatencyHistogram::default();
        assert_eq!((micros.quantile(0.5), micros.ranges().count()), (Duration::ZERO, 0));
        for took in 1..=100 {
            micros.count(Duration::from_micros(took));
        }
        assert_eq!(micros.requests(), 100);
        // 50 µs is in the range 48 to 55 µs, and 99 µs in the range 96 to 111 µs. The maximum latency is 100 µs.
        assert_eq!(micros.quantile(0.5), Duration::from_micros(56));
        assert_eq!(micros.quantile(0.99), Duration::from_micros(100));
        assert_eq!(micros.quantile(0.0), Duration::from_micros(2));
        assert!(micros.ranges().any(|range| range == (56, 8)));
        let mut all = LatencyHistogram::default();
        all.count(Duration::from_secs(1000));
        all.add(&micros);
        assert_eq!((all.requests(), all.longest()), (101, Duration::from_secs(1000)));
        assert_eq!(all.quantile(1.0), Duration::from_micros(1 << 27));
    }
}
