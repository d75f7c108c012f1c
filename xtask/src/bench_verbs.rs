//! Compares the speed of perftest with `ibfabric run` and of `ibfabric rdma` on this machine. Also measures perftest on
//! the kernel's soft RoCE in a guest. All runs alternate.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use conformance::perftest::pair;
use interop::{Guest, GuestOptions, Running};
use serde_json::Value;

use crate::bench::{machine, median, version, write_section};
use crate::bench_rdma::{Failed, LIMIT, ROWS, Row, figure, rdma_figure, rxe_within, succeeds};
use crate::cases::loopback_pair;
use crate::{TaskResult, release_artifact, release_binary, running};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of runs of each program for each row; the medians are compared.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u16).range(1..=99))]
    runs: u16,
    /// Does not write the results to docs/benchmarks.md.
    #[arg(long)]
    dry: bool,
    /// Measures this release build instead of building ibfabric. The preload library is in the same directory.
    #[arg(long, value_name = "PATH")]
    pub(crate) binary: Option<PathBuf>,
}

const HEADING: &str = "## Programs of libibverbs";

const HEAD: &str = "\
`cargo xtask bench verbs` writes this section. It runs these programs alternately, each with client and server on one machine:

* *rdma*: `ibfabric rdma bw` and `ibfabric rdma lat`, over RoCEv2 on loopback. Both ends poll for packets.
* *RoCEv2*: perftest with `ibfabric run --roce`, on loopback.
* *fabric*: perftest with `ibfabric run --attach`, on two hosts of a simulated fat tree.
* *rxe*: perftest on the kernel's soft RoCE, in a guest. An emulator runs the guest without KVM, so this column cannot be compared with
  the other columns.
* *ratio*: *RoCEv2* or *fabric* divided by *rdma* for each round of runs, and then the median of all rounds. For latency, less is better.

| measurement | rdma | RoCEv2 | ratio | fabric | ratio | rxe |
|---|---|---|---|---|---|---|
";

pub(crate) fn run(args: &Args) -> TaskResult {
    let binary = match &args.binary {
        Some(binary) => binary.canonicalize()?,
        None => {
            release_artifact(&["--package", "ib-preload"], "ib_preload")?;
            release_binary()?
        }
    };
    let scratch = tempfile::tempdir()?;
    let name = format!("bench-verbs-{}", std::process::id());
    let _simulator = running::Running::fat_tree(&binary, scratch.path(), &name)?;
    let guest = Guest::boot(&GuestOptions { mtu: 9000, ..GuestOptions::default() })?;
    let addresses = loopback_pair()?;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let roce = addresses.each_ref().map(|address| words(&["--roce", address]));
    let fabric = ["host-0", "host-7"].map(|node| words(&["--attach", &name, "--node", node]));
    let mut table = String::from(HEAD);
    for row in ROWS {
        let mut found = [const { Vec::new() }; 4];
        let mut ratios = [const { Vec::new() }; 2];
        for _ in 0..args.runs {
            let own = rdma(&binary, &addresses, row)?;
            let over_roce = perftest(&binary, &roce, row)?;
            let on_fabric = perftest(&binary, &fabric, row)?;
            let kernel = rxe_within(&guest, row)?;
            for (values, value) in found.iter_mut().zip([own, over_roce, on_fabric, kernel]) {
                values.push(value);
            }
            for (values, value) in ratios.iter_mut().zip([over_roce, on_fabric]) {
                values.push(value / own);
            }
        }
        let [own, over_roce, on_fabric, kernel] = found.map(median);
        let [first, second] = ratios.map(median);
        let line = format!(
            "| {} | {own:.2} | {over_roce:.2} | {first:.2} | {on_fabric:.2} | {second:.2} | {kernel:.2} |\n",
            row.what
        );
        eprint!("{line}");
        table.push_str(&line);
    }
    let kernel = succeeds(&guest, "uname -r")?;
    writeln!(
        table,
        "\nMedians of {} runs on {}, Linux {} in the guest, perftest 4.5-0.17; {}.",
        args.runs,
        machine(),
        kernel.trim(),
        version("rustc", "--version")
    )?;
    if args.dry { Ok(()) } else { write_section(Some(HEADING), &format!("{HEADING}\n{table}")) }
}

/// Measures `ibfabric rdma` between two addresses. Returns Gbit/s, or a latency in microseconds.
fn rdma(binary: &Path, [server, client]: &[String; 2], row: Row) -> Result<f64, Failed> {
    let mut serve = Command::new(binary);
    serve.args(["rdma", "serve", "--listen", server, "--exit-after", "1"]);
    serve.args(["--busy-poll-us", "1000"]);
    let serving = Running::start(serve)?;
    serving.until("READY", LIMIT)?;
    let mut call = Command::new(binary);
    call.arg("rdma").args(row.ours.split(' ')).args(row.arguments.split(' '));
    call.args([server, "--from", client, "--busy-poll-us", "1000", "--json"]);
    let output = call.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    serving.wait(LIMIT)?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    rdma_figure(&report, row)
}

/// Measures a perftest program with `ibfabric run` at both ends. Returns Gbit/s, or a latency in microseconds.
fn perftest(binary: &Path, [server, client]: &[Vec<String>; 2], row: Row) -> Result<f64, Failed> {
    let arguments = format!("{} {}", row.arguments, row.report());
    let ends = pair(binary, [server, client], &format!("ib_{}", row.theirs), &arguments)?;
    for end in &ends {
        if !end.success() {
            return Err(format!("`{}` failed: {}", end.command, end.output).into());
        }
    }
    figure(&ends[1].output, row)
}
