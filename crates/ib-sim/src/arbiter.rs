//! VL arbitration: which VL sends next; IBTA volume 1, chapter 7.6.9.
//!
//! Each of the two tables lists VLs with weights in units of 64 bytes and is served in turn. The
//! table of high priority comes first until it has sent its limit; then it is the turn of the other
//! one, and where that has nothing to send, the count of what was sent begins anew.

use ib_types::VirtualLane;
use ib_wire::mad::sm::{VlArbitration, VlArbitrationEntry};

/// The tables of VL arbitration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArbitrationTables {
    /// The low-priority entries in two blocks, then the high-priority ones.
    pub(crate) blocks: [VlArbitration; 4],
}

impl Default for ArbitrationTables {
    /// Returns the initial tables of ibsim: VL 0 has high priority, VLs 1 to 7 share the rest.
    fn default() -> Self {
        let empty = VlArbitration::zeroed();
        let (mut low, mut high) = (empty, empty);
        for vl in 0..8u8 {
            let number = VirtualLane::new(vl).expect("below 16");
            let entry = |weight| VlArbitrationEntry { lane: number, weight };
            low.entries[usize::from(vl)] = entry(if vl == 0 { 0 } else { 4 });
            high.entries[usize::from(vl)] = entry(if vl == 0 { 4 } else { 0 });
        }
        Self { blocks: [low, empty, high, empty] }
    }
}

/// How far the two tables have been served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arbiter {
    high: Turn,
    low: Turn,
    /// The bytes of high priority since low priority had its turn, or had nothing to send in it.
    high_sent: u32,
    /// Where the VL that was chosen last stood.
    last: Table,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Table {
    High,
    Low,
    #[default]
    Neither,
}

/// The entry whose turn it is, and what is left of its weight in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Turn {
    entry: u8,
    left: u32,
    started: bool,
}

impl Arbiter {
    /// Returns the VL to serve among those with something to send and the credit for it.
    ///
    /// `ready` has a bit for each such VL. The tables have so many entries each, and high
    /// priority may send `limit` units of 4 KiB before low priority has to be served, 0 for one
    /// packet and 255 for no limit. A VL that is in neither table is served last.
    pub(crate) fn choose(
        &mut self,
        tables: &ArbitrationTables,
        high_entries: u8,
        low_entries: u8,
        limit: u8,
        ready: u16,
    ) -> Option<u8> {
        if ready == 0 {
            return None;
        }
        let (low, high) = tables.blocks.split_at(2);
        let high_entry = |index: u8| high[usize::from(index / 32)].entries[usize::from(index % 32)];
        let low_entry = |index: u8| low[usize::from(index / 32)].entries[usize::from(index % 32)];
        let low_waits = (0..low_entries).any(|index| serves(low_entry(index), ready));
        let exhausted = match limit {
            255 => false,
            0 => self.high_sent > 0,
            limit => self.high_sent >= u32::from(limit) * 4096,
        };
        if exhausted && !low_waits {
            // Nobody was kept waiting by what high priority has sent so far.
            self.high_sent = 0;
        }
        if !(exhausted && low_waits)
            && let Some(vl) = self.high.choose(high_entry, high_entries, ready)
        {
            self.last = Table::High;
            return Some(vl);
        }
        if let Some(vl) = self.low.choose(low_entry, low_entries, ready) {
            self.last = Table::Low;
            return Some(vl);
        }
        self.last = Table::Neither;
        Some(ready.trailing_zeros() as u8)
    }

    /// Takes note that the VL that was chosen last has sent so many bytes.
    pub(crate) fn sent(&mut self, bytes: usize) {
        let bytes = bytes as u32;
        match self.last {
            Table::High => {
                self.high.left = self.high.left.saturating_sub(bytes);
                self.high_sent = self.high_sent.saturating_add(bytes);
            }
            Table::Low => {
                self.low.left = self.low.left.saturating_sub(bytes);
                self.high_sent = 0;
            }
            Table::Neither => {}
        }
    }
}

const fn serves(entry: VlArbitrationEntry, ready: u16) -> bool {
    entry.weight > 0 && ready >> entry.lane.get() & 1 == 1
}

impl Turn {
    /// Returns the VL of the entry whose turn it is: the current one while its weight lasts, and
    /// else the next one with something to send.
    fn choose(
        &mut self,
        entry: impl Fn(u8) -> VlArbitrationEntry,
        entries: u8,
        ready: u16,
    ) -> Option<u8> {
        if self.started && self.entry < entries && self.left > 0 && serves(entry(self.entry), ready)
        {
            return Some(entry(self.entry).lane.get());
        }
        let first = if self.started { self.entry + 1 } else { 0 };
        let index = (0..entries)
            .map(|step| ((u16::from(first) + u16::from(step)) % u16::from(entries)) as u8)
            .find(|&index| serves(entry(index), ready))?;
        let chosen = entry(index);
        *self = Self { entry: index, left: u32::from(chosen.weight) * 64, started: true };
        Some(chosen.lane.get())
    }
}

#[cfg(test)]
mod tests;
