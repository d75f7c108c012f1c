//! `ibfabric check`: checks forwarding tables of any origin.

use std::time::Instant;

use ib_daemons::progress::Progress;
use ib_report::summary::Summary;
use ib_routing::dump::lfts::{Follow, ReadLfts};
use ib_routing::{Layers, dump};
use ib_types::ServiceLevel;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::summary::{self, measure, milliseconds, peak_rss_mb, print_worst_links, set_threads};
use crate::cli::CheckArgs;
use crate::failure::{Failure, Verdict};
use crate::input;
use crate::output::{Format, Output};

/// The result of `ibfabric check`; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct Report {
    #[serde(flatten)]
    summary: Summary,
    ms: Times,
    peak_rss_mb: f64,
}

/// How long loading the input and checking the tables took, in milliseconds.
#[derive(Serialize, JsonSchema)]
struct Times {
    load: f64,
    check: f64,
}

pub(crate) fn run(args: &CheckArgs, out: &mut Output) -> Result<Verdict, Failure> {
    set_threads(&args.subnet)?;
    let subnet = &args.subnet;
    input::one_standard_input([
        Some(&subnet.fabric),
        subnet.guid2lid.as_ref(),
        subnet.node_name_map.as_ref(),
        subnet.sl2vl.as_ref(),
        Some(&args.lfts),
        args.sl_file.as_ref(),
    ])?;
    let progress = Progress::start("reading the fabric and its tables");
    let start = Instant::now();
    let fabric = input::fabric(&args.subnet)?;
    let subnet = input::subnet(&fabric, &args.subnet)?;
    let ReadLfts { lfts, unknown } = input::load(Some(&args.lfts), |name, bytes| {
        dump::lfts::read(name, bytes, &subnet, Follow::UnrecordedLids)
    })?
    .expect("clap requires --lfts");
    let layers = input::load(args.sl_file.as_deref(), |name, bytes| {
        dump::levels::read(name, bytes, &subnet)
    })?
    .unwrap_or(Layers::uniform(ServiceLevel::default()));
    let load = milliseconds(start);

    progress.next("checking");
    let start = Instant::now();
    let report = input::check(&subnet, (&lfts, Some(&unknown)), &layers, &args.subnet)?;
    let checked = milliseconds(start);
    let metrics = measure(&subnet, &lfts, &[], &args.subnet, &progress);
    drop(progress);

    let summary = Summary::new(&subnet, &layers, &report, metrics.as_ref(), args.subnet.strict);
    let verdict = summary::verdict(&summary);
    match Format::of(args.subnet.json) {
        Format::Json => out.json(&Report {
            summary,
            ms: Times { load, check: checked },
            peak_rss_mb: peak_rss_mb(),
        })?,
        Format::Text => {
            summary::print(&summary, &subnet, &report, out)?;
            print_worst_links(&report.load, &subnet, out)?;
        }
    }
    Ok(verdict)
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> Schema {
    crate::schemas::of::<Report>()
}
