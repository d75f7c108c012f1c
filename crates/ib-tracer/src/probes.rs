//! Probes that show at which port packets arrive: requests to agents, LID-routed SMPs, and combined-route probes.
//!
//! The client probes each LID only once from the local port: first by requests to the tracer agent at
//! the LID, then by an SMP. All traced paths share the result. The NodeInfo that the SMA returns
//! identifies the node, and contains the arrival port as well.
//!
//! A combined-route probe ([`CombinedRoute`]) is an SMP that takes a directed route to a switch and
//! is routed by LID from there. It tests a link that is not on a path from the local port.

use std::collections::BTreeMap;

use ib_link::Remote;
use ib_mad::{Failure, Message, Request, Timing};
use ib_types::{Gid, Guid, ServiceLevel};
use ib_wire::mad::sm::NodeInfo;
use ib_wire::mad::smp::PERMISSIVE_LID;
use ib_wire::mad::vendor::{Oui, SourceRoute};
use ib_wire::mad::{AttributeId, Mad, MadStatus, Method, MgmtClass, TransactionId, smp};
use ib_wire::packet::Grh;

use crate::fabric_model::{End, FabricModel, Path};
use crate::facts::MAX_RETRIES;
use crate::observation::{Observations, Probe};
use crate::path::{MAX_HOPS, NodeNumber, Stop, UNKNOWN_PORT};
use crate::trace::AgentState;

/// A request to a LID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LidRequest {
    /// Requests ClassPortInfo from the agent.
    Class,
    /// Requests ClassPortInfo from the agent on service level 0.
    Level,
    /// Sends a SourceRoute request to the agent.
    Route,
    /// Requests NodeInfo from the SMA.
    Node,
}

/// Result of probing a LID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbeResult {
    pub(crate) agent: AgentState,
    /// The node whose SMA responded, and its port at which the request arrived.
    pub(crate) node: Option<(Guid, u8)>,
}

/// A combined-route probe: the switch from which the SMP is routed by LID, and the LID.
pub(crate) type CombinedRoute = (NodeNumber, u16);

/// Result of a combined-route probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CombinedResult {
    /// The probe is outstanding.
    PendingFact,
    /// The node with this GUID responded. The probe arrived at this port.
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
    /// By LID: result of probing the LID; `None` while a request is outstanding.
    known: BTreeMap<u16, Option<ProbeResult>>,
    /// By LID: state of the agent, while the response of the SMA is outstanding.
    agents: BTreeMap<u16, AgentState>,
    /// By LID: number of times that a probe was repeated because the fabric is lossy.
    retries: BTreeMap<u16, u32>,
    combined_retries: BTreeMap<CombinedRoute, u32>,
    /// Path from the local port to each probed LID.
    paths: BTreeMap<u16, Path>,
    combined_results: BTreeMap<CombinedRoute, CombinedResult>,
}

