//! What has to be written so that a subnet becomes what its plan says.
//!
//! Writing goes in passes: all of a pass is answered before the next one starts.
//!
//! 1. Ports get their LIDs and settings and leave the state Init; entries that could close a ring of
//!    old and new ones are set to "no path".
//! 2. The tables are written.
//! 3. Switches learn how much of their table is in use.
//! 4. The ports go into service.
//!
//! Without entries that give way the first two passes are one.

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

use crate::fault::{Fault, PortName, Reason};
use crate::found::{Found, NodeIndex, Place};
use crate::managed::Context;
use crate::multicast::{self, Entries};
use crate::plan::Plan;
use crate::tables::{SwitchTable, Tables};

mod detour;
mod enforce;
mod settings;
mod vls;
mod work;

pub(crate) use work::Work;
pub use work::Written;

const BLOCK: usize = LinearForwardingBlock::LIDS as usize;

/// The writing of a plan.
#[derive(Debug)]
pub(crate) struct Configuration {
    plan: Arc<Plan>,
    passes: std::collections::VecDeque<Vec<Work>>,
    /// How many of the first pass were handed out.
    next: usize,
    waiting: usize,
    /// The row of each switch in the plan's tables.
    rows: BTreeMap<NodeIndex, SwitchId>,
    /// The entries that give way first, by switch: LIDs in rising order.
    detours: BTreeMap<NodeIndex, Vec<u16>>,
    /// What the multicast tables shall hold.
    trees: BTreeMap<NodeIndex, Entries>,
    written: Written,
    faults: Vec<Fault>,
    /// The switches that have ignored a write.
    ignored: BTreeSet<Guid>,
    /// Whether something was not written.
    incomplete: bool,
}

impl Configuration {
    /// Finds out what has to be written.
    pub(crate) fn new(plan: Arc<Plan>, context: &Context<'_>) -> Self {
        let found = &*context.found;
        let mut rows = BTreeMap::new();
        for (row, guid) in plan.switches.iter().enumerate() {
            // Routes that were cached may be those of switches that have gone.
            rows.extend(found.find(*guid).map(|node| (node, SwitchId(row as u16))));
        }
        let mut this = Self {
            plan,
            passes: std::collections::VecDeque::new(),
            next: 0,
            waiting: 0,
            rows,
            detours: BTreeMap::new(),
            trees: BTreeMap::new(),
            written: Written::default(),
            faults: Vec::new(),
            ignored: BTreeSet::new(),
            incomplete: false,
        };
        this.trees = trees(context);
        this.detours = detour::find(&this.plan, &this.rows, found, context.tables);
        let mut first = this.port_work(context);
        first.extend(this.p_key_work(context));
        first.extend(enforce::work(context, &mut this.faults));
        first.extend(vls::work(context, this.is_layered()));
        let detours = this.clear_work();
        let mut tables = this.table_work(context);
        let read_back = read_back(&tables, context);
        tables.extend(this.multicast_work(context));
        if detours.is_empty() {
            first.extend(tables);
            this.passes.push_back(first);
        } else {
            first.extend(detours);
            this.passes.push_back(first);
            this.passes.push_back(tables);
        }
        this.passes.push_back(this.switch_work(context));
        this.passes.push_back(this.activation_work(context));
        this.passes.push_back(read_back);
        this
    }

