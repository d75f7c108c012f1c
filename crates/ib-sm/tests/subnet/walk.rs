//! The real state of a fabric, independent of an SM: packets are walked through the tables in the switches, over the
//! links that are up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_sim::Sim;
use ib_topology::{NodeId, PortId};
use ib_wire::mad::sm::PortState;

/// A host port on the fabric, with the switch port to which it is linked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    pub(crate) port: PortId,
    pub(crate) leaf: PortId,
}

/// The part of a fabric that is connected to a port by cables.
pub(crate) struct Connected<'a> {
    sim: &'a Sim,
    pub(crate) switches: BTreeSet<NodeId>,
    pub(crate) hosts: Vec<Host>,
}

/// Returns the ports of a node. Port 0 is left out.
pub(crate) fn ports(sim: &Sim, node: NodeId) -> impl Iterator<Item = PortId> + '_ {
    (1..=254).map_while(move |number| sim.find_port(node, number))
}

/// Returns the other end of a link that is up.
pub(crate) fn live_peer(sim: &Sim, port: PortId) -> Option<PortId> {
    let is_up = sim.port_info(port).port_state != PortState::DOWN;
    sim.peer(port).filter(|_| is_up)
}

impl<'a> Connected<'a> {
    /// Collects the nodes that cables connect to a port, or to a switch given by its port 0. The connections lead only
    /// through switches.
    pub(crate) fn to(sim: &'a Sim, own: PortId) -> Self {
        let mut this = Self { sim, switches: BTreeSet::new(), hosts: Vec::new() };
        let mut queue: VecDeque<PortId> = match sim.place(own) {
            (_, 1..) => live_peer(sim, own).into_iter().collect(),
            (_, 0) => [own].into(),
        };
        while let Some(end) = queue.pop_front() {
            let node = sim.place(end).0;
            if !sim.is_switch(node) {
                this.hosts.extend(live_peer(sim, end).map(|leaf| Host { port: end, leaf }));
            } else if this.switches.insert(node) {
                queue.extend(ports(sim, node).filter_map(|port| live_peer(sim, port)));
            }
        }
        this
    }

    /// Returns the number of ordered pairs of hosts.
    pub(crate) fn pairs(&self) -> usize {
        self.hosts.len() * self.hosts.len().saturating_sub(1)
    }

    /// Returns the pairs of hosts whose packets do not arrive, each with the place where they are lost.
    pub(crate) fn dead_pairs(&self) -> Vec<String> {
        let sim = self.sim;
        let mut dead = Vec::new();
        for from in &self.hosts {
            for to in self.hosts.iter().filter(|to| to.port != from.port) {
                let lids = 0..1 << sim.port_info(to.port).lmc;
                let walks = lids.map(|offset| self.walk_to(*from, (*to, offset), |_| {}));
                if let Some(Err(why)) = walks.into_iter().find(Result::is_err) {
                    let name = |host: &Host| self.name(host.port);
                    dead.push(format!("{} to {}: {why}", name(from), name(to)));
                }
            }
        }
        dead
    }

    /// Returns the ports of the connected part that are not Active, and its end ports that have no LID.
    pub(crate) fn unconfigured_ports(&self) -> Vec<String> {
        let sim = self.sim;
        let mut unconfigured = Vec::new();
        for &node in &self.switches {
            let linked = ports(sim, node).filter(|&port| live_peer(sim, port).is_some());
            let down = linked.filter(|&port| sim.port_info(port).port_state != PortState::ACTIVE);
            unconfigured.extend(down.map(|port| self.name(port)));
            let port0 = sim.find_port(node, 0).expect("every switch has a port 0");
            unconfigured.extend((sim.port_info(port0).lid == 0).then(|| self.name(port0)));
        }
        let without_lid = self.hosts.iter().filter(|host| sim.port_info(host.port).lid == 0);
        unconfigured.extend(without_lid.map(|host| self.name(host.port)));
        unconfigured
    }

    /// Walks a packet from one host to the base LID of another host. At each switch, calls `hop` with the ingress and
    /// egress port. The error says where the packet is lost.
    pub(crate) fn walk(
        &self,
        from: Host,
        to: Host,
        hop: impl FnMut((PortId, PortId)),
    ) -> Result<(), String> {
        self.walk_to(from, (to, 0), hop)
    }

    /// Walks a packet to one of the LIDs of a host. `offset` is the distance of the LID from the base LID.
    pub(crate) fn walk_to(
        &self,
        from: Host,
        (to, offset): (Host, u16),
        mut hop: impl FnMut((PortId, PortId)),
    ) -> Result<(), String> {
        let sim = self.sim;
        let lid = usize::from(sim.port_info(to.port).lid);
        let serves = |port: PortId| sim.port_info(port).port_state == PortState::ACTIVE;
        if lid == 0 {
            return Err("the destination has no LID".to_owned());
        }
        let lid = lid + usize::from(offset);
        let mut entered = from.leaf;
        if !serves(from.port) || !serves(from.leaf) {
            return Err(format!("{} is not active", self.name(from.leaf)));
        }
        for _ in 0..=self.switches.len() {
            let switch = sim.place(entered).0;
            let entry = sim.forwarding_table(switch).get(lid).copied().unwrap_or(255);
            let out = sim.find_port(switch, entry).filter(|_| entry > 0);
            let Some(out) = out else {
                return Err(format!("{} has no port for LFT entry {entry}", sim.node_name(switch)));
            };
            let Some(next) = live_peer(sim, out) else {
                return Err(format!("{} has no link", self.name(out)));
            };
            if !serves(out) || !serves(next) {
                return Err(format!("{} is not active", self.name(out)));
            }
            hop((entered, out));
            if next == to.port {
                return Ok(());
            }
            if !sim.is_switch(sim.place(next).0) {
                return Err(format!("{} leads to another host", self.name(out)));
            }
            entered = next;
        }
        Err("forwarding loop".to_owned())
    }

    fn name(&self, port: PortId) -> String {
        let (node, number) = self.sim.place(port);
        format!("{}[{number}]", self.sim.node_name(node))
    }
}

/// A directed graph of dependencies between channels. A channel is a VL of a link; a cycle is a credit loop.
pub(crate) struct Dependencies<C> {
    next: BTreeMap<C, BTreeSet<C>>,
}

impl<C: Copy + Ord> Dependencies<C> {
    pub(crate) const fn new() -> Self {
        Self { next: BTreeMap::new() }
    }

    /// Adds a dependency: packets in channel `held` wait for channel `wanted`.
    pub(crate) fn add(&mut self, held: C, wanted: C) {
        self.next.entry(held).or_default().insert(wanted);
    }

    /// Returns true if channels can wait for each other in a cycle. To find out, channels without dependencies are
    /// removed until no such channel is left; any remaining channels contain a cycle.
    pub(crate) fn has_cycle(&self) -> bool {
        let mut next = self.next.clone();
        loop {
            let before: BTreeSet<C> = next.keys().copied().collect();
            next.retain(|_, wanted| wanted.iter().any(|channel| before.contains(channel)));
            if next.len() == before.len() {
                return !next.is_empty();
            }
        }
    }
}

#[test]
fn cycles_are_found() {
    let mut graph = Dependencies::new();
    for (held, wanted) in [(1, 2), (2, 3), (3, 4)] {
        graph.add(held, wanted);
    }
    assert!(!graph.has_cycle());
    graph.add(4, 2);
    assert!(graph.has_cycle());
}
