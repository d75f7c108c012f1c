//! The text that `route` and `check` print about a subnet and its forwarding tables.

use std::io::Write;
use std::time::Instant;

pub(crate) use ib_daemons::message::counted;
use ib_daemons::progress::Progress;
use ib_report::summary::{Summary, rounded};
use ib_routing::check::{CheckReport, LinkLoad, Reachability};
use ib_routing::metrics::{Metrics, MetricsOptions, metrics};
use ib_routing::{EndPortId, Lfts, Subnet};

use crate::cli::routing::SubnetArgs;
use crate::failure::{Failure, Verdict};
use crate::output::Output;

/// The maximum number of cut-off nodes to print.
const CUT_OFF_SHOWN: usize = 16;

/// Exit status if no problems are found, but some pairs of a switch and a LID could not be checked.
const NOT_JUDGED: u8 = 3;

pub(crate) fn verdict(summary: &Summary) -> Verdict {
    if summary.has_problems() {
        Verdict::Bad
    } else if summary.not_judged > 0 {
        Verdict::Other(NOT_JUDGED)
    } else {
        Verdict::Good
    }
}

/// Prints the key figures of a subnet and its forwarding tables, followed by the problems.
pub(crate) fn print(
    summary: &Summary,
    subnet: &Subnet<'_>,
    report: &CheckReport,
    out: &mut Output,
) -> Result<(), Failure> {
    writeln!(
        out,
        "subnet       {}, {}, {}, {}",
        counted(summary.switches, "switch"),
        counted(summary.hosts, "host"),
        counted(summary.lids, "LID"),
        counted(summary.links, "link")
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
        summary.max_hops, summary.mean_hops, summary.longer_than_minimum
    )?;
    let load = &summary.link_load;
    writeln!(
        out,
        "link load    at most {}, {:.1} on average, coefficient of variation {:.3}",
        counted(load.max, "route"),
        load.mean,
        load.cv
    )?;
    if let Some(metrics) = &summary.metrics {
        writeln!(
            out,
            "metrics      {:.1} % effective bisection bandwidth; shift pattern: at most {} on \
             a link, {:.2} on average",
            metrics.effective_bisection * 100.0,
            counted(metrics.shift_contention, "flow"),
            metrics.shift_contention_mean
        )?;
    }
    let cut_off = summary.cut_off.len();
    match (summary.unreachable, summary.unreachable_switch_pairs) {
        (0, _) if summary.not_judged > 0 => writeln!(
            out,
            "reachable    NOT KNOWN: {} of a switch and a LID cannot be judged",
            counted(summary.not_judged, "pair")
        )?,
        (0, 0) => writeln!(out, "reachable    everything")?,
        (0, _) => writeln!(out, "reachable    all hosts from everywhere")?,
        _ => writeln!(
            out,
            "reachable    NO: {} cut off, {} of a switch and a LID without a route",
            counted(cut_off, "node"),
            counted(summary.unreachable - cut_off as u64, "pair")
        )?,
    }
    let layers = counted(summary.layers, "layer");
    match (summary.credit_loops, summary.forwarding_loops) {
        (0, 0) if summary.not_judged > 0 => {
            writeln!(out, "deadlock     none found in the known entries, {layers}")?;
        }
        (0, 0) => writeln!(out, "deadlock     none possible, {layers}")?,
        (0, _) => writeln!(out, "deadlock     POSSIBLE: there are forwarding loops")?,
        (loops, _) => writeln!(
            out,
            "deadlock     POSSIBLE: {} of {} in all, {layers}",
            counted(loops, "credit loop"),
            counted(summary.credit_loop_channels, "channel")
        )?,
    }
    print_problems(summary, subnet, report, out)
}

fn print_problems(
    summary: &Summary,
    subnet: &Subnet<'_>,
    report: &CheckReport,
    out: &mut Output,
) -> Result<(), Failure> {
    if !summary.cut_off.is_empty() {
        let nodes = counted(summary.cut_off.len(), "node");
        writeln!(out, "\ncut off from the subnet manager: {nodes}")?;
        for node in summary.cut_off.iter().take(CUT_OFF_SHOWN) {
            writeln!(out, "  {node}")?;
        }
        if summary.cut_off.len() > CUT_OFF_SHOWN {
            writeln!(out, "  and {} more", summary.cut_off.len() - CUT_OFF_SHOWN)?;
        }
        writeln!(
            out,
            "to route these nodes as a separate subnet, give --sm-port the GUID of a port of one of them"
        )?;
    }
    let Reachability { unreachable, first, looping_lids, loops, .. } = &report.reach;
    if *unreachable > 0 {
        writeln!(out, "\npairs of a switch and a LID that are broken: {unreachable}")?;
        for pair in first {
            writeln!(out, "  {}", pair.describe(subnet))?;
        }
    }
    if summary.not_judged > 0 {
        writeln!(
            out,
            "\npairs of a switch and a LID that cannot be judged: {}",
            summary.not_judged
        )?;
        for pair in &report.reach.first_unknown {
            writeln!(out, "  {}", pair.describe(subnet))?;
        }
    }
    if summary.unreachable_switch_pairs > 0 {
        writeln!(
            out,
            "\nwithout a route, as usual with updn and ftree: {} of which one end is a switch's own \
             port",
            counted(summary.unreachable_switch_pairs, "pair")
        )?;
        for pair in report.reach.first_switch_pairs.iter().filter(|_| summary.strict) {
            writeln!(out, "  {}", pair.describe(subnet))?;
        }
    }
    if *looping_lids > 0 {
        writeln!(out, "\nLIDs with forwarding loops: {looping_lids}")?;
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
    if summary.slow_links > 0 {
        writeln!(
            out,
            "\nslower than most links of their kind: {}",
            counted(summary.slow_links, "link")
        )?;
        for link in summary.examples.slow_links() {
            writeln!(out, "  {link}")?;
        }
    }
    Ok(())
}

/// The maximum number of most loaded links to print.
const LINKS_SHOWN: usize = 5;

/// Prints the links with the highest load, unless all have the same load.
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

/// Measures bisection bandwidth and contention if the options request it.
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

/// Starts the worker threads, in the number that the options specify.
pub(crate) fn set_threads(args: &SubnetArgs) -> Result<(), Failure> {
    let Some(threads) = args.threads else { return Ok(()) };
    rayon::ThreadPoolBuilder::new()
        .num_threads(usize::from(threads))
        .build_global()
        .map_err(|error| Failure::Unusable(format!("cannot start {threads} threads: {error}")))
}

/// Returns the milliseconds since a time, with a resolution of one microsecond.
pub(crate) fn milliseconds(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1e6).round() / 1e3
}

/// Returns the peak resident set size of the process in MiB; zero if the system does not report it.
pub(crate) fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse::<f64>().ok());
    rounded(kilobytes.unwrap_or(0.0) / 1024.0)
}
