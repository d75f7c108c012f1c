//! Records that say what a sweep has found and written.
//!
//! Each function returns the records that a request selects, one behind the other at the distance
//! that the record has in tables. Records whose key the request gives are found by it; of the others
//! all are looked at.

use ib_types::Guid;
use ib_wire::mad::sa::{
    ComponentMask, GuidInfoRecord, LinearForwardingRecord, LinkRecord, MulticastForwardingRecord,
    NodeRecord, PKeyTableRecord, PortInfoRecord, Record, SlToVlRecord, SmInfoRecord,
    SwitchInfoRecord, VlArbitrationRecord, matches,
};
use ib_wire::mad::sm::{
    CapabilityMask, GuidInfo, LinearForwardingBlock, MulticastForwardingBlock, NodeInfo, PKeyTable,
    SlToVl, SmInfo, VlArbitration,
};

use super::subnet::Subnet;
use crate::found::{NodeIndex, Place};
use crate::multicast::MulticastTables;
use crate::tables::{Tables, WrittenTables};

/// What a request selects: the components that it gives, and their values.
#[derive(Clone, Copy)]
pub(super) struct Query<'a> {
    pub(super) mask: ComponentMask,
    pub(super) template: &'a [u8],
}

/// The GUIDs of a block.
const GUIDS: u8 = 8;

/// The bit of the mask that all records of ports and switches have for the LID.
const LID: u8 = 0;

impl Query<'_> {
    /// Returns the LID at the start of the template, when it is given.
    fn lid(&self) -> Option<u16> {
        let bytes = self.template.first_chunk::<2>().expect("a template has its length");
        self.mask.has(LID).then(|| u16::from_be_bytes(*bytes))
    }

    pub(super) const fn without(self, bit: u8) -> Self {
        Self { mask: ComponentMask(self.mask.0 & !(1 << bit)), ..self }
    }

    /// Returns true when a record is selected.
    pub(super) fn selects<R: Record>(&self, record: &R) -> bool {
        matches(self.mask, R::COMPONENTS, self.template, &record.to_record())
    }

    /// Appends a record when it is selected.
    pub(super) fn add<R: Record>(&self, record: &R, to: &mut Vec<u8>) {
        let bytes = record.to_record();
        if matches(self.mask, R::COMPONENTS, self.template, &bytes) {
            to.extend(bytes);
        }
    }
}

/// Returns the nodes that a query by LID is about: the one that has the LID, or all.
fn nodes(subnet: &Subnet, query: &Query<'_>) -> Vec<Place> {
    match query.lid() {
        Some(lid) => subnet.by_lid(lid).into_iter().collect(),
        None => subnet.end_ports().collect(),
    }
}

fn switches(subnet: &Subnet, query: &Query<'_>) -> Vec<(NodeIndex, u16)> {
    let places = nodes(subnet, query).into_iter();
    let switches = places.filter(|place| subnet.found.node(place.node).kind.is_switch());
    switches.map(|place| (place.node, subnet.lids(place).0)).collect()
}

/// Returns all ports of the nodes that a query by LID is about, with the LID of each.
fn ports(subnet: &Subnet, query: &Query<'_>) -> Vec<(Place, u16)> {
    let mut ports = Vec::new();
    for place in nodes(subnet, query) {
        let (node, lid) = (subnet.found.node(place.node), subnet.lids(place).0);
        if node.kind.is_switch() {
            ports.extend((0..=node.info.num_ports).map(|number| (place.node.at(number), lid)));
        } else {
            ports.push((place, lid));
        }
    }
    ports
}

pub(super) fn node_records(subnet: &Subnet, query: &Query<'_>) -> Vec<u8> {
    let mut records = Vec::new();
    for place in nodes(subnet, query) {
        let node = subnet.found.node(place.node);
        let record = NodeRecord {
            lid: subnet.lids(place).0,
            node_info: NodeInfo {
                port_guid: subnet.found.port(place).guid,
                local_port: place.port,
                ..node.info
            },
            node_description: node.description,
        };
        query.without(LID).add(&record, &mut records);
    }
    records
}

