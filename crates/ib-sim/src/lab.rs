//! Test helpers that build, configure, query and check small fabrics.
//!
//! Unless a test sets another rate, links are 4x SDR: 8 Gbit/s of data, or 1 ns per byte.

use std::collections::{BTreeMap, VecDeque};

use ib_link::{Datagram, Incoming, Remote};
use ib_topology::generate::{self, Kind};
use ib_topology::{Fabric, LinkRate, NodeId, NodeSpec, PortId};
use ib_types::{Guid, Instant, NodeKind, ServiceLevel};
use ib_wire::mad::sm::{PhysState, PortState};
use ib_wire::mad::{Attribute, AttributeId, Mad, MadStatus, Method, MgmtClass, TransactionId, smp};

use crate::client::ClientOptions;
use crate::event::Event;
use crate::ids::ClientId;
use crate::node::Node;
use crate::options::Options;
use crate::packet::{Packet, Payload};
use crate::port::Port;
use crate::sim::Sim;

/// Length of a packet with a MAD, in bytes.
pub(crate) const MAD_PACKET: u64 = 288;

/// Builds a fabric from the names and port counts of nodes, and from links such as `"s1.3 h1.1"`.
/// Nodes whose name starts with `s` are switches.
pub(crate) fn fabric(nodes: &[(&str, u8)], links: &[&str]) -> Fabric {
    let mut fabric = Fabric::new();
    for (index, &(name, ports)) in nodes.iter().enumerate() {
        let kind = if name.starts_with('s') { NodeKind::Switch } else { NodeKind::ChannelAdapter };
        let guid = Guid(0x1000 * (index as u64 + 1));
        let node = fabric.add_node(NodeSpec::new(kind, name, guid, ports)).unwrap();
        if kind == NodeKind::ChannelAdapter {
            for port in 1..=ports {
                fabric.set_port_guid(node, port, Guid(guid.0 + u64::from(port))).unwrap();
            }
        }
    }
    for link in links {
        let end = |text: &str| {
            let (name, port) = text.split_once('.').unwrap();
            (fabric.find_name(name).unwrap(), port.parse::<u8>().unwrap())
        };
        let (one, other) = link.split_once(' ').unwrap();
        let (one, other) = (end(one), end(other));
        fabric.connect(one, other, LinkRate::DEFAULT).unwrap();
    }
    fabric
}

/// Generates a fabric from arguments such as `"torus 3x3 hosts=1"`.
pub(crate) fn generated(kind: &str) -> Fabric {
    let words: Vec<&str> = kind.split(' ').collect();
    let kind = Kind::parse(words[0], &words[1..]).unwrap();
    generate::generate(&kind, &generate::Options::default()).unwrap()
}

/// Builds a chain of switches `s1`, `s2` and so on, with a host at each end, `h1` and `h2`.
///
/// Host `h1` is at port 3 of the first switch, `h2` at port 4 of the last. Port 2 of a switch leads
/// to the next switch, port 1 to the previous one.
pub(crate) fn row(switches: usize) -> Fabric {
    let names: Vec<String> = (1..=switches).map(|number| format!("s{number}")).collect();
    let mut nodes: Vec<(&str, u8)> = vec![("h1", 1), ("h2", 1)];
    nodes.extend(names.iter().map(|name| (name.as_str(), 4)));
    let mut links = vec!["h1.1 s1.3".to_owned(), format!("h2.1 s{switches}.4")];
    links.extend((1..switches).map(|number| format!("s{number}.2 s{}.1", number + 1)));
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    fabric(&nodes, &links)
}

/// Returns a simulated fabric whose ports are all active. End ports have LIDs from 1 on, in their
/// order in the fabric; routes are shortest paths.
pub(crate) fn ready(fabric: &Fabric, options: Options) -> Sim {
    let mut sim = Sim::new(fabric, options);
    configure(&mut sim);
    sim
}

