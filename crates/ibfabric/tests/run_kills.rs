//! Kills unmodified programs of libibverbs on a simulated fabric at random times.
//!
//! The port of a killed program must behave as if its cable were pulled. The port is down, and the port of the other
//! end remains active. Requests of the other end fail when their retries are exhausted. Another program can use the
//! port at once. At the end, the simulator has no HCA and as many descriptors as before. Its memory has grown by at
//! most `GROWTH`.
//!
//! `KILLS_FIRST` and `KILLS_RUNS` select the seeds: `cargo xtask campaign verbs-kills --runs 500` runs more of them.

use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use ib_types::rng::Rng;
use serde_json::Value;

mod program;

use program::{Running, ibfabric, text};

/// Numbers of the nodes at which programs run. The SM uses the port of node 0. While this port is down, the SM cannot
/// activate other ports.
const NODES: std::ops::Range<usize> = 1..8;

/// Maximum time from the start of the client to the kill of either end.
const LATEST: Duration = Duration::from_millis(700);

/// Maximum wait for each effect of a kill.
const LIMIT: Duration = Duration::from_secs(30);

/// Maximum growth in bytes of the simulator's resident memory without shared memory. The allocator's caches may grow.
const GROWTH: u64 = 8 << 20;

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.map_or(default, |value| value.parse().expect("the variable is a number"))
}

/// Resources that the simulator holds for attached programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Resources {
    /// Resident memory in bytes, without shared memory.
    memory: u64,
    /// Resident shared memory in bytes.
    shared: u64,
    descriptors: usize,
    mappings: usize,
    adapters: u64,
}

struct Lab {
    simulator: Running,
    name: String,
    _directory: tempfile::TempDir,
}

impl Lab {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
        let fabric = directory.path().join("fabric.net");
        let fabric = fabric.to_str().expect("the path is UTF-8");
        let made = ibfabric(&["gen", "fat-tree", "4", "-o", fabric]).status();
        assert!(made.expect("the program can be started").success());
        let name = format!("run-kills-{}", std::process::id());
        let mut command = ibfabric(&["sim", fabric, "--name", &name, "--sm", "--mtu", "4096"]);
        command.stderr(Stdio::null());
        Self { simulator: Running::ready(command), name, _directory: directory }
    }

    fn console(&self, words: &[&str]) -> String {
        let words = [&["sim", "ctl", "--name", &self.name], words].concat();
        let output = ibfabric(&words).output().expect("the program can be started");
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Returns true if port 1 of a node is down.
    fn is_down(&self, node: &str) -> bool {
        self.console(&["dump", node]).contains("Down")
    }

    /// Starts a program with the port of a node.
    fn spawn(&self, node: &str, words: &[&str]) -> Child {
        let test = std::env::current_exe().expect("the path of the test program is known");
        let library = test.parent().expect("the path has a parent").join("libib_preload.so");
        let library = library.to_str().expect("the path is UTF-8");
        let fixed = [
            "run",
            "--library",
            library,
            "--attach",
            &self.name,
            "--node",
            node,
            "--",
            "stdbuf",
            "-oL",
        ];
        let mut command = ibfabric(&[&fixed[..], words].concat());
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        child.spawn().expect("the program can be started")
    }

    fn resources(&self) -> Resources {
        let stats: Value =
            serde_json::from_str(&self.console(&["stats", "--json"])).expect("the text is JSON");
        // The simulator needs time to close the connection of `sim ctl`. Its descriptor must not be counted.
        std::thread::sleep(Duration::from_millis(500));
        let process = format!("/proc/{}", self.simulator.0.id());
        let read = |file: &str| {
            std::fs::read_to_string(format!("{process}/{file}")).expect("the simulator runs")
        };
        let status = read("status");
        let kilobytes = |field: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(field));
            let value = line.and_then(|line| line.split_whitespace().nth(1));
            value.and_then(|value| value.parse().ok()).expect("the field has a number")
        };
        Resources {
            memory: kilobytes("RssAnon:") * 1024,
            shared: kilobytes("RssShmem:") * 1024,
            descriptors: std::fs::read_dir(format!("{process}/fd"))
                .expect("the simulator runs")
                .count(),
            mappings: read("maps").lines().count(),
            adapters: stats["data"]["adapters"].as_u64().expect("the field is a number"),
        }
    }
}

