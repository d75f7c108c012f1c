//! Light sweeps: queries of switches, table blocks and ports that may have changed without a trap.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::Guid;

use super::smp::Purpose;
use crate::discovered_subnet::{DiscoveredSubnet, PortIndex};
use crate::tables::{SwitchTable, Tables};

/// One light sweep queries at most this many ports of [`LightSweeps::uncertain`].
const MAX_UNCERTAIN: usize = 16;

/// The state by which light sweeps query table blocks and ports in rotation.
#[derive(Debug, Default)]
pub(super) struct LightSweeps {
    /// Number of light sweeps so far, which selects the table blocks and ports in rotation.
    count: u32,
    /// GUIDs of switches whose tables the next light sweep reads completely.
    doubtful: BTreeSet<Guid>,
    /// For each switch whose ports may have changed unnoticed, the next port to query. The SM first reads the ports of
    /// a switch, and later clears its `PortStateChange` flag. It does not notice ports that change in between.
    uncertain: BTreeMap<Guid, u8>,
}

impl LightSweeps {
    /// Makes the next light sweep read all known blocks of the switch's LFT.
    pub(super) fn recheck_table(&mut self, switch: Guid) {
        self.doubtful.insert(switch);
    }

    /// Makes the next light sweeps query all ports of the switch.
    pub(super) fn recheck_ports(&mut self, switch: Guid) {
        self.uncertain.insert(switch, 1);
    }

    /// Starts a light sweep, and returns its queries. The caller sends them in reverse order.
    pub(super) fn start(&mut self, found: &DiscoveredSubnet, tables: &Tables) -> Vec<Purpose> {
        self.count = self.count.wrapping_add(1);
        let mut requests = Vec::new();
        for (node, known) in found.nodes().filter(|(_, node)| node.kind.is_switch()) {
            requests.push(Purpose::SwitchChange(node));
            let table = tables.get(&known.info.node_guid);
            let blocks = table.map_or(0, SwitchTable::blocks) as u16;
            let audit = |block| Purpose::Audit { node, block };
            if self.doubtful.contains(&known.info.node_guid) {
                requests.extend((0..blocks).map(audit));
            } else if blocks > 0 {
                requests.push(audit((self.count % u32::from(blocks)) as u16));
            }
        }
        let mut ports = self.ports_in_rotation(found);
        ports.extend(self.uncertain_ports(found));
        requests.extend(ports.into_iter().map(Purpose::State));
        self.doubtful.clear();
        requests
    }

    /// Returns the ports that a light sweep queries: both ends of the SM's link, of one HCA link in rotation, and of
    /// one link between switches in rotation.
    ///
    /// Both ends of a link are queried, because either port can have been reset without a trap.
    fn ports_in_rotation(&self, found: &DiscoveredSubnet) -> BTreeSet<PortIndex> {
        let is_switch = |port_index: PortIndex| found.node(port_index.node).kind.is_switch();
        let turn =
            |places: &[PortIndex]| places.get(self.count as usize % places.len().max(1)).copied();
        let adapters: Vec<PortIndex> = found.end_ports().filter(|&at| !is_switch(at)).collect();
        let trunks: Vec<PortIndex> = found.trunks().collect();
        let own = found.own.filter(|&own| !is_switch(own));
        let ends = own.into_iter().chain(turn(&adapters)).chain(turn(&trunks));
        ends.flat_map(|end| [Some(end), found.port(end).peer]).flatten().collect()
    }

    /// Returns the next ports to check for changes that may have been missed.
    fn uncertain_ports(&mut self, found: &DiscoveredSubnet) -> Vec<PortIndex> {
        let mut places = Vec::new();
        while places.len() < MAX_UNCERTAIN
            && let Some(mut entry) = self.uncertain.first_entry()
        {
            let (guid, port) = (*entry.key(), *entry.get());
            let node = found.find(guid);
            match node.filter(|&node| port <= found.node(node).info.num_ports) {
                Some(node) => {
                    places.push(node.at(port));
                    entry.insert(port.saturating_add(1));
                }
                None => _ = entry.remove(),
            }
            if port == u8::MAX {
                self.uncertain.remove(&guid);
            }
        }
        places
    }
}
