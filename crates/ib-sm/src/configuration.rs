//! The writes by which the SM programs a plan.
//!
//! The SM writes in passes. A pass starts when all requests of the preceding pass have completed.
//!
//! 1. Ports get LIDs and settings, and leave the state Init. LFT entries that could form a cycle of old and new entries
//!    are set to "no path".
//! 2. The forwarding tables are written.
//! 3. Switches get `LinearFDBTop` and the packet lifetime.
//! 4. Ports become Active.
//! 5. Written LFT blocks are read back at switches whose LFT once differed from the written blocks.
//!
//! If no LFT entry needs to be set to "no path", passes 1 and 2 are combined.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ib_mad::{Failure, Message};
use ib_routing::{NO_PATH, SwitchId};
use ib_types::{Guid, PKey};
use ib_wire::mad::sm::{
    LinearForwardingBlock, MulticastForwardingBlock, PKeyTable, PortInfo, PortState, SwitchInfo,
};
use ib_wire::mad::smp;
use ib_wire::mad::{Attribute, AttributeId, Mad, Method, TransactionId};

use crate::discovered_subnet::{DiscoveredSubnet, NodeIndex, PortIndex};
use crate::fault::{Fault, PortName, Reason};
use crate::managed::Context;
use crate::multicast::{self, Entries};
use crate::plan::Plan;
use crate::tables::{SwitchTable, Tables};

mod cleared_entries;
mod enforce;
mod settings;
mod vls;
mod write;

pub(crate) use write::Write;
pub use write::Written;

const BLOCK: usize = LinearForwardingBlock::LIDS as usize;

/// The progress of writing a plan to the subnet.
#[derive(Debug)]
pub(crate) struct Configuration {
    plan: Arc<Plan>,
    passes: std::collections::VecDeque<Vec<Write>>,
    /// Index of the next write in the current pass, `passes[0]`.
    next: usize,
    waiting: usize,
    /// Row of each switch in the tables of the plan.
    rows: BTreeMap<NodeIndex, SwitchId>,
    /// For each switch, the LIDs whose LFT entries pass 1 sets to "no path", in ascending order.
    cleared_entries: BTreeMap<NodeIndex, Vec<u16>>,
    /// For each switch, the planned entries of its multicast table.
    trees: BTreeMap<NodeIndex, Entries>,
    written: Written,
    faults: Vec<Fault>,
    /// Switches that ignored a write: an LFT block that was read back differs from the written block.
    ignored: BTreeSet<Guid>,
    /// True if a switch ignored a write, or a write failed. Multicast blocks that a switch refused are not counted as
    /// failed.
    incomplete: bool,
}

impl Configuration {
    /// Collects the writes for a plan.
    pub(crate) fn new(plan: Arc<Plan>, context: &Context<'_>) -> Self {
        let found = &*context.found;
        let mut rows = BTreeMap::new();
        for (row, guid) in plan.switches.iter().enumerate() {
            // A cached plan may have rows for switches that have left the subnet.
            rows.extend(found.find(*guid).map(|node| (node, SwitchId(row as u16))));
        }
        let mut this = Self {
            plan,
            passes: std::collections::VecDeque::new(),
            next: 0,
            waiting: 0,
            rows,
            cleared_entries: BTreeMap::new(),
            trees: BTreeMap::new(),
            written: Written::default(),
            faults: Vec::new(),
            ignored: BTreeSet::new(),
            incomplete: false,
        };
        this.trees = trees(context);
        this.cleared_entries = cleared_entries::find(&this.plan, &this.rows, found, context.tables);
        let mut first = this.port_work(context);
        first.extend(this.p_key_work(context));
        first.extend(enforce::work(context, &mut this.faults));
        first.extend(vls::work(context, this.is_layered()));
        let cleared_entries = this.clear_work();
        let mut tables = this.table_work(context);
        let read_back = read_back(&tables, context);
        tables.extend(this.multicast_work(context));
        if cleared_entries.is_empty() {
            first.extend(tables);
            this.passes.push_back(first);
        } else {
            first.extend(cleared_entries);
            this.passes.push_back(first);
            this.passes.push_back(tables);
        }
        this.passes.push_back(this.switch_work(context));
        this.passes.push_back(this.activation_work(context));
        this.passes.push_back(read_back);
        this
    }

