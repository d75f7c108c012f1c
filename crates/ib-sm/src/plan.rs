//! The plan of a subnet: LIDs, forwarding tables and service levels.
//!
//! Planning takes long for large subnets. A [`PlanJob`] owns all its inputs, so that another thread can run it while
//! the subnet manager (SM) answers queries.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ib_routing::check::{CheckOptions, CheckReport, Checker, CreditLoops, check_with};
use ib_routing::engine::{NoEngine, Refusal, engine};
use ib_routing::hops::LinkWeights;
use ib_routing::subnet::SubnetError;
use ib_routing::{
    EngineKind, HopMatrix, Layers, Lfts, LidOptions, Routing, RoutingOptions, Subnet,
    SubnetOptions, SwitchId,
};
use ib_topology::Fabric;
use ib_types::{Guid, Lid};

use crate::config::SmConfig;
use crate::discovered_subnet::DiscoveredSubnet;
use crate::vls::FabricVls;

mod decision;
mod graph;

pub use decision::TableQuality;
use decision::{Candidate, Choice, Decision, InUse, TableAlarm, decide};

/// A job that computes the plan of a subnet.
#[derive(Clone, Debug)]
pub struct PlanJob {
    fabric: Fabric,
    own_port: Guid,
    vls: FabricVls,
    in_use: TablesInUse,
    /// The highest LID that all switches can forward; `None` if there is no such limit.
    max_lid: Option<u16>,
    /// True if the SM runs on a switch without hosts.
    on_spine: bool,
    /// Checker for unreachable pairs and credit loops. The jobs of an SM share it, because it reuses the results of the
    /// previous check.
    checker: Arc<Mutex<Checker>>,
}

/// The forwarding tables that are currently in the switches.
#[derive(Clone, Debug, Default)]
pub(crate) struct TablesInUse {
    /// For each switch, by GUID, the output port of each LID. Unknown entries are "no path".
    pub(crate) tables: BTreeMap<Guid, Vec<u8>>,
    /// The plan for which the tables were written; `None` if another SM has written them.
    pub(crate) plan: Option<Arc<Plan>>,
    /// True if engines have to keep the entries of `tables` that are still valid.
    pub(crate) keep: bool,
}

/// The plan of a subnet: LIDs, forwarding tables and service levels.
#[derive(Clone, Debug)]
pub struct Plan {
    /// LIDs of each end port, by port GUID: the base LID, and the number of LIDs.
    pub end_ports: BTreeMap<Guid, (Lid, u16)>,
    /// The node GUIDs of the switches, in the order of the tables.
    pub switches: Vec<Guid>,
    /// The highest LID of the subnet.
    pub max_lid: u16,
    /// The forwarding tables, and how they were computed.
    pub routing: Routing,
    /// The configured engines that could not route the subnet, in the order of the engine list, each with the reason.
    pub refusals: Vec<Refusal>,
    /// The result of checking the tables.
    pub report: CheckReport,
    /// Quality of the tables: unreachable pairs and credit loops.
    pub quality: TableQuality,
    /// True if the tables in the switches are kept, because the new tables are worse or must not be programmed.
    pub is_kept: bool,
    /// All engines whose tables were computed and checked, in the order in which they were tried.
    pub tried: Vec<EngineKind>,
    /// If the tables have a credit loop: the engine whose tables reach at least as many host pairs as these tables, but
    /// without a loop.
    pub avoided_by: Option<EngineKind>,
    /// The engine whose tables reach the most host pairs; `None` if no tried engine reaches more pairs than these
    /// tables.
    pub reached_by: Option<EngineKind>,
    /// The links of the first credit loop, in the order in which they form the loop; empty if there is no loop.
    pub first_loop: Vec<String>,
    /// The first unreachable pair of a switch and a LID, and the reason why packets from the switch do not arrive.
    pub first_unreachable: Option<String>,
    /// If LIDs ran out, the host ports that have no LID: port GUID and node description.
    pub without_lid: Vec<(Guid, String)>,
    /// Warnings about the plan, one sentence each.
    pub warnings: Vec<String>,
    /// Reasons why LIDs were not assigned as configured, one sentence each.
    pub notes: Vec<String>,
    /// The time that all routing engines together have taken.
    pub route_time: Duration,
    /// The time that the checks of all engines' tables together have taken.
    pub check_time: Duration,
}

