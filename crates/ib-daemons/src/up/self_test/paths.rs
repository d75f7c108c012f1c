//! The path check. It traces paths between hosts as ibtracer does.

use ib_sim::{ClientId, ClientOptions, Sim};
use ib_tracer::{Target, Tracer, TracerConfig};
use ib_types::Instant;

use super::results::{CheckResult, PathsResult};
use crate::error::DaemonError;

/// Number of traced paths.
const PATHS: usize = 100;

/// The paths that are traced, and their results so far.
pub(super) struct TracedPaths {
    client: ClientId,
    tracer: Tracer,
    asked: usize,
    good: usize,
    /// Number of paths that the tracing agent at the destination has confirmed.
    validated: usize,
    /// Number of paths that the tracing agent at the destination can confirm.
    can_be_validated: usize,
    first_bad: Option<String>,
    traced: usize,
}

impl TracedPaths {
    /// Attaches the tracer to the first end port, and starts to trace paths between hosts. Returns `None` if fewer than
    /// two hosts have a LID.
    pub(super) fn start(sim: &mut Sim) -> Result<Option<Self>, DaemonError> {
        let Some(own) = sim.first_end_port() else { return Ok(None) };
        let hosts = sim.node_ids().filter(|&node| !sim.is_switch(node));
        let ports = hosts.filter_map(|node| sim.end_port(node));
        let lids: Vec<u16> =
            ports.map(|port| sim.link_port(port).lid).filter(|&lid| lid != 0).collect();
        if lids.len() < 2 {
            return Ok(None);
        }
        let client = sim.attach(own, ClientOptions::default()).map_err(DaemonError::failed)?;
        let mut tracer = Tracer::new(&TracerConfig::default(), sim.link_port(own));
        let own = sim.link_port(own).lid;
        let (mut asked, mut can_be_validated) = (0, 0);
        for number in 0..PATHS {
            // The sources are spread evenly over the list of hosts. If there are fewer hosts than paths, the hosts take
            // turns as source. The distance from source to destination in the list grows evenly with `number`.
            let from = number * lids.len().max(PATHS) / PATHS % lids.len();
            let to = (from + 1 + number * (lids.len() - 1) / PATHS) % lids.len();
            // A path that ends at the tracer's port cannot be confirmed, since the tracer receives no probes.
            can_be_validated += usize::from(lids[to] != own);
            let [from, to] = [from, to].map(|at| Target::Lid(lids[at]));
            tracer.start(Some(from), to).map_err(DaemonError::failed)?;
            asked += 1;
        }
        let (good, validated, traced, first_bad) = (0, 0, 0, None);
        let paths =
            Self { client, tracer, asked, good, validated, can_be_validated, first_bad, traced };
        Ok(Some(paths))
    }

    /// Returns the time at which the tracer retransmits or abandons an unanswered request.
    pub(super) fn due(&self) -> Option<Instant> {
        self.tracer.poll_timeout()
    }

    /// Makes progress; returns true if all paths are traced.
    pub(super) fn work(&mut self, sim: &mut Sim) -> bool {
        let now = sim.now();
        while let Some(incoming) = sim.receive(self.client) {
            self.tracer.handle(now, &incoming);
        }
        self.tracer.handle_timeout(now);
        while let Some(datagram) = self.tracer.poll_transmit(now) {
            sim.submit(self.client, &datagram);
        }
        while let Some((_, found)) = self.tracer.poll_event() {
            self.traced += 1;
            match found {
                Ok(trace) if trace.is_good() => {
                    self.good += 1;
                    self.validated += usize::from(trace.is_validated());
                }
                Ok(trace) => {
                    self.first_bad.get_or_insert_with(|| format!("{:?}", trace.stop));
                }
                Err(error) => {
                    self.first_bad.get_or_insert_with(|| error.to_string());
                }
            }
        }
        self.traced == self.asked
    }

    /// Returns the number of traced paths, and the number of all paths.
    pub(super) const fn progress(&self) -> (usize, usize) {
        (self.traced, self.asked)
    }

    /// Detaches the tracer from the fabric and returns the result of the check.
    pub(super) fn finish(&self, sim: &mut Sim) -> CheckResult {
        sim.detach(self.client);
        CheckResult::Paths(PathsResult {
            requested: self.asked,
            good: self.good,
            confirmed: self.validated,
            confirmable: self.can_be_validated,
            first_other: self.first_bad.clone(),
        })
    }
}