    /// Collects the writes of multicast tables, after members have joined or left groups.
    pub(crate) fn for_groups(plan: Arc<Plan>, context: &Context<'_>) -> Self {
        let mut this = Self {
            plan,
            passes: std::collections::VecDeque::new(),
            next: 0,
            waiting: 0,
            rows: BTreeMap::new(),
            cleared_entries: BTreeMap::new(),
            trees: trees(context),
            written: Written::default(),
            faults: Vec::new(),
            ignored: BTreeSet::new(),
            incomplete: false,
        };
        this.passes.push_back(this.multicast_work(context));
        this
    }

    /// Returns true if the routes use several service levels.
    fn is_layered(&self) -> bool {
        !self.plan.routing.layers.is_uniform()
    }

    /// Returns the next write, with its request.
    pub(crate) fn next(&mut self, context: &Context<'_>) -> Option<(Write, Mad)> {
        loop {
            let pass = self.passes.front()?;
            if let Some(&work) = pass.get(self.next) {
                self.next += 1;
                if let Some(mad) = self.request(work, context) {
                    self.waiting += 1;
                    return Some((work, mad));
                }
            } else if self.waiting > 0 {
                return None;
            } else {
                self.passes.pop_front();
                self.next = 0;
            }
        }
    }

    /// Returns true if all writes have completed or failed.
    pub(crate) fn is_done(&self) -> bool {
        self.waiting == 0
            && self
                .passes
                .iter()
                .enumerate()
                .all(|(index, pass)| pass.len() <= if index == 0 { self.next } else { 0 })
    }

    /// Returns the plan, the counts of writes, the faults, and the field `incomplete`.
    pub(crate) fn finish(self) -> (Arc<Plan>, Written, Vec<Fault>, bool) {
        (self.plan, self.written, self.faults, self.incomplete)
    }

    /// Processes the response to a write, or its timeout.
    pub(crate) fn handle(
        &mut self,
        work: Write,
        result: Result<Message, Failure>,
        context: &mut Context<'_>,
    ) {
        self.waiting -= 1;
        let mad = match result {
            Ok(message) if message.status().is_ok() => *message.mad(),
            Ok(message) => return self.failed(work, Reason::Status(message.status()), context),
            Err(failure) => return self.failed(work, Reason::Failure(failure), context),
        };
        match work {
            Write::Port(port_index) | Write::Activate(port_index) => {
                self.written.ports += 1;
                if matches!(work, Write::Port(_)) && context.found.is_end_port(port_index) {
                    context.registered.insert(context.found.port(port_index).guid);
                }
                let info = mad
                    .attribute::<PortInfo>()
                    .expect("the requester checked the attribute of the response");
                context.found.port_mut(port_index).info = Some(Box::new(info));
            }
            Write::Switch(node) => {
                self.written.switches += 1;
                context.found.node_mut(node).switch = mad.attribute();
                let guid = context.found.node(node).info.node_guid;
                context.tables.entry(guid).or_default().top = self.plan.max_lid;
            }
            Write::Clear { node, block } => self.table_written(node, block, true, context),
            Write::Lft { node, block } => self.table_written(node, block, false, context),
            Write::ReadBack { node, block } => self.table_read(node, block, &mad, context),
            Write::PKeys { port_index, block } => {
                self.written.p_key_blocks += 1;
                let read = mad
                    .attribute::<PKeyTable>()
                    .expect("the requester checked the attribute of the response");
                let blocks = &mut context.found.port_mut(port_index).p_keys;
                let room = blocks.len().max(usize::from(block) + 1);
                blocks.resize(room, [PKey(0); 32]);
                blocks[usize::from(block)] = read.keys;
            }
            Write::SlToVl { port_index, input } => {
                self.written.sl_to_vl_tables += 1;
                vls::tables_of(port_index, context)
                    .sl_to_vl
                    .extend(mad.attribute().map(|it| (input, it)));
            }
            Write::Arbitration { port_index, block } => {
                self.written.arbitration_blocks += 1;
                let read = mad.attribute().map(|it| (block, it));
                vls::tables_of(port_index, context).arbitration.extend(read);
            }
            Write::Mft { node, block, position } => {
                self.written.mft_blocks += 1;
                let guid = context.found.node(node).info.node_guid;
                let at = (block, position);
                context.multicast.set(guid, at, multicast::block(self.trees.get(&node), at));
            }
        }
    }

