//! Measures how much a capture slows down the captured program. Runs with and without a capture alternate.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bench::{machine, median, version, write_section};
use crate::running::Running;
use crate::{TaskResult, release_binary};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of pairs of runs, one with and one without a capture.
    #[arg(long, value_name = "N", default_value_t = 15,
        value_parser = clap::value_parser!(u16).range(1..=999))]
    runs: u16,
    /// Does not write the results to docs/benchmarks.md.
    #[arg(long)]
    dry: bool,
    /// Measures only this quantity, and does not write the results to docs/benchmarks.md.
    #[arg(long)]
    only: Option<Quantity>,
}

/// A quantity that this benchmark measures.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Quantity {
    /// Message rate of a captured queue pair.
    Throughput,
    /// Message rate of a queue pair while a different queue pair is captured.
    Other,
    /// Latency in µs of the messages of a captured program.
    Latency,
}

const HEADING: &str = "## Captures";

const HEAD: &str = "\
`cargo xtask bench capture` writes this section. The benchmark runs `ibfabric rdma bw --op write` and `ibfabric rdma lat --op send` between
two loopback addresses. A pair of runs is one run without a capture and one with a capture. In every second pair, the run without a capture
comes first. `ibfabric capture start` writes the client's packets to a file in memory (/dev/shm).

In rows *the server sleeps*, the server sleeps between messages, and the capture thread writes the file while the server sleeps. In all
other rows, client and server keep both processors busy.

* *off*: the median of all runs without a capture. *on*: the median of all runs with a capture.
* *ratio*: *on* divided by *off*, as the median over all pairs of runs.
* *captured*: the share of the sent and received packets that the file contains. The capture counts the packets that were overwritten in the
  ring before the capture thread wrote them to the file.
* *another queue pair*: a program has two queue pairs, and only one of them is captured. The row contains the message rate of the queue pair
  that is not captured.

| what | payload bytes kept | off | on | ratio | captured |
|---|---|---|---|---|---|
";

/// Address and UDP port of the server. No other task of xtask uses this port.
const SERVER: [&str; 4] = ["--listen", "127.0.0.1", "--udp-port", "31791"];
const CLIENT: [&str; 4] = ["--from", "127.0.0.2", "--udp-port", "31791"];

const FILE: &str = "/dev/shm/ibfabric-bench.pcapng";

/// Duration of a measurement, and of the pause that precedes it.
const WINDOW: Duration = Duration::from_millis(700);
const SETTLE: Duration = Duration::from_millis(150);

type Failed = Box<dyn std::error::Error>;

pub(crate) fn run(args: &Args) -> TaskResult {
    let binary = release_binary()?;
    let serving = serve(&binary, false)?;
    let mut table = String::from(HEAD);
    let wants = |what| args.only.is_none_or(|only| only == what);
    let sizes = [(1 << 20, 64), (4096, 64), (1 << 20, 4096), (4096, 4096)];
    for (size, payload) in sizes.into_iter().filter(|_| wants(Quantity::Throughput)) {
        let found = throughput(&binary, args, size, payload, false)?;
        let name = if size == 4096 { "4 KiB" } else { "1 MiB" };
        let what = format!("WRITE of {name}, messages/s");
        row(&mut table, &what, payload, &found, 0);
    }
    for payload in [64, 4096].into_iter().filter(|_| wants(Quantity::Other)) {
        let found = throughput(&binary, args, 4096, payload, true)?;
        row(&mut table, "WRITE of 4 KiB, messages/s of another queue pair", payload, &found, 0);
    }
    if wants(Quantity::Latency) {
        drop(serving);
        for (spins, how) in [(true, "client and server poll"), (false, "the server sleeps")] {
            let _serving = serve(&binary, spins)?;
            let [middle, late] = latency(&binary, args)?;
            for (found, which) in [(&middle, "p50"), (&late, "p99")] {
                let what = format!("SEND of 64 bytes, {how}, latency {which} in µs");
                row(&mut table, &what, 64, found, 2);
            }
        }
    }
    // Only this task uses the capture file, so it can be removed.
    std::fs::remove_file(FILE).ok();
    writeln!(
        table,
        "\n{} pairs of runs on {}; {}.",
        args.runs,
        machine(),
        version("rustc", "--version")
    )?;
    if args.dry || args.only.is_some() {
        Ok(())
    } else {
        write_section(Some(HEADING), &format!("{HEADING}\n{table}"))
    }
}

/// Results of runs without (`off`) and with (`on`) a capture, and the captured shares of the packets.
#[derive(Default)]
struct Measurements {
    off: Vec<f64>,
    on: Vec<f64>,
    captured: Vec<f64>,
}

fn row(table: &mut String, what: &str, payload: u16, found: &Measurements, decimals: usize) {
    let ratios = found.on.iter().zip(&found.off).map(|(on, off)| on / off).collect();
    let [off, on] = [&found.off, &found.on].map(|values| median(values.clone()));
    let captured = match found.captured.is_empty() {
        true => "–".to_owned(),
        false => format!("{:.0} %", 100.0 * median(found.captured.clone())),
    };
    let line = format!(
        "| {what} | {payload} | {off:.decimals$} | {on:.decimals$} | {:.3} | {captured} |\n",
        median(ratios)
    );
    eprint!("{line}");
    table.push_str(&line);
}