/// The reason why a subnet has no plan.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The SM's port has no link, there are not enough LIDs for all switches, or there are more than 49,151 end ports.
    #[error(transparent)]
    Subnet(#[from] SubnetError),
    /// The options of the engines are invalid. Holds the reason.
    #[error("{0}")]
    Options(String),
    /// No engine can route the subnet.
    #[error(transparent)]
    Engine(#[from] NoEngine),
    /// The tables of every engine have a credit loop, and the configuration requires deadlock freedom.
    #[error(
        "refused: the routes of {} have {loops} credit {}, but deadlock freedom is required; \
         first loop: {first}",
        .engine.name(),
        if *.loops == 1 { "loop" } else { "loops" }
    )]
    CreditLoops {
        /// The first configured engine whose tables have a credit loop.
        engine: EngineKind,
        /// The number of credit loops of this engine's tables.
        loops: usize,
        /// The links of one credit loop of this engine's tables.
        first: String,
    },
}

/// The tables of one engine, and the result of checking them.
struct Routed {
    routing: Routing,
    report: CheckReport,
}

/// The engines that a job has tried, and their results.
struct Trial<'a> {
    job: &'a PlanJob,
    subnet: &'a Subnet<'a>,
    options: RoutingOptions,
    candidates: Vec<Candidate>,
    engines: Vec<EngineKind>,
    /// The best candidate so far that may be programmed: its index in `candidates`, and its tables.
    best: Option<(usize, Routed)>,
    /// The first configured engine whose tables have a credit loop, the number of these loops, and the links of the
    /// first loop.
    first_loop: Option<(EngineKind, usize, Vec<String>)>,
    refusals: Vec<Refusal>,
    route_time: Duration,
    check_time: Duration,
}

/// Engines that avoid credit loops. They are tried so that an alarm can recommend one of them.
const LOOP_FREE: [EngineKind; 2] = [EngineKind::UpDown, EngineKind::Lash];

/// Maximum number of switches for which lash is tried so that an alarm can recommend it. In larger subnets, lash takes
/// too long.
const MAX_SWITCHES_FOR_ADVICE: usize = 400;

impl PlanJob {
    /// Creates a job for the discovered subnet. Nodes that have not responded to all queries are left out.
    pub(crate) fn new(
        found: &DiscoveredSubnet,
        config: &SmConfig,
        in_use: TablesInUse,
        checker: Arc<Mutex<Checker>>,
    ) -> Self {
        let own = found.own.expect("the caller checked the SM's own port");
        let node = found.node(own.node);
        let mut peers = node.ports.iter().filter_map(|port| port.peer);
        Self {
            fabric: graph::fabric(found),
            own_port: found.port(own).guid,
            vls: FabricVls::new(found.clone(), config.clone()),
            in_use,
            max_lid: max_lid(found),
            on_spine: node.kind.is_switch()
                && peers.all(|peer| found.node(peer.node).kind.is_switch()),
            checker,
        }
    }

    fn config(&self) -> &SmConfig {
        self.vls.config()
    }

