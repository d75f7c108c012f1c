//! The second stage of minhop, updn and dor: choosing an output port for every LID.
//!
//! Every switch is filled on its own, so the switches are shared out among threads. Within a
//! switch the targets come in a fixed order, and each takes the least used of its least-hop
//! ports, the first in scan order when several are.

use rayon::prelude::*;

use crate::engine::RoutingOptions;
use crate::hops::HopMatrix;
use crate::lft::{Lfts, NO_PATH};
use crate::subnet::{Attachment, EndPortId, Peer, Subnet, SwitchId};

mod choice;
mod scatter;

use choice::{Chooser, Remotes};
use scatter::LibcRandom;

/// Fills the forwarding tables of all switches.
///
/// With `dor`, only the ports to the neighbour behind the first least-hop port compete.
pub(crate) fn fill(
    subnet: &Subnet<'_>,
    hops: &HopMatrix,
    options: &RoutingOptions,
    dor: bool,
) -> Lfts {
    let plan = Plan::new(subnet, hops, options, dor);
    let mut lfts = Lfts::new(subnet);
    if options.scatter_ports == 0 {
        lfts.par_tables_mut().enumerate().for_each_init(
            || Workspace::new(&plan),
            |workspace, (index, table)| {
                workspace.fill(&plan, SwitchId(index as u16), table, None);
            },
        );
    } else {
        // The random sequence runs on from switch to switch, so nothing can be shared out.
        let mut random = LibcRandom::new(options.scatter_ports);
        let mut workspace = Workspace::new(&plan);
        for (index, table) in lfts.tables_mut().enumerate() {
            workspace.fill(&plan, SwitchId(index as u16), table, Some(&mut random));
        }
    }
    lfts
}

/// What is the same for every switch.
struct Plan<'a> {
    subnet: &'a Subnet<'a>,
    hops: &'a HopMatrix,
    options: &'a RoutingOptions,
    dor: bool,
    words: usize,
    order: Vec<EndPortId>,
    /// Per switch: the ports that are not counted.
    ignored: Vec<Vec<u8>>,
    /// Per switch: all ports in scan order when that is not 0, 1, 2 …
    scan: Vec<Option<Vec<u8>>>,
}

impl<'a> Plan<'a> {
    fn new(
        subnet: &'a Subnet<'a>,
        hops: &'a HopMatrix,
        options: &'a RoutingOptions,
        dor: bool,
    ) -> Self {
        let highest = subnet.switches().iter().map(|switch| switch.ports).max().unwrap_or(0);
        let mut ignored = vec![Vec::new(); subnet.switches().len()];
        for &(guid, port) in &options.ignored_ports {
            if let Some(switch) = subnet.find_switch(guid) {
                ignored[switch.index()].push(port);
            }
        }
        let mut scan = vec![None; subnet.switches().len()];
        for (guid, first) in &options.port_search_order {
            if let Some(switch) = subnet.find_switch(*guid)
                && scan[switch.index()].is_none()
            {
                scan[switch.index()] = scan_order(first, subnet.switch(switch).ports);
            }
        }
        Self {
            subnet,
            hops,
            options,
            dor,
            words: usize::from(highest) / 64 + 1,
            order: target_order(subnet, &options.guid_routing_order),
            ignored,
            scan,
        }
    }
}

/// Returns the end ports in the order in which a switch routes them: the listed ones, then those
/// behind the switches with most end ports, then the rest.
fn target_order(subnet: &Subnet<'_>, first: &[ib_types::Guid]) -> Vec<EndPortId> {
    let mut placed = vec![false; subnet.end_ports().len()];
    let mut order = Vec::with_capacity(placed.len());
    let mut place = |id: EndPortId| {
        if !std::mem::replace(&mut placed[id.index()], true) {
            order.push(id);
        }
    };
    for &guid in first {
        subnet.find_end_port(guid).into_iter().for_each(&mut place);
    }
    let end_ports = |id| {
        subnet.peers(id).iter().filter_map(|peer| match *peer {
            Peer::EndPort(end_port) => Some(end_port),
            Peer::None | Peer::Switch(..) => None,
        })
    };
    let mut switches: Vec<SwitchId> = subnet.switch_ids().collect();
    switches.sort_by_cached_key(|&id| std::cmp::Reverse(end_ports(id).count()));
    for id in switches {
        end_ports(id).for_each(&mut place);
    }
    subnet.end_port_ids().for_each(&mut place);
    order
}

/// Returns port 0, the listed ports and then the others, ascending; `None` for a list that names
/// a port twice or one that the switch has not.
fn scan_order(first: &[u8], ports: u8) -> Option<Vec<u8>> {
    let mut order = vec![0];
    for &port in first {
        if port == 0 || port > ports || order.contains(&port) {
            return None;
        }
        order.push(port);
    }
    for port in 1..=ports {
        if !order.contains(&port) {
            order.push(port);
        }
    }
    Some(order)
}

/// What one thread needs for one switch at a time.
struct Workspace {
    masks: Vec<u64>,
    /// The candidate ports of all destination switches, in scan order, one after the other.
    ports: Vec<u8>,
    /// Where the candidates of each destination switch start.
    first: Vec<u32>,
    counts: [u32; 256],
    counted: [bool; 256],
    remotes: Remotes,
}

impl Workspace {
    fn new(plan: &Plan<'_>) -> Self {
        let switches = plan.subnet.switches().len();
        Self {
            masks: vec![0; switches * plan.words],
            ports: Vec::new(),
            first: Vec::with_capacity(switches + 1),
            counts: [0; 256],
            counted: [true; 256],
            remotes: Remotes::default(),
        }
    }

