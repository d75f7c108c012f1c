use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_types::Guid;
use ib_wire::mad::AttributeId;
use ib_wire::mad::sm::{NodeInfo, PortInfo, PortState};

use super::*;
use crate::lab::{self, generated};

/// The two ends of a link: node and port.
type Link = [(Guid, u8); 2];

/// Walks a fabric by directed routes as a subnet manager does; returns the nodes with their numbers of
/// ports, and the links as pairs of node and port.
fn discover(sim: &mut Sim) -> (BTreeMap<Guid, u8>, BTreeSet<Link>) {
    let client =
        sim.attach(sim.first_end_port().unwrap(), crate::ClientOptions::default()).unwrap();
    let (mut nodes, mut links) = (BTreeMap::new(), BTreeSet::new());
    let mut queue = VecDeque::from([(Vec::new(), None)]);
    while let Some((path, from)) = queue.pop_front() {
        let (status, mad) = lab::get(sim, client, &path, (AttributeId::NODE_INFO, 0));
        assert_eq!(status.0, 0);
        let info: NodeInfo = mad.attribute().unwrap();
        if let Some(from) = from {
            let mut link = [from, (info.node_guid, info.local_port)];
            link.sort_unstable();
            links.insert(link);
        }
        if nodes.insert(info.node_guid, info.num_ports).is_some() {
            continue;
        }
        let switch = info.node_type == ib_types::NodeKind::Switch.into();
        if !switch && !path.is_empty() {
            continue;
        }
        for port in 1..=info.num_ports {
            let (_, mad) = lab::get(sim, client, &path, (AttributeId::PORT_INFO, port.into()));
            let state = mad.attribute::<PortInfo>().unwrap().port_state;
            if state != PortState::DOWN {
                let longer: Vec<u8> = path.iter().copied().chain([port]).collect();
                queue.push_back((longer, Some((info.node_guid, port))));
            }
        }
    }
    (nodes, links)
}

#[test]
fn a_walk_by_directed_routes_finds_exactly_the_fabric() {
    for kind in ["k-ary-n-tree 4 2", "torus 3x3 hosts=1", "dragonfly p=1 a=2 h=1", "mesh 2x2"] {
        let fabric = generated(kind);
        let mut sim = Sim::new(&fabric, Options::default());
        let (nodes, links) = discover(&mut sim);
        let expected: BTreeMap<Guid, u8> =
            fabric.nodes().map(|(_, node)| (node.guid, node.ports)).collect();
        assert_eq!(nodes, expected, "{kind}");
        let expected: BTreeSet<Link> = fabric
            .links()
            .map(|(one, other)| {
                let mut link = [one, other].map(|port| {
                    let port = fabric.port(port);
                    (fabric.node(port.node).guid, port.number)
                });
                link.sort_unstable();
                link
            })
            .collect();
        assert_eq!(links, expected, "{kind}");
        lab::check_settled(&sim);
    }
}

#[test]
fn settling_lets_packets_arrive_and_does_not_wait_for_timers() {
    let mut sim = Sim::new(&lab::row(1), Options::default());
    let client = lab::client(&mut sim, "h1");
    sim.schedule(Instant::from_nanos(1_000_000_000), Event::Timer(Timer::Script { step: 0 }));
    let (status, _) = lab::get(&mut sim, client, &[1, 4], (AttributeId::NODE_INFO, 0));
    assert_eq!(status.0, 0);
    assert!(sim.now() < Instant::from_nanos(1_000_000));
    assert_eq!(sim.next_at(), Some(Instant::from_nanos(1_000_000_000)));
    sim.settle(Instant::from_nanos(5_000));
    assert_eq!(sim.now(), Instant::from_nanos(5_000));
}

#[test]
fn the_same_fabric_seed_and_script_give_the_same_log() {
    let fabric = generated("torus 3x3 hosts=1");
    let run = |seed| {
        let options = Options { seed, log: LogLevel::Hops, ..Options::default() };
        let mut sim = Sim::new(&fabric, options);
        let client =
            sim.attach(sim.first_end_port().unwrap(), crate::ClientOptions::default()).unwrap();
        let steps = crate::random_faults(&fabric, seed, (Duration::from_millis(5), 30));
        sim.load_script(&steps).unwrap();
        for step in 0..50u8 {
            let what = (AttributeId::NODE_INFO, 0);
            let path = [1, step % 5 + 1, step % 3 + 1];
            let mad = ib_wire::mad::smp::directed_request(
                ib_wire::mad::Method::GET,
                ib_wire::mad::TransactionId(step.into()),
                what,
                &path,
            );
            sim.submit(client, &ib_link::Datagram::new(ib_link::Remote::directed(), mad));
            sim.run_until(sim.now() + Duration::from_micros(100));
        }
        sim.take_log()
    };
    let log = run(7);
    assert!(log.lines().count() > 100, "{log}");
    assert_eq!(log, run(7));
    assert_ne!(log, run(8));
}
