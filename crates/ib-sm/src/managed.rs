//! The SM's knowledge of the subnet, and the data from which the SM computes its writes.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::Guid;
use ib_wire::mad::sm::PortState;

use crate::config::SmConfig;
use crate::discovered_subnet::{DiscoveredSubnet, NodeIndex, PortIndex};
use crate::multicast::MulticastTables;
use crate::tables::{Tables, WrittenTables};

/// The discovered subnet, and the last known tables of its switches and ports.
#[derive(Debug)]
pub(crate) struct ManagedSubnet {
    pub(crate) found: DiscoveredSubnet,
    pub(crate) tables: Tables,
    pub(crate) multicast: MulticastTables,
    written: WrittenTables,
    /// Port GUIDs of the members of each multicast group, by multicast LID.
    groups: BTreeMap<u16, Vec<Guid>>,
    /// True if members have joined or left groups since the multicast tables were written.
    regroup: bool,
    /// GUIDs of end ports whose PortInfo this SM has written. The first write requests client reregistration, if
    /// the port supports it and the configuration allows it. A port is removed when it leaves the subnet. All ports
    /// are removed when the state of the SM changes.
    pub(crate) registered: BTreeSet<Guid>,
    /// GUIDs of switches whose LFT once differed from the blocks that the SM wrote. The SM reads back each block that
    /// it writes to them.
    pub(crate) read_back: BTreeSet<Guid>,
    /// True until this SM brings the subnet up. The start of the SM, the change to a standby SM and `forget_tables` set
    /// it again.
    pub(crate) is_fresh: bool,
}

/// The data from which the SM computes its writes, and the state that the writes update.
pub(crate) struct Context<'a> {
    pub(crate) config: &'a SmConfig,
    pub(crate) found: &'a mut DiscoveredSubnet,
    pub(crate) tables: &'a mut Tables,
    pub(crate) multicast: &'a mut MulticastTables,
    pub(crate) written: &'a mut WrittenTables,
    /// Port GUIDs of the members of each multicast group, by multicast LID.
    pub(crate) groups: &'a BTreeMap<u16, Vec<Guid>>,
    /// GUIDs of end ports whose PortInfo this SM has written. The first write requests client reregistration, if
    /// the port supports it and the configuration allows it. A port is removed when it leaves the subnet. All ports
    /// are removed when the state of the SM changes.
    pub(crate) registered: &'a mut BTreeSet<Guid>,
    /// GUIDs of switches whose LFT once differed from the blocks that the SM wrote. The SM reads back each block that
    /// it writes to them.
    pub(crate) read_back: &'a mut BTreeSet<Guid>,
}

impl Context<'_> {
    /// Returns true if the clients at an end port have to reregister: the port has not received the request yet, and
    /// the configuration does not disable it.
    pub(crate) fn must_reregister(&self, port_index: PortIndex) -> bool {
        let guid = self.found.port(port_index).guid;
        !self.registered.contains(&guid) && !self.config.no_clients_rereg
    }
}

impl ManagedSubnet {
    pub(crate) fn new() -> Self {
        Self {
            found: DiscoveredSubnet::default(),
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

    /// Returns the data from which the SM computes its writes, and the state that the writes update.
    pub(crate) fn context<'a>(&'a mut self, config: &'a SmConfig) -> Context<'a> {
        let Self { found, tables, multicast, written, groups, registered, read_back, .. } = self;
        Context { config, found, tables, multicast, written, groups, registered, read_back }
    }

    /// Returns the tables that the SM wrote to ports and never reads back.
    pub(crate) const fn written(&self) -> &WrittenTables {
        &self.written
    }

    /// Replaces the discovered subnet. Drops the tables of nodes that have left the subnet or were reset.
    pub(crate) fn adopt(&mut self, found: DiscoveredSubnet, reset: &BTreeSet<Guid>) {
        self.found = found;
        let found = &self.found;
        // Another SM may write the tables of nodes that this SM did not discover, so these tables are dropped.
        self.tables.retain(|&guid, _| found.find(guid).is_some());
        self.multicast.retain(|guid| found.find(guid).is_some() && !reset.contains(&guid));
        // The tables of a port in the state Init are dropped, because the port may have been reset.
        self.written.retain(|&(guid, port), _| {
            let port_index = found.find(guid).map(|node| node.at(port));
            let info = port_index.and_then(|port_index| found.port(port_index).info.as_ref());
            info.is_some_and(|info| info.port_state != PortState::INIT)
        });
    }

    /// Marks a block of a switch's LFT as unknown.
    pub(crate) fn forget_block(&mut self, node: NodeIndex, block: u16) {
        let guid = self.found.node(node).info.node_guid;
        self.tables.entry(guid).or_default().forget(block.into());
    }

    /// Marks all tables as unknown, because another SM may have written them.
    pub(crate) fn forget_tables(&mut self) {
        self.tables = Tables::new();
        self.written = WrittenTables::new();
        self.is_fresh = true;
    }

    /// Replaces the members of multicast groups. The next write of multicast tables uses them.
    pub(crate) fn set_groups(&mut self, groups: BTreeMap<u16, Vec<Guid>>) {
        (self.groups, self.regroup) = (groups, true);
    }

    /// Returns true if members have joined or left groups since the multicast tables were written.
    pub(crate) const fn has_new_groups(&self) -> bool {
        self.regroup
    }

    /// Clears the flag of [`Self::has_new_groups`], because multicast tables are being written.
    pub(crate) const fn start_grouping(&mut self) {
        self.regroup = false;
    }
}

#[cfg(test)]
mod tests;
