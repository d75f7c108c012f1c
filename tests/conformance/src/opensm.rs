//! One run of Debian's OpenSM on Debian's ibsim, without privileges.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The reason why a run of OpenSM has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// A program cannot be started.
    #[error("cannot run {program}: {source}; install Debian's package {package}")]
    Missing {
        /// The program.
        program: &'static str,
        /// The Debian package that contains the program.
        package: &'static str,
        /// The error that the system call returned.
        source: io::Error,
    },
    /// A file cannot be read or written.
    #[error("cannot read or write {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error that the system call returned.
        source: io::Error,
    },
    /// The simulator ended before it accepted clients. Contains the last line of its log.
    #[error("ibsim rejects the net file: {0}")]
    Refused(String),
    /// A program did not end, or was not ready, within its time limit.
    #[error("{program} did not exit or become ready within {seconds} s")]
    Timeout {
        /// The program.
        program: &'static str,
        /// The time limit in seconds.
        seconds: u64,
    },
    /// A program ended before its task was done.
    #[error("{program} ended with {status}: {log}")]
    Ended {
        /// The program.
        program: &'static str,
        /// The program's exit status.
        status: ExitStatus,
        /// The program's output.
        log: String,
    },
    /// OpenSM has failed.
    #[error("opensm ended with {status}: {log}")]
    Failed {
        /// OpenSM's exit status.
        status: ExitStatus,
        /// The last lines of OpenSM's log.
        log: String,
    },
}

/// Parameters of a run of OpenSM.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Path of the net file that ibsim loads.
    pub net: &'a Path,
    /// Directory for the log and the dumps; it is created if it does not exist.
    pub directory: &'a Path,
    /// Name of the node on which OpenSM runs; `None` for the first CA of the net file.
    pub node: Option<&'a str>,
    /// Command-line arguments of OpenSM, such as `-R updn`.
    pub arguments: &'a [String],
    /// OpenSM's log flags: 0x43 writes dumps of the tables, 0x07 logs timestamps of the phases.
    pub log_flags: u8,
    /// Time limit for OpenSM.
    pub limit: Duration,
}

/// Duration and log of a run of OpenSM.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Time from the start of OpenSM to its end.
    pub elapsed: Duration,
    /// OpenSM's log.
    pub log: String,
}

impl Finished {
    /// Returns the routing engine that configured the switches, according to the log.
    #[must_use]
    pub fn engine(&self) -> Option<&str> {
        let line = self.log.lines().find(|line| line.contains(" tables configured on all"))?;
        line.split(" tables configured").next()?.rsplit(' ').next()
    }

    /// Returns the time from `building routing` to `tables configured` in the log. OpenSM logs both lines if log flag
    /// 0x04 is set.
    #[must_use]
    pub fn building(&self) -> Option<Duration> {
        between(&self.log, "building routing with", ROUTED)
    }
}

/// The text that OpenSM logs when it has computed the switches' tables.
pub(crate) const ROUTED: &str = " tables configured on all";

/// Returns the time between two lines of a log: the first line that contains `start`, and the first that contains
/// `end`.
pub(crate) fn between(log: &str, start: &str, end: &str) -> Option<Duration> {
    let at = |what: &str| log.lines().find(|line| line.contains(what)).and_then(timestamp);
    let (start, end) = (at(start)?, at(end)?);
    // The parsed times have no date. If `end` seems to precede `start`, midnight has passed between the two lines.
    Some(end.checked_sub(start).unwrap_or(end + Duration::from_secs(86_400) - start))
}

/// Parses the time of a line of the log: `Nov 20 23:45:53 066357 [572BC740] 0x43 -> …`.
fn timestamp(line: &str) -> Option<Duration> {
    let mut words = line.split_ascii_whitespace().skip(2);
    let clock: Vec<u64> = words.next()?.split(':').filter_map(|word| word.parse().ok()).collect();
    let micros: u64 = words.next()?.parse().ok()?;
    let [hours, minutes, seconds] = clock[..] else { return None };
    Some(Duration::from_secs(hours * 3600 + minutes * 60 + seconds) + Duration::from_micros(micros))
}

