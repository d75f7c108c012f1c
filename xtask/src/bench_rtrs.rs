//! Compares the speed of block devices, in alternating runs. The first comparison is `rtrs serve` with nbdkit. The
//! second is `ibfabric rtrs` with the kernel's RTRS, in one guest.

use std::fmt::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use interop::guest::FROM_DISK;
use interop::{Guest, GuestOptions};
use serde_json::Value;

use crate::bench::{machine, median, version, write_section};
use crate::cases::program_on_disk;
use crate::running::Running;
use crate::{TaskResult, release_binary};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of pairs of runs for each row, one of ibfabric and one of the other program; medians are printed.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u16).range(1..=99))]
    runs: u16,
    /// Duration of a run, in seconds.
    #[arg(long, value_name = "S", default_value_t = 4)]
    seconds: u16,
    /// Measures only on this machine, or only in a guest; does both without this option.
    #[arg(long, value_enum)]
    only: Option<Scope>,
    /// Does not write the results to docs/benchmarks.md.
    #[arg(long)]
    dry: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Scope {
    Machine,
    Guest,
}

const HEADING: &str = "## Block devices";

const HEAD: &str = "\
`cargo xtask bench rtrs` writes this section. The benchmark measures random reads from a device of 256 MiB in memory. `ibfabric` (*ours*)
and another program (*other*) run alternately.

* *over RTRS*: *ours* is `ibfabric rtrs bench` with `ibfabric rtrs serve`, over RoCEv2 on loopback. In rows *over RTRS*, *other* is fio's
  nbd engine with `nbdkit memory`, over TCP on loopback. *ours* and *other* each have one client and one server.
* *over NBD and RTRS*: *ours* is fio's nbd engine on the Unix socket of `ibfabric nbd`, which forwards each request to
  `ibfabric rtrs serve`. A request of *ours* passes three programs: fio, `ibfabric nbd` and `ibfabric rtrs serve`. In rows *over NBD and
  RTRS*, *other* is fio's nbd engine on the Unix socket of nbdkit. A request of *other* passes two programs: fio and nbdkit.
* *in a guest*: client and server run in one guest with MTU 9000. An emulator runs the guest without KVM, so only the ratio is meaningful.
  In rows *in a guest*, *ours* is `ibfabric rtrs bench` with `ibfabric rtrs serve`, over loopback. In rows *in a guest*, *other* is fio's
  libaio engine on the block device of the kernel's rnbd_client. The kernel's rnbd_server exports a RAM disk to rnbd_client over soft RoCE.
* *ratio*: *ours* divided by *other*, as the median over all pairs of runs. In rows with latency, a ratio below 1 means that `ibfabric` is
  faster.

| what | other | ours | ratio |
|---|---|---|---|
";

/// The UDP port of `ibfabric rtrs`.
const UDP: &str = "25791";

/// The address of both server and client in the guest.
const WITHIN: &str = "127.0.0.1";

/// Time limit for a program to start, or for a command in the guest.
const LIMIT: Duration = Duration::from_secs(120);

type Failed = Box<dyn std::error::Error>;

/// A load of random reads: their size, how many are outstanding, and the quantity that is measured.
#[derive(Clone, Copy)]
struct Load {
    bs: &'static str,
    depth: u16,
    figure: Figure,
    /// How long client and server of `ibfabric rtrs` poll before they sleep, in microseconds.
    spin: u16,
}

#[derive(Clone, Copy)]
enum Figure {
    /// Requests per second.
    Iops,
    /// MiB per second.
    Bandwidth,
    /// Median latency in microseconds.
    Latency,
}

const SMALL: Load = Load { bs: "4k", depth: 32, figure: Figure::Iops, spin: 0 };
const LARGE: Load = Load { bs: "256k", depth: 16, figure: Figure::Bandwidth, spin: 0 };
const SINGLE: Load = Load { bs: "4k", depth: 1, figure: Figure::Latency, spin: 0 };
const SPINNING: Load = Load { spin: 200, ..SINGLE };

impl Load {
    fn name(self) -> String {
        let Self { bs, depth, spin, .. } = self;
        let figure = match self.figure {
            Figure::Iops => "IOPS",
            Figure::Bandwidth => "MiB/s",
            Figure::Latency => "median latency in µs",
        };
        let spin = if spin > 0 { ", ibfabric polls" } else { "" };
        format!("{} KiB, {depth} outstanding, {figure}{spin}", bs.trim_end_matches('k'))
    }

