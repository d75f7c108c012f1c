//! The client: traces ways, one or many at a time.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;
use ib_link::{Datagram, Incoming, LinkPort};
use ib_mad::{
    Failure, Message, OnLoss, Request, Requester, RequesterConfig, RequesterCounters, Timing,
};
use ib_types::{Gid, Instant, Lid, ServiceLevel};
use ib_wire::mad::TransactionId;
use ib_wire::mad::sa::PathRecord;
use ib_wire::mad::sm::MulticastForwardingBlock;

use crate::atlas::{Atlas, Way};
use crate::census::{self, Censuses, Inquiry};
use crate::fact::{Fact, Via};
use crate::facts::{self, Facts, Part};
use crate::observation::Observations;
use crate::path::NodeNumber;
use crate::probes::{self, Launch, Probes, Question};
use crate::trace::{Target, Trace, TraceError, Verdict};
use crate::tree::Tree;
use crate::trial::{self, Sample, Trials};

mod advance;
mod claims;
mod evidence;
mod judge;

/// Configuration of a client.
#[derive(Clone, Debug)]
pub struct TracerConfig {
    /// The source of facts.
    pub via: Via,
    /// True if requests are sent to agents.
    pub agents: bool,
    /// True if the counters of each switch on the path have to prove the port for the destination's own LID.
    /// That takes some hundred requests per hop, so it is meant for single paths.
    pub exact: bool,
    /// Timeout and number of retries of requests.
    pub timing: Timing,
    /// Maximum probability of random loss at which missing responses are reported as a fault.
    pub error_probability: f64,
    /// The service level of requests to agents.
    pub sl: ServiceLevel,
    /// True if requests to agents have a global route header.
    pub grh: bool,
    /// The M_Key of SMPs to protected nodes; 0 if there is none.
    pub m_key: u64,
    /// Configuration of the MAD requester.
    pub requester: RequesterConfig,
}

impl Default for TracerConfig {
    fn default() -> Self {
        Self {
            via: Via::default(),
            agents: true,
            exact: false,
            timing: Timing::default(),
            error_probability: 1e-6,
            sl: ServiceLevel::default(),
            grh: false,
            m_key: 0,
            requester: RequesterConfig::default(),
        }
    }
}

/// The last multicast LID; the permissive one is behind it.
const LAST_MULTICAST: u16 = 0xfffe;

/// A trace of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub u64);

/// Counters of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracerCounters {
    /// Requests that had no answer after all attempts.
    pub timeouts: u64,
    /// LIDs whose agent was probed.
    pub asked: u64,
    /// Traffic counters.
    pub traffic: RequesterCounters,
}

/// Traces paths from the own port or from other ports, with a bounded number of outstanding requests.
///
/// The owner passes received datagrams to [`Tracer::handle`], and calls [`Tracer::handle_timeout`] at the
/// time that [`Tracer::poll_timeout`] returns. After either call it polls [`Tracer::poll_transmit`] and
/// [`Tracer::poll_event`] until both return `None`. Facts of one path are reused for the next.
#[derive(Debug)]
pub struct Tracer {
    own: LinkPort,
    via: Via,
    agents: bool,
    exact: bool,
    timing: Timing,
    /// True if a response came only after a request was repeated: then a missing response is no proof.
    lossy: bool,
    requester: Requester,
    asked: BTreeMap<TransactionId, Asked>,
    /// Reports of the nodes, over directed routes.
    atlas: Atlas,
    facts: Facts,
    /// The SA records, which are claims.
    claims: Atlas,
    claim_facts: Facts,
    observations: Observations,
    trials: Trials,
    /// Proven verdicts, by link, LID (if the verdict depends on it), and whether the hop is the last one.
    verdicts: HashMap<(NodeNumber, u8, Option<u16>, bool), Verdict>,
    /// The start ports of paths, by LID.
    starts: HashMap<u16, (NodeNumber, u8)>,
    /// True if a response to a probe by LID has arrived at the own port.
    is_heard: bool,
    probes: Probes,
    censuses: Censuses,
    /// Requests that are held back until the running census ends.
    held: Vec<(Asked, Request)>,
    /// The combined-route probe that is counted for a link, by the port before the link.
    counted: BTreeMap<(NodeNumber, u8), Launch>,
    jobs: BTreeMap<TraceId, Job>,
    next: u64,
    /// Traces whose step has completed.
    ready: VecDeque<TraceId>,
    /// Traces that wait for a fact, and traces that wait for the probes of a LID.
    facts_wanted: BTreeMap<(Source, Fact), Vec<TraceId>>,
    probes_wanted: BTreeMap<u16, Vec<TraceId>>,
    launches_wanted: BTreeMap<Launch, Vec<TraceId>>,
    events: VecDeque<(TraceId, Result<Trace, TraceError>)>,
    trees: BTreeMap<TraceId, TreeJob>,
    tree_events: VecDeque<(TraceId, Result<Tree, TraceError>)>,
    timeouts: u64,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Fact(Source, Fact, Part),
    Probe(u16, Question),
    Launch(Launch),
    Trial(Launch, Sample),
    Census(Launch, Inquiry),
    /// The LID behind a GID; true if the path starts there.
    Path(TraceId, bool),
}

