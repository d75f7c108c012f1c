//! A simulated fabric with a subnet manager, agents and a tracer, in virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ib_link::{Datagram, Incoming, Remote};
use ib_mad::Timing;
use ib_routing::{EngineList, RoutingOptions};
use ib_sim::{ClientId, ClientOptions, Options, Sim};
use ib_sm::{RoutingConfig, SmConfig, SmEvent, SubnetManager};
use ib_topology::generate::{self, Kind};
use ib_topology::{NodeId, PortId};
use ib_tracer::{
    PacketFate, Target, Trace, TraceError, TraceId, Tracer, TracerAgent, TracerConfig,
    TracerCounters, Tree,
};
use ib_types::{Gid, Guid, Instant, VirtualLane};
use ib_wire::mad::sa::{ComponentMask, MCMemberRecord, SaHeader};
use ib_wire::mad::sm::{LinearForwardingBlock, PhysState, PortInfo, PortState, SlToVl};
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass, TransactionId, smp};

pub(crate) struct Lab {
    pub(crate) sim: Sim,
    manager: SubnetManager,
    manager_client: ClientId,
    client: ClientId,
    config: TracerConfig,
    /// Function that changes the datagrams that the tracer receives. If it returns false, the datagram is dropped.
    corrupt: Box<dyn FnMut(&mut Datagram) -> bool>,
    /// True if the SM receives no traps.
    traps_are_dropped: bool,
    traffic: Option<Traffic>,
    pub(crate) counters: TracerCounters,
}

/// Traffic besides that of the tracer: SMPs that another client sends, and that the port counters count as well.
struct Traffic {
    client: ClientId,
    lid: u16,
    period: Duration,
    /// How many SMPs the client sends in each successive period. After the last element, the first one is used again.
    counts: Vec<u32>,
    next: Instant,
}

/// The result of a trace.
pub(crate) type Traced = Result<Trace, TraceError>;

impl Lab {
    /// Creates a fabric, and runs the SM until the subnet is up. The nodes that `has_agent` selects have agents.
    pub(crate) fn new(kind: &str, engine: &str, has_agent: impl Fn(usize) -> bool) -> Self {
        Self::with(kind, engine, has_agent, |_| {})
    }

