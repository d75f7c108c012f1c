//! The VLs of links: `OperVLs`, and the SL-to-VL table of each port. The tables that the SM writes to ports, and the
//! tables with which routes are checked, both come from this module.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use ib_routing::check::VlMap;
use ib_routing::{Layers, Subnet, SwitchId};
use ib_types::{Guid, ServiceLevel, VirtualLane};
use ib_wire::mad::sm::{CapabilityMask, SlToVl, VlCap};

use crate::config::SmConfig;
use crate::discovered_subnet::{DiscoveredSubnet, PortIndex};
use crate::qos::{PortQos, QosConfig};

/// The VL that means that packets of a service level are discarded.
const DISCARD: u8 = 15;

/// Returns the `OperVLs` of a port: the VLs that both ends of its link support and the configuration allows. `None` if
/// the port has no link and is not an enhanced port 0 of a switch.
pub(crate) fn operational_vls(
    port_index: PortIndex,
    config: &SmConfig,
    found: &DiscoveredSubnet,
) -> Option<VlCap> {
    let most = |port_index: PortIndex| {
        let info = found.port(port_index).info.as_deref()?;
        let qos = config
            .qos
            .as_ref()
            .map(|qos| qos.of(found.node(port_index.node).kind, port_index.port));
        let most = qos.map_or(config.max_op_vls, PortQos::vl_cap);
        Some(info.vl_cap.0.min(most.0).min(config.max_op_vls.0))
    };
    let node = found.node(port_index.node);
    let vls = match found.port(port_index).peer {
        Some(peer) => most(port_index)?.min(most(peer)?),
        None if port_index.port == 0 && node.switch.is_some_and(|it| it.enhanced_port0) => {
            most(port_index)?
        }
        None => return None,
    };
    Some(VlCap(vls.max(VlCap::VL0.0)))
}

/// Returns the SL-to-VL table to write to a port; `None` if its table is left unchanged.
///
/// Only linked ports and enhanced ports 0 of switches get a table, and only if their node supports SL mapping. If
/// quality of service is enabled, the table is the configured one. Otherwise, ports get a table only if the routes need
/// several service levels (`is_layered`): SL n uses VL n, and SL 15 uses VL 7. VLs that the link does not have are
/// replaced by VLs that it has.
pub(crate) fn sl_to_vl(
    port_index: PortIndex,
    config: &SmConfig,
    found: &DiscoveredSubnet,
    is_layered: bool,
) -> Option<SlToVl> {
    let default = QosConfig::default();
    let qos = config.qos.as_ref().or_else(|| is_layered.then_some(&default))?;
    let node = found.node(port_index.node);
    let end_port = if node.kind.is_switch() { port_index.node.at(0) } else { port_index };
    let capable = found.port(end_port).info.as_ref()?.capability_mask;
    let vls = operational_vls(port_index, config, found)?;
    let port = qos.of(node.kind, port_index.port);
    capable.contains(CapabilityMask::SL_MAPPING).then(|| port.sl_to_vl(vls))
}

/// The SL-to-VL tables that linked ports get: for routes with one service level, or for routes with several.
///
/// The check for credit loops assumes that a port whose table is not written puts all service levels on VL 0. This is
/// safe: if VLs of a link are merged, the channel dependency graph may gain cycles, but cannot lose any.
#[derive(Clone, Debug, Default)]
struct VlPlan {
    /// SL-to-VL tables of switch ports, by node GUID and port number.
    tables: BTreeMap<(Guid, u8), [u8; 16]>,
    /// Bit mask of the service levels whose packets some port of a channel adapter (CA) or router discards.
    discarded_at_hosts: u16,
}

/// The SL-to-VL tables of a discovered subnet, computed when they are first used.
#[derive(Clone, Debug)]
pub(crate) struct FabricVls {
    found: DiscoveredSubnet,
    config: SmConfig,
    /// Tables for routes with one service level, and tables for routes with several service levels.
    plans: [OnceLock<VlPlan>; 2],
}

impl FabricVls {
    pub(crate) fn new(found: DiscoveredSubnet, config: SmConfig) -> Self {
        Self { found, config, plans: Default::default() }
    }

    pub(crate) const fn config(&self) -> &SmConfig {
        &self.config
    }

