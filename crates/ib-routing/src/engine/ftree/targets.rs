//! The targets, i.e. the ports whose LIDs are routed, and their order.

use super::super::EngineError;
use super::adapters::{AdapterPort, Role};
use super::indexing::Leaves;
use super::ranking::Ranks;
use super::routing::{Base, Router};
use super::unsuitable;
use crate::hops::NO_HOPS;
use crate::lft::NO_PATH;
use crate::subnet::{EndPortId, Subnet, SwitchId};

/// The compute nodes of all leaves, with dummies in place of missing compute nodes.
pub(super) struct ComputeNodes<'a> {
    /// The leaves in order, each with its compute nodes in the order of the leaf's ports.
    leaves: Vec<(SwitchId, Vec<&'a AdapterPort>)>,
    /// Number of compute nodes of the largest leaf. Dummies fill the other leaves up to this number.
    most: usize,
}

impl<'a> ComputeNodes<'a> {
    pub(super) fn new(subnet: &Subnet<'_>, ports: &'a [AdapterPort], leaves: &Leaves) -> Self {
        let mut of_switch = vec![Vec::new(); subnet.switches().len()];
        for port in ports.iter().filter(|port| port.role == Role::Compute) {
            of_switch[port.switch.index()].push(port);
        }
        let leaves: Vec<_> = leaves
            .order
            .iter()
            .map(|&leaf| {
                let mut nodes = std::mem::take(&mut of_switch[leaf.index()]);
                nodes.sort_unstable_by_key(|node| node.switch_port);
                (leaf, nodes)
            })
            .collect();
        let most = leaves.iter().map(|(_, nodes)| nodes.len()).max().unwrap_or(0);
        Self { leaves, most }
    }

    /// Returns the compute nodes in the order in which they are routed. `None` is a dummy.
    pub(super) fn order(&self) -> Vec<Option<EndPortId>> {
        let mut order = Vec::with_capacity(self.leaves.len() * self.most);
        for (_, nodes) in &self.leaves {
            order.extend(nodes.iter().map(|node| Some(node.end_port)));
            order.extend((nodes.len()..self.most).map(|_| None));
        }
        order
    }

    fn route(&self, router: &mut Router<'_>) {
        for (leaf, nodes) in &self.leaves {
            for node in nodes {
                router.route_adapter(node, 0);
            }
            for _ in nodes.len()..self.most {
                router.route_dummy(*leaf);
            }
        }
    }
}

/// Determines the routes whose destinations are channel adapters: first compute nodes and dummies, then all other
/// channel adapters.
///
/// # Errors
/// Fails if the walks make too many upward turns.
pub(super) fn route_adapters(
    compute_nodes: &ComputeNodes<'_>,
    ports: &[AdapterPort],
    router: &mut Router<'_>,
    max_reverse_hops: u8,
) -> Result<(), EngineError> {
    compute_nodes.route(router);
    for port in ports.iter().filter(|port| port.role != Role::Compute) {
        router.route_adapter(port, if port.role == Role::Io { max_reverse_hops } else { 0 });
        if router.is_exhausted() {
            return unsuitable(format_args!(
                "max_reverse_hops is {max_reverse_hops}, which allows more paths to the I/O nodes \
                 than can be tried; expected a smaller number"
            ));
        }
    }
    Ok(())
}

/// Determines the routes whose destinations are the switches.
///
/// `connect_by` is an optional leaf, over which this function adds missing routes. A switch above the leaves forwards
/// packets to this leaf if it has no route to their destination switch. All these packets turn upwards at the leaf, so
/// they cannot close a credit loop.
pub(super) fn route_switches<'a>(
    subnet: &Subnet<'_>,
    ranks: &Ranks,
    router: &mut Router<'a>,
    base: Base<'a>,
    connect_by: Option<SwitchId>,
) {
    let mut to_leaf = Vec::new();
    let mut from_leaf = Vec::new();
    for id in subnet.switch_ids() {
        router.route_switch(id, base);
        from_leaf.extend(connect_by.map(|leaf| router.hops()[leaf.index()]));
        if connect_by == Some(id) {
            to_leaf = router.hops().to_vec();
        }
    }
    let Some(leaf) = connect_by else { return };
    for at in subnet.switch_ids().filter(|&id| ranks.of(id) < ranks.leaf) {
        let port = router.port(at, leaf);
        if port == NO_PATH {
            continue;
        }
        for (to, &beyond) in subnet.switch_ids().zip(&from_leaf) {
            let hops = to_leaf[at.index()].saturating_add(beyond);
            if hops != NO_HOPS && router.port(at, to) == NO_PATH {
                router.detour(at, to, port, hops);
            }
        }
    }
}
