//! A simulated fabric with SMs and HCAs, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use ib_device::sim::SimDevices;
use ib_link::Incoming;
use ib_routing::{EngineList, LidOptions, RoutingOptions};
use ib_sim::{ClientId, ClientOptions, Options, Sim};
use ib_sm::{RoutingConfig, SmConfig, SmEvent, SubnetManager};
use ib_topology::generate::{self, Kind};
use ib_topology::{Fabric, PortId};
use ib_types::Instant;

/// An SM at a port.
pub(crate) struct Manager {
    engine: SubnetManager,
    client: ClientId,
    /// True if the SM has brought the subnet up at least once.
    is_up: bool,
}

/// A fabric with SMs and HCAs.
pub(crate) struct Managed {
    pub(crate) sim: Sim,
    pub(crate) devices: SimDevices,
    pub(crate) managers: Vec<Manager>,
    /// Number of times that SMs have brought the subnet up.
    pub(crate) ups: u64,
    engines: EngineList,
}

/// Generates a fabric of the given kind, such as `fat-tree 4 2`.
pub(crate) fn fabric(kind: &str) -> Fabric {
    let words: Vec<&str> = kind.split(' ').collect();
    let kind = Kind::parse(words[0], &words[1..]).expect("`kind` is a kind of fabric");
    generate::generate(&kind, &generate::Options::default())
        .expect("the parameters of the fabric are valid")
}

impl Managed {
    /// Creates a fabric with an SM at the first host. The SM has brought the subnet up with the given routing engine.
    pub(crate) fn new(fabric: &Fabric, options: Options, engine: &str) -> Self {
        Self::with(fabric, options, engine, SmConfig::default())
    }

    /// Creates a fabric like [`Self::new`], with the given configuration of the SM.
    pub(crate) fn with(fabric: &Fabric, options: Options, engine: &str, config: SmConfig) -> Self {
        let sim = Sim::new(fabric, options);
        let engines = engine.parse().expect("`engine` is the name of a routing engine");
        let mut this =
            Self { sim, devices: SimDevices::default(), managers: Vec::new(), ups: 0, engines };
        let port = this.sim.first_end_port().expect("the fabric has a host");
        this.add_manager(port, SmConfig { sweep_interval: None, ..config });
        this.manage();
        while !this.managers[0].is_up {
            assert!(this.step(Instant::NEVER), "the subnet does not come up");
        }
        // Waits until packets in flight, such as traps, have arrived.
        this.run_for(Duration::from_secs(1));
        this
    }

    /// Adds an SM at the given port.
    pub(crate) fn add_manager(&mut self, port: PortId, config: SmConfig) {
        let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
        let client = self.sim.attach(port, options).expect("the port accepts a client");
        let routing = RoutingConfig {
            engines: self.engines.clone(),
            options: Some(Arc::new(|_| Ok(RoutingOptions::default()))),
            ..RoutingConfig::default()
        };
        let config = SmConfig { routing, ..config };
        let engine = SubnetManager::new(config, self.sim.link_port(port).port_guid, self.sim.now());
        self.managers.push(Manager { engine, client, is_up: false });
    }

    /// Runs the SMs until they have nothing more to do at the current time.
    pub(crate) fn manage(&mut self) {
        let now = self.sim.now();
        for manager in &mut self.managers {
            while let Some(incoming) = self.sim.receive(manager.client) {
                // As on a real fabric, losses are not reported to the SM.
                if matches!(incoming, Incoming::Received(_)) {
                    manager.engine.handle(now, &incoming);
                }
            }
            manager.engine.handle_timeout(now);
            loop {
                while let Some(datagram) = manager.engine.poll_transmit(now) {
                    self.sim.submit(manager.client, &datagram);
                }
                match manager.engine.poll_job() {
                    Some(job) => manager.engine.handle_plan(now, job.run()),
                    None => break,
                }
            }
            while let Some(event) = manager.engine.poll_event() {
                if std::env::var_os("TRACE").is_some() {
                    let text: String = format!("{event:?}").chars().take(300).collect();
                    eprintln!("{now:?} {} {text}", manager.engine.info().guid);
                }
                let is_up = matches!(event, SmEvent::SubnetUp(_));
                manager.is_up |= is_up;
                self.ups += u64::from(is_up);
            }
        }
    }

    /// Returns the time of the SMs' next timeout.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.managers.iter().filter_map(|manager| manager.engine.poll_timeout()).min()
    }

    /// Processes the next event that is due by `until`. Returns false if there is none.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        let due = self.due().unwrap_or(Instant::NEVER);
        let goes_on = self.devices.run_step(&mut self.sim, due.min(until));
        if !goes_on && due <= until && due < Instant::NEVER {
            self.sim.run_until(due);
        }
        let is_asked = self.managers.iter().any(|manager| self.sim.has_incoming(manager.client));
        if is_asked || due <= self.sim.now() {
            self.manage();
        }
        goes_on || due <= until && due < Instant::NEVER
    }

    /// Runs the fabric for the given time.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.sim.now() + time;
        while self.step(end) {}
        self.sim.run_until(end);
    }

    /// Returns the end ports of all hosts.
    pub(crate) fn end_ports(&self) -> Vec<PortId> {
        let nodes = self.sim.node_ids().filter(|&node| !self.sim.is_switch(node));
        nodes.filter_map(|node| self.sim.end_port(node)).collect()
    }

    /// Replaces the LID options of the first SM.
    pub(crate) fn reassign(&mut self, lids: LidOptions) {
        self.change(|manager| manager.set_lids(lids));
    }

    /// Applies a change to the first SM, and requests a sweep.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut SubnetManager)) {
        let now = self.sim.now();
        if let Some(manager) = self.managers.first_mut() {
            change(&mut manager.engine);
            manager.engine.sweep(now);
        }
        self.manage();
    }

    /// Stops the first SM as a crash does: the SM sends no further MADs.
    pub(crate) fn kill_manager(&mut self) {
        let manager = self.managers.remove(0);
        self.sim.detach(manager.client);
    }

    /// Executes a console command.
    pub(crate) fn command(&mut self, text: &str) {
        self.sim
            .run(&text.parse().expect("`text` is a console command"))
            .expect("the simulator accepts the command");
    }
}
