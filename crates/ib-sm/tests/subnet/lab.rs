//! A simulated fabric with subnet managers on some of its ports, in virtual time.

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

/// A fabric and its managers.
pub(crate) struct Lab {
    pub(crate) sim: Sim,
    pub(crate) stations: Vec<Station>,
    /// Looks for forwarding loops whenever a table has changed.
    watch: Option<Watch>,
    /// Changes what managers receive.
    spoil: Spoil,
    /// The LIDs of the ports that were told that clients shall register again.
    pub(crate) reregistered: Vec<u16>,
}

/// What is done to datagrams.
type Spoil = Box<dyn FnMut(&mut Datagram)>;

/// The tables as they were when they were last looked at.
#[derive(Default)]
struct Watch {
    tables: Vec<Vec<u8>>,
    looks: u64,
}

/// A manager at a port.
pub(crate) struct Station {
    pub(crate) manager: SubnetManager,
    pub(crate) reports: Vec<SweepReport>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) states: Vec<SmState>,
    /// Why there was no plan.
    pub(crate) refusals: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) traps: usize,
    /// What it says of explorations, ports and links.
    pub(crate) changes: Vec<String>,
    client: ClientId,
    port: PortId,
}

/// The queue pair that askers are told at.
pub(crate) const ASKER: u32 = 77;

/// Somebody who asks and is told, at the port of a host.
pub(crate) struct Asker {
    client: ClientId,
    requester: Requester,
    /// What came unasked.
    pub(crate) told: Vec<Datagram>,
}

/// Makes a fabric of a kind, such as `"torus 3x3 hosts=1"`.
pub(crate) fn generated(kind: &str) -> Fabric {
    let words: Vec<&str> = kind.split(' ').collect();
    let kind = Kind::parse(words[0], &words[1..]).expect("a kind of fabric");
    generate::generate(&kind, &generate::Options::default()).expect("a fabric")
}

impl Lab {
    pub(crate) fn new(kind: &str) -> Self {
        Self::with(Sim::new(&generated(kind), Options::default()))
    }

    pub(crate) fn with(sim: Sim) -> Self {
        Self {
            sim,
            stations: Vec::new(),
            watch: None,
            spoil: Box::new(|_| {}),
            reregistered: Vec::new(),
        }
    }

    /// Has everything changed that managers receive from now on.
    pub(crate) fn spoil(&mut self, spoil: impl FnMut(&mut Datagram) + 'static) {
        self.spoil = Box::new(spoil);
    }

    /// Panics from now on whenever tables send packets round in circles over links in service.
    pub(crate) fn watch_for_loops(&mut self) {
        self.watch = Some(Watch::default());
    }

    /// Returns how many states of the tables were looked at.
    pub(crate) fn looks(&self) -> u64 {
        self.watch.as_ref().map_or(0, |watch| watch.looks)
    }

