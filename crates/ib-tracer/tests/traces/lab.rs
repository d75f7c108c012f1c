//! A simulated fabric with a subnet manager, agents and a tracer, in virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ib_link::{Datagram, Incoming};
use ib_mad::{OnLoss, Timing};
use ib_routing::{EngineList, RoutingOptions};
use ib_sim::{ClientId, ClientOptions, Options, Sim};
use ib_sm::{RoutingConfig, SmConfig, SmEvent, SubnetManager};
use ib_topology::generate::{self, Kind};
use ib_topology::{NodeId, PortId};
use ib_tracer::{
    Target, Trace, TraceError, TraceId, Tracer, TracerAgent, TracerConfig, TracerCounters,
};
use ib_types::Instant;

pub(crate) struct Lab {
    pub(crate) sim: Sim,
    manager: SubnetManager,
    manager_client: ClientId,
    client: ClientId,
    config: TracerConfig,
    /// Changes what the tracer receives.
    spoil: Box<dyn FnMut(&mut Datagram)>,
    pub(crate) counters: TracerCounters,
}

/// What came of a trace: of each hop the LID, the ports on both sides of the link and the verdict.
pub(crate) type Traced = Result<Trace, TraceError>;

impl Lab {
    /// Returns a fabric of a kind that is up, with agents on the nodes that `has_agent` says.
    pub(crate) fn new(kind: &str, engine: &str, has_agent: impl Fn(usize) -> bool) -> Self {
        let words: Vec<&str> = kind.split(' ').collect();
        let kind = Kind::parse(words[0], &words[1..]).expect("a kind of fabric");
        let fabric = generate::generate(&kind, &generate::Options::default()).expect("a fabric");
        let mut sim = Sim::new(&fabric, Options::default());
        for (number, node) in sim.node_ids().collect::<Vec<_>>().into_iter().enumerate() {
            if has_agent(number) {
                sim.host(node, Box::new(TracerAgent::new(format!("node{number}"))));
            }
        }
        let port = sim.first_end_port().expect("a host");
        let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
        let manager_client = sim.attach(port, options).expect("there is room");
        let guid = sim.link_port(port).port_guid;
        let engines: EngineList = engine.parse().expect("an engine");
        let routing = RoutingConfig {
            engines,
            options: Some(Arc::new(|_| Ok(RoutingOptions::default()))),
            ..RoutingConfig::default()
        };
        let config = SmConfig { routing, sweep_interval: None, ..SmConfig::default() };
        let manager = SubnetManager::new(config, guid, sim.now());
        let options = ClientOptions { queue_pair: 1, ..ClientOptions::default() };
        let client = sim.attach(port, options).expect("there is room");
        let mut this = Self {
            sim,
            manager,
            manager_client,
            client,
            config: TracerConfig::default(),
            spoil: Box::new(|_| {}),
            counters: TracerCounters::default(),
        };
        this.config.timing = Timing { timeout: Duration::from_millis(20), ..Timing::default() };
        while !this.manage() {
            this.step(Instant::NEVER);
        }
        this
    }

    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut TracerConfig)) {
        change(&mut self.config);
    }

    pub(crate) fn spoil(&mut self, spoil: impl FnMut(&mut Datagram) + 'static) {
        self.spoil = Box::new(spoil);
    }

    pub(crate) fn command(&mut self, text: &str) {
        self.sim.run(&text.parse().expect("a command")).expect("it can be done");
    }

    /// Lets the manager do what it has to do; returns whether the subnet has come up.
    fn manage(&mut self) -> bool {
        let now = self.sim.now();
        while let Some(incoming) = self.sim.receive(self.manager_client) {
            self.manager.handle(now, &incoming);
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
        let mut up = false;
        while let Some(event) = self.manager.poll_event() {
            up |= matches!(event, SmEvent::SubnetUp(_));
        }
        up
    }

    fn step(&mut self, until: Instant) {
        let due = self.manager.poll_timeout().unwrap_or(Instant::NEVER).min(until);
        if !self.sim.run_step(due) && due < Instant::NEVER {
            self.sim.run_until(due);
        }
    }

    /// Traces ways, as many at a time as are given.
    pub(crate) fn trace(&mut self, pairs: &[(Option<Target>, Target)]) -> Vec<Traced> {
        let (traces, _) = self.trace_with(pairs);
        traces
    }

    pub(crate) fn trace_with(
        &mut self,
        pairs: &[(Option<Target>, Target)],
    ) -> (Vec<Traced>, Tracer) {
        let own = self.sim.link_port(self.sim.client_port(self.client).expect("it is there"));
        let mut tracer = Tracer::new(&self.config, own);
        let mut ended: BTreeMap<TraceId, Traced> = BTreeMap::new();
        let ids: Vec<TraceId> = pairs
            .iter()
            .map(|&(from, to)| tracer.start(from, to).expect("unicast LIDs"))
            .collect();
        while tracer.outstanding() > 0 {
            let now = self.sim.now();
            while let Some(datagram) = tracer.poll_transmit(now) {
                self.sim.submit(self.client, &datagram);
            }
            ended.extend(std::iter::from_fn(|| tracer.poll_event()));
            if tracer.outstanding() == 0 {
                break;
            }
            self.step(tracer.poll_timeout().expect("it waits for something"));
            let now = self.sim.now();
            while let Some(incoming) = self.sim.receive(self.client) {
                let incoming = match incoming {
                    Incoming::Received(mut datagram) => {
                        (self.spoil)(&mut datagram);
                        Incoming::Received(datagram)
                    }
                    // As on a wire: nobody tells that a request is lost.
                    Incoming::Lost(_) => continue,
                };
                tracer.handle(now, &incoming);
            }
            tracer.handle_timeout(now);
            self.manage();
        }
        ended.extend(std::iter::from_fn(|| tracer.poll_event()));
        self.counters = tracer.counters();
        assert_eq!(tracer.poll_timeout(), None, "nothing is left");
        let traces = ids.iter().map(|id| ended.remove(id).expect("every trace ends"));
        (traces.collect(), tracer)
    }

    /// Traces one way from the own port.
    pub(crate) fn trace_to(&mut self, lid: u16) -> Traced {
        self.trace(&[(None, Target::Lid(lid))]).remove(0)
    }

    /// Returns the LIDs of all hosts and switches.
    pub(crate) fn lids(&self) -> Vec<u16> {
        let ports = self.sim.node_ids().filter_map(|node| self.sim.end_port(node));
        ports.map(|port| self.sim.link_port(port).lid).collect()
    }

    pub(crate) fn host_lids(&self) -> Vec<u16> {
        let hosts = self.sim.node_ids().filter(|&node| !self.sim.is_switch(node));
        let ports = hosts.filter_map(|node| self.sim.end_port(node));
        ports.map(|port| self.sim.link_port(port).lid).collect()
    }

    pub(crate) fn lid_of(&self, name: &str) -> u16 {
        let port = self.sim.end_port(self.node(name)).expect("it has LIDs");
        self.sim.link_port(port).lid
    }

    pub(crate) fn node(&self, name: &str) -> NodeId {
        self.sim.find_node(name).expect("a node of that name")
    }

    /// Returns the way that a packet takes in truth: the ports that it leaves by.
    pub(crate) fn truth(&self, from: u16, to: u16) -> Vec<(NodeId, u8)> {
        let (ports, loss) = self.sim.route(from, to).expect("both LIDs are there");
        assert!(loss.is_none(), "{from} to {to}: {loss:?}");
        ports.into_iter().map(|port: PortId| self.sim.place(port)).collect()
    }
}

/// Does the work of a lossy wire: retries where the link says nothing.
pub(crate) const PATIENT: OnLoss = OnLoss::Retry;
