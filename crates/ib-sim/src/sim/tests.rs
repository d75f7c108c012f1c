use crate::options::LogLevel;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_link::{Datagram, Remote};
use ib_types::Guid;
use ib_wire::mad::sm::{NodeInfo, PortInfo, PortState};
use ib_wire::mad::{AttributeId, Method, TransactionId, smp};

use super::*;
use crate::lab::{self, generated};

/// The two ends of a link. Each has the node GUID and the port number.
type Link = [(Guid, u8); 2];

/// Discovers a fabric by directed routes, as a subnet manager does. Returns the number of ports of
/// each node, and the links.
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
fn discovery_by_directed_routes_finds_the_whole_fabric() {
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
fn settle_delivers_packets_and_does_not_wait_for_timers() {
    let mut sim = Sim::new(&lab::row(1), Options::default());
    let client = lab::client(&mut sim, "h1");
    sim.net
        .clock
        .schedule(Instant::from_nanos(1_000_000_000), Event::Timer(Timer::Script { step: 0 }));
    let (status, _) = lab::get(&mut sim, client, &[1, 4], (AttributeId::NODE_INFO, 0));
    assert_eq!(status.0, 0);
    assert!(sim.now() < Instant::from_nanos(1_000_000));
    assert_eq!(sim.next_at(), Some(Instant::from_nanos(1_000_000_000)));
    sim.settle(Instant::from_nanos(5_000));
    assert_eq!(sim.now(), Instant::from_nanos(5_000));
}

#[test]
fn same_seed_and_script_give_the_same_log() {
    let fabric = generated("torus 3x3 hosts=1");
    let run = |seed| {
        let options = Options { seed, log: LogLevel::Hops, ..Options::default() };
        let mut sim = Sim::new(&fabric, options);
        let client =
            sim.attach(sim.first_end_port().unwrap(), crate::ClientOptions::default()).unwrap();
        let steps = crate::random_faults(&fabric, seed, Duration::from_millis(5), 30);
        sim.load_script(&steps).unwrap();
        for step in 0..50u8 {
            let attribute = (AttributeId::NODE_INFO, 0);
            let path = [1, step % 5 + 1, step % 3 + 1];
            let mad =
                smp::directed_request(Method::GET, TransactionId(step.into()), attribute, &path);
            sim.submit(client, &Datagram::new(Remote::directed(), mad));
            sim.run_until(sim.now() + Duration::from_micros(100));
        }
        sim.take_log()
    };
    let log = run(7);
    assert!(log.lines().count() > 100, "{log}");
    assert_eq!(log, run(7));
    assert_ne!(log, run(8));
}

#[test]
fn keep_up_limits_the_lead_of_virtual_time() {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let client = lab::client(&mut sim, "h1");
    let start = sim.now();
    let query = |sim: &mut Sim| {
        let (id, attribute) = (TransactionId(1), (AttributeId::NODE_INFO, 0));
        let mad = smp::directed_request(Method::GET, id, attribute, &[1]);
        sim.submit(client, &Datagram::new(Remote::directed(), mad));
    };
    query(&mut sim);
    sim.keep_up(start);
    assert!(sim.receive(client).is_some(), "the response arrives within `AHEAD`");
    assert!(sim.now().since(start) < Sim::AHEAD);
    sim.run(&"fault h1[1] delay=3s".parse().unwrap()).unwrap();
    let start = sim.now();
    query(&mut sim);
    sim.keep_up(start);
    assert!(sim.receive(client).is_none() && sim.now().since(start) <= Sim::AHEAD);
    let due = sim.due().unwrap().since(start);
    assert!(due > Duration::from_millis(2990) && due <= Duration::from_secs(3), "{due:?}");
    sim.keep_up(start + Duration::from_millis(2900));
    assert!(sim.receive(client).is_none());
    sim.keep_up(start + Duration::from_secs(3));
    assert!(sim.receive(client).is_some());
}

#[test]
fn keep_up_returns_during_a_packet_storm() {
    // The MFTs of a multicast group contain forwarding loops, so that its packets circulate
    // indefinitely.
    let fabric = generated("torus 3x3 hosts=1");
    let mut sim = lab::ready(&fabric, Options::default());
    let switches: Vec<_> = sim.node_ids().filter(|&node| sim.is_switch(node)).collect();
    for node in switches {
        let ports = sim.node(node).ports;
        let mask = (1u32 << (ports + 1)) - 1;
        let switch = sim.node_mut(node).switch.as_mut().unwrap();
        switch.multicast.insert(0, [mask as u16; 16]);
    }
    let port = sim.first_end_port().unwrap();
    let packet = lab::data(&sim, port, 0xc000, 0, 256);
    let start = sim.now();
    sim.net.send_by_lid(port, packet, None);
    let before = sim.steps();
    sim.keep_up(start);
    assert_eq!(sim.steps() - before, Sim::BATCH as u64, "the storm continues");
    assert!(sim.due().unwrap() <= sim.now(), "further events remain to be processed");
}

#[test]
fn run_can_be_repeated_by_event_counts() {
    let run = |recorded: Option<&[(u64, Instant)]>| {
        let options = Options { log: LogLevel::Hops, ..Options::default() };
        let mut sim = Sim::new(&lab::row(3), options);
        let client = lab::client(&mut sim, "h1");
        let mut states = Vec::new();
        for step in 0..20 {
            let path = [1; 4];
            let attribute = (AttributeId::NODE_INFO, 0);
            let transaction = TransactionId(step);
            let mad = smp::directed_request(
                Method::GET,
                transaction,
                attribute,
                &path[..step as usize % 4],
            );
            sim.submit(client, &Datagram::new(Remote::directed(), mad));
            match recorded {
                Some(recorded) => {
                    let (steps, moment) = recorded[step as usize];
                    sim.repeat(steps, moment);
                }
                None => sim.keep_up(Instant::from_nanos(step * 700)),
            }
            states.push((sim.steps(), sim.now()));
        }
        (states, sim.take_log())
    };
    let first = run(None);
    assert_eq!(run(Some(&first.0)), first);
}
