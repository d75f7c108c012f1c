//! Which service level a pair of switches uses, and which VL that is.

use ib_types::ServiceLevel;

use crate::subnet::SwitchId;

/// The service level of the paths between every pair of switches.
///
/// SL n travels on VL n on every link, as OpenSM sets it up for its layered engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    switches: usize,
    /// `[source switch][destination switch]`; empty when all paths use one level.
    levels: Vec<u8>,
    uniform: u8,
}

impl Layers {
    /// Returns the layers of an engine that puts everything on one service level.
    #[must_use]
    pub const fn uniform(level: ServiceLevel) -> Self {
        Self { switches: 0, levels: Vec::new(), uniform: level.get() }
    }

    /// Makes layers from a level per pair, `[source switch][destination switch]`.
    ///
    /// # Panics
    /// Panics when `levels` is not square or holds a value above 15.
    #[must_use]
    pub fn per_pair(switches: usize, levels: Vec<u8>) -> Self {
        assert_eq!(levels.len(), switches * switches, "one level per pair of switches");
        assert!(levels.iter().all(|&level| level <= 15), "service levels are 0 to 15");
        Self { switches, levels, uniform: 0 }
    }

    /// Returns the service level from one switch to another.
    #[must_use]
    pub fn level(&self, from: SwitchId, to: SwitchId) -> ServiceLevel {
        let level = if self.levels.is_empty() {
            self.uniform
        } else {
            self.levels[from.index() * self.switches + to.index()]
        };
        ServiceLevel::new(level).expect("checked when made")
    }

    /// Returns true when all paths use one service level.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.levels.is_empty()
    }

    /// Returns the number of different service levels in use.
    #[must_use]
    pub fn count(&self) -> usize {
        self.used().count_ones() as usize
    }

    /// Returns the service levels in use, bit n for SL n.
    #[must_use]
    pub fn used(&self) -> u16 {
        if self.levels.is_empty() {
            return 1 << self.uniform;
        }
        self.levels.iter().fold(0, |used, &level| used | 1 << level)
    }
}
