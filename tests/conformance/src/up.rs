//! Runs many programs of infiniband-diags on `ibfabric up` at the same time, while links are cut and restored.
//!
//! Debian's libumad2sim can deadlock while a program exits. The thread that calls `exit` holds the lock of the
//! library's devices and waits for the receiving thread. The receiving thread waits for this lock if an unexpected
//! message arrives, such as a late response. `/proc` then shows that each thread of the program waits for another of
//! its threads, and that none waits for `up`. The test kills and counts such a program. It reports a failed check if a
//! program with another library does not exit, or if one of the threads does not wait for another thread.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ib_topology::{Fabric, NodeId, Port};
use ib_types::NodeKind;
use rustix::process::{Pid, Signal, kill_process};

use crate::clients::process::Group;

/// Time limit of one program run. It is long, because ibnetdiscover waits for each unreachable node in turn.
const LIMIT: Duration = Duration::from_secs(120);

/// Time limit of each of these steps: `up` prints `READY`; ibnetdiscover finds all nodes after the last link is
/// restored; `up` exits after SIGINT.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of program runs per permitted deadlock of Debian's library. One additional deadlock is always permitted.
const LOCKED: u64 = 500;

/// Permitted growth of `up`'s memory in bytes. The memory grows because caches of names and routes fill.
const GROWTH: u64 = 48 << 20;

/// The programs that run, all from infiniband-diags.
pub const PROGRAMS: [&str; 3] = ["ibnetdiscover", "perfquery", "saquery"];
/// The Debian package that contains [`PROGRAMS`].
pub const PACKAGE: &str = "infiniband-diags";

/// Parameters of a run with many clients.
#[derive(Debug)]
pub struct ManyClients<'a> {
    /// Path of the program `ibfabric`.
    pub binary: &'a Path,
    /// Path of Debian's libumad2sim, which the programs preload.
    pub preload: &'a Path,
    /// Path of a different umad library. If set, the programs of every second client preload it instead.
    pub other: Option<&'a Path>,
    /// The fabric, and the file that describes it.
    pub fabric: (&'a Fabric, &'a Path),
    /// Number of clients. All clients run at the same time; each runs one program after another.
    pub clients: usize,
    /// Duration of the run.
    pub time: Duration,
    /// Seed that decides which links are cut.
    pub seed: u64,
}

/// Results of a run with many clients.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Number of program runs.
    pub runs: u64,
    /// Number of program runs that failed, usually because a cut link made a node unreachable.
    pub refused: u64,
    /// Number of program runs that ended in a deadlock of Debian's library.
    pub locked: u64,
    /// Number of links that were cut.
    pub cuts: u64,
    /// Resident memory of `up` in bytes, after a quarter of the test's duration and at its end.
    pub memory: [u64; 2],
    /// Number of open files of `up` before the first program run and after the last one.
    pub files: [usize; 2],
    /// The failed checks.
    pub faults: Vec<String>,
}

/// Counters and faults that the threads of all clients update, and the flag that ends these threads.
struct Shared {
    ends: AtomicBool,
    runs: AtomicU64,
    refused: AtomicU64,
    locked: AtomicU64,
    faults: Mutex<Vec<String>>,
}

impl Shared {
    fn fault(&self, fault: String) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
    }

    fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

