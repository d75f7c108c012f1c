//! What the agents along a way say.
//!
//! A node is asked once for each of its LIDs that matters: the request takes the way to that LID,
//! whichever way is traced. Where that way enters the node by another link, a datagram of subnet
//! management is sent over a directed route to the switch before and from there on by LID: the switch
//! sends it over the link that counts, if it does what its table says.

use std::collections::BTreeMap;

use ib_link::Remote;
use ib_mad::{Failure, Message, Request, Timing};
use ib_types::{Gid, Guid, ServiceLevel};
use ib_wire::mad::sm::NodeInfo;
use ib_wire::mad::smp::PERMISSIVE_LID;
use ib_wire::mad::vendor::{Oui, SourceRoute};
use ib_wire::mad::{AttributeId, Mad, MadStatus, Method, MgmtClass, TransactionId, smp};
use ib_wire::packet::Grh;

use crate::atlas::{Atlas, End, NodeNumber, Way};
use crate::facts::MOST_AGAIN;
use crate::trace::{Hop, Stop, Verdict};
use crate::{MAX_HOPS, UNKNOWN_PORT};

/// A question to a LID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Is there an agent?
    Class,
    /// Is there one that service level 0 gets to?
    Level,
    /// By which port did this come in?
    Route,
    /// Is there anybody? Subnet management answers everywhere. And whether an agent has answered.
    Anybody { agent: bool },
}

/// What is known of a LID.
#[derive(Clone, Debug)]
pub(crate) enum Probe {
    /// It is being asked.
    Asking,
    /// What came of it, as far as it does not depend on the traced way.
    Known(Seen),
}

/// What was seen at a LID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The agent has told the port.
    Port(u8),
    /// Nothing that depends on ports.
    Other(Verdict),
}

/// A switch from which on a datagram goes by LID, and the LID.
pub(crate) type Launch = (NodeNumber, u16);

/// What is known of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launched {
    /// It is under way.
    Asking,
    /// It got to the node with this GUID, by this port.
    At(Guid, u8),
    /// It got lost, while another one from the same switch to a neighbour did not.
    Lost,
    /// The switch does not pass on what comes over directed routes by LID.
    Unable,
}

/// The LIDs that were asked, and what they say.
#[derive(Debug)]
pub(crate) struct Probes {
    timing: Timing,
    sl: ServiceLevel,
    grh: bool,
    own_gid: Gid,
    known: BTreeMap<u16, Probe>,
    /// How often LIDs and launches were asked again where packets get lost.
    again: BTreeMap<u16, u32>,
    launched_again: BTreeMap<(Launch, bool), u32>,
    /// The way to each LID, from the own port.
    ways: BTreeMap<u16, Way>,
    launches: BTreeMap<Launch, Launched>,
    /// How many launches have arrived, and how many switches were not able to.
    arrived: usize,
    unable: usize,
}

/// How many switches have to be found unable, and none able, until no other one is asked to launch.
const MOST_UNABLE: usize = 2;

/// What comes of an answer.
#[derive(Debug)]
pub(crate) enum Progress {
    Asks(Question, Box<Request>),
    Done,
}

impl Probes {
    pub(crate) const fn new(timing: Timing, (sl, grh): (ServiceLevel, bool), own_gid: Gid) -> Self {
        Self {
            timing,
            sl,
            grh,
            own_gid,
            known: BTreeMap::new(),
            again: BTreeMap::new(),
            launched_again: BTreeMap::new(),
            ways: BTreeMap::new(),
            launches: BTreeMap::new(),
            arrived: 0,
            unable: 0,
        }
    }

    /// Returns what is known of a LID.
    pub(crate) fn get(&self, lid: u16) -> Option<&Probe> {
        self.known.get(&lid)
    }

    /// Returns the number of LIDs that were asked.
    pub(crate) fn asked(&self) -> usize {
        self.known.len()
    }

