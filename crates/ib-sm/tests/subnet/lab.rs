//! A simulated fabric with SMs on some of its ports, in virtual time.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use ib_link::{Datagram, Incoming, Remote};
use ib_mad::{Message, Request, Requester, RequesterConfig};
use ib_sim::{ClientId, ClientOptions, Options, Sim};
use ib_sm::{Fault, SmConfig, SmEvent, SubnetManager, SweepReport};
use ib_topology::generate::{self, Kind};
use ib_topology::{Fabric, NodeId, PortId};
use ib_types::{Guid, Instant};
use ib_wire::mad::sa::{ComponentMask, SaHeader};
use ib_wire::mad::sm::{PortInfo, PortState, SmState};
use ib_wire::mad::{Attribute, AttributeId, Mad, Method, MgmtClass, TransactionId};

/// A simulated fabric with its SMs.
pub(crate) struct Lab {
    pub(crate) sim: Sim,
    pub(crate) sms: Vec<RunningSm>,
    /// If set, the tables are checked for forwarding loops whenever one of them has changed.
    watch: Option<Watch>,
    /// Function that changes the MADs that SMs receive.
    corrupt: Corrupt,
    /// LIDs of ports that were requested to reregister.
    pub(crate) reregistered: Vec<u16>,
}

/// Function that changes a received MAD.
type Corrupt = Box<dyn FnMut(&mut Datagram)>;

/// State of the checks for forwarding loops: the LFTs at the time of the last check, and the number of checks.
#[derive(Default)]
struct Watch {
    tables: Vec<Vec<u8>>,
    loop_checks: u64,
}

/// An SM at a port, with its recorded events.
pub(crate) struct RunningSm {
    pub(crate) manager: SubnetManager,
    pub(crate) reports: Vec<SweepReport>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) states: Vec<SmState>,
    /// Recorded reasons of `SmEvent::NoPlan`: the SM has found no routes, and has written no tables.
    pub(crate) refusals: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) traps: usize,
    /// Recorded discoveries, port changes and link changes.
    pub(crate) changes: Vec<String>,
    client: ClientId,
    port: PortId,
}

/// The QP that SA clients use.
pub(crate) const CLIENT_QPN: u32 = 77;

/// A client of the SA, at the port of a host.
pub(crate) struct SaClient {
    client: ClientId,
    requester: Requester,
    /// Received reports.
    pub(crate) reports: Vec<Datagram>,
}

/// Generates a fabric. `kind` is, for example, `"torus 3x3 hosts=1"`.
pub(crate) fn generated(kind: &str) -> Fabric {
    let words: Vec<&str> = kind.split(' ').collect();
    let kind = Kind::parse(words[0], &words[1..]).expect("the text is a kind of fabric");
    generate::generate(&kind, &generate::Options::default()).expect("the fabric can be generated")
}

impl Lab {
    pub(crate) fn new(kind: &str) -> Self {
        Self::with(Sim::new(&generated(kind), Options::default()))
    }

    pub(crate) fn with(sim: Sim) -> Self {
        Self {
            sim,
            sms: Vec::new(),
            watch: None,
            corrupt: Box::new(|_| {}),
            reregistered: Vec::new(),
        }
    }

    /// From now on, calls `corrupt` with every MAD that arrives at an SM, before the SM processes the MAD.
    pub(crate) fn corrupt(&mut self, corrupt: impl FnMut(&mut Datagram) + 'static) {
        self.corrupt = Box::new(corrupt);
    }

    /// From now on, panics if the tables cause a forwarding loop over active links.
    pub(crate) fn watch_for_loops(&mut self) {
        self.watch = Some(Watch::default());
    }

    /// Returns how many times the tables were checked for loops.
    pub(crate) fn loop_checks(&self) -> u64 {
        self.watch.as_ref().map_or(0, |watch| watch.loop_checks)
    }

    /// Creates a fabric with an SM on its first host.
    pub(crate) fn managed(kind: &str) -> Self {
        let mut lab = Self::new(kind);
        lab.add(0, SmConfig::default());
        lab
    }

    /// Returns the number of hosts.
    pub(crate) fn hosts(&self) -> usize {
        self.sim.node_ids().filter(|&node| !self.sim.is_switch(node)).count()
    }

