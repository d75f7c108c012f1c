//! What `route` and `check` report of a subnet and its tables.

use std::io::Write;
use std::time::Instant;

use ib_daemons::progress::Progress;
pub(crate) use ib_daemons::text::counted;
use ib_routing::check::{CheckReport, LinkLoad, Reachability};
use ib_routing::metrics::{Metrics, MetricsOptions, metrics};
use ib_routing::{EndPortId, Layers, Lfts, Subnet};
use ib_types::Guid;
use serde::Serialize;
use serde::ser::Serializer;

use crate::cli::SubnetArgs;
use crate::failure::{Failure, Verdict};
use crate::output::Output;

/// How many nodes that are cut off are named.
const CUT_OFF_SHOWN: usize = 16;

/// The result of `check`, and the greater part of that of `route`; the names are JSON keys.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) switches: usize,
    pub(crate) hosts: usize,
    pub(crate) lids: usize,
    pub(crate) links: usize,
    pub(crate) max_hops: usize,
    pub(crate) mean_hops: f64,
    pub(crate) longer_than_minimum: u64,
    /// Pairs of a switch and a LID that fail, and nodes that are cut off; with `--strict` also the
    /// pairs that only matter to switches.
    pub(crate) unreachable: u64,
    #[serde(skip)]
    pub(crate) broken_pairs: u64,
    #[serde(skip)]
    strict: bool,
    pub(crate) unreachable_switch_pairs: u64,
    /// Pairs of a switch and a LID whose packets reach an entry that is missing in the dump.
    pub(crate) not_judged: u64,
    pub(crate) forwarding_loops: usize,
    pub(crate) credit_loops: usize,
    pub(crate) credit_loop_channels: usize,
    pub(crate) layers: usize,
    pub(crate) link_load: Load,
    #[serde(serialize_with = "as_text")]
    pub(crate) sm_port: Guid,
    pub(crate) cut_off: Vec<String>,
    pub(crate) examples: Examples,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<MetricsSummary>,
}