pub(super) fn port_info_records(subnet: &Subnet, query: &Query<'_>) -> Vec<u8> {
    /// The bit of `CapabilityMask`, which selects ports that have at least these capabilities.
    const CAPABILITIES: u8 = 7;
    /// How speeds are to be shown, which selects nothing.
    const OPTIONS: u8 = 2;
    let wanted = PortInfoRecord::parse(query.template.first_chunk().expect("68 bytes"));
    let options = if query.mask.has(OPTIONS) { wanted.options } else { 0 };
    let wanted: Option<CapabilityMask> =
        query.mask.has(CAPABILITIES).then_some(wanted.port_info.capability_mask);
    let rest = query.without(LID).without(CAPABILITIES).without(OPTIONS);
    let mut records = Vec::new();
    for (place, lid) in ports(subnet, query) {
        let Some(info) = subnet.found.port(place).info.as_deref() else { continue };
        if wanted.is_some_and(|wanted| !info.capability_mask.contains(wanted)) {
            continue;
        }
        let mut record =
            PortInfoRecord { lid, port: place.port, options, ..PortInfoRecord::zeroed() };
        record.port_info = *info;
        // The key is nobody's business.
        record.port_info.m_key = 0;
        rest.add(&record, &mut records);
    }
    records
}

pub(super) fn switch_info_records(subnet: &Subnet, query: &Query<'_>) -> Vec<u8> {
    let mut records = Vec::new();
    for (node, lid) in switches(subnet, query) {
        if let Some(switch_info) = subnet.found.node(node).switch {
            query.without(LID).add(&SwitchInfoRecord { lid, switch_info }, &mut records);
        }
    }
    records
}

pub(super) fn link_records(subnet: &Subnet, query: &Query<'_>) -> Vec<u8> {
    let mut records = Vec::new();
    for (place, from_lid) in ports(subnet, query) {
        let Some(peer) = subnet.found.port(place).peer else { continue };
        let Some(to_lid) = subnet.base_lid(peer) else { continue };
        let record = LinkRecord { from_lid, from_port: place.port, to_port: peer.port, to_lid };
        query.without(LID).add(&record, &mut records);
    }
    records
}

pub(super) fn forwarding_records(subnet: &Subnet, tables: &Tables, query: &Query<'_>) -> Vec<u8> {
    let mut records = Vec::new();
    for (node, lid) in switches(subnet, query) {
        let Some(table) = tables.get(&subnet.found.node(node).info.node_guid) else { continue };
        for block in 0..table.blocks() {
            let Some(ports) = table.block(block) else { continue };
            let entries = LinearForwardingBlock { ports: *ports };
            let record = LinearForwardingRecord { lid, block: block as u16, entries };
            query.without(LID).add(&record, &mut records);
        }
    }
    records
}

pub(super) fn manager_records(subnet: &Subnet, own: &SmInfo, query: &Query<'_>) -> Vec<u8> {
    let mut managers: Vec<(Place, SmInfo)> =
        subnet.found.managers.iter().map(|(&place, &info)| (place, info)).collect();
    managers.extend(subnet.found.own.map(|place| (place, *own)));
    let mut records = Vec::new();
    for (place, info) in managers {
        let Some(lid) = subnet.base_lid(place) else { continue };
        // Who asks is not known to be trusted.
        let record = SmInfoRecord { lid, sm_info: SmInfo { sm_key: 0, ..info } };
        query.add(&record, &mut records);
    }
    records
}