    /// Returns the port of a host by its number.
    pub(crate) fn host(&self, number: usize) -> PortId {
        let sim = &self.sim;
        let nodes = sim.node_ids().filter(|&node| !sim.is_switch(node));
        nodes.filter_map(|node| sim.end_port(node)).nth(number).expect("the fabric has the host")
    }

    /// Starts an SM on a host.
    pub(crate) fn add(&mut self, host: usize, config: SmConfig) -> usize {
        self.add_at(self.host(host), config)
    }

    /// Starts an SM on a port.
    pub(crate) fn add_at(&mut self, port: PortId, config: SmConfig) -> usize {
        let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
        let client = self.sim.attach(port, options).expect("the port accepts a client");
        let guid = self.sim.link_port(port).port_guid;
        self.sms.push(RunningSm {
            manager: SubnetManager::new(config, guid, self.sim.now()),
            reports: Vec::new(),
            faults: Vec::new(),
            states: Vec::new(),
            refusals: Vec::new(),
            warnings: Vec::new(),
            traps: 0,
            changes: Vec::new(),
            client,
            port,
        });
        self.sms.len() - 1
    }

    /// Stops an SM. Other SMs get no notice.
    pub(crate) fn kill(&mut self, sm: usize) {
        let sm = self.sms.remove(sm);
        self.sim.detach(sm.client);
    }

    /// Creates an SA client at the port of a host.
    pub(crate) fn sa_client(&mut self, host: usize) -> SaClient {
        let options = ClientOptions { queue_pair: CLIENT_QPN, ..ClientOptions::default() };
        let client = self.sim.attach(self.host(host), options);
        let client = client.expect("the port accepts a client");
        let requester = Requester::new(RequesterConfig { tag: 7, ..RequesterConfig::default() });
        SaClient { client, requester, reports: Vec::new() }
    }

    /// Sends a request, and returns the response.
    pub(crate) fn ask(&mut self, sa_client: &mut SaClient, remote: Remote, mad: Mad) -> Message {
        sa_client.requester.start(Request::new(remote, mad)).expect("the MAD is a request");
        for _ in 0..100_000 {
            self.listen(sa_client);
            if let Some(completion) = sa_client.requester.poll_event() {
                return completion.result.expect("the request gets a response");
            }
        }
        panic!("no response");
    }

