//! Unmodified libibverbs programs share one IP address through an HCA daemon, or one port of a simulated fabric.
//!
//! The programs come from the Debian packages ibverbs-utils, ibverbs-providers and perftest. A missing program is
//! reported and skipped. `HCA_CAMPAIGN_SECONDS` sets the length of the campaign [default: 6].

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

mod program;
#[path = "program/verbs.rs"]
mod verbs;

use program::{Running, ibfabric, text};
use verbs::{is_installed, on};

/// Maximum duration of one wait of a test.
const PATIENCE: Duration = Duration::from_secs(120);

/// A child process that is killed when this value is dropped.
struct Program(Child);

impl Program {
    fn start(port: &[&str], words: &[&str]) -> Self {
        let mut command = on(port, words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("the program can be started"))
    }

    fn has_exited(&mut self) -> bool {
        self.0.try_wait().expect("the process can be awaited").is_some()
    }

    fn kill(&mut self) {
        self.0.kill().expect("the program is a child of this process");
        self.0.wait().expect("the process can be awaited");
    }

    /// Waits until the program has exited; returns its output.
    fn output(mut self, name: &str) -> Output {
        let is_ended = eventually(|| self.has_exited());
        if !is_ended {
            self.kill();
        }
        let (stdout, stderr) = (read(self.0.stdout.take()), read(self.0.stderr.take()));
        assert!(is_ended, "{name} does not exit: {}{}", text(&stdout), text(&stderr));
        let status = self.0.wait().expect("the process can be awaited");
        Output { status, stdout, stderr }
    }

    /// Waits until the program has exited with status 0; returns what it printed.
    fn succeeds(self, name: &str) -> String {
        let output = self.output(name);
        let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{name}: {}\n{printed}", output.status);
        printed
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Killing the process fails only if it has already exited.
        self.0.kill().ok();
        self.0.wait().expect("the process can be awaited");
    }
}

fn read(pipe: Option<impl std::io::Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes).expect("the pipe can be read");
    }
    bytes
}

/// Waits until a condition is true; returns false if it is not true after [`PATIENCE`].
fn eventually(mut is_true: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while !is_true() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Returns a TCP port that no other call in this test process returns.
fn tcp_port() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    (20_000 + (std::process::id() % 240) as u16 * 50 + number).to_string()
}

/// Waits until a program listens at a TCP port of this machine.
fn await_listener(port: &str, server: &mut Program) {
    let wanted = format!(":{:04X} ", port.parse::<u16>().expect("the text is a port"));
    let listens = |file: &str| {
        let table = std::fs::read_to_string(file).unwrap_or_default();
        // State 0A is LISTEN. The first address of a line is the local one.
        table.lines().any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let local = fields.next().map(|local| format!("{local} "));
            local.is_some_and(|local| local.ends_with(&wanted)) && fields.nth(1) == Some("0A")
        })
    };
    let is_ready =
        eventually(|| server.has_exited() || listens("/proc/net/tcp") || listens("/proc/net/tcp6"));
    assert!(is_ready && !server.has_exited(), "the server does not listen at port {port}");
}

/// Starts a program as server and client, which exchange addresses over TCP.
fn start_pair(ports: [&[&str]; 2], words: &[&str]) -> [Program; 2] {
    let port = tcp_port();
    let words = [words, &["-p", &port]].concat();
    let mut server = Program::start(ports[0], &words);
    await_listener(&port, &mut server);
    let client = Program::start(ports[1], &[&words[..], &["localhost"]].concat());
    [server, client]
}

fn succeed(pair: [Program; 2]) {
    let [server, client] = pair;
    client.succeeds("client");
    server.succeeds("server");
}

/// Returns the process IDs of the HCA daemons of an address.
fn daemons(address: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc is mounted");
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_daemon = |id: &u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words: Vec<String> = line.split(|byte| *byte == 0).map(text).collect();
        words.get(1).is_some_and(|word| word == "hca") && words.iter().any(|word| word == address)
    };
    ids.filter(is_daemon).collect()
}

fn daemon(address: &str) -> Running {
    Running::ready(ibfabric(&["hca", "--roce", address]))
}

#[test]
fn programs_share_one_address() {
    if !is_installed("ib_write_bw") {
        return;
    }
    let port = ["--roce", "127.0.0.41"];
    succeed(start_pair([&port; 2], &["ib_write_bw", "-n", "200", "-F"]));
    // The daemon exits after its last process has detached.
    assert!(eventually(|| daemons("127.0.0.41").is_empty()));
}