/// Starts `up`, runs programs while links are cut and restored, and checks the memory and open files of `up`.
///
/// # Errors
/// Fails if a program cannot be started.
pub fn run(setup: &ManyClients<'_>) -> io::Result<Outcome> {
    let directory = tempfile::tempdir()?;
    let socket = format!("clients-{}", std::process::id());
    let (fabric, file) = setup.fabric;
    let mut up = Group::bound(setup.binary);
    up.arg("up").arg(file).args(["--name", &socket, "--seed", &setup.seed.to_string()]);
    up.arg("--nbd").arg(directory.path().join("nbd.sock")).stdout(Stdio::piped());
    let mut up = Group::start(&mut up)?;
    wait_ready(&mut up)?;
    let pid = up.child().id();
    let mut outcome = Outcome { files: [open_files(pid)?, 0], ..Outcome::default() };
    let shared = Shared {
        ends: AtomicBool::new(false),
        runs: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        locked: AtomicU64::new(0),
        faults: Mutex::default(),
    };
    let running = RunningFabric { setup, socket: &socket, directory: directory.path() };
    thread::scope(|scope| -> io::Result<()> {
        let clients: Vec<_> = (0..setup.clients)
            .map(|number| {
                let (running, shared) = (&running, &shared);
                scope.spawn(move || running.run_clients(number, shared))
            })
            .collect();
        let result = cut_links(&running, fabric, &mut outcome, pid);
        shared.ends.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().map_err(|_| io::Error::other("a client's thread has panicked"))??;
        }
        result
    })?;
    outcome.runs = shared.runs.into_inner();
    outcome.refused = shared.refused.into_inner();
    outcome.locked = shared.locked.into_inner();
    outcome.faults = shared.faults.into_inner().unwrap_or_else(PoisonError::into_inner);
    running.check_restored(fabric, &mut outcome)?;
    // A cut link may delay programs, but at most a tenth of all program runs may fail.
    if outcome.runs < setup.clients as u64 || outcome.refused > outcome.runs / 10 {
        let (runs, refused) = (outcome.runs, outcome.refused);
        outcome.faults.push(format!("{refused} of {runs} program runs failed"));
    }
    if outcome.locked > 1 + outcome.runs / LOCKED {
        let (runs, locked) = (outcome.runs, outcome.locked);
        outcome.faults.push(format!("{locked} of {runs} program runs deadlocked"));
    }
    outcome.memory[1] = resident(pid)?;
    if outcome.memory[1] > outcome.memory[0] + GROWTH {
        let [before, after] = outcome.memory.map(|bytes| bytes >> 20);
        outcome.faults.push(format!("the memory of up has grown from {before} MiB to {after} MiB"));
    }
    outcome.files[1] = open_files(pid)?;
    if outcome.files[1] > outcome.files[0] {
        let [before, after] = outcome.files;
        outcome
            .faults
            .push(format!("the number of open files of up has grown from {before} to {after}"));
    }
    kill_process(Pid::from_child(up.child()), Signal::INT)?;
    match up.wait(PATIENCE)? {
        Some(status) if status.success() => {}
        Some(status) => outcome.faults.push(format!("up has ended with {status}")),
        None => outcome.faults.push(format!("up has not ended within {} s", PATIENCE.as_secs())),
    }
    Ok(outcome)
}

/// Waits until `up` prints `READY`. A thread discards the output of `up` until `up` exits, so the pipe never fills.
fn wait_ready(up: &mut Group) -> io::Result<()> {
    let output = up.child().stdout.take().expect("standard output is piped");
    let (told, ready) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if line == "READY" {
                // Sending fails if `wait_ready` has already returned.
                told.send(()).ok();
            }
        }
    });
    ready.recv_timeout(PATIENCE).map_err(|_| io::Error::other("up is not ready in time"))
}

/// Each second, restores the cut link and cuts a random link. Restores the last cut link before it returns.
fn cut_links(
    running: &RunningFabric<'_>,
    fabric: &Fabric,
    outcome: &mut Outcome,
    pid: u32,
) -> io::Result<()> {
    let is_switch = |port: &Port| fabric.node(port.node).kind == NodeKind::Switch;
    let links = fabric.links().map(|(one, other)| (fabric.port(one), fabric.port(other)));
    let links: Vec<String> = links
        .filter(|(one, other)| is_switch(one) && is_switch(other))
        .map(|(one, _)| format!("\"{}\"[{}]", fabric.node(one.node).name, one.number))
        .collect();
    if links.is_empty() {
        return Err(io::Error::other("the fabric has no link between switches"));
    }
    let (begin, mut random) = (Instant::now(), running.setup.seed);
    let mut cut: Option<&str> = None;
    while begin.elapsed() < running.setup.time {
        let next = begin + Duration::from_secs(1 + outcome.cuts);
        if let Some(link) = cut.take() {
            running.control(&format!("ReLink {link}"))?;
        }
        // Multiplier and increment of Knuth's MMIX generator. Any sequence that eventually selects each link would do.
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let link = &links[(random >> 33) as usize % links.len()];
        running.control(&format!("Unlink {link}"))?;
        cut = Some(link);
        outcome.cuts += 1;
        if outcome.memory[0] == 0 && begin.elapsed() >= running.setup.time / 4 {
            outcome.memory[0] = resident(pid)?;
        }
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    cut.map_or(Ok(()), |link| running.control(&format!("ReLink {link}")))
}

/// The parameters, socket name and directory with which the programs run.
struct RunningFabric<'a> {
    setup: &'a ManyClients<'a>,
    socket: &'a str,
    directory: &'a Path,
}

