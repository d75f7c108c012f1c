//! `ibfabric sm` as a process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::clients::process::Group;
use crate::clients::program::Seat;
use crate::opensm::PeerError;

/// Options of `ibfabric sm`.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The routing engines, as for `--engine`.
    pub engine: &'a str,
    /// The LMC.
    pub lmc: u8,
    /// The SM priority.
    pub priority: u8,
    /// Further arguments.
    pub more: &'a [&'a str],
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { engine: "minhop", lmc: 0, priority: 0, more: &[] }
    }
}

/// A running `ibfabric sm`, which is killed when dropped.
#[derive(Debug)]
pub struct Ours {
    group: Group,
    directory: PathBuf,
}

const LINE: &str = "SUBNET UP";

impl Ours {
    /// Starts `ibfabric sm`, and returns immediately.
    ///
    /// The SM writes its output to `sm.out` and `sm.err` in the directory, which must exist.
    ///
    /// # Errors
    /// Fails if `ibfabric sm` cannot be started.
    pub fn launch(
        binary: &Path,
        seat: &Seat,
        directory: &Path,
        options: &Options<'_>,
    ) -> Result<Self, PeerError> {
        let file = |name: &str| {
            let path = directory.join(name);
            fs::File::create(&path).map_err(|source| PeerError::File { path, source })
        };
        let mut command = Group::bound(binary);
        command
            .arg("sm")
            .arg(format!("--attach={}", seat.socket))
            .args(["--engine", options.engine])
            .args(["-l", &options.lmc.to_string(), "-p", &options.priority.to_string()])
            .args(options.more)
            .current_dir(directory)
            .env("SIM_HOST", &seat.node)
            .stdin(Stdio::null())
            .stdout(file("sm.out")?)
            .stderr(file("sm.err")?);
        let group = Group::start(&mut command).map_err(|source| PeerError::Missing {
            program: "ibfabric",
            package: "none",
            source,
        })?;
        Ok(Self { group, directory: directory.to_owned() })
    }

    /// Waits until `ibfabric sm` has printed SUBNET UP.
    ///
    /// # Errors
    /// Fails if `ibfabric sm` ends or exceeds the time limit.
    pub fn comes_up(&mut self, limit: Duration) -> Result<(), PeerError> {
        let end = Instant::now() + limit;
        while self.ups() == 0 {
            if let Ok(Some(status)) = self.group.ended() {
                return Err(PeerError::Ended {
                    program: "ibfabric sm",
                    status,
                    log: self.output(),
                });
            }
            if Instant::now() > end {
                let seconds = limit.as_secs();
                return Err(PeerError::Timeout { program: "ibfabric sm", seconds });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Returns how often `ibfabric sm` has brought the subnet up.
    #[must_use]
    pub fn ups(&self) -> usize {
        self.read("sm.out").lines().filter(|line| line.starts_with(LINE)).count()
    }

    /// Returns the engine that last configured the switches.
    #[must_use]
    pub fn engine(&self) -> String {
        let text = self.read("sm.out");
        let line = text.lines().rev().find(|line| line.starts_with(LINE)).unwrap_or_default();
        let engine = line.split_once(" routed with ").and_then(|(_, rest)| rest.split(' ').next());
        engine.unwrap_or("none").to_owned()
    }

    /// Returns what `ibfabric sm` has printed.
    #[must_use]
    pub fn output(&self) -> String {
        self.read("sm.err") + &self.read("sm.out")
    }

    /// Returns true if `ibfabric sm` is still running.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.group.ended(), Ok(None))
    }

    fn read(&self, name: &str) -> String {
        let text = fs::read(self.directory.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }
}
