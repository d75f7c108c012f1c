//! The self-test of `up --check`: a sequence of checks.
//!
//! | module | holds |
//! |---|---|
//! | `names` | hosts resolve names |
//! | `ways` | traces of paths between hosts |
//! | `disk` | the device is written and read while links are cut |

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
use serde::Serialize;

use super::record::{ReadBack, Record};
use super::tables::Tables;
use crate::error::{DaemonError, Verdict};
use crate::progress::Progress;
use crate::text::counted;
use crate::up::hosts::{BlockPair, Hosts};

mod disk;
mod names;
mod ways;

use disk::Disk;
use names::Names;
use ways::Ways;

/// Interval of the progress display.
const BETWEEN: Duration = Duration::from_millis(200);

/// Time that the SM has for the last ports after the first hosts are up.
const SETTLES: Duration = Duration::from_secs(5);

/// The parts of `up` that the self-test uses.
pub(super) struct Place<'a> {
    pub(super) sim: &'a mut Sim,
    pub(super) hosts: &'a mut Hosts,
    pub(super) pair: &'a mut Option<BlockPair>,
    pub(super) record: &'a mut Option<Record>,
    /// The hosts of the device's client and of its server.
    pub(super) ends: &'a [Vec<PortId>; 2],
}

/// Result of a check; field names are JSON keys.
#[derive(Clone, Debug, Serialize)]
struct Found {
    what: &'static str,
    good: bool,
    detail: String,
    seconds: f64,
}

/// Result of the self-test; field names are JSON keys.
#[derive(Serialize)]
struct Report<'a> {
    good: bool,
    checks: &'a [Found],
    seconds: f64,
}

/// Current step.
enum Step {
    /// Deadline for ports to come up.
    Subnet(Instant),
    Routes,
    /// `None` before the first request.
    Names(Option<Names>),
    Ways(Box<Ways>),
    Disk(Disk),
    Capture,
    End,
}

/// The self-test.
pub(super) struct Tour {
    fabric: Fabric,
    engines: EngineList,
    is_json: bool,
    step: Step,
    found: Vec<Found>,
    lines: VecDeque<String>,
    started: WallClock,
    since: WallClock,
    has_begun: bool,
    /// The reason why there is no device.
    no_device: Option<String>,
    ended: Option<Verdict>,
    /// Progress text on the terminal, and the time of its last update. The text is erased before a line is printed.
    progress: Option<Progress>,
    shown_at: WallClock,
}

impl Tour {
    pub(super) fn new(fabric: Fabric, engines: EngineList, is_json: bool) -> Self {
        let now = WallClock::now();
        Self {
            fabric,
            engines,
            is_json,
            step: Step::Subnet(Instant::NEVER),
            found: Vec::new(),
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

    /// All parts are available.
    pub(super) fn begin(&mut self, sim: &Sim) {
        self.has_begun = true;
        self.step = Step::Subnet(sim.now() + SETTLES);
    }

    /// The device is missing, although it was expected.
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
                names.as_ref().map(Names::deadline).or(now.then_some(Instant::ZERO))
            }
            Step::Ways(ways) => ways.due(),
            Step::Disk(disk) => Some(disk.deadline()),
            // The load never ends by itself.
            _ => self.has_begun.then_some(Instant::ZERO).filter(|_| self.is_busy()),
        }
    }

    const fn is_busy(&self) -> bool {
        matches!(self.step, Step::Routes | Step::Capture)
    }

    fn tell(&mut self, what: &'static str, good: bool, detail: String) {
        let seconds = self.since.elapsed().as_secs_f64();
        self.since = WallClock::now();
        (self.progress, self.shown_at) = (None, self.since);
        if !self.is_json {
            let word = if good { "ok" } else { "FAILED" };
            self.lines.push_back(format!("{word:<6} {what:<8} {seconds:5.1} s  {detail}"));
        }
        self.found.push(Found { what, good, detail, seconds });
    }

    /// Handles the response to a name request.
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
            Step::Ways(ways) => {
                let (traced, all) = ways.progress();
                format!("ways: {traced} of {all}")
            }
            Step::Disk(disk) => format!("device: {} %", percent(disk.progress())),
            Step::Capture | Step::End => "trace".to_owned(),
        };
        self.progress.get_or_insert_with(|| Progress::start("")).next(text);
    }

    /// Goes on; returns whether there was anything.
    pub(super) fn work(&mut self, place: &mut Place<'_>) -> Result<bool, DaemonError> {
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
                let (good, detail) = subnet(place.sim, missing);
                self.tell("subnet", good, detail);
                Some(Step::Routes)
            }
            Step::Routes => {
                let (good, detail) = routes(&self.fabric, &self.engines, place.sim)?;
                self.tell("routes", good, detail);
                Some(Step::Names(None))
            }
            Step::Names(names @ None) => {
                *names = Some(Names::new(place.sim, place.hosts));
                return Ok(true);
            }
            Step::Names(Some(names)) => {
                let moved = names.work(place.sim, place.hosts);
                if !names.is_over(place.sim.now()) {
                    return Ok(moved);
                }
                let (good, detail) = names.finish();
                self.tell("names", good, detail);
                Some(match Ways::start(place.sim)? {
                    Some(ways) => Step::Ways(Box::new(ways)),
                    None => {
                        self.tell("ways", true, "none, as that takes two hosts".to_owned());
                        Step::Disk(Disk::new(place.pair.as_ref(), place.sim.now()))
                    }
                })
            }
            Step::Ways(ways) => {
                if !ways.work(place.sim) {
                    return Ok(false);
                }
                let (good, detail) = ways.finish(place.sim);
                self.tell("ways", good, detail);
                Some(Step::Disk(Disk::new(place.pair.as_ref(), place.sim.now())))
            }
            Step::Disk(disk) => match &mut *place.pair {
                None => {
                    match self.no_device.take() {
                        Some(why) => self.tell("device", false, why),
                        None => {
                            self.tell("device", true, "none, as that takes two hosts".to_owned());
                        }
                    }
                    Some(Step::Capture)
                }
                Some(pair) => {
                    let moved = disk.work(pair, place.sim, place.ends);
                    if !disk.is_over() && place.sim.now() < disk.deadline() {
                        return Ok(moved);
                    }
                    let (good, detail) = disk.finish(pair, place.sim);
                    self.tell("device", good, detail);
                    Some(Step::Capture)
                }
            },
            Step::Capture => {
                let (good, detail) = match place.record.take() {
                    Some(mut record) => trace(&mut record, place.sim, place.hosts)?,
                    None => (true, "none, as there is no device".to_owned()),
                };
                self.tell("trace", good, detail);
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
        let good = self.found.iter().all(|found| found.good);
        let seconds = self.started.elapsed().as_secs_f64();
        self.lines.push_back(match self.is_json {
            false => {
                let word = if good { "all is well" } else { "something is wrong" };
                format!("{word}, after {seconds:.1} s")
            }
            true => {
                let report = Report { good, checks: &self.found, seconds };
                serde_json::to_string(&report).expect("it has nothing that JSON has not")
            }
        });
        self.ended = Some(Verdict::good_if(good));
    }
}

