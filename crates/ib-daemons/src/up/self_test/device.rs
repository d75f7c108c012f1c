//! Device check: the whole device is written, read and compared, while the links of its paths are cut one by one.

use std::time::Duration;

use ib_block::Geometry;
use ib_rtrs::{Client, PathState};
use ib_sim::Sim;
use ib_topology::PortId;
use ib_types::Instant;

use super::super::pass::{Content, Pass, Task};
use super::results::{CheckResult, CutResult, DeviceResult, Stall};
use crate::up::hosts::BlockPair;

/// How long the device may take for a request, and a path to be connected again: longer than either does.
const PATIENCE: Duration = Duration::from_secs(45);

/// The device is written and read.
pub(super) struct DeviceCheck {
    size: u64,
    content: Content,
    writes: Pass,
    reads: Pass,
    /// The link of each path: of the first one while all is written, of the second one while all is read.
    cuts: [Cut; 2],
    /// How many bytes, errors and paths there were when it got on, and when that was.
    got_on: (u64, Instant),
}

/// What has become of a link that is to be cut.
enum Cut {
    /// Its time has not come, or there is no other path.
    No,
    /// The link of `port` is cut. `under_way` requests were in flight, and `before` requests had failed over before the cut.
    Yes { port: PortId, under_way: usize, before: u64 },
    /// The link is up again. `under_way` requests were in flight at the cut, and `again` requests have failed over.
    Healed { under_way: usize, again: u64 },
    /// It could not be cut.
    Not(String),
}

impl DeviceCheck {
    /// Starts with all of the device.
    pub(super) fn new(pair: Option<&BlockPair>, now: Instant) -> Self {
        let size = pair.and_then(BlockPair::geometry).map_or(0, |&Geometry { size, .. }| size);
        let [writes, reads] = [Task::Write, Task::Compare].map(|task| Pass::new(task, 0..size));
        let (content, cuts) = (Content::Pattern(0), [Cut::No, Cut::No]);
        Self { size, content, writes, reads, cuts, got_on: (0, now) }
    }

    /// Writes or reads on, and cuts a link in the middle of each; returns whether there was anything.
    pub(super) fn work(
        &mut self,
        pair: &mut BlockPair,
        sim: &mut Sim,
        ends: &[Vec<PortId>; 2],
    ) -> bool {
        let now = sim.now();
        // At the server: the client's first host has the manager.
        let ports = if let [one, two] = ends[1][..] { Some([one, two]) } else { None };
        let moved = if self.writes.is_over() {
            self.heal(0, pair.client(), sim);
            let is_back = ports.is_none() || connected(pair.client()) > 1;
            let is_time = self.reads.next() >= self.size / 4;
            if let (Some(ports), true, Cut::No) = (ports, is_time, &self.cuts[1]) {
                self.cuts[1] = cut(pair.client(), sim, ports[1], self.reads.under_way());
            }
            // Both paths have a part of this, too.
            let has_begun = self.reads.next() > 0;
            (is_back || has_begun) && self.reads.work(pair, &mut self.content)
        } else {
            let is_time = self.writes.next() >= self.size / 4;
            if let (Some(ports), true, Cut::No) = (ports, is_time, &self.cuts[0]) {
                self.cuts[0] = cut(pair.client(), sim, ports[0], self.writes.under_way());
            }
            self.writes.work(pair, &mut self.content)
        };
        let got_on = [&self.writes, &self.reads].map(|pass| pass.done + pass.errors);
        let got_on = got_on.iter().sum::<u64>() + u64::from(self.writes.is_over());
        if got_on > self.got_on.0 {
            self.got_on = (got_on, now);
        }
        moved
    }

    /// Restores a link that was cut.
    fn heal(&mut self, number: usize, client: &Client, sim: &mut Sim) {
        if let Cut::Yes { port, under_way, before } = self.cuts[number] {
            // Somebody may have done it.
            command(sim, "relink", port).ok();
            self.cuts[number] = Cut::Healed { under_way, again: failed_over(client) - before };
        }
    }

    /// Returns how many bytes are written and read, of all.
    pub(super) const fn progress(&self) -> (u64, u64) {
        (self.writes.done + self.reads.done, 2 * self.size)
    }

    pub(super) const fn is_over(&self) -> bool {
        self.writes.is_over() && self.reads.is_over()
    }

    /// Returns when it has waited for long enough.
    pub(super) fn deadline(&self) -> Instant {
        self.got_on.1 + PATIENCE
    }

    /// Restores cut links and returns the result.
    pub(super) fn finish(&mut self, pair: &BlockPair, sim: &mut Sim) -> CheckResult {
        let client = pair.client();
        [0, 1].into_iter().for_each(|number| self.heal(number, client, sim));
        // With few requests a path may have none.
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
            seconds: PATIENCE.as_secs(),
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
            Self::Healed { under_way, again } => {
                CutResult::Cut { outstanding: *under_way, failed_over: *again }
            }
            Self::Not(reason) => CutResult::NotCut { reason: reason.clone() },
            Self::No | Self::Yes { .. } => {
                CutResult::NotCut { reason: "it was over before".to_owned() }
            }
        }
    }
}

/// Returns how many paths are connected.
fn connected(client: &Client) -> usize {
    let is_connected = |&path: &_| client.path_state(path) == Some(PathState::Connected);
    client.paths().filter(is_connected).count()
}

/// Returns how many requests have gone over another path than their first one.
fn failed_over(client: &Client) -> u64 {
    client.paths().filter_map(|path| client.stats(path)).map(|stats| stats.failed_over).sum()
}

/// Cuts the link of a port, unless the other path is not there.
fn cut(client: &Client, sim: &mut Sim, port: PortId, under_way: usize) -> Cut {
    let connected = connected(client);
    if connected < 2 {
        return Cut::Not(format!("{connected} of the paths were connected"));
    }
    match command(sim, "unlink", port) {
        Ok(()) => Cut::Yes { port, under_way, before: failed_over(client) },
        Err(why) => Cut::Not(why),
    }
}

/// Has a command of the console done to a port; fails with what it says.
fn command(sim: &mut Sim, word: &str, port: PortId) -> Result<(), String> {
    let (node, number) = sim.place(port);
    let name = sim.node_name(node).replace('"', "\"\"");
    let command = format!("{word} \"{name}\"[{number}]").parse::<ib_sim::Command>();
    let command = command.map_err(|error| error.to_string())?;
    sim.run(&command).map_err(|error| error.to_string())
}
