//! Ways between hosts, traced as ibtracer does.

use ib_sim::{ClientId, ClientOptions, Sim};
use ib_tracer::{Target, Tracer, TracerConfig};
use ib_types::Instant;

use crate::error::DaemonError;

/// How many ways are traced.
const WAYS: usize = 100;

/// Ways that are traced.
pub(super) struct Ways {
    client: ClientId,
    tracer: Tracer,
    asked: usize,
    good: usize,
    /// Those that agents confirm, and those that they can.
    validated: usize,
    can_be_validated: usize,
    first_bad: Option<String>,
    traced: usize,
}

impl Ways {
    /// Starts to trace ways between hosts, from the port of the manager; nothing where there are no two hosts.
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
        for number in 0..WAYS {
            // All hosts are among them before one is again.
            let from = number * 7 % lids.len();
            let to = (from + 1 + number * 13 % (lids.len() - 1)) % lids.len();
            // Nothing comes in where the questions come from.
            can_be_validated += usize::from(lids[to] != own);
            let [from, to] = [from, to].map(|at| Target::Lid(lids[at]));
            tracer.start(Some(from), to).map_err(DaemonError::failed)?;
            asked += 1;
        }
        let (good, validated, traced, first_bad) = (0, 0, 0, None);
        let ways =
            Self { client, tracer, asked, good, validated, can_be_validated, first_bad, traced };
        Ok(Some(ways))
    }

    /// Returns when there is something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        self.tracer.poll_timeout()
    }

    /// Goes on; returns whether all are traced.
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

    /// Returns the number of traced paths, and of all.
    pub(super) const fn progress(&self) -> (usize, usize) {
        (self.traced, self.asked)
    }

    pub(super) fn finish(&self, sim: &mut Sim) -> (bool, String) {
        sim.detach(self.client);
        let Self { good, asked, validated, .. } = self;
        let mut detail = format!("{good} of {asked} lead there, {validated} confirmed by agents");
        if let Some(bad) = &self.first_bad {
            detail = format!("{detail}; the first other one: {bad}");
        }
        (self.good == self.asked && self.validated >= self.can_be_validated, detail)
    }
}
