//! Facts of the fabric: the requests for them, and the evaluation of responses.
//!
//! Facts come from the nodes over directed routes, or from SA records. A fact may need several requests: a
//! node that is new is queried for NodeInfo, PortInfo and NodeDescription.

use std::collections::BTreeMap;

use ib_link::{LinkPort, Remote};
use ib_mad::{Failure, Message, Request, Timing};
use ib_types::NodeKind;
use ib_wire::mad::sa::{
    ComponentMask, LinearForwardingRecord, LinkRecord, MulticastForwardingRecord, NodeRecord,
    PortInfoRecord, SaHeader, SwitchInfoRecord,
};
use ib_wire::mad::sm::{
    LinearForwardingBlock, MulticastForwardingBlock, NodeDescription, NodeInfo, PortInfo,
    PortState, SwitchInfo,
};
use ib_wire::mad::{Attribute, AttributeId, Mad, MadStatus, Method, MgmtClass, TransactionId, smp};

use crate::atlas::{Atlas, End, Link, TracedNode};
use crate::fact::{Fact, Via};
use crate::path::NodeNumber;

/// A request for a part of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// NodeInfo of the node; from records, the port at the far end of the link.
    Node,
    /// NodeInfo of the node whose LID came from a record.
    Record,
    /// The port that has LIDs.
    Port,
    /// NodeDescription.
    Description,
    /// SwitchInfo: `LinearFDBTop`.
    Switch,
    /// The near end of a link.
    Near,
    /// The block.
    Block,
    /// All link records of the SA. `OpenSM` has records of a switch whose LID is not a multiple of 2^LMC, but
    /// does not find them by that LID.
    Links,
}

impl Part {
    /// Returns the name for messages.
    const fn name(self) -> &'static str {
        match self {
            Self::Node | Self::Record => "what the node is",
            Self::Port => "the port's LID (which an M_Key can hide, see --mkey)",
            Self::Description => "the node's description",
            Self::Switch => "the switch's settings",
            Self::Near => "the state of the port",
            Self::Block => "the table",
            Self::Links => "the table of links",
        }
    }
}

/// A fact with outstanding requests.
#[derive(Debug, Default)]
struct Asking {
    /// Number of outstanding requests.
    left: usize,
    /// The NodeInfo received so far.
    info: Option<NodeInfo>,
    port: Option<PortInfo>,
    description: Option<NodeDescription>,
    switch: Option<SwitchInfo>,
    near: Option<PortInfo>,
    /// The contradiction between the responses of the far node.
    inconsistent: Option<String>,
    /// The port of the far end and, from records, its LID.
    far: u8,
    lid: u16,
    failed: Option<String>,
    /// Number of repeated requests.
    again: u32,
}

/// Maximum number of repetitions on lossy paths.
pub(crate) const MOST_AGAIN: u32 = 8;

/// All facts with outstanding requests.
#[derive(Debug)]
pub(crate) struct Facts {
    via: Via,
    own: LinkPort,
    timing: Timing,
    m_key: u64,
    asking: BTreeMap<Fact, Asking>,
    /// The far end of every near one (LID and port), once all records were requested.
    links: Option<BTreeMap<(u16, u8), (u16, u8)>>,
}

/// Progress of a fact after a response.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Requests to send next; none if responses are still outstanding.
    Waits(Vec<(Part, Request)>),
    /// The atlas holds the fact, or the reason why it could not be read.
    Done,
}

impl Facts {
    pub(crate) const fn new(via: Via, own: LinkPort, timing: Timing, m_key: u64) -> Self {
        Self { via, own, timing, m_key, asking: BTreeMap::new(), links: None }
    }

    /// Returns the requests for a fact; none if they were sent already.
    pub(crate) fn ask(&mut self, fact: Fact, atlas: &Atlas) -> Vec<(Part, Request)> {
        if self.asking.contains_key(&fact) {
            return Vec::new();
        }
        let parts: &[Part] = match fact {
            Fact::Own if self.via == Via::Administration => &[Part::Record],
            Fact::Own => &[Part::Node],
            Fact::Link { .. } => &[Part::Near, Part::Node],
            Fact::Block { .. } | Fact::Again { .. } | Fact::Multicast { .. } => &[Part::Block],
        };
        let asking = Asking { far: self.own.number, lid: self.own.lid, ..Asking::default() };
        self.asking.insert(fact, asking);
        self.request_all(fact, parts, atlas)
    }

