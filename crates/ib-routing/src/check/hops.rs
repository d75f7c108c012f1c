//! Statistics of the lengths of routes.

/// Statistics of the lengths of routes, in links between switches.
///
/// A route leads from a port of a channel adapter or router to a LID of another such port. Only routes that arrive are
/// counted. Two hosts on the same switch are 0 hops apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HopStats {
    /// Number of routes, indexed by their hops.
    pub histogram: Vec<u64>,
    /// Number of routes with more hops than the shortest path.
    pub longer_than_minimum: u64,
    /// Maximum number of hops by which a route exceeds the shortest path.
    pub worst_excess: u16,
}

impl HopStats {
    /// Returns the number of routes.
    #[must_use]
    pub fn routes(&self) -> u64 {
        self.histogram.iter().sum()
    }

    /// Returns the number of hops of the longest route; 0 if there are no routes.
    #[must_use]
    pub fn max(&self) -> usize {
        self.histogram.len().saturating_sub(1)
    }

    /// Returns the mean number of hops of a route; 0 if there are no routes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let total: u64 =
            (0..).zip(&self.histogram).map(|(hops, &routes): (u64, _)| hops * routes).sum();
        total as f64 / self.routes().max(1) as f64
    }
}

/// Counts of routes by their hops, from which [`HopStats`] are computed.
#[derive(Clone, Debug, Default)]
pub(super) struct HopCounts {
    by_hops: Vec<u64>,
    /// Number of routes, indexed by the hops by which they exceed the shortest path.
    by_excess: Vec<u64>,
}

impl HopCounts {
    pub(super) fn add(&mut self, hops: u16, least: u16, routes: u64) {
        if routes == 0 {
            return;
        }
        for (counts, at) in
            [(&mut self.by_hops, hops), (&mut self.by_excess, hops.saturating_sub(least))]
        {
            let at = usize::from(at);
            if counts.len() <= at {
                counts.resize(at + 1, 0);
            }
            counts[at] += routes;
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.exchange(&Self::default(), other);
    }

    /// Subtracts the counts `out`, which were added earlier, and adds the counts `into`.
    pub(super) fn exchange(&mut self, out: &Self, into: &Self) {
        change(&mut self.by_hops, &out.by_hops, &into.by_hops);
        change(&mut self.by_excess, &out.by_excess, &into.by_excess);
    }

    pub(super) fn stats(self) -> HopStats {
        let used = |counts: &[u64]| counts.iter().rposition(|&count| count > 0);
        let length = used(&self.by_hops).map_or(0, |last| last + 1);
        let worst = used(&self.by_excess).unwrap_or(0);
        let mut histogram = self.by_hops;
        histogram.truncate(length);
        HopStats {
            histogram,
            longer_than_minimum: self.by_excess.iter().skip(1).sum(),
            worst_excess: worst as u16,
        }
    }
}

fn change(counts: &mut Vec<u64>, out: &[u64], into: &[u64]) {
    counts.resize(counts.len().max(out.len()).max(into.len()), 0);
    for (count, out) in counts.iter_mut().zip(out) {
        *count -= out;
    }
    for (count, into) in counts.iter_mut().zip(into) {
        *count += into;
    }
}
