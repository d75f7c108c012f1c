//! Compares the speed of the kernel's soft RoCE and ibfabric's software HCA, alternately in one guest.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use interop::guest::{BESIDE_V4, FROM_DISK, GUEST_V4};
use interop::{Guest, GuestOptions};
use serde_json::Value;

use crate::bench::{machine, median, version, write_section};
use crate::cases::program_on_disk;
use crate::{TaskResult, release_binary};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of runs of soft RoCE and of ibfabric for each row; the medians are compared.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u16).range(1..=99))]
    runs: u16,
    /// Does not write the results to docs/benchmarks.md.
    #[arg(long)]
    dry: bool,
}

const HEADING: &str = "## RDMA compared with soft RoCE";

const HEAD: &str = "\
`cargo xtask bench rdma` writes this section. In one guest, the benchmark alternately runs perftest over the kernel's soft RoCE (rxe), and
`ibfabric rdma`. An emulator runs the guest without KVM. In an emulated guest, rxe and `ibfabric` are slower than on a real machine, so only
the ratios are meaningful.

* *within the guest*: client and server run in the guest. rxe delivers its packets inside the kernel. The packets of `ibfabric` pass UDP
  sockets and the loopback device.
* *guest to host*: the client runs in the guest. The server runs on the host and is always `ibfabric rdma serve --perftest`. A virtio link
  with a TAP device and an MTU of 9000 connects guest and host.
* *ratio*: the figure of `ibfabric` divided by the figure of rxe. In rows with latency, a ratio below 1 means that `ibfabric` is faster.

| what | where | rxe | ours | ratio |
|---|---|---|---|---|
";

/// The UDP port of ibfabric's software HCA in the guest. The kernel's soft RoCE uses port 4791.
const OWN_PORT: &str = "4792";

/// The option with which `ibfabric rdma` polls for completions, as perftest does.
const SPIN: &str = "--busy-poll-us 1000";

/// Time limit of a program.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// An operation that is measured, with the program of each side.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) what: &'static str,
    /// Name of the perftest program, without the prefix `ib_`.
    pub(crate) theirs: &'static str,
    /// The subcommand of `ibfabric rdma`, and its operation.
    pub(crate) ours: &'static str,
    /// The arguments of both programs.
    pub(crate) arguments: &'static str,
    is_latency: bool,
}

impl Row {
    /// Returns the option with which the perftest program reports Gbit/s; empty for a latency.
    pub(crate) fn report(self) -> &'static str {
        if self.is_latency { "" } else { "--report_gbits" }
    }
}

pub(crate) const ROWS: [Row; 4] = [
    Row {
        what: "WRITE of 64 KiB, Gbit/s",
        theirs: "write_bw",
        ours: "bw --op write",
        arguments: "-s 65536 -n 1000",
        is_latency: false,
    },
    Row {
        what: "READ of 64 KiB, Gbit/s",
        theirs: "read_bw",
        ours: "bw --op read",
        arguments: "-s 65536 -n 1000",
        is_latency: false,
    },
    Row {
        what: "SEND of 64 bytes, latency in µs",
        theirs: "send_lat",
        ours: "lat --op send",
        arguments: "-s 64 -n 1000",
        is_latency: true,
    },
    Row {
        what: "WRITE of 64 bytes, latency in µs",
        theirs: "write_lat",
        ours: "lat --op write",
        arguments: "-s 64 -n 1000",
        is_latency: true,
    },
];

pub(crate) type Failed = Box<dyn std::error::Error>;