/// The first of what is wrong, and the most loaded links, in words.
#[derive(Debug, Serialize)]
pub(crate) struct Examples {
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

#[derive(Debug, Serialize)]
pub(crate) struct Load {
    pub(crate) max: u32,
    pub(crate) mean: f64,
    pub(crate) cv: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct MetricsSummary {
    pub(crate) effective_bisection: f64,
    pub(crate) shift_contention: u32,
    pub(crate) shift_contention_mean: f64,
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

/// Rounds to four places: the rest is noise to a reader.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

impl Summary {
    pub(crate) fn new(
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

    pub(crate) fn verdict(&self) -> Verdict {
        let sound = self.unreachable == 0 && self.forwarding_loops == 0 && self.credit_loops == 0;
        match Verdict::good_if(sound && self.cut_off.is_empty()) {
            Verdict::Good if self.not_judged > 0 => Verdict::Other(NOT_JUDGED),
            verdict => verdict,
        }
    }

    /// Prints the figures, and behind them what is wrong, for people.
    pub(crate) fn print(
        &self,
        subnet: &Subnet<'_>,
        report: &CheckReport,
        out: &mut Output,
    ) -> Result<(), Failure> {
        writeln!(
            out,
            "subnet       {}, {}, {}, {}",
            counted(self.switches, "switch"),
            counted(self.hosts, "host"),
            counted(self.lids, "LID"),
            counted(self.links, "link")
        )?;
        let manager = subnet.end_port(subnet.sm_port());
        writeln!(
            out,
            "manager      on '{}', port GUID {}, LID {}",
            subnet.end_port_node(subnet.sm_port()).description,
            manager.guid,
            manager.base_lid
        )?;
        writeln!(
            out,
            "hops         {} at most, {:.2} on average, {} routes longer than need be",
            self.max_hops, self.mean_hops, self.longer_than_minimum
        )?;
        let load = &self.link_load;
        writeln!(
            out,
            "link load    at most {}, {:.1} on average, coefficient of variation {:.3}",
            counted(load.max, "route"),
            load.mean,
            load.cv
        )?;
        if let Some(metrics) = &self.metrics {
            writeln!(
                out,
                "metrics      {:.1} % effective bisection bandwidth; shift pattern: at most {} on \
                 a link, {:.2} on average",
                metrics.effective_bisection * 100.0,
                counted(metrics.shift_contention, "flow"),
                metrics.shift_contention_mean
            )?;
        }
        let cut_off = self.cut_off.len();
        match (self.unreachable, self.unreachable_switch_pairs) {
            (0, _) if self.not_judged > 0 => writeln!(
                out,
                "reachable    NOT KNOWN: {} of a switch and a LID cannot be judged",
                counted(self.not_judged, "pair")
            )?,
            (0, 0) => writeln!(out, "reachable    everything")?,
            (0, _) => writeln!(out, "reachable    all hosts from everywhere")?,
            _ => writeln!(
                out,
                "reachable    NO: {} cut off, {} of a switch and a LID without a route",
                counted(cut_off, "node"),
                counted(self.unreachable - cut_off as u64, "pair")
            )?,
        }
        let lanes = counted(self.layers, "layer");
        match (self.credit_loops, self.forwarding_loops) {
            (0, 0) if self.not_judged > 0 => {
                writeln!(out, "deadlock     none found in the known entries, {lanes}")?;
            }
            (0, 0) => writeln!(out, "deadlock     none possible, {lanes}")?,
            (0, _) => writeln!(out, "deadlock     POSSIBLE where packets go round in circles")?,
            (loops, _) => writeln!(
                out,
                "deadlock     POSSIBLE: {} of {} in all, {lanes}",
                counted(loops, "credit loop"),
                counted(self.credit_loop_channels, "channel")
            )?,
        }
        self.print_faults(subnet, report, out)
    }

    fn print_faults(
        &self,
        subnet: &Subnet<'_>,
        report: &CheckReport,
        out: &mut Output,
    ) -> Result<(), Failure> {
        if !self.cut_off.is_empty() {
            let nodes = counted(self.cut_off.len(), "node");
            writeln!(out, "\ncut off from the subnet manager: {nodes}")?;
            for node in self.cut_off.iter().take(CUT_OFF_SHOWN) {
                writeln!(out, "  {node}")?;
            }
            if self.cut_off.len() > CUT_OFF_SHOWN {
                writeln!(out, "  and {} more", self.cut_off.len() - CUT_OFF_SHOWN)?;
            }
            writeln!(out, "a subnet of its own is routed with --sm-port and one of its ports")?;
        }
        let Reachability { unreachable, first, looping_lids, loops, .. } = &report.reach;
        if *unreachable > 0 {
            writeln!(out, "\npairs of a switch and a LID that are broken: {unreachable}")?;
            for pair in first {
                writeln!(out, "  {}", pair.describe(subnet))?;
            }
        }
        if self.not_judged > 0 {
            writeln!(
                out,
                "\npairs of a switch and a LID that cannot be judged: {}",
                self.not_judged
            )?;
            for pair in &report.reach.first_unknown {
                writeln!(out, "  {}", pair.describe(subnet))?;
            }
        }
        if self.unreachable_switch_pairs > 0 {
            writeln!(
                out,
                "\nwithout a route, as usual with updn and ftree: {} of a switch and a LID where one \
                 end is a switch's own port",
                counted(self.unreachable_switch_pairs, "pair")
            )?;
            for pair in report.reach.first_switch_pairs.iter().filter(|_| self.strict) {
                writeln!(out, "  {}", pair.describe(subnet))?;
            }
        }
        if *looping_lids > 0 {
            writeln!(out, "\nLIDs whose packets go round in circles: {looping_lids}")?;
            for forwarding_loop in loops {
                writeln!(out, "  {}", forwarding_loop.describe(subnet))?;
            }
        }
        for (number, credit_loop) in report.credit.first.iter().enumerate() {
            writeln!(
                out,
                "\ncredit loop {} of {}, among {} channels that wait for each other:",
                number + 1,
                report.credit.loops,
                credit_loop.channels
            )?;
            for step in credit_loop.describe(subnet) {
                writeln!(out, "  {step}")?;
            }
        }
        let omitted = report.credit.loops - report.credit.first.len();
        if omitted > 0 {
            writeln!(out, "\nand {}", counted(omitted, "more credit loop"))?;
        }
        Ok(())
    }
}

/// Exit status if no problems are found, but a part of the fabric could not be checked.
const NOT_JUDGED: u8 = 3;

/// How many of the most loaded links are printed.
const LINKS_SHOWN: usize = 5;

/// Prints the most loaded links, unless all are loaded alike.
pub(crate) fn print_worst_links(
    load: &LinkLoad,
    subnet: &Subnet<'_>,
    out: &mut Output,
) -> Result<(), Failure> {
    if load.max == 0 {
        return Ok(());
    }
    if load.cv == 0.0 {
        writeln!(out, "\nall links between switches carry {} routes", load.max)?;
        return Ok(());
    }
    writeln!(out, "\nmost loaded links, by routes from host to host:")?;
    for link in load.worst.iter().take(LINKS_SHOWN) {
        writeln!(out, "  {}", link.describe(subnet))?;
    }
    Ok(())
}

/// Measures the tables when the options ask for it.
pub(crate) fn measure(
    subnet: &Subnet<'_>,
    lfts: &Lfts,
    ca_order: &[Option<EndPortId>],
    args: &SubnetArgs,
    progress: &Progress,
) -> Option<Metrics> {
    args.metrics.then(|| {
        let bar = progress.count("measuring bisections and shifts");
        let count = |steps: usize, total: usize| {
            bar.set_length(total as u64);
            bar.inc(steps as u64);
        };
        let options = MetricsOptions {
            seed: args.seed,
            ca_order,
            progress: Some(&count),
            ..Default::default()
        };
        metrics(subnet, lfts, &options)
    })
}

/// Makes the threads that the options ask for.
pub(crate) fn set_threads(args: &SubnetArgs) -> Result<(), Failure> {
    let Some(threads) = args.threads else { return Ok(()) };
    rayon::ThreadPoolBuilder::new()
        .num_threads(usize::from(threads))
        .build_global()
        .map_err(|error| Failure::Unusable(format!("cannot start {threads} threads: {error}")))
}

/// Milliseconds since a moment, to the microsecond.
pub(crate) fn milliseconds(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1e6).round() / 1e3
}

/// The most memory that the process has held, in MiB; zero where the system does not tell.
pub(crate) fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse::<f64>().ok());
    rounded(kilobytes.unwrap_or(0.0) / 1024.0)
}
