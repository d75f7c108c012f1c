//! The load generator of the block device. It writes the end of the device, reads it back and compares the data.
//!
//! The load generator first saves the content of the end of the device. Finally it restores and verifies this content.
//! NBD clients have priority: if one connects, the load generator restores the content and stops early.

use std::ops::Range;
use std::time::Duration;

use ib_storage::nbd::Backing;
use ib_types::Instant;
use serde::Serialize;

use super::pass::{Content, Pass, Task};

/// Maximum size in bytes of the part at the end of the device that the load generator overwrites.
const MOST: u64 = 8 << 20;

/// Delay between a failed attempt to restore the device's content and the next attempt.
const RETRY: Duration = Duration::from_secs(1);

/// Progress of a run of the load generator. The field names are JSON keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Progress {
    pub(super) running: bool,
    /// Total number of bytes that were written or read.
    pub(super) done: u64,
    /// Number of requests that failed or returned wrong data.
    pub(super) errors: u64,
}

/// The load generator, with its run if there is one.
#[derive(Debug, Default)]
pub(super) struct LoadGenerator {
    run: Option<Run>,
    progress: Progress,
}

/// A run of the load generator.
#[derive(Debug)]
struct Run {
    /// Byte range that the run uses, at the end of the device.
    part: Range<u64>,
    until: Instant,
    pass: Pass,
    stage: Stage,
    /// Content of `part` before the run.
    old: Content,
    /// Content that the run writes to `part`.
    new: Content,
    round: u64,
    /// After a failed attempt to restore the content, the run pauses until this time.
    retry_at: Instant,
}

/// The stage of a run. Each stage is one pass over [`Run::part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Reads the content into [`Run::old`].
    Saving,
    Writing,
    Comparing,
    /// Writes the saved content back.
    Restoring,
    Verifying,
}

impl LoadGenerator {
    /// Starts a run of the given duration on a device of `size` bytes. No other run may be active.
    pub(super) fn start(&mut self, now: Instant, size: u64, time: Duration) {
        let part = size.saturating_sub(MOST)..size;
        let old = Content::Bytes(part.start, vec![0; (part.end - part.start) as usize]);
        self.run = Some(Run {
            pass: Pass::new(Task::Save, part.clone()),
            part,
            until: now + time,
            stage: Stage::Saving,
            old,
            new: Content::Pattern(0),
            round: 0,
            retry_at: Instant::ZERO,
        });
        self.progress = Progress { running: true, ..Progress::default() };
    }

    pub(super) const fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Returns the progress so far.
    pub(super) fn progress(&self) -> Progress {
        let mut progress = self.progress;
        if let Some(run) = &self.run {
            progress.add(&run.pass);
        }
        progress
    }

    /// Returns the time at which [`LoadGenerator::work`] must be called to start the next pass.
    pub(super) fn due(&self) -> Option<Instant> {
        let is_fresh = |run: &Run| run.pass.outstanding() == 0;
        self.run.as_ref().filter(|run| is_fresh(run)).map(|run| run.retry_at)
    }

    /// Submits requests of the run and handles their completions; returns true if there were any. If `is_interrupted`
    /// is true, the run restores the content and stops.
    pub(super) fn work(
        &mut self,
        now: Instant,
        device: &mut impl Backing,
        is_interrupted: bool,
    ) -> bool {
        let Some(run) = &mut self.run else { return false };
        if is_interrupted || now >= run.until {
            run.until = now;
            // A pass that restores or verifies the content is not stopped.
            if matches!(run.stage, Stage::Writing | Stage::Comparing) {
                run.pass.stop();
            }
        }
        if now < run.retry_at {
            return false;
        }
        let content = match run.stage {
            Stage::Saving | Stage::Restoring | Stage::Verifying => &mut run.old,
            Stage::Writing | Stage::Comparing => &mut run.new,
        };
        let moved = run.pass.work(device, content);
        if !run.pass.is_over() {
            return moved;
        }
        self.progress.add(&run.pass);
        match run.next(now) {
            Some((stage, task)) => {
                run.stage = stage;
                run.pass = Pass::new(task, run.part.clone());
            }
            None => {
                self.run = None;
                self.progress.running = false;
            }
        }
        true
    }
}

impl Run {
    /// Returns the pass that follows the completed one; `None` if the run has ended.
    fn next(&mut self, now: Instant) -> Option<(Stage, Task)> {
        let is_late = now >= self.until;
        match self.stage {
            // Content that could not be saved cannot be restored, so nothing is written.
            Stage::Saving if self.pass.errors + self.pass.wrong > 0 || is_late => None,
            Stage::Saving => Some((Stage::Writing, Task::Write)),
            Stage::Writing | Stage::Comparing if is_late => Some((Stage::Restoring, Task::Write)),
            Stage::Writing => Some((Stage::Comparing, Task::Compare)),
            Stage::Comparing => {
                self.round += 1;
                self.new = Content::Pattern(self.round);
                Some((Stage::Writing, Task::Write))
            }
            // The saved content is user data, so the run retries until the content is restored.
            Stage::Restoring | Stage::Verifying if self.pass.errors + self.pass.wrong > 0 => {
                self.retry_at = now + RETRY;
                Some((Stage::Restoring, Task::Write))
            }
            Stage::Restoring => Some((Stage::Verifying, Task::Compare)),
            Stage::Verifying => None,
        }
    }
}

impl Progress {
    const fn add(&mut self, pass: &Pass) {
        self.done += pass.done;
        self.errors += pass.errors + pass.wrong;
    }
}

#[cfg(test)]
mod tests;
