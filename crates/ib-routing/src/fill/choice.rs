//! The choice of a port if the LMC is not zero, or with port shifting or random choice.

use ib_topology::NodeId;
use ib_types::Guid;

use super::scatter::LibcRandom;
use super::{NO_PATH, Plan};
use crate::subnet::{EndPortId, Peer, Subnet, SwitchId};

/// A neighbour of a switch, over which the switch routes LIDs of an end port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote {
    node: NodeId,
    system: Guid,
    port: u8,
    forwarded: u32,
}

/// By end port: the neighbours over which the current switch routes LIDs of this end port.
#[derive(Default)]
pub(super) struct Remotes {
    per_port: usize,
    slots: Vec<Remote>,
    used: Vec<u16>,
}

impl Remotes {
    /// Forgets the neighbours of the previous switch, before the next switch is routed.
    pub(super) fn reset(&mut self, subnet: &Subnet<'_>) {
        self.per_port = usize::from(subnet.lmc().lids());
        let unused = Remote { node: NodeId(u32::MAX), system: Guid::ZERO, port: 0, forwarded: 0 };
        self.slots.clear();
        self.slots.resize(subnet.end_ports().len() * self.per_port, unused);
        self.used.clear();
        self.used.resize(subnet.end_ports().len(), 0);
    }

    /// Returns the neighbours over which the LIDs of an end port have been routed.
    pub(super) fn of(&self, target: EndPortId) -> &[Remote] {
        let used = usize::from(self.used[target.index()]);
        &self.slots[target.index() * self.per_port..][..used]
    }

    /// Records that one more LID of an end port is routed over the neighbour at a port.
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

/// Returns the node at the far end of a switch port, the node's system image GUID, and the number of the node's port.
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

/// Chooses a port of a switch for one LID of an end port.
pub(super) struct Chooser<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) switch: SwitchId,
    pub(super) counts: &'a [u32; 256],
    pub(super) used: &'a [Remote],
    pub(super) random: Option<&'a mut LibcRandom>,
}

/// A candidate port, with the values that determine its choice.
#[derive(Clone, Copy)]
struct Path {
    port: u8,
    count: u32,
    /// How the other LIDs of the end port use the neighbour at this port.
    known: NeighbourUse,
    /// True if some LID of the end port uses the neighbour's system. As in OpenSM, a candidate copies the flag of the
    /// previous candidate if `known` is [`NeighbourUse::Undetermined`] or, in dor, [`NeighbourUse::Forwards`]. Port
    /// shifting treats copied flags like the others.
    system_flag: bool,
    /// True if some LID of the end port uses the neighbour. Copied like `system_flag`, and also for
    /// [`NeighbourUse::NewSystem`].
    node_flag: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NeighbourUse {
    /// The use is unknown, because the LMC is zero.
    Undetermined,
    /// No LID of the end port uses the neighbour's system yet.
    NewSystem,
    /// Some LID of the end port uses the neighbour's system, but no LID of the end port uses the neighbour itself.
    NewNode,
    /// Number of LIDs of the end port that use the neighbour.
    Forwards(u32),
}

/// The best ports so far, each with the number of LIDs that are routed over it.
struct Best {
    /// The best port among all candidates.
    any: Option<(u8, u32)>,
    /// The best port to a neighbour whose system no LID of the end port uses yet.
    other_system: Option<(u8, u32)>,
    /// The best port to a neighbour that no LID of the end port uses yet.
    other_node: Option<(u8, u32)>,
    /// The neighbour at each best port forwards some number of the end port's LIDs. This is the least of these numbers
    /// over all ports that were the best one so far; `None` if no number is known.
    forwarded: Option<u32>,
}

impl Chooser<'_> {
    /// Returns the port for a LID. The candidates are scanned cyclically from the port number `start` on.
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
            Some(order) => order
                .iter()
                .position(|&other| other == port)
                .expect("the scan order lists all ports"),
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
                    NeighbourUse::Undetermined => {}
                    NeighbourUse::NewSystem => system_flag = false,
                    NeighbourUse::NewNode => (system_flag, node_flag) = (true, false),
                    NeighbourUse::Forwards(_) if self.plan.dor => {}
                    NeighbourUse::Forwards(_) => (system_flag, node_flag) = (true, true),
                }
                let count = self.counts[usize::from(port)];
                Path { port, count, known, system_flag, node_flag }
            })
            .collect()
    }

    fn known(&self, port: u8) -> NeighbourUse {
        if self.plan.subnet.lmc().get() == 0 {
            return NeighbourUse::Undetermined;
        }
        let (node, system, there) =
            neighbour(self.plan.subnet, self.switch, port).expect("candidate ports are linked");
        if self.plan.dor {
            let same = |remote: &&Remote| remote.node == node && remote.port == there;
            return NeighbourUse::Forwards(
                self.used.iter().find(same).map_or(0, |remote| remote.forwarded),
            );
        }
        if !self.used.iter().any(|remote| remote.system == system) {
            return NeighbourUse::NewSystem;
        }
        self.used
            .iter()
            .find(|remote| remote.node == node)
            .map_or(NeighbourUse::NewNode, |remote| NeighbourUse::Forwards(remote.forwarded))
    }
}

/// Replaces `best` by the path's port if this port has a lower count, or if there is no best port yet. Returns true if
/// it did.
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
            NeighbourUse::NewSystem => improve(&mut self.other_system, path),
            NeighbourUse::NewNode => improve(&mut self.other_node, path),
            NeighbourUse::Undetermined | NeighbourUse::Forwards(_) => false,
        };
        if first_through_it {
            self.forwarded = Some(0);
        }
        let forwards = match path.known {
            NeighbourUse::Forwards(forwarded) => Some(forwarded),
            NeighbourUse::Undetermined | NeighbourUse::NewSystem | NeighbourUse::NewNode => None,
        };
        self.settle(path, forwards);
    }

    /// Like `weigh`, but for port shifting, which derives the use of the neighbour from `system_flag` and `node_flag`.
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
            NeighbourUse::Forwards(forwarded) => forwarded,
            NeighbourUse::Undetermined | NeighbourUse::NewSystem | NeighbourUse::NewNode => 0,
        };
        self.settle(path, (for_lmc && flagged).then_some(forwards));
    }

    /// Stores the path's port in `any` if its count is lower than that of the port stored there. Between equal counts,
    /// the port replaces the stored one if `forwards` is known, and `forwarded` is unknown or greater.
    ///
    /// `forwards` is the number of LIDs of the end port that the neighbour at the path's port forwards.
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