#[test]
fn eight_pairs_run_at_once_at_one_address() {
    if !is_installed("ibv_rc_pingpong") {
        return;
    }
    let _daemon = daemon("127.0.0.42");
    let port = ["--roce", "127.0.0.42"];
    let words = ["ibv_rc_pingpong", "-g", "0", "-n", "300", "-e", "-c"];
    let pairs: Vec<_> = (0..8).map(|_| start_pair([&port; 2], &words)).collect();
    pairs.into_iter().for_each(succeed);
}

#[test]
fn sixteen_processes_share_a_simulated_port() {
    if !is_installed("ibv_rc_pingpong") {
        return;
    }
    let name = format!("hca-sim-{}", std::process::id());
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let fabric = directory.path().join("fabric.net");
    let fabric = fabric.to_str().expect("the path is UTF-8");
    let made = ibfabric(&["gen", "fat-tree", "4", "-o", fabric]).status();
    assert!(made.expect("the program can be started").success());
    let _simulator = Running::ready(ibfabric(&["sim", fabric, "--name", &name, "--sm"]));
    let ports = ["host-0", "host-3"].map(|node| ["--attach", &name, "--node", node]);
    let words = ["ibv_rc_pingpong", "-n", "200", "-e", "-c"];
    let there = (0..8).map(|_| start_pair([&ports[0], &ports[1]], &words));
    let back = (0..8).map(|_| start_pair([&ports[1], &ports[0]], &words));
    let pairs: Vec<_> = there.chain(back).collect();
    pairs.into_iter().for_each(succeed);
}

#[test]
fn killed_process_does_not_disturb_others() {
    if !is_installed("ibv_rc_pingpong") {
        return;
    }
    let _daemon = daemon("127.0.0.43");
    let port = ["--roce", "127.0.0.43"];
    let words = |count| ["ibv_rc_pingpong", "-g", "0", "-e", "-n", count];
    let undisturbed = start_pair([&port; 2], &words("2000"));
    for _ in 0..3 {
        let [mut server, client] = start_pair([&port; 2], &words("100000000"));
        std::thread::sleep(Duration::from_millis(300));
        server.kill();
        // The client's requests fail when its retries are used up.
        let output = client.output("client of the killed server");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    }
    succeed(undisturbed);
}

/// A stopped process takes no packets from its ring.
#[test]
fn stopped_process_does_not_block_others() {
    if !is_installed("ibv_rc_pingpong") {
        return;
    }
    let _daemon = daemon("127.0.0.40");
    let port = ["--roce", "127.0.0.40"];
    let words = |count| ["ibv_rc_pingpong", "-g", "0", "-e", "-n", count];
    let [server, _client] = start_pair([&port; 2], &words("100000000"));
    std::thread::sleep(Duration::from_millis(300));
    let stopped = Command::new("kill").args(["-s", "STOP", &server.0.id().to_string()]).status();
    assert!(stopped.expect("`kill` can be started").success());
    // Meanwhile, the client of the stopped server retransmits until its retries are used up.
    succeed(start_pair([&port; 2], &words("1000")));
}

#[test]
fn killed_daemon_causes_a_fatal_event_and_flushes_requests() {
    if !is_installed("ibv_rc_pingpong") || !is_installed("ibv_asyncwatch") {
        return;
    }
    let mut first = daemon("127.0.0.44");
    let port = ["--roce", "127.0.0.44"];
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let events = directory.path().join("events");
    let script = format!("exec stdbuf -o0 ibv_asyncwatch > {}", events.display());
    let _watch = Program::start(&port, &["sh", "-c", &script]);
    let printed = || std::fs::read_to_string(&events).unwrap_or_default();
    assert!(eventually(|| printed().contains("async event FD")), "{}", printed());
    let pair = start_pair([&port; 2], &["ibv_rc_pingpong", "-g", "0", "-n", "100000000"]);
    std::thread::sleep(Duration::from_millis(500));
    first.0.kill().expect("the daemon is a child of this process");
    for program in pair {
        let output = program.output("ibv_rc_pingpong");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    }
    drop(first);
    assert!(eventually(|| printed().contains("IBV_EVENT_DEVICE_FATAL")), "{}", printed());
    let _second = daemon("127.0.0.44");
    let words = ["ibv_rc_pingpong", "-g", "0", "-n", "100", "-c"];
    succeed(start_pair([&port; 2], &words));
}

#[test]
fn simultaneous_starts_end_with_one_daemon() {
    if !is_installed("ibv_devinfo") {
        return;
    }
    let port = ["--roce", "127.0.0.45"];
    let programs: Vec<_> =
        (0..6).map(|_| Program::start(&port, &["sh", "-c", "ibv_devinfo && sleep 1"])).collect();
    for program in programs {
        assert!(program.succeeds("ibv_devinfo").contains("hca_id:\trxe0"));
    }
    assert_eq!(daemons("127.0.0.45").len(), 1);
    let second = ibfabric(&["hca", "--roce", "127.0.0.45"]).output();
    let second = second.expect("the program can be started");
    assert_eq!(second.status.code(), Some(2), "{}", text(&second.stderr));
    let second = ibfabric(&["hca", "--roce", "127.0.0.45", "--background"]).status();
    assert!(second.expect("the program can be started").success());
    assert!(eventually(|| daemons("127.0.0.45").is_empty()));
}

