//! What `--check` looks at and tries, one thing after the other.

use std::collections::VecDeque;
use std::time::{Duration, Instant as WallClock};

use ib_acm::Address;
use ib_net::hosts::{BlockPair, Hosts};
use ib_routing::{
    CheckReport, EngineList, Layers, LidOptions, RoutingOptions, Subnet, SubnetOptions, check,
};
use ib_rtrs::PathState;
use ib_sim::{ClientId, ClientOptions, Sim};
use ib_topology::{Fabric, PortId};
use ib_tracer::{Target, Tracer, TracerConfig};
use ib_types::Instant;
use ib_wire::acm::ClientStatus;
use ib_wire::mad::sa::PathRecord;
use serde::Serialize;

use super::pass::{Content, Pass, Task};
use super::record::Record;
use super::tables::Tables;
use super::town::destination;
use crate::failure::{Failure, Verdict};
use crate::output::Format;

/// How many ways are traced.
const WAYS: usize = 100;

/// How long the device may take for a request: longer than paths take to be connected again.
const PATIENCE: Duration = Duration::from_secs(45);

/// What the tour sees.
pub(super) struct Place<'a> {
    pub(super) sim: &'a mut Sim,
    pub(super) hosts: &'a mut Hosts,
    pub(super) pair: &'a mut Option<BlockPair>,
    pub(super) record: &'a mut Option<Record>,
    /// The hosts of the device's client and of its server.
    pub(super) ends: &'a [Vec<PortId>; 2],
}

/// What came of a thing; the names are JSON keys.
#[derive(Clone, Debug, Serialize)]
struct Found {
    what: &'static str,
    good: bool,
    detail: String,
    seconds: f64,
}

/// All of it; the names are JSON keys.
#[derive(Serialize)]
struct Report<'a> {
    good: bool,
    checks: &'a [Found],
    seconds: f64,
}

/// What is tried.
enum Step {
    Routes,
    Names(Asked),
    Ways(Box<Ways>),
    Disk(Disk),
    Capture,
    End,
}

/// Requests for names.
#[derive(Default)]
struct Asked {
    has_begun: bool,
    /// By the number of the request: the LID that the path starts at, and those that it may lead to.
    expected: Vec<(u16, Vec<u16>)>,
    answered: usize,
    wrong: usize,
}

/// Ways that are traced.
struct Ways {
    client: ClientId,
    tracer: Tracer,
    asked: usize,
    good: usize,
    /// Those that agents confirm, and those that they can.
    validated: usize,
    can_be_validated: usize,
    first_bad: Option<String>,
    traced: usize,
}

/// The device is written and read.
struct Disk {
    content: Content,
    writes: Pass,
    reads: Pass,
    cut: Cut,
    /// How many bytes and errors there were when it got on, and when that was.
    got_on: (u64, Instant),
}

/// What has become of the link that is to be cut.
enum Cut {
    /// Its time has not come, or there is no other path.
    No,
    /// It is that of a port; so many requests were under way.
    Yes { port: PortId, under_way: usize },
    /// It could not be cut.
    Not(String),
}

/// The tour.
pub(super) struct Tour {
    fabric: Fabric,
    engines: EngineList,
    format: Format,
    step: Step,
    found: Vec<Found>,
    lines: VecDeque<String>,
    started: WallClock,
    since: WallClock,
    has_begun: bool,
    /// Why there is no device.
    no_device: Option<String>,
    ended: Option<Verdict>,
}

impl Tour {
    pub(super) fn new(fabric: Fabric, engines: EngineList, format: Format) -> Self {
        let now = WallClock::now();
        Self {
            fabric,
            engines,
            format,
            step: Step::Routes,
            found: Vec::new(),
            lines: VecDeque::new(),
            started: now,
            since: now,
            has_begun: false,
            no_device: None,
            ended: None,
        }
    }

    /// Everything is there.
    pub(super) fn begin(&mut self, sim: &Sim) {
        self.has_begun = true;
        let nodes: Vec<_> = sim.node_ids().collect();
        let switches = nodes.iter().filter(|&&node| sim.is_switch(node)).count();
        let detail = format!("{} hosts, {switches} switches", nodes.len() - switches);
        self.tell("subnet", true, detail);
    }

