//! The client: traces ways, one or many at a time.

use std::collections::{BTreeMap, HashMap, VecDeque};

use ib_link::{Datagram, Incoming, LinkPort};
use ib_mad::{
    Failure, Message, OnLoss, Request, Requester, RequesterConfig, RequesterCounters, Timing,
};
use ib_types::{Gid, Instant, Lid, ServiceLevel};
use ib_wire::mad::TransactionId;
use ib_wire::mad::sa::PathRecord;
use ib_wire::mad::sm::MulticastForwardingBlock;

use crate::atlas::{Atlas, NodeNumber, Way};
use crate::census::{self, Censuses, Inquiry};
use crate::facts::{self, Fact, Facts, Part};
use crate::observation::Observations;
use crate::probes::{self, Launch, Probes, Question};
use crate::trace::{Target, Trace, TraceError, Verdict};
use crate::tree::Tree;
use crate::trial::{self, Sample, Trials};

mod advance;
mod claims;
mod evidence;
mod judge;

/// Where a client learns of the fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// From the nodes themselves, over directed routes.
    #[default]
    DirectedRoutes,
    /// From subnet administration: records of links, ports and tables. So the fabric is
    /// compared with what its manager believes.
    Administration,
}

/// How a client works.
#[derive(Clone, Debug)]
pub struct TracerConfig {
    /// Where it learns of the fabric.
    pub via: Via,
    /// Whether agents are asked.
    pub agents: bool,
    /// Whether each switch of a way is also proved to send what goes to the destination's own LID by the
    /// port of its table, by what its ports count. It takes some hundred requests for a hop, so it is
    /// meant for single ways.
    pub exact: bool,
    /// How long and how often answers are awaited.
    pub timing: Timing,
    /// The probability with which silence may be chance where it is taken for a fault.
    pub error_probability: f64,
    /// The service level of requests to agents.
    pub sl: ServiceLevel,
    /// Whether requests to agents have a global route header.
    pub grh: bool,
    /// The M_Key of subnet management that is not for everybody to ask; 0 for none.
    pub m_key: u64,
    /// How its requests go out.
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

/// What a client has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracerCounters {
    /// Requests that had no answer after all attempts.
    pub timeouts: u64,
    /// LIDs that were asked for an agent.
    pub asked: u64,
    /// What went over the link.
    pub traffic: RequesterCounters,
}

/// Traces ways from the own port or from others, with a bounded number of requests under way.
///
/// Its owner passes on what arrives ([`Tracer::handle`]), calls [`Tracer::handle_timeout`] when
/// [`Tracer::poll_timeout`] says, and after either asks [`Tracer::poll_transmit`] and
/// [`Tracer::poll_event`] until they return nothing. What was learned for one way serves the next one.
#[derive(Debug)]
pub struct Tracer {
    own: LinkPort,
    via: Via,
    agents: bool,
    exact: bool,
    timing: Timing,
    /// Whether an answer came only when a request was repeated: then silence proves nothing.
    lossy: bool,
    requester: Requester,
    asked: BTreeMap<TransactionId, Asked>,
    /// What the nodes report, over directed routes.
    atlas: Atlas,
    facts: Facts,
    /// The records of subnet administration, which are claims.
    claims: Atlas,
    claim_facts: Facts,
    observations: Observations,
    trials: Trials,
    /// Verdicts that are proven: by link, the LID if it matters, and whether the hop is the last one.
    verdicts: HashMap<(NodeNumber, u8, Option<u16>, bool), Verdict>,
    /// Where paths start, by LID.
    starts: HashMap<u16, (NodeNumber, u8)>,
    /// True if a response to a probe by LID has arrived at the own port.
    is_heard: bool,
    probes: Probes,
    censuses: Censuses,
    /// What is to be sent after the census that is under way.
    held: Vec<(Asked, Request)>,
    /// The launch that is counted for a link, by the port before it.
    counted: BTreeMap<(NodeNumber, u8), Launch>,
    jobs: BTreeMap<TraceId, Job>,
    next: u64,
    /// The traces that something was found out for.
    ready: VecDeque<TraceId>,
    /// The traces that wait for a fact, and for a LID to have been asked.
    facts_wanted: BTreeMap<(Source, Fact), Vec<TraceId>>,
    probes_wanted: BTreeMap<u16, Vec<TraceId>>,
    launches_wanted: BTreeMap<Launch, Vec<TraceId>>,
    events: VecDeque<(TraceId, Result<Trace, TraceError>)>,
    trees: BTreeMap<TraceId, TreeJob>,
    tree_events: VecDeque<(TraceId, Result<Tree, TraceError>)>,
    timeouts: u64,
}

