//! Command lines of perftest, which run with `ibfabric run` at both ends.

use std::fmt;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use interop::{Finished, RunError, Running};

/// A command line of a perftest program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The program.
    pub program: &'static str,
    /// Transport service of the program's queue pairs, such as RC.
    transport: &'static str,
    /// More options.
    options: &'static str,
    /// True if the line belongs to the short run, which has each program, each transport service, and each option
    /// except `-a`.
    pub is_short: bool,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, transport, options, .. } = self;
        let space = if options.is_empty() { "" } else { " " };
        write!(f, "{program} -c {transport}{space}{options}")
    }
}

/// The programs, their transport services, and their options. Options that a program refuses are left out. Latency
/// programs have one queue pair. Programs of RDMA READs and atomics have no inline data and no SRQ. Atomics have one
/// size. Programs of RDMA WRITEs have no events.
const PROGRAMS: [(&str, &[&str], &[&str]); 8] = [
    ("ib_send_bw", &["RC", "UC", "UD"], &["", "-e", "-q 16", "-a", "-b", "-I 64", SRQ, HUGE_PAGES]),
    ("ib_write_bw", &["RC", "UC"], &["", "-q 16", "-a", "-b", "-I 64", HUGE_PAGES]),
    ("ib_read_bw", &["RC"], &["", "-e", "-q 16", "-a", "-b", HUGE_PAGES]),
    ("ib_atomic_bw", &["RC"], &["", "-e", "-q 16", "-b", HUGE_PAGES]),
    ("ib_send_lat", &["RC", "UC", "UD"], &["", "-e", "-a", "-I 64", SRQ, HUGE_PAGES]),
    ("ib_write_lat", &["RC", "UC"], &["", "-a", "-I 64", HUGE_PAGES]),
    ("ib_read_lat", &["RC"], &["", "-e", "-a", HUGE_PAGES]),
    ("ib_atomic_lat", &["RC"], &["", "-e", HUGE_PAGES]),
];

const SRQ: &str = "--use-srq";
const HUGE_PAGES: &str = "--use_hugepages";

/// Returns all command lines.
#[must_use]
pub fn lines() -> Vec<Line> {
    let mut lines = Vec::new();
    for (program, transports, all_options) in PROGRAMS {
        for transport in transports {
            // A UC QP cannot have an SRQ. UC does not retransmit, so a server that counts received messages may wait
            // forever for a lost large message.
            let is_possible =
                |options: &&&str| *transport != "UC" || ![SRQ, "-a"].contains(options);
            let options = all_options.iter().filter(is_possible);
            lines.extend(options.map(|options| {
                let is_short = match *transport {
                    "RC" => options.is_empty() || program == "ib_send_bw" && *options != "-a",
                    _ => options.is_empty() && program == "ib_send_lat",
                };
                Line { program, transport, options, is_short }
            }));
        }
    }
    lines
}

/// Number of messages of each size. With the option `-a`, a program uses 23 message sizes, up to 8 MiB.
const ITERATIONS: &str = "50";

/// Time limit of a program.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a command line with a server and a client, on two ports. Each port is a list of options of `ibfabric run`.
///
/// # Errors
/// Fails with a description if an end does not exit with status 0, or if the client prints no result. If the line needs
/// huge pages and this machine has no free ones, fails unless the client reports this.
pub fn run(line: &Line, ibfabric: &Path, ports: [&[String]; 2]) -> Result<(), String> {
    let Line { program, transport, options, .. } = line;
    let arguments = format!("-c {transport} -n {ITERATIONS} {options}");
    let [server, client] = pair(ibfabric, ports, program, &arguments)?;
    if *options == HUGE_PAGES && !has_huge_pages() {
        return match !client.success() && client.output.contains("allocate hugepages") {
            true => Ok(()),
            false => Err(format!("expected a refusal of huge pages: {}", describe(&client))),
        };
    }
    if let Some(failed) = [&client, &server].into_iter().find(|it| !it.success()) {
        return Err(describe(failed));
    }
    // A row of results starts with the message size and the number of iterations.
    let is_row = |line: &str| {
        let numbers = line.split_whitespace().map_while(|word| word.parse::<f64>().ok());
        numbers.count() >= 4
    };
    match client.output.lines().any(is_row) {
        true => Ok(()),
        false => Err(format!("found no results: {}", describe(&client))),
    }
}

/// Runs a perftest program as server and client, on two ports, and returns both results. A status other than 0 is not
/// an error.
///
/// # Errors
/// Fails with a description if a program cannot be started or does not exit.
pub fn pair(
    ibfabric: &Path,
    ports: [&[String]; 2],
    program: &str,
    arguments: &str,
) -> Result<[Finished; 2], String> {
    let port = free_port().map_err(|error| format!("no free TCP port: {error}"))?;
    let command = |at: usize| {
        let mut command = Command::new(ibfabric);
        command.arg("run").args(ports[at]).args(["--", program]);
        command.args(arguments.split_whitespace());
        // Without -F, the programs warn about variable clock rates of the processors.
        command.args(["-F", "-p", &port.to_string()]);
        command
    };
    let ended = |it: Result<Finished, RunError>| it.map_err(|error| error.to_string());
    let server = Running::start(command(0)).map_err(|error| error.to_string())?;
    await_listener(port)?;
    let mut client = command(1);
    client.arg("localhost");
    let client = ended(Running::start(client).and_then(|it| it.wait(LIMIT)))?;
    Ok([ended(server.wait(LIMIT))?, client])
}

fn describe(finished: &Finished) -> String {
    let Finished { command, status, output, .. } = finished;
    format!("`{command}` ended with status {status}, with the output:\n{output}")
}

/// Returns a TCP port at which no program listens.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("0.0.0.0", 0))?.local_addr()?.port())
}

/// Waits until a program listens at a TCP port.
fn await_listener(port: u16) -> Result<(), String> {
    let end = Instant::now() + LIMIT;
    let local = format!(":{port:04X}");
    // The columns are a number, the local address, the remote address, and the state: 0A is LISTEN.
    let is_listener = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1).is_some_and(|it| it.ends_with(&local)) && words.get(3) == Some(&"0A")
    };
    while Instant::now() < end {
        for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
            if fs::read_to_string(file).unwrap_or_default().lines().any(is_listener) {
                return Ok(());
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err(format!("the server does not listen at port {port}"))
}

/// Returns true if this machine has free huge pages.
fn has_huge_pages() -> bool {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = text.lines().find_map(|line| line.strip_prefix("HugePages_Free:"));
    free.is_some_and(|free| free.trim() != "0")
}
