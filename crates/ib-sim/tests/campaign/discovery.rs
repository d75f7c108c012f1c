//! A client that discovers a fabric, one request for each thing that it wants to know.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use ib_link::{Incoming, Remote};
use ib_mad::{Completion, Failure, Message, Request, Requester, drive};
use ib_sim::SimLink;
use ib_types::{Guid, Instant};
use ib_wire::mad::pm::PortCounters;
use ib_wire::mad::sm::{
    LinearForwardingBlock, NodeDescription, NodeInfo, NodeType, PortInfo, PortState, SwitchInfo,
};
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass, TransactionId, smp};

use crate::Tally;
use crate::plan::Plan;

/// An entry of tables that no LID of these fabrics uses.
const FREE_ENTRY: usize = 63;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Question {
    /// Who is at the end of a path?
    Node(Vec<u8>),
    Description(Vec<u8>),
    Switch(Vec<u8>),
    /// A port of the node at the end of a path: whether a link may lead on from there, and which
    /// ports have their counters where this one has its LID.
    Port {
        path: Vec<u8>,
        number: u8,
        leads_on: bool,
        counted: Vec<u8>,
    },
    /// The first block of a table, which is changed then.
    Table(Vec<u8>),
    /// Writes it.
    NewTable(Vec<u8>, LinearForwardingBlock),
    /// Whether it was written.
    Written(Vec<u8>, LinearForwardingBlock),
    /// The counters of a port of the node that has a LID.
    Counters {
        lid: u16,
        number: u8,
    },
}

impl Question {
    fn request(&self, plan: &Plan<'_>) -> Request {
        let directed = |method, id, modifier, path: &[u8]| {
            let mad = smp::directed_request(method, TransactionId(0), (id, modifier), path);
            Request::new(Remote::directed(), mad)
        };
        let get = |id, modifier, path: &[u8]| directed(Method::GET, id, modifier, path);
        let request = match self {
            Self::Node(path) => get(AttributeId::NODE_INFO, 0, path),
            Self::Description(path) => get(AttributeId::NODE_DESCRIPTION, 0, path),
            Self::Switch(path) => get(AttributeId::SWITCH_INFO, 0, path),
            Self::Port { path, number, .. } => get(AttributeId::PORT_INFO, (*number).into(), path),
            Self::Table(path) | Self::Written(path, _) => {
                get(AttributeId::LINEAR_FORWARDING, 0, path)
            }
            Self::NewTable(path, block) => {
                let mut request = directed(Method::SET, AttributeId::LINEAR_FORWARDING, 0, path);
                request.mad.set_attribute(block);
                request
            }
            Self::Counters { lid, number } => {
                let class = MgmtClass::PERFORMANCE;
                let mut mad = Mad::new(class, Method::GET, TransactionId(0));
                mad.set_attribute_id(AttributeId::PORT_COUNTERS);
                mad.set_attribute(&PortCounters { port_select: *number, ..PortCounters::zeroed() });
                Request::new(Remote::gsi(*lid), mad)
            }
        };
        Request { on_loss: plan.on_loss, ..request.with_timing(plan.timing) }
    }
}

/// A request under way.
struct Asked {
    question: Question,
    mad: Mad,
    remote: Remote,
}

/// The client and what it found out.
pub(crate) struct Discovery<'p> {
    plan: &'p Plan<'p>,
    requester: Requester,
    asked: BTreeMap<TransactionId, Asked>,
    /// The nodes of this round.
    pub(crate) nodes: BTreeSet<Guid>,
    /// The ports that can be asked by LID in this round.
    counted: BTreeSet<(u16, u8)>,
    guids: BTreeSet<Guid>,
    descriptions: BTreeSet<String>,
    tally: Tally,
    /// A line for every end.
    pub(crate) ends: String,
}

impl<'p> Discovery<'p> {
    pub(crate) fn new(plan: &'p Plan<'p>) -> Self {
        let nodes = || plan.kind.fabric.nodes();
        Self {
            plan,
            requester: Requester::new(plan.requester),
            asked: BTreeMap::new(),
            nodes: BTreeSet::new(),
            counted: BTreeSet::new(),
            guids: nodes().map(|(_, node)| node.guid).collect(),
            descriptions: nodes().map(|(_, node)| node.description.clone()).collect(),
            tally: Tally::default(),
            ends: String::new(),
        }
    }

    /// Asks everybody for everything, first by directed routes, then by LID.
    pub(crate) fn round(&mut self, link: &mut SimLink<'_>) {
        self.tally.rounds += 1;
        self.nodes.clear();
        self.counted.clear();
        self.ask(Question::Node(Vec::new()));
        self.ask_until_all_is_known(link);
        for (lid, number) in std::mem::take(&mut self.counted) {
            self.ask(Question::Counters { lid, number });
        }
        self.ask_until_all_is_known(link);
    }

    /// Returns the number of requests that have not ended.
    pub(crate) fn waiting(&self) -> usize {
        self.asked.len().max(self.requester.outstanding())
    }

    pub(crate) const fn is_told(&self) -> bool {
        self.plan.told
    }

    /// Takes what comes when nothing is waited for any more.
    pub(crate) fn late(&mut self, now: Instant, incoming: &Incoming) {
        self.requester.handle(now, incoming);
        assert_eq!(self.requester.poll_event(), None, "a request has ended twice");
    }

    pub(crate) fn tally(&self) -> Tally {
        let counters = self.requester.counters();
        assert!(counters.foreign == 0 || self.plan.told, "answers that are none");
        Tally { retries: counters.retries, late: counters.late, ..self.tally.clone() }
    }

