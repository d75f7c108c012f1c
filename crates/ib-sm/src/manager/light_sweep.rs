//! Light sweeps: queries of switches, table blocks and ports that may have changed unnoticed.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::Guid;

use super::smp::Purpose;
use crate::discovered_subnet::{DiscoveredSubnet, PortIndex};
use crate::tables::{SwitchTable, Tables};

/// Maximum number of ports of [`LightSweeps::uncertain`] that one light sweep queries.
const MAX_UNCERTAIN: usize = 16;

/// State of the rotation in which light sweeps query table blocks and ports.
#[derive(Debug, Default)]
pub(super) struct LightSweeps {
    /// Number of light sweeps.
    count: u32,
    /// GUIDs of switches whose tables are re-read in the next light sweep.
    doubtful: BTreeSet<Guid>,
    /// Switches whose `PortStateChange` flag was cleared after their ports had been read, so that changes in between may be
    /// missed; each with the next port to check.
    uncertain: BTreeMap<Guid, u8>,
}

impl LightSweeps {
    /// Makes the next light sweep read all known blocks of a switch's LFT.
    pub(super) fn recheck_table(&mut self, switch: Guid) {
        self.doubtful.insert(switch);
    }

    /// Makes the next light sweeps query all ports of a switch.
    pub(super) fn recheck_ports(&mut self, switch: Guid) {
        self.uncertain.insert(switch, 1);
    }

    /// Starts a light sweep. Returns its queries; the caller sends the last one first.
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

    /// Returns the ports to query in a light sweep: both ends of the local link, of one HCA link in rotation, and of one
    /// link between switches in rotation.
    ///
    /// Either end of a link can have been reset without a trap.
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

    /// Returns the next ports to check for unnoticed changes.
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
