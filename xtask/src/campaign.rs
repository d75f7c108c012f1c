//! Long runs of the fuzz targets and of randomised tests.

use std::fs;
use std::process::Command;

use crate::{TaskResult, root};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The campaign.
    #[arg(value_name = "CAMPAIGN", default_value = "fuzz")]
    campaign: Campaign,
    /// Number of runs, each with its own seed; not for `fuzz`.
    #[arg(long, value_name = "N", default_value_t = 500)]
    runs: u64,
    /// The seed of the first run.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    first: u64,
    /// Duration of each fuzz target, and of each run of `corruption`, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    seconds: u64,
    /// Runs only the fuzz targets whose name contains this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// A campaign.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Campaign {
    /// All fuzz targets; needs cargo-fuzz and a nightly toolchain.
    Fuzz,
    /// Discoveries of fabrics with random faults.
    Discovery,
    /// SMs on fabrics with random faults. An SM may exit, and another one takes over.
    Managed,
    /// SMs on subnets that lose and gain links and switches, in virtual time. After each event, the test follows every
    /// route through the tables of the switches. One run in ten uses a real ibsim instead, first with `ibfabric sm`,
    /// then with OpenSM.
    Sm,
    /// The tracer on fabrics with up to four faults.
    Tracer,
    /// ACM services on fabrics with random faults.
    Acm,
    /// RTRS sessions whose paths fail.
    Rtrs,
    /// RNBD devices over paths that fail.
    Rnbd,
    /// Reliable connections of two HCAs over an impaired wire, in virtual time.
    Hca,
    /// Programs that misuse their uverbs device.
    Verbs,
    /// Unmodified programs on a simulated fabric that are killed at random times.
    VerbsKills,
    /// `ibfabric rdma` between two network namespaces over an impaired wire; needs root.
    Rdma,
    /// READs between the kernel of a Linux guest and `ibfabric rdma` over an impaired wire; needs root.
    Guest,
    /// A block device over NBD and RTRS between two network namespaces, over a wire that corrupts packets; needs root
    /// and fio.
    Corruption,
}

impl Campaign {
    /// Returns the package, the test file, the start of the test's name and the prefix of its environment variables.
    /// Returns `None` if the campaign is not a test with seeds.
    const fn test(self) -> Option<[&'static str; 4]> {
        let (package, file, test, prefix) = match self {
            Campaign::Fuzz
            | Campaign::Sm
            | Campaign::Guest
            | Campaign::Corruption
            | Campaign::Rdma => return None,
            Campaign::Discovery => ("ib-sim", "campaign", "discovery_under_faults_ends", "SIM"),
            Campaign::Managed => {
                ("ib-sm", "subnet", "managed_fabric_recovers_from_random_faults", "SM")
            }
            Campaign::Tracer => ("ib-tracer", "traces", "no_path_over_a_fault_is_good", "TRACER"),
            Campaign::Acm => ("ib-daemons", "acm", "all_addresses_resolve_after_faults", "ACM"),
            Campaign::Rtrs => {
                ("ib-rtrs", "sessions", "confirmed_writes_survive_random_faults", "RTRS")
            }
            Campaign::Rnbd => ("ib-rnbd", "rnbd", "confirmed_writes_survive_random_faults", "RNBD"),
            Campaign::Hca => {
                ("ib-hca", "verbs", "requests_complete_unless_retries_are_exhausted", "HCA")
            }
            Campaign::Verbs => {
                ("ib-preload", "abuse", "device_survives_any_command_and_any_ring", "VERBS")
            }
            Campaign::VerbsKills => {
                ("ibfabric", "run_kills", "killed_program_leaves_port_as_pulled_cable", "KILLS")
            }
        };
        Some([package, file, test, prefix])
    }
}

pub(crate) fn run(args: &Args) -> TaskResult {
    let (first, runs) = (args.first, args.runs);
    if let Some([package, file, test, prefix]) = args.campaign.test() {
        return seeds(package, file, test, (prefix, first, runs));
    }
    match args.campaign {
        Campaign::Sm => crate::campaign_sm::run(first, runs),
        Campaign::Guest => crate::campaign_guest::run(first, runs),
        Campaign::Corruption => crate::campaign_corruption::run(first, runs, args.seconds),
        Campaign::Rdma => crate::campaign_rdma::run(first, runs),
        _ => fuzz(args),
    }
}

/// Runs a test with many seeds. `cargo test` runs the same test with a few seeds.
pub(crate) fn seeds(
    package: &str,
    file: &str,
    test: &str,
    (prefix, first, runs): (&str, u64, u64),
) -> TaskResult {
    check_exists(package, file, test)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--release", "--package", package, "--test", file])
        .args(["--", "--nocapture", test])
        .env(format!("{prefix}_FIRST"), first.to_string())
        .env(format!("{prefix}_SEED"), first.to_string())
        .env(format!("{prefix}_RUNS"), runs.to_string())
        .current_dir(root())
        .status()?;
    if status.success() { Ok(()) } else { Err("a run with random faults failed".into()) }
}

/// Fails if an integration test has no test function whose name starts with `test`. In this case, `cargo test` would
/// run no test and succeed.
fn check_exists(package: &str, file: &str, test: &str) -> TaskResult {
    let tests = root().join("crates").join(package).join("tests");
    let mut paths = vec![tests.join(file).with_extension("rs")];
    if let Ok(entries) = fs::read_dir(tests.join(file)) {
        paths.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    let mut texts = paths.iter().filter_map(|path| fs::read_to_string(path).ok());
    if texts.any(|text| text.contains(&format!("fn {test}"))) {
        return Ok(());
    }
    Err(format!("found no test {test} in {}/{file}", tests.display()).into())
}

fn fuzz(args: &Args) -> TaskResult {
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
        fs::create_dir_all(&corpus)?;
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
    if failed > 0 { Err("a fuzz target failed".into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn campaigns_name_existing_tests() {
        for campaign in Campaign::value_variants() {
            if let Some([package, file, test, _]) = campaign.test() {
                check_exists(package, file, test).expect("the test exists");
            }
        }
    }
}
