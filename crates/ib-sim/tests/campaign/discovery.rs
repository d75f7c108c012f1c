//! A client that discovers a fabric with one request per attribute.

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

/// Index of an LFT entry for a LID that no port of these fabrics has.
const FREE_ENTRY: usize = 63;

/// A query of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Query {
    /// NodeInfo of the node at the end of a path.
    Node(Vec<u8>),
    Description(Vec<u8>),
    Switch(Vec<u8>),
    /// PortInfo of a port of the node at the end of a path.
    Port {
        path: Vec<u8>,
        number: u8,
        /// True if the path can continue out of this port.
        leads_on: bool,
        /// Numbers of the ports whose counters can be queried at this port's LID.
        counted: Vec<u8>,
    },
    /// The first LFT block of the switch at the end of a path. The client then changes an entry of the block.
    Table(Vec<u8>),
    /// A Set of the changed LFT block.
    NewTable(Vec<u8>, LinearForwardingBlock),
    /// The LFT block after the Set, to check whether the switch has ignored the write.
    Written(Vec<u8>, LinearForwardingBlock),
    /// PortCounters of the port `number`, from the node with the LID `lid`.
    Counters {
        lid: u16,
        number: u8,
    },
}

impl Query {
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

/// An outstanding query.
struct PendingQuery {
    query: Query,
    mad: Mad,
    remote: Remote,
}

/// The client and the discovered nodes.
pub(crate) struct Discovery<'p> {
    plan: &'p Plan<'p>,
    requester: Requester,
    asked: BTreeMap<TransactionId, PendingQuery>,
    /// The nodes that were discovered in this round.
    pub(crate) nodes: BTreeSet<Guid>,
    /// The ports whose counters can be queried by LID in this round.
    counted: BTreeSet<(u16, u8)>,
    guids: BTreeSet<Guid>,
    descriptions: BTreeSet<String>,
    tally: Tally,
    /// The completed queries, one per line.
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

    /// Queries all nodes by directed route, and then their counters by LID.
    pub(crate) fn round(&mut self, link: &mut SimLink<'_>) {
        self.tally.rounds += 1;
        self.nodes.clear();
        self.counted.clear();
        self.send_query(Query::Node(Vec::new()));
        self.run_queries(link);
        for (lid, number) in std::mem::take(&mut self.counted) {
            self.send_query(Query::Counters { lid, number });
        }
        self.run_queries(link);
    }

    /// Returns the number of outstanding queries.
    pub(crate) fn waiting(&self) -> usize {
        self.asked.len().max(self.requester.outstanding())
    }

    pub(crate) const fn reports_losses(&self) -> bool {
        self.plan.reports_losses
    }

    /// Processes input that arrives while no query is outstanding.
    pub(crate) fn late(&mut self, now: Instant, incoming: &Incoming) {
        self.requester.handle(now, incoming);
        assert_eq!(self.requester.poll_event(), None, "no query completes twice");
    }

    pub(crate) fn tally(&self) -> Tally {
        let counters = self.requester.counters();
        assert!(
            counters.foreign == 0 || self.plan.reports_losses,
            "every response belongs to a request"
        );
        Tally { retries: counters.retries, late: counters.late, ..self.tally.clone() }
    }

    fn send_query(&mut self, query: Query) {
        let request = query.request(self.plan);
        let (mad, remote) = (request.mad, request.remote);
        let id = self.requester.start(request).expect("the method of the request has a response");
        self.tally.started += 1;
        let before = self.asked.insert(id, PendingQuery { query, mad, remote });
        assert!(before.is_none(), "transaction IDs are unique");
    }

