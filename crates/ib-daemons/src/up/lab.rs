//! A simulated fabric for tests, which an SM configures.

use ib_sim::{ClientOptions, Options, Sim};
use ib_sm::{SmConfig, SmEvent, SubnetManager};
use ib_topology::Fabric;
use ib_topology::generate::{self, Kind};

use super::page::model::Model;

/// Generates a fabric of the given kind. `words` are its parameters.
pub(super) fn fabric(kind: &str, words: &[&str]) -> Fabric {
    let kind = Kind::parse(kind, words).expect("the kind is valid");
    generate::generate(&kind, &generate::Options::default()).expect("the fabric can be generated")
}

/// A simulated fabric with an SM.
pub(super) struct Lab {
    pub(super) sim: Sim,
    manager: SubnetManager,
    client: ib_sim::ClientId,
}

impl Lab {
    pub(super) fn new(fabric: &Fabric) -> Self {
        let mut sim = Sim::new(fabric, Options::default());
        let port = sim.first_end_port().expect("the fabric has a host");
        let options = ClientOptions { is_sm: true, reports_losses: true, ..Default::default() };
        let client = sim.attach(port, options).expect("the port has no other client");
        let guid = sim.link_port(port).port_guid;
        let manager = SubnetManager::new(SmConfig::default(), guid, sim.now());
        let mut lab = Self { sim, manager, client };
        lab.manage();
        lab
    }

    /// Runs the SM until it has brought the subnet up.
    pub(super) fn manage(&mut self) {
        let Self { sim, manager, client } = self;
        manager.sweep(sim.now());
        loop {
            let now = sim.now();
            let mut is_idle = true;
            manager.handle_timeout(now);
            while let Some(datagram) = manager.poll_transmit(now) {
                sim.submit(*client, &datagram);
                is_idle = false;
            }
            while let Some(job) = manager.poll_job() {
                is_idle = false;
                manager.handle_plan(now, job.run());
            }
            while let Some(event) = manager.poll_event() {
                if matches!(event, SmEvent::SubnetUp(_)) {
                    return;
                }
            }
            sim.settle(now);
            while let Some(incoming) = sim.receive(*client) {
                manager.handle(sim.now(), &incoming);
                is_idle = false;
            }
            if is_idle {
                sim.settle(manager.poll_timeout().expect("the SM has a timer"));
            }
        }
    }

    /// Runs a command of the simulator's console.
    pub(super) fn run(&mut self, command: &str) {
        self.sim
            .run(&command.parse().expect("the command is valid"))
            .expect("the command succeeds");
        self.sim.settle(self.sim.now());
    }
}

/// Returns the page's model of a fabric.
pub(super) fn model(fabric: Fabric) -> Model {
    Model::new(fabric, "a fabric", "minhop", "up")
}
