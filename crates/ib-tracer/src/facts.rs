//! Queries the facts that a trace depends on: nodes, links and blocks of tables (see [`Fact`]).
//!
//! Facts come from the nodes over directed routes, or from SA records. A fact may need several requests. For
//! example, a new node is queried for NodeInfo, PortInfo and NodeDescription.

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

use crate::fabric_model::{End, FabricModel, Link, TracedNode};
use crate::fabric_model::{Fact, FactSource};
use crate::path::NodeNumber;

/// A part of a fact that one request queries, such as the PortInfo of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Over directed routes: the NodeInfo of the node. From the SA: the LinkRecord, which contains the LID and the
    /// number of the port at the far end.
    Node,
    /// The SA's `NodeRecord` of the node.
    Record,
    /// PortInfo of the port with the LIDs of the node: port 0 of a switch, otherwise the arrival port.
    Port,
    /// NodeDescription.
    Description,
    /// SwitchInfo, which contains `LinearFDBTop`.
    Switch,
    /// PortInfo of the port at the near end of a link.
    Near,
    /// The block of a forwarding table or of a multicast table.
    Block,
    /// All LinkRecords of the SA. They are needed because OpenSM does not find the records of a switch by its
    /// LID if the LID is not a multiple of 2^LMC.
    Links,
}

impl Part {
    /// Returns the name of the requested part, for messages.
    const fn name(self) -> &'static str {
        match self {
            Self::Node | Self::Record => "NodeInfo",
            Self::Port => "PortInfo (an M_Key can hide it, see --mkey)",
            Self::Description => "NodeDescription",
            Self::Switch => "SwitchInfo",
            Self::Near => "PortInfo of the near port",
            Self::Block => "the table block",
            Self::Links => "the LinkRecords",
        }
    }
}

/// State of the queries for one [`Fact`], until the fact is stored in the model.
#[derive(Debug, Default)]
struct PendingFact {
    /// Number of outstanding requests for the fact.
    left: usize,
    /// The NodeInfo, if it was received.
    info: Option<NodeInfo>,
    port: Option<PortInfo>,
    description: Option<NodeDescription>,
    switch: Option<SwitchInfo>,
    near: Option<PortInfo>,
    /// Text about a contradiction in the response of the far node: NodeInfo and return path have different arrival
    /// ports.
    inconsistent: Option<String>,
    /// Number of the port at the far end of the link, or of the local port for [`Fact::Own`].
    far: u8,
    /// LID of the port at the far end of the link, or of the local port. Only used for SA queries.
    lid: u16,
    /// Reason why the fact cannot be read, if a request for it failed.
    failed: Option<String>,
    /// Number of requests for the fact that were repeated.
    retries: u32,
}

/// Maximum number of repeated requests for one fact, one LID or one combined-route probe, on a fabric that loses
/// packets.
pub(crate) const MAX_RETRIES: u32 = 8;

/// Queries facts from one source, and stores them in a model.
#[derive(Debug)]
pub(crate) struct Facts {
    via: FactSource,
    own: LinkPort,
    timing: Timing,
    m_key: u64,
    pending: BTreeMap<Fact, PendingFact>,
    /// By LID and port number of one end of a link: LID and port number of the other end. `None` until the SA has
    /// returned all LinkRecords.
    links: Option<BTreeMap<(u16, u8), (u16, u8)>>,
}

/// Progress of the requests for a fact, after a response.
#[derive(Debug)]
pub(crate) enum Progress {
    /// These requests have to be sent for the fact. If the list is empty, the fact still waits for responses.
    Waits(Vec<(Part, Request)>),
    /// The model now has the fact, or the reason why the fact could not be read.
    Done,
}

impl Facts {
    pub(crate) const fn new(via: FactSource, own: LinkPort, timing: Timing, m_key: u64) -> Self {
        Self { via, own, timing, m_key, pending: BTreeMap::new(), links: None }
    }

