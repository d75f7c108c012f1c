//! Queries of the SM's state, and changes of its configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use ib_mad::RequesterCounters;
use ib_routing::LidOptions;
use ib_topology::Fabric;
use ib_types::Guid;
use ib_wire::mad::sm::{MulticastForwardingBlock, SmInfo, SmState};

use super::{PortStatus, Stage, SubnetManager};
use crate::alarm::RaisedAlarm;
use crate::fault::PortName;
use crate::partition::Partitions;
use crate::plan::{PlanJob, TableQuality, TablesInUse};

impl SubnetManager {
    /// Returns the port GUID of the SM.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.guid
    }

    /// Returns the counters of the SMPs that this SM has sent as requests.
    #[must_use]
    pub const fn traffic(&self) -> RequesterCounters {
        self.smps.counters()
    }

    /// Returns the last discovered subnet as a graph, with the LIDs that its ports had at the discovery.
    #[must_use]
    pub fn fabric(&self) -> Option<Fabric> {
        self.subnet.found.own?;
        let in_use = TablesInUse::default();
        let job = PlanJob::new(&self.subnet.found, &self.config, in_use, Arc::default());
        Some(job.fabric().clone())
    }

    /// Returns the other SMs that the last discovery found: port GUID, port name and SMInfo.
    pub fn managers(&self) -> impl Iterator<Item = (Guid, PortName, &SmInfo)> {
        let found = &self.subnet.found;
        let named = |port_index| (found.port(port_index).guid, found.name(port_index));
        found.managers.iter().map(move |(&port_index, info)| {
            let (guid, name) = named(port_index);
            (guid, name, info)
        })
    }

    /// Returns the quality of the forwarding tables in the switches after the last plan; `None` if it is not known.
    #[must_use]
    pub const fn quality(&self) -> Option<TableQuality> {
        self.reporter.quality
    }

    /// Returns the raised alarms, by kind.
    pub fn alarms(&self) -> impl Iterator<Item = &RaisedAlarm> {
        self.reporter.alarms()
    }

    /// Returns the faults of the last sweep, one sentence each.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        self.reporter.faults()
    }

    /// Returns all ports of the subnet, node by node, in their state when the subnet was last up. Returns an empty list
    /// if the subnet was never up.
    #[must_use]
    pub fn ports(&self) -> Vec<PortStatus> {
        let Some(subnet) = self.served.as_deref() else { return Vec::new() };
        let mut ports = Vec::new();
        for (node, found) in subnet.found.nodes() {
            for (number, port) in (0..=found.info.num_ports).zip(&found.ports) {
                if number == 0 && !found.kind.is_switch() {
                    continue;
                }
                ports.push(PortStatus {
                    node_guid: found.info.node_guid,
                    guid: port.guid,
                    description: found.description.as_text().into_owned(),
                    kind: found.kind,
                    number,
                    lid: subnet.base_lid(node.at(number)).unwrap_or(0),
                    info: port.info.as_deref().copied(),
                });
            }
        }
        ports
    }

    /// Returns the egress ports of each multicast LID at a switch, as the SM has written them to the switch's MFT.
    #[must_use]
    pub fn multicast_ports(&self, switch: Guid) -> BTreeMap<u16, Vec<u8>> {
        let mut ports: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
        for (block, position) in self.subnet.multicast.blocks(switch) {
            let masks = self
                .subnet
                .multicast
                .block(switch, (block, position))
                .expect("`blocks` lists known blocks");
            let first =
                MulticastForwardingBlock::FIRST_LID + block * MulticastForwardingBlock::LIDS;
            for (lid, mask) in (first..).zip(masks) {
                let set = (0..16u8).filter(|bit| mask >> bit & 1 != 0);
                ports.entry(lid).or_default().extend(set.map(|bit| position * 16 + bit));
            }
        }
        ports.retain(|_, ports| !ports.is_empty());
        ports
    }

    /// Replaces the partitions. The next sweep writes them, but their multicast groups are created at once. A group
    /// that no partition configures any more is deleted when no full member or send-only full member is left in it.
    pub fn set_partitions(&mut self, partitions: Partitions) {
        self.config.partitions = partitions;
        self.sa.set_partitions(&self.config);
    }

    /// Replaces the options of LID assignment. They apply from the next sweep on.
    pub fn set_lids(&mut self, lids: LidOptions) {
        self.config.routing.lids = lids;
    }

    /// Puts the SM into the state NOT-ACTIVE, until the master enables it. The caller must do so before the SM becomes
    /// the master.
    pub fn deactivate(&mut self) {
        self.become_state(SmState::NOT_ACTIVE);
        self.stage = Stage::NotActive;
    }
}
