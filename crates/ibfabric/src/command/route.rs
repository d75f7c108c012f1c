//! `ibfabric route`: computes, checks and dumps the forwarding tables of a fabric.

use std::cell::RefCell;
use std::io::Write;
use std::time::Instant;

use ib_daemons::progress::Progress;
use ib_daemons::routing_files;
use ib_os::signals::TemporaryPath;
use ib_report::routing;
use ib_report::summary::Summary;
use ib_routing::engine::{NoEngine, Outcome, Refusal, reason};
use ib_routing::{Routing, dump};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::summary::{self, measure, milliseconds, peak_rss_mb, print_worst_links, set_threads};
use crate::cli::RouteArgs;
use crate::failure::{Failure, Verdict, note, say};
use crate::input;
use crate::output::{Format, Output};
use crate::output::{temporary_path, write_result};

/// The result of `ibfabric route`; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct Report {
    engine: &'static str,
    requested: String,
    fallback: bool,
    #[serde(flatten)]
    summary: Summary,
    refusals: Vec<Refused>,
    notes: Vec<String>,
    ms: Times,
    peak_rss_mb: f64,
}

/// The result if all engines of the list failed; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct NotRouted {
    /// Always `null`.
    engine: (),
    requested: String,
    refusals: Vec<Refused>,
}

/// The output of `ibfabric route --json`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the schema is used")]
enum Printed {
    Routed(Box<Report>),
    NotRouted(NotRouted),
}

/// A routing engine that failed.
#[derive(Serialize, JsonSchema)]
struct Refused {
    engine: &'static str,
    reason: String,
}

fn refused(refusals: &[Refusal]) -> Vec<Refused> {
    let refused = |refusal: &Refusal| Refused { engine: refusal.0.name(), reason: reason(refusal) };
    refusals.iter().map(refused).collect()
}

/// How long loading the input, routing, checking and writing the dumps took, in milliseconds.
#[derive(Default, Serialize, JsonSchema)]
struct Times {
    load: f64,
    route: f64,
    check: f64,
    dump: f64,
}