    fn run_queries(&mut self, link: &mut SimLink<'_>) {
        while let Some(end) =
            drive(&mut self.requester, link).expect("a simulated link does not fail")
        {
            let asked = self.asked.remove(&end.transaction_id).expect("the query is outstanding");
            self.note(link.sim().now(), &asked, &end);
            match &end.result {
                Ok(message) => {
                    self.tally.answered += 1;
                    check_answer(&asked, end.transaction_id, message);
                    if message.status().is_ok() {
                        self.learn(asked.query, message.mad());
                    } else {
                        // While cables are swapped, a path can lead to another node. This node may not
                        // have the requested attribute or port.
                        assert!(self.plan.faults > 0, "{}", message.mad());
                    }
                }
                Err(Failure::TimedOut { .. }) => self.tally.timed_out += 1,
                Err(Failure::Lost { .. }) if self.plan.reports_losses => self.tally.lost += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(self.waiting(), 0, "no query is outstanding");
    }

    /// Records a completed query and checks that it ended in time.
    fn note(&mut self, now: Instant, asked: &PendingQuery, end: &Completion) {
        let timing = self.plan.timing;
        assert!((1..=timing.retries + 1).contains(&end.attempts));
        let patience = (0..end.attempts).map(|retry| timing.wait(retry)).sum();
        assert!(end.elapsed <= patience, "took {:?}, limit {patience:?}", end.elapsed);
        if let Err(Failure::TimedOut { waited, attempts }) = end.result {
            assert_eq!(attempts, timing.retries + 1);
            // If a lost request is reported to the client, an attempt can end before its timeout.
            assert!(waited == patience || self.plan.reports_losses, "{waited:?} of {patience:?}");
        }
        let result = match &end.result {
            Ok(message) => message.mad().to_string(),
            Err(failure) => failure.to_string(),
        };
        writeln!(self.ends, "{now} {} {:?}: {result}", end.transaction_id, asked.query)
            .expect("writing to a string does not fail");
    }

    /// Processes a successful response: checks it and sends further queries.
    fn learn(&mut self, query: Query, answer: &Mad) {
        match query {
            Query::Node(path) => self.learn_node(&path, &answer.attribute().expect("NodeInfo")),
            Query::Description(_) => {
                let description: NodeDescription = answer.attribute().expect("NodeDescription");
                assert!(self.descriptions.contains(&*description.as_text()), "{description}");
            }
            Query::Switch(_) => {
                let info: SwitchInfo = answer.attribute().expect("SwitchInfo");
                assert!(info.linear_fdb_cap > 0);
            }
            Query::Port { path, number, leads_on, counted } => {
                let info: PortInfo = answer.attribute().expect("PortInfo");
                if info.lid != 0 {
                    self.counted.extend(counted.into_iter().map(|number| (info.lid, number)));
                }
                if leads_on && info.port_state.0 >= PortState::INIT.0 && path.len() < 20 {
                    self.send_query(Query::Node(path.into_iter().chain([number]).collect()));
                }
            }
            Query::Table(path) => {
                let mut block: LinearForwardingBlock =
                    answer.attribute().expect("the response has an LFT block");
                let entry = &mut block.ports[FREE_ENTRY];
                *entry = if *entry == 0xff { 1 } else { 0xff };
                self.send_query(Query::NewTable(path, block));
            }
            Query::NewTable(path, block) => {
                assert_eq!(answer.attribute(), Some(block), "the written block is returned");
                self.send_query(Query::Written(path, block));
            }
            Query::Written(_, block) => {
                self.tally.ignored_tables += u64::from(answer.attribute() != Some(block));
            }
            Query::Counters { number, .. } => {
                let counters: PortCounters = answer.attribute().expect("PortCounters");
                assert_eq!(counters.port_select, number);
                self.tally.routed += 1;
            }
        }
    }
    /// Queries all attributes of a new node.
    fn learn_node(&mut self, path: &[u8], info: &NodeInfo) {
        assert!(self.guids.contains(&info.node_guid), "unknown node {}", info.node_guid);
        if !self.nodes.insert(info.node_guid) {
            return;
        }
        self.send_query(Query::Description(path.to_vec()));
        let switch = info.node_type == NodeType::SWITCH;
        if switch {
            self.send_query(Query::Switch(path.to_vec()));
            self.send_query(Query::Table(path.to_vec()));
        }
        for number in u8::from(!switch)..=info.num_ports {
            // A host forwards no packets, so a path can continue only from switches and from the
            // client's host.
            let leads_on = number > 0 && (switch || path.is_empty());
            let counted = match number {
                0 => (1..=info.num_ports).collect(),
                _ if switch => Vec::new(),
                _ => vec![number],
            };
            self.send_query(Query::Port { path: path.to_vec(), number, leads_on, counted });
        }
    }
}

/// Checks that a response matches its query.
fn check_answer(asked: &PendingQuery, id: TransactionId, message: &Message) {
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