    fn fill(
        &mut self,
        plan: &Plan<'_>,
        switch: SwitchId,
        table: &mut [u8],
        mut random: Option<&mut LibcRandom>,
    ) {
        self.find_candidates(plan, switch);
        self.counts.fill(0);
        self.counted.fill(true);
        for &port in &plan.ignored[switch.index()] {
            self.counted[usize::from(port)] = false;
        }
        let options = plan.options;
        let plain = plan.subnet.lmc().get() == 0
            && options.existing.is_none()
            && !options.port_shifting
            && random.is_none();
        if plain {
            for &target in &plan.order {
                self.route_plainly(plan, switch, target, table);
            }
            return;
        }
        self.remotes.reset(plan.subnet);
        for offset in 0..plan.subnet.lmc().lids() {
            for &target in &plan.order {
                self.route(plan, switch, (target, offset), table, random.as_deref_mut());
            }
        }
    }

    fn find_candidates(&mut self, plan: &Plan<'_>, switch: SwitchId) {
        plan.hops.least_hop_ports(plan.subnet, switch, plan.words, &mut self.masks);
        self.ports.clear();
        self.first.clear();
        let peers = plan.subnet.peers(switch);
        for set in self.masks.chunks_exact(plan.words) {
            let start = self.ports.len();
            self.first.push(start as u32);
            match &plan.scan[switch.index()] {
                None => {
                    for (word, &bits) in set.iter().enumerate() {
                        let mut bits = bits;
                        while bits != 0 {
                            self.ports.push((word * 64) as u8 + bits.trailing_zeros() as u8);
                            bits &= bits - 1;
                        }
                    }
                }
                Some(order) => {
                    let is_set = |&port: &u8| set[usize::from(port) / 64] >> (port % 64) & 1 == 1;
                    self.ports.extend(order.iter().copied().filter(is_set));
                }
            }
            if plan.dor && self.ports.len() > start {
                let behind = |port: u8| match peers[usize::from(port)] {
                    Peer::Switch(next, _) => Some(next),
                    Peer::None | Peer::EndPort(_) => None,
                };
                let dimension = behind(self.ports[start]);
                let mut kept = start;
                for slot in start..self.ports.len() {
                    let port = self.ports[slot];
                    if behind(port) == dimension {
                        self.ports[kept] = port;
                        kept += 1;
                    }
                }
                self.ports.truncate(kept);
            }
        }
        self.first.push(self.ports.len() as u32);
    }

    fn candidates(&self, towards: SwitchId) -> &[u8] {
        let range = self.first[towards.index()] as usize..self.first[towards.index() + 1] as usize;
        &self.ports[range]
    }

    /// Routes the one LID of a target when nothing but use counts decides.
    fn route_plainly(
        &mut self,
        plan: &Plan<'_>,
        switch: SwitchId,
        target: EndPortId,
        table: &mut [u8],
    ) {
        let end_port = plan.subnet.end_port(target);
        let port = match end_port.attachment {
            Attachment::Direct => return,
            Attachment::Management(at) if at == switch => 0,
            Attachment::Port(at, port) if at == switch => port,
            Attachment::Management(at) | Attachment::Port(at, _) => {
                let mut candidates = self.candidates(at).iter();
                let Some(&first) = candidates.next() else { return };
                let (mut best, mut least) = (first, self.counts[usize::from(first)]);
                for &port in candidates {
                    let count = self.counts[usize::from(port)];
                    if count < least {
                        (best, least) = (port, count);
                    }
                }
                best
            }
        };
        table[end_port.base_lid.index()] = port;
        let counts = plan.options.count_switch_targets || !end_port.is_switch();
        self.counts[usize::from(port)] += u32::from(counts && self.counted[usize::from(port)]);
    }

    /// Routes one LID of a target under all the rules.
    fn route(
        &mut self,
        plan: &Plan<'_>,
        switch: SwitchId,
        (target, offset): (EndPortId, u16),
        table: &mut [u8],
        random: Option<&mut LibcRandom>,
    ) {
        let end_port = plan.subnet.end_port(target);
        if offset >= end_port.lids {
            return;
        }
        let lid = end_port.base_lid.index() + usize::from(offset);
        let port = match end_port.attachment {
            Attachment::Direct => NO_PATH,
            Attachment::Management(at) if at == switch => 0,
            Attachment::Port(at, port) if at == switch => port,
            Attachment::Management(at) | Attachment::Port(at, _) => {
                let kept = kept_port(plan, switch, at, lid);
                kept.unwrap_or_else(|| {
                    let start = match offset {
                        0 => 1,
                        _ if plan.dor => 1,
                        _ => usize::from(table[lid - 1]) + 1,
                    };
                    Chooser {
                        plan,
                        switch,
                        counts: &self.counts,
                        used: self.remotes.of(target),
                        random: random.filter(|_| offset == 0),
                    }
                    .choose(self.candidates(at), start)
                })
            }
        };
        table[lid] = port;
        let counts = plan.options.count_switch_targets || !end_port.is_switch();
        if port != NO_PATH && counts && self.counted[usize::from(port)] {
            self.counts[usize::from(port)] += 1;
            self.remotes.count(plan, switch, target, port);
        }
    }
}

/// Returns the port that an existing table gives when it is still a least-hop port.
fn kept_port(plan: &Plan<'_>, switch: SwitchId, towards: SwitchId, lid: usize) -> Option<u8> {
    let port = plan.options.existing.as_ref()?.port(switch, lid as u16);
    let linked = matches!(
        plan.subnet.peers(switch).get(usize::from(port)),
        Some(Peer::Switch(..) | Peer::EndPort(_))
    );
    let best = plan.hops.least(switch, towards);
    let through = || plan.hops.through(plan.subnet, switch, port, towards);
    (linked && best != crate::hops::NO_HOPS && through() == best).then_some(port)
}

#[cfg(test)]
mod tests;
