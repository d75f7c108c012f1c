//! Records of nodes, ports, links and tables, as the SM has discovered or written them.
//!
//! Records are collected port by port, so that the SA can interrupt the collection of a large table. If the request
//! gives a LID, only the port with this LID is checked; otherwise all ports are checked. Clients that are not trusted
//! see only ports that share a partition with them.

use std::sync::Arc;

use ib_types::Guid;
use ib_wire::mad::sa::{
    GuidInfoRecord, LinearForwardingRecord, LinkRecord, MulticastForwardingRecord, NodeRecord,
    PKeyTableRecord, PortInfoRecord, SlToVlRecord, SmInfoRecord, SwitchInfoRecord,
    VlArbitrationRecord,
};
use ib_wire::mad::sm::{
    GuidInfo, LinearForwardingBlock, MulticastForwardingBlock, NodeInfo, PKeyTable, SlToVl, SmInfo,
    VlArbitration,
};
use ib_wire::mad::{AttributeId, Mad};

use super::query::{LID, Query};
use super::subnet::{PortSet, Subnet};
use super::view::{Records, SubnetView};
use crate::discovered_subnet::PortIndex;

/// Number of GUIDs in a GUIDInfo block.
const GUIDS: u8 = 8;

/// `AttributeModifier` bit of `PortInfoRecord` requests. If it is set, ports are selected that have at least the given
/// capabilities; otherwise, ports that have exactly these.
const CAPABILITY_MASK_MATCH: u32 = 1 << 31;

/// The data from which the records of a port are built.
struct Source<'a> {
    subnet: &'a Subnet,
    known: SubnetView<'a>,
    /// The requesting port; `None` if all ports are visible.
    viewer: Option<PortIndex>,
    query: Query<'a>,
    /// True if the capabilities in the request select ports with at least these bits; false if they select ports with
    /// exactly these bits.
    at_least: bool,
}

/// The functions that collect the records of one attribute.
#[derive(Clone, Copy, Debug)]
struct Kind {
    /// True if each port of a switch has a record; false if only port 0 of a switch has one.
    of_ports: bool,
    /// Function that appends the selected records of a port with the given LID, and returns the number of checked
    /// records. External switch ports have the LID of port 0.
    add: fn(&Source<'_>, PortIndex, u16, &mut Vec<u8>) -> usize,
    /// Function that converts the collected records into a response.
    answer: fn(Vec<u8>) -> Records,
}

impl Kind {
    fn of(id: AttributeId) -> Option<Self> {
        let ends = |add, answer| Some(Self { of_ports: false, add, answer });
        let ports = |add, answer| Some(Self { of_ports: true, add, answer });
        match id {
            AttributeId::NODE_RECORD => ends(node_record, Records::of::<NodeRecord>),
            AttributeId::PORT_INFO_RECORD => ports(port_info_record, Records::of::<PortInfoRecord>),
            AttributeId::SWITCH_INFO_RECORD => {
                ends(switch_info_record, Records::of::<SwitchInfoRecord>)
            }
            AttributeId::LINK_RECORD => ports(link_record, Records::of::<LinkRecord>),
            AttributeId::LINEAR_FORWARDING_RECORD => {
                ends(forwarding_records, Records::of::<LinearForwardingRecord>)
            }
            AttributeId::MULTICAST_FORWARDING_RECORD => {
                ends(multicast_records, Records::of::<MulticastForwardingRecord>)
            }
            AttributeId::GUID_INFO_RECORD => ends(guid_info_records, Records::of::<GuidInfoRecord>),
            AttributeId::P_KEY_TABLE_RECORD => ports(p_key_records, Records::of::<PKeyTableRecord>),
            AttributeId::SL_TO_VL_RECORD => ports(sl_to_vl_records, Records::of::<SlToVlRecord>),
            AttributeId::VL_ARBITRATION_RECORD => {
                ports(arbitration_records, Records::of::<VlArbitrationRecord>)
            }
            _ => None,
        }
    }
}

/// Search for the records that a request selects.
#[derive(Debug)]
pub(super) struct RecordQuery {
    subnet: Arc<Subnet>,
    request: Mad,
    viewer: Option<PortIndex>,
    kind: Kind,
    ends: PortSet,
    /// Index of the end port to check next.
    next: usize,
    /// If the end port to check next is port 0 of a switch: the number of the switch port to check next.
    port: u8,
    /// The search ends once it has found this many records.
    enough: usize,
    records: Vec<u8>,
}

impl RecordQuery {
    /// Starts the search for the records that a request selects; `None` if [`Kind`] does not have the requested
    /// attribute.
    pub(super) fn new(
        subnet: &Arc<Subnet>,
        request: &Mad,
        viewer: Option<PortIndex>,
        enough: usize,
    ) -> Option<Self> {
        let query = Query { mask: request.component_mask(), template: request.data() };
        let ends = match query.lid() {
            Some(lid) => PortSet::These(subnet.by_lid(lid).into_iter().collect()),
            None => PortSet::All,
        };
        Some(Self {
            subnet: Arc::clone(subnet),
            request: *request,
            viewer,
            kind: Kind::of(request.attribute_id())?,
            ends,
            next: 0,
            port: 0,
            enough,
            records: Vec::new(),
        })
    }