/// A trace in flight.
#[derive(Debug)]
struct Job {
    from: Option<Target>,
    to: Target,
    /// The LIDs of both, once they are known.
    from_lid: Option<u16>,
    to_lid: Option<u16>,
    started: Option<Instant>,
    /// True if the trace reads tables and links along the path without judging them.
    is_survey: bool,
}

/// A tree in flight.
#[derive(Debug)]
struct TreeJob {
    mlid: u16,
    /// Number of steps that the tree waits for.
    awaits: usize,
}

/// The source of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Nodes,
    Administration,
}

/// A step that a trace needs to continue.
enum Step {
    /// A fact from the nodes.
    Fact(Fact),
    /// An SA record.
    Claim(Fact),
    /// Probes of a LID; the path to it from the own port.
    Probe(u16, Box<Way>),
    /// The end of the probes of a LID.
    Waits(u16),
    Launch(Launch),
    Trial(Launch),
    Census(Launch),
    /// Count a combined-route probe for a link (by the port before it), unless another one is counted.
    Count((NodeNumber, u8), Launch),
    Done(Box<Result<Trace, TraceError>>),
    Surveyed,
}

impl Tracer {
    /// Returns a client at a port.
    #[must_use]
    pub fn new(config: &TracerConfig, own: LinkPort) -> Self {
        let timing = config.timing;
        Self {
            via: config.via,
            agents: config.agents,
            exact: config.exact,
            timing,
            lossy: false,
            requester: Requester::new(config.requester),
            asked: BTreeMap::new(),
            atlas: Atlas::default(),
            facts: Facts::new(Via::DirectedRoutes, own, timing, config.m_key),
            claims: Atlas::default(),
            claim_facts: Facts::new(Via::Administration, own, timing, config.m_key),
            observations: Observations::default(),
            trials: Trials::new(config.error_probability),
            verdicts: HashMap::new(),
            starts: HashMap::new(),
            is_heard: false,
            probes: Probes::new(timing, (config.sl, config.grh), config.m_key, own.gid()),
            censuses: Censuses::default(),
            held: Vec::new(),
            counted: BTreeMap::new(),
            own,
            jobs: BTreeMap::new(),
            next: 0,
            ready: VecDeque::new(),
            facts_wanted: BTreeMap::new(),
            probes_wanted: BTreeMap::new(),
            launches_wanted: BTreeMap::new(),
            events: VecDeque::new(),
            trees: BTreeMap::new(),
            tree_events: VecDeque::new(),
            timeouts: 0,
        }
    }

    /// Starts to trace a path; from the own port if `from` is `None`. The trace ends with one event.
    ///
    /// # Errors
    /// Fails on a LID that is not unicast.
    pub fn start(&mut self, from: Option<Target>, to: Target) -> Result<TraceId, TraceError> {
        self.begin(from, to, false)
    }

    /// Reads the tables and links along a path without judging them. A survey of all paths before they are
    /// traced finds duplicate LIDs and GUIDs. The survey ends without an event.
    ///
    /// # Errors
    /// Fails on a LID that is not unicast.
    pub fn survey(&mut self, from: Option<Target>, to: Target) -> Result<TraceId, TraceError> {
        self.begin(from, to, true)
    }

    fn begin(
        &mut self,
        from: Option<Target>,
        to: Target,
        is_survey: bool,
    ) -> Result<TraceId, TraceError> {
        for target in from.iter().chain([&to]) {
            if let &Target::Lid(lid) = target
                && Lid::unicast(lid.into()).is_err()
            {
                return Err(TraceError::NotUnicast { lid });
            }
        }
        let id = TraceId(self.next);
        self.next += 1;
        let lid = |target| match target {
            Target::Lid(lid) => Some(lid),
            Target::Gid(_) => None,
        };
        let job = Job {
            from,
            to,
            from_lid: from.and_then(lid),
            to_lid: lid(to),
            started: None,
            is_survey,
        };
        for (target, starts) in [(from, true), (Some(to), false)] {
            if let Some(Target::Gid(gid)) = target {
                self.ask_path(id, gid, starts);
            }
        }
        self.jobs.insert(id, job);
        self.ready.push_back(id);
        Ok(id)
    }