    /// Asks a LID, given the way to it from the own port. Returns the request, when there is one to be
    /// sent.
    pub(crate) fn ask(
        &mut self,
        lid: u16,
        way: Way,
        atlas: &Atlas,
    ) -> Option<(Question, Box<Request>)> {
        let arrives = way.stop == Stop::Arrived;
        let has_hops = !way.hops.is_empty();
        self.ways.insert(lid, way);
        if !arrives || !has_hops {
            let verdict = if arrives { Verdict::Own } else { Verdict::NoRoute };
            self.known.insert(lid, Probe::Known(Seen::Other(verdict)));
            return None;
        }
        self.known.insert(lid, Probe::Asking);
        Some((Question::Class, self.question(lid, Question::Class, atlas)))
    }

    /// Takes the end of a request to a LID.
    pub(crate) fn handle(
        &mut self,
        (lid, question): (u16, Question),
        (result, lossy): (Result<Message, Failure>, bool),
        atlas: &Atlas,
    ) -> Progress {
        if result.is_err() && lossy {
            let again = self.again.entry(lid).or_default();
            *again += 1;
            if *again <= MOST_AGAIN {
                return Progress::Asks(question, self.question(lid, question, atlas));
            }
        }
        let seen = match (question, result) {
            (Question::Class, Ok(message)) => {
                if message.status().is_ok() && message.mad().oui() == Oui::OPENIB {
                    return Progress::Asks(
                        Question::Route,
                        self.question(lid, Question::Route, atlas),
                    );
                }
                // Whoever answers that it does not know the class is there.
                Seen::Other(Verdict::NoAgent)
            }
            (Question::Class, Err(_)) if self.sl.get() != 0 => {
                return Progress::Asks(Question::Level, self.question(lid, Question::Level, atlas));
            }
            (Question::Level, Ok(_)) => Seen::Other(Verdict::OtherLevel),
            (Question::Class | Question::Level | Question::Route, Err(_)) => {
                let agent = question == Question::Route;
                let question = Question::Anybody { agent };
                return Progress::Asks(question, self.question(lid, question, atlas));
            }
            (Question::Route, Ok(message)) => self.read_route(lid, message.mad()),
            (Question::Anybody { agent }, Ok(message)) => {
                self.read_node(lid, &message, agent, atlas)
            }
            (Question::Anybody { .. }, Err(_)) => Seen::Other(Verdict::Lost),
        };
        self.known.insert(lid, Probe::Known(seen));
        Progress::Done
    }

    /// Returns the verdict over a hop of a traced way, which is addressed by a LID that was asked.
    pub(crate) fn verdict(&self, lid: u16, hop: &Hop) -> Verdict {
        let last = self.ways.get(&lid).and_then(|way| way.hops.last());
        match (self.known.get(&lid), last) {
            (Some(Probe::Known(Seen::Other(verdict))), _) => verdict.clone(),
            (Some(Probe::Known(Seen::Port(actual))), Some(last)) => {
                let same_link = last == hop;
                if *actual != last.enters {
                    let (expected, actual) = (last.enters, *actual);
                    Verdict::Mismatch { expected, actual, same_link }
                } else if same_link {
                    Verdict::Validated
                } else {
                    Verdict::OwnRouteOnly { enters: last.enters, seen: false }
                }
            }
            _ => Verdict::NotAsked,
        }
    }

    /// Returns what is known of a launch.
    pub(crate) fn launched(&self, launch: Launch) -> Option<Launched> {
        let is_useless = self.arrived == 0 && self.unable >= MOST_UNABLE;
        self.launches.get(&launch).copied().or(is_useless.then_some(Launched::Unable))
    }

    /// Launches a datagram from a switch to a LID.
    pub(crate) fn launch(&mut self, launch: Launch, atlas: &Atlas) -> Request {
        self.launches.insert(launch, Launched::Asking);
        self.combined(launch, atlas)
    }

