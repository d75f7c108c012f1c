//! Fat-tree routing: balanced for shifts over the compute nodes, and free of credit loops.
//!
//! | module | holds |
//! |---|---|
//! | `adapters` | the channel adapters' ports, and which of them are compute or I/O nodes |
//! | `ranking` | every switch's distance from the roots, and the rank of the leaves |
//! | `groups` | the links of a switch by direction and far switch |
//! | `indexing` | the digits that order the switches of a rank, and so the leaves |
//! | `validation` | what makes a tree pure |
//! | `routing` | the walks that hand out routes to one target after the other |
//! | `matrix` | the lid matrix after the walks |

use ib_types::ServiceLevel;

use super::{Engine, EngineError, EngineKind, Routing, RoutingOptions};
use crate::hops::{HopMatrix, NO_HOPS};
use crate::layers::Layers;
use crate::lft::NO_PATH;
use crate::subnet::{EndPortId, Subnet, SwitchId};

mod adapters;
mod groups;
mod indexing;
mod matrix;
mod ranking;
mod routing;
mod validation;

use adapters::{AdapterPort, Role};
use groups::Groups;
use indexing::Leaves;
use ranking::Ranks;
use routing::Router;

/// The ftree engine.
///
/// Switches are ranked by their distance from the roots, and the compute nodes hang on the leaves,
/// which are all of one rank. Routes are handed out target by target, and each takes the links
/// that those before it used least. So targets that follow each other in [`Routing::ca_order`]
/// use links in turn; where a leaf has fewer compute nodes than others, dummies fill it up.
///
/// The tables are OpenSM's, with one exception: on a leaf that has further switches below it,
/// OpenSM reorders the list of compute nodes while it goes through it, and may forget some. Here
/// all are routed, in the order of the leaf's ports.
#[derive(Clone, Copy, Debug, Default)]
pub struct FatTree;

impl Engine for FatTree {
    fn kind(&self) -> EngineKind {
        EngineKind::FatTree
    }

    fn route(&self, subnet: &Subnet<'_>, options: &RoutingOptions) -> Result<Routing, EngineError> {
        let mut notes = Vec::new();
        check(subnet)?;
        let ports = adapters::collect(subnet, options, &mut notes)?;
        let ranks = Ranks::new(subnet, &ports, options, &mut notes)?;
        let mut groups = Groups::new(subnet, &ranks);
        let quasi = options.quasi_ftree_indexing;
        let leaves = indexing::index(subnet, &ranks, &ports, &mut groups, quasi)?;
        if !ranks.roots_given {
            validation::validate(subnet, &ranks, &groups)?;
        }
        let compute_nodes = ComputeNodes::new(subnet, &ports, &leaves);

        let weights = options.link_weights(subnet);
        let base = HopMatrix::shortest(subnet, &weights);
        let counts_links = weights.is_uniform();
        let mut router = Router::new(subnet, &ranks, &leaves, groups, (&base, counts_links));
        compute_nodes.route(&mut router);
        for port in ports.iter().filter(|port| port.role != Role::Compute) {
            let is_io = port.role == Role::Io;
            router.route_adapter(port, if is_io { options.max_reverse_hops } else { 0 });
            if router.is_exhausted() {
                return unsuitable(format!(
                    "max_reverse_hops {} allows too many ways to the I/O nodes to go through; \
                     expected fewer hops",
                    options.max_reverse_hops
                ));
            }
        }
        route_switches(subnet, &ranks, &leaves, &mut router, options.connect_roots);
        let (lfts, deviations) = router.finish();
        let weight = |switch, port| weights.get(switch, port);
        let hops = matrix::matrix(subnet, base, weight, &deviations);
        Ok(Routing {
            engine: self.kind(),
            lfts,
            hops,
            layers: Layers::uniform(ServiceLevel::default()),
            roots: ranks.roots(subnet),
            ca_order: compute_nodes.order(),
            notes,
        })
    }
}

fn check(subnet: &Subnet<'_>) -> Result<(), EngineError> {
    if subnet.lmc().get() > 0 {
        return unsuitable(format!("LMC is {}; expected 0", subnet.lmc()));
    }
    adapters::refuse_direct(subnet)?;
    let switches = subnet.switches().len();
    if switches < 2 {
        return unsuitable(format!("the subnet has {switches} switches; expected at least 2"));
    }
    Ok(())
}

/// The compute nodes of every leaf.
struct ComputeNodes<'a> {
    /// The leaves in order, each with its compute nodes in the order of its ports.
    leaves: Vec<(SwitchId, Vec<&'a AdapterPort>)>,
    /// The most compute nodes of a leaf, to which dummies fill up the others.
    most: usize,
}

impl<'a> ComputeNodes<'a> {
    fn new(subnet: &Subnet<'_>, ports: &'a [AdapterPort], leaves: &Leaves) -> Self {
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

    fn order(&self) -> Vec<Option<EndPortId>> {
        let mut order = Vec::with_capacity(self.leaves.len() * self.most);
        for (_, nodes) in &self.leaves {
            order.extend(nodes.iter().map(|node| Some(node.end_port)));
            order.extend((nodes.len()..self.most).map(|_| None));
        }
        order
    }
}

/// Routes the LIDs of the switches.
///
/// With `connect_roots`, a switch above the leaves that no walk gave a route to another switch
/// sends by way of the last leaf: as all turns upwards are there, they cannot close a loop.
fn route_switches(
    subnet: &Subnet<'_>,
    ranks: &Ranks,
    leaves: &Leaves,
    router: &mut Router<'_>,
    connect_roots: bool,
) {
    let last_leaf = leaves.order.last().copied().filter(|_| connect_roots);
    let mut to_leaf = Vec::new();
    let mut from_leaf = Vec::with_capacity(subnet.switches().len());
    for id in subnet.switch_ids() {
        router.route_switch(id);
        from_leaf.push(last_leaf.map_or(NO_HOPS, |leaf| router.hops()[leaf.index()]));
        if last_leaf == Some(id) {
            to_leaf = router.hops().to_vec();
        }
    }
    let Some(leaf) = last_leaf else { return };
    for at in subnet.switch_ids().filter(|&id| ranks.of(id) < ranks.leaf) {
        let port = router.port(at, leaf);
        if port == NO_PATH {
            continue;
        }
        for (to, &beyond) in subnet.switch_ids().zip(&from_leaf) {
            let hops = to_leaf[at.index()].saturating_add(beyond);
            if router.port(at, to) == NO_PATH && hops != NO_HOPS {
                router.detour(at, to, port, hops);
            }
        }
    }
}

fn unsuitable<T>(reason: String) -> Result<T, EngineError> {
    Err(EngineError::Unsuitable(format!("ftree: {reason}")))
}

fn switch_name(subnet: &Subnet<'_>, id: SwitchId) -> String {
    format!("switch `{}` ({})", subnet.switch_node(id).description, subnet.switch(id).guid)
}

#[cfg(test)]
mod tests;
