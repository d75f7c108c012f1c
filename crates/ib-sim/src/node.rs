//! A node: its attributes and the tables of a switch.

use std::collections::{BTreeMap, BTreeSet};

use ib_topology::NodeSpec;
use ib_types::{Guid, NodeKind};
use ib_wire::mad::sm::{NodeDescription, NodeInfo, SwitchInfo};

use crate::trap::Traps;

/// The default number of LFT entries.
pub(crate) const LINEAR_CAPACITY: u16 = 49_152;
/// The number of LFT blocks of 64 entries.
pub(crate) const LINEAR_BLOCKS: u16 = LINEAR_CAPACITY / 64;
/// The default number of multicast groups of a switch.
pub(crate) const MULTICAST_CAPACITY: u16 = 1024;
/// The revision of a simulated device, if the fabric file contains none for it.
const REVISION: u32 = 0xa1;

/// A node of the simulated fabric.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) name: String,
    pub(crate) description: NodeDescription,
    pub(crate) guid: Guid,
    system_guid: Guid,
    /// The number of external ports.
    pub(crate) ports: u8,
    vendor_id: u32,
    device_id: u16,
    revision: u32,
    pub(crate) powered: bool,
    pub(crate) switch: Option<Box<Switch>>,
    pub(crate) traps: Traps,
}

/// The state of a switch.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    pub(crate) info: SwitchInfo,
    /// The egress port for each LID, up to the highest LID that was written.
    pub(crate) linear: Vec<u8>,
    /// Masks of the ports of each multicast LID. The key is the LID minus 0xc000.
    pub(crate) multicast: BTreeMap<u16, [u16; 16]>,
    pub(crate) deviations: Deviations,
}

/// Faults of a switch: deviations from its LFT.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deviations {
    /// Misrouted ports. The key is the port in the LFT entry, the value is the port out of which
    /// LID-routed packets are forwarded instead.
    pub(crate) misrouted: BTreeMap<u8, u8>,
    /// LFT blocks whose writes are acknowledged, but ignored.
    pub(crate) ignored_blocks: BTreeSet<u16>,
    /// True if writes of all LFT blocks are ignored.
    pub(crate) ignores_all: bool,
}

impl Node {
    pub(crate) fn new(spec: &NodeSpec) -> Self {
        let switch = spec.kind.is_switch().then(|| {
            Box::new(Switch {
                info: initial_switch_info(spec.enhanced_port0),
                linear: Vec::new(),
                multicast: BTreeMap::new(),
                deviations: Deviations::default(),
            })
        });
        Self {
            kind: spec.kind,
            name: spec.name.clone(),
            description: NodeDescription::new(&spec.description),
            guid: spec.guid,
            system_guid: spec.system_guid,
            ports: spec.ports,
            vendor_id: spec.vendor_id,
            device_id: spec.device_id,
            revision: if spec.revision == 0 { REVISION } else { spec.revision },
            powered: true,
            switch,
            traps: Traps::default(),
        }
    }

    /// Sets the capacities of a switch's LFT and MFT.
    pub(crate) const fn set_table_capacities(&mut self, linear: u16, multicast: u16) {
        if let Some(switch) = &mut self.switch {
            switch.info.linear_fdb_cap = linear;
            switch.info.multicast_fdb_cap = multicast;
        }
    }

    /// Resets the configuration of the node, but not that of its ports.
    pub(crate) fn reset(&mut self) {
        if let Some(switch) = &mut self.switch {
            let SwitchInfo { linear_fdb_cap, multicast_fdb_cap, enhanced_port0, .. } = switch.info;
            let initial = initial_switch_info(enhanced_port0);
            switch.info = SwitchInfo { linear_fdb_cap, multicast_fdb_cap, ..initial };
            switch.linear.clear();
            switch.multicast.clear();
        }
    }

