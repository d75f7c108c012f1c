//! How the client learns of the fabric: what it asks, and what the answers say.
//!
//! Over directed routes everybody is asked; from subnet administration the records are. A fact may take
//! more than one request: who is behind a port that nobody has come to has to be asked what it is, what
//! its port is, and what it is called.

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

use crate::atlas::{Atlas, End, Link, NodeNumber, TracedNode};
use crate::tracer::Via;

/// Something that a way depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fact {
    /// Who is at the own port.
    Own,
    /// What is behind a port.
    Link { node: NodeNumber, port: u8 },
    /// A block of a forwarding table.
    Block { node: NodeNumber, block: u16 },
    /// A block of a multicast table, and the position of its 16 ports.
    Multicast { node: NodeNumber, block: u16, position: u8 },
    /// The same as the switch itself has it, where subnet administration has told another one.
    Held { node: NodeNumber, block: u16 },
}

/// A request for a part of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What the node is; where records tell, which port is at the other end of the link.
    Node,
    /// What the node is whose LID a record has told.
    Record,
    /// The port that has LIDs.
    Port,
    /// What the node is called.
    Description,
    /// How much of its table a switch uses.
    Switch,
    /// The near end of a link.
    Near,
    /// The block.
    Block,
}

impl Part {
    /// Returns what it is called in a sentence.
    const fn name(self) -> &'static str {
        match self {
            Self::Node | Self::Record => "what the node is",
            Self::Port => "the port's LID (which an M_Key can hide, see --mkey)",
            Self::Description => "the node's description",
            Self::Switch => "the switch's settings",
            Self::Near => "the state of the port",
            Self::Block => "the table",
        }
    }
}

/// A fact that is being asked for.
#[derive(Debug, Default)]
struct Asking {
    /// How many requests are under way.
    left: usize,
    /// What has come in.
    info: Option<NodeInfo>,
    port: Option<PortInfo>,
    description: Option<NodeDescription>,
    switch: Option<SwitchInfo>,
    near: Option<PortInfo>,
    /// The port of the far end, and where records tell its LID.
    far: u8,
    lid: u16,
    failed: Option<String>,
    /// How often something was asked again.
    again: u32,
}

/// How often what is not answered is asked again where packets get lost.
pub(crate) const MOST_AGAIN: u32 = 8;

/// The facts that are being asked for.
#[derive(Debug)]
pub(crate) struct Facts {
    via: Via,
    own: LinkPort,
    timing: Timing,
    m_key: u64,
    asking: BTreeMap<Fact, Asking>,
}

/// What comes of a part of a fact.
#[derive(Debug)]
pub(crate) enum Progress {
    /// More is asked or awaited.
    Waits(Vec<(Part, Request)>),
    /// The atlas has it now, or has that it cannot be had.
    Done,
}

impl Facts {
    pub(crate) const fn new(via: Via, own: LinkPort, timing: Timing, m_key: u64) -> Self {
        Self { via, own, timing, m_key, asking: BTreeMap::new() }
    }

    /// Starts to ask for a fact; nothing when that is done already.
    pub(crate) fn ask(&mut self, fact: Fact, atlas: &Atlas) -> Vec<(Part, Request)> {
        if self.asking.contains_key(&fact) {
            return Vec::new();
        }
        let parts: &[Part] = match fact {
            Fact::Own if self.via == Via::Administration => &[Part::Record],
            Fact::Own => &[Part::Node],
            Fact::Link { .. } => &[Part::Near, Part::Node],
            Fact::Block { .. } | Fact::Held { .. } | Fact::Multicast { .. } => &[Part::Block],
        };
        let asking = Asking { far: self.own.number, lid: self.own.lid, ..Asking::default() };
        self.asking.insert(fact, asking);
        self.request_all(fact, parts, atlas)
    }

