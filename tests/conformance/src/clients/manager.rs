//! A real OpenSM that keeps running on the simulator.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use ib_types::Guid;

use super::process::Group;
use super::program::Seat;
use crate::opensm::{PeerError, ROUTED, between};

/// Options of OpenSM.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The engines, as for `-R`.
    pub engine: &'a str,
    /// The LMC.
    pub lmc: u8,
    /// The log flags: 0x43 with dumps of the tables, 0x03 without them.
    pub log_flags: u8,
    /// Maximum number of outstanding SMPs; the default of OpenSM is 4.
    pub window: u8,
    /// Time limit for the first bring-up.
    pub limit: Duration,
    /// Further arguments, which override the fields above.
    pub more: &'a [&'a str],
}

impl Default for Options<'_> {
    /// minhop without dumps, a time limit of a minute, and the number of outstanding SMPs of all runs.
    fn default() -> Self {
        Self {
            engine: "minhop",
            lmc: 0,
            log_flags: 0x03,
            window: 32,
            limit: Duration::from_secs(60),
            more: &[],
        }
    }
}

/// A running OpenSM; it is killed when dropped.
#[derive(Debug)]
pub struct Manager {
    group: Group,
    directory: PathBuf,
    /// Time from its start to SUBNET UP; zero if SUBNET UP was not awaited.
    pub elapsed: Duration,
}

impl Manager {
    /// Starts OpenSM, and returns after SUBNET UP.
    ///
    /// Its log `osm.log` and its dumps are in the directory, which must exist.
    ///
    /// # Errors
    /// Fails if it cannot be started, ends, or exceeds the time limit.
    pub fn start(seat: &Seat, directory: &Path, options: &Options<'_>) -> Result<Self, PeerError> {
        let start = Instant::now();
        let mut manager = Self::launch(seat, directory, options)?;
        let end = start + options.limit;
        while manager.ups() == 0 {
            if let Ok(Some(status)) = manager.group.ended() {
                let log = manager.tail();
                return Err(PeerError::Failed { status, log });
            }
            if Instant::now() > end {
                let seconds = options.limit.as_secs();
                return Err(PeerError::Timeout { program: "opensm", seconds });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        manager.elapsed = start.elapsed();
        Ok(manager)
    }

    /// Starts OpenSM, and returns immediately, for example for a standby SM.
    ///
    /// # Errors
    /// Fails if it cannot be started.
    pub fn launch(seat: &Seat, directory: &Path, options: &Options<'_>) -> Result<Self, PeerError> {
        let log = directory.join("osm.log");
        let mut command = Group::bound("opensm");
        // -d2 flushes the log after each line; -s 0 restricts sweeps to traps.
        command
            .args(["-R", options.engine, "-s", "0", "-d2"])
            .args(["--maxsmps", &options.window.to_string()])
            .args([
                "-l",
                &options.lmc.to_string(),
                "-D",
                &format!("{:#x}", options.log_flags),
                "-f",
            ])
            .arg(&log)
            .args(options.more)
            .current_dir(directory)
            .env("OSM_TMP_DIR", directory)
            .env("OSM_CACHE_DIR", directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        seat.dress(&mut command, None);
        let group = Group::start(&mut command).map_err(|source| PeerError::Missing {
            program: "opensm",
            package: "opensm",
            source,
        })?;
        Ok(Self { group, directory: directory.to_owned(), elapsed: Duration::ZERO })
    }

    /// Returns the log so far.
    #[must_use]
    pub fn log(&self) -> String {
        let log = fs::read(self.directory.join("osm.log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Returns the times of the first bring-up: discovery, computation of the tables, and their programming.
    #[must_use]
    pub fn phases(&self) -> Option<[Duration; 3]> {
        let log = self.log();
        let marks = ["Entering DISCOVERING", "Entering MASTER", ROUTED, "SUBNET UP"];
        let phase = |at: usize| between(&log, marks[at], marks[at + 1]);
        Some([phase(0)?, phase(1)?, phase(2)?])
    }

    /// Ends it with a signal; returns true if it ends.
    pub fn stop(&mut self) -> bool {
        self.group.terminate();
        matches!(self.group.wait(Duration::from_secs(10)), Ok(Some(_)))
    }

    /// Returns true if it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.group.ended(), Ok(None))
    }

    /// Returns the number of bring-ups.
    #[must_use]
    pub fn ups(&self) -> usize {
        self.log().matches("SUBNET UP").count()
    }

    /// Returns the engine that last configured the switches.
    #[must_use]
    pub fn engine(&self) -> String {
        let log = self.log();
        let mut configured = log.lines().rev().filter_map(|line| {
            let (before, _) = line.split_once(" tables configured on all")?;
            before.rsplit(' ').next()
        });
        configured.next().unwrap_or("none").to_owned()
    }

    /// Waits for a number of bring-ups, and until no line was added to the log for some time.
    #[must_use]
    pub fn settles(&self, ups: usize, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let (mut size, mut since) = (0, Instant::now());
        loop {
            let log = self.log();
            if log.len() != size {
                (size, since) = (log.len(), Instant::now());
            }
            let quiet = since.elapsed() > Duration::from_millis(400);
            if quiet && log.matches("SUBNET UP").count() >= ups {
                return true;
            }
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the base LID of every port GUID.
    ///
    /// # Errors
    /// Fails if OpenSM has not written guid2lid.
    pub fn lids(&self) -> io::Result<BTreeMap<Guid, u16>> {
        let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
        let text = fs::read_to_string(self.directory.join("guid2lid"))?;
        let lines = text.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let guid = hex(words.next()?)?;
            Some((Guid(guid), u16::try_from(hex(words.next()?)?).ok()?))
        });
        Ok(lines.collect())
    }

    /// Returns a dump file.
    ///
    /// # Errors
    /// Fails if OpenSM has not written it.
    pub fn dump(&self, name: &str) -> io::Result<String> {
        fs::read_to_string(self.directory.join(name))
    }

    fn tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }
}