/// What a request was for.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Fact(Source, Fact, Part),
    Probe(u16, Question),
    Launch(Launch),
    Trial(Launch, Sample),
    Census(Launch, Inquiry),
    /// The LID behind a GID; whether the way starts there.
    Path(TraceId, bool),
}

/// A trace under way.
#[derive(Debug)]
struct Job {
    from: Option<Target>,
    to: Target,
    /// The LIDs of both, once they are known.
    from_lid: Option<u16>,
    to_lid: Option<u16>,
    started: Option<Instant>,
    /// True if nothing is judged: only tables and links along the path are read.
    is_survey: bool,
}

/// A tree under way.
#[derive(Debug)]
struct TreeJob {
    mlid: u16,
    /// How much it waits for.
    awaits: usize,
}

/// The source of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Nodes,
    Administration,
}

/// What a trace needs to go on.
enum Step {
    /// A fact from the nodes.
    Fact(Fact),
    /// A record of subnet administration.
    Claim(Fact),
    /// Probes of a LID; the path to it from the own port.
    Probe(u16, Box<Way>),
    /// The end of the probes of a LID.
    Waits(u16),
    Launch(Launch),
    Trial(Launch),
    Census(Launch),
    /// A launch is to be counted for a link, by the port before it, unless another one is.
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

    /// Starts to trace a way; without a start, from the own port. It ends with one event.
    ///
    /// # Errors
    /// Fails on a LID that is not unicast.
    pub fn start(&mut self, from: Option<Target>, to: Target) -> Result<TraceId, TraceError> {
        self.begin(from, to, false)
    }

    /// Reads the tables and links along a path and judges nothing. A survey of all paths before they are
    /// traced finds LIDs and GUIDs that two nodes report. It ends without an event.
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

    /// Starts to trace the tree of a multicast LID from the own port. It ends with one event of
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

    /// Takes what came out of the link. Returns true when it was for the client.
    pub fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        let taken = self.requester.handle(now, incoming);
        self.collect(now);
        taken
    }

    /// Does what is due by now.
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

    /// Returns when [`Tracer::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.requester.poll_timeout()
    }

    /// Returns the number of traces that have not ended.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.jobs.len() + self.trees.len()
    }

    /// Returns what the nodes have reported of the fabric.
    #[must_use]
    pub const fn atlas(&self) -> &Atlas {
        &self.atlas
    }

    /// Returns what was done.
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
        // A simulator that tells of losses is no reason to give up earlier than on a wire.
        let request = Request { on_loss: OnLoss::Retry, ..request };
        let id = self.requester.start(request).expect("Get is answered");
        self.asked.insert(id, asked);
    }

    /// Takes the ends of requests.
    fn collect(&mut self, now: Instant) {
        while let Some(completion) = self.requester.poll_event() {
            let Some(asked) = self.asked.remove(&completion.transaction_id) else { continue };
            // What is sent in bursts is expected to get lost.
            let is_burst = matches!(asked, Asked::Census(_, Inquiry::Burst) | Asked::Trial(..));
            self.timeouts += u64::from(completion.result.is_err() && !is_burst);
            // Subnet administration may only be slow.
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

    /// Starts the next census when no request is outstanding: it would be counted, too.
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

    /// Has a trace wait for a fact.
    fn want(&mut self, id: TraceId, source: Source, fact: Fact) {
        self.facts_wanted.entry((source, fact)).or_default().push(id);
        let parts = match source {
            Source::Nodes => self.facts.ask(fact, &self.atlas),
            Source::Administration => self.claim_facts.ask(fact, &self.claims),
        };
        self.send_parts((source, fact), parts);
    }

    /// Takes the LID behind a GID.
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

/// Returns the port that a way leads to.
fn start_of(own: (NodeNumber, u8), way: &Way) -> (NodeNumber, u8) {
    way.hops.last().map_or(own, |hop| (hop.node, hop.enters))
}