    /// Returns the requests for a fact. The list is empty if the requests are outstanding already.
    pub(crate) fn ask(&mut self, fact: Fact, model: &FabricModel) -> Vec<(Part, Request)> {
        if self.pending.contains_key(&fact) {
            return Vec::new();
        }
        let parts: &[Part] = match fact {
            Fact::Own if self.via == FactSource::SaRecords => &[Part::Record],
            Fact::Own => &[Part::Node],
            Fact::Link { .. } => &[Part::Near, Part::Node],
            Fact::Block { .. } | Fact::Reread { .. } | Fact::Multicast { .. } => &[Part::Block],
        };
        let pending =
            PendingFact { far: self.own.number, lid: self.own.lid, ..PendingFact::default() };
        self.pending.insert(fact, pending);
        self.request_all(fact, parts, model)
    }

    /// Processes the response or timeout of a request.
    pub(crate) fn handle(
        &mut self,
        (fact, part): (Fact, Part),
        (result, lossy): (Result<Message, Failure>, bool),
        model: &mut FabricModel,
    ) -> Progress {
        let Some(pending) = self.pending.get_mut(&fact) else { return Progress::Done };
        pending.left -= 1;
        if part == Part::Links
            && let Ok(message) = &result
        {
            let records = message.records::<LinkRecord>();
            let ends = records.map(|it| ((it.from_lid, it.from_port), (it.to_lid, it.to_port)));
            self.links = Some(ends.collect());
        }
        let is_unknown = matches!(part, Part::Node | Part::Links)
            && self.via == FactSource::SaRecords
            && result.as_ref().is_ok_and(|message| {
                part == Part::Links || message.status() == MadStatus::SA_NO_RECORDS
            });
        if is_unknown && let Fact::Link { node, port } = fact {
            let Some(links) = &self.links else {
                return Progress::Waits(self.request_all(fact, &[Part::Links], model));
            };
            let lid = model.end((node, port)).map_or(0, |end| end.lid);
            match links.get(&(lid, port)) {
                Some(&(lid, port)) => {
                    (pending.far, pending.lid) = (port, lid);
                    return Progress::Waits(self.request_all(fact, &[Part::Record], model));
                }
                None => {
                    let why = "the SA has no record of the link".to_owned();
                    pending.failed.get_or_insert(why);
                    return self.end(fact, model);
                }
            }
        }
        let answer = match result {
            Ok(message) if message.status().is_ok() => Ok(*message.mad()),
            Ok(message) => Err(format!(
                "the query of {} returned {}",
                part.name(),
                status_text(message.status())
            )),
            // M_Key protection level 2 hides all attributes, including those of the local port.
            Err(failure) if fact == Fact::Own && self.m_key == 0 => Err(format!(
                "the query of {} failed (an M_Key can be the cause, see --mkey): {failure}",
                part.name()
            )),
            Err(failure) => Err(format!("the query of {} failed: {failure}", part.name())),
        };
        let mut more: Vec<Part> = Vec::new();
        match answer {
            Err(why) => match part {
                // On a lossy fabric, requests without a response are repeated.
                _ if lossy && pending.retries < MAX_RETRIES => {
                    pending.retries += 1;
                    more.push(part);
                }
                // A path can be traced without NodeDescription, SwitchInfo and the state of the near port, so failed
                // requests for these parts are ignored.
                Part::Description | Part::Switch | Part::Near => {}
                _ => drop(pending.failed.get_or_insert(why)),
            },
            Ok(mad) => more = pending.take(part, &mad, self.via, model, fact),
        }
        if !more.is_empty() {
            return Progress::Waits(self.request_all(fact, &more, model));
        }
        self.end(fact, model)
    }

    /// Stores a fact in the model once no request for it is outstanding.
    fn end(&mut self, fact: Fact, model: &mut FabricModel) -> Progress {
        let is_complete = |pending: &mut PendingFact| pending.left == 0;
        match self.pending.get_mut(&fact).map(is_complete) {
            Some(true) => {
                let pending = self.pending.remove(&fact).expect("the fact was looked up above");
                pending.finish(fact, self.via, model);
                Progress::Done
            }
            Some(false) => Progress::Waits(Vec::new()),
            None => Progress::Done,
        }
    }

