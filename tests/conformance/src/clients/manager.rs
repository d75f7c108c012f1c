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
    /// The routing engines, as for OpenSM's option `-R`.
    pub engine: &'a str,
    /// The LMC.
    pub lmc: u8,
    /// OpenSM's log flags: 0x43 writes dumps of the tables, 0x03 does not.
    pub log_flags: u8,
    /// Maximum number of outstanding SMPs; the default of OpenSM is 4.
    pub window: u8,
    /// Time limit for the first bring-up.
    pub limit: Duration,
    /// Further command-line arguments of OpenSM, which override the arguments from the other fields.
    pub more: &'a [&'a str],
}

impl Default for Options<'_> {
    /// Returns options for minhop without dumps, with a time limit of a minute and at most 32 outstanding SMPs.
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

/// A running OpenSM, which is killed when dropped.
#[derive(Debug)]
pub struct Manager {
    group: Group,
    directory: PathBuf,
    /// Time from OpenSM's start to SUBNET UP; zero if SUBNET UP was not awaited.
    pub elapsed: Duration,
}

impl Manager {
    /// Starts OpenSM, and returns after SUBNET UP.
    ///
    /// OpenSM writes its log `osm.log` and its dumps to the directory, which must exist.
    ///
    /// # Errors
    /// Fails if OpenSM cannot be started, exits, or exceeds the time limit.
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
    /// Fails if OpenSM cannot be started.
    pub fn launch(seat: &Seat, directory: &Path, options: &Options<'_>) -> Result<Self, PeerError> {
        let log = directory.join("osm.log");
        let mut command = Group::bound("opensm");
        // -d2 flushes the log after each line. With -s 0, OpenSM sweeps only after traps.
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

    /// Returns the content of OpenSM's log.
    #[must_use]
    pub fn log(&self) -> String {
        let log = fs::read(self.directory.join("osm.log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Returns how long each phase of the first bring-up took: discovery, computation of the tables, and their
    /// programming.
    #[must_use]
    pub fn phases(&self) -> Option<[Duration; 3]> {
        let log = self.log();
        let marks = ["Entering DISCOVERING", "Entering MASTER", ROUTED, "SUBNET UP"];
        let phase = |at: usize| between(&log, marks[at], marks[at + 1]);
        Some([phase(0)?, phase(1)?, phase(2)?])
    }

    /// Terminates OpenSM with a signal. Returns true if OpenSM exits in time.
    pub fn stop(&mut self) -> bool {
        self.group.terminate();
        matches!(self.group.wait(Duration::from_secs(10)), Ok(Some(_)))
    }

    /// Returns true if OpenSM is still running.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.group.ended(), Ok(None))
    }

    /// Returns how often OpenSM has brought the subnet up.
    #[must_use]
    pub fn ups(&self) -> usize {
        self.log().matches("SUBNET UP").count()
    }

    /// Returns the routing engine that last configured the switches.
    #[must_use]
    pub fn engine(&self) -> String {
        let log = self.log();
        let mut configured = log.lines().rev().filter_map(|line| {
            let (before, _) = line.split_once(" tables configured on all")?;
            before.rsplit(' ').next()
        });
        configured.next().unwrap_or("none").to_owned()
    }

    /// Waits until OpenSM has brought the subnet up this many times, and has added nothing to its log for 0.4 s.
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

    /// Returns the content of a dump file.
    ///
    /// # Errors
    /// Fails if OpenSM has not written the file.
    pub fn dump(&self, name: &str) -> io::Result<String> {
        fs::read_to_string(self.directory.join(name))
    }

    fn tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }
}