#[test]
fn address_with_another_owner_is_refused() {
    let owner = ibfabric(&["rdma", "serve", "--listen", "127.0.0.46"]);
    let _owner = Running::ready(owner);
    let refused = on(&["--roce", "127.0.0.46"], &["true"]).output();
    let refused = refused.expect("the program can be started");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("127.0.0.46"), "{}", text(&refused.stderr));
}

#[test]
fn rdma_commands_share_the_address_with_programs() {
    if !is_installed("ibv_rc_pingpong") {
        return;
    }
    let _daemon = daemon("127.0.0.47");
    let _server = Running::ready(ibfabric(&["rdma", "serve", "--listen", "127.0.0.47"]));
    let port = ["--roce", "127.0.0.47"];
    let words = ["ibv_rc_pingpong", "-g", "0", "-n", "500", "-e"];
    let pair = start_pair([&port; 2], &words);
    let words = ["rdma", "bw", "127.0.0.47", "--from", "127.0.0.48", "-n", "50", "--json"];
    let output = ibfabric(&words).output().expect("the program can be started");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("the output is JSON");
    assert_eq!(found["iters"], 50);
    succeed(pair);
    // A second server would need the same management class.
    let words = ["rdma", "serve", "--listen", "127.0.0.47", "--port", "9999"];
    let refused = ibfabric(&words).output().expect("the program can be started");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("management class 0x07"), "{refused:?}");
}

/// Returns three values of a process: number of descriptors, number of mapped rings, resident anonymous memory in KiB.
fn resources(id: u32) -> (usize, usize, usize) {
    let at = |name: &str| Path::new("/proc").join(id.to_string()).join(name);
    let files = std::fs::read_dir(at("fd")).expect("the process runs").count();
    let maps = std::fs::read_to_string(at("maps")).expect("the process runs");
    let rings = maps.lines().filter(|line| line.contains("memfd:ibfabric-port")).count();
    let status = std::fs::read_to_string(at("status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let memory = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    (files, rings, memory.expect("the status contains the resident memory"))
}

/// 62 of the 64 processes at one address are killed, most at random times. The daemon frees all resources of a killed
/// process. The remaining pair is not disturbed.
#[test]
fn killed_processes_leave_nothing_in_the_daemon() {
    if !is_installed("ibv_rc_pingpong") || !is_installed("ibv_asyncwatch") {
        return;
    }
    const PAIRS: usize = 16;
    const WATCHERS: usize = 30;
    let seconds = std::env::var("HCA_CAMPAIGN_SECONDS").ok();
    let seconds = seconds.map_or(6, |text| text.parse().expect("the variable is a number"));
    let daemon = daemon("127.0.0.49");
    let id = daemon.0.id();
    let port = ["--roce", "127.0.0.49"];
    let words = |count| ["ibv_rc_pingpong", "-g", "0", "-e", "-n", count];
    let undisturbed = start_pair([&port; 2], &words("1000000"));
    assert!(eventually(|| resources(id).1 == 2), "{:?}", resources(id));
    let before = resources(id);
    let start = || start_pair([&port; 2], &words("100000000"));
    let watch = || Program::start(&port, &["ibv_asyncwatch"]);
    let mut pairs: Vec<_> = (0..PAIRS).map(|_| start()).collect();
    let mut watchers: Vec<_> = (0..WATCHERS).map(|_| watch()).collect();
    let count = 2 * (1 + PAIRS) + WATCHERS;
    assert_eq!(count, 64);
    assert!(eventually(|| resources(id).1 == count), "{:?}", resources(id));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut random = std::process::id();
    while Instant::now() < end {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (place, end) = ((random >> 8) as usize, (random >> 30) as usize % 2);
        if random >> 31 == 0 {
            let pair = &mut pairs[place % PAIRS];
            pair[end].kill();
            *pair = start();
        } else {
            let watcher = &mut watchers[place % WATCHERS];
            watcher.kill();
            *watcher = watch();
        }
    }
    drop((pairs, watchers));
    assert!(eventually(|| resources(id).1 == 2), "{:?}", resources(id));
    let after = resources(id);
    assert_eq!(after.0, before.0);
    assert!(after.2 < before.2 + 2048, "{} KiB before, {} KiB after", before.2, after.2);
    for mut program in undisturbed {
        assert!(!program.has_exited(), "{}", text(&read(program.0.stderr.take())));
    }
}