    /// Returns the subnet as a graph.
    #[must_use]
    pub const fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Returns the subnet with assigned LIDs. All switches can forward each of these LIDs.
    fn subnet(&self) -> Result<Subnet<'_>, SubnetError> {
        let lids = LidOptions {
            max_lid: self.max_lid,
            allow_shortage: true,
            ..self.config().routing.lids.clone()
        };
        Subnet::discover(&self.fabric, &SubnetOptions { sm_port: Some(self.own_port), lids })
    }

    /// Computes the plan.
    ///
    /// # Errors
    /// Fails in these cases:
    ///
    /// * The SM's port is not linked.
    /// * There are not enough LIDs for all switches, or there are more than 49,151 end ports.
    /// * The options of the engines are invalid.
    /// * No engine can route the subnet.
    /// * All tables have credit loops, and the configuration requires deadlock freedom.
    pub fn run(&self) -> Result<Plan, PlanError> {
        let subnet = self.subnet()?;
        let mut trial = Trial::new(self, &subnet)?;
        for engine in self.config().routing.engines.candidates() {
            if trial.is_settled() {
                break;
            }
            trial.run(engine, true);
        }
        if trial.candidates.is_empty() {
            return Err(NoEngine { refusals: trial.refusals }.into());
        }
        let mut in_use = None;
        if !trial.is_settled() {
            in_use = self.assess_in_use(&subnet);
            let lash_is_quick = subnet.switches().len() <= MAX_SWITCHES_FOR_ADVICE;
            for engine in
                LOOP_FREE.into_iter().filter(|&it| it != EngineKind::Lash || lash_is_quick)
            {
                trial.run(engine, false);
            }
        }
        let assessed = in_use.as_ref().map(|(in_use, _)| *in_use);
        let decision = decide(assessed, &trial.candidates, self.config().require_deadlock_free);
        self.make(trial, decision, in_use.map(|(_, routed)| routed))
    }

    /// Returns the quality that the tables in the switches have on the current subnet, and the first unreachable pair
    /// of a switch and a LID. Returns `None` if no table is known.
    pub(crate) fn assess(&self) -> Option<(TableQuality, Option<String>)> {
        let subnet = self.subnet().ok()?;
        let (in_use, routed) = self.assess_in_use(&subnet)?;
        let first = routed.report.reach.first.first().map(|it| it.describe(&subnet));
        Some((in_use.quality, first))
    }

    fn assess_in_use(&self, subnet: &Subnet<'_>) -> Option<(InUse, Routed)> {
        let TablesInUse { tables, plan, .. } = &self.in_use;
        if tables.is_empty() {
            return None;
        }
        let lfts = self.existing_tables(subnet);
        let layers = plan.as_ref().map_or_else(
            || Layers::uniform(ib_types::ServiceLevel::default()),
            |plan| layers_of(plan, subnet),
        );
        let map = self.vls.map(&layers, subnet);
        let vl_map = map.as_ref().map(|map| map as _);
        let options = CheckOptions { vl_map, ..CheckOptions::default() };
        let report = check_with(subnet, &lfts, &layers, &options);
        let is_complete = plan.as_ref().is_some_and(|plan| {
            subnet.switches().iter().all(|switch| tables.contains_key(&switch.guid))
                && subnet.switches().iter().all(|switch| plan.switches.contains(&switch.guid))
                && subnet
                    .end_ports()
                    .iter()
                    .all(|port| plan.end_ports.get(&port.guid) == Some(&(port.base_lid, port.lids)))
        });
        let engine = plan.as_ref().map_or(EngineKind::File, |plan| plan.routing.engine);
        let routing = Routing {
            engine,
            lfts,
            hops: HopMatrix::shortest(subnet, &LinkWeights::default()),
            layers,
            roots: Vec::new(),
            ca_order: Vec::new(),
            notes: Vec::new(),
        };
        let in_use = InUse { quality: quality(&report), is_complete };
        Some((in_use, Routed { routing, report }))
    }

    /// Creates the plan that results from a decision about the tables.
    fn make(
        &self,
        trial: Trial<'_>,
        decision: Decision,
        in_use: Option<Routed>,
    ) -> Result<Plan, PlanError> {
        let Trial { subnet, engines, best, first_loop, refusals, .. } = trial;
        let (is_kept, routed) = match decision.choice {
            Choice::Candidate(number) => {
                let (best, routed) = best.expect("`Trial` keeps the best tables");
                assert_eq!(best, number, "`Trial` keeps the chosen candidate");
                (false, routed)
            }
            Choice::InUse => (true, in_use.expect("`decide` keeps only tables that exist")),
            Choice::Refuse => {
                let (engine, loops, first) = first_loop.expect("refused tables have a loop");
                let first = first.join(", ");
                return Err(PlanError::CreditLoops { engine, loops, first });
            }
        };
        let Routed { routing, report } = routed;
        let (mut avoided_by, mut reached_by) = (None, None);
        for alarm in decision.alarms {
            match alarm {
                TableAlarm::CreditLoops { avoided_by: at } => avoided_by = at.map(|at| engines[at]),
                TableAlarm::Unreachable { reached_by: at } => reached_by = at.map(|at| engines[at]),
            }
        }
        Ok(Plan {
            end_ports: subnet
                .end_ports()
                .iter()
                .map(|port| (port.guid, (port.base_lid, port.lids)))
                .collect(),
            switches: subnet.switches().iter().map(|switch| switch.guid).collect(),
            max_lid: subnet.max_lid(),
            quality: decision.quality.expect("`decide` returns the quality of its choice"),
            is_kept,
            first_loop: first_loop_of(&report.credit, subnet),
            first_unreachable: report.reach.first.first().map(|it| it.describe(subnet)),
            avoided_by,
            reached_by,
            without_lid: without_lid(subnet),
            warnings: self.warnings(&routing),
            notes: subnet.lid_notes().to_vec(),
            tried: distinct(engines),
            routing,
            refusals,
            report,
            route_time: trial.route_time,
            check_time: trial.check_time,
        })
    }

    /// Returns warnings about the routes, one sentence each.
    fn warnings(&self, routing: &Routing) -> Vec<String> {
        let mut warnings = Vec::new();
        if routing.engine == EngineKind::UpDown && self.on_spine {
            warnings.push(
                "the subnet manager is on a switch without hosts: up/down routing has no LID-routed \
                 paths between such switches; run it on a leaf switch or a host"
                    .to_owned(),
            );
        }
        let discarded = self.vls.discarded_at_hosts(&routing.layers);
        if discarded != 0 {
            let levels = (0..16).filter(|level| discarded >> level & 1 != 0);
            let levels: Vec<String> = levels.map(|level: u8| level.to_string()).collect();
            warnings.push(format!(
                "the SL-to-VL tables of hosts put SL {} on VL 15, which discards the packets; the \
                 routes use that service level: change qos_ca_sl2vl or qos_rtr_sl2vl",
                levels.join(", ")
            ));
        }
        warnings
    }

    fn existing_tables(&self, subnet: &Subnet<'_>) -> Lfts {
        let mut tables = Lfts::new(subnet);
        for id in subnet.switch_ids() {
            if let Some(known) = self.in_use.tables.get(&subnet.switch(id).guid) {
                let table = tables.table_mut(id);
                let length = known.len().min(table.len());
                table[..length].copy_from_slice(&known[..length]);
            }
        }
        tables
    }
}