    /// Returns the NodeInfo for the response to a request that has arrived at port `arrival`.
    pub(crate) fn info(&self, arrival: u8, port_guid: Guid) -> NodeInfo {
        NodeInfo {
            base_version: 1,
            class_version: 1,
            node_type: self.kind.into(),
            num_ports: self.ports,
            system_image_guid: self.system_guid,
            node_guid: self.guid,
            port_guid,
            partition_cap: if self.kind.is_switch() {
                crate::port::SWITCH_P_KEYS
            } else {
                crate::port::ADAPTER_P_KEYS
            },
            device_id: self.device_id,
            revision: self.revision,
            local_port: arrival,
            vendor_id: self.vendor_id,
        }
    }
}

/// Returns the SwitchInfo of an unconfigured switch.
fn initial_switch_info(enhanced_port0: bool) -> SwitchInfo {
    let mut info = SwitchInfo::zeroed();
    info.linear_fdb_cap = LINEAR_CAPACITY;
    info.multicast_fdb_cap = MULTICAST_CAPACITY;
    info.port_state_change = true;
    info.partition_enforcement_cap = crate::port::ENFORCED_P_KEYS;
    info.inbound_enforcement_cap = true;
    info.outbound_enforcement_cap = true;
    info.filter_raw_inbound_cap = true;
    info.filter_raw_outbound_cap = true;
    info.enhanced_port0 = enhanced_port0;
    info
}

impl Switch {
    /// Returns true if a fault makes the switch ignore writes of an LFT block.
    pub(crate) fn ignores(&self, block: u16) -> bool {
        self.deviations.ignores_all || self.deviations.ignored_blocks.contains(&block)
    }

    /// Returns the LFT entry for a LID; 0xff if the LFT has no entry for it.
    #[inline]
    pub(crate) fn port_of(&self, lid: u16) -> u8 {
        match self.linear.get(usize::from(lid)) {
            Some(&port) if lid <= self.info.linear_fdb_top => port,
            _ => 0xff,
        }
    }

    /// Returns an LFT block of 64 entries.
    pub(crate) fn linear_block(&self, block: u16) -> [u8; 64] {
        let first = usize::from(block) * 64;
        std::array::from_fn(|index| self.linear.get(first + index).copied().unwrap_or(0xff))
    }

    /// Writes an LFT block. Returns true if this changed the block.
    pub(crate) fn set_linear_block(&mut self, block: u16, ports: &[u8; 64]) -> bool {
        let first = usize::from(block) * 64;
        if self.linear.len() < first + 64 {
            self.linear.resize(first + 64, 0xff);
        }
        let entries = &mut self.linear[first..first + 64];
        let is_new = entries != ports;
        entries.copy_from_slice(ports);
        is_new
    }

    /// Returns an MFT block: for each of 32 multicast LIDs, a mask of the 16 ports that `position`
    /// selects.
    pub(crate) fn multicast_block(&self, block: u16, position: u8) -> [u16; 32] {
        std::array::from_fn(|index| {
            let group = block * 32 + index as u16;
            self.multicast.get(&group).map_or(0, |masks| masks[usize::from(position)])
        })
    }

    /// Writes an MFT block: for each of 32 multicast LIDs, a mask of the 16 ports that `position`
    /// selects.
    pub(crate) fn set_multicast_block(&mut self, block: u16, position: u8, masks: &[u16; 32]) {
        for (index, &mask) in (0u16..).zip(masks) {
            let group = block * 32 + index;
            if mask == 0 && !self.multicast.contains_key(&group) {
                continue;
            }
            let all = self.multicast.entry(group).or_default();
            all[usize::from(position)] = mask;
            if all.iter().all(|&mask| mask == 0) {
                self.multicast.remove(&group);
            }
        }
    }

    /// Returns the ports of a multicast LID.
    pub(crate) fn multicast_ports(&self, lid: u16) -> impl Iterator<Item = u8> {
        let masks = self.multicast.get(&(lid - 0xc000)).copied().unwrap_or_default();
        (0..=255u8).filter(move |&port| masks[usize::from(port / 16)] >> (port % 16) & 1 == 1)
    }
}
