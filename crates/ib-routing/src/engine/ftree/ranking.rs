//! The rank of every switch: its distance from the roots.

use super::super::{EngineError, RoutingOptions};
use super::adapters::{AdapterPort, Role};
use super::{switch_name, unsuitable};
use crate::hops::Graph;
use crate::roots;
use crate::subnet::{Subnet, SwitchId};

/// The minimum and maximum number of ranks of a tree that the engine supports.
const RANKS: std::ops::RangeInclusive<u16> = 2..=8;

/// The rank of a switch that is not connected to any root.
const UNRANKED: u16 = u16::MAX;

/// The ranks of the switches of a subnet. Roots have rank 0.
#[derive(Debug)]
pub(super) struct Ranks {
    of: Vec<u16>,
    /// The rank of the leaves, to which all compute nodes are attached.
    pub(super) leaf: u16,
    /// True if the options contain a list of roots. Then the tree need not be pure, i.e. the switches of a rank may
    /// have different numbers of links.
    pub(super) has_root_list: bool,
}

impl Ranks {
    /// Determines the ranks of all switches, and the rank of the leaves.
    ///
    /// The options can list root GUIDs, which select the roots. If they select no switch of this subnet, or there is no
    /// list, the switches farthest from the nearest channel adapter are the roots. Without a list, the leaves have the
    /// highest rank. With a list, the switch of the first compute node in `ports` determines the rank of the leaves.
    ///
    /// # Errors
    /// Fails if there are too few or too many ranks, and if compute nodes are at different ranks.
    pub(super) fn new(
        subnet: &Subnet<'_>,
        ports: &[AdapterPort],
        options: &RoutingOptions,
        notes: &mut Vec<String>,
    ) -> Result<Self, EngineError> {
        let graph = Graph::new(subnet);
        let switches = subnet.switches().len();
        let named = match &options.root_guids {
            Some(guids) => roots::from_guids(subnet, guids, notes),
            None => Vec::new(),
        };
        let has_root_list = options.root_guids.is_some();
        if has_root_list && named.is_empty() {
            notes.push(
                "none of the root GUIDs is in the subnet; the switches farthest from the channel \
                 adapters are the roots"
                    .into(),
            );
        }
        let roots = if named.is_empty() { farthest(&graph, switches, ports) } else { named };
        let of = distances(&graph, switches, roots);
        let deepest = of.iter().copied().filter(|&rank| rank != UNRANKED).max().unwrap_or(0);
        if deepest == 0 {
            return unsuitable(format_args!(
                "all {switches} switches are at rank 0; expected leaves at a rank below the roots"
            ));
        }
        let leaf = match ports.iter().find(|port| port.role == Role::Compute) {
            Some(first) if has_root_list => of[first.switch.index()],
            _ => deepest,
        };
        let ranks = Self { of, leaf, has_root_list };
        ranks.check(subnet, ports)?;
        Ok(ranks)
    }

    /// Returns the rank of a switch.
    pub(super) fn of(&self, switch: SwitchId) -> u16 {
        self.of[switch.index()]
    }

    /// Returns the switches of rank 0.
    pub(super) fn roots(&self, subnet: &Subnet<'_>) -> Vec<SwitchId> {
        subnet.switch_ids().filter(|&id| self.of(id) == 0).collect()
    }

    fn check(&self, subnet: &Subnet<'_>, ports: &[AdapterPort]) -> Result<(), EngineError> {
        let count = self.leaf.saturating_add(1);
        if !RANKS.contains(&count) {
            return unsuitable(format_args!(
                "the tree has {count} ranks of switches from the roots to the leaves; expected {} \
                 to {}",
                RANKS.start(),
                RANKS.end()
            ));
        }
        let compute = ports.iter().filter(|port| port.role == Role::Compute);
        for port in compute {
            let rank = self.of(port.switch);
            if rank != self.leaf {
                let node = subnet.end_port_node(port.end_port);
                return unsuitable(format_args!(
                    "compute node `{}` (port GUID {}) is on {} of rank {rank}; expected all \
                     compute nodes on leaves, which are of rank {}",
                    node.description,
                    subnet.end_port(port.end_port).guid,
                    switch_name(subnet, port.switch),
                    self.leaf
                ));
            }
        }
        Ok(())
    }
}

/// Returns the switches that are farthest from the nearest channel adapter.
fn farthest(graph: &Graph, switches: usize, ports: &[AdapterPort]) -> Vec<SwitchId> {
    let of = distances(graph, switches, ports.iter().map(|port| port.switch));
    let deepest = of.iter().copied().filter(|&rank| rank != UNRANKED).max();
    (0..switches as u16)
        .filter(|&switch| Some(of[usize::from(switch)]) == deepest)
        .map(SwitchId)
        .collect()
}

/// Returns the distance of every switch from the nearest switch in `from`.
fn distances(graph: &Graph, switches: usize, from: impl IntoIterator<Item = SwitchId>) -> Vec<u16> {
    let mut of = vec![UNRANKED; switches];
    let mut queue = Vec::with_capacity(switches);
    for switch in from {
        if std::mem::replace(&mut of[switch.index()], 0) != 0 {
            queue.push(switch.0);
        }
    }
    let mut head = 0;
    while let Some(&switch) = queue.get(head) {
        head += 1;
        let below = of[usize::from(switch)] + 1;
        for &other in graph.neighbours(switch) {
            if of[usize::from(other)] > below {
                of[usize::from(other)] = below;
                queue.push(other);
            }
        }
    }
    of
}

#[cfg(test)]
mod tests;
