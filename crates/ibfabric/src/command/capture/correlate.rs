//! `ibfabric capture correlate`: correlates the packets captured at both ends of connections.
//!
//! | file | holds |
//! |---|---|
//! | `text.rs` | text output |
//! | `json.rs` | JSON output |

use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::Path;

use ib_capture::{CaptureFile, Correlator};
use ib_pcap::ReadError;
use ib_report::correlation;
use ib_report::findings::{DRAWN, Findings, FindingsOptions};

use crate::cli::capture::CorrelateArgs;
use crate::failure::{Failure, Verdict};
use crate::input;
use crate::output::write_result;
use crate::output::{Format, Output};

mod json;
mod text;

pub(super) fn run(args: &CorrelateArgs, out: &mut Output) -> Result<Verdict, Failure> {
    input::one_standard_input([Some(&args.file), args.second.as_ref()])?;
    for (option, event) in [("--from", &args.from), ("--to", &args.to)] {
        if let Some(event) = event.as_ref().filter(|event| event.file == Some(1))
            && args.second.is_none()
        {
            let message = format!("{option} '{event}': there is one file only, expected FILE2");
            return Err(Failure::Unusable(message));
        }
    }
    let mut correlator = Correlator::default();
    let paths: Vec<&Path> = [Some(&args.file), args.second.as_ref()]
        .into_iter()
        .flatten()
        .map(|path| &**path)
        .collect();
    for path in &paths {
        let found = if *path == Path::new("-") {
            read(&mut correlator, std::io::stdin().lock(), &args.udp_ports)
        } else {
            let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
            read(&mut correlator, BufReader::with_capacity(1 << 18, file), &args.udp_ports)
        };
        found.map_err(|error| cannot_read(path, &error))?;
    }
    let correlated = correlator.finish(&args.qpns);
    let names = paths.iter().map(|path| path.display().to_string()).collect();
    let listed = match (args.messages, &args.html) {
        (true, _) => usize::MAX,
        (false, Some(_)) => DRAWN,
        (false, None) => 0,
    };
    let timing = args.from.as_ref().zip(args.to.as_ref());
    let findings = Findings::new(&correlated, names, &FindingsOptions { listed, timing })
        .map_err(|error| Failure::Unusable(error.to_string()))?;
    if let Some(path) = &args.html {
        let page = correlation::page(&findings);
        write_result(path, |out| out.write_all(page.as_bytes()))?;
    }
    match Format::of(args.json) {
        Format::Text => text::print(&findings, args.messages, out)?,
        Format::Json => out.json(&json::Report::new(&findings, args.messages))?,
    }
    Ok(Verdict::good_if(findings.is_good()))
}

fn read(
    correlator: &mut Correlator,
    stream: impl std::io::Read,
    ports: &[u16],
) -> Result<(), ReadError> {
    correlator.read(&mut CaptureFile::new(stream, ports)?)
}

fn cannot_read(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Unusable(format!("cannot read {}: {error}", path.display()))
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> schemars::Schema {
    json::schema()
}