pub(crate) fn run(args: &RouteArgs, out: &mut Output) -> Result<Verdict, Failure> {
    set_threads(&args.subnet)?;
    let (subnet, engines) = (&args.subnet, &args.routing.engines);
    input::one_standard_input([
        Some(&subnet.fabric),
        subnet.guid2lid.as_ref(),
        subnet.node_name_map.as_ref(),
        subnet.sl2vl.as_ref(),
        engines.root_guids.as_ref(),
        engines.cn_guids.as_ref(),
        engines.io_guids.as_ref(),
        engines.ignore_guids.as_ref(),
        engines.guid_routing_order.as_ref(),
        engines.port_search_ordering.as_ref(),
        engines.hop_weights.as_ref(),
        engines.ids_guids.as_ref(),
        engines.lfts.as_ref(),
        engines.lid_matrix.as_ref(),
        engines.keep_lfts.as_ref(),
    ])?;
    let list = args.routing.list();
    let progress = Progress::start("reading the fabric");
    let mut ms = Times::default();

    let start = Instant::now();
    let fabric = input::fabric(&args.subnet)?;
    let subnet = input::subnet(&fabric, &args.subnet)?;
    let options =
        routing_files::read(&subnet, &args.routing.engines.files(), &|text| note!("{text}"))?;
    ms.load = milliseconds(start);

    progress.next("routing");
    let start = Instant::now();
    let Outcome { routing, refusals } = match list.route(&subnet, &options) {
        Ok(outcome) => outcome,
        Err(error) => {
            drop(progress);
            return no_engine(args, &error, out);
        }
    };
    ms.route = milliseconds(start);
    for refusal in &refusals {
        note!("{} cannot route this subnet: {}", refusal.0, reason(refusal));
    }
    if !refusals.is_empty() {
        note!("routed with {} instead", routing.engine);
    }

    let mut engines = list.engines().to_vec();
    engines.push(routing.engine);
    engines.dedup();
    for option in input::unused_options(&args.routing.engines, &engines) {
        let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
        note!("{option} has no effect with {}", names.join(" and "));
    }

    progress.next("checking");
    let start = Instant::now();
    let report = input::check(&subnet, (&routing.lfts, None), &routing.layers, &args.subnet)?;
    ms.check = milliseconds(start);
    let metrics = measure(&subnet, &routing.lfts, &routing.ca_order, &args.subnet, &progress);

    let start = Instant::now();
    if let Some(directory) = &args.dump_dir {
        // Each temporary file is registered, so that a signal handler can remove it.
        let temporary = RefCell::new(None);
        dump::write_all(directory, &subnet, &routing, &|name| {
            temporary.replace(Some(TemporaryPath::new(temporary_path(&directory.join(name)))));
            progress.next(format!("writing {name}"));
        })
        .map_err(Failure::unusable)?;
    }
    let strict = args.subnet.strict;
    let summary = Summary::new(&subnet, &routing.layers, &report, metrics.as_ref(), strict);
    if let Some(path) = &args.html {
        let requested = args.routing.list().to_string();
        let name = args.subnet.fabric.display().to_string();
        let choice = routing::Choice { fabric: &name, requested: &requested, refusals: &refusals };
        let page = routing::page(&subnet, &routing, &report, &summary, choice);
        write_result(path, |out| out.write_all(page.as_bytes()))?;
    }
    ms.dump = milliseconds(start);
    drop(progress);

    let verdict = summary::verdict(&summary);
    match Format::of(args.subnet.json) {
        Format::Json => out.json(&Report {
            engine: routing.engine.name(),
            requested: args.routing.list().to_string(),
            fallback: !refusals.is_empty(),
            summary,
            refusals: refused(&refusals),
            notes: routing.notes.clone(),
            ms,
            peak_rss_mb: peak_rss_mb(),
        })?,
        Format::Text => {
            print_engine(args, &routing, &refusals, out)?;
            summary::print(&summary, &subnet, &report, out)?;
            if summary.credit_loops > 0 {
                print_remedy(&routing, &refusals, out)?;
            }
            print_worst_links(&report.load, &subnet, out)?;
            if !routing.notes.is_empty() {
                writeln!(out, "\nnotes of {}:", routing.engine)?;
            }
            for note in &routing.notes {
                writeln!(out, "  {note}")?;
            }
            write!(
                out,
                "\nread in {:.0} ms, routed in {:.0} ms, checked in {:.0} ms",
                ms.load, ms.route, ms.check
            )?;
            if args.dump_dir.is_some() || args.html.is_some() {
                write!(out, ", written in {:.0} ms", ms.dump)?;
            }
            writeln!(out, "; peak memory {:.0} MB", peak_rss_mb())?;
        }
    }
    Ok(verdict)
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
        writeln!(out, " (requested: {})", args.routing.list())?;
    }
    Ok(())
}

/// Suggests an engine that never creates credit loops and has not been tried yet.
fn print_remedy(routing: &Routing, refusals: &[Refusal], out: &mut Output) -> Result<(), Failure> {
    use ib_routing::EngineKind::{Lash, UpDown};
    let tried = |kind| routing.engine == kind || refusals.iter().any(|refusal| refusal.0 == kind);
    if let Some(kind) = [Lash, UpDown].into_iter().find(|&kind| !tried(kind)) {
        writeln!(out, "\nfor routes without credit loops, try --engine {kind}")?;
    }
    Ok(())
}

/// Reports that all engines of the list failed.
fn no_engine(args: &RouteArgs, error: &NoEngine, out: &mut Output) -> Result<Verdict, Failure> {
    if args.subnet.json {
        out.json(&NotRouted {
            engine: (),
            requested: args.routing.list().to_string(),
            refusals: refused(&error.refusals),
        })?;
    }
    say!("{error}");
    Ok(Verdict::Bad)
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> Schema {
    crate::schemas::of::<Printed>()
}