    /// Processes the response or timeout of a request.
    pub(crate) fn handle(
        &mut self,
        (fact, part): (Fact, Part),
        (result, lossy): (Result<Message, Failure>, bool),
        atlas: &mut Atlas,
    ) -> Progress {
        let Some(asking) = self.asking.get_mut(&fact) else { return Progress::Done };
        asking.left -= 1;
        if part == Part::Links
            && let Ok(message) = &result
        {
            let records = message.records::<LinkRecord>();
            let ends = records.map(|it| ((it.from_lid, it.from_port), (it.to_lid, it.to_port)));
            self.links = Some(ends.collect());
        }
        let is_unknown = matches!(part, Part::Node | Part::Links)
            && self.via == Via::Administration
            && result.as_ref().is_ok_and(|message| {
                part == Part::Links || message.status() == MadStatus::SA_NO_RECORDS
            });
        if is_unknown && let Fact::Link { node, port } = fact {
            let Some(links) = &self.links else {
                return Progress::Waits(self.request_all(fact, &[Part::Links], atlas));
            };
            let lid = atlas.end((node, port)).map_or(0, |end| end.lid);
            match links.get(&(lid, port)) {
                Some(&(lid, port)) => {
                    (asking.far, asking.lid) = (port, lid);
                    return Progress::Waits(self.request_all(fact, &[Part::Record], atlas));
                }
                None => {
                    let why = "subnet administration has no record of the link".to_owned();
                    asking.failed.get_or_insert(why);
                    return self.end(fact, atlas);
                }
            }
        }
        let answer = match result {
            Ok(message) if message.status().is_ok() => Ok(*message.mad()),
            Ok(message) => {
                Err(format!("{} is answered with {}", part.name(), said(message.status())))
            }
            // M_Key protection level 2 hides all attributes, including those of the own port.
            Err(failure) if fact == Fact::Own && self.m_key == 0 => Err(format!(
                "{} is not told, which an M_Key can do (see --mkey): {failure}",
                part.name()
            )),
            Err(failure) => Err(format!("{} is not told: {failure}", part.name())),
        };
        let mut more: Vec<Part> = Vec::new();
        match answer {
            Err(why) => match part {
                // On a lossy fabric, requests without a response are repeated.
                _ if lossy && asking.again < MOST_AGAIN => {
                    asking.again += 1;
                    more.push(part);
                }
                // Paths can be walked without these.
                Part::Description | Part::Switch | Part::Near => {}
                _ => drop(asking.failed.get_or_insert(why)),
            },
            Ok(mad) => more = asking.take(part, &mad, self.via, atlas, fact),
        }
        if !more.is_empty() {
            return Progress::Waits(self.request_all(fact, &more, atlas));
        }
        self.end(fact, atlas)
    }

    /// Stores a fact in the atlas once no request for it is outstanding.
    fn end(&mut self, fact: Fact, atlas: &mut Atlas) -> Progress {
        let is_complete = |asking: &mut Asking| asking.left == 0;
        match self.asking.get_mut(&fact).map(is_complete) {
            Some(true) => {
                let asking = self.asking.remove(&fact).expect("just seen");
                asking.finish(fact, self.via, atlas);
                Progress::Done
            }
            Some(false) => Progress::Waits(Vec::new()),
            None => Progress::Done,
        }
    }

    fn request_all(&mut self, fact: Fact, parts: &[Part], atlas: &Atlas) -> Vec<(Part, Request)> {
        let asking = self.asking.get_mut(&fact).expect("it is asked for");
        asking.left += parts.len();
        let asking = &*asking;
        let requests = parts.iter().map(|&part| {
            let request = match self.via {
                Via::DirectedRoutes => directed(fact, part, atlas),
                Via::Administration => asking.record(fact, part, (&self.own, atlas)),
            };
            let mut request = request.with_timing(self.timing);
            if request.mad.class().is_smp() {
                request.mad.set_m_key(self.m_key);
            }
            (part, request)
        });
        requests.collect()
    }
}