/// Progress of the probes of a LID after a response.
#[derive(Debug)]
pub(crate) enum Progress {
    Asks(LidRequest, Box<Request>),
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
            retries: BTreeMap::new(),
            combined_retries: BTreeMap::new(),
            paths: BTreeMap::new(),
            combined_results: BTreeMap::new(),
        }
    }

    /// Returns the M_Key that SMPs contain.
    pub(crate) const fn m_key(&self) -> u64 {
        self.m_key
    }

    /// Returns the result of probing a LID: `None` if it was not probed, `Some(None)` while a request is outstanding.
    pub(crate) fn get(&self, lid: u16) -> Option<Option<&ProbeResult>> {
        self.known.get(&lid).map(Option::as_ref)
    }

    /// Returns the path from the local port to a probed LID.
    pub(crate) fn path(&self, lid: u16) -> Option<&Path> {
        self.paths.get(&lid)
    }

    /// Returns the number of LIDs that were probed.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Starts to probe a LID. `path` leads from the local port to the LID. Returns the request to send, if any.
    pub(crate) fn ask(
        &mut self,
        lid: u16,
        path: Path,
        model: &FabricModel,
    ) -> Option<(LidRequest, Box<Request>)> {
        let is_sent = path.stop == Stop::Arrived && !path.hops.is_empty();
        self.paths.insert(lid, path);
        if !is_sent {
            self.known.insert(lid, Some(ProbeResult { agent: AgentState::NotProbed, node: None }));
            return None;
        }
        self.known.insert(lid, None);
        Some((LidRequest::Class, self.question(lid, LidRequest::Class, model)))
    }

    /// Processes the response or timeout of a request to a LID.
    pub(crate) fn handle(
        &mut self,
        (lid, question): (u16, LidRequest),
        (result, lossy): (Result<Message, Failure>, bool),
        model: &FabricModel,
        observations: &mut Observations,
    ) -> Progress {
        let probe = match question {
            LidRequest::Node => Probe::Management { lid },
            _ => Probe::Agent { lid },
        };
        let observation = observations.entry(probe);
        observation.sent += 1;
        observation.answered += u32::from(result.is_ok());
        if result.is_err() && lossy {
            let again = self.retries.entry(lid).or_default();
            *again += 1;
            if *again <= MAX_RETRIES {
                return Progress::Asks(question, self.question(lid, question, model));
            }
        }
        let mut node = None;
        match (question, result) {
            (LidRequest::Class, Ok(message)) => {
                if message.status().is_ok() && message.mad().oui() == Oui::OPENIB {
                    let request = self.question(lid, LidRequest::Route, model);
                    return Progress::Asks(LidRequest::Route, request);
                }
                self.agents.insert(lid, AgentState::None);
            }
            (LidRequest::Class, Err(_)) if self.sl.get() != 0 => {
                return Progress::Asks(
                    LidRequest::Level,
                    self.question(lid, LidRequest::Level, model),
                );
            }
            (LidRequest::Level, Ok(_)) => drop(self.agents.insert(lid, AgentState::OtherLevel)),
            (LidRequest::Class | LidRequest::Level, Err(_)) => {
                self.agents.insert(lid, AgentState::None);
            }
            (LidRequest::Route, Err(_)) => drop(self.agents.insert(lid, AgentState::Silent)),
            (LidRequest::Route, Ok(message)) => {
                let state = self.read_route(lid, message.mad());
                self.agents.insert(lid, state);
            }
            (LidRequest::Node, Ok(message)) if message.status().is_ok() => {
                let info = message.mad().attribute::<NodeInfo>();
                node = info.map(|info| (info.node_guid, info.local_port));
                observations.entry(probe).arrival = node;
            }
            (LidRequest::Node, _) => {}
        }
        if question != LidRequest::Node {
            return Progress::Asks(LidRequest::Node, self.question(lid, LidRequest::Node, model));
        }
        self.end(lid, node)
    }

    fn end(&mut self, lid: u16, node: Option<(Guid, u8)>) -> Progress {
        let agent = self.agents.remove(&lid).unwrap_or(AgentState::NotProbed);
        self.known.insert(lid, Some(ProbeResult { agent, node }));
        Progress::Done
    }

    /// Returns the result of a combined-route probe.
    pub(crate) fn combined_result(&self, combined_route: CombinedRoute) -> Option<CombinedResult> {
        self.combined_results.get(&combined_route).copied()
    }

    /// Returns true if any combined-route probe was answered.
    pub(crate) fn has_answered_combined(&self) -> bool {
        self.combined_results
            .values()
            .any(|combined_result| matches!(combined_result, CombinedResult::At(..)))
    }

    /// Returns the number of switches with at least one unanswered combined-route probe.
    pub(crate) fn unanswered_switches(&self) -> usize {
        let silent = self
            .combined_results
            .iter()
            .filter(|&(_, combined_result)| *combined_result == CombinedResult::Unanswered);
        let mut switches: Vec<NodeNumber> = silent.map(|((from, _), _)| *from).collect();
        switches.dedup();
        switches.len()
    }

    /// Starts a combined-route probe from a switch to a LID.
    pub(crate) fn combined_route(
        &mut self,
        combined_route: CombinedRoute,
        model: &FabricModel,
    ) -> Request {
        self.combined_results.insert(combined_route, CombinedResult::PendingFact);
        self.combined(combined_route, model)
    }

    /// Processes the response or timeout of a combined-route probe. If the response is missing or invalid and the
    /// fabric is lossy, returns the request to send again, at most [`MAX_RETRIES`] times.
    pub(crate) fn handle_combined(
        &mut self,
        combined_route: CombinedRoute,
        (result, attempts, lossy): (Result<Message, Failure>, u32, bool),
        model: &FabricModel,
        observations: &mut Observations,
    ) -> Option<Request> {
        let observation = observations
            .entry(Probe::CombinedRoute { from: combined_route.0, lid: combined_route.1 });
        observation.sent += attempts;
        let info = result.ok().filter(|message| message.status().is_ok());
        let info = info.and_then(|message| message.mad().attribute::<NodeInfo>());
        let Some(info) = info else {
            let again = self.combined_retries.entry(combined_route).or_default();
            *again += 1;
            if lossy && *again <= MAX_RETRIES {
                return Some(self.combined(combined_route, model));
            }
            self.combined_results.insert(combined_route, CombinedResult::Unanswered);
            return None;
        };
        self.take_combined(combined_route, &info, observations);
        None
    }

    /// Processes the response to a combined-route probe.
    pub(crate) fn take_combined(
        &mut self,
        combined_route: CombinedRoute,
        info: &NodeInfo,
        observations: &mut Observations,
    ) {
        let observation = observations
            .entry(Probe::CombinedRoute { from: combined_route.0, lid: combined_route.1 });
        observation.answered += 1;
        observation.arrival = Some((info.node_guid, info.local_port));
        self.combined_results
            .insert(combined_route, CombinedResult::At(info.node_guid, info.local_port));
        observations.note_relay(combined_route.0);
    }

    /// Returns the SMP of a combined-route probe.
    pub(crate) fn combined(&self, (from, lid): CombinedRoute, model: &FabricModel) -> Request {
        let what = (AttributeId::NODE_INFO, 0);
        let route = &model.node(from).route;
        let mut mad = smp::directed_request(Method::GET, TransactionId(0), what, route);
        mad.set_dr_lids(PERMISSIVE_LID, lid);
        mad.set_m_key(self.m_key);
        Request::new(Remote::directed(), mad).with_timing(self.timing)
    }

    /// Returns the source route to a LID, which contains the expected arrival port of each hop.
    fn wanted(&self, lid: u16) -> SourceRoute {
        let mut route = SourceRoute::zeroed();
        let hops = self.paths.get(&lid).map_or(&[][..], |path| &path.hops);
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

    /// Evaluates the response of an agent. Field code 7 reports that the request arrived at an
    /// unexpected port.
    fn read_route(&self, lid: u16, mad: &Mad) -> AgentState {
        /// Field code 7 at bit 0 of the status. Some agents return it there, instead of at the position of the field
        /// code.
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
            let what = "its agent returns a source route that differs from the requested one";
            return AgentState::Inconsistent(what.to_owned());
        }
        match found.incoming_port {
            UNKNOWN_PORT if !differs => AgentState::UnknownPort,
            port if differs && (port == UNKNOWN_PORT || port == expected) => {
                AgentState::Inconsistent(format!(
                    "its agent reports status 7 (not port {expected}), but arrival port {port}"
                ))
            }
            port => AgentState::Port(port),
        }
    }

    /// Returns the given kind of request to a LID.
    fn question(&self, lid: u16, question: LidRequest, model: &FabricModel) -> Box<Request> {
        match question {
            LidRequest::Class => {
                self.request(lid, tracer_request(AttributeId::CLASS_PORT_INFO), model)
            }
            LidRequest::Level => {
                let mut request = self.question(lid, LidRequest::Class, model);
                request.remote.sl = ServiceLevel::default();
                request
            }
            LidRequest::Route => self.request(lid, self.source_route(lid), model),
            LidRequest::Node => {
                let what = (AttributeId::NODE_INFO, 0);
                let mut mad = smp::lid_request(Method::GET, TransactionId(0), what);
                mad.set_m_key(self.m_key);
                Box::new(Request::new(Remote::smi(lid), mad).with_timing(self.timing))
            }
        }
    }

    fn request(&self, lid: u16, mad: Mad, model: &FabricModel) -> Box<Request> {
        let hop = self.paths.get(&lid).and_then(|path| path.hops.last());
        let end = hop.and_then(|hop| model.end((hop.node, hop.enters)));
        let remote = Remote { sl: self.sl, grh: self.header(end), ..Remote::gsi(lid) };
        Box::new(Request::new(remote, mad).with_timing(self.timing))
    }

    /// Returns the global route header for requests to a port; `None` if the configuration has no global route header,
    /// or if the port is unknown.
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