/// Kills the process when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // An error is ignored, because the process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Run<'_> {
    /// Starts ibsim, runs OpenSM until `SUBNET UP`, and ends ibsim.
    ///
    /// # Errors
    /// See [`PeerError`].
    pub fn run(&self) -> Result<Finished, PeerError> {
        let file = |path: &Path| {
            let path = path.to_owned();
            move |source| PeerError::File { path, source }
        };
        fs::create_dir_all(self.directory).map_err(file(self.directory))?;
        let directory = self.directory.canonicalize().map_err(file(self.directory))?;
        let net = self.net.canonicalize().map_err(file(self.net))?;
        let text = fs::read_to_string(&net).map_err(file(&net))?;
        let socket = socket_name(&directory);
        let _simulator = start_ibsim(&net, &text, &directory, &socket)?;

        let log_path = directory.join("osm.log");
        let mut command = Command::new("opensm");
        command
            .args(["-o", "--maxsmps", "32", "-f"])
            .arg(&log_path)
            .arg("-D")
            .arg(format!("{:#x}", self.log_flags))
            .args(self.arguments)
            .current_dir(&directory)
            .env("LD_PRELOAD", umad2sim()?)
            .env("IBSIM_SOCKNAME", &socket)
            .env("OSM_TMP_DIR", &directory)
            .env("OSM_CACHE_DIR", &directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(host) = self.node.or_else(|| first_adapter(&text)) {
            command.env("SIM_HOST", host);
        }
        let start = Instant::now();
        let child = command.spawn().map_err(|source| PeerError::Missing {
            program: "opensm",
            package: "opensm",
            source,
        })?;
        let status = wait(Running(child), "opensm", self.limit)?;
        let elapsed = start.elapsed();
        let log = fs::read(&log_path).map_err(file(&log_path))?;
        let log = String::from_utf8_lossy(&log).into_owned();
        if !status.success() {
            let tail: Vec<&str> = log.lines().rev().take(5).collect();
            let log = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
            return Err(PeerError::Failed { status, log });
        }
        Ok(Finished { elapsed, log })
    }
}

/// Returns a name for ibsim's sockets that no other run uses.
fn socket_name(directory: &Path) -> String {
    let name: String = directory
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(40)
        .collect();
    format!("ibfabric{}{name}", std::process::id())
}

fn start_ibsim(
    net: &Path,
    text: &str,
    directory: &Path,
    socket: &str,
) -> Result<Running, PeerError> {
    let log_path = directory.join("ibsim.log");
    let log = fs::File::create(&log_path)
        .map_err(|source| PeerError::File { path: log_path.clone(), source })?;
    let errors =
        log.try_clone().map_err(|source| PeerError::File { path: log_path.clone(), source })?;
    let child = Command::new("ibsim")
        .args(["-s", "-n"])
        .args(ibsim_limits(text))
        .arg(net)
        .current_dir(directory)
        .env("IBSIM_SOCKNAME", socket)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn()
        .map_err(|source| PeerError::Missing {
            program: "ibsim",
            package: "ibsim-utils",
            source,
        })?;
    let mut running = Running(child);
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        if is_listening(socket) {
            return Ok(running);
        }
        if !matches!(running.0.try_wait(), Ok(None)) {
            let log = fs::read_to_string(&log_path).unwrap_or_default();
            let last = log.lines().last().unwrap_or("OpenSM ended without output").to_owned();
            return Err(PeerError::Refused(last));
        }
        if Instant::now() > limit {
            return Err(PeerError::Timeout { program: "ibsim", seconds: 60 });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns ibsim options with table sizes that suffice for the given net file.
pub(crate) fn ibsim_limits(text: &str) -> [String; 8] {
    let count = |starts: &[char]| text.lines().filter(|line| line.starts_with(starts)).count();
    let (nodes, switches) = (count(&['S', 'H', 'C', 'R']), count(&['S']));
    let ports = text
        .lines()
        .filter(|line| line.starts_with(['S', 'H', 'C', 'R']))
        .filter_map(|line| line.split_ascii_whitespace().nth(1)?.parse::<usize>().ok())
        .map(|ports| ports + 1)
        .sum::<usize>();
    let [nodes, switches, ports] = [nodes + 16, switches + 16, ports + 64].map(|n| n.to_string());
    let option = str::to_owned;
    [
        option("-N"),
        nodes,
        option("-S"),
        switches,
        option("-P"),
        ports,
        option("-L"),
        option("49151"),
    ]
}

/// Returns true if a simulator with the given socket name accepts clients.
pub(crate) fn is_listening(socket: &str) -> bool {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let name = format!("@{socket}:ctl");
    // The kernel prints the terminating NUL of a socket's name as another `@`.
    sockets
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().last())
        .any(|path| path.trim_end_matches('@') == name)
}

/// Returns the path of the library that converts umad calls to messages of ibsim.
///
/// # Errors
/// Fails if the library is not installed.
pub fn umad2sim() -> Result<PathBuf, PeerError> {
    let directories = ["/usr/lib", "/usr/lib64", "/usr/local/lib"];
    let mut candidates = Vec::new();
    for directory in directories {
        candidates.push(Path::new(directory).join("umad2sim/libumad2sim.so"));
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            candidates.push(entry.path().join("umad2sim/libumad2sim.so"));
        }
    }
    candidates.into_iter().find(|path| path.exists()).ok_or(PeerError::Missing {
        program: "libumad2sim.so",
        package: "libumad2sim0",
        source: io::ErrorKind::NotFound.into(),
    })
}

/// Returns the name of the first CA in a net file.
#[must_use]
pub fn first_adapter(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("Hca") || line.starts_with("Ca"))?;
    line.split('"').nth(1)
}

fn wait(
    mut running: Running,
    program: &'static str,
    limit: Duration,
) -> Result<ExitStatus, PeerError> {
    let end = Instant::now() + limit;
    loop {
        match running.0.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) => return Err(PeerError::Timeout { program, seconds: limit.as_secs() }),
            Err(source) => return Err(PeerError::File { path: program.into(), source }),
        }
    }
}
