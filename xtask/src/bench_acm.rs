//! Cost of address resolution: the number of SA queries on a large fabric, and the rate of replies from the cache.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU64;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::thread::set_current_timer_slack;
use serde_json::Value;

use crate::bench::{machine, median, version, write_section};
use crate::running::Running;
use crate::{TaskResult, release_binary, root};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of runs of each client measurement; the medians are printed.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=99))]
    runs: u16,
    /// Fabric on which every host resolves the names of all other hosts.
    #[arg(long, value_name = "KIND", default_value = "fat-tree 16 3")]
    fabric: String,
    /// Measures only clients that query one service, and does not write the results to docs/benchmarks.md.
    #[arg(long)]
    programs: bool,
    /// Does not write the results to docs/benchmarks.md.
    #[arg(long)]
    dry: bool,
}

const HEADING: &str = "## Names";

const HEAD: &str = "\
`cargo xtask bench acm` writes this section. In the first table, every host of a simulated fabric resolves the names of all other hosts. An
ACM service runs on each host. All ACM services start within half a second, 20 s before the measurement. When the measurement begins, each
service has cached the announcements of the other services. To verify resolved paths, the benchmark sends packets over some of these paths.
*packets sent, arrived* counts these packets.

";

type Failed = Box<dyn std::error::Error>;

pub(crate) fn run(args: &Args) -> TaskResult {
    let mut table = String::from(HEAD);
    // Reads the number of processors before this process is pinned to one of them.
    let machine = machine();
    if !args.programs {
        all_to_all(args, &mut table)?;
    }
    measure_clients(args, &mut table)?;
    writeln!(
        table,
        "\nMedians of {} runs on {machine}; {}.",
        args.runs,
        version("rustc", "--version")
    )?;
    eprintln!("{table}");
    if !args.dry && !args.programs {
        write_section(Some(HEADING), &format!("{HEADING}\n{table}"))?;
    }
    Ok(())
}

/// Resolves the names of all hosts on all hosts.
fn all_to_all(args: &Args, table: &mut String) -> TaskResult {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["bench", "--quiet", "--package", "ib-daemons", "--bench", "acm", "--"])
        .args(args.fabric.split(' '))
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("the benchmark of name resolution failed".into());
    }
    writeln!(
        table,
        "| fabric | routes by | hosts | resolved | wrong | SA queries | joins | multicasts | packets sent, arrived |"
    )?;
    writeln!(table, "|---|---|---|---|---|---|---|---|---|")?;
    for line in String::from_utf8(output.stdout)?.lines() {
        let Ok(it) = serde_json::from_str::<Value>(line) else { continue };
        let of = |name: &str| it[name].as_u64().unwrap_or(0);
        writeln!(
            table,
            "| {} | `route_prot {}` | {} | {} | {} | {} | {} | {} | {}, {} |",
            it["kind"].as_str().unwrap_or_default(),
            it["routes"].as_str().unwrap_or_default(),
            of("hosts"),
            of("resolutions"),
            of("wrong"),
            of("sa_queries"),
            of("joins"),
            of("multicasts"),
            of("sent"),
            of("arrived"),
        )?;
    }
    Ok(())
}