/// Starts a server. If `spins` is true, it polls for packets; otherwise it sleeps.
fn serve(binary: &Path, spins: bool) -> std::io::Result<Running> {
    let mut server = Command::new(binary);
    let spins = if spins { &["--busy-poll-us", "1000"][..] } else { &[] };
    server.args(["rdma", "serve"]).args(SERVER).args(spins).stdout(Stdio::null());
    let running = Running(server.spawn()?);
    std::thread::sleep(Duration::from_millis(500));
    Ok(running)
}

fn client(binary: &Path, words: &[&str]) -> std::io::Result<Running> {
    let mut command = Command::new(binary);
    command.arg("rdma").args(words).arg("127.0.0.1").args(CLIENT).args(["--json"]);
    Ok(Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?))
}

fn ask(binary: &Path, pid: u32, words: &[&str]) -> Result<Value, Failed> {
    let mut command = Command::new(binary);
    command.arg("capture").args(words).args(["--pid", &pid.to_string(), "--json"]);
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// Starts a capture of the given queue pair, or of all queue pairs.
fn start(binary: &Path, pid: u32, payload: u16, qpn: Option<u64>) -> Result<(), Failed> {
    let (payload, qpn) = (payload.to_string(), qpn.map(|qpn| qpn.to_string()));
    let mut words = vec!["start", "-w", FILE, "--payload", &payload];
    words.extend(qpn.iter().flat_map(|qpn| ["--qpn", qpn]));
    ask(binary, pid, &words).map(drop)
}

/// Stops a capture. Returns the captured share of the packets.
fn stop(binary: &Path, pid: u32) -> Result<f64, Failed> {
    let told = ask(binary, pid, &["stop"])?;
    Ok(number(&told["captured"]) / (number(&told["sent"]) + number(&told["received"])).max(1.0))
}

fn throughput(
    binary: &Path,
    args: &Args,
    size: u32,
    payload: u16,
    other: bool,
) -> Result<Measurements, Failed> {
    let (size, qps) = (size.to_string(), if other { "2" } else { "1" });
    let words = ["bw", "--op", "write", "-s", &size, "-n", "1000000000", "-q", qps];
    let running = client(binary, &words)?;
    let pid = running.0.id();
    std::thread::sleep(Duration::from_secs(1));
    let qps = |listed: &Value| -> Vec<(u64, f64)> {
        let qps = listed["programs"][0]["qps"].as_array().cloned().unwrap_or_default();
        qps.iter().map(|qp| (qp["qpn"].as_u64().unwrap_or(0), number(&qp["messages"]))).collect()
    };
    let first = qps(&ask(binary, pid, &["list"])?);
    let (watched, captured) = match first[..] {
        [(watched, _), (captured, _)] if other => (watched, Some(captured)),
        [(watched, _), ..] => (watched, None),
        [] => return Err("the client has no queue pair".into()),
    };
    let messages = || -> Result<(Instant, f64), Failed> {
        let listed = ask(binary, pid, &["list"])?;
        let of = qps(&listed).into_iter().find(|(qpn, _)| *qpn == watched);
        Ok((Instant::now(), of.ok_or("the queue pair was destroyed")?.1))
    };
    let rate = || -> Result<f64, Failed> {
        std::thread::sleep(SETTLE);
        let (since, before) = messages()?;
        std::thread::sleep(WINDOW);
        let (until, after) = messages()?;
        Ok((after - before) / until.duration_since(since).as_secs_f64())
    };
    let mut found = Measurements::default();
    for number in 0..args.runs {
        for is_on in [number.is_multiple_of(2), !number.is_multiple_of(2)] {
            if is_on {
                start(binary, pid, payload, captured)?;
                found.on.push(rate()?);
                found.captured.push(stop(binary, pid)?);
            } else {
                found.off.push(rate()?);
            }
        }
    }
    Ok(found)
}

/// Returns the median and the 99th percentile of the latency, measured with and without a capture.
fn latency(binary: &Path, args: &Args) -> Result<[Measurements; 2], Failed> {
    let mut found = [Measurements::default(), Measurements::default()];
    for number in 0..args.runs {
        for is_on in [number.is_multiple_of(2), !number.is_multiple_of(2)] {
            let words =
                ["lat", "--op", "send", "-s", "64", "-n", "200000", "--busy-poll-us", "1000"];
            let mut running = client(binary, &words)?;
            let pid = running.0.id();
            std::thread::sleep(SETTLE);
            if is_on {
                start(binary, pid, 64, None)?;
            } else {
                // In a run without a capture, the client handles this control request instead of the one that starts a
                // capture. So the two runs of a pair differ only in the capture.
                ask(binary, pid, &["list"])?;
            }
            let output =
                running.0.stdout.take().ok_or("the client's standard output is not piped")?;
            let report: Value = serde_json::from_reader(output)?;
            for (found, key) in found.iter_mut().zip(["p50", "p99"]) {
                let values = if is_on { &mut found.on } else { &mut found.off };
                // `captured` remains empty, because the client, which counts the captured packets, has exited.
                values.push(self::number(&report["latency_us"][key]));
            }
        }
    }
    Ok(found)
}