    fn ask(&mut self, question: Question) {
        let request = question.request(self.plan);
        let (mad, remote) = (request.mad, request.remote);
        let id = self.requester.start(request).expect("it has an answer");
        self.tally.started += 1;
        let before = self.asked.insert(id, Asked { question, mad, remote });
        assert!(before.is_none(), "two requests of one number are under way");
    }

    fn ask_until_all_is_known(&mut self, link: &mut SimLink<'_>) {
        while let Some(end) = drive(&mut self.requester, link).expect("the fabric is there") {
            let asked =
                self.asked.remove(&end.transaction_id).expect("it was asked and has not ended");
            self.note(link.sim().now(), &asked, &end);
            match &end.result {
                Ok(message) => {
                    self.tally.answered += 1;
                    check_answer(&asked, end.transaction_id, message);
                    if message.status().is_ok() {
                        self.learn(asked.question, message.mad());
                    } else {
                        // While cables are swapped, a path may lead to another node than before.
                        assert!(self.plan.faults > 0, "{}", message.mad());
                    }
                }
                Err(Failure::TimedOut { .. }) => self.tally.timed_out += 1,
                Err(Failure::Lost { .. }) if self.plan.told => self.tally.lost += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(self.waiting(), 0, "requests that have not ended");
    }

    /// Writes an end down, and checks that it came in time.
    fn note(&mut self, now: Instant, asked: &Asked, end: &Completion) {
        let timing = self.plan.timing;
        assert!((1..=timing.retries + 1).contains(&end.attempts));
        let patience = (0..end.attempts).map(|retry| timing.wait(retry)).sum();
        assert!(end.elapsed <= patience, "{:?} of {patience:?}", end.elapsed);
        if let Err(Failure::TimedOut { waited, attempts }) = end.result {
            assert_eq!(attempts, timing.retries + 1);
            // Who is told of a loss does not wait for the rest of the time.
            assert!(waited == patience || self.plan.told, "{waited:?} of {patience:?}");
        }
        let result = match &end.result {
            Ok(message) => message.mad().to_string(),
            Err(failure) => failure.to_string(),
        };
        writeln!(self.ends, "{now} {} {:?}: {result}", end.transaction_id, asked.question)
            .expect("a string takes everything");
    }

    /// Goes on from an answer.
    fn learn(&mut self, question: Question, answer: &Mad) {
        match question {
            Question::Node(path) => self.learn_node(&path, &answer.attribute().expect("NodeInfo")),
            Question::Description(_) => {
                let description: NodeDescription = answer.attribute().expect("NodeDescription");
                assert!(self.descriptions.contains(&*description.as_text()), "{description}");
            }
            Question::Switch(_) => {
                let info: SwitchInfo = answer.attribute().expect("SwitchInfo");
                assert!(info.linear_fdb_cap > 0);
            }
            Question::Port { path, number, leads_on, counted } => {
                let info: PortInfo = answer.attribute().expect("PortInfo");
                if info.lid != 0 {
                    self.counted.extend(counted.into_iter().map(|number| (info.lid, number)));
                }
                if leads_on && info.port_state.0 >= PortState::INIT.0 && path.len() < 20 {
                    self.ask(Question::Node(path.into_iter().chain([number]).collect()));
                }
            }
            Question::Table(path) => {
                let mut block: LinearForwardingBlock = answer.attribute().expect("a table");
                let entry = &mut block.ports[FREE_ENTRY];
                *entry = if *entry == 0xff { 1 } else { 0xff };
                self.ask(Question::NewTable(path, block));
            }
            Question::NewTable(path, block) => {
                assert_eq!(answer.attribute(), Some(block), "it says that it is written");
                self.ask(Question::Written(path, block));
            }
            Question::Written(_, block) => {
                self.tally.ignored_tables += u64::from(answer.attribute() != Some(block));
            }
            Question::Counters { number, .. } => {
                let counters: PortCounters = answer.attribute().expect("PortCounters");
                assert_eq!(counters.port_select, number);
                self.tally.routed += 1;
            }
        }
    }
    /// Asks a node that is new for all that it has.
    fn learn_node(&mut self, path: &[u8], info: &NodeInfo) {
        assert!(self.guids.contains(&info.node_guid), "nobody made {}", info.node_guid);
        if !self.nodes.insert(info.node_guid) {
            return;
        }
        self.ask(Question::Description(path.to_vec()));
        let switch = info.node_type == NodeType::SWITCH;
        if switch {
            self.ask(Question::Switch(path.to_vec()));
            self.ask(Question::Table(path.to_vec()));
        }
        for number in u8::from(!switch)..=info.num_ports {
            // A packet cannot leave a host by another port than the one that it is on.
            let leads_on = number > 0 && (switch || path.is_empty());
            let counted = match number {
                0 => (1..=info.num_ports).collect(),
                _ if switch => Vec::new(),
                _ => vec![number],
            };
            self.ask(Question::Port { path: path.to_vec(), number, leads_on, counted });
        }
    }
}

/// Checks that an answer is the one to its request.
fn check_answer(asked: &Asked, id: TransactionId, message: &Message) {
    let (request, answer) = (&asked.mad, message.mad());
    assert_eq!(answer.transaction_id(), id);
    assert_eq!(answer.method(), Method::GET_RESP);
    assert_eq!(
        (answer.class(), answer.attribute_id(), answer.attribute_modifier()),
        (request.class(), request.attribute_id(), request.attribute_modifier())
    );
    if request.class() == MgmtClass::SUBN_DIRECTED_ROUTE {
        assert_eq!(answer.hop_count(), request.hop_count());
        assert_eq!(answer.initial_path(), request.initial_path());
    } else {
        assert_eq!(message.remote().lid, asked.remote.lid);
    }
}
