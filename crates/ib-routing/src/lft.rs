//! Linear forwarding tables.

use std::collections::BTreeMap;

use crate::subnet::{Subnet, SwitchId};

/// The LFT entry for a LID whose packets the switch drops.
pub const NO_PATH: u8 = 255;

/// The linear forwarding tables (LFTs) of all switches of a subnet. They have an output port for each switch and LID.
///
/// Port 0 is the switch itself. If the entry is [`NO_PATH`], the switch drops packets to the LID. IBTA volume 1,
/// chapter 14.2.5.11.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lfts {
    width: usize,
    entries: Vec<u8>,
}

impl Lfts {
    /// Returns tables without routes, for all LIDs up to the highest one of the subnet.
    #[must_use]
    pub fn new(subnet: &Subnet<'_>) -> Self {
        let width = usize::from(subnet.max_lid()) + 1;
        Self { width, entries: vec![NO_PATH; width * subnet.switches().len()] }
    }

    /// Returns the number of switches.
    #[must_use]
    pub fn switches(&self) -> usize {
        self.entries.len() / self.width
    }

    /// Returns the highest LID that the tables contain.
    #[must_use]
    pub fn max_lid(&self) -> u16 {
        (self.width - 1) as u16
    }

    /// Returns the table of a switch, indexed by LID.
    #[must_use]
    pub fn table(&self, switch: SwitchId) -> &[u8] {
        &self.entries[switch.index() * self.width..][..self.width]
    }

    /// Returns the table of a switch for writing.
    pub fn table_mut(&mut self, switch: SwitchId) -> &mut [u8] {
        &mut self.entries[switch.index() * self.width..][..self.width]
    }

    /// Returns the tables of all switches for writing, in the order of the switches.
    pub fn tables_mut(&mut self) -> std::slice::ChunksExactMut<'_, u8> {
        self.entries.chunks_exact_mut(self.width)
    }

    /// Returns the tables of all switches as a parallel iterator for writing.
    pub fn par_tables_mut(&mut self) -> rayon::slice::ChunksExactMut<'_, u8> {
        rayon::slice::ParallelSliceMut::par_chunks_exact_mut(
            self.entries.as_mut_slice(),
            self.width,
        )
    }

    /// Returns the output port of a switch for a LID. Returns [`NO_PATH`] if the switch has no entry, or if the LID is
    /// above [`Self::max_lid`].
    #[must_use]
    pub fn port(&self, switch: SwitchId, lid: u16) -> u8 {
        if usize::from(lid) < self.width {
            self.entries[switch.index() * self.width + usize::from(lid)]
        } else {
            NO_PATH
        }
    }
}

/// The entries of forwarding tables that are unknown, because the dump file with the tables is truncated or has
/// contradictory lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownEntries {
    /// By switch and LID: true if the entry is unknown.
    by_switch: BTreeMap<SwitchId, Vec<bool>>,
}

impl UnknownEntries {
    /// Returns true if all entries are known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_switch.is_empty()
    }

    /// Returns true if the entry of a switch for a LID is unknown.
    #[must_use]
    pub fn contains(&self, switch: SwitchId, lid: u16) -> bool {
        let entries = self.by_switch.get(&switch);
        entries.is_some_and(|entries| entries.get(usize::from(lid)) == Some(&true))
    }

    /// Returns the switches that have unknown entries, in ascending order, each with the number of its unknown entries.
    pub fn switches(&self) -> impl Iterator<Item = (SwitchId, usize)> {
        self.by_switch.iter().map(|(&switch, lids)| (switch, lids.iter().filter(|&&it| it).count()))
    }

    /// Marks the entry of a switch for a LID as unknown.
    pub(crate) fn add(&mut self, switch: SwitchId, lid: u16) {
        let entries = self.by_switch.entry(switch).or_default();
        let length = entries.len().max(usize::from(lid) + 1);
        entries.resize(length, false);
        entries[usize::from(lid)] = true;
    }
}