    fn table_written(
        &mut self,
        node: NodeIndex,
        block: u16,
        clear: bool,
        context: &mut Context<'_>,
    ) {
        let guid = context.found.node(node).info.node_guid;
        let wanted =
            if clear { self.cleared(node, block, context) } else { self.wanted(node, block) };
        let table = context.tables.entry(guid).or_default();
        let before = table.block(block.into());
        let changed = (0..BLOCK).filter(|&at| before.is_none_or(|old| old[at] != wanted[at]));
        let changed = changed.count() as u64;
        self.written.lft_blocks += 1;
        if clear {
            self.written.cleared += changed;
        } else {
            self.written.lft_entries += changed;
        }
        table.set(block.into(), &wanted);
    }

    /// Compares an LFT block that was read back from a switch with the written block.
    fn table_read(&mut self, node: NodeIndex, block: u16, mad: &Mad, context: &mut Context<'_>) {
        let read: LinearForwardingBlock =
            mad.attribute().expect("the requester checked the attribute of the response");
        let found = &*context.found;
        let guid = found.node(node).info.node_guid;
        context.tables.entry(guid).or_default().set(block.into(), &read.ports);
        if read.ports == self.wanted(node, block) {
            context.read_back.remove(&guid);
        } else {
            let at = PortName { port: None, ..found.name(node.at(0)) };
            self.faults.push(Fault::TableChanged { at, block });
            self.ignored.insert(guid);
            self.incomplete = true;
        }
        context.read_back.extend(&self.ignored);
    }

    fn failed(&mut self, work: Write, reason: Reason, context: &mut Context<'_>) {
        // If a switch refuses a multicast block, it would refuse the block again, so the write is not repeated.
        let refused = matches!((work, reason), (Write::Mft { .. }, Reason::Status(_)));
        self.incomplete |= !refused;
        let found = &*context.found;
        let node_name = |node: NodeIndex| PortName { port: None, ..found.name(node.at(0)) };
        let (at, attribute) = match work {
            Write::Port(port_index) | Write::Activate(port_index) => {
                (found.name(port_index), AttributeId::PORT_INFO)
            }
            Write::Switch(node) => (node_name(node), AttributeId::SWITCH_INFO),
            Write::Clear { node, block }
            | Write::Lft { node, block }
            | Write::ReadBack { node, block } => {
                let guid = found.node(node).info.node_guid;
                context.tables.entry(guid).or_default().forget(block.into());
                (node_name(node), AttributeId::LINEAR_FORWARDING)
            }
            Write::PKeys { port_index, .. } => (found.name(port_index), AttributeId::P_KEY_TABLE),
            Write::SlToVl { port_index, .. } => (found.name(port_index), AttributeId::SL_TO_VL),
            Write::Arbitration { port_index, .. } => {
                (found.name(port_index), AttributeId::VL_ARBITRATION)
            }
            Write::Mft { node, block, position } => {
                let guid = found.node(node).info.node_guid;
                context.multicast.forget(guid, (block, position));
                (node_name(node), AttributeId::MULTICAST_FORWARDING)
            }
        };
        let set = !matches!(work, Write::ReadBack { .. });
        self.faults.push(Fault::NoAnswer { at, attribute, set, reason });
        if matches!(work, Write::Clear { .. }) {
            // The LFT entries that this write should have cleared may still be set. The later passes rely on cleared
            // entries, so they are dropped.
            self.passes.truncate(1);
        }
    }

