//! How well forwarding tables spread traffic.
//!
//! Both metrics look at sets of flows, each from one compute node to another and each node in at
//! most one flow per direction, and at how many of them meet on a link. Packets are addressed to
//! base LIDs. Flows that do not arrive get no bandwidth and take none; [`mod@crate::check`] says
//! which those are.
//!
//! **Effective bisection bandwidth** is defined by Hoefler, Schneider and Lumsdaine, "Multistage
//! switches are not crossbars: Effects of static routing in high-performance networks", IEEE
//! Cluster 2008, and simulated as their ORCS does: the nodes are split at random into two halves
//! and paired at random; every node of one half sends to its partner in the other (of an odd
//! number, one node sits out). A link is shared evenly by the flows over it and a flow is as fast
//! as its most congested link lets it be. A flow's share is that speed over the speed of the
//! slower of its two hosts' links, at most 1. The metric is the mean share over all flows and
//! bisections. Where all links are equally fast, a share is 1 over the most flows on a link of the
//! path, as in ORCS; where links between switches are faster than hosts', they carry more.
//!
//! **Shift contention** looks at the patterns that the fat-tree engine is made for, see
//! [`ShiftContention`]. All links count alike, whatever their speed.

use crate::lft::Lfts;
use crate::subnet::{EndPortId, Subnet};

mod bisection;
mod paths;
mod routes;
mod shift;

pub use shift::ShiftContention;

use routes::Routes;

/// Measures tables.
///
/// The result depends on the subnet, the tables and the options alone, not on the number of
/// threads.
///
/// # Panics
/// Panics when the tables or the order are those of another subnet.
#[must_use]
pub fn metrics(subnet: &Subnet<'_>, lfts: &Lfts, options: &MetricsOptions<'_>) -> Metrics {
    let routes = Routes::new(subnet, lfts);
    let by_lid: Vec<Option<EndPortId>>;
    let order = if options.ca_order.is_empty() {
        by_lid = routes.adapters_by_lid().into_iter().map(Some).collect();
        &by_lid
    } else {
        options.ca_order
    };
    let nodes: Vec<EndPortId> = order.iter().flatten().copied().collect();
    let total = options.bisections as usize + order.len().saturating_sub(1);
    let advance = |steps: usize| {
        if let Some(progress) = options.progress {
            progress(steps, total);
        }
    };
    Metrics {
        effective_bisection: bisection::effective_bisection(
            &routes,
            &nodes,
            options.bisections,
            options.seed,
            &advance,
        ),
        shift_contention: shift::shift_contention(&routes, order, shift::PATH_MEMORY, &advance),
    }
}

/// What is measured.
#[derive(Clone, Copy)]
pub struct MetricsOptions<'a> {
    /// The seed of the random bisections.
    pub seed: u64,
    /// The number of random bisections.
    pub bisections: u32,
    /// The compute nodes in the order that shifts go by, as [`crate::Routing::ca_order`]; `None`
    /// is a dummy, which neither sends nor receives. Empty: all ports of channel adapters in the
    /// order of their LIDs.
    pub ca_order: &'a [Option<EndPortId>],
    /// Is told how many steps have been done since it was last told, and how many there are in
    /// all, from any thread.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
}

impl Default for MetricsOptions<'_> {
    /// Returns seed 0, 100 bisections and all channel adapters.
    fn default() -> Self {
        Self { seed: 0, bisections: 100, ca_order: &[], progress: None }
    }
}

/// How well tables spread traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// The effective bisection bandwidth as a fraction of the full one, 0 to 1; 1 when there are
    /// fewer than two compute nodes.
    pub effective_bisection: f64,
    /// How much shift patterns contend.
    pub shift_contention: ShiftContention,
}

#[cfg(test)]
mod tests;
