//! Compares how fast OpenSM and ibfabric compute forwarding tables, in alternating runs.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use conformance::opensm::{PeerError, Run};
use ib_topology::generate::{Kind, Options, generate};
use serde_json::Value;

use crate::{TaskResult, release_binary, root};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of runs of ibfabric for each row, which is also the maximum number of runs of OpenSM. The medians are
    /// compared.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u16).range(1..=99))]
    runs: u16,
    /// Measures only the rows whose name contains this text, and does not write the results to docs/benchmarks.md.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// A fabric, and the routing engine to measure on it.
struct Row {
    kind: &'static str,
    engine: &'static str,
    /// Maximum number of runs of OpenSM; 0 if OpenSM is not run.
    opensm: u16,
}

const fn row(kind: &'static str, engine: &'static str, opensm: u16) -> Row {
    Row { kind, engine, opensm }
}

pub(crate) const SMALL: &str = "xgft 12,12,24 1,12,12";
pub(crate) const LARGE: &str = "xgft 18,18,36 1,18,18";
const HUGE: &str = "xgft 24,24,48 1,24,24";
const TORUS: &str = "torus 8x8x8 hosts=2";

const ROWS: [Row; 13] = [
    row(SMALL, "minhop", 5),
    row(SMALL, "updn", 5),
    row(SMALL, "dor", 5),
    row(SMALL, "ftree", 5),
    row(LARGE, "minhop", 3),
    row(LARGE, "updn", 3),
    row(LARGE, "dor", 3),
    row(LARGE, "ftree", 3),
    row(HUGE, "minhop", 0),
    row(HUGE, "updn", 0),
    row(HUGE, "ftree", 0),
    row(TORUS, "dor", 3),
    row(TORUS, "lash", 1),
];

/// The medians of the measurements of a row, in milliseconds and MiB.
struct Measured {
    hosts: u64,
    switches: u64,
    route: f64,
    check: f64,
    wall: f64,
    rss: f64,
    opensm: Opensm,
}

enum Opensm {
    NotRun,
    Building(f64),
    Failed(String),
}

pub(crate) fn run(args: &Args) -> TaskResult {
    let binary = release_binary()?;
    let scratch = tempfile::tempdir()?;
    let mut table = String::from(HEAD);
    let wanted = |row: &&Row| {
        let name = format!("{} {}", row.kind, row.engine);
        args.only.as_ref().is_none_or(|text| name.contains(text.as_str()))
    };
    for (number, row) in ROWS.iter().filter(wanted).enumerate() {
        let place = scratch.path().join(format!("row{number}"));
        fs::create_dir_all(&place)?;
        let net = place.join("net");
        write_fabric(row.kind, &net)?;
        let measured = measure(row, &net, &place, &binary, args.runs)?;
        let line = line(row, &measured);
        eprint!("{line}");
        table.push_str(&line);
    }
    writeln!(table, "\n{}", environment(args.runs))?;
    if args.only.is_none() {
        write_section(None, &table)?;
    }
    Ok(())
}