/// Returns the number of linked nodes that are not up: without a LID, or with a link that is not in use.
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

/// Returns true if the SM has brought all nodes up, and a text with their number.
fn subnet(sim: &Sim, missing: usize) -> (bool, String) {
    let nodes: Vec<_> = sim.node_ids().collect();
    let switches = nodes.iter().filter(|&&node| sim.is_switch(node)).count();
    let hosts = nodes.len() - switches;
    let mut detail = format!("{}, {}", counted(hosts, "host"), counted(switches, "switch"));
    if missing > 0 {
        detail.push_str(&format!("; {missing} of them have no LID, or links that are not in use"));
    }
    (missing == 0, detail)
}

/// Ends the record, and reads it back.
fn trace(record: &mut Record, sim: &Sim, hosts: &mut Hosts) -> Result<(bool, String), DaemonError> {
    let counted = record.finish(sim, hosts)?;
    let ReadBack { packets, foreign } = record.read_back()?;
    let (noted, overwritten) = (counted.noted, counted.overwritten);
    // A capture with less than half of the packets has failed.
    let good = counted.captured + overwritten == noted
        && packets == counted.captured
        && packets > 0
        && foreign == 0
        && overwritten <= noted / 2;
    let mut detail = format!(
        "{noted} packets of its queue pairs: {packets} read back, {overwritten} overwritten"
    );
    if foreign > 0 {
        detail.push_str(&format!(", {foreign} that are none"));
    }
    Ok((good, detail))
}

/// Compares the tables that switches have with those that the engine makes, and checks them.
fn routes(fabric: &Fabric, engines: &EngineList, sim: &Sim) -> Result<(bool, String), DaemonError> {
    let tables = Tables::of(sim, fabric);
    let mut known = fabric.clone();
    tables.set_lids(&mut known)?;
    let options = SubnetOptions { sm_port: None, lids: LidOptions::default() };
    let subnet = Subnet::discover(&known, &options).map_err(DaemonError::failed)?;
    let routing = expected_routing(&subnet, engines)?;
    let lfts = tables.lfts(&subnet);
    let layers: &Layers = &routing.layers;
    let CheckReport { reach, credit, .. } = check(&subnet, &lfts, layers);
    let differ = subnet.switch_ids().filter(|&id| lfts.table(id) != routing.lfts.table(id)).count();
    let cut_off = subnet.cut_off().len();
    let good = differ == 0 && reach.unreachable == 0 && credit.loops == 0 && cut_off == 0;
    let mut detail = match lfts.switches() {
        0 => "none, as there is no switch".to_owned(),
        count => format!(
            "{} for {}: {} not reached, {}, {differ} of {count} tables are others",
            routing.engine,
            counted(reach.lids, "LID"),
            counted(reach.unreachable, "pair"),
            counted(credit.loops, "credit loop")
        ),
    };
    if cut_off > 0 {
        detail.push_str(&match cut_off {
            1 => "; 1 node is cut off".to_owned(),
            many => format!("; {many} nodes are cut off"),
        });
    }
    Ok((good, detail))
}

/// Returns the routes that a subnet manager programs at first: those of the first engine that reach
/// everything without a credit loop, or else those of the first engine.
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
