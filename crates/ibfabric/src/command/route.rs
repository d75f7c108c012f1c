//! `ibfabric route`: computes, checks and dumps the forwarding tables of a fabric.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use ib_routing::engine::{Outcome, Refusal, reason};
use ib_routing::{CheckReport, Routing, Subnet, check, dump};
use serde::Serialize;

use super::summary::{Summary, measure, milliseconds, peak_rss_mb, print_worst_links, set_threads};
use crate::cli::RouteArgs;
use crate::failure::{Failure, Verdict, say};
use crate::input;
use crate::output::{Format, Output};
use crate::progress::Progress;
use crate::report;

/// The result; the names are JSON keys.
#[derive(Serialize)]
struct Report {
    engine: &'static str,
    requested: String,
    fallback: bool,
    #[serde(flatten)]
    summary: Summary,
    notes: Vec<String>,
    ms: Times,
    peak_rss_mb: f64,
}

/// How long each step took, in milliseconds.
#[derive(Default, Serialize)]
struct Times {
    load: f64,
    route: f64,
    check: f64,
    dump: f64,
}

pub(crate) fn run(args: &RouteArgs, out: &mut Output) -> Result<Verdict, Failure> {
    set_threads(&args.subnet)?;
    let progress = Progress::start("reading the fabric");
    let mut ms = Times::default();

    let start = Instant::now();
    let fabric = input::fabric(&args.subnet)?;
    let subnet = input::subnet(&fabric, &args.subnet)?;
    let options = input::routing_options(&subnet, &args.engines)?;
    ms.load = milliseconds(start);

    progress.next("routing");
    let start = Instant::now();
    let Outcome { routing, refusals } =
        args.engine.route(&subnet, &options).map_err(|error| Failure::Bad(error.to_string()))?;
    ms.route = milliseconds(start);
    for refusal in &refusals {
        say!("{} cannot route this subnet: {}", refusal.0, reason(refusal));
    }
    if !refusals.is_empty() {
        say!("routed with {} instead", routing.engine);
    }

    progress.next("checking");
    let start = Instant::now();
    let report = check(&subnet, &routing.lfts, &routing.layers);
    ms.check = milliseconds(start);
    let metrics = measure(&subnet, &routing.lfts, &routing.ca_order, &args.subnet, &progress);

    let start = Instant::now();
    if let Some(directory) = &args.dump_dir {
        dump::write_all(directory, &subnet, &routing, &|name| {
            progress.next(format!("writing {name}"));
        })
        .map_err(Failure::unusable)?;
    }
    let summary = Summary::new(&subnet, &routing.layers, &report, metrics.as_ref());
    if let Some(path) = &args.report {
        let requested = args.engine.to_string();
        let choice = report::Choice { requested: &requested, refusals: &refusals };
        let page = report::page(&subnet, &routing, &report, &summary, choice);
        write_report(path, &page)?;
    }
    ms.dump = milliseconds(start);
    drop(progress);

    let verdict = summary.verdict();
    match args.subnet.format {
        Format::Json => out.json(&Report {
            engine: routing.engine.name(),
            requested: args.engine.to_string(),
            fallback: !refusals.is_empty(),
            summary,
            notes: routing.notes.clone(),
            ms,
            peak_rss_mb: peak_rss_mb(),
        })?,
        Format::Text => {
            print_engine(args, &routing, &refusals, out)?;
            summary.print(&subnet, &report, out)?;
            print_loads(&subnet, &report, out)?;
            writeln!(
                out,
                "\nread in {:.0} ms, routed in {:.0} ms, checked in {:.0} ms, dumped in {:.0} ms; \
                 {:.0} MB at most",
                ms.load,
                ms.route,
                ms.check,
                ms.dump,
                peak_rss_mb()
            )?;
        }
    }
    Ok(verdict)
}

fn write_report(path: &Path, page: &str) -> Result<(), Failure> {
    std::fs::write(path, page)
        .map_err(|error| Failure::Unusable(format!("cannot write {}: {error}", path.display())))
}

fn print_engine(
    args: &RouteArgs,
    routing: &Routing,
    refusals: &[Refusal],
    out: &mut Output,
) -> Result<(), Failure> {
    write!(out, "engine       {}", routing.engine)?;
    if refusals.is_empty() {
        writeln!(out)?;
    } else {
        writeln!(out, " (requested: {})", args.engine)?;
    }
    for note in &routing.notes {
        writeln!(out, "             {note}")?;
    }
    Ok(())
}

fn print_loads(subnet: &Subnet<'_>, report: &CheckReport, out: &mut Output) -> Result<(), Failure> {
    if report.load.max > 0 {
        writeln!(out, "\nmost loaded links:")?;
        print_worst_links(&report.load, subnet, out, 5)?;
    }
    Ok(())
}
