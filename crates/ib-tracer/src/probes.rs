//! Probes of the arrival port: requests to agents, LID-routed SMPs, and combined-route probes.
//!
//! A LID is probed once from the own port for all traced paths: by a request to its agent, and by an SMP.
//! NodeInfo in the response to the SMP identifies the node and holds the arrival port as well.
//!
//! A combined-route probe (`Launch`) is an SMP that takes a directed route to a switch and is routed by LID
//! from there. It tests a link that is not on the path from the own port.

use std::collections::BTreeMap;

use ib_link::Remote;
use ib_mad::{Failure, Message, Request, Timing};
use ib_types::{Gid, Guid, ServiceLevel};
use ib_wire::mad::sm::NodeInfo;
use ib_wire::mad::smp::PERMISSIVE_LID;
use ib_wire::mad::vendor::{Oui, SourceRoute};
use ib_wire::mad::{AttributeId, Mad, MadStatus, Method, MgmtClass, TransactionId, smp};
use ib_wire::packet::Grh;

use crate::atlas::{Atlas, End, Way};
use crate::facts::MOST_AGAIN;
use crate::observation::{Observations, Probe};
use crate::path::{MAX_HOPS, NodeNumber, Stop, UNKNOWN_PORT};
use crate::trace::AgentState;

/// A request to a LID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// ClassPortInfo of the agent.
    Class,
    /// The same on service level 0.
    Level,
    /// SourceRoute of the agent.
    Route,
    /// NodeInfo of the SMA.
    Node,
}

/// Result of probing a LID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) agent: AgentState,
    /// The node whose SMA responded, and the port by which the request arrived.
    pub(crate) node: Option<(Guid, u8)>,
}

/// A combined-route probe: the switch from which the SMP is routed by LID, and the LID.
pub(crate) type Launch = (NodeNumber, u16);

/// Result of a combined-route probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launched {
    /// The probe is outstanding.
    Asking,
    /// The node with this GUID responded; the probe arrived by this port.
    At(Guid, u8),
    /// The probe was not answered.
    Unanswered,
}

/// Results of all probes.
#[derive(Debug)]
pub(crate) struct Probes {
    timing: Timing,
    sl: ServiceLevel,
    grh: bool,
    m_key: u64,
    own_gid: Gid,
    /// The result of each LID; `None` while a request is outstanding.
    known: BTreeMap<u16, Option<Seen>>,
    /// States of agents whose SMA has not responded yet.
    agents: BTreeMap<u16, AgentState>,
    /// Number of repetitions of each probe on lossy paths.
    again: BTreeMap<u16, u32>,
    launched_again: BTreeMap<Launch, u32>,
    /// The path to each LID, from the own port.
    ways: BTreeMap<u16, Way>,
    launches: BTreeMap<Launch, Launched>,
}

/// Progress of a LID's probes after a response.
#[derive(Debug)]
pub(crate) enum Progress {
    Asks(Question, Box<Request>),
    Done,
}

impl Probes {
    pub(crate) const fn new(
        timing: Timing,
        (sl, grh): (ServiceLevel, bool),
        m_key: u64,
        own_gid: Gid,
    ) -> Self {
        Self {
            timing,
            sl,
            grh,
            m_key,
            own_gid,
            known: BTreeMap::new(),
            agents: BTreeMap::new(),
            again: BTreeMap::new(),
            launched_again: BTreeMap::new(),
            ways: BTreeMap::new(),
            launches: BTreeMap::new(),
        }
    }

    /// Returns the M_Key of SMPs.
    pub(crate) const fn m_key(&self) -> u64 {
        self.m_key
    }

    /// Returns the result of a LID: `None` before it is probed, `Some(None)` while it is.
    pub(crate) fn get(&self, lid: u16) -> Option<Option<&Seen>> {
        self.known.get(&lid).map(Option::as_ref)
    }

    /// Returns the path to a LID that was probed, from the own port.
    pub(crate) fn way(&self, lid: u16) -> Option<&Way> {
        self.ways.get(&lid)
    }

    /// Returns the number of LIDs that were probed.
    pub(crate) fn asked(&self) -> usize {
        self.known.len()
    }

    /// Probes a LID, given the path to it from the own port. Returns the request, if any.
    pub(crate) fn ask(
        &mut self,
        lid: u16,
        way: Way,
        atlas: &Atlas,
    ) -> Option<(Question, Box<Request>)> {
        let is_sent = way.stop == Stop::Arrived && !way.hops.is_empty();
        self.ways.insert(lid, way);
        if !is_sent {
            self.known.insert(lid, Some(Seen { agent: AgentState::NotAsked, node: None }));
            return None;
        }
        self.known.insert(lid, None);
        Some((Question::Class, self.question(lid, Question::Class, atlas)))
    }