    /// Like [`Lab::new`], but changes the configuration of the SM.
    pub(crate) fn with(
        kind: &str,
        engine: &str,
        has_agent: impl Fn(usize) -> bool,
        change: impl FnOnce(&mut SmConfig),
    ) -> Self {
        let words: Vec<&str> = kind.split(' ').collect();
        let kind = Kind::parse(words[0], &words[1..]).expect("the kind of fabric is valid");
        let fabric = generate::generate(&kind, &generate::Options::default())
            .expect("the fabric can be generated");
        let mut sim = Sim::new(&fabric, Options::default());
        for (number, node) in sim.node_ids().collect::<Vec<_>>().into_iter().enumerate() {
            if has_agent(number) {
                sim.host(node, Box::new(TracerAgent::new(format!("node{number}"))));
            }
        }
        let port = sim.first_end_port().expect("the fabric has a host");
        let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
        let manager_client = sim.attach(port, options).expect("the port accepts a client");
        let guid = sim.link_port(port).port_guid;
        let engines: EngineList = engine.parse().expect("the name of the engine is valid");
        let routing = RoutingConfig {
            engines,
            options: Some(Arc::new(|_| Ok(RoutingOptions::default()))),
            ..RoutingConfig::default()
        };
        let mut config = SmConfig { routing, sweep_interval: None, ..SmConfig::default() };
        change(&mut config);
        let manager = SubnetManager::new(config, guid, sim.now());
        let options = ClientOptions { queue_pair: 1, ..ClientOptions::default() };
        let client = sim.attach(port, options).expect("the port accepts a client");
        let mut this = Self {
            sim,
            manager,
            manager_client,
            client,
            config: TracerConfig::default(),
            corrupt: Box::new(|_| true),
            traps_are_dropped: false,
            traffic: None,
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

    /// Sets the function that changes the datagrams that the tracer receives. If it returns false, the datagram is
    /// dropped.
    pub(crate) fn corrupt(&mut self, corrupt: impl FnMut(&mut Datagram) -> bool + 'static) {
        self.corrupt = Box::new(corrupt);
    }

    /// Makes a node send SMPs to a LID while the tracer runs. `counts` contains how many SMPs the node sends in each
    /// successive `period`.
    pub(crate) fn send_traffic(
        &mut self,
        (from, lid): (NodeId, u16),
        period: Duration,
        counts: &[u32],
    ) {
        let port = self.sim.end_port(from).expect("the node has a port with LIDs");
        let client =
            self.sim.attach(port, ClientOptions::default()).expect("the port accepts a client");
        let next = self.sim.now();
        self.traffic = Some(Traffic { client, lid, period, counts: counts.to_vec(), next });
    }

    /// Sends the SMPs of `traffic` that are due, and returns the time at which the next ones are due.
    fn pass_traffic(&mut self) -> Instant {
        let Some(traffic) = &mut self.traffic else { return Instant::NEVER };
        while self.sim.receive(traffic.client).is_some() {}
        if self.sim.now() >= traffic.next {
            for number in 0..traffic.counts[0] {
                let what = (AttributeId::NODE_INFO, 0);
                let mad = smp::lid_request(Method::GET, TransactionId(number.into()), what);
                self.sim.submit(traffic.client, &Datagram::new(Remote::smi(traffic.lid), mad));
            }
            traffic.counts.rotate_left(1);
            traffic.next = self.sim.now() + traffic.period;
        }
        traffic.next
    }

    /// Drops all further traps to the SM.
    pub(crate) fn drop_traps(&mut self) {
        self.traps_are_dropped = true;
    }

    /// Runs the SM for one second.
    pub(crate) fn settle(&mut self) {
        let end = self.sim.now() + Duration::from_secs(1);
        while self.sim.now() < end {
            self.step(end);
            self.manage();
        }
    }

    /// Sets a port of the node at the end of a directed route to Active, bypassing the SM.
    pub(crate) fn activate(&mut self, route: &[u8], port: u8) {
        let what = (AttributeId::PORT_INFO, port.into());
        for state in [PortState::ARMED, PortState::ACTIVE] {
            let read = smp::directed_request(Method::GET, TransactionId(1), what, route);
            let answer = self.ask(&Datagram::new(Remote::directed(), read));
            let mut info: PortInfo =
                answer.mad.attribute().expect("the response has the requested attribute");
            info.port_state = state;
            info.phys_state = PhysState::NO_CHANGE;
            info.link_down_default_state = PhysState::NO_CHANGE;
            let mut write = smp::directed_request(Method::SET, TransactionId(2), what, route);
            write.set_attribute(&info);
            let answer = self.ask(&Datagram::new(Remote::directed(), write));
            assert!(
                answer.mad.status().is_ok(),
                "cannot set port {port} at {route:?} to {state:?}"
            );
        }
    }

    /// Makes a switch at the end of a directed route drop packets of a service level that go from one given port to
    /// another.
    pub(crate) fn drop_level(&mut self, route: &[u8], ports: (u8, u8), level: u8) {
        let what = (AttributeId::SL_TO_VL, SlToVl::modifier(ports.0, ports.1));
        let mut write = smp::directed_request(Method::SET, TransactionId(3), what, route);
        let mut lanes = [VirtualLane::default(); 16];
        lanes[usize::from(level)] = VirtualLane::new(15).expect("15 is a valid VL");
        write.set_attribute(&SlToVl { lanes });
        let answer = self.ask(&Datagram::new(Remote::directed(), write));
        assert!(answer.mad.status().is_ok(), "{}", answer.mad);
    }

    /// Sends a request from the port of the SM, bypassing the SM.
    fn ask(&mut self, datagram: &Datagram) -> Datagram {
        while self.sim.receive(self.manager_client).is_some() {}
        self.sim.submit(self.manager_client, datagram);
        let end = self.sim.now() + Duration::from_millis(1);
        loop {
            match self.sim.receive(self.manager_client) {
                Some(Incoming::Received(it)) if it.mad.method() == Method::GET_RESP => return it,
                Some(_) => {}
                None => assert!(self.sim.run_step(end), "no response to {}", datagram.mad),
            }
        }
    }

    /// Writes the entry of a LID in the forwarding table of a switch.
    pub(crate) fn write_entry(&mut self, name: &str, lid: u16, port: u8) {
        let node = self.node(name);
        let block = lid / 64;
        let table = self.sim.forwarding_table(node);
        let mut ports = [255; 64];
        for (entry, &known) in ports.iter_mut().zip(&table[usize::from(block) * 64..]) {
            *entry = known;
        }
        ports[usize::from(lid % 64)] = port;
        let to =
            self.sim.link_port(self.sim.end_port(node).expect("the node has a port with LIDs")).lid;
        let what = (AttributeId::LINEAR_FORWARDING, u32::from(block));
        let mut mad = smp::lid_request(Method::SET, TransactionId(1), what);
        mad.set_attribute(&LinearForwardingBlock { ports });
        let answer = self.ask(&Datagram::new(Remote::smi(to), mad));
        assert!(answer.mad.status().is_ok());
    }

    pub(crate) fn switch_names(&self) -> Vec<String> {
        let switches = self.sim.node_ids().filter(|&node| self.sim.is_switch(node));
        switches.map(|node| self.sim.node_name(node).to_owned()).collect()
    }

    pub(crate) fn node_of_first_host(&self) -> NodeId {
        self.sim.place(self.sim.first_end_port().expect("the fabric has a host")).0
    }

    pub(crate) fn command(&mut self, text: &str) {
        self.sim
            .run(&text.parse().expect("the command is valid"))
            .expect("the simulator accepts the command");
    }

    /// Runs a console command; returns false if it fails.
    pub(crate) fn try_command(&mut self, text: &str) -> bool {
        text.parse().is_ok_and(|command| self.sim.run(&command).is_ok())
    }

    /// Returns the first LID of a node.
    pub(crate) fn lid(&self, node: NodeId) -> u16 {
        self.sim.link_port(self.sim.end_port(node).expect("the node has a port with LIDs")).lid
    }

    /// Lets the SM process all received MADs and expired timers. Returns true if the subnet came up.
    fn manage(&mut self) -> bool {
        let now = self.sim.now();
        while let Some(incoming) = self.sim.receive(self.manager_client) {
            let is_trap =
                matches!(&incoming, Incoming::Received(it) if it.mad.method() == Method::TRAP);
            if !(self.traps_are_dropped && is_trap) {
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

    /// Traces all given paths at the same time.
    pub(crate) fn trace(&mut self, pairs: &[(Option<Target>, Target)]) -> Vec<Traced> {
        let (traces, _) = self.trace_with(pairs);
        traces
    }

    pub(crate) fn trace_with(
        &mut self,
        pairs: &[(Option<Target>, Target)],
    ) -> (Vec<Traced>, Tracer) {
        let own =
            self.sim.link_port(self.sim.client_port(self.client).expect("the client is attached"));
        let mut tracer = Tracer::new(&self.config, own);
        if pairs.len() > 1 {
            for &(from, to) in pairs {
                tracer.survey(from, to).expect("the LIDs are unicast");
            }
            self.drive(&mut tracer);
        }
        let ids: Vec<TraceId> = pairs
            .iter()
            .map(|&(from, to)| tracer.start(from, to).expect("the LIDs are unicast"))
            .collect();
        self.drive(&mut tracer);
        let mut ended: BTreeMap<TraceId, Traced> =
            std::iter::from_fn(|| tracer.poll_event()).collect();
        let traces = ids.iter().map(|id| ended.remove(id).expect("every trace ends"));
        (traces.collect(), tracer)
    }

    /// Traces the tree of a multicast group.
    pub(crate) fn trace_tree(&mut self, mlid: u16) -> (Result<Tree, TraceError>, Tracer) {
        let own =
            self.sim.link_port(self.sim.client_port(self.client).expect("the client is attached"));
        let mut tracer = Tracer::new(&self.config, own);
        tracer.start_tree(mlid).expect("the LID is multicast");
        self.drive(&mut tracer);
        (tracer.poll_tree().expect("the trace completes").1, tracer)
    }

    /// Runs until all traces have ended.
    fn drive(&mut self, tracer: &mut Tracer) {
        loop {
            let now = self.sim.now();
            while let Some(datagram) = tracer.poll_transmit(now) {
                self.sim.submit(self.client, &datagram);
            }
            if tracer.outstanding() == 0 {
                break;
            }
            let due = self.pass_traffic();
            self.step(tracer.poll_timeout().expect("an incomplete trace has a timer").min(due));
            let now = self.sim.now();
            while let Some(incoming) = self.sim.receive(self.client) {
                let incoming = match incoming {
                    Incoming::Received(mut datagram) => {
                        if !(self.corrupt)(&mut datagram) {
                            continue;
                        }
                        Incoming::Received(datagram)
                    }
                    // Losses are not reported to the sender, as on a real wire.
                    Incoming::Lost(_) => continue,
                };
                tracer.handle(now, &incoming);
            }
            tracer.handle_timeout(now);
            self.manage();
        }
        self.counters = tracer.counters();
    }

    /// Traces one path from the local port.
    pub(crate) fn trace_to(&mut self, lid: u16) -> Traced {
        self.trace(&[(None, Target::Lid(lid))]).remove(0)
    }

    pub(crate) fn host_lids(&self) -> Vec<u16> {
        let hosts = self.sim.node_ids().filter(|&node| !self.sim.is_switch(node));
        let ports = hosts.filter_map(|node| self.sim.end_port(node));
        ports.map(|port| self.sim.link_port(port).lid).collect()
    }

    /// Returns the GID of a host by its number.
    pub(crate) fn host_gid(&self, host: usize) -> Gid {
        self.sim.link_port(self.host_port(host)).gid()
    }

    fn host_port(&self, host: usize) -> PortId {
        let hosts = self.sim.node_ids().filter(|&node| !self.sim.is_switch(node));
        hosts
            .filter_map(|node| self.sim.end_port(node))
            .nth(host)
            .expect("the fabric has a host with this number")
    }

    /// Joins a host to a multicast group.
    pub(crate) fn join(
        &mut self,
        host: usize,
        component_mask: ComponentMask,
        wanted: &MCMemberRecord,
    ) -> MCMemberRecord {
        let port = self.host_port(host);
        let manager = self.sim.port_info(port).master_sm_lid;
        let options = ClientOptions { queue_pair: 77, ..ClientOptions::default() };
        let client = self.sim.attach(port, options).expect("the port accepts a client");
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::SET, TransactionId(5));
        mad.set_attribute(wanted);
        mad.set_sa(&SaHeader { component_mask, ..mad.sa() });
        self.sim.submit(client, &Datagram::new(Remote::gsi(manager), mad));
        let end = self.sim.now() + Duration::from_secs(1);
        loop {
            self.manage();
            self.step(end);
            if let Some(Incoming::Received(answer)) = self.sim.receive(client) {
                assert!(answer.mad.status().is_ok(), "{}", answer.mad);
                self.sim.detach(client);
                return answer.mad.attribute().expect("the response has a record");
            }
            assert!(self.sim.now() < end, "no response from the SA");
        }
    }

    /// Returns the port of the node `from` whose cable leads to the node `to`.
    pub(crate) fn port_to(&self, from: &str, to: &str) -> u8 {
        let (from, to) = (self.node(from), self.node(to));
        let leads = |&port: &u8| {
            let peer = self.sim.find_port(from, port).and_then(|port| self.sim.peer(port));
            peer.is_some_and(|peer| self.sim.place(peer).0 == to)
        };
        (1..=self.ports(from)).find(leads).expect("a cable connects the nodes")
    }

    /// Returns the number of ports of a node.
    pub(crate) fn ports(&self, node: NodeId) -> u8 {
        (1..=254).take_while(|&port| self.sim.find_port(node, port).is_some()).count() as u8
    }

    /// Returns the port at the other end of a cable.
    pub(crate) fn peer_port(&self, node: NodeId, port: u8) -> u8 {
        let port = self.sim.find_port(node, port).expect("the node has the port");
        self.sim.place(self.sim.peer(port).expect("the port has a cable")).1
    }

    /// Returns the expected fate of packets that a switch forwards to the port `by`: sent if the port has a cable, or
    /// else discarded.
    pub(crate) fn left(&self, node: NodeId, by: u8) -> Option<PacketFate> {
        let port = self.sim.find_port(node, by)?;
        let is_linked = self.sim.peer(port).is_some();
        Some(if is_linked { PacketFate::Sent(by) } else { PacketFate::Discarded(by) })
    }

    /// Returns the host that has a LID.
    pub(crate) fn owner(&self, lid: u16) -> Option<NodeId> {
        let mut hosts = self.sim.node_ids().filter(|&node| !self.sim.is_switch(node));
        hosts.find(|&node| self.sim.end_port(node).is_some_and(|port| self.sim.has_lid(port, lid)))
    }

    pub(crate) fn guid(&self, node: NodeId) -> Guid {
        self.sim
            .node_info(self.sim.end_port(node).expect("the node has a port with LIDs"))
            .node_guid
    }

    pub(crate) fn node(&self, name: &str) -> NodeId {
        self.sim.find_node(name).expect("the fabric has a node of that name")
    }

    /// Returns the path that a packet takes in the simulator, as alternating egress and ingress ports.
    pub(crate) fn truth(&self, from: u16, to: u16) -> Vec<(NodeId, u8)> {
        let (ports, loss) = self.sim.route(from, to).expect("both LIDs exist");
        assert!(loss.is_none(), "LID {from} to LID {to}: {loss:?}");
        ports.into_iter().map(|port: PortId| self.sim.place(port)).collect()
    }
}