    /// Finds out what has to be written because members of groups have come or gone.
    pub(crate) fn for_groups(plan: Arc<Plan>, context: &Context<'_>) -> Self {
        let mut this = Self {
            plan,
            passes: std::collections::VecDeque::new(),
            next: 0,
            waiting: 0,
            rows: BTreeMap::new(),
            detours: BTreeMap::new(),
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

    /// Returns the next thing to write and the request that writes it.
    pub(crate) fn next(&mut self, context: &Context<'_>) -> Option<(Work, Mad)> {
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

    /// Returns true when all is written that could be.
    pub(crate) fn is_done(&self) -> bool {
        self.waiting == 0
            && self
                .passes
                .iter()
                .enumerate()
                .all(|(index, pass)| pass.len() <= if index == 0 { self.next } else { 0 })
    }

    /// Returns the plan, what was written, what is wrong, and whether anything is missing.
    pub(crate) fn finish(self) -> (Arc<Plan>, Written, Vec<Fault>, bool) {
        (self.plan, self.written, self.faults, self.incomplete)
    }

    /// Takes the end of a request.
    pub(crate) fn handle(
        &mut self,
        work: Work,
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
            Work::Port(place) | Work::Activate(place) => {
                self.written.ports += 1;
                if matches!(work, Work::Port(_)) && context.found.is_end_port(place) {
                    context.registered.insert(context.found.port(place).guid);
                }
                let info = mad.attribute::<PortInfo>().expect("what was written");
                context.found.port_mut(place).info = Some(Box::new(info));
            }
            Work::Switch(node) => {
                self.written.switches += 1;
                context.found.node_mut(node).switch = mad.attribute();
                let guid = context.found.node(node).info.node_guid;
                context.tables.entry(guid).or_default().top = self.plan.max_lid;
            }
            Work::Clear { node, block } => self.table_written(node, block, true, context),
            Work::Lft { node, block } => self.table_written(node, block, false, context),
            Work::ReadBack { node, block } => self.table_read(node, block, &mad, context),
            Work::PKeys { place, block } => {
                self.written.p_key_blocks += 1;
                let read = mad.attribute::<PKeyTable>().expect("what was written");
                let blocks = &mut context.found.port_mut(place).p_keys;
                let room = blocks.len().max(usize::from(block) + 1);
                blocks.resize(room, [PKey(0); 32]);
                blocks[usize::from(block)] = read.keys;
            }
            Work::SlToVl { place, input } => {
                self.written.sl_to_vl_tables += 1;
                vls::tables_of(place, context)
                    .sl_to_vl
                    .extend(mad.attribute().map(|it| (input, it)));
            }
            Work::Arbitration { place, block } => {
                self.written.arbitration_blocks += 1;
                let read = mad.attribute().map(|it| (block, it));
                vls::tables_of(place, context).arbitration.extend(read);
            }
            Work::Mft { node, block, position } => {
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
            self.written.detoured += changed;
        } else {
            self.written.lft_entries += changed;
        }
        table.set(block.into(), &wanted);
    }

    /// Compares an LFT block that was read from a switch with the block that was written to it.
    fn table_read(&mut self, node: NodeIndex, block: u16, mad: &Mad, context: &mut Context<'_>) {
        let read: LinearForwardingBlock = mad.attribute().expect("what was read");
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

    fn failed(&mut self, work: Work, reason: Reason, context: &mut Context<'_>) {
        // What a switch refuses to hold it will refuse again.
        let refused = matches!((work, reason), (Work::Mft { .. }, Reason::Status(_)));
        self.incomplete |= !refused;
        let found = &*context.found;
        let node_name = |node: NodeIndex| PortName { port: None, ..found.name(node.at(0)) };
        let (at, attribute) = match work {
            Work::Port(place) | Work::Activate(place) => {
                (found.name(place), AttributeId::PORT_INFO)
            }
            Work::Switch(node) => (node_name(node), AttributeId::SWITCH_INFO),
            Work::Clear { node, block }
            | Work::Lft { node, block }
            | Work::ReadBack { node, block } => {
                let guid = found.node(node).info.node_guid;
                context.tables.entry(guid).or_default().forget(block.into());
                (node_name(node), AttributeId::LINEAR_FORWARDING)
            }
            Work::PKeys { place, .. } => (found.name(place), AttributeId::P_KEY_TABLE),
            Work::SlToVl { place, .. } => (found.name(place), AttributeId::SL_TO_VL),
            Work::Arbitration { place, .. } => (found.name(place), AttributeId::VL_ARBITRATION),
            Work::Mft { node, block, position } => {
                let guid = found.node(node).info.node_guid;
                context.multicast.forget(guid, (block, position));
                (node_name(node), AttributeId::MULTICAST_FORWARDING)
            }
        };
        let set = !matches!(work, Work::ReadBack { .. });
        self.faults.push(Fault::NoAnswer { at, attribute, set, reason });
        if matches!(work, Work::Clear { .. }) {
            // Nobody knows whether the entries have given way, so those that rely on it stay.
            self.passes.truncate(1);
        }
    }

    /// Returns the request that writes something; `None` when there is nothing to change any more.
    fn request(&self, work: Work, context: &Context<'_>) -> Option<Mad> {
        let found = &*context.found;
        match work {
            Work::Port(place) => {
                let wanted = settings::wanted(place, &self.plan, context)?;
                Some(set(found.route(place), place.port.into(), &wanted))
            }
            Work::Activate(place) => {
                let mut info = **found.port(place).info.as_ref()?;
                if info.port_state != PortState::ARMED {
                    return None;
                }
                settings::keep(&mut info);
                info.port_state = PortState::ACTIVE;
                Some(set(found.route(place), place.port.into(), &info))
            }
            Work::Switch(node) => {
                Some(set(&found.node(node).route, 0, &self.switch_info(node, context)?))
            }
            Work::Clear { node, block } => {
                let block_of = LinearForwardingBlock { ports: self.cleared(node, block, context) };
                Some(set(&found.node(node).route, block.into(), &block_of))
            }
            Work::Lft { node, block } => {
                let wanted = LinearForwardingBlock { ports: self.wanted(node, block) };
                Some(set(&found.node(node).route, block.into(), &wanted))
            }
            Work::ReadBack { node, block } => {
                let what = (AttributeId::LINEAR_FORWARDING, block.into());
                let route = &found.node(node).route;
                Some(smp::directed_request(Method::GET, TransactionId(0), what, route))
            }
            Work::PKeys { place, block } => {
                let tables = if found.is_end_port(place) {
                    settings::p_keys(place, context)?.blocks
                } else {
                    enforce::keys(place, context)?
                };
                let table = PKeyTable { keys: *tables.get(usize::from(block))? };
                Some(set(found.route(place), found.p_key_modifier(place, block), &table))
            }
            Work::SlToVl { place, input } => {
                let modifier = vls::modifier(place, input, found);
                let wanted = crate::vls::sl_to_vl(place, context.config, found, self.is_layered())?;
                Some(set(found.route(place), modifier, &wanted))
            }
            Work::Arbitration { place, block } => {
                let mut blocks = vls::arbitration(place, context)?.into_iter();
                let (_, wanted) = blocks.find(|&(number, _)| number == block)?;
                let port = if found.node(place.node).kind.is_switch() { place.port } else { 0 };
                let modifier = u32::from(block) << 16 | u32::from(port);
                Some(set(found.route(place), modifier, &wanted))
            }
            Work::Mft { node, block, position } => {
                let masks = multicast::block(self.trees.get(&node), (block, position));
                let modifier = MulticastForwardingBlock::modifier(block, position);
                let wanted = MulticastForwardingBlock { masks };
                Some(set(&found.node(node).route, modifier, &wanted))
            }
        }
    }

    fn port_work(&self, context: &Context<'_>) -> Vec<Work> {
        let ports = places(context.found);
        let changes = ports.filter(|&at| settings::wanted(at, &self.plan, context).is_some());
        changes.map(Work::Port).collect()
    }

    /// Returns the blocks of P_Keys that differ from what the ports hold.
    fn p_key_work(&mut self, context: &Context<'_>) -> Vec<Work> {
        let mut work = Vec::new();
        for place in context.found.end_ports() {
            let Some(wanted) = settings::p_keys(place, context) else { continue };
            let known = &context.found.port(place).p_keys;
            if wanted.left_out > 0 {
                let (room, left_out) = (known.len() * 32, wanted.left_out);
                let what = format!(
                    "has room for {room} P_Keys; {left_out} more are wanted, which it does not get"
                );
                self.faults.push(Fault::Inconsistent { at: context.found.name(place), what });
            }
            for (block, (wanted, known)) in (0..).zip(wanted.blocks.iter().zip(known)) {
                if wanted != known {
                    work.push(Work::PKeys { place, block });
                }
            }
        }
        work
    }

    fn activation_work(&self, context: &Context<'_>) -> Vec<Work> {
        let found = &*context.found;
        places(found).filter(|&at| settings::may_activate(at, found)).map(Work::Activate).collect()
    }

    fn switch_work(&self, context: &Context<'_>) -> Vec<Work> {
        let nodes = self.rows.keys().copied();
        nodes.filter(|&node| self.switch_info(node, context).is_some()).map(Work::Switch).collect()
    }

    /// Returns the settings of a switch; `None` when they are right.
    fn switch_info(&self, node: NodeIndex, context: &Context<'_>) -> Option<SwitchInfo> {
        let info = context.found.node(node).switch?;
        let wanted = SwitchInfo {
            linear_fdb_top: self.plan.max_lid,
            life_time: context.config.packet_life_time,
            ..info
        };
        // Writing the bit back clears it.
        (wanted != info || info.port_state_change).then_some(wanted)
    }

    fn clear_work(&self) -> Vec<Work> {
        let mut work = Vec::new();
        for (&node, lids) in &self.detours {
            let mut blocks: Vec<u16> = lids.iter().map(|lid| lid / BLOCK as u16).collect();
            blocks.dedup();
            work.extend(blocks.into_iter().map(|block| Work::Clear { node, block }));
        }
        work
    }

    /// Returns the blocks that differ from what the switches hold.
    fn table_work(&self, context: &Context<'_>) -> Vec<Work> {
        let mut work = Vec::new();
        for &node in self.rows.keys() {
            let guid = context.found.node(node).info.node_guid;
            let table = context.tables.get(&guid);
            let blocks = usize::from(self.plan.max_lid) / BLOCK + 1;
            let blocks = blocks.max(table.map_or(0, SwitchTable::blocks));
            for block in 0..blocks {
                let known = table.and_then(|table| table.block(block));
                if known != Some(&self.wanted(node, block as u16)) {
                    work.push(Work::Lft { node, block: block as u16 });
                }
            }
        }
        work
    }

    /// Returns the blocks of multicast tables that differ from what the switches hold.
    fn multicast_work(&self, context: &Context<'_>) -> Vec<Work> {
        let mut work = Vec::new();
        for (node, known) in context.found.nodes().filter(|(_, node)| node.kind.is_switch()) {
            let guid = known.info.node_guid;
            let entries = self.trees.get(&node);
            let mut blocks: BTreeSet<(u16, u8)> = context.multicast.blocks(guid).collect();
            blocks.extend(entries.into_iter().flat_map(multicast::places));
            let differs = |&at: &(u16, u8)| {
                context.multicast.block(guid, at) != Some(&multicast::block(entries, at))
            };
            let differing = blocks.into_iter().filter(differs);
            work.extend(differing.map(|(block, position)| Work::Mft { node, block, position }));
        }
        work
    }

    /// Returns what a block shall hold.
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

    /// Returns what a block holds while entries give way.
    fn cleared(&self, node: NodeIndex, block: u16, context: &Context<'_>) -> [u8; BLOCK] {
        let guid = context.found.node(node).info.node_guid;
        let known = context.tables.get(&guid).and_then(|table| table.block(block.into()));
        let mut ports = known.copied().unwrap_or([NO_PATH; BLOCK]);
        let first = u32::from(block) * BLOCK as u32;
        for &lid in &self.detours[&node] {
            if (first..first + BLOCK as u32).contains(&u32::from(lid)) {
                ports[usize::from(lid) % BLOCK] = NO_PATH;
            }
        }
        ports
    }
}

/// Returns what the multicast tables of the switches shall hold.
fn trees(context: &Context<'_>) -> BTreeMap<NodeIndex, Entries> {
    let found = &*context.found;
    let mut places: BTreeMap<Guid, Place> = BTreeMap::new();
    if !context.groups.is_empty() {
        places.extend(found.end_ports().map(|place| (found.port(place).guid, place)));
    }
    let mut trees = multicast::Trees::new(found);
    for (&mlid, members) in context.groups {
        let members: Vec<Place> =
            members.iter().filter_map(|guid| places.get(guid)).copied().collect();
        trees.add(mlid, &members);
    }
    trees.finish()
}

/// Returns all ports that were found.
fn places(found: &Found) -> impl Iterator<Item = Place> {
    found.nodes().flat_map(|(node, known)| (0..=known.info.num_ports).map(move |at| node.at(at)))
}

/// Returns the blocks to read back after they were written.
fn read_back(tables: &[Work], context: &Context<'_>) -> Vec<Work> {
    let guid = |node| context.found.node(node).info.node_guid;
    let blocks = tables.iter().filter_map(|work| match *work {
        Work::Lft { node, block } if context.read_back.contains(&guid(node)) => {
            Some(Work::ReadBack { node, block })
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

/// Returns the tables by switch, for the next plan.
pub(crate) fn existing(tables: &Tables) -> BTreeMap<Guid, Vec<u8>> {
    tables.iter().map(|(&guid, table)| (guid, table.ports().to_vec())).collect()
}
