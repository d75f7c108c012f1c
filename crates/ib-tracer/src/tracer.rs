//! The client: traces one path, or many paths at the same time.

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

use crate::census::{self, CensusRequest, Censuses};
use crate::fabric_model::{FabricModel, Path};
use crate::fabric_model::{Fact, FactSource};
use crate::facts::{self, Facts, Part};
use crate::observation::Observations;
use crate::path::NodeNumber;
use crate::probes::{self, CombinedRoute, LidRequest, Probes};
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
    /// The source from which the client queries facts.
    pub via: FactSource,
    /// True if the client probes paths. If false, it sends no probes to agents or SMAs, and no hop is proven good.
    pub agents: bool,
    /// True if the client also reads the counters of each switch on the path, to check out of which port the switch
    /// sends packets to the destination's LID. This check takes some hundred requests per hop, so it is meant for
    /// single paths.
    pub exact: bool,
    /// Timeout and number of retries of requests.
    pub timing: Timing,
    /// Missing responses are reported as a fault if the probability that random loss caused them is at most this value.
    pub error_probability: f64,
    /// The service level of requests to agents.
    pub sl: ServiceLevel,
    /// True if requests to agents have a global route header.
    pub grh: bool,
    /// The M_Key in SMPs, for nodes that are protected by it; 0 if there is none.
    pub m_key: u64,
    /// Configuration of the MAD requester.
    pub requester: RequesterConfig,
}

impl Default for TracerConfig {
    fn default() -> Self {
        Self {
            via: FactSource::default(),
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

/// The highest multicast LID. The next number, 0xffff, is the permissive LID.
const LAST_MULTICAST: u16 = 0xfffe;

/// Identifies a trace of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub u64);

/// Counters of a [`Tracer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracerCounters {
    /// Number of requests without a response after all attempts.
    pub timeouts: u64,
    /// Number of LIDs that were probed.
    pub probed_lids: u64,
    /// Counters of the MAD requester.
    pub traffic: RequesterCounters,
}

/// Client that traces paths from the local port or from other ports. The number of outstanding requests is bounded.
///
/// The owner passes received datagrams to [`Tracer::handle`], and calls [`Tracer::handle_timeout`] at the
/// time that [`Tracer::poll_timeout`] returns. After either call it polls [`Tracer::poll_transmit`] and
/// [`Tracer::poll_event`] until both return `None`. Facts that were queried for one path are reused for other
/// paths.
#[derive(Debug)]
pub struct Tracer {
    own: LinkPort,
    via: FactSource,
    agents: bool,
    exact: bool,
    timing: Timing,
    /// True if a request was answered only after a retry. Such a fabric loses packets, so a single missing response
    /// proves no fault.
    lossy: bool,
    requester: Requester,
    purposes: BTreeMap<TransactionId, RequestPurpose>,
    /// Model of the fabric from the reports of the nodes, over directed routes.
    model: FabricModel,
    facts: Facts,
    /// Model of the fabric from the SA records, which are only claims.
    claims: FabricModel,
    claim_facts: Facts,
    observations: Observations,
    trials: Trials,
    /// Verdicts on hops. The key consists of the node and port at the start of the hop, and the destination LID if the
    /// verdict depends on it. Its last part is true for the last hop of a path.
    verdicts: HashMap<(NodeNumber, u8, Option<u16>, bool), Verdict>,
    /// The start ports of paths, by LID.
    starts: HashMap<u16, (NodeNumber, u8)>,
    /// True if the local port has received a response to a LID-routed probe.
    has_probe_response: bool,
    probes: Probes,
    censuses: Censuses,
    /// Requests that are sent when the running port census ends.
    held: Vec<(RequestPurpose, Request)>,
    /// By the port at the start of a link: the combined-route probe that tests the link for all paths over it. It is
    /// used if the table does not route the LID of the node at the far end over the link.
    counted: BTreeMap<(NodeNumber, u8), CombinedRoute>,
    jobs: BTreeMap<TraceId, Job>,
    next: u64,
    /// Traces that can continue, because they wait for no fact and no probe.
    ready: VecDeque<TraceId>,
    /// By fact and its source: the traces that wait for the fact.
    facts_wanted: BTreeMap<(Source, Fact), Vec<TraceId>>,
    /// By LID: the traces that wait for the probes of the LID.
    probes_wanted: BTreeMap<u16, Vec<TraceId>>,
    combined_routes_wanted: BTreeMap<CombinedRoute, Vec<TraceId>>,
    events: VecDeque<(TraceId, Result<Trace, TraceError>)>,
    trees: BTreeMap<TraceId, TreeJob>,
    tree_events: VecDeque<(TraceId, Result<Tree, TraceError>)>,
    timeouts: u64,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug)]
enum RequestPurpose {
    Fact(Source, Fact, Part),
    Probe(u16, LidRequest),
    CombinedRoute(CombinedRoute),
    Trial(CombinedRoute, Sample),
    Census(CombinedRoute, CensusRequest),
    /// Query of the PathRecord of a GID. The flag is true for the start of the path, and false for the destination.
    Path(TraceId, bool),
}

/// A trace or survey that is in progress.
#[derive(Debug)]
struct Job {
    from: Option<Target>,
    to: Target,
    /// LID of the start; `None` for the local port, and until the SA has returned the LID.
    from_lid: Option<u16>,
    /// LID of the destination; `None` until the SA has returned the LID.
    to_lid: Option<u16>,
    started: Option<Instant>,
    /// True for a survey, which reads tables and links without verdicts.
    is_survey: bool,
}

/// A trace of a multicast tree that is in progress.
#[derive(Debug)]
struct TreeJob {
    mlid: u16,
    /// Number of queries, probes, trials and port censuses for which the trace still waits.
    awaits: usize,
}

/// The source from which a fact is queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Nodes,
    SaRecords,
}

