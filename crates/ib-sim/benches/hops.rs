//! Benchmark: hops per second of MADs in a simulated three-level tree.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ib_link::{Datagram, Incoming, Remote};
use ib_routing::engine::engine;
use ib_routing::{EngineKind, RoutingOptions, Subnet, SubnetOptions};
use ib_sim::{ClientId, ClientOptions, Command, Options, Sim, Target};
use ib_topology::Fabric;
use ib_topology::generate::{Kind, generate};
use ib_wire::mad::sm::{LinearForwardingBlock, PhysState, PortInfo, PortState, SwitchInfo};
use ib_wire::mad::{Attribute, AttributeId, Mad, MadStatus, Method, MgmtClass, TransactionId, smp};

#[path = "../tests/campaign/paths.rs"]
mod paths;

use paths::paths;

/// Number of requests in flight.
const WINDOW: u64 = 64;

/// Returns a three-level tree with 512 hosts.
fn tree() -> Fabric {
    let kind =
        Kind::parse("k-ary-n-tree", &["8", "3"]).expect("the arguments of the kind are valid");
    generate(&kind, &ib_topology::generate::Options::default()).expect("the tree can be generated")
}

/// Sends requests to the node at the end of a directed route. Returns the total number of hops of
/// all requests and responses.
fn directed(sim: &mut Sim, client: ClientId, path: &[u8]) -> u64 {
    let before = sim.stats().hops;
    for number in 0..WINDOW {
        let attribute = (AttributeId::NODE_INFO, 0);
        let mad = smp::directed_request(Method::GET, TransactionId(number), attribute, path);
        sim.submit(client, &Datagram::new(Remote::directed(), mad));
    }
    drain(sim, client, before)
}

/// Sends LID-routed queries of the port counters to hosts throughout the tree. Returns the total
/// number of hops of all requests and responses.
fn by_lid(sim: &mut Sim, client: ClientId, lids: &[u16]) -> u64 {
    let before = sim.stats().hops;
    for number in 0..WINDOW {
        let lid = lids[(number as usize * 37) % lids.len()];
        let class = MgmtClass::PERFORMANCE;
        let mut mad = Mad::new(class, Method::GET, TransactionId(number));
        mad.set_attribute_id(AttributeId::PORT_COUNTERS);
        mad.data_mut()[1] = 1;
        sim.submit(client, &Datagram::new(Remote::gsi(lid), mad));
    }
    drain(sim, client, before)
}

fn drain(sim: &mut Sim, client: ClientId, before: u64) -> u64 {
    sim.settle(sim.now());
    let mut answers = 0;
    while sim.receive(client).is_some() {
        answers += 1;
    }
    assert_eq!(answers, WINDOW, "every request is answered");
    sim.stats().hops - before
}

fn set<A: Attribute>(sim: &mut Sim, client: ClientId, path: &[u8], (value, modifier): (&A, u32)) {
    let attribute = (A::ID, modifier);
    let mut mad = smp::directed_request(Method::SET, TransactionId(1), attribute, path);
    mad.set_attribute(value);
    sim.submit(client, &Datagram::new(Remote::directed(), mad));
    sim.settle(sim.now());
    let Some(Incoming::Received(answer)) = sim.receive(client) else { panic!("no answer") };
    assert_eq!(answer.mad.status(), MadStatus::OK);
}

/// Configures a fabric as a subnet manager does. Returns the LIDs of the hosts.
fn configure(fabric: &Fabric, sim: &mut Sim, client: ClientId) -> Vec<u16> {
    let subnet =
        Subnet::discover(fabric, &SubnetOptions::default()).expect("the fabric is a valid subnet");
    let options = RoutingOptions::default();
    let routing = engine(EngineKind::MinHop).route(&subnet, &options).expect("MinHop finds routes");
    let mut lids = Vec::new();
    for end in subnet.end_ports() {
        let (node, number) = sim.place(end.port);
        let target = Target { node: sim.node_name(node).to_owned(), port: Some(number) };
        sim.run(&Command::BaseLid(target, end.base_lid.get(), 0)).expect("the node has this port");
        if !end.is_switch() {
            lids.push(end.base_lid.get());
        }
    }
    for (node, path) in paths(fabric) {
        if let Some(id) = subnet.switch_of(node) {
            let mut info = SwitchInfo::zeroed();
            info.linear_fdb_top = subnet.max_lid();
            set(sim, client, &path, (&info, 0));
            for (block, entries) in (0..).zip(routing.lfts.table(id).chunks(64)) {
                let mut ports = [0xff; 64];
                ports[..entries.len()].copy_from_slice(entries);
                set(sim, client, &path, (&LinearForwardingBlock { ports }, block));
            }
        }
        for (id, port) in fabric.ports_of(node).filter(|(_, port)| port.peer.is_some()) {
            for port_state in [PortState::ARMED, PortState::ACTIVE] {
                let now = sim.port_info(id);
                let info = PortInfo { port_state, phys_state: PhysState::NO_CHANGE, ..now };
                set(sim, client, &path, (&info, port.number.into()));
            }
        }
    }
    lids
}

fn hops(criterion: &mut Criterion) {
    let fabric = tree();
    let mut sim = Sim::new(&fabric, Options::default());
    let port = sim.first_end_port().expect("the tree has hosts");
    let client = sim.attach(port, ClientOptions::default()).expect("a client ID is free");
    let lids = configure(&fabric, &mut sim, client);
    let path = paths(&fabric).pop().expect("the tree has nodes").1;
    let mut group = criterion.benchmark_group("hops");
    group.throughput(Throughput::Elements(directed(&mut sim, client, &path)));
    group.bench_function("directed route", |bencher| {
        bencher.iter(|| directed(&mut sim, client, &path));
    });
    group.throughput(Throughput::Elements(by_lid(&mut sim, client, &lids)));
    group.bench_function("LID routed", |bencher| {
        bencher.iter(|| by_lid(&mut sim, client, &lids));
    });
    group.finish();
}

criterion_group!(benches, hops);
criterion_main!(benches);