    /// Starts to trace the tree of a multicast LID from the own port. The trace ends with one event of
    /// [`Tracer::poll_tree`].
    ///
    /// # Errors
    /// Fails on a LID that is not multicast.
    pub fn start_tree(&mut self, mlid: u16) -> Result<TraceId, TraceError> {
        if !(MulticastForwardingBlock::FIRST_LID..=LAST_MULTICAST).contains(&mlid) {
            return Err(TraceError::NotMulticast { lid: mlid });
        }
        let id = TraceId(self.next);
        self.next += 1;
        self.trees.insert(id, TreeJob { mlid, awaits: 0 });
        self.ready.push_back(id);
        Ok(id)
    }

    /// Returns the next tree that was traced.
    pub fn poll_tree(&mut self) -> Option<(TraceId, Result<Tree, TraceError>)> {
        self.tree_events.pop_front()
    }

    /// Processes a received datagram. Returns true if it was for the client.
    pub fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        let taken = self.requester.handle(now, incoming);
        self.collect(now);
        taken
    }

    /// Runs the timers that have expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.requester.handle_timeout(now);
        self.collect(now);
    }

    /// Returns the next datagram to be sent.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        self.advance(now);
        self.requester.poll_transmit(now)
    }

    /// Returns the next trace that has ended.
    pub fn poll_event(&mut self) -> Option<(TraceId, Result<Trace, TraceError>)> {
        self.events.pop_front()
    }

    /// Returns the time at which [`Tracer::handle_timeout`] has to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.requester.poll_timeout()
    }

    /// Returns the number of traces that have not ended.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.jobs.len() + self.trees.len()
    }

    /// Returns the facts of the fabric that the nodes have reported.
    #[must_use]
    pub const fn atlas(&self) -> &Atlas {
        &self.atlas
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> TracerCounters {
        TracerCounters {
            timeouts: self.timeouts,
            asked: self.probes.asked() as u64,
            traffic: self.requester.counters(),
        }
    }

    fn ask_path(&mut self, id: TraceId, gid: Gid, starts: bool) {
        let wanted =
            PathRecord { dgid: gid, sgid: self.own.gid(), numb_path: 1, ..PathRecord::zeroed() };
        let request = facts::ask(&self.own, &wanted, &[2, 3, 12]).with_timing(self.timing);
        self.send(Asked::Path(id, starts), request);
    }

    fn send(&mut self, asked: Asked, request: Request) {
        if self.censuses.is_under_way() && !matches!(asked, Asked::Census(..)) {
            self.held.push((asked, request));
            return;
        }
        // Losses that a simulator reports are retried as on a wire.
        let request = Request { on_loss: OnLoss::Retry, ..request };
        let id = self.requester.start(request).expect("Get is answered");
        self.asked.insert(id, asked);
    }

    /// Processes completed requests.
    fn collect(&mut self, now: Instant) {
        while let Some(completion) = self.requester.poll_event() {
            let Some(asked) = self.asked.remove(&completion.transaction_id) else { continue };
            // Packets of bursts and trials are expected to get lost.
            let is_burst = matches!(asked, Asked::Census(_, Inquiry::Burst) | Asked::Trial(..));
            self.timeouts += u64::from(completion.result.is_err() && !is_burst);
            // The SA may only be slow to respond.
            let is_told =
                matches!(asked, Asked::Fact(Source::Administration, ..) | Asked::Path(..));
            self.lossy |= completion.result.is_ok() && completion.attempts > 1 && !is_told;
            match asked {
                Asked::Fact(source, fact, part) => {
                    let ended = (completion.result, self.lossy);
                    let (facts, atlas) = match source {
                        Source::Nodes => (&mut self.facts, &mut self.atlas),
                        Source::Administration => (&mut self.claim_facts, &mut self.claims),
                    };
                    match facts.handle((fact, part), ended, atlas) {
                        facts::Progress::Waits(more) => self.send_parts((source, fact), more),
                        facts::Progress::Done => {
                            let waiting = self.facts_wanted.remove(&(source, fact));
                            self.ready.extend(waiting.unwrap_or_default());
                        }
                    }
                }
                Asked::Probe(lid, question) => {
                    self.is_heard |= completion.result.is_ok();
                    match self.probes.handle(
                        (lid, question),
                        (completion.result, self.lossy),
                        &self.atlas,
                        &mut self.observations,
                    ) {
                        probes::Progress::Asks(question, request) => {
                            self.send(Asked::Probe(lid, question), *request);
                        }
                        probes::Progress::Done => {
                            self.note_probe(lid);
                            self.ready.extend(self.probes_wanted.remove(&lid).unwrap_or_default());
                        }
                    }
                }
                Asked::Launch(launch) => {
                    let ended = (completion.result, completion.attempts, self.lossy);
                    let (atlas, observations) = (&self.atlas, &mut self.observations);
                    match self.probes.handle_launch(launch, ended, atlas, observations) {
                        Some(request) => self.send(Asked::Launch(launch), request),
                        None => self.end_launch(launch),
                    }
                }
                Asked::Trial(launch, sample) => {
                    let answer = completion.result.as_ref().ok().filter(|it| it.status().is_ok());
                    let answer = answer.map(Message::mad);
                    if let (Sample::Launch, Some(info)) =
                        (sample, answer.and_then(ib_wire::mad::Mad::attribute))
                    {
                        self.probes.take_launch(launch, &info, &mut self.observations);
                    }
                    let known = (&self.probes, self.timing);
                    let more = self.trials.handle((launch, sample), answer, &self.atlas, known);
                    self.send_trial(launch, more);
                    if self.trials.get(launch) != Some(trial::Outcome::Running) {
                        self.end_launch(launch);
                    }
                }
                Asked::Census(launch, inquiry) => {
                    let known = (&self.atlas, &self.probes, self.timing);
                    let (what, ended) =
                        ((launch, inquiry), (completion.result, completion.attempts));
                    match self.censuses.handle(what, ended, known) {
                        census::Progress::Waits(requests) => self.send_census(launch, requests),
                        census::Progress::Done => {
                            self.note_census(launch);
                            self.end_launch(launch);
                            for (asked, request) in std::mem::take(&mut self.held) {
                                self.send(asked, request);
                            }
                        }
                    }
                }
                Asked::Path(id, starts) => self.take_path(now, id, starts, completion.result),
            }
        }
        self.advance(now);
    }

    fn send_parts(&mut self, (source, fact): (Source, Fact), parts: Vec<(Part, Request)>) {
        for (part, request) in parts {
            self.send(Asked::Fact(source, fact, part), request);
        }
    }

    fn send_trial(&mut self, launch: Launch, requests: Vec<(Sample, Request)>) {
        for (sample, request) in requests {
            self.send(Asked::Trial(launch, sample), request);
        }
    }

    /// Starts the next census if no request is outstanding, because the census would count it, too.
    fn take_censuses(&mut self) {
        while self.asked.is_empty() {
            let Some((launch, requests)) = self.censuses.poll(&self.atlas, self.timing) else {
                break;
            };
            if requests.is_empty() {
                self.ready.extend(self.launches_wanted.remove(&launch).unwrap_or_default());
            }
            self.send_census(launch, requests);
        }
    }

    fn send_census(&mut self, launch: Launch, requests: Vec<(Inquiry, Request)>) {
        for (inquiry, request) in requests {
            self.send(Asked::Census(launch, inquiry), request);
        }
    }

    /// Makes a trace wait for a fact.
    fn want(&mut self, id: TraceId, source: Source, fact: Fact) {
        self.facts_wanted.entry((source, fact)).or_default().push(id);
        let parts = match source {
            Source::Nodes => self.facts.ask(fact, &self.atlas),
            Source::Administration => self.claim_facts.ask(fact, &self.claims),
        };
        self.send_parts((source, fact), parts);
    }

    /// Stores the LID behind a GID.
    fn take_path(
        &mut self,
        now: Instant,
        id: TraceId,
        starts: bool,
        result: Result<Message, Failure>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let end = if starts { job.from } else { Some(job.to) };
        let Some(Target::Gid(gid)) = end else { return };
        let lid = match result {
            Ok(message) if message.status().is_ok() => {
                let path: PathRecord = message.mad().attribute().expect("it was asked for");
                Lid::unicast(path.dlid.into()).map(Lid::get).map_err(|error| error.to_string())
            }
            Ok(message) => {
                Err(format!("subnet administration says {}", facts::said(message.status())))
            }
            Err(failure) => Err(failure.to_string()),
        };
        match lid {
            Ok(lid) => {
                *(if starts { &mut job.from_lid } else { &mut job.to_lid }) = Some(lid);
                self.ready.push_back(id);
            }
            Err(why) => self.end(now, id, Err(TraceError::NoPath { gid, why })),
        }
    }
}

/// Returns the port at the end of a path.
fn start_of(own: (NodeNumber, u8), way: &Way) -> (NodeNumber, u8) {
    way.hops.last().map_or(own, |hop| (hop.node, hop.enters))
}
