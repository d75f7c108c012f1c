//! How times are spread.

/// Fractions of times that are not longer, by their names.
pub const FRACTIONS: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)];

/// Bounds of a set of times, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// How many times there are.
    pub count: u64,
    /// The shortest.
    pub min: i64,
    /// For each of [`FRACTIONS`] the shortest time than which so many are not longer.
    pub fractions: [i64; FRACTIONS.len()],
    /// The longest.
    pub max: i64,
}

impl Spread {
    /// Finds the bounds of some times, which it sorts; `None` when there are none.
    #[must_use]
    pub fn of(times: &mut [i64]) -> Option<Self> {
        times.sort_unstable();
        let (&min, &max) = (times.first()?, times.last()?);
        let fractions = FRACTIONS.map(|(_, fraction)| {
            let rank = (fraction * times.len() as f64).ceil() as usize;
            times[rank.clamp(1, times.len()) - 1]
        });
        Some(Self { count: times.len() as u64, min, fractions, max })
    }
}
