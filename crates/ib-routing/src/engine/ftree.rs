//! Fat-tree routing, balanced for shift patterns of the compute nodes.
//!
//! | module | contents |
//! |---|---|
//! | `adapters` | the ports of channel adapters and their roles: compute node, I/O node, other |
//! | `ranking` | the rank of every switch (its distance from the roots), and the rank of the leaves |
//! | `groups` | the links of a switch, grouped by direction and neighbour |
//! | `indexing` | the indices by which switches of a rank are ordered, and the order of the leaves |
//! | `validation` | the check that all switches of a rank have the same links up and down |
//! | `targets` | the order in which LIDs are routed |
//! | `routing` | the walks through the tree that determine the routes to a LID |
//! | `matrix` | the hop matrix, with the hops of the assigned routes |

use std::fmt;

use ib_types::ServiceLevel;

use super::{Engine, EngineError, EngineKind, Routing, RoutingOptions};
use crate::hops::HopMatrix;
use crate::layers::Layers;
use crate::subnet::{Subnet, SwitchId};

mod adapters;
mod groups;
mod indexing;
mod matrix;
mod ranking;
mod routing;
mod targets;
mod validation;

use groups::Groups;
use ranking::Ranks;
use routing::{Base, Router};
use targets::ComputeNodes;

/// The ftree engine, which routes fat trees.
///
/// Switches are ranked by their distance from the roots. Compute nodes are attached to the leaves, which all have the
/// same rank. Routes are assigned over the least used links, for one target after the other. So consecutive targets in
/// [`Routing::ca_order`] use different links. Dummies take the place of missing compute nodes of a leaf.
///
/// If no link joins switches of equal rank, packets go up and then down, which closes no credit loop. Only packets to
/// I/O nodes may go up again after they went down, up to [`RoutingOptions::max_reverse_hops`] times.
///
/// The tables equal the tables of OpenSM, with one exception. If switches are below or beside a leaf, OpenSM sorts the
/// leaf's list of compute nodes by unrelated bytes while it iterates over the list, and may skip some nodes. This
/// engine routes all compute nodes, in the order of the leaf's ports.
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
        if !ranks.has_root_list {
            validation::validate(subnet, &ranks, &groups)?;
        }
        let compute_nodes = ComputeNodes::new(subnet, &ports, &leaves);

        let weights = options.link_weights(subnet);
        let mut router = Router::new(subnet, &ranks, &leaves, groups);
        // The hop matrix of shortest paths is needed only for the routes to switches, so it is computed while the
        // routes to channel adapters are determined.
        let (base, routed) = rayon::join(
            || HopMatrix::shortest(subnet, &weights),
            || {
                let turns = options.max_reverse_hops;
                targets::route_adapters(&compute_nodes, &ports, &mut router, turns)
            },
        );
        routed?;
        let counted = Base { hops: &base, counts_links: weights.is_uniform() };
        let connect_by = leaves.order.last().copied().filter(|_| options.connect_roots);
        targets::route_switches(subnet, &ranks, &mut router, counted, connect_by);
        let (lfts, deviations) = router.finish();
        let hops = matrix::matrix(subnet, base, &weights, &deviations);
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
        return unsuitable(format_args!("LMC is {}; expected 0", subnet.lmc()));
    }
    adapters::refuse_direct(subnet)?;
    let switches = subnet.switches().len();
    if switches < 2 {
        return unsuitable(format_args!("the subnet has {switches} switches; expected at least 2"));
    }
    Ok(())
}

fn unsuitable<T>(reason: fmt::Arguments<'_>) -> Result<T, EngineError> {
    Err(EngineError::Unsuitable(format!("ftree: {reason}")))
}

fn switch_name(subnet: &Subnet<'_>, id: SwitchId) -> String {
    format!("switch `{}` ({})", subnet.switch_node(id).description, subnet.switch(id).guid)
}

#[cfg(test)]
mod tests;