/// Waits until `condition` returns a value. Returns `None` after `limit`.
fn within<T>(limit: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        let found = condition();
        if found.is_some() || Instant::now() > end {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills a program with SIGKILL.
fn kill(child: &mut Child) {
    child.kill().expect("the program was not awaited");
}

fn finish(child: Child) -> Output {
    child.wait_with_output().expect("the process can be awaited")
}

/// Counts of runs by the outcome of the program that was not killed.
#[derive(Debug, Default)]
struct Ends {
    /// Runs in which its requests failed because the retries were exceeded.
    retries_exceeded: u64,
    /// Runs in which it exited for another reason: the TCP connection was closed, or all requests completed.
    exited: u64,
    /// Runs in which it did not exit: it waited for a message or a TCP connection, without a request in flight.
    waiting: u64,
    /// Number of killed programs that had used their port.
    ports_down: u64,
    /// Longest time from the kill to the failure of requests.
    slowest: Duration,
}

/// Program whose client always has requests in flight. The server of this program waits for a TCP message.
const WRITER: &str = "ib_write_bw";

/// Commands that start the server of a program.
const PROGRAMS: [&[&str]; 3] = [
    &["ibv_rc_pingpong", "-n", "100000000"],
    &["ibv_rc_pingpong", "-n", "100000000", "-e"],
    &[WRITER, "-D", "60", "-s", "4096", "-F"],
];

/// Runs a program at two nodes, and kills one end at a random time.
fn run(lab: &Lab, seed: u64, ends: &mut Ends) {
    let mut rng = Rng::new(seed);
    let (first, more) = (rng.below(NODES.len()), 1 + rng.below(NODES.len() - 1));
    let places = [first, (first + more) % NODES.len()];
    let nodes = places.map(|place| format!("host-{}", NODES.start + place));
    let port = (20_000 + (u64::from(std::process::id()) * 7 + seed) % 12_000).to_string();
    let words = [PROGRAMS[rng.below(PROGRAMS.len())], &["-p", &port]].concat();
    let victim = rng.below(2);
    let after = Duration::from_micros(rng.below(LATEST.as_micros() as usize) as u64);
    let server = lab.spawn(&nodes[0], &words);
    // In some runs, the client starts before the server listens. The client then exits at once.
    std::thread::sleep(Duration::from_micros(rng.below(300_000) as u64));
    let client = lab.spawn(&nodes[1], &[&words[..], &["localhost"]].concat());
    std::thread::sleep(after);
    let mut both = [server, client];
    kill(&mut both[victim]);
    let killed = Instant::now();
    let [server, client] = both;
    let (dead, mut other) = if victim == 0 { (server, client) } else { (client, server) };
    let dead = finish(dead);
    let has_been_killed = dead.status.code().is_none();
    let was_connected = text(&dead.stdout).contains("remote address");
    let must_fail = victim == 0 && words[0] == WRITER && was_connected;
    let limit = if must_fail { LIMIT } else { Duration::from_secs(2) };
    let exited = within(limit, || other.try_wait().expect("the process can be awaited"));
    if exited.is_none() {
        assert!(!must_fail, "seed {seed}: the client of {words:?} does not exit");
        assert!(!lab.is_down(&nodes[1 - victim]) || !was_connected, "the other port is down");
        ends.waiting += 1;
        kill(&mut other);
    }
    let output = finish(other);
    let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
    let has_failed = printed.contains("(12)") || printed.contains("syndrom 0x81");
    if has_failed || printed.contains("transport retry counter exceeded") {
        ends.retries_exceeded += 1;
        ends.slowest = ends.slowest.max(killed.elapsed());
    } else if exited.is_some() {
        ends.exited += 1;
    }
    assert!(!printed.contains("panicked") && output.status.code() != Some(134), "{printed}");
    let is_detached = within(LIMIT, || lab.console(&["attached"]).is_empty().then_some(()));
    let rest = lab.console(&["attached"]);
    assert!(is_detached.is_some(), "seed {seed}: HCAs remain attached: {rest}");
    if was_connected && has_been_killed {
        assert!(lab.is_down(&nodes[victim]), "seed {seed}: the port of the killed program is up");
        ends.ports_down += 1;
    }
    // Another program gets the port, which becomes active again.
    let mut again = lab.spawn(&nodes[victim], &["ibv_devinfo"]);
    let done = within(LIMIT, || again.try_wait().expect("the process can be awaited"));
    if done.is_none() {
        let state = std::fs::read_to_string(format!("/proc/{}/stack", again.id()));
        kill(&mut again);
        panic!("seed {seed}: the second attach has not ended: {state:?} {:?}", finish(again));
    }
    let output = finish(again);
    let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && printed.contains("hca_id"), "seed {seed}: {printed}");
}

#[test]
fn killed_program_leaves_port_as_pulled_cable() {
    for program in ["ibv_rc_pingpong", "ib_write_bw", "stdbuf"] {
        if !Path::new("/usr/bin").join(program).exists() {
            let must_exist = std::env::var_os("IBFABRIC_ALL_PROGRAMS").is_some();
            assert!(!must_exist, "IBFABRIC_ALL_PROGRAMS is set, but {program} is not installed");
            eprintln!(
                "skipped: {program} is not installed (Debian: ibverbs-utils, ibverbs-providers, perftest)"
            );
            return;
        }
    }
    let lab = Lab::start();
    // Every port is used once before the resources are measured, because buffers of a port remain allocated.
    for node in NODES {
        let output = finish(lab.spawn(&format!("host-{node}"), &["ibv_devinfo"]));
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let (first, runs) = (number("KILLS_FIRST", 0), number("KILLS_RUNS", 20));
    // The first runs warm up the queues of the simulator.
    let mut ends = Ends::default();
    for seed in first..first + runs.min(5) {
        run(&lab, seed, &mut ends);
    }
    let before = lab.resources();
    for seed in first + runs.min(5)..first + runs {
        run(&lab, seed, &mut ends);
        if seed % 50 == 49 {
            eprintln!("seed {seed}: {ends:?} {:?}", lab.resources());
        }
    }
    let after = lab.resources();
    eprintln!("{runs} runs: {ends:?}; before: {before:?}; after: {after:?}");
    assert_eq!((after.descriptors, after.adapters), (before.descriptors, 0));
    assert!(after.mappings <= before.mappings + 8, "{before:?} {after:?}");
    assert!(after.shared <= before.shared + (1 << 20), "{before:?} {after:?}");
    assert!(after.memory <= before.memory + GROWTH, "{before:?} {after:?}");
    if runs >= 20 {
        assert!(ends.retries_exceeded > 0 && ends.ports_down > 0, "{ends:?}");
    }
}