    /// Returns the measured quantity from a report of `ibfabric rtrs bench`.
    fn of_ours(self, report: &Value) -> Option<f64> {
        match self.figure {
            Figure::Iops => report["iops"].as_f64(),
            Figure::Bandwidth => report["mib_per_s"].as_f64(),
            Figure::Latency => report["latency_us"]["p50"].as_f64(),
        }
    }

    /// Returns the measured quantity from a report of fio.
    fn of_fio(self, report: &Value) -> Option<f64> {
        let read = &report["jobs"][0]["read"];
        match self.figure {
            Figure::Iops => read["iops"].as_f64(),
            Figure::Bandwidth => Some(read["bw_bytes"].as_f64()? / f64::from(1 << 20)),
            Figure::Latency => Some(read["clat_ns"]["percentile"]["50.000000"].as_f64()? / 1000.0),
        }
    }

    /// Returns fio's options for this load.
    fn fio(self, seconds: u16) -> String {
        let Self { bs, depth, .. } = self;
        format!(
            "--name=read --rw=randread --bs={bs} --iodepth={depth} --size=256M --runtime={seconds} --time_based \
             --output-format=json"
        )
    }

    /// Returns the options of `rtrs bench` for this load.
    fn bench(self, seconds: u16) -> String {
        let Self { bs, depth, spin, .. } = self;
        format!(
            "--device disk0 --rw randread --bs {bs} --iodepth {depth} --runtime {seconds} --busy-poll-us {spin} --json"
        )
    }
}

pub(crate) fn run(args: &Args) -> TaskResult {
    let binary = release_binary()?;
    let mut table = String::from(HEAD);
    if args.only != Some(Scope::Guest) {
        on_machine(args, &binary, &mut table)?;
    }
    let mut kernel = String::new();
    if args.only != Some(Scope::Machine) {
        kernel = format!(", Linux {} in the guest", in_guest(args, &binary, &mut table)?);
    }
    writeln!(
        table,
        "\nMedians of {} runs of {} s on {}{kernel}, {}, {}; {}.",
        args.runs,
        args.seconds,
        machine(),
        version("nbdkit", "--version"),
        version("fio", "--version"),
        version("rustc", "--version")
    )?;
    if args.dry { Ok(()) } else { write_section(Some(HEADING), &format!("{HEADING}\n{table}")) }
}

/// Runs two measurements alternately, and writes a row with their medians and the median of their ratios.
fn compare(
    (args, table): (&Args, &mut String),
    what: &str,
    mut theirs: impl FnMut() -> Result<f64, Failed>,
    mut ours: impl FnMut() -> Result<f64, Failed>,
) -> TaskResult {
    let (mut others, mut own, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..args.runs {
        let (other, our) = (theirs()?, ours()?);
        others.push(other);
        own.push(our);
        ratios.push(our / other);
    }
    let [other, our, ratio] = [median(others), median(own), median(ratios)];
    let line = format!("| {what} | {other:.1} | {our:.1} | {ratio:.2} |\n");
    eprint!("{line}");
    table.push_str(&line);
    Ok(())
}

fn on_machine(args: &Args, binary: &Path, table: &mut String) -> TaskResult {
    let scratch = tempfile::tempdir()?;
    let path = |name: &str| scratch.path().join(name);
    let (plain, front) = (path("nbdkit"), path("ibfabric"));
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let mut kit = Command::new("nbdkit");
    kit.args(["-f", "-i", "127.0.0.1", "-p", &port, "memory", "256M"]);
    let _over_tcp = Running(kit.spawn()?);
    until(|| TcpStream::connect(("127.0.0.1", port.parse().unwrap_or_default())).is_ok())?;
    let mut kit = Command::new("nbdkit");
    kit.arg("-f").arg("-U").arg(&plain).args(["memory", "256M"]);
    let _over_unix = Running(kit.spawn()?);
    until(|| UnixStream::connect(&plain).is_ok())?;
    let serve = |load: Load| {
        let mut serve = Command::new(binary);
        serve.args(["rtrs", "serve", "--listen", "127.0.0.1", "--udp-port", UDP]);
        serve.args(["--export", "disk0=mem:256M", "--busy-poll-us", &load.spin.to_string()]);
        Running::ready(&mut serve)
    };
    for load in [SMALL, LARGE, SINGLE, SPINNING] {
        let _server = serve(load)?;
        let uri = format!("nbd://127.0.0.1:{port}/");
        let ours = || {
            let words = format!(
                "rtrs bench --path 127.0.0.1 --udp-port {UDP} {}",
                load.bench(args.seconds)
            );
            let report = report(Command::new(binary).args(words.split(' ')))?;
            load.of_ours(&report).ok_or_else(|| format!("no results in {report}").into())
        };
        let what = format!("over RTRS: {}", load.name());
        compare((args, table), &what, || fio(&uri, load, args), ours)?;
    }
    for load in [SMALL, LARGE, SINGLE] {
        let _server = serve(load)?;
        let mut offer = Command::new(binary);
        offer.args([
            "nbd",
            "--path",
            "127.0.0.1",
            "--udp-port",
            UDP,
            "--device",
            "disk0",
            "--socket",
        ]);
        let _front = Running::ready(offer.arg(&front))?;
        let uri =
            |socket: &Path, name: &str| format!("nbd+unix:///{name}?socket={}", socket.display());
        let what = format!("over NBD and RTRS: {}", load.name());
        let (theirs, ours) = (uri(&plain, ""), uri(&front, "disk0"));
        compare((args, table), &what, || fio(&theirs, load, args), || fio(&ours, load, args))?;
    }
    Ok(())
}

/// Measures a load with fio over NBD.
fn fio(uri: &str, load: Load, args: &Args) -> Result<f64, Failed> {
    let mut fio = Command::new("fio");
    fio.arg("--ioengine=nbd").arg(format!("--uri={uri}"));
    let options = load.fio(args.seconds);
    let report = report(fio.args(options.split_whitespace()))?;
    load.of_fio(&report).ok_or_else(|| format!("no results in {report}").into())
}

/// Runs a program, which must succeed and print a JSON object. Returns this object.
fn report(command: &mut Command) -> Result<Value, Failed> {
    let output = command.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("{command:?}: {}: {text}", output.status).into());
    }
    object(&text)
}