    /// Returns the number of end ports that remain to be checked.
    pub(super) fn left(&self) -> usize {
        self.ends.len(&self.subnet) - self.next
    }

    /// Returns how many bytes are allocated for the collected records.
    pub(super) const fn held(&self) -> usize {
        self.records.capacity()
    }

    /// Continues the search: checks about `most` records. Returns the number of records that were checked.
    pub(super) fn step(&mut self, known: SubnetView<'_>, most: usize) -> usize {
        let subnet = &*self.subnet;
        let query = Query { mask: self.request.component_mask(), template: self.request.data() };
        let source = Source {
            subnet,
            known,
            viewer: self.viewer,
            query: query.without(LID),
            at_least: self.request.attribute_modifier() & CAPABILITY_MASK_MATCH != 0,
        };
        let mut looked = 0;
        while self.next < self.ends.len(subnet) && looked < most {
            let end = self.ends.at(subnet, self.next);
            let node = subnet.found.node(end.node);
            let of_ports = self.kind.of_ports && node.kind.is_switch();
            let port_index = if of_ports { end.node.at(self.port) } else { end };
            looked += 1;
            if self.viewer.is_none_or(|viewer| subnet.share(viewer, port_index)) {
                let lid = subnet.lids(end).0;
                looked += (self.kind.add)(&source, port_index, lid, &mut self.records);
            }
            if of_ports && self.port < node.info.num_ports {
                self.port += 1;
            } else {
                (self.next, self.port) = (self.next + 1, 0);
            }
            if self.enough != usize::MAX && self.answer_has(self.enough) {
                self.next = self.ends.len(subnet);
            }
        }
        looked
    }

    fn answer_has(&self, records: usize) -> bool {
        (self.kind.answer)(Vec::new()).stride * records <= self.records.len()
    }

