//! A simulated fabric in this process with an SM, and with agents on all nodes.

use std::time::Duration;

use ib_link::{Datagram, Incoming, LinkError, LinkPort, MadLink};
use ib_routing::EngineList;
use ib_sim::{ClientId, ClientOptions, Command, Options, Sim};
use ib_sm::{RoutingConfig, SmConfig, SmEvent, SubnetManager};
use ib_topology::Fabric;
use ib_tracer::TracerAgent;
use ib_types::Instant;
use ib_wire::mad::Method;

use crate::failure::{Failure, note};

/// The SM runs for at least this virtual time after the console commands, so that it receives all traps.
const FOLLOWS: Duration = Duration::from_secs(1);

/// The SM runs for at most this virtual time after the console commands, even if it is not idle by then.
const MOST_FOLLOWED: Duration = Duration::from_secs(600);

/// The activity that an SM reports when it has no work.
const IDLE: &str = "idle";

/// A simulated fabric, its SM, and the attachment of the tracer to a port.
pub(super) struct Managed {
    sim: Sim,
    manager: SubnetManager,
    manager_client: ClientId,
    client: ClientId,
    /// True if traps are not delivered to the SM.
    is_deaf: bool,
    /// The reason why the subnet has not come up.
    refused: Option<String>,
}

impl Managed {
    /// Simulates a fabric and brings its subnet up.
    pub(super) fn start(
        fabric: &Fabric,
        node: Option<&str>,
        engines: &EngineList,
    ) -> Result<Self, Failure> {
        let mut sim = Sim::new(fabric, Options::default());
        for node in sim.node_ids().collect::<Vec<_>>() {
            let agent = TracerAgent::new(sim.node_name(node));
            sim.host(node, Box::new(agent));
        }
        let port = sim.first_end_port();
        let port = port.ok_or_else(|| Failure::Unusable("no port to manage from".to_owned()))?;
        let is_sm = ClientOptions { is_sm: true, ..ClientOptions::default() };
        let manager_client = sim.attach(port, is_sm).map_err(Failure::unusable)?;
        let guid = sim.link_port(port).port_guid;
        let routing = RoutingConfig { engines: engines.clone(), ..RoutingConfig::default() };
        let config = SmConfig { routing, sweep_interval: None, ..SmConfig::default() };
        let manager = SubnetManager::new(config, guid, sim.now());
        let at = match node {
            None => port,
            Some(name) => {
                sim.find_node(name).and_then(|node| sim.end_port(node)).ok_or_else(|| {
                    Failure::Unusable(format!("--node {name}: there is no such node"))
                })?
            }
        };
        let client = sim.attach(at, ClientOptions::default()).map_err(Failure::unusable)?;
        let mut this = Self { sim, manager, manager_client, client, is_deaf: false, refused: None };
        while !this.manage() {
            if let Some(why) = this.refused.take() {
                return Err(Failure::Unusable(format!("the subnet does not come up: {why}")));
            }
            this.step(Instant::NEVER);
        }
        Ok(this)
    }

    /// Runs console commands of the simulator, and lets the SM handle the changes of the fabric. `name` is the name of
    /// the command file. If `is_deaf` is true, the SM does not receive traps.
    pub(super) fn run(&mut self, name: &str, text: &str, is_deaf: bool) -> Result<(), Failure> {
        self.is_deaf = is_deaf;
        for (line, command) in (1..).zip(text.lines()) {
            let command = command.trim();
            if command.is_empty() || command.starts_with('#') {
                continue;
            }
            let failed = |error: &dyn std::fmt::Display| {
                Failure::Unusable(format!("{name}:{line}: {error}"))
            };
            let command: Command = command.parse().map_err(|error| failed(&error))?;
            self.sim.run(&command).map_err(|error| failed(&error))?;
        }
        let (first, last) = (self.sim.now() + FOLLOWS, self.sim.now() + MOST_FOLLOWED);
        loop {
            let now = self.sim.now();
            if now >= last || now >= first && self.manager.activity() == IDLE {
                return Ok(());
            }
            self.manage();
            self.step(if now < first { first } else { last });
        }
    }

    /// Lets the SM process received MADs, timeouts and jobs at the current virtual time. Returns true if the subnet has
    /// come up.
    fn manage(&mut self) -> bool {
        let now = self.sim.now();
        while let Some(incoming) = self.sim.receive(self.manager_client) {
            let is_trap =
                matches!(&incoming, Incoming::Received(it) if it.mad.method() == Method::TRAP);
            if !(self.is_deaf && is_trap) {
                self.manager.handle(now, &incoming);
            }
        }
        self.manager.handle_timeout(now);
        loop {
            while let Some(datagram) = self.manager.poll_transmit(now) {
                self.sim.submit(self.manager_client, &datagram);
            }
            match self.manager.poll_job() {
                Some(job) => self.manager.handle_plan(now, job.run()),
                None => break,
            }
        }
        let mut is_up = false;
        while let Some(event) = self.manager.poll_event() {
            match event {
                SmEvent::SubnetUp(_) => is_up = true,
                SmEvent::NoPlan(why) => self.refused = Some(why),
                SmEvent::Warning(warning) => note!("{warning}"),
                _ => {}
            }
        }
        is_up
    }

    fn step(&mut self, until: Instant) {
        let due = self.manager.poll_timeout().unwrap_or(Instant::NEVER).min(until);
        if !self.sim.run_step(due) && due < Instant::NEVER {
            self.sim.run_until(due);
        }
    }
}

impl MadLink for Managed {
    fn port(&mut self) -> Result<LinkPort, LinkError> {
        match self.sim.client_port(self.client) {
            Some(port) => Ok(self.sim.link_port(port)),
            None => Err(LinkError::Closed { peer: "the simulated fabric".to_owned() }),
        }
    }

    fn send(&mut self, datagram: &Datagram) -> Result<(), LinkError> {
        self.sim.submit(self.client, datagram);
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<Incoming>, LinkError> {
        Ok(self.sim.receive(self.client))
    }

    fn wait(&mut self, until: Instant) -> Result<(), LinkError> {
        while !self.sim.has_incoming(self.client) && self.sim.now() < until {
            self.manage();
            // If the SM uses the port of this client, its MADs arrive during `manage`, without an event of the fabric.
            if !self.sim.has_incoming(self.client) {
                self.step(until);
            }
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        self.sim.now()
    }
}