    /// There is no device, where there should be one.
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
            Step::Ways(ways) => ways.tracer.poll_timeout(),
            Step::Disk(disk) => Some(disk.deadline()),
            // There is always more to do.
            _ => self.has_begun.then_some(Instant::ZERO).filter(|_| self.is_busy()),
        }
    }

    const fn is_busy(&self) -> bool {
        matches!(self.step, Step::Routes | Step::Capture)
    }

    fn tell(&mut self, what: &'static str, good: bool, detail: String) {
        let seconds = self.since.elapsed().as_secs_f64();
        self.since = WallClock::now();
        if self.format == Format::Text {
            let word = if good { "ok" } else { "FAILED" };
            self.lines.push_back(format!("{word:<6} {what:<8} {seconds:5.1} s  {detail}"));
        }
        self.found.push(Found { what, good, detail, seconds });
    }

    /// The answer to a request for a name.
    pub(super) fn take_reply(&mut self, number: u64, found: Result<PathRecord, ClientStatus>) {
        let Step::Names(asked) = &mut self.step else { return };
        let Some((from, to)) = asked.expected.get(number as usize) else { return };
        asked.answered += 1;
        let is_right = found.is_ok_and(|path| path.slid == *from && to.contains(&path.dlid));
        asked.wrong += usize::from(!is_right);
    }

    /// Goes on; returns whether there was anything.
    pub(super) fn work(&mut self, place: Place<'_>) -> Result<bool, Failure> {
        if !self.has_begun || self.ended.is_some() {
            return Ok(false);
        }
        let next = match &mut self.step {
            Step::Routes => {
                let (good, detail) = routes(&self.fabric, &self.engines, place.sim)?;
                self.tell("routes", good, detail);
                Some(Step::Names(Asked::default()))
            }
            Step::Names(asked) if !asked.has_begun => {
                self.ask_names(place);
                return Ok(true);
            }
            Step::Names(Asked { expected, answered, wrong, .. }) => {
                if *answered < expected.len() {
                    return Ok(false);
                }
                let (count, wrong) = (expected.len(), *wrong);
                let detail = format!("{count} names resolved by IB ACM, {wrong} wrong");
                self.tell("names", wrong == 0, detail);
                Some(match Ways::start(place.sim)? {
                    Some(ways) => Step::Ways(Box::new(ways)),
                    None => Step::Disk(Disk::new(place.pair.as_ref(), place.sim.now())),
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
            Step::Disk(disk) => match place.pair {
                None => {
                    if let Some(why) = self.no_device.take() {
                        self.tell("device", false, why);
                    }
                    Some(Step::End)
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
                if let Some(record) = place.record {
                    let counted = record.finish(place.sim, place.hosts)?;
                    let read = record.read_back()?;
                    let good = counted.captured + counted.overwritten == counted.noted
                        && read == counted.captured
                        && read > 0;
                    let detail = format!(
                        "{} packets of its queue pairs: {read} read back, {} overwritten",
                        counted.noted, counted.overwritten
                    );
                    self.tell("trace", good, detail);
                }
                *place.record = None;
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

    /// Has every host ask for another one by its name.
    fn ask_names(&mut self, place: Place<'_>) {
        let Place { sim, hosts, .. } = place;
        let ports: Vec<PortId> = hosts.ports().collect();
        let far = ports.len() / 2;
        let (mut expected, mut wanted) = (Vec::new(), Vec::new());
        for (at, &port) in ports.iter().enumerate() {
            let other = ports[(at + far.max(1)) % ports.len()];
            let name = Address::name(sim.node_name(sim.place(other).0));
            let to = name.unwrap_or_else(|_| Address::Gid(sim.link_port(other).gid()));
            // Both ports of a node have its name.
            let node = sim.place(other).0;
            let namesakes = ports.iter().filter(|&&port| sim.place(port).0 == node);
            let lids = namesakes.map(|&port| sim.link_port(port).lid).collect();
            expected.push((sim.link_port(port).lid, lids));
            wanted.push((port, destination(&to)));
        }
        self.step = Step::Names(Asked { has_begun: true, expected, ..Asked::default() });
        for (number, (port, entry)) in (0..).zip(wanted) {
            if let Some(message) = hosts.ask(sim, port, number, vec![entry]) {
                hosts.answered(ib_net::hosts::Reply { port, number, message });
            }
        }
    }

    fn end(&mut self) {
        let good = self.found.iter().all(|found| found.good);
        let seconds = self.started.elapsed().as_secs_f64();
        self.lines.push_back(match self.format {
            Format::Text => {
                let word = if good { "all is well" } else { "something is wrong" };
                format!("{word}, after {seconds:.1} s")
            }
            Format::Json => {
                let report = Report { good, checks: &self.found, seconds };
                serde_json::to_string(&report).expect("it has nothing that JSON has not")
            }
        });
        self.ended = Some(Verdict::good_if(good));
    }
}

/// Compares the tables that switches have with those that the engine makes, and checks them.
fn routes(fabric: &Fabric, engines: &EngineList, sim: &Sim) -> Result<(bool, String), Failure> {
    let tables = Tables::of(sim, fabric);
    let mut known = fabric.clone();
    tables.set_lids(&mut known)?;
    let options = SubnetOptions { sm_port: None, lids: LidOptions::default() };
    let subnet = Subnet::discover(&known, &options).map_err(Failure::unusable)?;
    let outcome = engines.route(&subnet, &RoutingOptions::default()).map_err(Failure::unusable)?;
    let lfts = tables.lfts(&subnet);
    let layers: &Layers = &outcome.routing.layers;
    let CheckReport { reach, credit, .. } = check(&subnet, &lfts, layers);
    let differ =
        subnet.switch_ids().filter(|&id| lfts.table(id) != outcome.routing.lfts.table(id)).count();
    let cut_off = subnet.cut_off().len();
    let good = differ == 0 && reach.unreachable == 0 && credit.loops == 0 && cut_off == 0;
    let mut detail = format!(
        "{} for {} LIDs: {} pairs not reached, {} credit loops, {differ} of {} tables are others",
        outcome.routing.engine,
        reach.lids,
        reach.unreachable,
        credit.loops,
        lfts.switches()
    );
    if cut_off > 0 {
        detail.push_str(&format!("; {cut_off} nodes are cut off"));
    }
    Ok((good, detail))
}

impl Ways {
    /// Starts to trace ways between hosts, from the port of the manager; nothing where there are no two hosts.
    fn start(sim: &mut Sim) -> Result<Option<Self>, Failure> {
        let Some(own) = sim.first_end_port() else { return Ok(None) };
        let hosts = sim.node_ids().filter(|&node| !sim.is_switch(node));
        let ports = hosts.filter_map(|node| sim.end_port(node));
        let lids: Vec<u16> =
            ports.map(|port| sim.link_port(port).lid).filter(|&lid| lid != 0).collect();
        if lids.len() < 2 {
            return Ok(None);
        }
        let client = sim.attach(own, ClientOptions::default()).map_err(Failure::unusable)?;
        let mut tracer = Tracer::new(&TracerConfig::default(), sim.link_port(own));
        let own = sim.link_port(own).lid;
        let (mut asked, mut can_be_validated) = (0, 0);
        for number in 0..WAYS {
            // All hosts are among them before one is again.
            let from = number * 7 % lids.len();
            let to = (from + 1 + number * 13 % (lids.len() - 1)) % lids.len();
            // Nothing comes in where the questions come from.
            can_be_validated += usize::from(lids[to] != own);
            let [from, to] = [from, to].map(|at| Target::Lid(lids[at]));
            tracer.start(Some(from), to).map_err(Failure::unusable)?;
            asked += 1;
        }
        let (good, validated, traced, first_bad) = (0, 0, 0, None);
        let ways =
            Self { client, tracer, asked, good, validated, can_be_validated, first_bad, traced };
        Ok(Some(ways))
    }

    /// Goes on; returns whether all are traced.
    fn work(&mut self, sim: &mut Sim) -> bool {
        let now = sim.now();
        while let Some(incoming) = sim.receive(self.client) {
            self.tracer.handle(now, &incoming);
        }
        self.tracer.handle_timeout(now);
        while let Some(datagram) = self.tracer.poll_transmit(now) {
            sim.submit(self.client, &datagram);
        }
        while let Some((_, found)) = self.tracer.poll_event() {
            self.traced += 1;
            match found {
                Ok(trace) if trace.is_good() => {
                    self.good += 1;
                    self.validated += usize::from(trace.is_validated());
                }
                Ok(trace) => {
                    self.first_bad.get_or_insert_with(|| format!("{:?}", trace.stop));
                }
                Err(error) => {
                    self.first_bad.get_or_insert_with(|| error.to_string());
                }
            }
        }
        self.traced == self.asked
    }

    fn finish(&self, sim: &mut Sim) -> (bool, String) {
        sim.detach(self.client);
        let Self { good, asked, validated, .. } = self;
        let mut detail = format!("{good} of {asked} lead there, {validated} confirmed by agents");
        if let Some(bad) = &self.first_bad {
            detail = format!("{detail}; the first other one: {bad}");
        }
        (self.good == self.asked && self.validated >= self.can_be_validated, detail)
    }
}

impl Disk {
    /// Starts with all of the device.
    fn new(pair: Option<&BlockPair>, now: Instant) -> Self {
        let size = pair.and_then(BlockPair::geometry).map_or(0, |geometry| geometry.size);
        let [writes, reads] = [Task::Write, Task::Compare].map(|task| Pass::new(task, 0..size));
        Self { content: Content::Pattern(0), writes, reads, cut: Cut::No, got_on: (0, now) }
    }

    /// Writes or reads on, and cuts a link in the middle of it; returns whether there was anything.
    fn work(&mut self, pair: &mut BlockPair, sim: &mut Sim, ends: &[Vec<PortId>; 2]) -> bool {
        let moved = if self.writes.is_over() {
            let size = pair.geometry().map_or(0, |geometry| geometry.size);
            let is_time = self.reads.next() >= size / 4 && matches!(self.cut, Cut::No);
            // At the server: the client's first host has the manager.
            if let [port, _, ..] = ends[1][..]
                && is_time
            {
                self.cut = self.cut(pair, sim, port);
            }
            self.reads.work(pair, &mut self.content)
        } else {
            self.writes.work(pair, &mut self.content)
        };
        let got_on = [&self.writes, &self.reads].map(|pass| pass.done + pass.errors);
        let got_on = got_on.iter().sum();
        if got_on > self.got_on.0 {
            self.got_on = (got_on, sim.now());
        }
        moved
    }

    /// Cuts the link of a port, unless the other path is not there.
    fn cut(&self, pair: &BlockPair, sim: &mut Sim, port: PortId) -> Cut {
        let client = pair.client();
        let is_connected = |&path: &_| client.path_state(path) == Some(PathState::Connected);
        let connected = client.paths().filter(is_connected).count();
        if connected < 2 {
            return Cut::Not(format!("{connected} of the paths were connected"));
        }
        match command(sim, "unlink", port) {
            Ok(()) => Cut::Yes { port, under_way: self.reads.under_way() },
            Err(why) => Cut::Not(why),
        }
    }

    const fn is_over(&self) -> bool {
        self.writes.is_over() && self.reads.is_over()
    }

    /// Returns when it has waited for long enough.
    fn deadline(&self) -> Instant {
        self.got_on.1 + PATIENCE
    }

    fn finish(&self, pair: &BlockPair, sim: &mut Sim) -> (bool, String) {
        let client = pair.client();
        let stats = client.paths().filter_map(|path| client.stats(path));
        let again: u64 = stats.map(|stats| stats.failed_over).sum();
        let size = pair.geometry().map_or(0, |geometry| geometry.size);
        let mut detail = format!(
            "{} MiB written and read over {}: {} wrong, {} errors",
            size >> 20,
            if pair.ports()[0].len() == 1 { "a path" } else { "2 paths" },
            self.reads.wrong,
            self.writes.errors + self.reads.errors
        );
        let mut good = self.reads.wrong + self.writes.errors + self.reads.errors == 0;
        match &self.cut {
            Cut::No => {}
            Cut::Yes { port, under_way } => {
                // Somebody may have done it.
                command(sim, "relink", *port).ok();
                detail.push_str(&format!(
                    "; a link was cut, and {again} requests went over the other"
                ));
                // Of two there was one on each path.
                good &= again > 0 || *under_way < 2;
            }
            Cut::Not(why) => {
                detail.push_str(&format!("; no link was cut: {why}"));
                good = false;
            }
        }
        if !self.is_over() {
            let (seconds, mib) = (PATIENCE.as_secs(), (self.writes.done + self.reads.done) >> 20);
            detail.push_str(&format!("; nothing came for {seconds} s, after {mib} MiB of it"));
            good = false;
        }
        (good, detail)
    }
}

/// Has a command of the console done to a port; fails with what it says.
fn command(sim: &mut Sim, word: &str, port: PortId) -> Result<(), String> {
    let (node, number) = sim.place(port);
    let name = sim.node_name(node).replace('"', "\"\"");
    let command = format!("{word} \"{name}\"[{number}]").parse::<ib_sim::Command>();
    let command = command.map_err(|error| error.to_string())?;
    sim.run(&command).map_err(|error| error.to_string())
}