    /// Returns the collected records.
    pub(super) fn finish(self) -> Records {
        (self.kind.answer)(self.records)
    }
}

fn node_record(
    source: &Source<'_>,
    port_index: PortIndex,
    lid: u16,
    records: &mut Vec<u8>,
) -> usize {
    let found = &source.subnet.found;
    let node = found.node(port_index.node);
    let port_guid = found.port(port_index).guid;
    let record = NodeRecord {
        lid,
        node_info: NodeInfo { port_guid, local_port: port_index.port, ..node.info },
        node_description: node.description,
    };
    source.query.add(&record, records);
    1
}

fn port_info_record(
    source: &Source<'_>,
    port_index: PortIndex,
    lid: u16,
    records: &mut Vec<u8>,
) -> usize {
    /// Component mask bits of `CapabilityMask` and `CapabilityMask2`.
    const CAPABILITIES: u8 = 7;
    const CAPABILITIES2: u8 = 53;
    /// Component mask bit of the options. They select the format of speeds in the records, not the records.
    const OPTIONS: u8 = 2;
    let query = &source.query;
    let Some(info) = source.subnet.found.port(port_index).info.as_deref() else { return 1 };
    let wanted =
        PortInfoRecord::parse(query.template.first_chunk().expect("the template holds a record"));
    let options = if query.mask.has(OPTIONS) { wanted.options } else { 0 };
    let mut query = query.without(OPTIONS);
    if source.at_least {
        let wanted = &wanted.port_info;
        let has =
            !query.mask.has(CAPABILITIES) || info.capability_mask.contains(wanted.capability_mask);
        let has2 = !query.mask.has(CAPABILITIES2)
            || info.capability_mask2.contains(wanted.capability_mask2);
        if !(has && has2) {
            return 1;
        }
        query = query.without(CAPABILITIES).without(CAPABILITIES2);
    }
    let mut record =
        PortInfoRecord { lid, port: port_index.port, options, ..PortInfoRecord::zeroed() };
    record.port_info = *info;
    // The SA never returns the M_Key.
    record.port_info.m_key = 0;
    query.add(&record, records);
    1
}

fn switch_info_record(
    source: &Source<'_>,
    port_index: PortIndex,
    lid: u16,
    records: &mut Vec<u8>,
) -> usize {
    if let Some(switch_info) = source.subnet.found.node(port_index.node).switch {
        source.query.add(&SwitchInfoRecord { lid, switch_info }, records);
    }
    1
}

/// Adds the LinkRecord of a port. The record is visible if both ends of the link are visible to the client and share a
/// partition.
fn link_record(
    source: &Source<'_>,
    port_index: PortIndex,
    from_lid: u16,
    records: &mut Vec<u8>,
) -> usize {
    let subnet = source.subnet;
    let Some(peer) = subnet.found.port(port_index).peer else { return 1 };
    let Some(to_lid) = subnet.base_lid(peer) else { return 1 };
    let sees = |viewer| subnet.share(viewer, peer) && subnet.share(port_index, peer);
    if source.viewer.is_none_or(sees) {
        let record =
            LinkRecord { from_lid, from_port: port_index.port, to_port: peer.port, to_lid };
        source.query.add(&record, records);
    }
    1
}

fn forwarding_records(
    source: &Source<'_>,
    port_index: PortIndex,
    lid: u16,
    records: &mut Vec<u8>,
) -> usize {
    let guid = source.subnet.found.node(port_index.node).info.node_guid;
    let Some(table) = source.known.tables.get(&guid) else { return 0 };
    for block in 0..table.blocks() {
        let Some(ports) = table.block(block) else { continue };
        let entries = LinearForwardingBlock { ports: *ports };
        let record = LinearForwardingRecord { lid, block: block as u16, entries };
        source.query.add(&record, records);
    }
    table.blocks()
}

pub(super) fn manager_records(
    subnet: &Subnet,
    viewer: Option<PortIndex>,
    own: &SmInfo,
    query: &Query<'_>,
) -> Vec<u8> {
    let mut managers: Vec<(PortIndex, SmInfo)> =
        subnet.found.managers.iter().map(|(&port_index, &info)| (port_index, info)).collect();
    managers.extend(subnet.found.own.map(|port_index| (port_index, *own)));
    let mut records = Vec::new();
    for (port_index, info) in managers {
        let seen = viewer.is_none_or(|viewer| subnet.share(viewer, port_index));
        let Some(lid) = subnet.base_lid(port_index).filter(|_| seen) else { continue };
        // The SA never returns the SM_Key.
        let record = SmInfoRecord { lid, sm_info: SmInfo { sm_key: 0, ..info } };
        query.add(&record, &mut records);
    }
    records
}

fn guid_info_records(
    source: &Source<'_>,
    port_index: PortIndex,
    lid: u16,
    records: &mut Vec<u8>,
) -> usize {
    let port = source.subnet.found.port(port_index);
    let room = port.info.as_ref().map_or(0, |info| info.guid_cap);
    let blocks = room.div_ceil(GUIDS).max(1);
    for block in 0..blocks {
        let mut guids = [Guid::ZERO; GUIDS as usize];
        if block == 0 {
            guids[0] = port.guid;
        }
        let mut record = GuidInfoRecord { lid, block, ..GuidInfoRecord::zeroed() };
        record.guid_info = GuidInfo { guids };
        source.query.add(&record, records);
    }
    blocks.into()
}

/// Adds the P_Key table of a port as the SM last read or wrote it. At a switch port to a host, this is the table that
/// the switch enforces.
fn p_key_records(
    source: &Source<'_>,
    port_index: PortIndex,
    lid: u16,
    records: &mut Vec<u8>,
) -> usize {
    let blocks = &source.subnet.found.port(port_index).p_keys;
    for (block, &keys) in (0..).zip(blocks) {
        let table = PKeyTable { keys };
        source.query.add(&PKeyTableRecord { lid, block, port: port_index.port, table }, records);
    }
    blocks.len()
}

/// Adds the multicast forwarding tables as the SM has written them.
fn multicast_records(
    source: &Source<'_>,
    port_index: PortIndex,
    lid: u16,
    records: &mut Vec<u8>,
) -> usize {
    let tables = source.known.multicast;
    let guid = source.subnet.found.node(port_index.node).info.node_guid;
    let mut looked = 0;
    for at in tables.blocks(guid) {
        looked += 1;
        let Some(&masks) = tables.block(guid, at) else { continue };
        let (block, position) = at;
        let entries = MulticastForwardingBlock { masks };
        source.query.add(&MulticastForwardingRecord { lid, position, block, entries }, records);
    }
    looked
}

/// Adds the `SLtoVLMappingTableRecord`s of a port as the SM has written them. As in OpenSM, a table that the SM has not
/// written is all zeros.
fn sl_to_vl_records(source: &Source<'_>, out: PortIndex, lid: u16, records: &mut Vec<u8>) -> usize {
    /// Component mask bits of input port and output port.
    const INPUT: u8 = 1;
    const OUTPUT: u8 = 2;
    let node = source.subnet.found.node(out.node);
    let known = source.known.written.get(&(node.info.node_guid, out.port));
    // Nodes other than switches have only one table, and its record names no ports.
    let is_switch = node.kind.is_switch();
    let (last, output_port) = if is_switch { (node.info.num_ports, out.port) } else { (0, 0) };
    let query = source.query;
    let query = if is_switch { query } else { query.without(INPUT).without(OUTPUT) };
    for input_port in 0..=last {
        let table = known.and_then(|known| known.sl_to_vl.get(&input_port)).copied();
        let table = table.unwrap_or_else(SlToVl::zeroed);
        query.add(&SlToVlRecord { lid, input_port, output_port, table }, records);
    }
    usize::from(last) + 1
}

/// Adds the `VLArbitrationTableRecord`s of a port as the SM has written them. As in OpenSM, a table that the SM has not
/// written is all zeros.
fn arbitration_records(
    source: &Source<'_>,
    port_index: PortIndex,
    lid: u16,
    records: &mut Vec<u8>,
) -> usize {
    /// Component mask bit of the port number.
    const PORT: u8 = 1;
    let node = source.subnet.found.node(port_index.node);
    let known = source.known.written.get(&(node.info.node_guid, port_index.port));
    // At nodes other than switches, the LID in the query selects the port, and the port number in the query is ignored.
    let query = source.query;
    let query = if node.kind.is_switch() { query } else { query.without(PORT) };
    for block in 1..=4 {
        let table = known.and_then(|known| known.arbitration.get(&block)).copied();
        let table = table.unwrap_or_else(VlArbitration::zeroed);
        query.add(&VlArbitrationRecord { lid, port: port_index.port, block, table }, records);
    }
    4
}
