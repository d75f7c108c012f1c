//! The tables of switches and ports, as far as the SM knows them.

use std::collections::BTreeMap;

use ib_routing::NO_PATH;
use ib_types::Guid;
use ib_wire::mad::sm::{LinearForwardingBlock, SlToVl, VlArbitration};

const BLOCK: usize = LinearForwardingBlock::LIDS as usize;

/// The linear forwarding table of a switch, as far as the SM knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SwitchTable {
    /// Egress port of each LID. The length is always a whole number of blocks.
    ports: Vec<u8>,
    /// True for each block whose content is known.
    known: Vec<bool>,
    /// `LinearFDBTop`, as last written to SwitchInfo or read from SwitchInfo.
    pub(crate) top: u16,
}

/// The tables of all switches, by node GUID.
pub(crate) type Tables = BTreeMap<Guid, SwitchTable>;

impl SwitchTable {
    /// Returns the egress port of each LID; [`NO_PATH`] for unknown entries.
    pub(crate) fn ports(&self) -> &[u8] {
        &self.ports
    }

    /// Returns the number of blocks in the table, whether their content is known or not.
    pub(crate) const fn blocks(&self) -> usize {
        self.known.len()
    }

    /// Returns the content of a block; `None` if it is unknown.
    pub(crate) fn block(&self, block: usize) -> Option<&[u8; BLOCK]> {
        let known = *self.known.get(block)?;
        known.then(|| {
            self.ports[block * BLOCK..][..BLOCK].first_chunk().expect("the slice has one block")
        })
    }

    /// Returns the block numbers of the LFT blocks with unknown content, up to `LinearFDBTop`.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = u16> {
        let used = if self.top == 0 { 0 } else { self.top / LinearForwardingBlock::LIDS + 1 };
        (0..used).filter(|&block| self.block(block.into()).is_none())
    }

    /// Records the content of a block.
    pub(crate) fn set(&mut self, block: usize, ports: &[u8; BLOCK]) {
        self.grow(block);
        self.ports[block * BLOCK..][..BLOCK].copy_from_slice(ports);
        self.known[block] = true;
    }

    /// Marks the content of a block as unknown.
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

/// The tables that the SM wrote to a port. The SM never reads these tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortTables {
    /// SL-to-VL tables by input port. Nodes other than switches have only input port 0.
    pub(crate) sl_to_vl: BTreeMap<u8, SlToVl>,
    /// VL arbitration blocks by number, from 1 on.
    pub(crate) arbitration: BTreeMap<u8, VlArbitration>,
}

/// The tables that the SM wrote to each port, by node GUID and port number.
pub(crate) type WrittenTables = BTreeMap<(Guid, u8), PortTables>;
