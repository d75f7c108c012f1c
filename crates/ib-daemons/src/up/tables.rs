//! Copies of LIDs and LFTs, from which other threads compute results.

use ib_routing::{Lfts, Subnet};
use ib_sim::Sim;
use ib_topology::{Fabric, NodeId};
use ib_types::{Lid, Lmc};

use crate::error::DaemonError;

/// Copies of the LIDs of end ports and of the LFTs of switches.
pub(super) struct Tables {
    lids: Vec<(NodeId, u8, Option<Lid>, Lmc)>,
    entries: Vec<Box<[u8]>>,
}

impl Tables {
    /// Copies the LIDs and the LFTs of the simulated fabric.
    pub(super) fn of(sim: &Sim, fabric: &Fabric) -> Self {
        let (mut lids, mut entries) = (Vec::new(), Vec::with_capacity(fabric.node_count()));
        for (node, spec) in fabric.nodes() {
            entries.push(sim.forwarding_table(node).into());
            for (port, known) in fabric.ports_of(node) {
                if spec.kind.is_switch() == (known.number == 0) {
                    let info = sim.port_info(port);
                    let lid = Lid::unicast(info.lid.into()).ok();
                    lids.push((node, known.number, lid, Lmc::new(info.lmc).unwrap_or_default()));
                }
            }
        }
        Self { lids, entries }
    }

    /// Sets the LIDs of the end ports of `fabric` to those that were copied from the simulated fabric.
    pub(super) fn set_lids(&self, fabric: &mut Fabric) -> Result<(), DaemonError> {
        for &(node, number, lid, lmc) in &self.lids {
            fabric.set_lid(node, number, lid, lmc).map_err(DaemonError::failed)?;
        }
        Ok(())
    }

    /// Returns the LFTs that were copied from the switches of a subnet.
    pub(super) fn lfts(&self, subnet: &Subnet<'_>) -> Lfts {
        let mut lfts = Lfts::new(subnet);
        for id in subnet.switch_ids() {
            let found = &self.entries[subnet.switch(id).node.index()];
            let table = lfts.table_mut(id);
            let length = table.len().min(found.len());
            table[..length].copy_from_slice(&found[..length]);
        }
        lfts
    }
}
