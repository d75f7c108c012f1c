//! The self-test of `ibfabric selftest`, which is a sequence of checks.
//!
//! | module | holds |
//! |---|---|
//! | `names` | the check that hosts resolve names |
//! | `paths` | the check that paths between hosts can be traced |
//! | `device` | the check that the block device can be written and read while links are cut |
//! | `results` | [`CheckResult`]: the result of each check, as numbers and as text |

use std::collections::VecDeque;
use std::time::{Duration, Instant as WallClock};

use ib_routing::engine::engine;
use ib_routing::{
    CheckReport, EngineList, Layers, LidOptions, Routing, RoutingOptions, Subnet, SubnetOptions,
    check,
};
use ib_sim::Sim;
use ib_topology::{Fabric, NodeId, PortId};
use ib_types::Instant;
use ib_wire::acm::ClientStatus;
use ib_wire::mad::sa::PathRecord;
use schemars::JsonSchema;
use serde::Serialize;

use super::record::Record;
use super::tables::Tables;
use crate::error::{DaemonError, Verdict};
use crate::progress::Progress;
use crate::up::hosts::{BlockPair, Hosts};

mod device;
mod names;
mod paths;
mod results;

use device::DeviceCheck;
use names::ResolvedNames;
use paths::TracedPaths;
use results::{CaptureResult, CheckResult, RoutesResult, SubnetResult};

/// Interval at which the progress display is updated.
const BETWEEN: Duration = Duration::from_millis(200);

/// When the first hosts are up, the SM has this time to bring up the remaining ports.
const SETTLES: Duration = Duration::from_secs(5);

/// The parts of `up` that the self-test uses.
pub(super) struct SelfTestContext<'a> {
    pub(super) sim: &'a mut Sim,
    pub(super) hosts: &'a mut Hosts,
    pub(super) pair: &'a mut Option<BlockPair>,
    pub(super) record: &'a mut Option<Record>,
    /// Ports of the block device's hosts: those of the client, then those of the server.
    pub(super) ends: &'a [Vec<PortId>; 2],
}

/// The result of a check. The field names are JSON keys.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Check {
    check: &'static str,
    good: bool,
    seconds: f64,
    result: CheckResult,
}

const TAKES_TWO_HOSTS: &str = "none, because a block device needs two hosts";

/// The report of the self-test. The field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct Report<'a> {
    good: bool,
    checks: &'a [Check],
    seconds: f64,
}

/// Returns the JSON Schema of the self-test's JSON report. `generator` creates the schema.
pub fn report_schema(generator: schemars::SchemaGenerator) -> schemars::Schema {
    generator.into_root_schema_for::<Report<'_>>()
}

/// The step that the self-test is executing.
enum Step {
    /// The self-test waits for all ports to come up, at most until this time.
    Subnet(Instant),
    Routes,
    /// The name check; `None` until its requests are prepared.
    Names(Option<ResolvedNames>),
    Paths(Box<TracedPaths>),
    Device(DeviceCheck),
    Capture,
    End,
}

/// The self-test.
pub(super) struct SelfTest {
    fabric: Fabric,
    engines: EngineList,
    is_json: bool,
    step: Step,
    checks: Vec<Check>,
    lines: VecDeque<String>,
    started: WallClock,
    since: WallClock,
    has_begun: bool,
    /// The reason why there is no block device, although one was expected.
    no_device: Option<String>,
    ended: Option<Verdict>,
    /// The progress text on the terminal. It is erased before a line is printed.
    progress: Option<Progress>,
    /// Time of the last update of the progress text.
    shown_at: WallClock,
}

impl SelfTest {
    pub(super) fn new(fabric: Fabric, engines: EngineList, is_json: bool) -> Self {
        let now = WallClock::now();
        Self {
            fabric,
            engines,
            is_json,
            step: Step::Subnet(Instant::NEVER),
            checks: Vec::new(),
            lines: VecDeque::new(),
            started: now,
            since: now,
            has_begun: false,
            no_device: None,
            ended: None,
            progress: Some(Progress::start("subnet: waiting for the subnet manager")),
            shown_at: now,
        }
    }

    /// Starts the checks. The hosts must have been added, and the block device must be connected if there is one.
    pub(super) fn begin(&mut self, sim: &Sim) {
        self.has_begun = true;
        self.step = Step::Subnet(sim.now() + SETTLES);
    }

    /// Records that the expected block device cannot be connected. The device check then fails with the reason `why`.
    pub(super) fn lack_device(&mut self, why: String) {
        self.no_device = Some(why);
    }

    pub(super) fn ended(&self) -> Option<Verdict> {
        self.ended
    }