    /// Returns the request of a write; `None` if the node already has the planned values.
    fn request(&self, work: Write, context: &Context<'_>) -> Option<Mad> {
        let found = &*context.found;
        match work {
            Write::Port(port_index) => {
                let wanted = settings::wanted(port_index, &self.plan, context)?;
                Some(set(found.route(port_index), port_index.port.into(), &wanted))
            }
            Write::Activate(port_index) => {
                let mut info = **found.port(port_index).info.as_ref()?;
                if info.port_state != PortState::ARMED {
                    return None;
                }
                settings::keep(&mut info);
                info.port_state = PortState::ACTIVE;
                Some(set(found.route(port_index), port_index.port.into(), &info))
            }
            Write::Switch(node) => {
                Some(set(&found.node(node).route, 0, &self.switch_info(node, context)?))
            }
            Write::Clear { node, block } => {
                let block_of = LinearForwardingBlock { ports: self.cleared(node, block, context) };
                Some(set(&found.node(node).route, block.into(), &block_of))
            }
            Write::Lft { node, block } => {
                let wanted = LinearForwardingBlock { ports: self.wanted(node, block) };
                Some(set(&found.node(node).route, block.into(), &wanted))
            }
            Write::ReadBack { node, block } => {
                let what = (AttributeId::LINEAR_FORWARDING, block.into());
                let route = &found.node(node).route;
                Some(smp::directed_request(Method::GET, TransactionId(0), what, route))
            }
            Write::PKeys { port_index, block } => {
                let tables = if found.is_end_port(port_index) {
                    settings::p_keys(port_index, context)?.blocks
                } else {
                    enforce::keys(port_index, context)?
                };
                let table = PKeyTable { keys: *tables.get(usize::from(block))? };
                Some(set(found.route(port_index), found.p_key_modifier(port_index, block), &table))
            }
            Write::SlToVl { port_index, input } => {
                let modifier = vls::modifier(port_index, input, found);
                let wanted =
                    crate::vls::sl_to_vl(port_index, context.config, found, self.is_layered())?;
                Some(set(found.route(port_index), modifier, &wanted))
            }
            Write::Arbitration { port_index, block } => {
                let mut blocks = vls::arbitration(port_index, context)?.into_iter();
                let (_, wanted) = blocks.find(|&(number, _)| number == block)?;
                let port =
                    if found.node(port_index.node).kind.is_switch() { port_index.port } else { 0 };
                let modifier = u32::from(block) << 16 | u32::from(port);
                Some(set(found.route(port_index), modifier, &wanted))
            }
            Write::Mft { node, block, position } => {
                let masks = multicast::block(self.trees.get(&node), (block, position));
                let modifier = MulticastForwardingBlock::modifier(block, position);
                let wanted = MulticastForwardingBlock { masks };
                Some(set(&found.node(node).route, modifier, &wanted))
            }
        }
    }

    fn port_work(&self, context: &Context<'_>) -> Vec<Write> {
        let ports = all_ports(context.found);
        let changes = ports.filter(|&at| settings::wanted(at, &self.plan, context).is_some());
        changes.map(Write::Port).collect()
    }

    /// Returns writes for the P_Key blocks that differ from those in the ports.
    fn p_key_work(&mut self, context: &Context<'_>) -> Vec<Write> {
        let mut work = Vec::new();
        for port_index in context.found.end_ports() {
            let Some(wanted) = settings::p_keys(port_index, context) else { continue };
            let known = &context.found.port(port_index).p_keys;
            if wanted.left_out > 0 {
                let (room, left_out) = (known.len() * 32, wanted.left_out);
                let what = format!(
                    "has room for {room} P_Keys; {left_out} further P_Keys are configured but not written"
                );
                self.faults.push(Fault::Inconsistent { at: context.found.name(port_index), what });
            }
            for (block, (wanted, known)) in (0..).zip(wanted.blocks.iter().zip(known)) {
                if wanted != known {
                    work.push(Write::PKeys { port_index, block });
                }
            }
        }
        work
    }

    fn activation_work(&self, context: &Context<'_>) -> Vec<Write> {
        let found = &*context.found;
        all_ports(found)
            .filter(|&at| settings::may_activate(at, found))
            .map(Write::Activate)
            .collect()
    }

    fn switch_work(&self, context: &Context<'_>) -> Vec<Write> {
        let nodes = self.rows.keys().copied();
        nodes.filter(|&node| self.switch_info(node, context).is_some()).map(Write::Switch).collect()
    }

    /// Returns the SwitchInfo to write; `None` if the switch already has it.
    fn switch_info(&self, node: NodeIndex, context: &Context<'_>) -> Option<SwitchInfo> {
        let info = context.found.node(node).switch?;
        let wanted = SwitchInfo {
            linear_fdb_top: self.plan.max_lid,
            life_time: context.config.packet_life_time,
            ..info
        };
        // If the switch has set `PortStateChange`, SwitchInfo is always written, because a write of 1 clears this flag.
        (wanted != info || info.port_state_change).then_some(wanted)
    }

    fn clear_work(&self) -> Vec<Write> {
        let mut work = Vec::new();
        for (&node, lids) in &self.cleared_entries {
            let mut blocks: Vec<u16> = lids.iter().map(|lid| lid / BLOCK as u16).collect();
            blocks.dedup();
            work.extend(blocks.into_iter().map(|block| Write::Clear { node, block }));
        }
        work
    }