    /// Processes the response or timeout of a request to a LID.
    pub(crate) fn handle(
        &mut self,
        (lid, question): (u16, Question),
        (result, lossy): (Result<Message, Failure>, bool),
        atlas: &Atlas,
        observations: &mut Observations,
    ) -> Progress {
        let probe = match question {
            Question::Node => Probe::Management { lid },
            _ => Probe::Agent { lid },
        };
        let observation = observations.entry(probe);
        observation.sent += 1;
        observation.answered += u32::from(result.is_ok());
        if result.is_err() && lossy {
            let again = self.again.entry(lid).or_default();
            *again += 1;
            if *again <= MOST_AGAIN {
                return Progress::Asks(question, self.question(lid, question, atlas));
            }
        }
        let mut node = None;
        match (question, result) {
            (Question::Class, Ok(message)) => {
                if message.status().is_ok() && message.mad().oui() == Oui::OPENIB {
                    let request = self.question(lid, Question::Route, atlas);
                    return Progress::Asks(Question::Route, request);
                }
                self.agents.insert(lid, AgentState::None);
            }
            (Question::Class, Err(_)) if self.sl.get() != 0 => {
                return Progress::Asks(Question::Level, self.question(lid, Question::Level, atlas));
            }
            (Question::Level, Ok(_)) => drop(self.agents.insert(lid, AgentState::OtherLevel)),
            (Question::Class | Question::Level, Err(_)) => {
                self.agents.insert(lid, AgentState::None);
            }
            (Question::Route, Err(_)) => drop(self.agents.insert(lid, AgentState::Silent)),
            (Question::Route, Ok(message)) => {
                let state = self.read_route(lid, message.mad());
                self.agents.insert(lid, state);
            }
            (Question::Node, Ok(message)) if message.status().is_ok() => {
                let info = message.mad().attribute::<NodeInfo>();
                node = info.map(|info| (info.node_guid, info.local_port));
                observations.entry(probe).arrival = node;
            }
            (Question::Node, _) => {}
        }
        if question != Question::Node {
            return Progress::Asks(Question::Node, self.question(lid, Question::Node, atlas));
        }
        self.end(lid, node)
    }

    fn end(&mut self, lid: u16, node: Option<(Guid, u8)>) -> Progress {
        let agent = self.agents.remove(&lid).unwrap_or(AgentState::NotAsked);
        self.known.insert(lid, Some(Seen { agent, node }));
        Progress::Done
    }

    /// Returns the result of a combined-route probe.
    pub(crate) fn launched(&self, launch: Launch) -> Option<Launched> {
        self.launches.get(&launch).copied()
    }

    /// Returns true if any combined-route probe was answered.
    pub(crate) fn has_answered_launch(&self) -> bool {
        self.launches.values().any(|launched| matches!(launched, Launched::At(..)))
    }

    /// Returns the number of switches through which no combined-route probe was answered.
    pub(crate) fn unanswered_switches(&self) -> usize {
        let silent =
            self.launches.iter().filter(|&(_, launched)| *launched == Launched::Unanswered);
        let mut switches: Vec<NodeNumber> = silent.map(|((from, _), _)| *from).collect();
        switches.dedup();
        switches.len()
    }

    /// Starts a combined-route probe from a switch to a LID.
    pub(crate) fn launch(&mut self, launch: Launch, atlas: &Atlas) -> Request {
        self.launches.insert(launch, Launched::Asking);
        self.combined(launch, atlas)
    }

    /// Processes the response or timeout of a combined-route probe. Returns a repetition if the path is lossy.
    pub(crate) fn handle_launch(
        &mut self,
        launch: Launch,
        (result, attempts, lossy): (Result<Message, Failure>, u32, bool),
        atlas: &Atlas,
        observations: &mut Observations,
    ) -> Option<Request> {
        let observation = observations.entry(Probe::Launch { from: launch.0, lid: launch.1 });
        observation.sent += attempts;
        let info = result.ok().filter(|message| message.status().is_ok());
        let info = info.and_then(|message| message.mad().attribute::<NodeInfo>());
        let Some(info) = info else {
            let again = self.launched_again.entry(launch).or_default();
            *again += 1;
            if lossy && *again <= MOST_AGAIN {
                return Some(self.combined(launch, atlas));
            }
            self.launches.insert(launch, Launched::Unanswered);
            return None;
        };
        self.take_launch(launch, &info, observations);
        None
    }