impl<'a> Trial<'a> {
    fn new(job: &'a PlanJob, subnet: &'a Subnet<'a>) -> Result<Self, PlanError> {
        let mut options = match &job.config().routing.options {
            Some(make) => make(subnet).map_err(PlanError::Options)?,
            None => RoutingOptions::default(),
        };
        // Lash may use only VLs that every link between switches has.
        if let Some(fewest) = job.vls.fewest_vls() {
            let configured = options.virtual_lanes;
            options.virtual_lanes = if configured == 0 { fewest } else { configured.min(fewest) };
        }
        Ok(Self {
            job,
            subnet,
            options,
            candidates: Vec::new(),
            engines: Vec::new(),
            best: None,
            first_loop: None,
            refusals: Vec::new(),
            route_time: Duration::ZERO,
            check_time: Duration::ZERO,
        })
    }

    /// Returns true if the tables of a configured engine lose no packets and have no credit loop.
    fn is_settled(&self) -> bool {
        self.candidates.iter().any(|it| it.is_configured && it.quality.is_sound())
    }

    /// Tries an engine. If [`TablesInUse::keep`] is set, the engine first keeps the valid entries of the tables in the
    /// switches. If the result has a credit loop, the engine is tried again without these entries. They may be the
    /// cause: entries from a degraded fabric can close loops once the fabric is repaired.
    fn run(&mut self, engine: EngineKind, is_configured: bool) {
        if self.engines.contains(&engine) || self.refusals.iter().any(|it| it.0 == engine) {
            return;
        }
        if self.job.in_use.keep {
            self.options.existing = Some(self.job.existing_tables(self.subnet));
            let is_routed = self.compute(engine, is_configured);
            self.options.existing = None;
            let last = self.candidates.last();
            if !is_routed || last.is_some_and(|it| it.quality.credit_loops == 0) {
                return;
            }
        }
        self.compute(engine, is_configured);
    }

