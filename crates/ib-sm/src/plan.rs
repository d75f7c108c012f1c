//! What a subnet shall be: LIDs, routes, service levels.
//!
//! Planning takes long on large subnets, so it is a job of its own: it owns what it needs and can be
//! run by another thread while the manager goes on answering.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ib_routing::check::{CheckReport, check};
use ib_routing::engine::{Outcome, Refusal};
use ib_routing::subnet::SubnetError;
use ib_routing::{EngineList, Lfts, LidOptions, Routing, RoutingOptions, Subnet, SubnetOptions};
use ib_topology::{Fabric, LinkRate, NodeId, NodeSpec};
use ib_types::{Guid, Lid, Lmc};
use ib_wire::mad::sm::PortInfo;

use crate::found::Found;

/// How a subnet shall be routed.
#[derive(Clone, Default)]
pub struct RoutingConfig {
    /// The engines that are tried.
    pub engines: EngineList,
    /// What the engines are told, made anew for each plan: options may name what is not there yet.
    /// `None` for the default.
    pub options: Option<Arc<OptionsFor>>,
    /// How LIDs are assigned.
    pub lids: LidOptions,
}

/// Makes the engines' options for a subnet; the error says why there are none.
pub type OptionsFor = dyn Fn(&Subnet<'_>) -> Result<RoutingOptions, String> + Send + Sync;

impl fmt::Debug for RoutingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engines, options: _, lids } = self;
        let mut shown = f.debug_struct("RoutingConfig");
        shown.field("engines", engines).field("lids", lids).finish_non_exhaustive()
    }
}

/// A subnet to be planned.
#[derive(Clone, Debug)]
pub struct PlanJob {
    fabric: Fabric,
    own_port: Guid,
    config: RoutingConfig,
    /// The tables as they are, by the GUID of the switch.
    existing: BTreeMap<Guid, Vec<u8>>,
}

/// A planned subnet.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The LIDs of each end port by its GUID: the lowest, and how many.
    pub end_ports: BTreeMap<Guid, (Lid, u16)>,
    /// The switches in the order of the tables, by node GUID.
    pub switches: Vec<Guid>,
    /// The highest LID.
    pub max_lid: u16,
    /// The tables, and how they came about.
    pub routing: Routing,
    /// The engines that were tried before the one that served.
    pub refusals: Vec<Refusal>,
    /// What is to be said of the tables.
    pub report: CheckReport,
    /// What the assignment of LIDs had to overrule, one sentence each.
    pub notes: Vec<String>,
    /// How long the routes took.
    pub route_time: Duration,
    /// How long their check took.
    pub check_time: Duration,
}

/// Routes, what is to be said of them, and how long both took.
struct Routed {
    outcome: Outcome,
    report: CheckReport,
    route_time: Duration,
    check_time: Duration,
}

