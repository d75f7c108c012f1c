//! The report that is printed when a subnet is up.

use std::io::Write;
use std::time::Duration;

use ib_daemons::sm::SubnetUp;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::command::summary::peak_rss_mb;
use crate::failure::Failure;
use crate::output::{Format, Output};

/// The report that the SM prints each time the subnet comes up; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct Report {
    engine: &'static str,
    requested: String,
    nodes: usize,
    switches: usize,
    lids: usize,
    max_lid: u16,
    /// Number of pairs of a switch and a LID that have no working route; `null` if not known.
    unreachable: Option<u64>,
    /// Number of pairs of hosts that have no working route; `null` if not known.
    unreachable_host_pairs: Option<u64>,
    credit_loops: Option<usize>,
    smps: u64,
    retries: u64,
    faults: usize,
    lft_blocks: u64,
    cached: bool,
    ms: Times,
    /// The clock by which `discover` and `program` are measured: `fabric` (virtual time) if this process
    /// simulates the fabric, else `wall`.
    clock: &'static str,
    peak_rss_mb: f64,
}

/// How long the parts of a sweep took, in milliseconds.
#[derive(Clone, Copy, Serialize, JsonSchema)]
struct Times {
    discover: f64,
    route: f64,
    check: f64,
    program: f64,
    up: f64,
}

/// Prints the report of a sweep. In the first report, `up` is the time since `started`, the start of the process. In
/// later reports, `up` is the duration of the sweep.
pub(super) fn print(
    &SubnetUp { sweep, started, clock }: &SubnetUp<'_>,
    requested: String,
    format: Format,
    out: &mut Output,
) -> Result<(), Failure> {
    let plan = &sweep.plan;
    let total = sweep.discover + sweep.plan_time + sweep.program;
    let up = started.map_or(total, |started| started.elapsed());
    let ms = Times {
        discover: milliseconds(sweep.discover),
        route: milliseconds(plan.route_time),
        check: milliseconds(plan.check_time),
        program: milliseconds(sweep.program),
        up: milliseconds(up),
    };
    let report = Report {
        engine: plan.routing.engine.name(),
        requested,
        nodes: sweep.nodes,
        switches: plan.switches.len(),
        lids: plan.end_ports.values().map(|&(_, lids)| usize::from(lids)).sum(),
        max_lid: plan.max_lid,
        unreachable: sweep.quality.map(|it| it.unreachable),
        unreachable_host_pairs: sweep.quality.map(|it| it.unreachable_host_pairs),
        credit_loops: sweep.quality.map(|it| it.credit_loops),
        smps: sweep.smps,
        retries: sweep.retries,
        faults: sweep.faults,
        lft_blocks: sweep.written.lft_blocks,
        cached: sweep.cached,
        ms,
        clock,
        peak_rss_mb: peak_rss_mb(),
    };
    match format {
        Format::Json => out.json(&report)?,
        Format::Text => writeln!(
            out,
            "SUBNET UP: {} nodes, {} switches, {} LIDs, routed with {} in {:.0} ms{}; {} SMPs, {} \
             retries, {} faults; up in {:.0} ms",
            report.nodes,
            report.switches,
            report.lids,
            report.engine,
            ms.route,
            if report.cached { " (cached)" } else { "" },
            report.smps,
            report.retries,
            report.faults,
            ms.up
        )?,
    }
    out.flush()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> Schema {
    crate::schemas::of::<Report>()
}
