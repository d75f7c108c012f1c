//! Choosing a port when an LMC, port shifting or scattering has a say.

use ib_topology::NodeId;
use ib_types::Guid;

use super::scatter::LibcRandom;
use super::{NO_PATH, Plan};
use crate::subnet::{EndPortId, Peer, Subnet, SwitchId};

/// A node that an end port's LIDs leave a switch through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote {
    node: NodeId,
    system: Guid,
    port: u8,
    forwarded: u32,
}

/// Per end port, the neighbours that its LIDs have been sent through so far.
#[derive(Default)]
pub(super) struct Remotes {
    per_port: usize,
    slots: Vec<Remote>,
    used: Vec<u16>,
}

impl Remotes {
    /// Forgets everything.
    pub(super) fn reset(&mut self, subnet: &Subnet<'_>) {
        self.per_port = usize::from(subnet.lmc().lids());
        let nobody = Remote { node: NodeId(u32::MAX), system: Guid::ZERO, port: 0, forwarded: 0 };
        self.slots.clear();
        self.slots.resize(subnet.end_ports().len() * self.per_port, nobody);
        self.used.clear();
        self.used.resize(subnet.end_ports().len(), 0);
    }

    /// Returns the neighbours that an end port's LIDs go through.
    pub(super) fn of(&self, target: EndPortId) -> &[Remote] {
        let used = usize::from(self.used[target.index()]);
        &self.slots[target.index() * self.per_port..][..used]
    }

    /// Counts one more LID of an end port through a port.
    pub(super) fn count(&mut self, plan: &Plan<'_>, switch: SwitchId, target: EndPortId, port: u8) {
        let Some((node, system, there)) = neighbour(plan.subnet, switch, port) else { return };
        let used = &mut self.used[target.index()];
        let slots = &mut self.slots[target.index() * self.per_port..][..self.per_port];
        let same =
            |remote: &&mut Remote| remote.node == node && (!plan.dor || remote.port == there);
        if let Some(remote) = slots[..usize::from(*used)].iter_mut().find(same) {
            remote.forwarded += 1;
        } else if let Some(slot) = slots.get_mut(usize::from(*used)) {
            *slot = Remote { node, system, port: there, forwarded: 1 };
            *used += 1;
        }
    }
}

/// Returns the node behind a switch port, its system image GUID and its port.
fn neighbour(subnet: &Subnet<'_>, switch: SwitchId, port: u8) -> Option<(NodeId, Guid, u8)> {
    let (node, there) = match subnet.peers(switch)[usize::from(port)] {
        Peer::None => return None,
        Peer::Switch(next, there) => (subnet.switch(next).node, there),
        Peer::EndPort(end_port) => {
            let port = subnet.fabric().port(subnet.end_port(end_port).port);
            (port.node, port.number)
        }
    };
    Some((node, subnet.fabric().node(node).system_guid, there))
}

/// One choice: for one LID of one end port at one switch.
pub(super) struct Chooser<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) switch: SwitchId,
    pub(super) counts: &'a [u32; 256],
    pub(super) used: &'a [Remote],
    pub(super) random: Option<&'a mut LibcRandom>,
}

/// A candidate port as the rules see it.
#[derive(Clone, Copy)]
struct Path {
    port: u8,
    count: u32,
    /// What the port's neighbour has to do with the LIDs routed so far.
    known: Known,
    /// The two flags as they stood when the port was looked at; one keeps its last value where
    /// the other settles the matter, and port shifting goes by that.
    system_flag: bool,
    node_flag: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Nothing: the LMC is zero.
    Unasked,
    /// No LID goes through its system yet.
    NewSystem,
    /// Some LID goes through its system, none through the node.
    NewNode,
    /// So many LIDs go through the node already.
    Forwards(u32),
}

/// The best port so far by each of the three yardsticks.
struct Best {
    any: Option<(u8, u32)>,
    other_system: Option<(u8, u32)>,
    other_node: Option<(u8, u32)>,
    /// The fewest LIDs that the chosen ports' neighbours forward; `None` before the first.
    forwarded: Option<u32>,
}

