//! What a subnet shall be: LIDs, routes, service levels.
//!
//! Planning takes long on large subnets, so it is a job of its own: it owns what it needs and can be
//! run by another thread while the manager goes on answering.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ib_routing::check::{CheckOptions, CheckReport, Checker, CreditLoops, Unreachable, check_with};
use ib_routing::engine::{Outcome, Refusal};
use ib_routing::subnet::SubnetError;
use ib_routing::{
    EngineKind, EngineList, Layers, Lfts, LidOptions, Routing, RoutingOptions, Subnet,
    SubnetOptions,
};
use ib_topology::{Fabric, LinkRate, NodeId, NodeSpec};
use ib_types::{Guid, Lid, Lmc, ServiceLevel};
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
    guard: Guard,
    /// What checks the routes of one plan after the other.
    checker: Arc<Mutex<Checker>>,
}

/// What a plan must not do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guard {
    /// Whether credit loops are refused in any case.
    pub(crate) loops_fatal: bool,
    /// Whether the routes in use have no credit loops.
    pub(crate) was_loop_free: bool,
    /// Whether ports are told which lane a service level travels on.
    pub(crate) qos: bool,
    /// Whether the manager sits on a switch without hosts.
    pub(crate) on_spine: bool,
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
    /// What is dangerous about the plan, one sentence each.
    pub warnings: Vec<String>,
    /// What the assignment of LIDs had to overrule, one sentence each.
    pub notes: Vec<String>,
    /// How long the routes took.
    pub route_time: Duration,
    /// How long their check took.
    pub check_time: Duration,
}

/// How many pairs that are not reached are looked at.
const MOST_MISSED: usize = 1 << 20;

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
    /// Packets can wait for each other for ever.
    #[error(
        "refused: the new routes have {loops} credit {}, {why}; the first one: {first}",
        if *.loops == 1 { "loop" } else { "loops" }
    )]
    CreditLoops {
        /// How many there are.
        loops: usize,
        /// Why they are not taken.
        why: &'static str,
        /// The channels of one of them.
        first: String,
    },
    /// Ports are reached now and would not be any more.
    #[error(
        "refused: the new routes lose {count} {} that the old ones reach: {first}",
        if *.count == 1 { "LID" } else { "LIDs" }
    )]
    Lost {
        /// How many LIDs.
        count: usize,
        /// What happens to the packets to the first ones.
        first: String,
    },
}

impl PlanJob {
    /// Takes what was found; what has not told enough of itself is left out.
    pub(crate) fn new(
        found: &Found,
        config: &RoutingConfig,
        existing: BTreeMap<Guid, Vec<u8>>,
        guard: Guard,
        checker: Arc<Mutex<Checker>>,
    ) -> Self {
        let own = found.own.expect("the own port was found");
        let (own_port, config) = (found.port(own).guid, config.clone());
        Self { fabric: fabric(found), own_port, config, existing, guard, checker }
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
        self.judge(&subnet, &routed)?;
        let warnings = self.warnings(&subnet, &routed);
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
            warnings,
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
        let mut checker = self.checker.lock().unwrap_or_else(PoisonError::into_inner);
        let report = checker.check(subnet, &outcome.routing.lfts, &outcome.routing.layers);
        Ok(Routed { outcome, report, route_time, check_time: start.elapsed() })
    }

    /// Refuses routes that are worse than those in use.
    fn judge(&self, subnet: &Subnet<'_>, routed: &Routed) -> Result<(), PlanError> {
        let credit = &routed.report.credit;
        let why = match self.guard {
            Guard { loops_fatal: true, .. } => "and such routes are refused",
            Guard { was_loop_free: true, .. } => "and those in use have none",
            _ => "",
        };
        if credit.loops > 0 && !why.is_empty() {
            let first = first_ring(credit, subnet);
            return Err(PlanError::CreditLoops { loops: credit.loops, why, first });
        }
        if routed.report.reach.unreachable == 0 || self.existing.is_empty() {
            return Ok(());
        }
        let missed = |lfts: &Lfts| {
            let layers = Layers::uniform(ServiceLevel::default());
            let options = CheckOptions { samples: MOST_MISSED, ..CheckOptions::default() };
            check_with(subnet, lfts, &layers, &options).reach.first
        };
        let is_host = |missed: &Unreachable| {
            let owner = subnet.lid_owner(missed.lid);
            owner.is_some_and(|owner| !subnet.end_port_node(owner).kind.is_switch())
        };
        let old = missed(&self.existing_tables(subnet));
        let old: BTreeSet<u16> = old.iter().filter(|it| is_host(it)).map(|it| it.lid).collect();
        let new = missed(&routed.outcome.routing.lfts);
        let lost: BTreeMap<u16, Unreachable> = new
            .into_iter()
            .filter(|it| is_host(it) && !old.contains(&it.lid))
            .map(|it| (it.lid, it))
            .collect();
        let Some(first) = lost.values().next() else { return Ok(()) };
        Err(PlanError::Lost { count: lost.len(), first: first.describe(subnet) })
    }

    /// Returns what is dangerous about routes.
    fn warnings(&self, subnet: &Subnet<'_>, routed: &Routed) -> Vec<String> {
        let mut warnings = Vec::new();
        let credit = &routed.report.credit;
        if credit.loops > 0 {
            warnings.push(format!(
                "the routes have {} credit {}: the fabric can deadlock under load; the first one: {}",
                credit.loops,
                if credit.loops == 1 { "loop" } else { "loops" },
                first_ring(credit, subnet),
            ));
        }
        let is_updn = routed.outcome.routing.engine == EngineKind::UpDown;
        if is_updn && self.guard.on_spine {
            warnings.push(
                "the manager sits on a switch without hosts: up/down routing has no ways by LID \
                 between such switches; run it on a leaf switch or a host"
                    .to_owned(),
            );
        }
        let layers = routed.outcome.routing.layers.count();
        if layers > 1 && !self.guard.qos {
            warnings.push(format!(
                "the routes use {layers} service levels, but no port is told their lanes: deadlocks \
                 are avoided only where SL n travels on VL n (-Q writes that)"
            ));
        }
        warnings
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

/// Returns the channels of the first ring that was found.
fn first_ring(credit: &CreditLoops, subnet: &Subnet<'_>) -> String {
    credit.first.first().map(|ring| ring.describe(subnet).join(", ")).unwrap_or_default()
}

/// Returns what was found as a graph.
fn fabric(found: &Found) -> Fabric {
    let mut fabric = Fabric::new();
    let mut ids: Vec<Option<NodeId>> = vec![None; found.nodes().len()];
    for (index, node) in found.nodes() {
        let complete = if node.kind.is_switch() {
            node.switch.is_some() && found.is_end_port(index.at(0))
        } else {
            (0..=node.info.num_ports).any(|port| found.is_end_port(index.at(port)))
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
        // GUIDs of nodes are unique here, and so are those of the end ports that are not left out.
        let Ok(id) = fabric.add_node(spec) else { continue };
        ids[index.0 as usize] = Some(id);
        for (number, port) in (0..=info.num_ports).zip(&node.ports) {
            let Some(port_info) = port.info.as_deref() else { continue };
            if !found.is_end_port(index.at(number)) {
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
            let left_out = found.is_left_out(index.at(number)) || found.is_left_out(peer);
            if (index.at(number)) < peer && found.port(peer).info.is_some() && !left_out {
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
