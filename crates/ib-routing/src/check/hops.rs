//! The lengths of routes.

/// How many links between switches the routes take.
///
/// A route leads from a channel adapter's or router's port to a LID of another one. Only routes
/// that arrive count. Two hosts on one switch are 0 hops apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HopStats {
    /// The number of routes by hops.
    pub histogram: Vec<u64>,
    /// The routes that take more hops than the fabric needs.
    pub longer_than_minimum: u64,
    /// The most hops that a route takes beyond the least possible.
    pub worst_excess: u16,
}

impl HopStats {
    /// Returns the number of routes.
    #[must_use]
    pub fn routes(&self) -> u64 {
        self.histogram.iter().sum()
    }

    /// Returns the hops of the longest route; 0 when there is none.
    #[must_use]
    pub fn max(&self) -> usize {
        self.histogram.len().saturating_sub(1)
    }

    /// Returns the mean hops of a route; 0 when there is none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let total: u64 =
            (0..).zip(&self.histogram).map(|(hops, &routes): (u64, _)| hops * routes).sum();
        total as f64 / self.routes().max(1) as f64
    }

    pub(super) fn add(&mut self, hops: u16, least: u16, routes: u64) {
        if routes == 0 {
            return;
        }
        let index = usize::from(hops);
        if self.histogram.len() <= index {
            self.histogram.resize(index + 1, 0);
        }
        self.histogram[index] += routes;
        if hops > least {
            self.longer_than_minimum += routes;
            self.worst_excess = self.worst_excess.max(hops - least);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if self.histogram.len() < other.histogram.len() {
            self.histogram.resize(other.histogram.len(), 0);
        }
        for (ours, theirs) in self.histogram.iter_mut().zip(&other.histogram) {
            *ours += theirs;
        }
        self.longer_than_minimum += other.longer_than_minimum;
        self.worst_excess = self.worst_excess.max(other.worst_excess);
    }
}
