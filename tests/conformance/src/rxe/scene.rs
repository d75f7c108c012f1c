//! A guest, ibfabric on the machine that runs the guest, and the checks.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use interop::{Finished, Guest, RunError, Running};

use super::Link;
use crate::sm::scene::Checked;

/// The guest, the link and the program `ibfabric`, which all cases of a link use.
#[derive(Clone, Copy, Debug)]
pub struct Gear<'a> {
    /// The guest.
    pub guest: &'a Guest,
    /// The link to the guest.
    pub link: Link,
    /// Path of the program ibfabric; `None` if no case runs it.
    pub ibfabric: Option<&'a Path>,
    /// True in a complete run, in which cases transfer more data and wait longer.
    pub whole: bool,
}

/// The guest and the link that a case uses, and the results that the case records.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The guest.
    pub guest: &'a Guest,
    /// The link to the guest.
    pub link: Link,
    /// Results of the checks.
    pub checked: Checked,
    /// The executed commands, with their outputs.
    pub transcript: String,
    /// True if the case transfers as much data, and waits as long, as in a complete run.
    pub whole: bool,
    ibfabric: Option<&'a Path>,
    before: BTreeMap<String, u64>,
}

/// Time limit of a command for [`Scene::succeeds`] and similar functions.
pub const LIMIT: Duration = Duration::from_secs(60);

impl<'a> Scene<'a> {
    /// Creates the scene of a case.
    ///
    /// # Errors
    /// Fails if the guest's counters cannot be read.
    pub fn open(gear: &Gear<'a>) -> Result<Self, RunError> {
        let Gear { guest, link, ibfabric, whole } = *gear;
        let before = guest.counters()?;
        let (checked, transcript) = (Checked::default(), String::new());
        Ok(Self { guest, link, checked, transcript, whole, ibfabric, before })
    }

    /// Starts ibfabric on the machine that runs the guest.
    ///
    /// # Errors
    /// Fails if ibfabric cannot be started.
    ///
    /// # Panics
    /// Panics if the case was not created by [`super::Case::with_ibfabric`].
    pub fn ours(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Running, RunError> {
        let ibfabric = self.ibfabric.expect("a case with ibfabric has the path of ibfabric");
        let mut command = Command::new(ibfabric);
        // Soft RoCE sends no UDP checksums.
        self.guest.start_beside(command.args(arguments).arg("--allow-zero-checksum"))
    }

    /// Starts an unmodified program with `ibfabric run` on the machine that runs the guest. The program has an HCA at
    /// the IP address `own`. If `allow` is true, the HCA accepts packets with a UDP checksum of zero.
    ///
    /// # Errors
    /// Fails if ibfabric cannot be started.
    ///
    /// # Panics
    /// Panics if the case was not created by [`super::Case::with_ibfabric`].
    pub fn unmodified(&self, own: &str, allow: bool, words: &str) -> Result<Running, RunError> {
        let ibfabric = self.ibfabric.expect("a case with ibfabric has the path of ibfabric");
        let mut command = Command::new(ibfabric);
        command.args(["run", "--roce", own]).arg(if allow {
            "--allow-zero-checksum"
        } else {
            "--exclusive"
        });
        self.guest.start_beside(command.arg("--").args(words.split(' ')))
    }

    /// Waits for a command, and checks that its exit status is 0.
    ///
    /// # Errors
    /// Fails if the command does not end within the time limit.
    pub fn succeeds(&mut self, running: Running) -> Result<Finished, RunError> {
        let finished = self.ends(running, LIMIT)?;
        self.checked.check(finished.success(), || describe(&finished));
        Ok(finished)
    }

    /// Waits for a command, and checks that its exit status is not 0.
    ///
    /// # Errors
    /// Fails if the command does not end within the time limit.
    pub fn fails(&mut self, running: Running) -> Result<Finished, RunError> {
        let finished = self.ends(running, LIMIT)?;
        self.checked
            .check(!finished.success(), || format!("expected a failure: {}", describe(&finished)));
        Ok(finished)
    }

    /// Waits for a command to end, with any exit status.
    ///
    /// # Errors
    /// Fails if the command does not end within the time limit.
    pub fn ends(&mut self, running: Running, limit: Duration) -> Result<Finished, RunError> {
        let ended = running.wait(limit);
        let entry = match &ended {
            Ok(finished) => describe(finished),
            Err(error) => error.to_string(),
        };
        let _ = writeln!(self.transcript, "{entry}");
        ended
    }

    /// Checks how many lines of the output contain the given text.
    pub fn expect_lines(&mut self, finished: &Finished, text: &str, times: usize) {
        let found = finished.output.lines().filter(|line| line.contains(text)).count();
        self.checked.check(found == times, || {
            format!("expected {times} lines with {text:?}, found {found}: {}", describe(finished))
        });
    }

    /// Checks by how much a counter of the guest's rxe device has increased since the start of the case.
    ///
    /// # Errors
    /// Fails if the counters cannot be read.
    pub fn gained(&mut self, counter: &str, expected: RangeInclusive<u64>) -> Result<(), RunError> {
        let now = self.guest.counters()?;
        let difference = || Some(now.get(counter)?.saturating_sub(*self.before.get(counter)?));
        let gained = difference();
        let _ = writeln!(self.transcript, "{counter} has grown by {gained:?}");
        self.checked.check(
            gained.is_some_and(|gained| expected.contains(&gained)),
            || match gained {
                Some(gained) => format!("{counter} has grown by {gained}, expected {expected:?}"),
                None => format!("rxe has no counter {counter}"),
            },
        );
        Ok(())
    }

    /// Checks that neither the guest nor its peer has retransmitted packets.
    ///
    /// # Errors
    /// Fails if the counters cannot be read.
    pub fn repeats_nothing(&mut self) -> Result<(), RunError> {
        ["retry_exceeded_err", "completer_retry_err", "duplicate_request", "rcvd_seq_err"]
            .into_iter()
            .try_for_each(|counter| self.gained(counter, 0..=0))
    }
}

fn describe(finished: &Finished) -> String {
    let Finished { command, status, output, elapsed } = finished;
    let seconds = elapsed.as_secs_f64();
    format!(
        "`{command}` ended with status {status} after {seconds:.1} s, with the output:\n{output}"
    )
}