    /// Computes and checks the tables of an engine. Returns false if the engine cannot route the subnet.
    fn compute(&mut self, kind: EngineKind, is_configured: bool) -> bool {
        let start = Instant::now();
        let routing = match engine(kind).route(self.subnet, &self.options) {
            Ok(routing) => routing,
            Err(error) => {
                if is_configured {
                    self.refusals.push((kind, error));
                }
                return false;
            }
        };
        self.route_time += start.elapsed();
        let start = Instant::now();
        let report = self.check(&routing);
        self.check_time += start.elapsed();
        let candidate = Candidate { quality: quality(&report), is_configured };
        if candidate.quality.credit_loops > 0 && is_configured && self.first_loop.is_none() {
            let links = first_loop_of(&report.credit, self.subnet);
            self.first_loop = Some((kind, candidate.quality.credit_loops, links));
        }
        self.candidates.push(candidate);
        self.engines.push(kind);
        let number = self.candidates.len() - 1;
        let required = self.job.config().require_deadlock_free;
        if decide(None, &self.candidates, required).choice == Choice::Candidate(number) {
            self.best = Some((number, Routed { routing, report }));
        }
        true
    }

    /// Checks the routes for unreachable pairs and credit loops, on the VLs that their links will use.
    fn check(&self, routing: &Routing) -> CheckReport {
        let Some(map) = self.job.vls.map(&routing.layers, self.subnet) else {
            let mut checker = self.job.checker.lock().unwrap_or_else(PoisonError::into_inner);
            return checker.check(self.subnet, &routing.lfts, &routing.layers);
        };
        let options = CheckOptions { vl_map: Some(&map), ..CheckOptions::default() };
        check_with(self.subnet, &routing.lfts, &routing.layers, &options)
    }
}

/// Returns the highest LID that all switches can forward. This is the smallest `LinearFDBCap` minus 1, because tables
/// begin with LID 0. Switches without a linear table report 0 and are ignored.
fn max_lid(found: &DiscoveredSubnet) -> Option<u16> {
    let caps = found.nodes().filter_map(|(_, node)| Some(node.switch?.linear_fdb_cap));
    caps.filter(|&cap| cap > 0).min().map(|cap| cap - 1)
}

fn without_lid(subnet: &Subnet<'_>) -> Vec<(Guid, String)> {
    let fabric = subnet.fabric();
    let ports = subnet.without_lid().iter().map(|&port| fabric.port(port));
    ports.map(|port| (port.guid, fabric.node(port.node).description.clone())).collect()
}

/// Returns the list of engines. If an engine is listed several times in succession, it is returned once.
fn distinct(mut engines: Vec<EngineKind>) -> Vec<EngineKind> {
    engines.dedup();
    engines
}

fn quality(report: &CheckReport) -> TableQuality {
    TableQuality {
        unreachable_host_pairs: report.reach.unreachable_host_pairs,
        unreachable: report.reach.unreachable,
        credit_loops: report.credit.loops,
    }
}

/// Returns the links of the first credit loop, in the order in which they form the loop.
fn first_loop_of(credit: &CreditLoops, subnet: &Subnet<'_>) -> Vec<String> {
    credit.first.first().map(|cycle| cycle.describe(subnet)).unwrap_or_default()
}

/// Returns the service levels of a plan for a subnet whose switches may have changed since. Pairs with a new switch get
/// SL 0, because no table entry leads to or from it yet.
fn layers_of(plan: &Plan, subnet: &Subnet<'_>) -> Layers {
    let old = &plan.routing.layers;
    if old.is_uniform() {
        return old.clone();
    }
    let rows: BTreeMap<Guid, SwitchId> =
        plan.switches.iter().zip(0..).map(|(&guid, row)| (guid, SwitchId(row))).collect();
    let rows: Vec<Option<SwitchId>> =
        subnet.switches().iter().map(|switch| rows.get(&switch.guid).copied()).collect();
    let level = |from: &Option<SwitchId>, to: &Option<SwitchId>| match (from, to) {
        (Some(from), Some(to)) => old.level(*from, *to).get(),
        _ => 0,
    };
    let levels = rows.iter().flat_map(|from| rows.iter().map(move |to| level(from, to))).collect();
    Layers::per_pair(rows.len(), levels)
}
