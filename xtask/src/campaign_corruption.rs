//! Block devices over a wire that corrupts packets: fio writes and verifies blocks of 4 KiB through NBD and RTRS. A
//! corrupted block is a failure.
//!
//! The wire sets the UDP checksum of corrupted packets to zero, so that only the ICRC can detect a corruption. Each
//! seed is run twice:
//! * Without `--allow-zero-checksum`, the HCAs drop all packets with a zero checksum.
//! * With the option, the HCAs check the ICRC. It covers the IPv4 identification, which a UDP socket does not report.
//!   ibfabric's HCAs send only a few identifications, so the receiver drops packets whose ICRC requires another one.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ib_types::rng::Rng;
use interop::Running as Program;

use crate::running::Running;
use crate::wire::{ADDRESSES, Impairment, Wire};
use crate::{TaskResult, release_binary};

type Failed = Box<dyn std::error::Error>;

/// Share of frames that the wire corrupts in each direction.
const CORRUPTION: f64 = 0.05;

/// How much longer than its configured run time fio may run.
const GRACE: Duration = Duration::from_secs(120);

/// Runs each seed for the given number of seconds. Fails if a block was corrupted.
pub(crate) fn run(first: u64, runs: u64, seconds: u64) -> TaskResult {
    let binary = release_binary()?;
    let mut failures = Vec::new();
    for seed in first..first + runs {
        for allows in [false, true] {
            let option = if allows { "--allow-zero-checksum" } else { "zero checksums refused" };
            match run_seed(&binary, seed, allows, seconds) {
                Ok(line) => eprintln!("seed {seed}, {option}: {line}"),
                Err(why) => {
                    eprintln!("seed {seed}, {option}: FAILED: {why}");
                    failures.push((seed, allows));
                }
            }
        }
    }
    eprintln!("{runs} seeds, {} failures {failures:?}", failures.len());
    if failures.is_empty() { Ok(()) } else { Err("a run over a corrupting wire failed".into()) }
}

fn run_seed(binary: &Path, seed: u64, allows: bool, seconds: u64) -> Result<String, Failed> {
    let impairment = Impairment { corruption: CORRUPTION, ..Impairment::default() };
    let mut wire = Wire::new(9000, [impairment; 2], Rng::new(seed).next_u64())?;
    let folder = tempfile::tempdir()?;
    let option = allows.then_some("--allow-zero-checksum");
    let mut server = wire.command(1, binary);
    server.args(["rtrs", "serve", "--listen", ADDRESSES[1], "--export", "disk0=mem:64M"]);
    let _server = Running::ready(server.args(option))?;
    let socket = folder.path().join("nbd");
    let mut nbd = wire.command(0, binary);
    nbd.args(["nbd", "--path", ADDRESSES[1], "--device", "disk0", "--socket"]).arg(&socket);
    let _nbd = Running::ready(nbd.args(option))?;
    let mut fio = Command::new("fio");
    fio.current_dir(folder.path());
    fio.args(["--name=corruption", "--ioengine=nbd", "--rw=randwrite", "--bs=4k", "--size=64M"]);
    fio.arg(format!("--uri=nbd+unix:///disk0?socket={}", socket.display()));
    fio.args(["--iodepth=16", "--verify=crc32c", "--verify_backlog=256", "--verify_fatal=1"]);
    fio.args(["--time_based", &format!("--runtime={seconds}"), &format!("--randseed={seed}")]);
    let done = Program::start(fio)?.wait(Duration::from_secs(seconds) + GRACE)?;
    let [there, back] = wire.stop();
    let frames = format!(
        "{} and {} frames corrupted of {} and {}",
        there.corrupted, back.corrupted, there.passed, back.passed
    );
    let is_enough = there.corrupted > 100 && back.corrupted > 100;
    if !done.success() || !is_enough {
        let output = done.output.trim();
        return Err(format!("fio exited with status {}: {output}; {frames}", done.status).into());
    }
    let figures = done.output.lines().filter(|line| {
        let line = line.trim_start();
        line.starts_with("read:") || line.starts_with("write:")
    });
    let figures = figures.map(str::trim).collect::<Vec<_>>().join(", ");
    Ok(format!("no corrupted block: {figures}; {frames}"))
}
