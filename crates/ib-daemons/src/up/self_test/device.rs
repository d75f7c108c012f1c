//! The device check. It writes the whole block device, reads it back and compares the data. It cuts the link of the
//! first path during the writes, and the link of the second path during the reads.

use std::time::Duration;

use ib_block::Geometry;
use ib_rtrs::{Client, PathState};
use ib_sim::Sim;
use ib_topology::PortId;
use ib_types::Instant;

use super::super::pass::{Content, Pass, Task};
use super::results::{CheckResult, CutResult, DeviceResult, Stall};
use crate::up::hosts::BlockPair;

/// If there is no progress for this time, the check fails. The time exceeds the timeouts of requests and of reconnects.
const TIMEOUT: Duration = Duration::from_secs(45);

/// The check of the block device.
pub(super) struct DeviceCheck {
    size: u64,
    content: Content,
    writes: Pass,
    reads: Pass,
    /// State of the first path's link, which is cut during the writes, and of the second path's link, which is cut
    /// during the reads.
    cuts: [Cut; 2],
    /// The progress counter of the check, and the time at which it last grew. The counter is the number of completed
    /// bytes plus the number of failed requests. Completion of all writes adds 1.
    progress: (u64, Instant),
}

/// State of one path's link.
enum Cut {
    /// The link was not cut yet, or there is only one path.
    No,
    /// The link at `port` is cut. When it was cut, `outstanding` requests were outstanding, and `before` requests had
    /// already failed over.
    Yes { port: PortId, outstanding: usize, before: u64 },
    /// The link is restored. When it was cut, `outstanding` requests were outstanding. While it was cut, `again`
    /// requests failed over.
    Restored { outstanding: usize, again: u64 },
    /// The link could not be cut.
    Not(String),
}

impl DeviceCheck {
    /// Creates a check of the whole device. If `pair` is `None`, the check has no requests.
    pub(super) fn new(pair: Option<&BlockPair>, now: Instant) -> Self {
        let size = pair.and_then(BlockPair::geometry).map_or(0, |&Geometry { size, .. }| size);
        let [writes, reads] = [Task::Write, Task::Compare].map(|task| Pass::new(task, 0..size));
        let (content, cuts) = (Content::Pattern(0), [Cut::No, Cut::No]);
        Self { size, content, writes, reads, cuts, progress: (0, now) }
    }

    /// Submits requests and handles their completions; returns true if there were any. Cuts the link of the first path
    /// after a quarter of the writes, and the link of the second path after a quarter of the reads.
    pub(super) fn work(
        &mut self,
        pair: &mut BlockPair,
        sim: &mut Sim,
        ends: &[Vec<PortId>; 2],
    ) -> bool {
        let now = sim.now();
        // Links are cut only at hosts of the server. The SM runs at the first host of the client and remains connected.
        let ports = if let [one, two] = ends[1][..] { Some([one, two]) } else { None };
        let moved = if self.writes.is_over() {
            self.restore(0, pair.client(), sim);
            let is_back = ports.is_none() || connected(pair.client()) > 1;
            let is_time = self.reads.next() >= self.size / 4;
            if let (Some(ports), true, Cut::No) = (ports, is_time, &self.cuts[1]) {
                self.cuts[1] = cut(pair.client(), sim, ports[1], self.reads.outstanding());
            }
            // The reads start only when both paths are connected again.
            let has_begun = self.reads.next() > 0;
            (is_back || has_begun) && self.reads.work(pair, &mut self.content)
        } else {
            let is_time = self.writes.next() >= self.size / 4;
            if let (Some(ports), true, Cut::No) = (ports, is_time, &self.cuts[0]) {
                self.cuts[0] = cut(pair.client(), sim, ports[0], self.writes.outstanding());
            }
            self.writes.work(pair, &mut self.content)
        };
        let progress = [&self.writes, &self.reads].map(|pass| pass.done + pass.errors);
        let progress = progress.iter().sum::<u64>() + u64::from(self.writes.is_over());
        if progress > self.progress.0 {
            self.progress = (progress, now);
        }
        moved
    }