/// Configures a fabric as a subnet manager at its first end port would.
pub(crate) fn configure(sim: &mut Sim) {
    let ends: Vec<PortId> = all_ports(sim)
        .filter(|&port| {
            let state = sim.port(port);
            (state.number == 0) == sim.is_switch(state.node)
                && (state.number == 0 || state.cable.is_some())
        })
        .collect();
    let manager = sim.first_end_port().map_or(0, |port| {
        ends.iter().position(|&end| end == port).map_or(0, |index| index as u16 + 1)
    });
    for (&port, lid) in ends.iter().zip(1..) {
        let info = &mut sim.port_mut(port).info;
        (info.lid, info.master_sm_lid, info.subnet_timeout) = (lid, manager, 18);
    }
    for port in all_ports(sim).collect::<Vec<_>>() {
        let state = sim.port_mut(port);
        state.info.hoq_life = 20;
        if state.is_up() {
            state.info.port_state = PortState::ACTIVE;
        }
    }
    for node in sim.node_ids() {
        if let Some(switch) = &mut sim.node_mut(node).switch {
            switch.info.life_time = 20;
        }
    }
    for (&port, lid) in ends.iter().zip(1u16..) {
        route_to(sim, port, lid);
    }
}

/// Writes the shortest routes to a LID into all LFTs.
fn route_to(sim: &mut Sim, port: PortId, lid: u16) {
    let node = sim.port(port).node;
    let mut next: BTreeMap<NodeId, u8> = BTreeMap::new();
    let mut queue = VecDeque::new();
    if sim.is_switch(node) {
        next.insert(node, 0);
        queue.push_back(node);
    } else if let Some(peer) = sim.peer(port) {
        let (neighbor, number) = sim.place(peer);
        if sim.is_switch(neighbor) {
            next.insert(neighbor, number);
            queue.push_back(neighbor);
        }
    }
    while let Some(at) = queue.pop_front() {
        for number in 1..=sim.node(at).ports {
            let Some(peer) = sim.peer(sim.fabric().port_id(at, number)) else { continue };
            let (neighbor, back) = sim.place(peer);
            if sim.is_switch(neighbor) && !next.contains_key(&neighbor) {
                next.insert(neighbor, back);
                queue.push_back(neighbor);
            }
        }
    }
    for (node, number) in next {
        set_route(sim, node, lid, number);
    }
}

/// Writes one LFT entry of a switch.
pub(crate) fn set_route(sim: &mut Sim, node: NodeId, lid: u16, port: u8) {
    let switch = sim.node_mut(node).switch.as_mut().unwrap();
    let mut block = switch.linear_block(lid / 64);
    block[usize::from(lid % 64)] = port;
    switch.set_linear_block(lid / 64, &block);
    switch.info.linear_fdb_top = switch.info.linear_fdb_top.max(lid);
}

pub(crate) fn all_ports(sim: &Sim) -> impl Iterator<Item = PortId> + use<> {
    sim.fabric().port_ids()
}

/// Returns a port by a name such as `s1.3`.
pub(crate) fn port(sim: &Sim, name: &str) -> PortId {
    let (node, number) = name.split_once('.').unwrap();
    sim.find_port(sim.find_node(node).unwrap(), number.parse().unwrap()).unwrap()
}

pub(crate) fn node(sim: &Sim, name: &str) -> NodeId {
    sim.find_node(name).unwrap()
}

pub(crate) fn lid(sim: &Sim, node: &str) -> u16 {
    sim.port_info(sim.end_port(sim.find_node(node).unwrap()).unwrap()).lid
}

/// Attaches a client with loss reports to the end port of a node.
pub(crate) fn client(sim: &mut Sim, node: &str) -> ClientId {
    let options = ClientOptions { reports_losses: true, ..ClientOptions::default() };
    let port = sim.end_port(sim.find_node(node).unwrap()).unwrap();
    sim.attach(port, options).unwrap()
}