impl Asking {
    /// Processes a response; returns the requests that it makes necessary.
    fn take(
        &mut self,
        part: Part,
        mad: &Mad,
        via: Via,
        atlas: &mut Atlas,
        fact: Fact,
    ) -> Vec<Part> {
        match (part, via) {
            (Part::Node, Via::DirectedRoutes) => {
                let info: NodeInfo = attribute(mad);
                self.info = Some(info);
                self.far = info.local_port;
                // The return path is what brought the response back: it holds the true arrival port.
                let arrival = mad.return_path()[usize::from(mad.hop_count() & 63)];
                if mad.hop_count() > 0 && arrival != 0 && arrival != info.local_port {
                    self.far = arrival;
                    self.inconsistent = Some(format!(
                        "its NodeInfo has LocalPortNum {}, the return path has port {arrival}",
                        info.local_port
                    ));
                }
                return self.parts_of(&info, (fact, via), atlas);
            }
            (Part::Node, Via::Administration) => {
                let record: LinkRecord = attribute(mad);
                (self.far, self.lid) = (record.to_port, record.to_lid);
                return vec![Part::Record];
            }
            (Part::Record, _) => {
                let info = attribute::<NodeRecord>(mad);
                self.description = Some(info.node_description);
                self.info = Some(info.node_info);
                let mut parts = self.parts_of(&info.node_info, (fact, via), atlas);
                parts.retain(|part| *part != Part::Description);
                return parts;
            }
            (Part::Port, Via::DirectedRoutes) => self.port = Some(attribute(mad)),
            (Part::Port, Via::Administration) => {
                self.port = Some(attribute::<PortInfoRecord>(mad).port_info);
            }
            (Part::Near, Via::DirectedRoutes) => self.near = Some(attribute(mad)),
            (Part::Near, Via::Administration) => {
                self.near = Some(attribute::<PortInfoRecord>(mad).port_info);
            }
            (Part::Description, _) => self.description = Some(attribute(mad)),
            (Part::Switch, Via::DirectedRoutes) => self.switch = Some(attribute(mad)),
            (Part::Switch, Via::Administration) => {
                self.switch = Some(attribute::<SwitchInfoRecord>(mad).switch_info);
            }
            (Part::Links, _) => unreachable!("it was read before"),
            (Part::Block, _) => match (fact, via) {
                (Fact::Block { node, block }, Via::DirectedRoutes) => {
                    let read: LinearForwardingBlock = attribute(mad);
                    atlas.set_block(node, block, read.ports);
                }
                (Fact::Block { node, block }, Via::Administration) => {
                    let read: LinearForwardingRecord = attribute(mad);
                    atlas.set_block(node, block, read.entries.ports);
                }
                (Fact::Multicast { node, block, position }, Via::DirectedRoutes) => {
                    let read: MulticastForwardingBlock = attribute(mad);
                    atlas.masks.insert((node, block, position), read.masks);
                }
                (Fact::Multicast { node, block, position }, Via::Administration) => {
                    let read: MulticastForwardingRecord = attribute(mad);
                    atlas.masks.insert((node, block, position), read.entries.masks);
                }
                (Fact::Again { node, block }, _) => {
                    let read: LinearForwardingBlock = attribute(mad);
                    if !atlas.is_block(node, block, &read.ports) {
                        atlas.changed.insert(node);
                    }
                }
                (Fact::Own | Fact::Link { .. }, _) => unreachable!("blocks are of tables"),
            },
        }
        Vec::new()
    }

    /// Returns the parts to request from the node behind a link.
    fn parts_of(&mut self, info: &NodeInfo, (fact, via): (Fact, Via), atlas: &Atlas) -> Vec<Part> {
        let Some(kind) = info.node_type.kind() else {
            let what = format!("its NodeInfo has node type {}: expected 1 to 3", info.node_type.0);
            self.failed.get_or_insert(what);
            return Vec::new();
        };
        let known = self.known(info, (fact, via, None), atlas).map(|number| atlas.node(number));
        let end = if kind.is_switch() { 0 } else { self.far };
        let mut parts = Vec::new();
        // Two switches with one GUID are distinguished by their LIDs.
        let verifies = via == Via::DirectedRoutes && kind.is_switch();
        if verifies || known.is_none_or(|known| !known.ends.contains_key(&end)) {
            parts.push(Part::Port);
        }
        if known.is_none() {
            parts.push(Part::Description);
            if kind.is_switch() {
                parts.push(Part::Switch);
            }
        }
        parts
    }

    /// Returns the known node behind a link: the node with the GUID, unless its type, number of ports, LID or
    /// cable at the arrival port differs.
    fn known(
        &self,
        info: &NodeInfo,
        (fact, via, lid): (Fact, Via, Option<u16>),
        atlas: &Atlas,
    ) -> Option<NodeNumber> {
        let kind = info.node_type.kind()?;
        let is_same = |&number: &NodeNumber| {
            let node = atlas.node(number);
            if (node.kind, node.ports) != (kind, info.num_ports) {
                return false;
            }
            if via == Via::Administration {
                return true;
            }
            let has_lid = node.ends.get(&0).zip(lid).is_none_or(|(end, lid)| end.lid == lid);
            let cable = node.links.get(&self.far);
            let is_cable = match (cable, fact) {
                (Some(&Link::To(next, port, _)), Fact::Link { node, port: out }) => {
                    (next, port) == (node, out)
                }
                _ => true,
            };
            has_lid && is_cable
        };
        atlas.find(info.node_guid).iter().copied().find(is_same)
    }

