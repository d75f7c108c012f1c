//! Service levels of the paths between pairs of switches.

use ib_types::ServiceLevel;

use crate::subnet::SwitchId;

/// The service level of the paths from every switch to every other switch.
///
/// Packets of SL n use VL n on every link, as configured by OpenSM for its layered engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    switches: usize,
    /// Indexed by source switch and destination switch; empty if all paths use the same service level.
    levels: Vec<u8>,
    uniform: u8,
}

impl Layers {
    /// Returns an assignment of all paths to one service level.
    #[must_use]
    pub const fn uniform(level: ServiceLevel) -> Self {
        Self { switches: 0, levels: Vec::new(), uniform: level.get() }
    }

    /// Creates layers from a service level per pair; `levels` is indexed by source switch and destination switch.
    ///
    /// # Panics
    /// Panics if `levels` does not have one element per pair, or has a value above 15.
    #[must_use]
    pub fn per_pair(switches: usize, levels: Vec<u8>) -> Self {
        assert_eq!(levels.len(), switches * switches, "one level per pair of switches");
        assert!(levels.iter().all(|&level| level <= 15), "service levels are 0 to 15");
        Self { switches, levels, uniform: 0 }
    }

    /// Returns the service level of packets from one switch to another.
    #[must_use]
    pub fn level(&self, from: SwitchId, to: SwitchId) -> ServiceLevel {
        let level = if self.levels.is_empty() {
            self.uniform
        } else {
            self.levels[from.index() * self.switches + to.index()]
        };
        ServiceLevel::new(level).expect("the constructors accept only service levels 0 to 15")
    }

    /// Returns true if all paths use the same service level.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.levels.is_empty()
    }

    /// Returns the number of service levels in use.
    #[must_use]
    pub fn count(&self) -> usize {
        self.used().count_ones() as usize
    }

    /// Returns the mask of the service levels in use: bit n stands for SL n.
    #[must_use]
    pub fn used(&self) -> u16 {
        if self.levels.is_empty() {
            return 1 << self.uniform;
        }
        self.levels.iter().fold(0, |used, &level| used | 1 << level)
    }
}