/// Parses the JSON object in a program's output. Other text may precede the object.
fn object(text: &str) -> Result<Value, Failed> {
    let start = text.find('{').ok_or_else(|| format!("no JSON object in {text}"))?;
    Ok(serde_json::from_str(&text[start..])?)
}

fn until(mut is_ready: impl FnMut() -> bool) -> TaskResult {
    let end = Instant::now() + LIMIT;
    while !is_ready() {
        if Instant::now() > end {
            return Err("a program does not listen in time".into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Compares `ibfabric rtrs` with the kernel's RTRS in a guest. Returns the kernel's version.
fn in_guest(args: &Args, binary: &Path, table: &mut String) -> Result<String, Failed> {
    let scratch = tempfile::tempdir()?;
    let disk = scratch.path().join("disk");
    program_on_disk(binary, &disk)?;
    let memory = 1536;
    let options = GuestOptions { mtu: 9000, memory, disk: Some(disk), ..GuestOptions::default() };
    let guest = Guest::boot(&options)?;
    let told = |command: &str| -> Result<String, Failed> {
        let finished = guest.run(command, LIMIT)?;
        match finished.success() {
            true => Ok(finished.output),
            false => {
                Err(format!("{command}: status {}: {}", finished.status, finished.output).into())
            }
        }
    };
    told(FROM_DISK)?;
    // Writes to the whole RAM disk first, because reads of unwritten blocks would not access memory.
    told(
        "modprobe brd rd_nr=1 rd_size=262144 && dd if=/dev/zero of=/dev/ram0 bs=1M count=256 2>/dev/null && \
         modprobe rtrs_server && modprobe rnbd_server && modprobe rtrs_client && modprobe rnbd_client && \
         echo 'sessname=self path=ip:192.168.77.1 device_path=dev/ram0 access_mode=rw' \
         >/sys/devices/virtual/rnbd-client/ctl/map_device && sleep 1",
    )?;
    let port = "4792";
    let server = guest.start(&format!(
        "ibfabric rtrs serve --listen {WITHIN} --udp-port {port} --export disk0=mem:256M"
    ))?;
    server.until("READY", LIMIT)?;
    for load in [SMALL, LARGE, SINGLE] {
        let theirs = || {
            let call = format!(
                "fio --ioengine=libaio --direct=1 --filename=/dev/rnbd0 {}",
                load.fio(args.seconds)
            );
            let report = object(&told(&call)?)?;
            load.of_fio(&report).ok_or_else(|| format!("no results in {report}").into())
        };
        let ours = || {
            let options = load.bench(args.seconds);
            let call = format!("ibfabric rtrs bench --path {WITHIN} --udp-port {port} {options}");
            let report = object(&told(&call)?)?;
            load.of_ours(&report).ok_or_else(|| format!("no results in {report}").into())
        };
        let what = format!("in a guest: {}", load.name());
        compare((args, &mut *table), &what, theirs, ours)?;
    }
    drop(server);
    Ok(told("uname -r")?.trim().to_owned())
}