pub(crate) fn run(args: &Args) -> TaskResult {
    let binary = release_binary()?;
    let scratch = tempfile::tempdir()?;
    let disk = scratch.path().join("disk");
    program_on_disk(&binary, &disk)?;
    let guest =
        Guest::boot(&GuestOptions { mtu: 9000, disk: Some(disk), ..GuestOptions::default() })?;
    succeeds(&guest, FROM_DISK)?;
    let mut table = String::from(HEAD);
    for row in ROWS {
        for is_within in [true, false] {
            let (mut theirs, mut ours) = (Vec::new(), Vec::new());
            for _ in 0..args.runs {
                theirs.push(rxe(&guest, row, is_within, &binary)?);
                ours.push(own(&guest, row, is_within, &binary)?);
            }
            let [theirs, ours] = [median(theirs), median(ours)];
            let place = if is_within { "within the guest" } else { "guest to host" };
            let ratio = ours / theirs;
            let line =
                format!("| {} | {place} | {theirs:.2} | {ours:.2} | {ratio:.2} |\n", row.what);
            eprint!("{line}");
            table.push_str(&line);
        }
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

/// Runs a command in the guest. The command must succeed.
pub(crate) fn succeeds(guest: &Guest, command: &str) -> Result<String, Failed> {
    let finished = guest.run(command, LIMIT)?;
    match finished.success() {
        true => Ok(finished.output),
        false => Err(format!("{command}: status {}: {}", finished.status, finished.output).into()),
    }
}

/// Returns the command line of the perftest program on soft RoCE. If `peer` is empty, returns the command line of the
/// server.
fn call_rxe(row: Row, peer: &str) -> String {
    let Row { theirs, arguments, .. } = row;
    format!("ib_{theirs} -R -d rxe0 -x 1 -F {} {arguments} {peer}", row.report())
}

/// Measures soft RoCE within the guest. Returns Gbit/s, or a latency in microseconds.
pub(crate) fn rxe_within(guest: &Guest, row: Row) -> Result<f64, Failed> {
    let server = guest.start(&call_rxe(row, ""))?;
    guest.await_listener(18515, LIMIT)?;
    let output = succeeds(guest, &call_rxe(row, &GUEST_V4.to_string()))?;
    server.wait(LIMIT)?;
    figure(&output, row)
}

/// Measures soft RoCE. Returns Gbit/s, or a latency in microseconds.
fn rxe(guest: &Guest, row: Row, is_within: bool, binary: &Path) -> Result<f64, Failed> {
    if is_within {
        return rxe_within(guest, row);
    }
    let server = beside(guest, binary, row, "4791")?;
    let output = succeeds(guest, &call_rxe(row, &BESIDE_V4.to_string()))?;
    server.wait(LIMIT)?;
    figure(&output, row)
}

/// Returns the result in the output of a perftest program: Gbit/s, or a latency in microseconds.
pub(crate) fn figure(output: &str, row: Row) -> Result<f64, Failed> {
    // The last line that consists of numbers contains the message size, the number of iterations, and the results.
    let figures = output.lines().rev().find_map(|line| {
        let numbers: Option<Vec<f64>> =
            line.split_whitespace().map(|word| word.parse().ok()).collect();
        numbers.filter(|numbers| numbers.len() >= 5)
    });
    let figures = figures.ok_or_else(|| format!("no results in {output}"))?;
    Ok(if row.is_latency { figures[4] } else { figures[3] })
}

/// Starts ibfabric's server on the machine that runs the guest. The server exits after one perftest client.
fn beside(guest: &Guest, binary: &Path, row: Row, port: &str) -> Result<interop::Running, Failed> {
    let mut command = Command::new(binary);
    let program = format!("ib_{}", row.theirs);
    command.args(["rdma", "serve", "--listen", &BESIDE_V4.to_string(), "--udp-port", port]);
    command.args(["--perftest", &program, "--perftest-size", "64", "--exit-after", "1"]);
    command.arg("--allow-zero-checksum");
    let running = guest.start_beside(&command)?;
    running.until("READY", LIMIT)?;
    Ok(running)
}

/// Measures the software HCA. Returns Gbit/s, or a latency in microseconds.
fn own(guest: &Guest, row: Row, is_within: bool, binary: &Path) -> Result<f64, Failed> {
    let Row { ours, arguments, .. } = row;
    let call = |peer, more| {
        format!("ibfabric rdma {ours} {arguments} {peer} --udp-port {OWN_PORT} {more} --json")
            .replace("lat --op", "lat --busy-poll-us 100 --op")
    };
    let output = if is_within {
        let serve = format!(
            "ibfabric rdma serve --listen 127.0.0.1 --udp-port {OWN_PORT} --exit-after 1 {SPIN}"
        );
        let server = guest.start(&serve)?;
        server.until("READY", LIMIT)?;
        let output = succeeds(guest, &call("127.0.0.1".to_owned(), "--from 127.0.0.2"))?;
        server.wait(LIMIT)?;
        output
    } else {
        let server = beside(guest, binary, row, OWN_PORT)?;
        let output = succeeds(guest, &call(BESIDE_V4.to_string(), "--perftest"))?;
        server.wait(LIMIT)?;
        output
    };
    let report: Value =
        serde_json::from_str(&output).map_err(|error| format!("{error} in {output}"))?;
    rdma_figure(&report, row)
}

/// Returns the result in the report of `ibfabric rdma`: Gbit/s, or the median latency in microseconds.
pub(crate) fn rdma_figure(report: &Value, row: Row) -> Result<f64, Failed> {
    let found = if row.is_latency { &report["latency_us"]["p50"] } else { &report["gbit_per_s"] };
    found.as_f64().ok_or_else(|| format!("no results in {report}").into())
}