    pub(super) fn poll_line(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    pub(super) fn due(&self) -> Option<Instant> {
        match &self.step {
            Step::Subnet(until) => Some(*until).filter(|_| self.has_begun),
            Step::Names(names) => {
                let now = names.is_none() && self.has_begun;
                names.as_ref().map(ResolvedNames::deadline).or(now.then_some(Instant::ZERO))
            }
            Step::Paths(paths) => paths.due(),
            Step::Device(device) => Some(device.deadline()),
            _ => self.has_begun.then_some(Instant::ZERO).filter(|_| self.is_busy()),
        }
    }

    const fn is_busy(&self) -> bool {
        matches!(self.step, Step::Routes | Step::Capture)
    }

    fn report(&mut self, check: &'static str, result: CheckResult) {
        let good = result.is_good();
        let seconds = self.since.elapsed().as_secs_f64();
        self.since = WallClock::now();
        (self.progress, self.shown_at) = (None, self.since);
        if !self.is_json {
            let word = if good { "ok" } else { "FAILED" };
            self.lines.push_back(format!("{word:<6} {check:<8} {seconds:5.1} s  {result}"));
        }
        self.checks.push(Check { check, good, seconds, result });
    }

    /// Handles the response to a request of the name check.
    pub(super) fn take_reply(&mut self, number: u64, found: Result<PathRecord, ClientStatus>) {
        if let Step::Names(Some(names)) = &mut self.step {
            names.take_reply(number, found);
        }
    }

    /// Shows the progress on a terminal.
    fn show_progress(&mut self) {
        if self.shown_at.elapsed() < BETWEEN {
            return;
        }
        self.shown_at = WallClock::now();
        let percent = |(done, all): (u64, u64)| done * 100 / all.max(1);
        let text = match &self.step {
            Step::Subnet(_) => "subnet".to_owned(),
            Step::Routes => "routes".to_owned(),
            Step::Names(None) => "names".to_owned(),
            Step::Names(Some(names)) => {
                let (answered, all) = names.progress();
                format!("names: {answered} of {all}")
            }
            Step::Paths(paths) => {
                let (traced, all) = paths.progress();
                format!("paths: {traced} of {all}")
            }
            Step::Device(device) => format!("device: {} %", percent(device.progress())),
            Step::Capture | Step::End => "capture".to_owned(),
        };
        self.progress.get_or_insert_with(|| Progress::start("")).next(text);
    }

    /// Makes progress; returns true if there was any.
    pub(super) fn work(&mut self, place: &mut SelfTestContext<'_>) -> Result<bool, DaemonError> {
        if !self.has_begun || self.ended.is_some() {
            return Ok(false);
        }
        self.show_progress();
        let next = match &mut self.step {
            Step::Subnet(until) => {
                let missing = missing(place.sim, &self.fabric);
                if missing > 0 && place.sim.now() < *until {
                    return Ok(false);
                }
                self.report("subnet", subnet(place.sim, missing));
                Some(Step::Routes)
            }
            Step::Routes => {
                let result = routes(&self.fabric, &self.engines, place.sim)?;
                self.report("routes", result);
                Some(Step::Names(None))
            }
            Step::Names(names @ None) => {
                *names = Some(ResolvedNames::new(place.sim, place.hosts));
                return Ok(true);
            }
            Step::Names(Some(names)) => {
                let moved = names.work(place.sim, place.hosts);
                if !names.is_over(place.sim.now()) {
                    return Ok(moved);
                }
                let result = names.finish();
                self.report("names", result);
                Some(match TracedPaths::start(place.sim)? {
                    Some(paths) => Step::Paths(Box::new(paths)),
                    None => {
                        self.report("paths", CheckResult::skipped(TAKES_TWO_HOSTS));
                        Step::Device(DeviceCheck::new(place.pair.as_ref(), place.sim.now()))
                    }
                })
            }
            Step::Paths(paths) => {
                if !paths.work(place.sim) {
                    return Ok(false);
                }
                let result = paths.finish(place.sim);
                self.report("paths", result);
                Some(Step::Device(DeviceCheck::new(place.pair.as_ref(), place.sim.now())))
            }
            Step::Device(device) => {
                let result = match (&mut *place.pair, self.no_device.take()) {
                    (Some(pair), _) => {
                        let moved = device.work(pair, place.sim, place.ends);
                        if !device.is_over() && place.sim.now() < device.deadline() {
                            return Ok(moved);
                        }
                        device.finish(pair, place.sim)
                    }
                    (None, Some(reason)) => CheckResult::Skipped { reason, is_good: false },
                    (None, None) => CheckResult::skipped(TAKES_TWO_HOSTS),
                };
                self.report("device", result);
                Some(Step::Capture)
            }
            Step::Capture => {
                let result = match place.record.take() {
                    Some(mut record) => capture(&mut record, place.sim, place.hosts)?,
                    None => CheckResult::skipped("none, as there is no device"),
                };
                self.report("capture", result);
                Some(Step::End)
            }
            Step::End => {
                self.end();
                return Ok(true);
            }
        };
        if let Some(next) = next {
            self.step = next;
        }
        Ok(true)
    }

    fn end(&mut self) {
        self.progress = None;
        let good = self.checks.iter().all(|check| check.good);
        let seconds = self.started.elapsed().as_secs_f64();
        self.lines.push_back(match self.is_json {
            false => {
                let verdict = if good { "all checks passed" } else { "problems found" };
                format!("{verdict}, after {seconds:.1} s")
            }
            true => {
                let report = Report { good, checks: &self.checks, seconds };
                serde_json::to_string(&report).expect("text and numbers can be serialised")
            }
        });
        self.ended = Some(Verdict::good_if(good));
    }
}

/// Returns the number of nodes that are not up: nodes without a LID, or with a link that is not active. Nodes without
/// any link are not counted.
fn missing(sim: &Sim, fabric: &Fabric) -> usize {
    let is_up = |&node: &NodeId| {
        let ports: Vec<PortId> = fabric.ports_of(node).map(|(port, _)| port).collect();
        let links: Vec<(PortId, PortId)> =
            ports.iter().filter_map(|&port| Some((port, sim.peer(port)?))).collect();
        let has_lid = ports.iter().any(|&port| sim.port_info(port).lid != 0);
        links.is_empty() || has_lid && links.iter().all(|&(port, peer)| sim.is_active(port, peer))
    };
    sim.node_ids().filter(|node| !is_up(node)).count()
}

/// Returns how many hosts and switches there are, and how many nodes are not up.
fn subnet(sim: &Sim, not_up: usize) -> CheckResult {
    let nodes: Vec<_> = sim.node_ids().collect();
    let switches = nodes.iter().filter(|&&node| sim.is_switch(node)).count();
    CheckResult::Subnet(SubnetResult { hosts: nodes.len() - switches, switches, not_up })
}

/// Finishes the capture and reads its file back.
fn capture(record: &mut Record, sim: &Sim, hosts: &mut Hosts) -> Result<CheckResult, DaemonError> {
    let counted = record.finish(sim, hosts)?;
    let read = record.read_back()?;
    Ok(CheckResult::Capture(CaptureResult {
        packets: counted.noted,
        captured: counted.captured,
        overwritten: counted.overwritten,
        read_back: read.packets,
        non_rdma: read.other,
    }))
}

/// Compares the LFTs of the switches with those that the routing engine computes. Also checks the LFTs of the switches
/// for unreachable LIDs and credit loops.
fn routes(fabric: &Fabric, engines: &EngineList, sim: &Sim) -> Result<CheckResult, DaemonError> {
    let tables = Tables::of(sim, fabric);
    let mut known = fabric.clone();
    tables.set_lids(&mut known)?;
    let options = SubnetOptions { sm_port: None, lids: LidOptions::default() };
    let subnet = Subnet::discover(&known, &options).map_err(DaemonError::failed)?;
    let routing = expected_routing(&subnet, engines)?;
    let lfts = tables.lfts(&subnet);
    let layers: &Layers = &routing.layers;
    let CheckReport { reach, credit, .. } = check(&subnet, &lfts, layers);
    let different_lfts =
        subnet.switch_ids().filter(|&id| lfts.table(id) != routing.lfts.table(id)).count();
    Ok(CheckResult::Routes(RoutesResult {
        engine: routing.engine.to_string(),
        lids: reach.lids,
        unreachable: reach.unreachable,
        credit_loops: credit.loops,
        switches: lfts.switches(),
        different_lfts,
        cut_off: subnet.cut_off().len(),
    }))
}

/// Returns the routes that the SM programs when it starts: the routes of the first engine that reaches all LIDs without
/// a credit loop. If there is no such engine, returns the routes of the first engine that supports the subnet.
fn expected_routing(subnet: &Subnet<'_>, engines: &EngineList) -> Result<Routing, DaemonError> {
    for kind in engines.candidates() {
        let Ok(routing) = engine(kind).route(subnet, &RoutingOptions::default()) else { continue };
        if check(subnet, &routing.lfts, &routing.layers).is_sound() {
            return Ok(routing);
        }
    }
    let outcome = engines.route(subnet, &RoutingOptions::default()).map_err(DaemonError::failed)?;
    Ok(outcome.routing)
}
