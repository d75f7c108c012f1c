//! Fat-tree routing: balanced for shifts over the compute nodes.
//!
//! | module | holds |
//! |---|---|
//! | `adapters` | the channel adapters' ports, and which of them are compute or I/O nodes |
//! | `ranking` | every switch's distance from the roots, and the rank of the leaves |
//! | `groups` | the links of a switch by direction and far switch |
//! | `indexing` | the digits that order the switches of a rank, and so the leaves |
//! | `validation` | what makes a tree pure |
//! | `targets` | the order of targets |
//! | `routing` | the walks that hand out the routes to a target |
//! | `matrix` | the lid matrix after the walks |

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

/// The ftree engine.
///
/// Switches are ranked by their distance from the roots, and the compute nodes hang on the leaves,
/// which are all of one rank. Routes are handed out target by target, and each takes the links
/// that those before it used least. So targets that follow each other in [`Routing::ca_order`]
/// use links in turn; where a leaf has fewer compute nodes than others, dummies fill it up.
///
/// Where no link joins switches of one rank, packets go up and then down, which closes no credit
/// loop. Only those to I/O nodes may turn up again, [`RoutingOptions::max_reverse_hops`] times.
///
/// The tables are OpenSM's, with one exception: on a leaf with further switches below or beside
/// it, OpenSM reorders the list of compute nodes while it goes through it, by bytes that mean
/// something else, and may forget some. Here all are routed, in the order of the leaf's ports.
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
        let mut router = Router::new(subnet, &ranks, &leaves, groups);
        // Only switches need the lid matrix, so it is made meanwhile.
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
