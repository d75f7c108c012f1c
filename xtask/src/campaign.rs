//! Long runs: of the fuzz targets, and of what must hold whatever fails, with many seeds.

use std::process::Command;

use crate::{Chored, root};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long each fuzz target runs.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    seconds: u64,
    /// Runs only the fuzz targets whose name holds this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Runs the discovery of fabrics with random faults with so many seeds, and no fuzz target.
    #[arg(long, value_name = "RUNS", conflicts_with_all = ["seconds", "only"])]
    runs: Option<u64>,
    /// Runs fabrics that break while they are managed with so many seeds, and no fuzz target.
    #[arg(long, value_name = "RUNS", conflicts_with_all = ["seconds", "only", "runs"])]
    managed: Option<u64>,
    /// Runs services of IB ACM on fabrics that break with so many seeds, and no fuzz target.
    #[arg(long, value_name = "RUNS", conflicts_with_all = ["seconds", "only", "runs", "managed"])]
    acm: Option<u64>,
    /// Runs sessions of RTRS whose paths fail with so many seeds, and no fuzz target.
    #[arg(long, value_name = "RUNS", conflicts_with_all = ["seconds", "only", "runs", "managed", "acm"])]
    rtrs: Option<u64>,
    /// Runs block devices over paths that fail with so many seeds, and no fuzz target.
    #[arg(
        long,
        value_name = "RUNS",
        conflicts_with_all = ["seconds", "only", "runs", "managed", "acm", "rtrs"]
    )]
    rnbd: Option<u64>,
    /// Runs the tracer on fabrics with up to four faults with N seeds, and no fuzz target.
    #[arg(
        long,
        value_name = "RUNS",
        conflicts_with_all = ["seconds", "only", "runs", "managed", "acm", "rtrs", "rnbd"]
    )]
    tracer: Option<u64>,
    /// The first of the seeds.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seconds", "only"], default_value_t = 0)]
    first: u64,
}

pub(crate) fn run(args: &Args) -> Chored {
    let first = args.first;
    if let Some(runs) = args.acm {
        let test = "paths_are_right_once_a_fabric_among_faults_has_come_to_rest";
        return seeds("ib-net", "acm", test, ("ACM", first, runs));
    }
    if let Some(runs) = args.rtrs {
        return seeds("ib-rtrs", "sessions", "nothing_is_lost", ("RTRS", first, runs));
    }
    if let Some(runs) = args.rnbd {
        return seeds("ib-block", "rnbd", "nothing_that_was_confirmed", ("RNBD", first, runs));
    }
    if let Some(runs) = args.tracer {
        let test = "no_path_over_a_fault_is_good";
        return seeds("ib-tracer", "traces", test, ("TRACER", first, runs));
    }
    if let Some(runs) = args.runs {
        return seeds("ib-sim", "campaign", "a_discovery_among_faults", ("SIM", first, runs));
    }
    if let Some(runs) = args.managed {
        return seeds("ib-sm", "subnet", "a_managed_fabric_among_faults", ("SM", first, runs));
    }
    fuzz(args)
}

/// Runs a test with many seeds that `cargo test` runs with a few.
fn seeds(package: &str, file: &str, test: &str, (prefix, first, runs): (&str, u64, u64)) -> Chored {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--release", "--package", package, "--test", file])
        .args(["--", "--nocapture", test])
        .env(format!("{prefix}_FIRST"), first.to_string())
        .env(format!("{prefix}_SEED"), first.to_string())
        .env(format!("{prefix}_RUNS"), runs.to_string())
        .current_dir(root())
        .status()?;
    if status.success() { Ok(()) } else { Err("a run among faults failed".into()) }
}

fn fuzz(args: &Args) -> Chored {
    let directory = root().join("fuzz");
    let list = Command::new("cargo")
        .args(["+nightly", "fuzz", "list"])
        .current_dir(&directory)
        .output()?;
    if !list.status.success() {
        return Err(String::from_utf8_lossy(&list.stderr).into_owned().into());
    }
    let targets = String::from_utf8(list.stdout)?;
    let wanted = |name: &&str| args.only.as_ref().is_none_or(|text| name.contains(text.as_str()));
    let (mut passed, mut failed) = (0, 0);
    for target in targets.lines().filter(wanted) {
        let corpus = directory.join("corpus").join(target);
        let seeds = directory.join("seeds").join(target);
        std::fs::create_dir_all(&corpus)?;
        let mut command = Command::new("cargo");
        command.args(["+nightly", "fuzz", "run", target]).arg(&corpus);
        if seeds.exists() {
            command.arg(&seeds);
        }
        let named = directory.join("dictionaries").join(format!("{target}.dict"));
        let general = directory.join("dictionaries/fabric.dict");
        let dictionary = if named.exists() { named } else { general };
        command.arg("--").arg(format!("-max_total_time={}", args.seconds));
        command.arg(format!("-dict={}", dictionary.display()));
        if command.current_dir(&directory).status()?.success() {
            passed += 1;
        } else {
            failed += 1;
            eprintln!("{target} FAILED");
        }
    }
    eprintln!("{passed} passed, {failed} failed");
    if failed > 0 { Err("a fuzz target found something".into()) } else { Ok(()) }
}