    /// Returns a request to the SA.
    fn record(&self, fact: Fact, part: Part, (own, atlas): (&LinkPort, &Atlas)) -> Request {
        let lid = self.lid;
        let is_switch =
            self.info.is_some_and(|info| info.node_type.kind() == Some(NodeKind::Switch));
        let lid_of = |node: NodeNumber, port: u8| atlas.end((node, port)).map_or(0, |end| end.lid);
        match (part, fact) {
            (Part::Node, Fact::Link { node, port }) => {
                let from_lid = lid_of(node, port);
                let wanted = LinkRecord { from_lid, from_port: port, ..LinkRecord::zeroed() };
                ask(own, &wanted, &[0, 1])
            }
            (Part::Block, Fact::Block { node, block }) => {
                let lid = lid_of(node, 0);
                let wanted =
                    LinearForwardingRecord { lid, block, ..LinearForwardingRecord::zeroed() };
                ask(own, &wanted, &[0, 1])
            }
            (Part::Block, Fact::Multicast { node, block, position }) => {
                let lid = lid_of(node, 0);
                let zeroed = MulticastForwardingRecord::zeroed();
                let wanted = MulticastForwardingRecord { lid, block, position, ..zeroed };
                ask(own, &wanted, &[0, 1, 3])
            }
            (Part::Near, Fact::Link { node, port }) => {
                let lid = lid_of(node, port);
                let wanted = PortInfoRecord { lid, port, ..PortInfoRecord::zeroed() };
                ask(own, &wanted, &[0, 1])
            }
            (Part::Port, _) => {
                let port = if is_switch { 0 } else { self.far };
                let wanted = PortInfoRecord { lid, port, ..PortInfoRecord::zeroed() };
                ask(own, &wanted, &[0, 1])
            }
            (Part::Links, _) => {
                let mut request = ask(own, &LinkRecord::zeroed(), &[]);
                request.mad.set_method(Method::GET_TABLE);
                request
            }
            (Part::Switch, _) => {
                ask(own, &SwitchInfoRecord { lid, ..SwitchInfoRecord::zeroed() }, &[0])
            }
            (Part::Node | Part::Near | Part::Block | Part::Record | Part::Description, _) => {
                ask(own, &NodeRecord { lid, ..NodeRecord::zeroed() }, &[0])
            }
        }
    }

    /// Stores the fact in the atlas.
    fn finish(mut self, fact: Fact, via: Via, atlas: &mut Atlas) {
        let failed = self.failed.take();
        match (fact, failed) {
            (Fact::Block { .. } | Fact::Multicast { .. }, None) => {}
            (Fact::Again { node, block }, why) => {
                atlas.confirmed.insert((node, block));
                // A table that cannot be read again may have changed.
                if why.is_some() {
                    atlas.changed.insert(node);
                }
            }
            (Fact::Block { .. } | Fact::Multicast { .. } | Fact::Own, Some(why)) => {
                atlas.lacking.insert(fact, why);
            }
            (Fact::Link { node, port }, Some(why)) => {
                let state = self.near.map(|near| near.port_state);
                let is_down = state.is_some_and(|state| state != PortState::ACTIVE);
                let why = match state.filter(|_| is_down) {
                    None => why,
                    Some(state) => format!("the port is in state {state}"),
                };
                atlas.node_mut(node).links.insert(port, Link::Nowhere { why, is_down });
            }
            (Fact::Own, None) => {
                if let Some((node, port)) = self.reach(fact, via, atlas) {
                    let port = if atlas.node(node).kind.is_switch() { 0 } else { port };
                    atlas.set_own((node, port));
                }
            }
            (Fact::Link { node, port }, None) => {
                if let Some((next, enters)) = self.reach(fact, via, atlas) {
                    // A node that does not report the state has at least responded.
                    let state = self.near.map_or(PortState::ACTIVE, |near| near.port_state);
                    atlas.node_mut(node).links.insert(port, Link::To(next, enters, state));
                    if via == Via::DirectedRoutes {
                        // A cable has two ends, and directed routes do not lead back through HCAs.
                        let back = atlas.node_mut(next).links.entry(enters);
                        back.or_insert(Link::To(node, port, state));
                    }
                }
            }
        }
    }