    /// Makes a fabric with a manager on its first host.
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
        nodes.filter_map(|node| sim.end_port(node)).nth(number).expect("so many hosts")
    }

    /// Starts a manager on a host.
    pub(crate) fn add(&mut self, host: usize, config: SmConfig) -> usize {
        self.add_at(self.host(host), config)
    }

    /// Starts a manager on a port.
    pub(crate) fn add_at(&mut self, port: PortId, config: SmConfig) -> usize {
        let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
        let client = self.sim.attach(port, options).expect("there is room");
        let guid = self.sim.link_port(port).port_guid;
        self.stations.push(Station {
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
        self.stations.len() - 1
    }

    /// Ends a manager without a word.
    pub(crate) fn kill(&mut self, station: usize) {
        let station = self.stations.remove(station);
        self.sim.detach(station.client);
    }

    /// Returns somebody who asks from the port of a host.
    pub(crate) fn asker(&mut self, host: usize) -> Asker {
        let options = ClientOptions { queue_pair: ASKER, ..ClientOptions::default() };
        let client = self.sim.attach(self.host(host), options);
        let client = client.expect("there is room");
        let requester = Requester::new(RequesterConfig { tag: 7, ..RequesterConfig::default() });
        Asker { client, requester, told: Vec::new() }
    }

    /// Asks and waits for the answer.
    pub(crate) fn ask(&mut self, asker: &mut Asker, remote: Remote, mad: Mad) -> Message {
        asker.requester.start(Request::new(remote, mad)).expect("it is a request");
        for _ in 0..100_000 {
            self.listen(asker);
            if let Some(completion) = asker.requester.poll_event() {
                return completion.result.expect("an answer");
            }
        }
        panic!("nobody answers");
    }

    /// Asks the manager of the fabric for records.
    pub(crate) fn ask_records<R: Attribute>(
        &mut self,
        asker: &mut Asker,
        (method, mask): (Method, ComponentMask),
        template: &R,
    ) -> Message {
        let manager = self.sim.port_info(self.host(0)).master_sm_lid;
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, method, TransactionId(0));
        mad.set_attribute(template);
        mad.set_sa(&SaHeader { component_mask: mask, ..mad.sa() });
        self.ask(asker, Remote::gsi(manager), mad)
    }

    /// Lets a little time pass and takes what comes to somebody; tellings are taken note of and
    /// answered.
    pub(crate) fn listen(&mut self, asker: &mut Asker) {
        let now = self.sim.now();
        while let Some(datagram) = asker.requester.poll_transmit(now) {
            self.sim.submit(asker.client, &datagram);
        }
        self.run_for(Duration::from_micros(20));
        let now = self.sim.now();
        while let Some(incoming) = self.sim.receive(asker.client) {
            if asker.requester.handle(now, &incoming) {
                continue;
            }
            let Incoming::Received(datagram) = incoming else { continue };
            if datagram.mad.method() == Method::REPORT {
                let mut mad = datagram.mad;
                mad.set_method(Method::REPORT_RESP);
                self.sim.submit(asker.client, &datagram.reply(mad));
            }
            asker.told.push(datagram);
        }
        asker.requester.handle_timeout(now);
    }

    pub(crate) fn command(&mut self, text: &str) {
        self.sim.run(&text.parse().expect("a command")).expect("it can be done");
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.sim.now() + time;
        self.run_until(end, |_| false);
    }

    /// Runs until something is true; panics after a minute of the fabric's time.
    pub(crate) fn run_while(&mut self, condition: impl Fn(&Self) -> bool) {
        let end = self.sim.now() + Duration::from_secs(60);
        assert!(!self.run_until(end, |lab| !condition(lab)), "it does not come to an end");
    }

    /// Runs to a moment, or until something is true. Returns true when it came to the moment.
    fn run_until(&mut self, end: Instant, stop: impl Fn(&Self) -> bool) -> bool {
        loop {
            self.pump();
            if stop(self) {
                return false;
            }
            let wakes = self.stations.iter().filter_map(|it| it.manager.poll_timeout()).min();
            let limit = wakes.map_or(end, |wakes| wakes.min(end));
            if self.sim.run_step(limit) {
                self.look_for_loops();
                continue;
            }
            self.sim.run_until(limit);
            let now = self.sim.now();
            let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
            for station in &mut self.stations {
                if due(station.manager.poll_timeout()) {
                    station.manager.handle_timeout(now);
                }
            }
            if now >= end {
                return true;
            }
        }
    }

    fn look_for_loops(&mut self) {
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
        watch.looks += 1;
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
                    assert!(
                        steps <= nodes.len(),
                        "LID {lid} goes round from {name} at {:?}",
                        sim.now()
                    );
                }
            }
        }
    }

    /// Passes on what has come, until nobody has anything to say.
    fn pump(&mut self) {
        let now = self.sim.now();
        for station in &mut self.stations {
            loop {
                while let Some(mut incoming) = self.sim.receive(station.client) {
                    if let Incoming::Received(datagram) = &mut incoming {
                        (self.spoil)(datagram);
                    }
                    station.manager.handle(now, &incoming);
                }
                if let Some(job) = station.manager.poll_job() {
                    station.manager.handle_plan(now, job.run());
                }
                while let Some(event) = station.manager.poll_event() {
                    if std::env::var_os("TRACE").is_some() {
                        let text: String = format!("{event:?}").chars().take(100).collect();
                        eprintln!("{now:?} {} {text}", station.manager.info().guid);
                    }
                    match event {
                        SmEvent::Fault(fault) => station.faults.push(fault),
                        SmEvent::NoPlan(why) => station.refusals.push(why),
                        SmEvent::Warning(what) => station.warnings.push(what),
                        SmEvent::SubnetUp(report) => station.reports.push(*report),
                        SmEvent::State(state) => station.states.push(state),
                        SmEvent::Trap(_) => station.traps += 1,
                        SmEvent::Exploration(it) => {
                            station.changes.push(format!("explored: {}", it.why));
                        }
                        SmEvent::Port(it) => station.changes.push(format!("port {}", it.is_new)),
                        SmEvent::Link(it) => station.changes.push(format!("link {}", it.is_new)),
                        _ => {}
                    }
                }
                let mut idle = true;
                while let Some(datagram) = station.manager.poll_transmit(now) {
                    let mad = &datagram.mad;
                    let sets_port = mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE
                        && mad.method() == Method::SET
                        && mad.attribute_id() == AttributeId::PORT_INFO;
                    let info = mad.attribute::<PortInfo>().filter(|_| sets_port);
                    let told = info.filter(|info| info.client_reregister);
                    self.reregistered.extend(told.map(|info| info.lid));
                    self.sim.submit(station.client, &datagram);
                    idle = false;
                }
                if idle && !self.sim.has_incoming(station.client) {
                    break;
                }
            }
        }
    }

    /// Checks that all ports with a link are in service, and that every host reaches every other one as
    /// the tables say. Switches' own LIDs may be left out: up/down routing does so.
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
                let (_, loss) = sim.route(from, to).expect("the port has the LID");
                assert_eq!(loss, None, "from {from} to {to}");
            }
        }
    }

    /// Returns the switch with a GUID.
    pub(crate) fn find_switch(&self, guid: Guid) -> NodeId {
        let sim = &self.sim;
        let mut nodes = sim.node_ids().filter(|&node| sim.is_switch(node));
        let own = |node: NodeId| {
            sim.node_info(sim.find_port(node, 0).expect("every switch has a port 0")).node_guid
        };
        nodes.find(|&node| own(node) == guid).expect("there is such a switch")
    }

    /// Returns the node that has a LID.
    pub(crate) fn owner(&self, lid: u16) -> NodeId {
        let sim = &self.sim;
        let end = |node: NodeId| {
            sim.find_port(node, u8::from(!sim.is_switch(node))).expect("every node has an end port")
        };
        sim.node_ids().find(|&node| sim.port_info(end(node)).lid == lid).expect("the LID is given")
    }

    /// Returns the other end of a link that is up.
    pub(crate) fn live_peer(&self, port: PortId) -> Option<PortId> {
        let up = self.sim.port_info(port).port_state != PortState::DOWN;
        self.sim.peer(port).filter(|_| up)
    }

    /// Returns the number of links from one node to another.
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

impl Station {
    /// Returns what came of the last sweep.
    pub(crate) fn last(&self) -> &SweepReport {
        self.reports.last().expect("the subnet was up")
    }

    /// Returns the port that the manager sits on.
    pub(crate) const fn port(&self) -> PortId {
        self.port
    }
}

impl fmt::Display for Station {
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