impl Chooser<'_> {
    /// Returns the port for a LID, scanning the candidates cyclically from a scan position.
    pub(super) fn choose(self, candidates: &[u8], start: usize) -> u8 {
        let ports = usize::from(self.plan.subnet.switch(self.switch).ports) + 1;
        let paths = self.paths(candidates, start % ports);
        if paths.is_empty() {
            return NO_PATH;
        }
        let for_lmc = self.plan.subnet.lmc().get() > 0;
        let mut best = Best { any: None, other_system: None, other_node: None, forwarded: None };
        for path in &paths {
            best.weigh(path);
        }
        let tied: Vec<u8> = {
            let least = best.any.expect("there is a candidate").1;
            paths.iter().filter(|path| path.count == least).map(|path| path.port).collect()
        };
        if self.plan.options.port_shifting {
            best = Best { any: None, other_system: None, other_node: None, forwarded: None };
            let total: u32 = paths.iter().fold(0, |sum, path| sum.wrapping_add(path.count));
            let shift = total as usize / paths.len();
            for step in 0..paths.len() {
                best.weigh_shifted(&paths[(shift + step) % paths.len()], for_lmc);
            }
        }
        if let Some(random) = self.random {
            return tied[random.next() as usize % tied.len()];
        }
        let preferred = if for_lmc { best.other_system.or(best.other_node) } else { None };
        preferred.or(best.any).expect("there is a candidate").0
    }

    fn paths(&self, candidates: &[u8], start: usize) -> Vec<Path> {
        let position = |port: u8| match &self.plan.scan[self.switch.index()] {
            None => usize::from(port),
            Some(order) => {
                order.iter().position(|&other| other == port).expect("all ports are listed")
            }
        };
        let split = candidates.iter().take_while(|&&port| position(port) < start).count();
        let (before, from_start) = candidates.split_at(split);
        let (mut system_flag, mut node_flag) = (false, false);
        from_start
            .iter()
            .chain(before)
            .map(|&port| {
                let known = self.known(port);
                match known {
                    Known::Unasked => {}
                    Known::NewSystem => system_flag = false,
                    Known::NewNode => (system_flag, node_flag) = (true, false),
                    Known::Forwards(_) if self.plan.dor => {}
                    Known::Forwards(_) => (system_flag, node_flag) = (true, true),
                }
                let count = self.counts[usize::from(port)];
                Path { port, count, known, system_flag, node_flag }
            })
            .collect()
    }

    fn known(&self, port: u8) -> Known {
        if self.plan.subnet.lmc().get() == 0 {
            return Known::Unasked;
        }
        let (node, system, there) =
            neighbour(self.plan.subnet, self.switch, port).expect("candidates are linked");
        if self.plan.dor {
            let same = |remote: &&Remote| remote.node == node && remote.port == there;
            return Known::Forwards(
                self.used.iter().find(same).map_or(0, |remote| remote.forwarded),
            );
        }
        if !self.used.iter().any(|remote| remote.system == system) {
            return Known::NewSystem;
        }
        self.used
            .iter()
            .find(|remote| remote.node == node)
            .map_or(Known::NewNode, |remote| Known::Forwards(remote.forwarded))
    }
}

/// Replaces a best port by one that is used less.
fn improve(best: &mut Option<(u8, u32)>, path: &Path) -> bool {
    let better = best.is_none_or(|(_, count)| path.count < count);
    if better {
        *best = Some((path.port, path.count));
    }
    better
}

impl Best {
    fn weigh(&mut self, path: &Path) {
        let first_through_it = match path.known {
            Known::NewSystem => improve(&mut self.other_system, path),
            Known::NewNode => improve(&mut self.other_node, path),
            Known::Unasked | Known::Forwards(_) => false,
        };
        if first_through_it {
            self.forwarded = Some(0);
        }
        let forwards = match path.known {
            Known::Forwards(forwarded) => Some(forwarded),
            Known::Unasked | Known::NewSystem | Known::NewNode => None,
        };
        self.settle(path, forwards);
    }

    /// Weighs a path by its two flags alone, as port shifting does.
    fn weigh_shifted(&mut self, path: &Path, for_lmc: bool) {
        let flagged = path.system_flag || path.node_flag;
        if for_lmc {
            let system = &mut self.other_system;
            let better = !path.system_flag && improve(system, path)
                || !path.node_flag && improve(&mut self.other_node, path);
            if better {
                self.forwarded = Some(0);
            }
        }
        let forwards = match path.known {
            Known::Forwards(forwarded) => forwarded,
            Known::Unasked | Known::NewSystem | Known::NewNode => 0,
        };
        self.settle(path, (for_lmc && flagged).then_some(forwards));
    }

    /// Takes the path when it is used less, or as much while its neighbour forwards fewer LIDs.
    fn settle(&mut self, path: &Path, forwards: Option<u32>) {
        let fewer = forwards.filter(|&f| self.forwarded.is_none_or(|least| f < least));
        let tied = self.any.is_some_and(|(_, count)| path.count == count);
        if improve(&mut self.any, path) {
            self.forwarded = fewer.or(self.forwarded);
        } else if tied && fewer.is_some() {
            self.forwarded = fewer;
            self.any = Some((path.port, path.count));
        }
    }
}