/// Measures the reply rate and the latency of an ACM service that has cached the requested address.
fn measure_clients(args: &Args, table: &mut String) -> TaskResult {
    let binary = release_binary()?;
    let scratch = tempfile::tempdir()?;
    let net = scratch.path().join("tree.net");
    let made =
        Command::new(&binary).args(["gen", "fat-tree", "4", "2", "-o"]).arg(&net).status()?;
    if !made.success() {
        return Err("cannot generate the fabric".into());
    }
    let name = format!("acm-bench-{}", std::process::id());
    let mut sim = Command::new(&binary);
    let _sim = Running::ready(sim.arg("sim").arg(&net).args(["--sm", "--name", &name]))?;
    let hosts = ["H-0002c90000100000", "H-0002c90000100002"];
    let mut services = Vec::new();
    let sockets = [1, 2].map(|number| scratch.path().join(format!("{number}.sock")));
    for (host, socket) in hosts.iter().zip(&sockets) {
        let mut service = Command::new(&binary);
        service.args(["acm", "--attach", &name, "--node", host, "--socket"]).arg(socket);
        services.push(Running::ready(&mut service)?);
    }
    let socket = &sockets[0];
    let request = request("h-0002c90000100002");
    let mut stream = UnixStream::connect(socket)?;
    ask(&mut stream, &request)?;
    let rates: Result<Vec<f64>, Failed> =
        (0..args.runs).map(|_| pipelined(socket, &request, 400_000)).collect();
    let echo = scratch.path().join("echo.sock");
    start_echo(&echo, request.len())?;
    // Measures the service and the echo thread alternately, so that a change of the machine's speed affects both.
    let open = || -> Result<[[f64; 3]; 2], Failed> {
        let mut found = [const { [const { Vec::new() }; 3] }; 2];
        for _ in 0..args.runs {
            for (socket, found) in [socket, &echo].into_iter().zip(&mut found) {
                let times = open_loop(socket, &request, 64, 20_000, Duration::from_secs(3))?;
                found.iter_mut().zip(times).for_each(|(found, time)| found.push(time));
            }
        }
        Ok(found.map(|times| times.map(median)))
    };
    let together = open()?;
    // Pins the service and this process to different processors. Otherwise the kernel might run the service on the
    // processor on which this process polls.
    pin(services[0].0.id(), "1")?;
    pin(std::process::id(), "0")?;
    let apart = open()?;
    let replied = connect_many(socket, &request, 10_000)?;
    writeln!(
        table,
        "\nIn the second table, clients query one ACM service over a Unix socket. The service has cached the requested address."
    )?;
    writeln!(
        table,
        "In the open loop, clients send requests at fixed times, independently of responses. Clients and service run on the same"
    )?;
    writeln!(
        table,
        "machine. *The echo* is a thread that responds to every request with zeros. *The echo* shows the cost of wake-ups and"
    )?;
    writeln!(table, "waiting on this machine.\n")?;
    writeln!(table, "| what | figure |\n|---|---|")?;
    writeln!(table, "| replies/s on one connection, pipelined requests | {:.0} |", median(rates?))?;
    for (found, how) in [
        (apart, "a separate processor for each process"),
        (together, "processors chosen by the kernel"),
    ] {
        for ([middle, tenth, late], who) in found.into_iter().zip(["the service", "the echo"]) {
            writeln!(
                table,
                "| 64 clients, 20,000 requests/s, open loop, {how}, {who}: latency p50, p90, p99 in µs | {middle:.1}, {tenth:.1}, {late:.1} |"
            )?;
        }
    }
    writeln!(
        table,
        "| number of clients that were connected at the same time and received replies | {replied} |"
    )?;
    Ok(())
}

/// Pins the first thread of a process to a processor. Does nothing if the machine has only one processor.
fn pin(process: u32, processor: &str) -> TaskResult {
    if std::thread::available_parallelism()?.get() < 2 {
        return Ok(());
    }
    let pinned =
        Command::new("taskset").args(["-c", "-p", processor, &process.to_string()]).output()?;
    if pinned.status.success() { Ok(()) } else { Err("taskset has failed".into()) }
}

/// Returns the bytes of a request for the address of a name.
fn request(name: &str) -> Vec<u8> {
    use ib_wire::acm::{ByteOrder, Entry, EntryFlags, Resolve};
    let entry = Entry::name(EntryFlags::DESTINATION, name).expect("the name fits into an entry");
    let mut bytes = Vec::new();
    Resolve::request([1; 8], vec![entry]).put(ByteOrder::NATIVE, &mut bytes);
    bytes
}

/// Size of a reply in bytes: a header, the path, and the source address that the service has chosen.
const ANSWER: usize = 160;

fn ask(stream: &mut UnixStream, request: &[u8]) -> Result<(), Failed> {
    stream.write_all(request)?;
    let mut answer = [0; ANSWER];
    stream.read_exact(&mut answer)?;
    if answer[2] != 0 {
        Err(format!("the service responds with status {}", answer[2]).into())
    } else {
        Ok(())
    }
}