/// Attaches a subnet manager to the end port of a node.
pub(crate) fn manager(sim: &mut Sim, node: &str) -> ClientId {
    let options = ClientOptions { is_sm: true, reports_losses: true, ..ClientOptions::default() };
    let port = sim.end_port(sim.find_node(node).unwrap()).unwrap();
    sim.attach(port, options).unwrap()
}

/// Sends a MAD of a client. Returns the response or the loss.
pub(crate) fn query(sim: &mut Sim, client: ClientId, remote: Remote, mad: Mad) -> Option<Incoming> {
    sim.submit(client, &Datagram::new(remote, mad));
    sim.settle(sim.now());
    sim.receive(client)
}

/// Sends a MAD of a client. Returns the response.
///
/// # Panics
/// Panics if there is no response.
pub(crate) fn answer(sim: &mut Sim, client: ClientId, remote: Remote, mad: Mad) -> Mad {
    match query(sim, client, remote, mad) {
        Some(Incoming::Received(datagram)) => datagram.mad,
        other => panic!("got {other:?} instead of a response to {mad}"),
    }
}

/// Queries an attribute by directed route.
pub(crate) fn get(
    sim: &mut Sim,
    client: ClientId,
    path: &[u8],
    attribute: (AttributeId, u32),
) -> (MadStatus, Mad) {
    let mad = smp::directed_request(Method::GET, TransactionId(7), attribute, path);
    let mad = answer(sim, client, Remote::directed(), mad);
    (mad.status(), mad)
}

/// Sets an attribute by directed route. Returns the status and the attribute in the response.
pub(crate) fn set<A: Attribute>(
    sim: &mut Sim,
    client: ClientId,
    path: &[u8],
    (attribute, modifier): (&A, u32),
) -> (MadStatus, A) {
    let mut mad = smp::directed_request(Method::SET, TransactionId(8), (A::ID, modifier), path);
    mad.set_attribute(attribute);
    let mad = answer(sim, client, Remote::directed(), mad);
    (mad.status(), mad.attribute().unwrap())
}

/// Returns a data packet with a BTH, followed by `payload` bytes.
pub(crate) fn data(sim: &Sim, from: PortId, dlid: u16, level: u8, payload: usize) -> Packet {
    let mut bytes = vec![0u8; 12 + payload];
    [bytes[2], bytes[3]] = [0xff, 0xff];
    bytes[7] = 0x42;
    Packet {
        slid: sim.port_info(from).lid,
        dlid,
        sl: ServiceLevel::new(level).unwrap(),
        grh: None,
        payload: Payload::Transport(bytes),
    }
}

/// Returns a request to a performance management agent.
pub(crate) fn performance(method: Method, id: AttributeId) -> Mad {
    let mut mad = Mad::new(MgmtClass::PERFORMANCE, method, TransactionId(9));
    mad.set_attribute_id(id);
    mad
}

/// Returns the number of packets that were lost for the reason with this name.
pub(crate) fn lost(sim: &Sim, name: &str) -> u64 {
    sim.stats().lost.get(name).copied().unwrap_or(0)
}