    /// Processes the response to a combined-route probe.
    pub(crate) fn take_launch(
        &mut self,
        launch: Launch,
        info: &NodeInfo,
        observations: &mut Observations,
    ) {
        let observation = observations.entry(Probe::Launch { from: launch.0, lid: launch.1 });
        observation.answered += 1;
        observation.arrival = Some((info.node_guid, info.local_port));
        self.launches.insert(launch, Launched::At(info.node_guid, info.local_port));
        observations.note_relay(launch.0);
    }

    /// Returns the SMP of a combined-route probe.
    pub(crate) fn combined(&self, (from, lid): Launch, atlas: &Atlas) -> Request {
        let what = (AttributeId::NODE_INFO, 0);
        let route = &atlas.node(from).route;
        let mut mad = smp::directed_request(Method::GET, TransactionId(0), what, route);
        mad.set_dr_lids(PERMISSIVE_LID, lid);
        mad.set_m_key(self.m_key);
        Request::new(Remote::directed(), mad).with_timing(self.timing)
    }

    /// Returns the ports by which the path to a LID enters its hops.
    fn wanted(&self, lid: u16) -> SourceRoute {
        let mut route = SourceRoute::zeroed();
        let hops = self.ways.get(&lid).map_or(&[][..], |way| &way.hops);
        for (port, hop) in route.ports.iter_mut().zip(hops) {
            *port = hop.enters;
        }
        route.hop_count = hops.len().min(MAX_HOPS) as u8;
        route
    }

    fn source_route(&self, lid: u16) -> Mad {
        let mut mad = tracer_request(AttributeId::SOURCE_ROUTE);
        mad.set_attribute(&self.wanted(lid));
        mad
    }

    /// Reads the response of an agent. Status 7 is its error sign: the request arrived by another port.
    fn read_route(&self, lid: u16, mad: &Mad) -> AgentState {
        /// The code "invalid field" alone, which some agents return instead of the whole status.
        const BARE_CODE: MadStatus = MadStatus(7);
        let wanted = self.wanted(lid);
        let Some(found) = mad.attribute::<SourceRoute>() else { return AgentState::Silent };
        let expected = wanted.expected_port().unwrap_or(UNKNOWN_PORT);
        let differs = match mad.status() {
            MadStatus::OK => false,
            MadStatus::BAD_FIELD | BARE_CODE => true,
            status => return AgentState::Refused(status),
        };
        if (found.hop_count, found.ports) != (wanted.hop_count, wanted.ports) {
            let what = "its agent answers with another source route than the request has";
            return AgentState::Inconsistent(what.to_owned());
        }
        match found.incoming_port {
            UNKNOWN_PORT if !differs => AgentState::CannotTell,
            port if differs && (port == UNKNOWN_PORT || port == expected) => {
                AgentState::Inconsistent(format!(
                    "its agent reports status 7, another port than {expected}, and names port {port}"
                ))
            }
            port => AgentState::Port(port),
        }
    }

    /// Returns a request to a LID.
    fn question(&self, lid: u16, question: Question, atlas: &Atlas) -> Box<Request> {
        match question {
            Question::Class => {
                self.request(lid, tracer_request(AttributeId::CLASS_PORT_INFO), atlas)
            }
            Question::Level => {
                let mut request = self.question(lid, Question::Class, atlas);
                request.remote.sl = ServiceLevel::default();
                request
            }
            Question::Route => self.request(lid, self.source_route(lid), atlas),
            Question::Node => {
                let what = (AttributeId::NODE_INFO, 0);
                let mut mad = smp::lid_request(Method::GET, TransactionId(0), what);
                mad.set_m_key(self.m_key);
                Box::new(Request::new(Remote::smi(lid), mad).with_timing(self.timing))
            }
        }
    }

    fn request(&self, lid: u16, mad: Mad, atlas: &Atlas) -> Box<Request> {
        let hop = self.ways.get(&lid).and_then(|way| way.hops.last());
        let end = hop.and_then(|hop| atlas.end((hop.node, hop.enters)));
        let remote = Remote { sl: self.sl, grh: self.header(end), ..Remote::gsi(lid) };
        Box::new(Request::new(remote, mad).with_timing(self.timing))
    }

    /// Returns the global route header to a port.
    fn header(&self, end: Option<&End>) -> Option<Grh> {
        let end = end.filter(|_| self.grh)?;
        let destination = Gid::new(end.prefix, end.guid);
        Some(Grh { source: self.own_gid, destination, ..Grh::default() })
    }
}

fn tracer_request(id: AttributeId) -> Mad {
    let mut mad = Mad::new(MgmtClass::TRACER, Method::GET, TransactionId(0));
    mad.set_oui(Oui::OPENIB);
    mad.set_attribute_id(id);
    mad
}