/// Why a subnet has no plan.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// It is no subnet, or has too few LIDs.
    #[error(transparent)]
    Subnet(#[from] SubnetError),
    /// What the engines shall be told cannot be had.
    #[error("{0}")]
    Options(String),
    /// No engine can route it.
    #[error(transparent)]
    Engine(#[from] ib_routing::engine::NoEngine),
}

impl PlanJob {
    /// Takes what was found; what has not told enough of itself is left out.
    pub(crate) fn new(
        found: &Found,
        config: &RoutingConfig,
        existing: BTreeMap<Guid, Vec<u8>>,
    ) -> Self {
        let own = found.own.expect("the own port was found");
        let (own_port, config) = (found.port(own).guid, config.clone());
        Self { fabric: fabric(found), own_port, config, existing }
    }

    /// Returns the subnet as a graph.
    #[must_use]
    pub const fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Plans.
    ///
    /// # Errors
    /// Fails when the own port is not linked, when LIDs run out, and when no engine serves.
    pub fn run(&self) -> Result<Plan, PlanError> {
        let options =
            SubnetOptions { sm_port: Some(self.own_port), lids: self.config.lids.clone() };
        let subnet = Subnet::discover(&self.fabric, &options)?;
        let mut options = match &self.config.options {
            Some(make) => make(&subnet).map_err(PlanError::Options)?,
            None => RoutingOptions::default(),
        };
        let keeps = !self.existing.is_empty();
        if keeps {
            options.existing = Some(self.existing_tables(&subnet));
        }
        let mut routed = self.route(&subnet, &options)?;
        // Entries that were right in a broken fabric can close loops when it is whole again.
        if keeps && routed.report.credit.loops > 0 {
            options.existing = None;
            let anew = self.route(&subnet, &options)?;
            let (route_time, check_time) = (routed.route_time, routed.check_time);
            if anew.report.credit.loops < routed.report.credit.loops {
                routed = anew;
                routed.route_time += route_time;
                routed.check_time += check_time;
            }
        }
        let Routed { outcome: Outcome { routing, refusals }, report, route_time, check_time } =
            routed;
        Ok(Plan {
            end_ports: subnet
                .end_ports()
                .iter()
                .map(|port| (port.guid, (port.base_lid, port.lids)))
                .collect(),
            switches: subnet.switches().iter().map(|switch| switch.guid).collect(),
            max_lid: subnet.max_lid(),
            notes: subnet.lid_notes().to_vec(),
            routing,
            refusals,
            report,
            route_time,
            check_time,
        })
    }

    fn route(&self, subnet: &Subnet<'_>, options: &RoutingOptions) -> Result<Routed, PlanError> {
        let start = std::time::Instant::now();
        let outcome = self.config.engines.route(subnet, options)?;
        let route_time = start.elapsed();
        let start = std::time::Instant::now();
        let report = check(subnet, &outcome.routing.lfts, &outcome.routing.layers);
        Ok(Routed { outcome, report, route_time, check_time: start.elapsed() })
    }

    fn existing_tables(&self, subnet: &Subnet<'_>) -> Lfts {
        let mut tables = Lfts::new(subnet);
        for id in subnet.switch_ids() {
            if let Some(known) = self.existing.get(&subnet.switch(id).guid) {
                let table = tables.table_mut(id);
                let length = known.len().min(table.len());
                table[..length].copy_from_slice(&known[..length]);
            }
        }
        tables
    }
}

/// Returns what was found as a graph.
fn fabric(found: &Found) -> Fabric {
    let mut fabric = Fabric::new();
    let mut ids: Vec<Option<NodeId>> = vec![None; found.nodes().len()];
    for (index, node) in found.nodes() {
        let complete = if node.kind.is_switch() {
            node.switch.is_some() && node.ports[0].info.is_some()
        } else {
            node.ports.iter().any(|port| port.info.is_some())
        };
        if !complete {
            continue;
        }
        let info = &node.info;
        let spec = NodeSpec {
            description: node.description.as_text().into_owned(),
            system_guid: info.system_image_guid,
            vendor_id: info.vendor_id,
            device_id: info.device_id,
            revision: info.revision,
            enhanced_port0: node.switch.is_some_and(|switch| switch.enhanced_port0),
            ..NodeSpec::new(node.kind, info.node_guid.to_string(), info.node_guid, info.num_ports)
        };
        // GUIDs of nodes are unique here; that of a port can be another node's.
        let Ok(id) = fabric.add_node(spec) else { continue };
        ids[index.0 as usize] = Some(id);
        for (number, port) in (0..=info.num_ports).zip(&node.ports) {
            let Some(port_info) = port.info.as_deref() else { continue };
            if (number == 0) != node.kind.is_switch() {
                continue;
            }
            if fabric.set_port_guid(id, number, port.guid).is_ok() {
                let lid = Lid::unicast(port_info.lid.into()).ok();
                let lmc = Lmc::new(port_info.lmc).unwrap_or(Lmc::ZERO);
                fabric.set_lid(id, number, lid, lmc).expect("the port exists");
            }
        }
    }
    for (index, node) in found.nodes() {
        for (number, port) in (0..=node.info.num_ports).zip(&node.ports) {
            let Some(peer) = port.peer else { continue };
            let both = (ids[index.0 as usize], ids[peer.node.0 as usize]);
            let ((Some(one), Some(other)), Some(info)) = (both, port.info.as_deref()) else {
                continue;
            };
            // Each link is met twice; a loop at one port and what else is no link is left out.
            if (index.at(number)) < peer && found.port(peer).info.is_some() {
                let _ = fabric.connect((one, number), (other, peer.port), rate(info));
            }
        }
    }
    fabric
}

/// Returns the rate of a port's link.
fn rate(info: &PortInfo) -> LinkRate {
    LinkRate {
        width: info.link_width_active.active().unwrap_or(LinkRate::DEFAULT.width),
        speed: info.active_speeds(None).active().unwrap_or(LinkRate::DEFAULT.speed),
    }
}