/// Replaces the section of docs/benchmarks.md with the given heading, up to the next heading of the same level. If no
/// heading is given, replaces the text before the first heading.
pub(crate) fn write_section(heading: Option<&str>, text: &str) -> TaskResult {
    let path = root().join("docs/benchmarks.md");
    let page = fs::read_to_string(&path)?;
    fs::write(&path, with_section(&page, heading, text))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

fn with_section(page: &str, heading: Option<&str>, text: &str) -> String {
    const START: &str = "\n## ";
    let start = match heading {
        None => 0,
        Some(heading) => page.find(&format!("\n{heading}\n")).map_or(page.len(), |at| at + 1),
    };
    let rest = &page[start..];
    // `START` begins with the line feed before the next heading. This line feed belongs to the section.
    let end = rest.find(START).map_or(page.len(), |at| start + at + 1);
    let before = page[..start].trim_end();
    let after = page[end..].trim_end();
    let parts: Vec<&str> =
        [before, text.trim_end(), after].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n") + "\n"
}

pub(crate) fn write_fabric(kind: &str, net: &Path) -> TaskResult {
    let mut words = kind.split(' ');
    let name = words.next().unwrap_or_default();
    let kind = Kind::parse(name, &words.collect::<Vec<_>>())?;
    // HDR is the fastest speed that ibsim 0.10 supports.
    let rate =
        ib_topology::LinkRate { width: ib_types::LinkWidth::X4, speed: ib_types::LinkSpeed::Hdr };
    let fabric = generate(&kind, &Options { rate, ..Options::default() })?;
    let mut out = std::io::BufWriter::new(fs::File::create(net)?);
    ib_topology::write(&fabric, ib_topology::Format::Ibsim, &mut out)?;
    Ok(())
}

/// Runs OpenSM and ibfabric alternately, so that a change of the machine's speed affects both.
fn measure(
    row: &Row,
    net: &Path,
    place: &Path,
    binary: &Path,
    runs: u16,
) -> Result<Measured, Box<dyn std::error::Error>> {
    let mut reports: Vec<(Value, f64)> = Vec::new();
    let mut buildings = Vec::new();
    let mut failure = None;
    for number in 0..runs {
        reports.push(ours(row, net, binary)?);
        if number < row.opensm && failure.is_none() {
            match theirs(row, net, &place.join(format!("opensm{number}"))) {
                Ok(building) => buildings.push(building),
                Err(why) => failure = Some(why),
            }
        }
    }
    let median_of =
        |pick: &dyn Fn(&(Value, f64)) -> f64| median(reports.iter().map(pick).collect());
    let field = |report: &Value, name: &str| report[name].as_u64().unwrap_or(0);
    Ok(Measured {
        hosts: field(&reports[0].0, "hosts"),
        switches: field(&reports[0].0, "switches"),
        route: median_of(&|(report, _)| report["ms"]["route"].as_f64().unwrap_or(f64::NAN)),
        check: median_of(&|(report, _)| report["ms"]["check"].as_f64().unwrap_or(f64::NAN)),
        wall: median_of(&|&(_, wall)| wall),
        rss: median_of(&|(report, _)| report["peak_rss_mb"].as_f64().unwrap_or(f64::NAN)),
        opensm: match failure {
            Some(why) => Opensm::Failed(why),
            None if buildings.is_empty() => Opensm::NotRun,
            None => Opensm::Building(median(buildings)),
        },
    })
}

fn ours(row: &Row, net: &Path, binary: &Path) -> Result<(Value, f64), Box<dyn std::error::Error>> {
    let start = std::time::Instant::now();
    let output = Command::new(binary)
        .arg("route")
        .arg(net)
        .args(["--engine", row.engine, "--json"])
        .output()?;
    let wall = start.elapsed().as_secs_f64() * 1e3;
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    if report["engine"] != row.engine {
        return Err(format!("ibfabric did not route with {}: {report}", row.engine).into());
    }
    Ok((report, wall))
}

/// Returns how long OpenSM computed the tables, in milliseconds, or OpenSM's error message.
fn theirs(row: &Row, net: &Path, directory: &Path) -> Result<f64, String> {
    let mut arguments = vec!["-R".to_owned(), format!("{},no_fallback", row.engine)];
    if row.engine == "lash" {
        arguments.push("-Q".to_owned());
    }
    let run = Run {
        net,
        node: None,
        directory,
        arguments: &arguments,
        log_flags: 0x07,
        limit: Duration::from_secs(120),
    };
    let log_of =
        |directory: &PathBuf| fs::read_to_string(directory.join("osm.log")).unwrap_or_default();
    let finished = match run.run() {
        Ok(finished) => finished,
        Err(error @ (PeerError::Timeout { .. } | PeerError::Failed { .. })) => {
            let log = log_of(&directory.to_owned());
            return Err(refusal(&log).unwrap_or_else(|| error.to_string()));
        }
        Err(error) => return Err(error.to_string()),
    };
    match finished.building() {
        Some(building) => Ok(building.as_secs_f64() * 1e3),
        None => Err(refusal(&finished.log).unwrap_or_else(|| "no tables".to_owned())),
    }
}

/// Returns the error in OpenSM's log if lash needs too many VLs.
fn refusal(log: &str) -> Option<String> {
    let line = log.lines().find(|line| line.contains("Lane requirements"))?;
    Some(line.split("ERR 4D02: ").nth(1).unwrap_or(line).trim().to_owned())
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const HEAD: &str = "\
# Benchmarks
`cargo xtask bench routing` writes this section. The benchmark runs OpenSM and ibfabric alternately on the same fabric.

* *OpenSM*: the time between `building routing` and `tables configured` in the log of OpenSM, which runs on ibsim.
* *route*: `ms.route` in the output of `ibfabric route --json`. *route* is the time to compute hops, roots, tables and service levels.
* *ratio*: *OpenSM* divided by *route*.
* *check*: `ms.check` in the output of `ibfabric route --json`. *check* is the time to check reachability, forwarding loops, credit loops,
  hops and link load.
* *whole*: the time from the start to the end of `ibfabric route`. *whole* includes the time to read the fabric file, *route* and *check*.
* *memory*: the peak resident set size of `ibfabric route`.

| fabric | hosts | switches | engine | OpenSM | route | ratio | check | whole | memory |
|---|---|---|---|---|---|---|---|---|---|
";

fn line(row: &Row, measured: &Measured) -> String {
    let (opensm, ratio) = match &measured.opensm {
        Opensm::NotRun => ("–".to_owned(), "–".to_owned()),
        Opensm::Building(building) => {
            (milliseconds(*building), format!("{:.0}×", building / measured.route))
        }
        Opensm::Failed(why) => (why.replace('|', "/"), "–".to_owned()),
    };
    format!(
        "| `{}` | {} | {} | {} | {opensm} | {} | {ratio} | {} | {} | {:.0} MB |\n",
        row.kind,
        measured.hosts,
        measured.switches,
        row.engine,
        milliseconds(measured.route),
        milliseconds(measured.check),
        milliseconds(measured.wall),
        measured.rss,
    )
}

fn milliseconds(value: f64) -> String {
    if value < 10.0 { format!("{value:.1} ms") } else { format!("{value:.0} ms") }
}

/// Returns a line with the numbers of runs, the processor, and the versions of OpenSM and rustc.
fn environment(runs: u16) -> String {
    let (opensm, rustc) = (version("opensm", "--version"), version("rustc", "--version"));
    format!(
        "Medians of {runs} runs of `route`, and of at most 5 runs of OpenSM (3 on large fabrics), on {}, {opensm}; {rustc}.",
        machine()
    )
}

/// Returns the line of a program's output that contains the version.
pub(crate) fn version(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output().ok();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    // OpenSM prints a line of dashes before its version. This line contains no digit.
    let mut lines = text.iter().flat_map(|text| text.lines());
    lines.find(|line| line.contains(|c: char| c.is_ascii_digit())).unwrap_or("").to_owned()
}

/// Returns the number of CPU threads and the model of the processor.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model
        .lines()
        .find_map(|line| line.strip_prefix("model name").and_then(|rest| rest.split(": ").nth(1)))
        .unwrap_or("unknown processor");
    format!("{cores} threads of {model}")
}

#[cfg(test)]
mod tests;