/// A step that has to be performed before a trace can continue.
enum Step {
    /// Query a fact from the nodes.
    Fact(Fact),
    /// Query a fact from the SA.
    Claim(Fact),
    /// Probe a LID. The path leads from the local port to the LID.
    Probe(u16, Box<Path>),
    /// Wait until the outstanding probes of a LID have completed.
    Waits(u16),
    CombinedRoute(CombinedRoute),
    Trial(CombinedRoute),
    Census(CombinedRoute),
    /// Store the combined-route probe that tests a link in `Tracer::counted`, unless the link has one already.
    Count((NodeNumber, u8), CombinedRoute),
    Done(Box<Result<Trace, TraceError>>),
    Surveyed,
}

impl Tracer {
    /// Creates a client at the port `own`.
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
            purposes: BTreeMap::new(),
            model: FabricModel::default(),
            facts: Facts::new(FactSource::DirectedRoutes, own, timing, config.m_key),
            claims: FabricModel::default(),
            claim_facts: Facts::new(FactSource::SaRecords, own, timing, config.m_key),
            observations: Observations::default(),
            trials: Trials::new(config.error_probability),
            verdicts: HashMap::new(),
            starts: HashMap::new(),
            has_probe_response: false,
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
            combined_routes_wanted: BTreeMap::new(),
            events: VecDeque::new(),
            trees: BTreeMap::new(),
            tree_events: VecDeque::new(),
            timeouts: 0,
        }
    }

    /// Starts a trace from `from`, or from the local port if `from` is `None`. [`Tracer::poll_event`] returns the
    /// result of the trace.
    ///
    /// # Errors
    /// Fails if a LID is not unicast.
    pub fn start(&mut self, from: Option<Target>, to: Target) -> Result<TraceId, TraceError> {
        self.begin(from, to, false)
    }

    /// Starts a survey of a path, which reads tables and links but gives no verdicts. If all paths are
    /// surveyed before they are traced, duplicate LIDs and GUIDs are found. A survey ends without an event.
    ///
    /// # Errors
    /// Fails if a LID is not unicast.
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

    /// Starts a trace of a multicast tree from the local port. When the trace ends,
    /// [`Tracer::poll_tree`] returns the tree.
    ///
    /// # Errors
    /// Fails if the LID is not multicast.
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

    /// Returns the next completed tree.
    pub fn poll_tree(&mut self) -> Option<(TraceId, Result<Tree, TraceError>)> {
        self.tree_events.pop_front()
    }

    /// Processes a received MAD or the loss of a request. Returns true if the MAD or the request belongs to this
    /// client.
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

    /// Returns the next MAD to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        self.advance(now);
        self.requester.poll_transmit(now)
    }

    /// Returns the next completed trace.
    pub fn poll_event(&mut self) -> Option<(TraceId, Result<Trace, TraceError>)> {
        self.events.pop_front()
    }

    /// Returns the time at which [`Tracer::handle_timeout`] has to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.requester.poll_timeout()
    }

    /// Returns the number of traces in progress.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.jobs.len() + self.trees.len()
    }

    /// Returns the model of the fabric, as reported by the nodes.
    #[must_use]
    pub const fn model(&self) -> &FabricModel {
        &self.model
    }

    /// Returns the counters of the tracer.
    #[must_use]
    pub fn counters(&self) -> TracerCounters {
        TracerCounters {
            timeouts: self.timeouts,
            probed_lids: self.probes.len() as u64,
            traffic: self.requester.counters(),
        }
    }

    fn ask_path(&mut self, id: TraceId, gid: Gid, starts: bool) {
        let wanted =
            PathRecord { dgid: gid, sgid: self.own.gid(), numb_path: 1, ..PathRecord::zeroed() };
        let request = facts::ask(&self.own, &wanted, &[2, 3, 12]).with_timing(self.timing);
        self.send(RequestPurpose::Path(id, starts), request);
    }

    fn send(&mut self, purpose: RequestPurpose, request: Request) {
        if self.censuses.is_running() && !matches!(purpose, RequestPurpose::Census(..)) {
            self.held.push((purpose, request));
            return;
        }
        // If a simulator reports that a request was lost, the request is retried, as on a real wire.
        let request = Request { on_loss: OnLoss::Retry, ..request };
        let id = self.requester.start(request).expect("a Get request has a response");
        self.purposes.insert(id, purpose);
    }

    /// Processes the MAD requests that have completed.
    fn collect(&mut self, now: Instant) {
        while let Some(completion) = self.requester.poll_event() {
            let Some(purpose) = self.purposes.remove(&completion.transaction_id) else { continue };
            // Unanswered packets of bursts and trials are expected, so they do not count as timeouts.
            let is_burst = matches!(
                purpose,
                RequestPurpose::Census(_, CensusRequest::Burst) | RequestPurpose::Trial(..)
            );
            self.timeouts += u64::from(completion.result.is_err() && !is_burst);
            // A retried SA query does not make the fabric lossy, because the SA may only have been slow to respond.
            let is_sa_query = matches!(
                purpose,
                RequestPurpose::Fact(Source::SaRecords, ..) | RequestPurpose::Path(..)
            );
            self.lossy |= completion.result.is_ok() && completion.attempts > 1 && !is_sa_query;
            match purpose {
                RequestPurpose::Fact(source, fact, part) => {
                    let ended = (completion.result, self.lossy);
                    let (facts, model) = match source {
                        Source::Nodes => (&mut self.facts, &mut self.model),
                        Source::SaRecords => (&mut self.claim_facts, &mut self.claims),
                    };
                    match facts.handle((fact, part), ended, model) {
                        facts::Progress::Waits(more) => self.send_parts((source, fact), more),
                        facts::Progress::Done => {
                            let waiting = self.facts_wanted.remove(&(source, fact));
                            self.ready.extend(waiting.unwrap_or_default());
                        }
                    }
                }
                RequestPurpose::Probe(lid, question) => {
                    self.has_probe_response |= completion.result.is_ok();
                    match self.probes.handle(
                        (lid, question),
                        (completion.result, self.lossy),
                        &self.model,
                        &mut self.observations,
                    ) {
                        probes::Progress::Asks(question, request) => {
                            self.send(RequestPurpose::Probe(lid, question), *request);
                        }
                        probes::Progress::Done => {
                            self.note_probe(lid);
                            self.ready.extend(self.probes_wanted.remove(&lid).unwrap_or_default());
                        }
                    }
                }
                RequestPurpose::CombinedRoute(combined_route) => {
                    let ended = (completion.result, completion.attempts, self.lossy);
                    let (model, observations) = (&self.model, &mut self.observations);
                    match self.probes.handle_combined(combined_route, ended, model, observations) {
                        Some(request) => {
                            self.send(RequestPurpose::CombinedRoute(combined_route), request);
                        }
                        None => self.end_combined(combined_route),
                    }
                }
                RequestPurpose::Trial(combined_route, sample) => {
                    let answer = completion.result.as_ref().ok().filter(|it| it.status().is_ok());
                    let answer = answer.map(Message::mad);
                    if let (Sample::CombinedRoute, Some(info)) =
                        (sample, answer.and_then(ib_wire::mad::Mad::attribute))
                    {
                        self.probes.take_combined(combined_route, &info, &mut self.observations);
                    }
                    let known = (&self.probes, self.timing);
                    let more =
                        self.trials.handle((combined_route, sample), answer, &self.model, known);
                    self.send_trial(combined_route, more);
                    if self.trials.get(combined_route) != Some(trial::Outcome::Running) {
                        self.end_combined(combined_route);
                    }
                }
                RequestPurpose::Census(combined_route, inquiry) => {
                    let known = (&self.model, &self.probes, self.timing);
                    let (what, ended) =
                        ((combined_route, inquiry), (completion.result, completion.attempts));
                    match self.censuses.handle(what, ended, known) {
                        census::Progress::Waits(requests) => {
                            self.send_census(combined_route, requests);
                        }
                        census::Progress::Done => {
                            self.note_census(combined_route);
                            self.end_combined(combined_route);
                            for (purpose, request) in std::mem::take(&mut self.held) {
                                self.send(purpose, request);
                            }
                        }
                    }
                }
                RequestPurpose::Path(id, starts) => {
                    self.take_path(now, id, starts, completion.result);
                }
            }
        }
        self.advance(now);
    }

    fn send_parts(&mut self, (source, fact): (Source, Fact), parts: Vec<(Part, Request)>) {
        for (part, request) in parts {
            self.send(RequestPurpose::Fact(source, fact, part), request);
        }
    }

    fn send_trial(&mut self, combined_route: CombinedRoute, requests: Vec<(Sample, Request)>) {
        for (sample, request) in requests {
            self.send(RequestPurpose::Trial(combined_route, sample), request);
        }
    }

    /// Starts the next port census if no request is outstanding, because the ports would also count the packets of an
    /// outstanding request.
    fn take_censuses(&mut self) {
        while self.purposes.is_empty() {
            let Some((combined_route, requests)) = self.censuses.poll(&self.model, self.timing)
            else {
                break;
            };
            if requests.is_empty() {
                self.ready.extend(
                    self.combined_routes_wanted.remove(&combined_route).unwrap_or_default(),
                );
            }
            self.send_census(combined_route, requests);
        }
    }

    fn send_census(
        &mut self,
        combined_route: CombinedRoute,
        requests: Vec<(CensusRequest, Request)>,
    ) {
        for (inquiry, request) in requests {
            self.send(RequestPurpose::Census(combined_route, inquiry), request);
        }
    }

    /// Requests a fact, and makes a trace wait for it.
    fn want(&mut self, id: TraceId, source: Source, fact: Fact) {
        self.facts_wanted.entry((source, fact)).or_default().push(id);
        let parts = match source {
            Source::Nodes => self.facts.ask(fact, &self.model),
            Source::SaRecords => self.claim_facts.ask(fact, &self.claims),
        };
        self.send_parts((source, fact), parts);
    }

    /// Stores the LID that the SA returned for the start or destination GID of a trace.
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
                let path: PathRecord = message
                    .mad()
                    .attribute()
                    .expect("the requester checked the attribute of the response");
                Lid::unicast(path.dlid.into()).map(Lid::get).map_err(|error| error.to_string())
            }
            Ok(message) => Err(format!("the SA returned {}", facts::status_text(message.status()))),
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

/// Returns the port at the end of a path. If the path has no hops, it is the local port.
fn end_of_path(own: (NodeNumber, u8), path: &Path) -> (NodeNumber, u8) {
    path.hops.last().map_or(own, |hop| (hop.node, hop.enters))
}