    fn request_all(
        &mut self,
        fact: Fact,
        parts: &[Part],
        model: &FabricModel,
    ) -> Vec<(Part, Request)> {
        let pending = self.pending.get_mut(&fact).expect("the fact is in `pending`");
        pending.left += parts.len();
        let pending = &*pending;
        let requests = parts.iter().map(|&part| {
            let request = match self.via {
                FactSource::DirectedRoutes => directed(fact, part, model),
                FactSource::SaRecords => pending.record(fact, part, (&self.own, model)),
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

impl PendingFact {
    /// Processes a response. Returns the parts of the fact that have to be requested next.
    fn take(
        &mut self,
        part: Part,
        mad: &Mad,
        via: FactSource,
        model: &mut FabricModel,
        fact: Fact,
    ) -> Vec<Part> {
        match (part, via) {
            (Part::Node, FactSource::DirectedRoutes) => {
                let info: NodeInfo = attribute(mad);
                self.info = Some(info);
                self.far = info.local_port;
                // The return path contains the true arrival port, because the response has taken this path.
                let arrival = mad.return_path()[usize::from(mad.hop_count() & 63)];
                if mad.hop_count() > 0 && arrival != 0 && arrival != info.local_port {
                    self.far = arrival;
                    self.inconsistent = Some(format!(
                        "its NodeInfo has LocalPortNum {}, but the return path has port {arrival}",
                        info.local_port
                    ));
                }
                return self.parts_of(&info, (fact, via), model);
            }
            (Part::Node, FactSource::SaRecords) => {
                let record: LinkRecord = attribute(mad);
                (self.far, self.lid) = (record.to_port, record.to_lid);
                return vec![Part::Record];
            }
            (Part::Record, _) => {
                let info = attribute::<NodeRecord>(mad);
                self.description = Some(info.node_description);
                self.info = Some(info.node_info);
                let mut parts = self.parts_of(&info.node_info, (fact, via), model);
                parts.retain(|part| *part != Part::Description);
                return parts;
            }
            (Part::Port, FactSource::DirectedRoutes) => self.port = Some(attribute(mad)),
            (Part::Port, FactSource::SaRecords) => {
                self.port = Some(attribute::<PortInfoRecord>(mad).port_info);
            }
            (Part::Near, FactSource::DirectedRoutes) => self.near = Some(attribute(mad)),
            (Part::Near, FactSource::SaRecords) => {
                self.near = Some(attribute::<PortInfoRecord>(mad).port_info);
            }
            (Part::Description, _) => self.description = Some(attribute(mad)),
            (Part::Switch, FactSource::DirectedRoutes) => self.switch = Some(attribute(mad)),
            (Part::Switch, FactSource::SaRecords) => {
                self.switch = Some(attribute::<SwitchInfoRecord>(mad).switch_info);
            }
            (Part::Links, _) => unreachable!("`handle` has processed the LinkRecords"),
            (Part::Block, _) => match (fact, via) {
                (Fact::Block { node, block }, FactSource::DirectedRoutes) => {
                    let read: LinearForwardingBlock = attribute(mad);
                    model.set_block(node, block, read.ports);
                }
                (Fact::Block { node, block }, FactSource::SaRecords) => {
                    let read: LinearForwardingRecord = attribute(mad);
                    model.set_block(node, block, read.entries.ports);
                }
                (Fact::Multicast { node, block, position }, FactSource::DirectedRoutes) => {
                    let read: MulticastForwardingBlock = attribute(mad);
                    model.masks.insert((node, block, position), read.masks);
                }
                (Fact::Multicast { node, block, position }, FactSource::SaRecords) => {
                    let read: MulticastForwardingRecord = attribute(mad);
                    model.masks.insert((node, block, position), read.entries.masks);
                }
                (Fact::Reread { node, block }, _) => {
                    let read: LinearForwardingBlock = attribute(mad);
                    if !model.is_block(node, block, &read.ports) {
                        model.changed.insert(node);
                    }
                }
                (Fact::Own | Fact::Link { .. }, _) => unreachable!("only tables have blocks"),
            },
        }
        Vec::new()
    }

    /// Returns the parts of a fact that have to be requested about the node at the far end of a link.
    fn parts_of(
        &mut self,
        info: &NodeInfo,
        (fact, via): (Fact, FactSource),
        model: &FabricModel,
    ) -> Vec<Part> {
        let Some(kind) = info.node_type.kind() else {
            let what = format!("its NodeInfo has node type {}: expected 1 to 3", info.node_type.0);
            self.failed.get_or_insert(what);
            return Vec::new();
        };
        let known = self.known(info, (fact, via, None), model).map(|number| model.node(number));
        let end = if kind.is_switch() { 0 } else { self.far };
        let mut parts = Vec::new();
        // Over directed routes, the LID of a switch is read even if the model has the switch. The LID distinguishes two
        // switches with the same GUID.
        let verifies = via == FactSource::DirectedRoutes && kind.is_switch();
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

    /// Returns the node at the far end of a link, if the model already has this node.
    ///
    /// A node of the model matches if its GUID, type and number of ports are those in `info`. Over directed routes, its
    /// LID, if known, must also be `lid`, and its cable at the arrival port, if known, must be this link.
    fn known(
        &self,
        info: &NodeInfo,
        (fact, via, lid): (Fact, FactSource, Option<u16>),
        model: &FabricModel,
    ) -> Option<NodeNumber> {
        let kind = info.node_type.kind()?;
        let is_same = |&number: &NodeNumber| {
            let node = model.node(number);
            if (node.kind, node.ports) != (kind, info.num_ports) {
                return false;
            }
            if via == FactSource::SaRecords {
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
        model.find(info.node_guid).iter().copied().find(is_same)
    }

    /// Returns an SA query for a part of a fact.
    fn record(&self, fact: Fact, part: Part, (own, model): (&LinkPort, &FabricModel)) -> Request {
        let lid = self.lid;
        let is_switch =
            self.info.is_some_and(|info| info.node_type.kind() == Some(NodeKind::Switch));
        let lid_of = |node: NodeNumber, port: u8| model.end((node, port)).map_or(0, |end| end.lid);
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

    /// Stores the fact in the model.
    fn finish(mut self, fact: Fact, via: FactSource, model: &mut FabricModel) {
        let failed = self.failed.take();
        match (fact, failed) {
            (Fact::Block { .. } | Fact::Multicast { .. }, None) => {}
            (Fact::Reread { node, block }, why) => {
                model.confirmed.insert((node, block));
                // If a table cannot be read again, it is treated as changed.
                if why.is_some() {
                    model.changed.insert(node);
                }
            }
            (Fact::Block { .. } | Fact::Multicast { .. } | Fact::Own, Some(why)) => {
                model.unreadable.insert(fact, why);
            }
            (Fact::Link { node, port }, Some(why)) => {
                let state = self.near.map(|near| near.port_state);
                let is_down = state.is_some_and(|state| state != PortState::ACTIVE);
                let why = match state.filter(|_| is_down) {
                    None => why,
                    Some(state) => format!("the port is in state {state}"),
                };
                model.node_mut(node).links.insert(port, Link::Nowhere { why, is_down });
            }
            (Fact::Own, None) => {
                if let Some((node, port)) = self.reach(fact, via, model) {
                    let port = if model.node(node).kind.is_switch() { 0 } else { port };
                    model.set_own((node, port));
                }
            }
            (Fact::Link { node, port }, None) => {
                if let Some((next, enters)) = self.reach(fact, via, model) {
                    // If the state of the near port is unknown, the link counts as Active, because the far node
                    // responds.
                    let state = self.near.map_or(PortState::ACTIVE, |near| near.port_state);
                    model.node_mut(node).links.insert(port, Link::To(next, enters, state));
                    if via == FactSource::DirectedRoutes {
                        // The link is stored in both directions. The far node may be an HCA, and a directed route
                        // cannot lead back through an HCA to query the other direction.
                        let back = model.node_mut(next).links.entry(enters);
                        back.or_insert(Link::To(node, port, state));
                    }
                }
            }
        }
    }

    /// Returns the node at the far end of the link, and the arrival port. Adds the node if the model does not have it.
    fn reach(
        &self,
        fact: Fact,
        via: FactSource,
        model: &mut FabricModel,
    ) -> Option<(NodeNumber, u8)> {
        let info = self.info.as_ref()?;
        let kind = info.node_type.kind()?;
        let lid = self.port.filter(|_| kind.is_switch()).map(|port| port.lid);
        let number = match self.known(info, (fact, via, lid), model) {
            Some(number) => number,
            None => {
                let route = match (via, fact) {
                    (FactSource::DirectedRoutes, Fact::Link { node, port }) => {
                        model.node(node).route.iter().copied().chain([port]).collect()
                    }
                    _ => Box::default(),
                };
                let text = self.description.as_ref().map(NodeDescription::as_text);
                model.add(TracedNode {
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
            model.set_end((number, at), end);
        }
        if let Some(what) = &self.inconsistent {
            model.inconsistent.insert(number, what.clone());
        }
        Some((number, self.far))
    }
}

/// Returns a request over a directed route.
fn directed(fact: Fact, part: Part, model: &FabricModel) -> Request {
    let route: Vec<u8> = match fact {
        Fact::Own => Vec::new(),
        Fact::Link { node, port } if part != Part::Near => {
            model.node(node).route.iter().copied().chain([port]).collect()
        }
        Fact::Link { node, .. }
        | Fact::Block { node, .. }
        | Fact::Reread { node, .. }
        | Fact::Multicast { node, .. } => model.node(node).route.to_vec(),
    };
    let what = match (part, fact) {
        (Part::Near, Fact::Link { port, .. }) => (AttributeId::PORT_INFO, port.into()),
        (Part::Node | Part::Record, _) => (AttributeId::NODE_INFO, 0),
        (Part::Port | Part::Near, _) => (AttributeId::PORT_INFO, 0),
        (Part::Description, _) => (AttributeId::NODE_DESCRIPTION, 0),
        (Part::Switch, _) => (AttributeId::SWITCH_INFO, 0),
        (Part::Block, Fact::Block { block, .. } | Fact::Reread { block, .. }) => {
            (AttributeId::LINEAR_FORWARDING, block.into())
        }
        (Part::Block, Fact::Multicast { block, position, .. }) => {
            (AttributeId::MULTICAST_FORWARDING, MulticastForwardingBlock::modifier(block, position))
        }
        (Part::Block | Part::Links, _) => {
            unreachable!("only tables have blocks, and only the SA has LinkRecords")
        }
    };
    let mad = smp::directed_request(Method::GET, TransactionId(0), what, &route);
    Request::new(Remote::directed(), mad)
}

/// Returns an SA query for the records that equal `record` in the given components. A component is given by its bit
/// number in the component mask.
pub(crate) fn ask<R: Attribute>(own: &LinkPort, record: &R, components: &[u8]) -> Request {
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET, TransactionId(0));
    mad.set_attribute(record);
    mad.set_sa(&SaHeader { component_mask: ComponentMask::of(components), ..mad.sa() });
    let remote = Remote { sl: own.sm_sl, ..Remote::gsi(own.sm_lid) };
    Request::new(remote, mad)
}

/// Returns the text for a MAD status, for messages.
pub(crate) fn status_text(status: MadStatus) -> String {
    match status {
        MadStatus::SA_NO_RECORDS => "no records".to_owned(),
        MadStatus::SA_REQUEST_INVALID => "\"request invalid\"".to_owned(),
        MadStatus::SA_TOO_MANY_RECORDS => "too many records".to_owned(),
        MadStatus::SA_INVALID_GID => "\"invalid GID\"".to_owned(),
        status => format!("status {status}"),
    }
}

/// Returns the attribute of a response. The requester has checked that it is the requested attribute.
fn attribute<A: Attribute>(mad: &Mad) -> A {
    mad.attribute().expect("the requester checked the attribute of the response")
}
