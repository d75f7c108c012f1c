//! Metrics of forwarding tables: effective bisection bandwidth and shift contention.
//!
//! The metrics consider sets of flows between compute nodes, in which each node sends and receives at most one flow.
//! Both metrics count the flows that share a link. Packets are addressed to base LIDs. Flows whose packets are lost get
//! no bandwidth and use none; [`mod@crate::check`] reports them.
//!
//! **Effective bisection bandwidth** is defined by Hoefler, Schneider and Lumsdaine, "Multistage switches are not
//! crossbars: Effects of static routing in high-performance networks", IEEE Cluster 2008. It is computed as in their
//! simulator ORCS. The nodes are split at random into two halves and paired at random. Every node of one half sends to
//! its partner in the other half. If the number of nodes is odd, one node is left out. The flows over a link get equal
//! parts of its rate, and a flow has the rate that it gets on its most congested link. The share of a flow is this rate
//! divided by the rate of the slower host link, at most 1. The metric is the mean share over all flows and bisections.
//! If all links have the same rate, a share is 1 divided by the maximum number of flows on a link of the path, as in
//! ORCS.
//!
//! **Shift contention** considers the patterns for which the ftree engine is optimised; see [`ShiftContention`]. It
//! ignores the rates of links.

use crate::lft::Lfts;
use crate::subnet::{EndPortId, Subnet};

mod bisection;
mod paths;
mod routes;
mod shift;

pub use shift::ShiftContention;

use routes::Routes;

/// Computes the metrics of forwarding tables.
///
/// The result depends only on the subnet, the tables and the options. It does not depend on the number of threads.
///
/// # Panics
/// Panics if the tables, or the ports in `ca_order`, belong to another subnet.
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

/// Options of [`metrics()`].
#[derive(Clone, Copy)]
pub struct MetricsOptions<'a> {
    /// Seed of the random bisections.
    pub seed: u64,
    /// Number of random bisections.
    pub bisections: u32,
    /// The compute nodes in the order of the shift patterns, as in [`crate::Routing::ca_order`]. `None` is a dummy
    /// without flows. If the list is empty, all ports of channel adapters are used, in the order of their LIDs.
    pub ca_order: &'a [Option<EndPortId>],
    /// Callback for the progress, which any thread may call. A step is one bisection or one shift. The arguments are
    /// the number of steps completed since the last call, and the total number of steps.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
}

impl Default for MetricsOptions<'_> {
    /// Returns options with seed 0, 100 bisections, and all channel adapters as compute nodes.
    fn default() -> Self {
        Self { seed: 0, bisections: 100, ca_order: &[], progress: None }
    }
}

/// Metrics of forwarding tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// Effective bisection bandwidth as a fraction of the full bandwidth, from 0 to 1. With fewer than two compute
    /// nodes, it is 1.
    pub effective_bisection: f64,
    /// Contention of shift patterns.
    pub shift_contention: ShiftContention,
}

#[cfg(test)]
mod tests;