pub(super) fn guid_info_records(subnet: &Subnet, query: &Query<'_>) -> Vec<u8> {
    let mut records = Vec::new();
    for place in nodes(subnet, query) {
        let port = subnet.found.port(place);
        let room = port.info.as_ref().map_or(0, |info| info.guid_cap);
        for block in 0..room.div_ceil(GUIDS).max(1) {
            let mut guids = [Guid::ZERO; GUIDS as usize];
            if block == 0 {
                guids[0] = port.guid;
            }
            let lid = subnet.lids(place).0;
            let mut record = GuidInfoRecord { lid, block, ..GuidInfoRecord::zeroed() };
            record.guid_info = GuidInfo { guids };
            query.without(LID).add(&record, &mut records);
        }
    }
    records
}

/// The P_Keys of end ports, and those that switches let pass where something is plugged in, as they
/// were read and written.
pub(super) fn p_key_records(subnet: &Subnet, query: &Query<'_>) -> Vec<u8> {
    let mut records = Vec::new();
    for (place, lid) in ports(subnet, query) {
        for (block, &keys) in (0..).zip(&subnet.found.port(place).p_keys) {
            let table = PKeyTable { keys };
            let record = PKeyTableRecord { lid, block, port: place.port, table };
            query.without(LID).add(&record, &mut records);
        }
    }
    records
}

/// The multicast tables as they were written.
pub(super) fn multicast_records(
    subnet: &Subnet,
    tables: &MulticastTables,
    query: &Query<'_>,
) -> Vec<u8> {
    let mut records = Vec::new();
    for (node, lid) in switches(subnet, query) {
        let guid = subnet.found.node(node).info.node_guid;
        for at in tables.blocks(guid) {
            let Some(&masks) = tables.block(guid, at) else { continue };
            let (block, position) = at;
            let entries = MulticastForwardingBlock { masks };
            let record = MulticastForwardingRecord { lid, position, block, entries };
            query.without(LID).add(&record, &mut records);
        }
    }
    records
}

/// The lanes of each service level, on every way through every switch, as they were written; zeros where
/// nobody has, as OpenSM answers.
pub(super) fn sl_to_vl_records(
    subnet: &Subnet,
    written: &WrittenTables,
    query: &Query<'_>,
) -> Vec<u8> {
    /// The bits of the ports that packets come in and leave by.
    const INPUT: u8 = 1;
    const OUTPUT: u8 = 2;
    let mut records = Vec::new();
    for (out, lid) in ports(subnet, query) {
        let node = subnet.found.node(out.node);
        let known = written.get(&(node.info.node_guid, out.port));
        // Of what is no switch there is one table, and it names no ports.
        let is_switch = node.kind.is_switch();
        let (inputs, output_port) =
            if is_switch { (0..=node.info.num_ports, out.port) } else { (0..=0, 0) };
        let query = query.without(LID);
        let query = if is_switch { query } else { query.without(INPUT).without(OUTPUT) };
        for input_port in inputs {
            let table = known.and_then(|known| known.sl_to_vl.get(&input_port)).copied();
            let table = table.unwrap_or_else(SlToVl::zeroed);
            let record = SlToVlRecord { lid, input_port, output_port, table };
            query.add(&record, &mut records);
        }
    }
    records
}

/// The lanes' turns as they were written; zeros where nobody has, as OpenSM answers.
pub(super) fn arbitration_records(
    subnet: &Subnet,
    written: &WrittenTables,
    query: &Query<'_>,
) -> Vec<u8> {
    /// The bit of the port's number.
    const PORT: u8 = 1;
    let mut records = Vec::new();
    for (place, lid) in ports(subnet, query) {
        let node = subnet.found.node(place.node);
        let known = written.get(&(node.info.node_guid, place.port));
        // Of what is no switch the LID alone tells the port, whatever number is given.
        let query = if node.kind.is_switch() {
            query.without(LID)
        } else {
            query.without(LID).without(PORT)
        };
        for block in 1..=4 {
            let table = known.and_then(|known| known.arbitration.get(&block)).copied();
            let table = table.unwrap_or_else(VlArbitration::zeroed);
            let record = VlArbitrationRecord { lid, port: place.port, block, table };
            query.add(&record, &mut records);
        }
    }
    records
}