    /// Takes the end of a launch. Returns the next one, and whether it goes to a neighbour: when it got lost, one to a neighbour shows whether the switch is able
    /// to pass on by LID what comes over directed routes.
    pub(crate) fn handle_launch(
        &mut self,
        (launch, to_neighbour): (Launch, bool),
        (result, lossy): (Result<Message, Failure>, bool),
        atlas: &Atlas,
    ) -> Option<(Request, bool)> {
        let lid = match to_neighbour {
            true => atlas.neighbour(launch),
            false => Some(launch.1),
        };
        if let Some(lid) = lid.filter(|_| result.is_err() && lossy) {
            let again = self.launched_again.entry((launch, to_neighbour)).or_default();
            *again += 1;
            if *again <= MOST_AGAIN {
                return Some((self.combined((launch.0, lid), atlas), to_neighbour));
            }
        }
        let info = result.ok().filter(|message| message.status().is_ok());
        let info = info.and_then(|message| message.mad().attribute::<NodeInfo>());
        let launched = match (info, to_neighbour) {
            (Some(info), false) => Launched::At(info.node_guid, info.local_port),
            (None, false) => match atlas.neighbour(launch) {
                Some(lid) => return Some((self.combined((launch.0, lid), atlas), true)),
                None => Launched::Unable,
            },
            (Some(_), true) => Launched::Lost,
            (None, true) => Launched::Unable,
        };
        self.arrived += usize::from(matches!(launched, Launched::At(..)));
        self.unable += usize::from(launched == Launched::Unable);
        self.launches.insert(launch, launched);
        None
    }

    /// Returns the request that is launched.
    pub(crate) fn combined(&self, (from, lid): Launch, atlas: &Atlas) -> Request {
        let what = (AttributeId::NODE_INFO, 0);
        let route = &atlas.node(from).route;
        let mut mad = smp::directed_request(Method::GET, TransactionId(0), what, route);
        mad.set_dr_lids(PERMISSIVE_LID, lid);
        Request::new(Remote::directed(), mad).with_timing(self.timing)
    }

    /// Returns the ports by which the way to a LID enters its hops.
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

    fn read_route(&self, lid: u16, mad: &Mad) -> Seen {
        /// The code of a bad field by itself, which agents may put where the whole status is.
        const BARE_CODE: MadStatus = MadStatus(7);
        let wanted = self.wanted(lid);
        let told: SourceRoute = mad.attribute().expect("it was asked for");
        let expected = wanted.expected_port().unwrap_or(UNKNOWN_PORT);
        let differs = match mad.status() {
            MadStatus::OK => false,
            MadStatus::BAD_FIELD | BARE_CODE => true,
            status => return Seen::Other(Verdict::Refused { status }),
        };
        let absurd = |what: String| Seen::Other(Verdict::Absurd { what });
        if (told.hop_count, told.ports) != (wanted.hop_count, wanted.ports) {
            return absurd("its answer has another source route than the request".to_owned());
        }
        match told.incoming_port {
            UNKNOWN_PORT if !differs => Seen::Other(Verdict::CannotTell),
            port if differs && (port == UNKNOWN_PORT || port == expected) => absurd(format!(
                "it says that the request came in by another port than {expected}, and names port {port}"
            )),
            port => Seen::Port(port),
        }
    }

    fn read_node(&self, lid: u16, message: &Message, agent: bool, atlas: &Atlas) -> Seen {
        let wanted = self.ways.get(&lid).and_then(|way| way.hops.last());
        let there = if agent { Verdict::Silent } else { Verdict::NoAgent };
        let guid: Guid = match message.mad().attribute::<NodeInfo>() {
            Some(info) if message.status().is_ok() => info.node_guid,
            _ => return Seen::Other(there),
        };
        let is_wanted = wanted.is_some_and(|hop| atlas.node(hop.node).guid == guid);
        Seen::Other(if is_wanted { there } else { Verdict::Elsewhere { guid } })
    }

    /// Returns the request that asks a question.
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
            Question::Anybody { .. } => {
                let what = (AttributeId::NODE_INFO, 0);
                let mad = smp::lid_request(Method::GET, TransactionId(0), what);
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
