//! What the SM knows of the subnet, and what it has written to it.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::Guid;
use ib_wire::mad::sm::PortState;

use crate::config::SmConfig;
use crate::found::{Found, NodeIndex, Place};
use crate::multicast::MulticastTables;
use crate::tables::{Tables, WrittenTables};

/// The subnet as it was discovered, and the tables of its switches and ports as far as they are known.
#[derive(Debug)]
pub(crate) struct ManagedSubnet {
    pub(crate) found: Found,
    pub(crate) tables: Tables,
    pub(crate) multicast: MulticastTables,
    written: WrittenTables,
    /// The members of each group, by multicast LID.
    groups: BTreeMap<u16, Vec<Guid>>,
    /// True if members have joined or left since the tables were written.
    regroup: bool,
    /// End ports that were requested to reregister since they joined or this SM started.
    pub(crate) registered: BTreeSet<Guid>,
    /// Switches whose LFT differed from the blocks written.
    pub(crate) read_back: BTreeSet<Guid>,
    /// True if clients have to reregister: the subnet had no SM before.
    pub(crate) is_fresh: bool,
}

/// What writing goes by.
pub(crate) struct Context<'a> {
    pub(crate) config: &'a SmConfig,
    pub(crate) found: &'a mut Found,
    pub(crate) tables: &'a mut Tables,
    pub(crate) multicast: &'a mut MulticastTables,
    pub(crate) written: &'a mut WrittenTables,
    /// The members of each group, by multicast LID.
    pub(crate) groups: &'a BTreeMap<u16, Vec<Guid>>,
    /// The end ports whose clients have been told to register again.
    pub(crate) registered: &'a mut BTreeSet<Guid>,
    /// The switches whose LFT differed from the blocks written. The SM reads back each block that it writes to them.
    pub(crate) read_back: &'a mut BTreeSet<Guid>,
}

impl Context<'_> {
    /// Returns whether clients at an end port shall register again: where no subnet of this manager was
    /// before, everything that was registered is forgotten. That lasts until the port has heard of it.
    pub(crate) fn reregisters(&self, place: Place) -> bool {
        let guid = self.found.port(place).guid;
        !self.registered.contains(&guid) && !self.config.no_clients_rereg
    }
}

impl ManagedSubnet {
    pub(crate) fn new() -> Self {
        Self {
            found: Found::default(),
            tables: Tables::new(),
            multicast: MulticastTables::default(),
            written: WrittenTables::new(),
            groups: BTreeMap::new(),
            regroup: false,
            registered: BTreeSet::new(),
            read_back: BTreeSet::new(),
            is_fresh: true,
        }
    }

    /// Returns what a configuration goes by.
    pub(crate) fn context<'a>(&'a mut self, config: &'a SmConfig) -> Context<'a> {
        let Self { found, tables, multicast, written, groups, registered, read_back, .. } = self;
        Context { config, found, tables, multicast, written, groups, registered, read_back }
    }

    /// Returns what was written to ports and is not read.
    pub(crate) const fn written(&self) -> &WrittenTables {
        &self.written
    }

    /// Replaces the discovered subnet. What is known of nodes that are gone, or that were reset, is forgotten.
    pub(crate) fn adopt(&mut self, found: Found, reset: &BTreeSet<Guid>) {
        self.found = found;
        let found = &self.found;
        // Another SM may write to the part that was not discovered.
        self.tables.retain(|&guid, _| found.find(guid).is_some());
        self.multicast.retain(|guid| found.find(guid).is_some() && !reset.contains(&guid));
        // A port whose link has just come up may have been reset and lost its configuration.
        self.written.retain(|&(guid, port), _| {
            let place = found.find(guid).map(|node| node.at(port));
            let info = place.and_then(|place| found.port(place).info.as_ref());
            info.is_some_and(|info| info.port_state != PortState::INIT)
        });
    }

    /// Takes note that a block of a switch's LFT may hold anything.
    pub(crate) fn forget_block(&mut self, node: NodeIndex, block: u16) {
        let guid = self.found.node(node).info.node_guid;
        self.tables.entry(guid).or_default().forget(block.into());
    }

    /// Forgets the tables: another SM may have written anything.
    pub(crate) fn forget_tables(&mut self) {
        self.tables = Tables::new();
        self.written = WrittenTables::new();
        self.is_fresh = true;
    }

    /// Replaces the members of multicast groups, which the tables follow from now on.
    pub(crate) fn set_groups(&mut self, groups: BTreeMap<u16, Vec<Guid>>) {
        (self.groups, self.regroup) = (groups, true);
    }

    /// Returns true if members have joined or left since the tables were written.
    pub(crate) const fn has_new_groups(&self) -> bool {
        self.regroup
    }

    /// Takes note that the tables are being written for the current members.
    pub(crate) const fn start_grouping(&mut self) {
        self.regroup = false;
    }
}

#[cfg(test)]
mod tests;