/// Returns the number of replies per second if requests are pipelined.
fn pipelined(socket: &Path, request: &[u8], count: usize) -> Result<f64, Failed> {
    let mut stream = UnixStream::connect(socket)?;
    let mut writer = stream.try_clone()?;
    let all = request.repeat(200);
    let begun = Instant::now();
    let writing = std::thread::spawn(move || -> std::io::Result<()> {
        for _ in 0..count / 200 {
            writer.write_all(&all)?;
        }
        Ok(())
    });
    let mut left = count / 200 * 200 * ANSWER;
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        match stream.read(&mut buffer)? {
            0 => return Err("the service has disconnected".into()),
            length => left -= length,
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    writing.join().map_err(|_| "the writing thread panicked")??;
    Ok((count / 200 * 200) as f64 / seconds)
}

/// A client of the open-loop measurement: its stream, and the due times of its outstanding requests.
struct OpenLoopClient {
    stream: UnixStream,
    due: VecDeque<Instant>,
    got: usize,
}

/// Starts a thread that replies with zeros to each request of this size, until this process exits.
fn start_echo(socket: &Path, request: usize) -> TaskResult {
    let listener = UnixListener::bind(socket)?;
    listener.set_nonblocking(true)?;
    std::thread::spawn(move || {
        let mut streams: Vec<(UnixStream, usize)> = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let all = streams.iter().map(|(stream, _)| stream.as_fd());
            let mut fds: Vec<PollFd<'_>> = std::iter::once(listener.as_fd())
                .chain(all)
                .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN))
                .collect();
            if rustix::event::poll(&mut fds, None).is_err() {
                continue;
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            let mut gone = Vec::new();
            for (at, (stream, got)) in
                streams.iter_mut().enumerate().filter(|(at, _)| ready[at + 1])
            {
                match stream.read(&mut buffer) {
                    Ok(length) if length > 0 => *got += length,
                    _ => gone.push(at),
                }
                while *got >= request {
                    *got -= request;
                    // An error is ignored, because the client may have disconnected.
                    stream.write_all(&[0; ANSWER]).ok();
                }
            }
            for at in gone.into_iter().rev() {
                streams.swap_remove(at);
            }
            while let Ok((stream, _)) = listener.accept() {
                streams.push((stream, 0));
            }
        }
    });
    Ok(())
}

/// Returns the median, the 90th and the 99th percentile of the latency in µs. The latency is the time from when a
/// request is due to its reply.
fn open_loop(
    socket: &Path,
    request: &[u8],
    programs: usize,
    rate: u32,
    time: Duration,
) -> Result<[f64; 3], Failed> {
    let mut clients = Vec::new();
    for _ in 0..programs {
        let stream = UnixStream::connect(socket)?;
        stream.set_nonblocking(true)?;
        clients.push(OpenLoopClient { stream, due: VecDeque::new(), got: 0 });
    }
    let streams: Vec<UnixStream> =
        clients.iter().map(|client| client.stream.try_clone()).collect::<Result<_, _>>()?;
    let mut fds: Vec<PollFd<'_>> =
        streams.iter().map(|stream| PollFd::new(stream, PollFlags::IN)).collect();
    // With the default timer slack, wakeups are up to 50 µs late.
    set_current_timer_slack(NonZeroU64::new(1))?;
    let (mut times, mut waiting) = (Vec::new(), 0_usize);
    let step = Duration::from_secs(1) / rate;
    let begun = Instant::now();
    let end = begun + time;
    let mut next = begun;
    let mut turn = 0;
    let mut buffer = [0; 4096];
    while next < end || waiting > 0 {
        let now = Instant::now();
        while next <= now && next < end {
            let client = &mut clients[turn % programs];
            turn += 1;
            client.stream.write_all(request)?;
            client.due.push_back(next);
            waiting += 1;
            next += step;
        }
        let patience = if next < end { next.duration_since(now) } else { Duration::from_secs(10) };
        let patience = Timespec::try_from(patience)?;
        let ready = rustix::event::poll(&mut fds, Some(&patience))?;
        if ready == 0 && next >= end {
            return Err("the service does not respond".into());
        }
        for (client, fd) in clients.iter_mut().zip(&fds) {
            if fd.revents().is_empty() {
                continue;
            }
            let length = match client.stream.read(&mut buffer) {
                Ok(0) => return Err("the service has disconnected".into()),
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            client.got += length;
            while client.got >= ANSWER {
                client.got -= ANSWER;
                let due = client.due.pop_front().ok_or("received a reply without a request")?;
                times.push(due.elapsed().as_secs_f64() * 1e6);
                waiting -= 1;
            }
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    Ok([at(0.5), at(0.9), at(0.99)])
}

/// Connects many clients, each of which sends one request. Returns the number of replies.
fn connect_many(socket: &PathBuf, request: &[u8], count: usize) -> Result<usize, Failed> {
    let mut streams = Vec::new();
    for _ in 0..count {
        streams.push(UnixStream::connect(socket)?);
    }
    let mut answered = 0;
    for stream in &mut streams {
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        answered += usize::from(ask(stream, request).is_ok());
    }
    Ok(answered)
}