    /// Takes the end of a request for a part of a fact.
    pub(crate) fn handle(
        &mut self,
        (fact, part): (Fact, Part),
        (result, lossy): (Result<Message, Failure>, bool),
        atlas: &mut Atlas,
    ) -> Progress {
        let Some(asking) = self.asking.get_mut(&fact) else { return Progress::Done };
        asking.left -= 1;
        let answer = match result {
            Ok(message) if message.status().is_ok() => Ok(*message.mad()),
            Ok(message) => {
                Err(format!("{} is answered with {}", part.name(), said(message.status())))
            }
            // Level 2 of the protection hides everything, from the own port on.
            Err(failure) if fact == Fact::Own && self.m_key == 0 => Err(format!(
                "{} is not told, which an M_Key can do (see --mkey): {failure}",
                part.name()
            )),
            Err(failure) => Err(format!("{} is not told: {failure}", part.name())),
        };
        let mut more: Vec<Part> = Vec::new();
        match answer {
            Err(why) => match part {
                // Where packets get lost here and there, silence is asked again.
                _ if lossy && asking.again < MOST_AGAIN => {
                    asking.again += 1;
                    more.push(part);
                }
                // Ways can be walked without these.
                Part::Description | Part::Switch | Part::Near => {}
                _ => drop(asking.failed.get_or_insert(why)),
            },
            Ok(mad) => more = asking.take(part, &mad, self.via, atlas, fact),
        }
        if !more.is_empty() {
            return Progress::Waits(self.request_all(fact, &more, atlas));
        }
        if asking.left > 0 {
            return Progress::Waits(Vec::new());
        }
        let asking = self.asking.remove(&fact).expect("just seen");
        asking.finish(fact, self.via, atlas);
        Progress::Done
    }

