//! VL arbitration: chooses the VL that sends next (IBTA volume 1, chapter 7.6.9).
//!
//! There are two tables of entries. Each entry has a VL and a weight in units of 64 bytes; the
//! entries of a table are served in turn. VLs of the high-priority table send first, up to a limit
//! in bytes. Then a VL of the low-priority table sends, and the count of bytes restarts. If no VL of
//! the low-priority table has packets when the limit is reached, the count also restarts.

use ib_types::VirtualLane;
use ib_wire::mad::sm::{VlArbitration, VlArbitrationEntry};

/// The VL arbitration tables of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArbitrationTables {
    /// Two blocks of low-priority entries, followed by two blocks of high-priority entries.
    pub(crate) blocks: [VlArbitration; 4],
}

impl Default for ArbitrationTables {
    /// Returns the initial tables of ibsim: VL 0 has high priority, VLs 1 to 7 have low priority.
    fn default() -> Self {
        let empty = VlArbitration::zeroed();
        let (mut low, mut high) = (empty, empty);
        for vl in 0..8u8 {
            let number = VirtualLane::new(vl).expect("VLs 0 to 7 are valid");
            let entry = |weight| VlArbitrationEntry { lane: number, weight };
            low.entries[usize::from(vl)] = entry(if vl == 0 { 0 } else { 4 });
            high.entries[usize::from(vl)] = entry(if vl == 0 { 4 } else { 0 });
        }
        Self { blocks: [low, empty, high, empty] }
    }
}

/// The state of VL arbitration at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arbiter {
    high: CurrentEntry,
    low: CurrentEntry,
    /// Bytes sent with high priority since a low-priority packet was last sent, or since the limit
    /// was last reached while no low-priority packet was waiting.
    high_sent: u32,
    /// The table from which the last VL was chosen.
    last: Table,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Table {
    High,
    Low,
    #[default]
    None,
}

/// The current entry of a table, and the rest of the entry's weight in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CurrentEntry {
    entry: u8,
    left: u32,
    started: bool,
}

impl Arbiter {
    /// Returns the VL that sends next; `None` if no VL is ready.
    ///
    /// `ready` has a bit for each VL with packets and credits. `limit` is the number of 4 KiB units
    /// that VLs of high priority can send before one of low priority: 0 means one packet, 255 no
    /// limit. VLs in neither table are served last.
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
            // The high-priority limit is reached, but no low-priority packet is waiting. So the
            // count of high-priority bytes restarts.
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
        self.last = Table::None;
        Some(ready.trailing_zeros() as u8)
    }

    /// Records that the last chosen VL has sent `bytes`.
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
            Table::None => {}
        }
    }
}

const fn serves(entry: VlArbitrationEntry, ready: u16) -> bool {
    entry.weight > 0 && ready >> entry.lane.get() & 1 == 1
}

impl CurrentEntry {
    /// Returns the VL of the current entry, if the entry has weight left and the VL is ready.
    /// Otherwise makes the next entry with a ready VL the current one, and returns its VL. Returns
    /// `None` if no VL of the table is ready.
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
