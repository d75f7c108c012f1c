//! Routes the same fabrics with OpenSM and with ibfabric, and compares the tables.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use conformance::opensm::PeerError;
use conformance::opensm::Run;
use conformance::routing::{Case, Prepared, Recipe, cases, layered};

use crate::{TaskResult, release_binary, root};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs only the cases whose name contains this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Also routes these fabric files, with all engines.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    fabric: Vec<PathBuf>,
    /// Writes the checksums of OpenSM's tables, with which `cargo test` compares ibfabric's tables.
    #[arg(long)]
    write_goldens: bool,
    /// Keeps the files of the runs in this directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// The dump files that must be identical for OpenSM and ibfabric.
const DUMPS: [&str; 5] = [
    "opensm-lfts.dump",
    "opensm-lid-matrix.dump",
    "opensm.fdbs",
    "opensm-updn-roots.dump",
    "opensm-ftree-ca-order.dump",
];

pub(crate) fn run(args: &Args) -> TaskResult {
    let binary = release_binary()?;
    let scratch = tempfile::tempdir()?;
    let directory = args.keep.as_deref().unwrap_or(scratch.path());
    let mut tally = Tally::default();
    let mut goldens = String::from(GOLDENS_HEAD);

    let wanted = |name: &str| args.only.as_ref().is_none_or(|text| name.contains(text.as_str()));
    let cases: Vec<Case> = cases().into_iter().filter(|case| wanted(&case.name())).collect();
    for (number, case) in cases.iter().enumerate() {
        let place = directory.join(format!("case{number:03}"));
        let prepared = case.prepare(&place)?;
        if let Some(sum) = tally.compare(&case.name(), &prepared, &place, &binary)? {
            writeln!(goldens, "{sum:08x} {}", case.name())?;
        }
    }
    for (number, recipe) in layered().iter().enumerate() {
        let name = format!("{} | lash layers", recipe.name());
        if wanted(&name) {
            let place = directory.join(format!("layers{number:03}"));
            tally.compare_layers(&name, recipe, &place, &binary)?;
        }
    }
    for (number, file) in args.fabric.iter().enumerate() {
        for engine in ["minhop", "updn", "dor", "ftree"] {
            for lmc in [0, 2] {
                let name = format!("{} | {engine} | LMC {lmc}", file.display());
                if !wanted(&name) {
                    continue;
                }
                let place = directory.join(format!("file{number:03}{engine}{lmc}"));
                let prepared = prepare_file(file, engine, lmc, &place)?;
                tally.compare(&name, &prepared, &place, &binary)?;
            }
        }
    }
    if args.write_goldens && tally.failed == 0 && args.only.is_none() {
        let path = root().join("tests/conformance/goldens/opensm-lfts.txt");
        fs::write(&path, goldens)?;
        eprintln!("wrote {}", path.display());
    }
    eprintln!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.passed + tally.failed == 0 {
        return Err("no case has that name".into());
    }
    if tally.failed > 0 { Err("tables differ from OpenSM's".into()) } else { Ok(()) }
}

const GOLDENS_HEAD: &str = "\
# CRC-32 of the opensm-lfts.dump that OpenSM 3.3.23 wrote on ibsim 0.10 for each case.
# Written by: cargo xtask conformance opensm --write-goldens
";

/// Converts a fabric file to an ibsim net file. Keeps the node GUIDs; ibsim derives the port GUIDs from them.
fn prepare_file(
    file: &Path,
    engine: &str,
    lmc: u8,
    place: &Path,
) -> Result<Prepared, Box<dyn std::error::Error>> {
    fs::create_dir_all(place)?;
    let fabric = ib_topology::read(&file.display().to_string(), &fs::read(file)?)?;
    let net = place.join("net");
    let mut out = std::io::BufWriter::new(fs::File::create(&net)?);
    ib_topology::write(&fabric, ib_topology::Format::Ibsim, &mut out)?;
    drop(out);
    let arguments: Vec<String> =
        ["-R", engine, "-l", &lmc.to_string()].into_iter().map(str::to_owned).collect();
    Ok(Prepared::new(net, arguments))
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
}