    fn request_all(&mut self, fact: Fact, parts: &[Part], atlas: &Atlas) -> Vec<(Part, Request)> {
        let asking = self.asking.get_mut(&fact).expect("it is asked for");
        asking.left += parts.len();
        let asking = &*asking;
        let requests = parts.iter().map(|&part| {
            let request = match self.via {
                _ if matches!(fact, Fact::Held { .. }) => held(fact, atlas),
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
    /// Takes an answer; returns what has to be asked now that it is known.
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
                return self.parts_of(&info, atlas);
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
                let mut parts = self.parts_of(&info.node_info, atlas);
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
            (Part::Block, _) => match (fact, via) {
                (Fact::Held { node, block }, _) => {
                    let read: LinearForwardingBlock = attribute(mad);
                    atlas.held.insert((node, block), read.ports);
                }
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
                (Fact::Own | Fact::Link { .. }, _) => unreachable!("blocks are of tables"),
            },
        }
        Vec::new()
    }

    /// Returns what is to be asked of a node that was come to.
    fn parts_of(&mut self, info: &NodeInfo, atlas: &Atlas) -> Vec<Part> {
        let Some(kind) = info.node_type.kind() else {
            let what =
                format!("it says that it is of type {}, which means nothing", info.node_type.0);
            self.failed.get_or_insert(what);
            return Vec::new();
        };
        let known = atlas.find(info.node_guid).map(|number| atlas.node(number));
        if let Some(known) = known
            && (known.kind, known.ports) != (kind, info.num_ports)
        {
            let guid = info.node_guid;
            let what = format!("a second node has GUID {guid}: {} and {kind}", known.kind);
            self.failed.get_or_insert(what);
            return Vec::new();
        }
        let mut parts = Vec::new();
        let end = if kind.is_switch() { 0 } else { self.far };
        if known.is_none_or(|known| !known.ends.contains_key(&end)) {
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

    /// Returns a request to subnet administration.
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
            (Part::Switch, _) => {
                ask(own, &SwitchInfoRecord { lid, ..SwitchInfoRecord::zeroed() }, &[0])
            }
            (Part::Node | Part::Near | Part::Block | Part::Record | Part::Description, _) => {
                ask(own, &NodeRecord { lid, ..NodeRecord::zeroed() }, &[0])
            }
        }
    }

    /// Tells the atlas.
    fn finish(mut self, fact: Fact, via: Via, atlas: &mut Atlas) {
        let failed = self.failed.take();
        match (fact, failed) {
            (Fact::Block { .. } | Fact::Held { .. } | Fact::Multicast { .. }, None) => {}
            (
                Fact::Block { .. } | Fact::Held { .. } | Fact::Multicast { .. } | Fact::Own,
                Some(why),
            ) => {
                atlas.lacking.insert(fact, why);
            }
            (Fact::Link { node, port }, Some(why)) => {
                let why = match self.near.map(|near| near.port_state) {
                    Some(PortState::ACTIVE) | None => why,
                    Some(state) => format!("the port is in state {state}"),
                };
                atlas.node_mut(node).links.insert(port, Link::Nowhere(why));
            }
            (Fact::Own, None) => {
                if let Some((node, port)) = self.reach(fact, via, atlas) {
                    let port = if atlas.node(node).kind.is_switch() { 0 } else { port };
                    atlas.set_own((node, port));
                }
            }
            (Fact::Link { node, port }, None) => {
                if let Some((next, enters)) = self.reach(fact, via, atlas) {
                    // Where it does not tell, it answers at least.
                    let state = self.near.map_or(PortState::ACTIVE, |near| near.port_state);
                    atlas.node_mut(node).links.insert(port, Link::To(next, enters, state));
                    if via == Via::DirectedRoutes {
                        // A cable has two ends, and directed routes do not lead back through adapters.
                        let back = atlas.node_mut(next).links.entry(enters);
                        back.or_insert(Link::To(node, port, state));
                    }
                }
            }
        }
    }

    /// Adds the node that was come to, unless it is known; returns it and the port.
    fn reach(&self, fact: Fact, via: Via, atlas: &mut Atlas) -> Option<(NodeNumber, u8)> {
        let info = self.info.as_ref()?;
        let kind = info.node_type.kind()?;
        let number = match atlas.find(info.node_guid) {
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
            atlas.node_mut(number).ends.insert(at, end);
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
        | Fact::Multicast { node, .. }
        | Fact::Held { node, .. } => atlas.node(node).route.to_vec(),
    };
    let what = match (part, fact) {
        (Part::Near, Fact::Link { port, .. }) => (AttributeId::PORT_INFO, port.into()),
        (Part::Node | Part::Record, _) => (AttributeId::NODE_INFO, 0),
        (Part::Port | Part::Near, _) => (AttributeId::PORT_INFO, 0),
        (Part::Description, _) => (AttributeId::NODE_DESCRIPTION, 0),
        (Part::Switch, _) => (AttributeId::SWITCH_INFO, 0),
        (Part::Block, Fact::Block { block, .. }) => (AttributeId::LINEAR_FORWARDING, block.into()),
        (Part::Block, Fact::Multicast { block, position, .. }) => {
            (AttributeId::MULTICAST_FORWARDING, MulticastForwardingBlock::modifier(block, position))
        }
        (Part::Block, _) => unreachable!("blocks are of tables"),
    };
    let mad = smp::directed_request(Method::GET, TransactionId(0), what, &route);
    Request::new(Remote::directed(), mad)
}

/// Returns a request to a switch by its LID.
fn held(fact: Fact, atlas: &Atlas) -> Request {
    let Fact::Held { node, block } = fact else { unreachable!("another fact") };
    let what = (AttributeId::LINEAR_FORWARDING, block.into());
    let mad = smp::lid_request(Method::GET, TransactionId(0), what);
    Request::new(Remote::smi(atlas.end((node, 0)).map_or(0, |end| end.lid)), mad)
}

/// Returns a request for a record.
pub(crate) fn ask<R: Attribute>(own: &LinkPort, record: &R, components: &[u8]) -> Request {
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET, TransactionId(0));
    mad.set_attribute(record);
    mad.set_sa(&SaHeader { component_mask: ComponentMask::of(components), ..mad.sa() });
    let remote = Remote { sl: own.sm_sl, ..Remote::gsi(own.sm_lid) };
    Request::new(remote, mad)
}

/// Returns a status in words.
pub(crate) fn said(status: MadStatus) -> String {
    match status {
        MadStatus::SA_NO_RECORDS => "no records".to_owned(),
        MadStatus::SA_REQUEST_INVALID => "that the request is invalid".to_owned(),
        MadStatus::SA_TOO_MANY_RECORDS => "too many records".to_owned(),
        MadStatus::SA_INVALID_GID => "that the GID is invalid".to_owned(),
        status => format!("status {status}"),
    }
}

/// Returns the attribute of an answer: the requester has seen that it is what was asked for.
fn attribute<A: Attribute>(mad: &Mad) -> A {
    mad.attribute().expect("an answer holds what was asked for")
}
