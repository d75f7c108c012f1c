//! What is known of the tables in switches and ports.

use std::collections::BTreeMap;

use ib_routing::NO_PATH;
use ib_types::Guid;
use ib_wire::mad::sm::{LinearForwardingBlock, SlToVl, VlArbitration};

const BLOCK: usize = LinearForwardingBlock::LIDS as usize;

/// The linear forwarding table of a switch as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SwitchTable {
    /// A whole number of blocks.
    ports: Vec<u8>,
    /// By block.
    known: Vec<bool>,
    /// The highest LID in use, as it was written to SwitchInfo or read from there.
    pub(crate) top: u16,
}

/// The tables of all switches, by node GUID.
pub(crate) type Tables = BTreeMap<Guid, SwitchTable>;

impl SwitchTable {
    /// Returns the ports by LID; what is not known is [`NO_PATH`].
    pub(crate) fn ports(&self) -> &[u8] {
        &self.ports
    }

    /// Returns the number of blocks that were written or read.
    pub(crate) const fn blocks(&self) -> usize {
        self.known.len()
    }

    /// Returns a block when it is known.
    pub(crate) fn block(&self, block: usize) -> Option<&[u8; BLOCK]> {
        let known = *self.known.get(block)?;
        known.then(|| self.ports[block * BLOCK..][..BLOCK].first_chunk().expect("a whole block"))
    }

    /// Returns the blocks in use of which nobody knows what they hold.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = u16> {
        let used = if self.top == 0 { 0 } else { self.top / LinearForwardingBlock::LIDS + 1 };
        (0..used).filter(|&block| self.block(block.into()).is_none())
    }

    /// Takes note of what a block holds now.
    pub(crate) fn set(&mut self, block: usize, ports: &[u8; BLOCK]) {
        self.grow(block);
        self.ports[block * BLOCK..][..BLOCK].copy_from_slice(ports);
        self.known[block] = true;
    }

    /// Takes note that nobody knows what a block holds.
    pub(crate) fn forget(&mut self, block: usize) {
        self.grow(block);
        self.known[block] = false;
    }

    fn grow(&mut self, block: usize) {
        if block >= self.known.len() {
            self.known.resize(block + 1, false);
            self.ports.resize((block + 1) * BLOCK, NO_PATH);
        }
    }
}

/// What was written to a port of which nobody reads it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortTables {
    /// The VLs of service levels, by the port that packets come in by; 0 of other nodes than switches.
    pub(crate) sl_to_vl: BTreeMap<u8, SlToVl>,
    /// The VL arbitration entries by block, from 1 on.
    pub(crate) arbitration: BTreeMap<u8, VlArbitration>,
}

/// What was written to all ports, by node GUID and number.
pub(crate) type WrittenTables = BTreeMap<(Guid, u8), PortTables>;
