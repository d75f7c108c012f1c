//! The choice of an output port for every LID, which is the second stage of minhop, updn and dor. The file engine
//! (`engine/file.rs`) also uses it, if no forwarding tables were read.
//!
//! By default, switches are independent of each other and distributed over threads. For each switch, the targets (the
//! end ports) are routed in a fixed order. A target gets the least used of the least-hop ports; if several are used
//! equally, the first one in scan order.
//!
//! These options change how a port is chosen:
//!
//! * With `scatter_ports`, the switches are handled one after the other, and the port for a base LID is chosen at
//!   random among the least used ports.
//! * With an LMC above 0, the LIDs of an end port are spread over different neighbours.
//! * With `port_shifting`, the scan of the candidate ports starts one port further whenever their average number of
//!   LIDs grows by one.
//! * With `existing`, entries of the existing tables are kept if they are still least-hop ports.

use rayon::prelude::*;

use crate::engine::RoutingOptions;
use crate::hops::{HopMatrix, PortSets};
use crate::lft::{Lfts, NO_PATH};
use crate::subnet::{Attachment, EndPortId, Peer, Subnet, SwitchId};

mod choice;
mod scatter;

use choice::{Chooser, Remotes};
use scatter::LibcRandom;

/// Computes the forwarding tables of all switches.
///
/// If `dor` is true, a switch considers only its first least-hop port and the other ports to the same neighbour.
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
        // All switches share one sequence of random numbers, so they cannot be routed in parallel.
        let mut random = LibcRandom::new(options.scatter_ports);
        let mut workspace = Workspace::new(&plan);
        for (index, table) in lfts.tables_mut().enumerate() {
            workspace.fill(&plan, SwitchId(index as u16), table, Some(&mut random));
        }
    }
    lfts
}

/// The subnet, the options and the routing order, which are the same for all switches.
struct Plan<'a> {
    subnet: &'a Subnet<'a>,
    hops: &'a HopMatrix,
    options: &'a RoutingOptions,
    dor: bool,
    order: Vec<EndPortId>,
    /// Number of targets at the start of `order` whose port is not chosen at random.
    unscattered: usize,
    runs: Vec<TargetRun>,
    /// By switch: the ports that the options exclude from load balancing.
    ignored: Vec<Vec<u8>>,
    /// By switch: all ports in scan order. `None` if the scan order is ascending.
    scan: Vec<Option<Vec<u8>>>,
}

impl<'a> Plan<'a> {
    fn new(
        subnet: &'a Subnet<'a>,
        hops: &'a HopMatrix,
        options: &'a RoutingOptions,
        dor: bool,
    ) -> Self {
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
        let (order, listed) = target_order(subnet, &options.guid_routing_order);
        Self {
            subnet,
            hops,
            options,
            dor,
            runs: runs(subnet, &order, options.count_switch_targets),
            order,
            unscattered: if options.listed_unscattered { listed } else { 0 },
            ignored,
            scan,
        }
    }
}

/// A run of consecutive targets that are attached to the same switch.
struct TargetRun {
    at: SwitchId,
    /// True if routes to these targets count in load balancing.
    counted: bool,
    /// Base LID and switch port of each target; port 0 for the switch itself.
    targets: Vec<(u16, u8)>,
}

fn runs(subnet: &Subnet<'_>, order: &[EndPortId], count_switches: bool) -> Vec<TargetRun> {
    let mut runs: Vec<TargetRun> = Vec::new();
    for &id in order {
        let end_port = subnet.end_port(id);
        let (at, port) = match end_port.attachment {
            Attachment::Direct => continue,
            Attachment::Management(at) => (at, 0),
            Attachment::Port(at, port) => (at, port),
        };
        let counted = count_switches || !end_port.is_switch();
        let target = (end_port.base_lid.get(), port);
        match runs.last_mut() {
            Some(run) if run.at == at && run.counted == counted => run.targets.push(target),
            _ => runs.push(TargetRun { at, counted, targets: vec![target] }),
        }
    }
    runs
}

/// Returns the end ports in routing order: first the ports listed in `first`, then the ports on switches, beginning
/// with the switch that has the most end ports, then all others. Also returns the number of listed ports.
fn target_order(subnet: &Subnet<'_>, first: &[ib_types::Guid]) -> (Vec<EndPortId>, usize) {
    let mut placed = vec![false; subnet.end_ports().len()];
    let mut order = Vec::with_capacity(placed.len());
    let mut place = |id: EndPortId| {
        let new = !std::mem::replace(&mut placed[id.index()], true);
        if new {
            order.push(id);
        }
        new
    };
    let mut listed = 0;
    for &guid in first {
        listed += usize::from(subnet.find_end_port(guid).is_some_and(&mut place));
    }
    let end_ports = |id| {
        subnet.peers(id).iter().filter_map(|peer| match *peer {
            Peer::EndPort(end_port) => Some(end_port),
            Peer::None | Peer::Switch(..) => None,
        })
    };
    let mut switches: Vec<SwitchId> = subnet.switch_ids().collect();
    switches.sort_by_cached_key(|&id| std::cmp::Reverse(end_ports(id).count()));
    for id in switches.into_iter().flat_map(end_ports).chain(subnet.end_port_ids()) {
        place(id);
    }
    (order, listed)
}

/// Returns port 0, the ports in `first`, and then all other ports in ascending order. Returns `None` if `first` repeats
/// a port, or has a port that does not exist.
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

