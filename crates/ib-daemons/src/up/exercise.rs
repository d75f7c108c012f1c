//! Something for the device to do, so that there is traffic to see: a part of it is written, read and compared.
//!
//! What was there before is read first and put back at the end, which is compared, too. Meanwhile no program uses the
//! device: when one comes, the exercise ends early.

use std::ops::Range;
use std::time::Duration;

use ib_storage::nbd::Backing;
use ib_types::Instant;
use serde::Serialize;

use super::pass::{Content, Pass, Task};

/// How much of the device is used at most: the end of it.
const MOST: u64 = 8 << 20;

/// How long is waited after what was there before could not be put back.
const AGAIN: Duration = Duration::from_secs(1);

/// What has been done; the names are JSON keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Progress {
    pub(super) running: bool,
    /// Bytes that were written or read.
    pub(super) done: u64,
    /// Requests that failed or read something wrong.
    pub(super) errors: u64,
}

/// The exercise, which runs or does not.
#[derive(Debug, Default)]
pub(super) struct Exercise {
    run: Option<Run>,
    progress: Progress,
}

/// One that runs.
#[derive(Debug)]
struct Run {
    part: Range<u64>,
    until: Instant,
    pass: Pass,
    stage: Stage,
    /// What was there before.
    old: Content,
    /// What is there meanwhile.
    new: Content,
    round: u64,
    /// Until when nothing is done, after what could not be put back.
    rests: Instant,
}

/// What a pass is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// What is there is kept.
    Keeping,
    Writing,
    Comparing,
    /// What was there is written again, and compared.
    PuttingBack,
    Checking,
}

impl Exercise {
    /// Starts one on a device of a size; it must not run.
    pub(super) fn start(&mut self, now: Instant, size: u64, time: Duration) {
        let part = size.saturating_sub(MOST)..size;
        let old = Content::Bytes(part.start, vec![0; (part.end - part.start) as usize]);
        self.run = Some(Run {
            pass: Pass::new(Task::Keep, part.clone()),
            part,
            until: now + time,
            stage: Stage::Keeping,
            old,
            new: Content::Pattern(0),
            round: 0,
            rests: Instant::ZERO,
        });
        self.progress = Progress { running: true, ..Progress::default() };
    }

    pub(super) const fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Returns what has been done by now.
    pub(super) fn progress(&self) -> Progress {
        let mut progress = self.progress;
        if let Some(run) = &self.run {
            progress.add(&run.pass);
        }
        progress
    }

    /// Returns when there is something to do although nothing comes: at the beginning of a pass.
    pub(super) fn due(&self) -> Option<Instant> {
        let is_fresh = |run: &Run| run.pass.under_way() == 0;
        self.run.as_ref().filter(|run| is_fresh(run)).map(|run| run.rests)
    }

    /// Goes on; with somebody who wants the device it comes to its end. Returns whether there was anything.
    pub(super) fn work(
        &mut self,
        now: Instant,
        device: &mut impl Backing,
        is_wanted: bool,
    ) -> bool {
        let Some(run) = &mut self.run else { return false };
        if is_wanted || now >= run.until {
            run.until = now;
            // What has begun to be put back is put back.
            if matches!(run.stage, Stage::Writing | Stage::Comparing) {
                run.pass.stop();
            }
        }
        if now < run.rests {
            return false;
        }
        let content = match run.stage {
            Stage::Keeping | Stage::PuttingBack | Stage::Checking => &mut run.old,
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
    /// Returns what comes after the pass that is over.
    fn next(&mut self, now: Instant) -> Option<(Stage, Task)> {
        let is_late = now >= self.until;
        match self.stage {
            // What could not be read cannot be put back: nothing is written.
            Stage::Keeping if self.pass.errors + self.pass.wrong > 0 || is_late => None,
            Stage::Keeping => Some((Stage::Writing, Task::Write)),
            Stage::Writing | Stage::Comparing if is_late => Some((Stage::PuttingBack, Task::Write)),
            Stage::Writing => Some((Stage::Comparing, Task::Compare)),
            Stage::Comparing => {
                self.round += 1;
                self.new = Content::Pattern(self.round);
                Some((Stage::Writing, Task::Write))
            }
            // What was there is somebody's: it is put back until it is there.
            Stage::PuttingBack | Stage::Checking if self.pass.errors + self.pass.wrong > 0 => {
                self.rests = now + AGAIN;
                Some((Stage::PuttingBack, Task::Write))
            }
            Stage::PuttingBack => Some((Stage::Checking, Task::Compare)),
            Stage::Checking => None,
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
