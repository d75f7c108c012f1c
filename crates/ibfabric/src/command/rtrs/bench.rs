//! `rtrs bench`: measures a block device of a server, and verifies its data.

use std::io::Write as _;

use ib_daemons::rtrs::bench::{BenchReport, BlockSizes, Latency, bench};

use crate::cli::rtrs::BenchArgs;
use crate::command::summary::counted;
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

pub(super) fn run(args: &BenchArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let report = bench(&args.remote.config(), &args.config())?;
    match Format::of(args.json) {
        Format::Json => out.json(&report)?,
        Format::Text => print(&report, out)?,
    }
    Ok(match report.errors {
        0 if report.interrupted => Verdict::Interrupted,
        errors => Verdict::good_if(errors == 0),
    })
}

fn print(report: &BenchReport, out: &mut Output) -> Result<(), Failure> {
    let BenchReport { device, rw, iodepth, jobs, seconds, ios, iops, mib_per_s, .. } = report;
    let bs = BlockSizes { least: report.bs_min, most: report.bs };
    let Latency { min, p50, p90, p99, p999, max } = report.latency_us;
    writeln!(
        out,
        "{device}: {rw}, blocks of {bs} bytes, {iodepth} outstanding, {}: {ios} in {seconds:.2} s",
        counted(*jobs, "job")
    )?;
    writeln!(out, "{iops:.0} IO/s, {mib_per_s:.1} MiB/s")?;
    writeln!(
        out,
        "latency in µs: min {min:.1}, p50 {p50:.1}, p90 {p90:.1}, p99 {p99:.1}, p99.9 {p999:.1}, max {max:.1}"
    )?;
    let BenchReport { flushes, errors, failovers, reconnects, .. } = report;
    let flushes =
        if *flushes > 0 { format!("{}, ", counted(*flushes, "flush")) } else { String::new() };
    let counts = [(*errors, "error"), (*failovers, "failover"), (*reconnects, "reconnect")];
    let counts = counts.map(|(count, what)| counted(count, what)).join(", ");
    writeln!(out, "{flushes}{counts}")?;
    Ok(())
}