    /// Returns the number of data VLs of the link between switches that has the fewest; `None` if there is no such
    /// link.
    pub(crate) fn fewest_vls(&self) -> Option<u8> {
        let between = linked(&self.found).filter(|&(port_index, peer)| {
            [port_index, peer].iter().all(|it| self.found.node(it.node).kind.is_switch())
        });
        let vls = between.map(|(port_index, _)| {
            let vls = operational_vls(port_index, &self.config, &self.found);
            vls.and_then(VlCap::lanes).unwrap_or(1)
        });
        vls.min()
    }

    /// Returns the bit mask of the service levels that the routes use and that host ports discard.
    pub(crate) fn discarded_at_hosts(&self, layers: &Layers) -> u16 {
        self.plan(layers).map_or(0, |plan| plan.discarded_at_hosts & layers.used())
    }

    /// Returns the SL-to-VL tables for the check of routes. Returns `None` if the check gives the same result when each
    /// SL n uses VL n.
    pub(crate) fn map(&self, layers: &Layers, subnet: &Subnet<'_>) -> Option<SwitchVls> {
        let plan = self.plan(layers).filter(|plan| !plan.is_one_vl_per_level(layers.used()))?;
        let of = |id: SwitchId| {
            let switch = subnet.switch(id);
            let table = |port| plan.tables.get(&(switch.guid, port)).copied().unwrap_or([0; 16]);
            (0..=switch.ports).map(table).collect()
        };
        Some(SwitchVls { tables: subnet.switch_ids().map(of).collect() })
    }

    /// Returns the tables for the given routes; `None` if no table is written for them.
    fn plan(&self, layers: &Layers) -> Option<&VlPlan> {
        let is_layered = !layers.is_uniform();
        if self.config.qos.is_none() && !is_layered {
            return None;
        }
        let plan = &self.plans[usize::from(is_layered)];
        Some(plan.get_or_init(|| VlPlan::new(&self.found, &self.config, is_layered)))
    }
}

impl VlPlan {
    fn new(found: &DiscoveredSubnet, config: &SmConfig, is_layered: bool) -> Self {
        let mut this = Self::default();
        for (port_index, _) in linked(found) {
            let table = sl_to_vl(port_index, config, found, is_layered)
                .map_or([0; 16], |table| table.lanes.map(VirtualLane::get));
            let node = found.node(port_index.node);
            if node.kind.is_switch() {
                this.tables.insert((node.info.node_guid, port_index.port), table);
            } else {
                for (level, &vl) in table.iter().enumerate() {
                    this.discarded_at_hosts |= u16::from(vl == DISCARD) << level;
                }
            }
        }
        this
    }

    /// Returns true if each used service level has a VL of its own, the same on all links, and no link discards packets
    /// of these levels. If only one level is used, its VL may differ between links.
    fn is_one_vl_per_level(&self, used: u16) -> bool {
        let vls_of = |table: &[u8; 16]| {
            let used = (0..16).filter(|level| used >> level & 1 != 0);
            used.map(|level: usize| table[level]).collect::<Vec<_>>()
        };
        if used.count_ones() == 1 {
            return self.tables.values().all(|table| vls_of(table) != [DISCARD]);
        }
        let Some(first) = self.tables.values().next().map(vls_of) else { return true };
        let distinct: BTreeSet<u8> = first.iter().copied().collect();
        distinct.len() == first.len()
            && !distinct.contains(&DISCARD)
            && self.tables.values().all(|table| vls_of(table) == first)
    }
}

/// Returns all linked ports except port 0 of switches, each with the port at the other end of its link.
fn linked(found: &DiscoveredSubnet) -> impl Iterator<Item = (PortIndex, PortIndex)> {
    found.nodes().flat_map(|(node, known)| {
        let ports = (1..=known.info.num_ports).map(move |number| node.at(number));
        ports.filter_map(|port_index| Some((port_index, found.port(port_index).peer?)))
    })
}

/// The SL-to-VL tables of all switches in a subnet.
pub(crate) struct SwitchVls {
    /// VLs as `[switch][output port][service level]`.
    tables: Vec<Vec<[u8; 16]>>,
}

impl VlMap for SwitchVls {
    fn vl(&self, switch: SwitchId, _: u8, out_port: u8, level: ServiceLevel) -> VirtualLane {
        let table = self.tables[switch.index()].get(usize::from(out_port));
        let vl = table.map_or(0, |table| table[usize::from(level.get())]);
        VirtualLane::new(vl).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
