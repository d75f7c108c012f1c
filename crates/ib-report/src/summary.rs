//! The summary of a subnet, its forwarding tables and the check of these tables.

use ib_routing::check::CheckReport;
use ib_routing::metrics::Metrics;
use ib_routing::{Layers, Subnet};
use ib_types::Guid;
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::Serializer;

/// Output of `check`, and most of the output of `route`. The field names are JSON keys.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Summary {
    /// Number of switches that the SM reaches.
    pub switches: usize,
    /// Number of channel adapters and routers that the SM reaches.
    pub hosts: usize,
    /// Number of LIDs. A port with several LIDs counts once for each.
    pub lids: usize,
    /// Number of links that the SM reaches.
    pub links: usize,
    /// Number of links between switches on the longest route.
    pub max_hops: usize,
    /// Mean number of links between switches on a route.
    pub mean_hops: f64,
    /// Number of routes that have more hops than the shortest path.
    pub longer_than_minimum: u64,
    /// Sum of `broken_pairs` and the number of cut-off nodes. With `--strict`, `unreachable_switch_pairs` is added.
    pub unreachable: u64,
    /// Number of pairs of a switch and a LID without a route, except the pairs in `unreachable_switch_pairs`.
    #[serde(skip)]
    pub broken_pairs: u64,
    /// True if `unreachable` includes the pairs in `unreachable_switch_pairs`.
    #[serde(skip)]
    pub strict: bool,
    /// Number of pairs of a switch and a LID without a route that are not faults by default. In such a pair, the switch
    /// has no LFT entry for the LID. Moreover, the LID belongs to port 0 of another switch, or the switch has no hosts.
    pub unreachable_switch_pairs: u64,
    /// Number of pairs of a switch and a LID that cannot be judged: the packets reach an LFT entry that is missing in
    /// the dump.
    pub not_judged: u64,
    /// Number of LIDs with a forwarding loop.
    pub forwarding_loops: usize,
    /// Number of credit loops.
    pub credit_loops: usize,
    /// Number of channels in credit loops. A channel is a VL of a directed link.
    pub credit_loop_channels: usize,
    /// Number of routing layers. Each layer has its own VLs.
    pub layers: usize,
    /// Statistics of the routes over each link between switches.
    pub link_load: Load,
    /// Port GUID of the SM.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    pub sm_port: Guid,
    /// GUID and description of each node that the SM does not reach.
    pub cut_off: Vec<String>,
    /// The first problems of each kind, and the most loaded links, as text.
    pub examples: Examples,
    /// Metrics of the routes, if they were measured.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsSummary>,
}

/// The first problems of each kind, and the most loaded links, as text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Examples {
    unreachable: Vec<String>,
    not_judged: Vec<String>,
    forwarding_loops: Vec<String>,
    credit_loops: Vec<Vec<String>>,
    loaded_links: Vec<String>,
}

impl Examples {
    fn new(subnet: &Subnet<'_>, report: &CheckReport) -> Self {
        let reach = &report.reach;
        Self {
            unreachable: reach.first.iter().map(|pair| pair.describe(subnet)).collect(),
            not_judged: reach.first_unknown.iter().map(|pair| pair.describe(subnet)).collect(),
            forwarding_loops: reach.loops.iter().map(|found| found.describe(subnet)).collect(),
            credit_loops: report.credit.first.iter().map(|found| found.describe(subnet)).collect(),
            loaded_links: report.load.worst.iter().map(|link| link.describe(subnet)).collect(),
        }
    }
}

/// Statistics of the routes over each directed link between switches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Load {
    /// Number of routes over the most loaded link.
    pub max: u32,
    /// Mean number of routes over a link.
    pub mean: f64,
    /// Coefficient of variation of the number of routes over a link: the standard deviation divided by the mean.
    pub cv: f64,
}

/// Measured metrics of the routes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MetricsSummary {
    /// Effective bisection bandwidth as a fraction of the full bandwidth, from 0 to 1.
    pub effective_bisection: f64,
    /// Number of flows on the most congested link in the worst shift pattern.
    pub shift_contention: u32,
    /// Number of flows on the most congested link of a shift pattern, as a mean over all shift patterns.
    pub shift_contention_mean: f64,
}

impl From<&Metrics> for MetricsSummary {
    fn from(metrics: &Metrics) -> Self {
        Self {
            effective_bisection: rounded(metrics.effective_bisection),
            shift_contention: metrics.shift_contention.max,
            shift_contention_mean: rounded(metrics.shift_contention.mean),
        }
    }
}

fn as_text<S: Serializer>(guid: &Guid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(guid)
}

/// Rounds to four decimal places.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

impl Summary {
    /// Summarises the check of a subnet's forwarding tables.
    #[must_use]
    pub fn new(
        subnet: &Subnet<'_>,
        layers: &Layers,
        report: &CheckReport,
        metrics: Option<&Metrics>,
        strict: bool,
    ) -> Self {
        let strictly = if strict { report.reach.unreachable_switch_pairs } else { 0 };
        let fabric = subnet.fabric();
        let adapters = fabric
            .nodes()
            .filter(|(id, node)| !node.kind.is_switch() && !subnet.cut_off().contains(id));
        Self {
            switches: subnet.switches().len(),
            hosts: adapters.count(),
            lids: subnet.end_ports().iter().map(|port| usize::from(port.lids)).sum(),
            links: fabric
                .links()
                .filter(|&(end, _)| !subnet.cut_off().contains(&fabric.port(end).node))
                .count(),
            max_hops: report.hops.max(),
            mean_hops: rounded(report.hops.mean()),
            longer_than_minimum: report.hops.longer_than_minimum,
            unreachable: report.reach.unreachable + subnet.cut_off().len() as u64 + strictly,
            broken_pairs: report.reach.unreachable,
            strict,
            unreachable_switch_pairs: report.reach.unreachable_switch_pairs,
            not_judged: report.reach.unknown,
            forwarding_loops: report.reach.looping_lids,
            credit_loops: report.credit.loops,
            credit_loop_channels: report.credit.channels,
            layers: layers.count(),
            link_load: Load {
                max: report.load.max,
                mean: rounded(report.load.mean),
                cv: rounded(report.load.cv),
            },
            cut_off: subnet
                .cut_off()
                .iter()
                .map(|&id| {
                    let node = fabric.node(id);
                    format!("{} '{}'", node.guid, node.description)
                })
                .collect(),
            metrics: metrics.map(MetricsSummary::from),
            sm_port: subnet.end_port(subnet.sm_port()).guid,
            examples: Examples::new(subnet, report),
        }
    }

    /// Returns true if a node is cut off, a LID is unreachable, or there is a forwarding or credit loop.
    #[must_use]
    pub const fn has_problems(&self) -> bool {
        self.unreachable > 0
            || self.forwarding_loops > 0
            || self.credit_loops > 0
            || !self.cut_off.is_empty()
    }

    /// Returns true if there are no problems, and every LFT entry that packets use is known.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        !self.has_problems() && self.not_judged == 0
    }
}