impl Tally {
    /// Runs OpenSM and ibfabric, and prints whether their tables differ. Returns the checksum of OpenSM's tables if
    /// they do not differ.
    fn compare(
        &mut self,
        name: &str,
        prepared: &Prepared,
        place: &Path,
        binary: &Path,
    ) -> Result<Option<u32>, Box<dyn std::error::Error>> {
        let theirs = place.join("opensm");
        if let Some(known) = &prepared.guid2lid {
            fs::create_dir_all(&theirs)?;
            fs::write(theirs.join("guid2lid"), known)?;
        }
        let finished = Run {
            net: &prepared.net,
            node: prepared.node.as_deref(),
            directory: &theirs,
            arguments: &prepared.opensm,
            log_flags: 0x43,
            limit: Duration::from_secs(600),
        }
        .run()?;
        let ours = place.join("ibfabric");
        let output = Command::new(binary)
            .arg("route")
            .arg(&prepared.net)
            .args(&prepared.ibfabric)
            .args(["--json", "--dump-dir"])
            .arg(&ours)
            .output()?;
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|_| {
            format!("{name}: ibfabric failed: {}", String::from_utf8_lossy(&output.stderr))
        })?;
        let mut faults = Vec::new();
        let engine = report["engine"].as_str().unwrap_or_default();
        if finished.engine() != Some(engine) {
            let other = finished.engine().unwrap_or("none");
            faults.push(format!("OpenSM routed with {other}, ibfabric with {engine}"));
        }
        let mut entries = 0;
        for dump in DUMPS {
            let Ok(expected) = fs::read(theirs.join(dump)) else { continue };
            let Ok(found) = fs::read(ours.join(dump)) else {
                // If OpenSM's updn or ftree engine fails, it may already have written its roots or its order of CAs.
                // ibfabric need not write these files.
                let failed = (dump.contains("updn") && engine != "updn")
                    || (dump.contains("ftree") && engine != "ftree");
                if !failed {
                    faults.push(format!("{dump}: ibfabric did not write this file"));
                }
                continue;
            };
            if dump == "opensm-lfts.dump" {
                entries = expected.iter().filter(|&&b| b == b'#').count();
            }
            if let Some(fault) = difference(&expected, &found) {
                faults.push(format!("{dump}: {fault}"));
            }
        }
        if sorted_lines(&theirs.join("guid2lid"))? != sorted_lines(&ours.join("guid2lid"))? {
            faults.push("guid2lid differs".to_owned());
        }
        if entries == 0 {
            faults.push("OpenSM wrote no tables".to_owned());
        }
        let sum = crc32fast::hash(&fs::read(theirs.join("opensm-lfts.dump"))?);
        if faults.is_empty() {
            self.passed += 1;
            let fallback = if report["fallback"] == true {
                format!(" (both fell back to {engine})")
            } else {
                String::new()
            };
            eprintln!("same     {entries:>8} entries  {name}{fallback}");
            Ok(Some(sum))
        } else {
            self.failed += 1;
            eprintln!("DIFFERS  {entries:>8} entries  {name}");
            for fault in faults {
                eprintln!("         {fault}");
            }
            Ok(None)
        }
    }
}

impl Tally {
    /// Routes a fabric with the lash engines of OpenSM and of ibfabric, and prints the number of layers of each. Passes
    /// if ibfabric's routes are valid and do not need more layers than OpenSM's.
    fn compare_layers(
        &mut self,
        name: &str,
        recipe: &Recipe,
        place: &Path,
        binary: &Path,
    ) -> Result<(), Box<dyn std::error::Error>> {
        fs::create_dir_all(place)?;
        let net = place.join("net");
        let mut out = std::io::BufWriter::new(fs::File::create(&net)?);
        ib_topology::write(&recipe.fabric()?, ib_topology::Format::Ibsim, &mut out)?;
        drop(out);
        let theirs = place.join("opensm");
        let arguments = ["-R", "lash,no_fallback", "-Q"].map(str::to_owned);
        let run = Run {
            net: &net,
            node: None,
            directory: &theirs,
            arguments: &arguments,
            log_flags: 0x07,
            limit: Duration::from_secs(60),
        };
        // If there are too few VLs, OpenSM fails and logs how many it needs.
        match run.run() {
            Ok(_) | Err(PeerError::Failed { .. } | PeerError::Timeout { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let theirs = fs::read_to_string(theirs.join("osm.log"))?.lines().find_map(layers_in);
        let output = Command::new(binary)
            .arg("route")
            .arg(&net)
            .args(["--engine", "lash,no_fallback", "--virtual-lanes", "15", "--json"])
            .output()?;
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let ours = report["layers"].as_u64();
        let sound = output.status.success();
        if sound && ours.zip(theirs).is_some_and(|(ours, theirs)| ours <= theirs) {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
        let shown = |layers: Option<u64>| layers.map_or("none".to_owned(), |l| l.to_string());
        eprintln!(
            "layers   {:>8} of {} {name}{}",
            shown(ours),
            shown(theirs),
            if sound { "" } else { ", UNSOUND" }
        );
        Ok(())
    }
}

/// Returns the number of lash layers that a line of OpenSM's log contains.
fn layers_in(line: &str) -> Option<u64> {
    let (_, rest) =
        line.split_once("Lanes needed: ").or_else(|| line.split_once("Lane requirements ("))?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Describes the first line that differs, and the number of lines that differ.
fn difference(expected: &[u8], found: &[u8]) -> Option<String> {
    if expected == found {
        return None;
    }
    let lines = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
    };
    let (expected, found) = (lines(expected), lines(found));
    let count = expected.iter().zip(&found).filter(|(a, b)| a != b).count();
    let first = expected.iter().zip(&found).position(|(a, b)| a != b);
    let heading =
        first.and_then(|at| expected[..at].iter().rev().find(|line| line.contains("witch")));
    let at = first.unwrap_or(expected.len().min(found.len()));
    Some(format!(
        "{count} lines differ (of {} lines by OpenSM and {} by ibfabric); \
         the first is line {}: `{}` by OpenSM, `{}` by ibfabric{}",
        expected.len(),
        found.len(),
        at + 1,
        expected.get(at).map_or("", String::as_str),
        found.get(at).map_or("", String::as_str),
        heading.map(|line| format!(", under `{line}`")).unwrap_or_default()
    ))
}

fn sorted_lines(path: &Path) -> std::io::Result<Vec<String>> {
    let mut lines: Vec<String> = fs::read_to_string(path)?
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    lines.sort();
    Ok(lines)
}
