//! Percentiles of durations.

/// The reported percentiles: name and fraction.
pub const PERCENTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)];

/// Distribution of durations in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles {
    /// Number of durations in the distribution.
    pub count: u64,
    /// Minimum.
    pub min: i64,
    /// For each fraction in [`PERCENTILES`], the smallest duration `t` such that at least this fraction of the
    /// durations is at most `t`.
    pub fractions: [i64; PERCENTILES.len()],
    /// Maximum.
    pub max: i64,
}

impl Percentiles {
    /// Returns the distribution of `times`, which are sorted in place; `None` if `times` is empty.
    #[must_use]
    pub fn of(times: &mut [i64]) -> Option<Self> {
        times.sort_unstable();
        let (&min, &max) = (times.first()?, times.last()?);
        let fractions = PERCENTILES.map(|(_, fraction)| {
            let rank = (fraction * times.len() as f64).ceil() as usize;
            times[rank.clamp(1, times.len()) - 1]
        });
        Some(Self { count: times.len() as u64, min, fractions, max })
    }
}
