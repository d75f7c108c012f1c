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

/// How OpenSM is started.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The engines, as `-R` takes them.
    pub engine: &'a str,
    /// The LMC.
    pub lmc: u8,
    /// The log flags: 0x43 with dumps of the tables, 0x03 without.
    pub log_flags: u8,
    /// How many SMPs it has on their way at once; its own default is 4.
    pub window: u8,
    /// How long the first bring-up may take.
    pub limit: Duration,
    /// Further arguments; what they say counts more than the fields before.
    pub more: &'a [&'a str],
}

impl Default for Options<'_> {
    /// Minhop without dumps, a minute, and the window that all runs have.
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
    /// The time from its start to SUBNET UP; zero while that was not waited for.
    pub elapsed: Duration,
}

impl Manager {
    /// Starts OpenSM at a seat and returns when the log says SUBNET UP.
    ///
    /// Its log `osm.log` and its dumps are in the directory, which must exist.
    ///
    /// # Errors
    /// Fails when it cannot be run, ends, or takes too long.
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

    /// Starts OpenSM at a seat and returns at once, for one that may have to stand by.
    ///
    /// # Errors
    /// Fails when it cannot be run.
    pub fn launch(seat: &Seat, directory: &Path, options: &Options<'_>) -> Result<Self, PeerError> {
        let log = directory.join("osm.log");
        let mut command = Group::bound("opensm");
        // -d2 writes every line of the log at once; -s 0 leaves sweeps to traps.
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

    /// Returns the times of the first bring-up: of discovery, of its own computation of the tables, and
    /// of programming.
    #[must_use]
    pub fn phases(&self) -> Option<[Duration; 3]> {
        let log = self.log();
        let marks = ["Entering DISCOVERING", "Entering MASTER", ROUTED, "SUBNET UP"];
        let phase = |at: usize| between(&log, marks[at], marks[at + 1]);
        Some([phase(0)?, phase(1)?, phase(2)?])
    }

    /// Asks it to end, and says whether it does.
    pub fn stop(&mut self) -> bool {
        self.group.terminate();
        matches!(self.group.wait(Duration::from_secs(10)), Ok(Some(_)))
    }

    /// Says whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.group.ended(), Ok(None))
    }

    /// Returns how often the subnet was brought up.
    #[must_use]
    pub fn ups(&self) -> usize {
        self.log().matches("SUBNET UP").count()
    }

    /// Returns the engine that configured the switches last.
    #[must_use]
    pub fn engine(&self) -> String {
        let log = self.log();
        let mut configured = log.lines().rev().filter_map(|line| {
            let (before, _) = line.split_once(" tables configured on all")?;
            before.rsplit(' ').next()
        });
        configured.next().unwrap_or("none").to_owned()
    }

    /// Waits until the subnet was brought up that often and the log has said nothing for a while.
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
    /// Fails when OpenSM wrote no guid2lid.
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
    /// Fails when OpenSM wrote none.
    pub fn dump(&self, name: &str) -> io::Result<String> {
        fs::read_to_string(self.directory.join(name))
    }

    fn tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }
}