impl RunningFabric<'_> {
    /// Runs the programs of a client one after another.
    fn run_clients(&self, number: usize, shared: &Shared) -> io::Result<()> {
        let mut round = number;
        while !shared.ends() {
            round += 1;
            let (mut command, said) = self.command(number, round)?;
            let mut program = Group::start(&mut command)?;
            let status = program.wait(LIMIT)?;
            shared.runs.fetch_add(1, Ordering::Relaxed);
            let Some(status) = status else {
                let waits = waits(program.child().id())?;
                let is_locked = !waits.is_empty() && waits.iter().all(Wait::is_lock);
                if is_locked && self.preload(number) == self.setup.preload {
                    shared.locked.fetch_add(1, Ordering::Relaxed);
                } else {
                    let seconds = LIMIT.as_secs();
                    shared.fault(format!("{command:?} has not ended within {seconds} s; its threads wait in {waits:?}"));
                }
                continue;
            };
            if status.code().is_none() {
                shared.fault(format!("{command:?} ended with {status}, see {}", said.display()));
            }
            shared.refused.fetch_add(u64::from(!status.success()), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the path of the umad library that the programs of client `number` preload.
    fn preload(&self, number: usize) -> &Path {
        self.setup.other.filter(|_| number % 2 == 1).unwrap_or(self.setup.preload)
    }

    /// Returns the command that client `number` runs in round `round`, and the path of its output file.
    fn command(&self, number: usize, round: usize) -> io::Result<(Command, PathBuf)> {
        let (fabric, _) = self.setup.fabric;
        let hosts = fabric.nodes().filter(|(_, node)| node.kind != NodeKind::Switch);
        let hosts: Vec<NodeId> = hosts.map(|(id, _)| id).collect();
        let own = hosts[number * hosts.len() / self.setup.clients % hosts.len()];
        let said = self.directory.join(format!("client-{number}"));
        let mut command = match round % PROGRAMS.len() {
            0 => Command::new("ibnetdiscover"),
            1 => {
                // The SM assigns LIDs from 1 on, one to each node.
                let lid = 1 + (number + round * 7) % fabric.node_count();
                let mut command = Command::new("perfquery");
                command.args([lid.to_string(), "1".to_owned()]);
                command
            }
            _ => {
                let mut command = Command::new("saquery");
                // Queries node records, link records or multicast groups.
                command.arg(["-N", "-x", "-g"][round / PROGRAMS.len() % 3]);
                command
            }
        };
        let output = File::create(&said)?;
        // libumad2sim leaves files in the working directory if a program is killed. So programs run in the temporary
        // directory.
        command
            .current_dir(self.directory)
            .env("LD_PRELOAD", self.preload(number))
            .env("IBSIM_SOCKNAME", self.socket)
            .env("SIM_HOST", &fabric.node(own).name)
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output);
        Ok((command, said))
    }

    /// Executes a command on the simulator's console.
    fn control(&self, command: &str) -> io::Result<()> {
        let mut control = Command::new(self.setup.binary);
        control.args(["sim", "ctl", "--name", self.socket, command]);
        let output = control.output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(io::Error::other(format!("{command}: {}: {said}", output.status)))
    }

    /// Checks that ibnetdiscover finds all nodes, and that all programs succeed, after all links are restored.
    fn check_restored(&self, fabric: &Fabric, outcome: &mut Outcome) -> io::Result<()> {
        let end = Instant::now() + PATIENCE;
        let wanted = fabric.node_count();
        loop {
            let (mut command, said) = self.command(0, PROGRAMS.len())?;
            let status = Group::start(&mut command)?.wait(LIMIT)?;
            let text = fs::read_to_string(&said)?;
            let is_node = |line: &&str| line.starts_with("Switch\t") || line.starts_with("Ca\t");
            let found = text.lines().filter(is_node).count();
            if found == wanted && status.is_some_and(|status| status.success()) {
                break;
            }
            if Instant::now() > end {
                let fault = format!(
                    "ibnetdiscover finds {found} of {wanted} nodes after all links are restored"
                );
                outcome.faults.push(fault);
                break;
            }
        }
        for round in 1..3 * PROGRAMS.len() {
            let (mut command, said) = self.command(0, round)?;
            let status = Group::start(&mut command)?.wait(LIMIT)?;
            if !status.is_some_and(|status| status.success()) {
                let said = fs::read_to_string(&said)?;
                let said = said.lines().last().unwrap_or_default();
                outcome
                    .faults
                    .push(format!("{command:?} after all links are restored: {status:?}: {said}"));
            }
        }
        Ok(())
    }
}

/// The text of `/proc/PID/task/TID/syscall`: number and arguments of the system call in which a thread waits, or
/// `running`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wait(String);

impl Wait {
    /// Returns true if the thread waits for another thread of its process.
    fn is_lock(&self) -> bool {
        self.0.split(' ').next() == Some(&libc::SYS_futex.to_string())
    }
}

/// Returns the system calls in which the threads of a process wait.
fn waits(pid: u32) -> io::Result<Vec<Wait>> {
    fs::read_dir(format!("/proc/{pid}/task"))?
        .map(|task| {
            let said = fs::read_to_string(task?.path().join("syscall"))?;
            Ok(Wait(said.trim_end().to_owned()))
        })
        .collect()
}

/// Returns the resident memory of a process in bytes.
fn resident(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib << 10)
        .ok_or_else(|| io::Error::other("/proc does not contain the memory of the process"))
}

/// Returns the number of open files of a process.
fn open_files(pid: u32) -> io::Result<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}