    /// Sends a query to the SA, and returns the response.
    pub(crate) fn ask_records<R: Attribute>(
        &mut self,
        sa_client: &mut SaClient,
        (method, mask): (Method, ComponentMask),
        template: &R,
    ) -> Message {
        let manager = self.sim.port_info(self.host(0)).master_sm_lid;
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, method, TransactionId(0));
        mad.set_attribute(template);
        mad.set_sa(&SaHeader { component_mask: mask, ..mad.sa() });
        self.ask(sa_client, Remote::gsi(manager), mad)
    }

    /// Sends the packets of a client, runs the simulation for 20 µs, and processes the packets that the client has
    /// received. Reports are recorded and acknowledged.
    pub(crate) fn listen(&mut self, sa_client: &mut SaClient) {
        let now = self.sim.now();
        while let Some(datagram) = sa_client.requester.poll_transmit(now) {
            self.sim.submit(sa_client.client, &datagram);
        }
        self.run_for(Duration::from_micros(20));
        let now = self.sim.now();
        while let Some(incoming) = self.sim.receive(sa_client.client) {
            if sa_client.requester.handle(now, &incoming) {
                continue;
            }
            let Incoming::Received(datagram) = incoming else { continue };
            if datagram.mad.method() == Method::REPORT {
                let mut mad = datagram.mad;
                mad.set_method(Method::REPORT_RESP);
                self.sim.submit(sa_client.client, &datagram.reply(mad));
            }
            sa_client.reports.push(datagram);
        }
        sa_client.requester.handle_timeout(now);
    }

    pub(crate) fn command(&mut self, text: &str) {
        self.sim.run(&text.parse().expect("the text is a command")).expect("the command succeeds");
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.sim.now() + time;
        self.run_until(end, |_| false);
    }

    /// Runs while the condition holds. Panics after a minute of virtual time.
    pub(crate) fn run_while(&mut self, condition: impl Fn(&Self) -> bool) {
        let end = self.sim.now() + Duration::from_secs(60);
        assert!(
            !self.run_until(end, |lab| !condition(lab)),
            "the condition still holds after a minute"
        );
    }

    /// Runs until `stop` returns true or `end` is reached. Returns true if `end` was reached.
    fn run_until(&mut self, end: Instant, stop: impl Fn(&Self) -> bool) -> bool {
        loop {
            self.pump();
            if stop(self) {
                return false;
            }
            let wakes = self.sms.iter().filter_map(|it| it.manager.poll_timeout()).min();
            let limit = wakes.map_or(end, |wakes| wakes.min(end));
            if self.sim.run_step(limit) {
                self.check_for_loops();
                continue;
            }
            self.sim.run_until(limit);
            let now = self.sim.now();
            let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
            for sm in &mut self.sms {
                if due(sm.manager.poll_timeout()) {
                    sm.manager.handle_timeout(now);
                }
            }
            if now >= end {
                return true;
            }
        }
    }

    fn check_for_loops(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        let sim = &self.sim;
        let nodes: Vec<NodeId> = sim.node_ids().filter(|&node| sim.is_switch(node)).collect();
        watch.tables.resize(nodes.len(), Vec::new());
        let mut changed = false;
        for (&node, seen) in nodes.iter().zip(&mut watch.tables) {
            if sim.forwarding_table(node) != seen.as_slice() {
                *seen = sim.forwarding_table(node).to_vec();
                changed = true;
            }
        }
        if !changed {
            return;
        }
        watch.loop_checks += 1;
        let longest = watch.tables.iter().map(Vec::len).max().unwrap_or(0);
        for lid in 1..longest {
            let next = |node: NodeId| {
                let number = *sim.forwarding_table(node).get(lid)?;
                let port = sim.find_port(node, number).filter(|_| number > 0)?;
                let peer = sim.peer(port)?;
                let serves = |port| sim.port_info(port).port_state.0 >= PortState::ARMED.0;
                let to = sim.place(peer).0;
                (serves(port) && serves(peer) && sim.is_switch(to)).then_some(to)
            };
            for &start in &nodes {
                let mut at = start;
                let mut steps = 0;
                while let Some(to) = next(at) {
                    at = to;
                    steps += 1;
                    let name = sim.node_name(start);
                    assert!(steps <= nodes.len(), "LID {lid} loops from {name} at {:?}", sim.now());
                }
            }
        }
    }

    /// Delivers packets until no SM or client has packets to send.
    fn pump(&mut self) {
        let now = self.sim.now();
        for sm in &mut self.sms {
            loop {
                while let Some(mut incoming) = self.sim.receive(sm.client) {
                    if let Incoming::Received(datagram) = &mut incoming {
                        (self.corrupt)(datagram);
                    }
                    sm.manager.handle(now, &incoming);
                }
                if let Some(job) = sm.manager.poll_job() {
                    sm.manager.handle_plan(now, job.run());
                }
                while let Some(event) = sm.manager.poll_event() {
                    if std::env::var_os("TRACE").is_some() {
                        let text: String = format!("{event:?}").chars().take(100).collect();
                        eprintln!("{now:?} {} {text}", sm.manager.info().guid);
                    }
                    match event {
                        SmEvent::Fault(fault) => sm.faults.push(fault),
                        SmEvent::NoPlan(why) => sm.refusals.push(why),
                        SmEvent::Warning(what) => sm.warnings.push(what),
                        SmEvent::SubnetUp(report) => sm.reports.push(*report),
                        SmEvent::State(state) => sm.states.push(state),
                        SmEvent::Trap(_) => sm.traps += 1,
                        SmEvent::DiscoveryStart(it) => {
                            sm.changes.push(format!("discovery: {}", it.reason));
                        }
                        SmEvent::Port(it) => sm.changes.push(format!("port {}", it.is_new)),
                        SmEvent::Link(it) => sm.changes.push(format!("link {}", it.is_new)),
                        _ => {}
                    }
                }
                let mut idle = true;
                while let Some(datagram) = sm.manager.poll_transmit(now) {
                    let mad = &datagram.mad;
                    let sets_port = mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE
                        && mad.method() == Method::SET
                        && mad.attribute_id() == AttributeId::PORT_INFO;
                    let info = mad.attribute::<PortInfo>().filter(|_| sets_port);
                    let requests = info.filter(|info| info.client_reregister);
                    self.reregistered.extend(requests.map(|info| info.lid));
                    self.sim.submit(sm.client, &datagram);
                    idle = false;
                }
                if idle && !self.sim.has_incoming(sm.client) {
                    break;
                }
            }
        }
    }

    /// Checks that all linked ports are Active, and that the LFTs lead from every host to every other host. LIDs of
    /// switches are not checked, because up/down routing may leave them out.
    pub(crate) fn check(&self) {
        let (mut lids, sim) = (Vec::new(), &self.sim);
        for node in sim.node_ids() {
            for number in 0..=254 {
                let Some(port) = sim.find_port(node, number) else { break };
                let info = sim.port_info(port);
                let linked = sim.peer(port).is_some() && info.port_state != PortState::DOWN;
                let name = sim.node_name(node);
                if linked {
                    assert_eq!(info.port_state, PortState::ACTIVE, "{name} port {number}");
                }
                if (number == 0) == sim.is_switch(node) && (number == 0 || linked) {
                    assert_ne!(info.lid, 0, "{name} port {number}");
                    if number > 0 {
                        lids.push(info.lid);
                    }
                }
            }
        }
        for &from in &lids {
            for &to in &lids {
                let (_, loss) = sim.route(from, to).expect("an end port has the source LID");
                assert_eq!(loss, None, "packets from {from} to {to} are lost");
            }
        }
    }

    /// Returns the switch that has the given node GUID.
    pub(crate) fn find_switch(&self, guid: Guid) -> NodeId {
        let sim = &self.sim;
        let mut nodes = sim.node_ids().filter(|&node| sim.is_switch(node));
        let own = |node: NodeId| {
            sim.node_info(sim.find_port(node, 0).expect("every switch has a port 0")).node_guid
        };
        nodes.find(|&node| own(node) == guid).expect("a switch has the node GUID")
    }

    /// Returns the node that has the given LID.
    pub(crate) fn owner(&self, lid: u16) -> NodeId {
        let sim = &self.sim;
        let end = |node: NodeId| {
            sim.find_port(node, u8::from(!sim.is_switch(node))).expect("every node has an end port")
        };
        sim.node_ids().find(|&node| sim.port_info(end(node)).lid == lid).expect("the LID is in use")
    }

    /// Returns the other end of a link that is up.
    pub(crate) fn live_peer(&self, port: PortId) -> Option<PortId> {
        let up = self.sim.port_info(port).port_state != PortState::DOWN;
        self.sim.peer(port).filter(|_| up)
    }

    /// Returns the number of hops from one node to another; `None` if there is no path.
    pub(crate) fn hops(&self, from: NodeId, to: NodeId) -> Option<usize> {
        let mut reached = BTreeMap::from([(from, 0)]);
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            let hops = reached[&node];
            if node == to {
                return Some(hops);
            }
            let ports = (1..=254).map_while(|number| self.sim.find_port(node, number));
            for peer in ports.filter_map(|port| self.live_peer(port)) {
                let next = self.sim.place(peer).0;
                if let Entry::Vacant(entry) = reached.entry(next) {
                    entry.insert(hops + 1);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    /// Returns the LID of a host.
    pub(crate) fn lid(&self, host: usize) -> u16 {
        self.sim.port_info(self.host(host)).lid
    }
}

impl RunningSm {
    /// Returns the report of the last sweep.
    pub(crate) fn last(&self) -> &SweepReport {
        self.reports.last().expect("the subnet has been up")
    }

    /// Returns the port of the SM.
    pub(crate) const fn port(&self) -> PortId {
        self.port
    }
}

impl fmt::Display for RunningSm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.manager.info();
        let (guid, doing) = (info.guid, self.manager.activity());
        writeln!(f, "manager {guid} priority {}: {doing}, {:?}", info.priority, self.states)?;
        for report in &self.reports {
            let (nodes, written) = (report.nodes, report.written);
            writeln!(f, "  {nodes} nodes, {} faults, {written:?}", report.faults)?;
        }
        self.refusals.iter().try_for_each(|refusal| writeln!(f, "  {refusal}"))?;
        self.faults.iter().rev().take(20).try_for_each(|fault| writeln!(f, "  {fault}"))
    }
}