    /// Returns writes for the LFT blocks that differ from those in the switches.
    fn table_work(&self, context: &Context<'_>) -> Vec<Write> {
        let mut work = Vec::new();
        for &node in self.rows.keys() {
            let guid = context.found.node(node).info.node_guid;
            let table = context.tables.get(&guid);
            let blocks = usize::from(self.plan.max_lid) / BLOCK + 1;
            let blocks = blocks.max(table.map_or(0, SwitchTable::blocks));
            for block in 0..blocks {
                let known = table.and_then(|table| table.block(block));
                if known != Some(&self.wanted(node, block as u16)) {
                    work.push(Write::Lft { node, block: block as u16 });
                }
            }
        }
        work
    }

    /// Returns writes for the multicast table blocks that differ from those in the switches.
    fn multicast_work(&self, context: &Context<'_>) -> Vec<Write> {
        let mut work = Vec::new();
        for (node, known) in context.found.nodes().filter(|(_, node)| node.kind.is_switch()) {
            let guid = known.info.node_guid;
            let entries = self.trees.get(&node);
            let mut blocks: BTreeSet<(u16, u8)> = context.multicast.blocks(guid).collect();
            blocks.extend(entries.into_iter().flat_map(multicast::positions));
            let differs = |&at: &(u16, u8)| {
                context.multicast.block(guid, at) != Some(&multicast::block(entries, at))
            };
            let differing = blocks.into_iter().filter(differs);
            work.extend(differing.map(|(block, position)| Write::Mft { node, block, position }));
        }
        work
    }

    /// Returns the planned content of an LFT block.
    fn wanted(&self, node: NodeIndex, block: u16) -> [u8; BLOCK] {
        let table = self.plan.routing.lfts.table(self.rows[&node]);
        let first = usize::from(block) * BLOCK;
        let mut ports = [NO_PATH; BLOCK];
        if let Some(part) = table.get(first..) {
            let length = part.len().min(BLOCK);
            ports[..length].copy_from_slice(&part[..length]);
        }
        ports
    }

    /// Returns the content of an LFT block after pass 1: the known entries, except that the entries to clear are "no
    /// path".
    fn cleared(&self, node: NodeIndex, block: u16, context: &Context<'_>) -> [u8; BLOCK] {
        let guid = context.found.node(node).info.node_guid;
        let known = context.tables.get(&guid).and_then(|table| table.block(block.into()));
        let mut ports = known.copied().unwrap_or([NO_PATH; BLOCK]);
        let first = u32::from(block) * BLOCK as u32;
        for &lid in &self.cleared_entries[&node] {
            if (first..first + BLOCK as u32).contains(&u32::from(lid)) {
                ports[usize::from(lid) % BLOCK] = NO_PATH;
            }
        }
        ports
    }
}

/// Returns the planned multicast table of each switch.
fn trees(context: &Context<'_>) -> BTreeMap<NodeIndex, Entries> {
    let found = &*context.found;
    let mut places: BTreeMap<Guid, PortIndex> = BTreeMap::new();
    if !context.groups.is_empty() {
        places
            .extend(found.end_ports().map(|port_index| (found.port(port_index).guid, port_index)));
    }
    let mut trees = multicast::Trees::new(found);
    for (&mlid, members) in context.groups {
        let members: Vec<PortIndex> =
            members.iter().filter_map(|guid| places.get(guid)).copied().collect();
        trees.add(mlid, &members);
    }
    trees.finish()
}

/// Returns all ports of the discovered subnet.
fn all_ports(found: &DiscoveredSubnet) -> impl Iterator<Item = PortIndex> {
    found.nodes().flat_map(|(node, known)| (0..=known.info.num_ports).map(move |at| node.at(at)))
}

/// Returns a read of each LFT block that `tables` writes to a switch in `Context::read_back`.
fn read_back(tables: &[Write], context: &Context<'_>) -> Vec<Write> {
    let guid = |node| context.found.node(node).info.node_guid;
    let blocks = tables.iter().filter_map(|work| match *work {
        Write::Lft { node, block } if context.read_back.contains(&guid(node)) => {
            Some(Write::ReadBack { node, block })
        }
        _ => None,
    });
    blocks.collect()
}

fn set<A: Attribute>(route: &[u8], modifier: u32, attribute: &A) -> Mad {
    let what = (A::ID, modifier);
    let mut mad = smp::directed_request(Method::SET, TransactionId(0), what, route);
    mad.set_attribute(attribute);
    mad
}

/// Returns the known LFT of each switch, as input for the next plan.
pub(crate) fn existing(tables: &Tables) -> BTreeMap<Guid, Vec<u8>> {
    tables.iter().map(|(&guid, table)| (guid, table.ports().to_vec())).collect()
}