    /// Restores the link of a path if it is cut.
    fn restore(&mut self, number: usize, client: &Client, sim: &mut Sim) {
        if let Cut::Yes { port, outstanding, before } = self.cuts[number] {
            // A failure is ignored, since a user may have restored the link already.
            command(sim, "relink", port).ok();
            self.cuts[number] = Cut::Restored { outstanding, again: failed_over(client) - before };
        }
    }

    /// Returns the number of bytes that were written and read so far, and the number of all bytes to write and read.
    pub(super) const fn progress(&self) -> (u64, u64) {
        (self.writes.done + self.reads.done, 2 * self.size)
    }

    pub(super) const fn is_over(&self) -> bool {
        self.writes.is_over() && self.reads.is_over()
    }

    /// Returns the time at which the check fails if there is no further progress.
    pub(super) fn deadline(&self) -> Instant {
        self.progress.1 + TIMEOUT
    }

    /// Restores the links that are cut, and returns the result of the check.
    pub(super) fn finish(&mut self, pair: &BlockPair, sim: &mut Sim) -> CheckResult {
        let client = pair.client();
        [0, 1].into_iter().for_each(|number| self.restore(number, client, sim));
        // If each pass has fewer than 4 requests, it is no error that a path carried no reads or no writes.
        let has_many = self.writes.requests() >= 4;
        let traffic = client.paths().filter_map(|path| client.stats(path)).map(|it| it.traffic);
        let idle_paths =
            has_many.then(|| traffic.filter(|it| it.reads == 0 || it.writes == 0).count());
        let cuts = match &self.cuts {
            [Cut::No, Cut::No] => Vec::new(),
            cuts => cuts.iter().map(Cut::result).collect(),
        };
        let stalled = (!self.is_over()).then(|| Stall {
            no_paths: self.writes.is_over() && self.reads.next() == 0,
            seconds: TIMEOUT.as_secs(),
            moved: self.writes.done + self.reads.done,
        });
        CheckResult::Device(DeviceResult {
            bytes: self.size,
            paths: pair.ports()[0].len(),
            wrong: self.reads.wrong,
            errors: self.writes.errors + self.reads.errors,
            idle_paths,
            cuts,
            stalled,
        })
    }
}

impl Cut {
    fn result(&self) -> CutResult {
        match self {
            Self::Restored { outstanding, again } => {
                CutResult::Cut { outstanding: *outstanding, failed_over: *again }
            }
            Self::Not(reason) => CutResult::NotCut { reason: reason.clone() },
            Self::No | Self::Yes { .. } => {
                CutResult::NotCut { reason: "the pass completed before the cut".to_owned() }
            }
        }
    }
}

/// Returns the number of connected paths.
fn connected(client: &Client) -> usize {
    let is_connected = |&path: &_| client.path_state(path) == Some(PathState::Connected);
    client.paths().filter(is_connected).count()
}

/// Returns the number of requests that were repeated on another path.
fn failed_over(client: &Client) -> u64 {
    client.paths().filter_map(|path| client.stats(path)).map(|stats| stats.failed_over).sum()
}

/// Cuts the link of a port if both paths are connected.
fn cut(client: &Client, sim: &mut Sim, port: PortId, outstanding: usize) -> Cut {
    let connected = connected(client);
    if connected < 2 {
        return Cut::Not(format!("connected paths: {connected}, expected 2"));
    }
    match command(sim, "unlink", port) {
        Ok(()) => Cut::Yes { port, outstanding, before: failed_over(client) },
        Err(why) => Cut::Not(why),
    }
}

/// Runs a command of the simulator's console on a port; fails with the error message.
fn command(sim: &mut Sim, word: &str, port: PortId) -> Result<(), String> {
    let (node, number) = sim.place(port);
    let name = sim.node_name(node).replace('"', "\"\"");
    let command = format!("{word} \"{name}\"[{number}]").parse::<ib_sim::Command>();
    let command = command.map_err(|error| error.to_string())?;
    sim.run(&command).map_err(|error| error.to_string())
}
