//! The summary of a subnet, its forwarding tables and the check of these tables.

use std::collections::BTreeMap;

use ib_routing::check::CheckReport;
use ib_routing::metrics::Metrics;
use ib_routing::{Layers, Subnet};
use ib_topology::{Fabric, LinkRate, Port, PortId};
use ib_types::Guid;
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::Serializer;

/// JSON output of `ibfabric check`, and most of the JSON output of `ibfabric route`. The field names are JSON keys.
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
    /// Number of slow links. A link between switches is slow if its rate is below the most frequent rate of the links
    /// between switches. A link of a host is compared with the links of all hosts.
    pub slow_links: usize,
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
    /// The first problems of each kind, the most loaded links, and the first slow links, as text.
    pub examples: Examples,
    /// Metrics of the routes, if they were measured.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsSummary>,
}

/// The first problems of each kind, the most loaded links, and the first slow links, as text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Examples {
    unreachable: Vec<String>,
    not_judged: Vec<String>,
    forwarding_loops: Vec<String>,
    credit_loops: Vec<Vec<String>>,
    loaded_links: Vec<String>,
    slow_links: Vec<String>,
}

/// Maximum number of slow links in [`Examples`].
const SLOW_LINKS_SHOWN: usize = 16;

impl Examples {
    /// Returns the slow links, one per line of text.
    #[must_use]
    pub fn slow_links(&self) -> &[String] {
        &self.slow_links
    }

    fn new(subnet: &Subnet<'_>, report: &CheckReport, slow_links: &[PortId]) -> Self {
        let describe = |&end: &PortId| describe_link(subnet.fabric(), end);
        let reach = &report.reach;
        Self {
            unreachable: reach.first.iter().map(|pair| pair.describe(subnet)).collect(),
            not_judged: reach.first_unknown.iter().map(|pair| pair.describe(subnet)).collect(),
            forwarding_loops: reach.loops.iter().map(|found| found.describe(subnet)).collect(),
            credit_loops: report.credit.first.iter().map(|found| found.describe(subnet)).collect(),
            loaded_links: report.load.worst.iter().map(|link| link.describe(subnet)).collect(),
            slow_links: slow_links.iter().take(SLOW_LINKS_SHOWN).map(describe).collect(),
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

/// Returns the slow links among `links`, each given by one of its ports. See [`Summary::slow_links`].
fn slow_links(fabric: &Fabric, links: &[PortId]) -> Vec<PortId> {
    let joins_switches = |end: PortId| {
        let is_switch = |port: &Port| fabric.node(port.node).kind.is_switch();
        is_switch(fabric.port(end)) && fabric.peer(end).is_some_and(is_switch)
    };
    let (between_switches, of_hosts): (Vec<PortId>, Vec<PortId>) =
        links.iter().copied().partition(|&end| joins_switches(end));
    let mut slow = Vec::new();
    for kind in [between_switches, of_hosts] {
        let rate = |end: PortId| fabric.port(end).rate.megabits_per_second();
        let mut counts = BTreeMap::<u32, usize>::new();
        for &end in &kind {
            *counts.entry(rate(end)).or_default() += 1;
        }
        // Of several rates that are equally frequent, the fastest counts.
        let Some((&most_frequent, _)) = counts.iter().max_by_key(|&(_, count)| count) else {
            continue;
        };
        slow.extend(kind.into_iter().filter(|&end| rate(end) < most_frequent));
    }
    slow
}

/// Describes a link and its rate in one line.
fn describe_link(fabric: &Fabric, end: PortId) -> String {
    let name = |port: &Port| {
        let node = fabric.node(port.node);
        format!("{} ('{}') port {}", node.guid, node.description, port.number)
    };
    let port = fabric.port(end);
    let peer = fabric.peer(end).unwrap_or(port);
    let LinkRate { width, speed } = port.rate;
    format!("{} to {}: {width}{speed}", name(port), name(peer))
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
        let links: Vec<PortId> = fabric
            .links()
            .map(|(end, _)| end)
            .filter(|&end| !subnet.cut_off().contains(&fabric.port(end).node))
            .collect();
        let slow_links = slow_links(fabric, &links);
        let adapters = fabric
            .nodes()
            .filter(|(id, node)| !node.kind.is_switch() && !subnet.cut_off().contains(id));
        Self {
            switches: subnet.switches().len(),
            hosts: adapters.count(),
            lids: subnet.end_ports().iter().map(|port| usize::from(port.lids)).sum(),
            links: links.len(),
            slow_links: slow_links.len(),
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
            examples: Examples::new(subnet, report, &slow_links),
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

#[cfg(test)]
mod tests {
    use ib_topology::read;
    use ib_types::{LinkSpeed, LinkWidth};

    use super::*;

    /// A ring of three switches, with one link at 1x SDR, and a host at 4x EDR.
    const RING: &str = "\
Switch 3 \"S-0000000000000001\" # \"a\"
[1] \"S-0000000000000002\"[1] # lid 0 4xNDR
[2] \"S-0000000000000003\"[1] # lid 0 1xSDR
[3] \"H-0000000000000011\"[1] # lid 0 4xEDR

Switch 3 \"S-0000000000000002\" # \"b\"
[1] \"S-0000000000000001\"[1] # lid 0 4xNDR
[2] \"S-0000000000000003\"[2] # lid 0 4xNDR

Switch 3 \"S-0000000000000003\" # \"c\"
[1] \"S-0000000000000001\"[2] # lid 0 1xSDR
[2] \"S-0000000000000002\"[2] # lid 0 4xNDR

Ca 1 \"H-0000000000000011\" # \"h\"
[1] \"S-0000000000000001\"[3] # lid 0 lmc 0 \"a\" lid 0 4xEDR
";

    #[test]
    fn link_below_the_most_frequent_rate_of_its_kind_is_slow() {
        let fabric = read("ring.net", RING.as_bytes()).expect("the fabric file is valid");
        let links: Vec<PortId> = fabric.links().map(|(end, _)| end).collect();
        let slow = slow_links(&fabric, &links);
        let rates: Vec<LinkRate> = slow.iter().map(|&end| fabric.port(end).rate).collect();
        assert_eq!(rates, [LinkRate { width: LinkWidth::X1, speed: LinkSpeed::Sdr }]);
    }
}