/// Checks invariants that hold at any time.
///
/// For every VL, the credits of the sender, the occupied buffer blocks and the credits in flight
/// add up to the buffer size. All references between objects are valid.
pub(crate) fn check(sim: &Sim) {
    let net = &sim.net;
    let buffer = net.vl_blocks();
    let mut taken: BTreeMap<(PortId, u8), u32> = BTreeMap::new();
    let mut counted = std::collections::BTreeSet::new();
    let in_flight = net.flights.iter().filter_map(|flight| flight.holds);
    // At an open port, arrived packets can also occupy buffer space, until `receive_packet` takes
    // them.
    for hold in in_flight.chain(net.open_ports.holds()) {
        let alone = hold.shared().is_none_or(|shared| counted.insert(shared));
        if alone && hold.epoch == sim.port(hold.port).epoch {
            *taken.entry((hold.port, hold.vl)).or_default() += u32::from(hold.blocks);
        }
    }
    assert_eq!(
        counted.len(),
        net.flights.shared_spaces(),
        "every shared buffer space contains a packet"
    );
    let mut coming: BTreeMap<(PortId, u8), u32> = BTreeMap::new();
    let mut in_transit = 0;
    for event in net.clock.events() {
        in_transit += usize::from(!event.is_timer());
        if let Event::Credit { port, vl, blocks, epoch } = *event
            && sim.port(port).epoch == epoch
        {
            *coming.entry((port, vl)).or_default() += u32::from(blocks);
        }
    }
    assert_eq!(in_transit, net.clock.in_transit(), "number of queued events that are not timers");
    for port in all_ports(sim) {
        let state = sim.port(port);
        let Some(peer) = state.cable else { continue };
        for vl in 0..15u8 {
            let free = state.credits.as_ref().map_or(buffer, |all| all[usize::from(vl)]);
            let taken = taken.get(&(peer, vl)).copied().unwrap_or(0);
            let coming = coming.get(&(port, vl)).copied().unwrap_or(0);
            assert!(taken <= buffer, "{taken} blocks in a buffer of {buffer}");
            assert_eq!(free + taken + coming, buffer, "all buffer blocks for {port:?} VL {vl}");
        }
        if let Some(queues) = &state.queues {
            queues.check();
            for key in queues.packets() {
                assert!(net.flights.contains(key), "each queued packet is in flight");
            }
        }
    }
    net.clients.check();
}

/// Returns the number of requests that are assigned to clients and agents and not answered.
pub(crate) fn assigned(sim: &Sim) -> usize {
    sim.net.clients.requests().assigned_count()
}

/// Accessors for the state of nodes and ports, for tests.
impl Sim {
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        self.fabric().node(id)
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.net.fabric.node_mut(id)
    }

    pub(crate) fn port(&self, id: PortId) -> &Port {
        self.fabric().port(id)
    }

    /// Returns the time of the next event of the fabric.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.net.clock.next_at()
    }

    pub(crate) fn port_mut(&mut self, id: PortId) -> &mut Port {
        self.net.fabric.port_mut(id)
    }
}

/// Returns a configured chain of two switches.
pub(crate) fn two_switches() -> Sim {
    ready(&row(2), Options::default())
}

/// Runs a command and all events that follow from it. The command has to succeed.
pub(crate) fn run(sim: &mut Sim, text: &str) {
    sim.run(&text.parse().expect("the text is a valid command")).expect("the command succeeds");
    sim.settle(sim.now());
    check(sim);
}

/// Checks that no packet is in flight, and that each outstanding request is assigned to a client or
/// agent.
pub(crate) fn check_settled(sim: &Sim) {
    check(sim);
    let net = &sim.net;
    assert!(!net.clock.has_transit());
    assert_eq!(net.flights.len(), 0, "packets are left: {:?}", net.flights.iter().next());
    assert_eq!(sim.outstanding(), assigned(sim), "each outstanding request is assigned");
}

/// Checks that the physical state of each port with a cable matches the state of its link.
pub(crate) fn check_phys_states(sim: &Sim) {
    for port in all_ports(sim).filter(|&port| sim.port(port).cable.is_some()) {
        let state = sim.port(port);
        let (up, phys) = (state.is_up(), state.info.phys_state);
        let down = [PhysState::POLLING, PhysState::DISABLED].contains(&phys);
        assert_eq!(phys == PhysState::LINK_UP, up, "{port:?} is up: {up}, physical state {phys}");
        assert_eq!(down, !up, "{port:?} is up: {up}, physical state {phys}");
        let held = state.held_down > 0;
        assert!(!(up && held), "{port:?} is up though a flap holds it down");
    }
}

/// Runs all events up to the given time, and checks invariants after each event. If the time is
/// [`Instant::NEVER`], runs all events.
pub(crate) fn run_checked(sim: &mut Sim, until: Instant) {
    while sim.run_step(until) {
        check(sim);
    }
    if until < Instant::NEVER {
        sim.run_until(until);
    }
    check(sim);
}