    /// Adds the node behind the link, unless it is known; returns the node and its port.
    fn reach(&self, fact: Fact, via: Via, atlas: &mut Atlas) -> Option<(NodeNumber, u8)> {
        let info = self.info.as_ref()?;
        let kind = info.node_type.kind()?;
        let lid = self.port.filter(|_| kind.is_switch()).map(|port| port.lid);
        let number = match self.known(info, (fact, via, lid), atlas) {
            Some(number) => number,
            None => {
                let route = match (via, fact) {
                    (Via::DirectedRoutes, Fact::Link { node, port }) => {
                        atlas.node(node).route.iter().copied().chain([port]).collect()
                    }
                    _ => Box::default(),
                };
                let text = self.description.as_ref().map(NodeDescription::as_text);
                atlas.add(TracedNode {
                    guid: info.node_guid,
                    kind,
                    ports: info.num_ports,
                    description: text.unwrap_or_default().into_owned(),
                    route,
                    ends: BTreeMap::new(),
                    links: BTreeMap::new(),
                    top: self.switch.map(|switch| switch.linear_fdb_top),
                    blocks: Vec::new(),
                })
            }
        };
        if let Some(port) = &self.port {
            let end =
                End { guid: info.port_guid, prefix: port.gid_prefix, lid: port.lid, lmc: port.lmc };
            let at = if kind.is_switch() { 0 } else { self.far };
            atlas.set_end((number, at), end);
        }
        if let Some(what) = &self.inconsistent {
            atlas.inconsistent.insert(number, what.clone());
        }
        Some((number, self.far))
    }
}

/// Returns a request over a directed route.
fn directed(fact: Fact, part: Part, atlas: &Atlas) -> Request {
    let route: Vec<u8> = match fact {
        Fact::Own => Vec::new(),
        Fact::Link { node, port } if part != Part::Near => {
            atlas.node(node).route.iter().copied().chain([port]).collect()
        }
        Fact::Link { node, .. }
        | Fact::Block { node, .. }
        | Fact::Again { node, .. }
        | Fact::Multicast { node, .. } => atlas.node(node).route.to_vec(),
    };
    let what = match (part, fact) {
        (Part::Near, Fact::Link { port, .. }) => (AttributeId::PORT_INFO, port.into()),
        (Part::Node | Part::Record, _) => (AttributeId::NODE_INFO, 0),
        (Part::Port | Part::Near, _) => (AttributeId::PORT_INFO, 0),
        (Part::Description, _) => (AttributeId::NODE_DESCRIPTION, 0),
        (Part::Switch, _) => (AttributeId::SWITCH_INFO, 0),
        (Part::Block, Fact::Block { block, .. } | Fact::Again { block, .. }) => {
            (AttributeId::LINEAR_FORWARDING, block.into())
        }
        (Part::Block, Fact::Multicast { block, position, .. }) => {
            (AttributeId::MULTICAST_FORWARDING, MulticastForwardingBlock::modifier(block, position))
        }
        (Part::Block | Part::Links, _) => unreachable!("blocks are of tables"),
    };
    let mad = smp::directed_request(Method::GET, TransactionId(0), what, &route);
    Request::new(Remote::directed(), mad)
}

/// Returns a request for a record.
pub(crate) fn ask<R: Attribute>(own: &LinkPort, record: &R, components: &[u8]) -> Request {
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET, TransactionId(0));
    mad.set_attribute(record);
    mad.set_sa(&SaHeader { component_mask: ComponentMask::of(components), ..mad.sa() });
    let remote = Remote { sl: own.sm_sl, ..Remote::gsi(own.sm_lid) };
    Request::new(remote, mad)
}

/// Returns the text of a status.
pub(crate) fn said(status: MadStatus) -> String {
    match status {
        MadStatus::SA_NO_RECORDS => "no records".to_owned(),
        MadStatus::SA_REQUEST_INVALID => "that the request is invalid".to_owned(),
        MadStatus::SA_TOO_MANY_RECORDS => "too many records".to_owned(),
        MadStatus::SA_INVALID_GID => "that the GID is invalid".to_owned(),
        status => format!("status {status}"),
    }
}

/// Returns the attribute of a response. The requester has matched it with the request.
fn attribute<A: Attribute>(mad: &Mad) -> A {
    mad.attribute().expect("an answer holds what was asked for")
}