/// The buffers of a thread, which routes one switch at a time.
struct Workspace {
    sets: PortSets,
    candidates: Vec<u8>,
    counts: [u32; 256],
    counted: [bool; 256],
    remotes: Remotes,
}

impl Workspace {
    fn new(plan: &Plan<'_>) -> Self {
        Self {
            sets: PortSets::new(plan.subnet),
            candidates: Vec::new(),
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
        plan.hops.least_hop_ports(plan.subnet, switch, &mut self.sets);
        self.counts.fill(0);
        self.counted.fill(true);
        for &port in &plan.ignored[switch.index()] {
            self.counted[usize::from(port)] = false;
        }
        let options = plan.options;
        let plain = plan.subnet.lmc().get() == 0 && !options.port_shifting && random.is_none();
        if plain {
            for run in &plan.runs {
                match &options.existing {
                    None => self.route_run(plan, switch, run, table),
                    Some(existing) => {
                        self.keep_run(plan, switch, run, existing.table(switch), table);
                    }
                }
            }
            return;
        }
        self.remotes.reset(plan.subnet);
        for offset in 0..plan.subnet.lmc().lids() {
            for (place, &target) in plan.order.iter().enumerate() {
                let random = random.as_deref_mut().filter(|_| place >= plan.unscattered);
                self.route(plan, switch, target, offset, table, random);
            }
        }
    }

    /// Finds the candidate ports towards a destination switch, and puts them into scan order.
    fn find_candidates(&mut self, plan: &Plan<'_>, switch: SwitchId, towards: SwitchId) {
        self.candidates.clear();
        self.sets.ports(towards, &mut self.candidates);
        if let Some(order) = &plan.scan[switch.index()] {
            let position = |port: &u8| order.iter().position(|other| other == port);
            self.candidates.sort_by_key(position);
        }
        if plan.dor && self.candidates.len() > 1 {
            let peers = plan.subnet.peers(switch);
            let behind = |port: u8| match peers[usize::from(port)] {
                Peer::Switch(next, _) => Some(next),
                Peer::None | Peer::EndPort(_) => None,
            };
            let dimension = behind(self.candidates[0]);
            self.candidates.retain(|&port| behind(port) == dimension);
        }
    }

    /// Routes all targets of a run, each of which has one LID. A candidate port is chosen only by the number of LIDs
    /// that it already has.
    ///
    /// Each target gets the first of the least used ports. So the ports with the lowest count are used one after the
    /// other in scan order, then the ports with the next higher count. One pass over the candidates serves all ports of
    /// one count.
    fn route_run(&mut self, plan: &Plan<'_>, switch: SwitchId, run: &TargetRun, table: &mut [u8]) {
        if run.at == switch {
            for &(lid, port) in &run.targets {
                table[usize::from(lid)] = port;
                let counts = run.counted && self.counted[usize::from(port)];
                self.counts[usize::from(port)] += u32::from(counts);
            }
            return;
        }
        self.find_candidates(plan, switch, run.at);
        let count = |port: &u8| self.counts[usize::from(*port)];
        let Some(mut level) = self.candidates.iter().map(count).min() else { return };
        let mut targets = run.targets.iter();
        let mut target = targets.next();
        while target.is_some() {
            for &port in &self.candidates {
                let slot = &mut self.counts[usize::from(port)];
                while *slot == level
                    && let Some(&(lid, _)) = target
                {
                    table[usize::from(lid)] = port;
                    target = targets.next();
                    *slot += u32::from(run.counted && self.counted[usize::from(port)]);
                }
            }
            level += 1;
        }
    }

    /// Routes all targets of a run, each of which has one LID. A target keeps its port in the existing table if this is
    /// a least-hop port. Other targets get the first of the least used ports.
    fn keep_run(
        &mut self,
        plan: &Plan<'_>,
        switch: SwitchId,
        run: &TargetRun,
        existing: &[u8],
        table: &mut [u8],
    ) {
        let mut is_least = [false; 256];
        if run.at != switch {
            self.candidates.clear();
            self.sets.ports(run.at, &mut self.candidates);
            for &port in &self.candidates {
                is_least[usize::from(port)] = true;
            }
            self.find_candidates(plan, switch, run.at);
        }
        for &(lid, own) in &run.targets {
            let lid = usize::from(lid);
            let kept = existing.get(lid).copied().filter(|&port| is_least[usize::from(port)]);
            let count = |port: &&u8| self.counts[usize::from(**port)];
            let port = match kept {
                _ if run.at == switch => own,
                Some(port) => port,
                None => match self.candidates.iter().min_by_key(count) {
                    Some(&port) => port,
                    None => continue,
                },
            };
            table[lid] = port;
            let counts = run.counted && self.counted[usize::from(port)];
            self.counts[usize::from(port)] += u32::from(counts);
        }
    }

    /// Routes one LID of a target. Unlike `route_run`, supports an LMC above 0, port shifting and random choice.
    fn route(
        &mut self,
        plan: &Plan<'_>,
        switch: SwitchId,
        target: EndPortId,
        offset: u16,
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
                kept_port(plan, switch, at, lid).unwrap_or_else(|| {
                    self.find_candidates(plan, switch, at);
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
                    .choose(&self.candidates, start)
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

/// Returns the port that the existing table of a switch has for a LID, if it is still a least-hop port.
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
