//! Tests captures of HCAs in a fabric that loses packets.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_capture::{CaptureFile, Collector, Item, Link};
use ib_hca::SendOp;
use ib_hca::trace::{PacketTrace, Selection};
use ib_sim::Options;
use ib_wire::packet::Packet;

use super::lab::Lab;

/// Pairs of hosts. Each pair has one connection.
const PAIRS: [(usize, usize); 4] = [(1, 17), (2, 9), (17, 1), (5, 14)];

/// A lost packet: the time of the loss in nanoseconds, the headers, and a text with the place and reason of the loss.
type Lost = (u64, Vec<u8>, String);

/// Adds the packet readers of newly traced queue pairs to the collector, and collects packets.
fn collect(lab: &mut Lab, collector: &mut Collector, file: &mut Vec<u8>) {
    while let Some((port, _, reader)) = lab.devices.poll_selected() {
        let (node, number) = lab.sim.place(port);
        let qpn = ib_link::PacketSource::qpn(&reader).get();
        let name = format!("{}[{number}] qp {qpn:#08x}", lab.sim.node_name(node));
        collector.add(&name, Box::new(reader));
    }
    collector.collect(lab.sim.now(), usize::MAX, u64::MAX);
    collector.output(file);
    collector.settle(true);
}

/// Transfers data in a fabric whose faults depend on the seed. Returns the capture file, and the lost packets whose
/// destination is not QP0.
fn campaign(seed: u64) -> (Vec<u8>, Vec<Lost>) {
    let options = Options { seed, tap: true, ..Options::default() };
    let mut lab = Lab::new("xgft 3,2,3 1,2,2", options);
    let mut collector = Collector::new(Link::Infiniband, 0);
    let mut file = Vec::new();
    collector.begin(lab.sim.now());
    let trace = PacketTrace { payload: 16, ring_bytes: 1 << 20, ..PacketTrace::default() };
    for host in 0..lab.hosts.len() {
        let selection = Selection { trace: trace.clone(), ..Selection::default() };
        lab.device(host).hca().select(selection).expect("the trace options are valid");
    }
    lab.sim.take_packets();
    let mut connections = Vec::new();
    for (here, there) in PAIRS {
        let qps = lab.connect(here, there);
        let (from, to) = (lab.region(here, 40_000), lab.region(there, 40_000));
        connections.push((here, qps[0], from, to));
    }
    // One port of each switch gets a fault. The seed determines the port and the fault.
    let switches: Vec<String> = lab
        .sim
        .node_ids()
        .filter(|&node| lab.sim.is_switch(node))
        .map(|node| lab.sim.node_name(node).to_owned())
        .collect();
    for (at, name) in switches.iter().enumerate() {
        let port = 1 + (seed as usize + at) % 3;
        let what =
            ["loss=0.05", "corrupt=0.05", "loss=0.02 corrupt=0.02"][(at + seed as usize) % 3];
        lab.command(&format!("Fault \"{name}\"[{port}] {what}"));
    }
    let mut lost = Vec::new();
    for round in 0..6 {
        for (here, qp, from, to) in &connections {
            let write = SendOp::Write { to: to.remote(0), imm: None };
            lab.send(*here, *qp, round, write, from.data(0, 30_000));
        }
        if round == 3 {
            // Pulls a cable, and plugs it in again before connections fail.
            let name = &switches[seed as usize % switches.len()];
            lab.command(&format!("Unlink \"{name}\"[1]"));
            lab.run_for(Duration::from_millis(2));
            lab.command(&format!("ReLink \"{name}\"[1]"));
        }
        for _ in 0..20 {
            lab.run_for(Duration::from_millis(10));
            collect(&mut lab, &mut collector, &mut file);
        }
        for tapped in lab.sim.take_packets() {
            let Some(why) = tapped.lost else { continue };
            let packet = Packet::parse(&tapped.bytes).expect("the simulator sends valid packets");
            if packet.bth().destination.get() == 0 {
                continue;
            }
            let (node, number) = lab.sim.place(tapped.port);
            let headers = tapped.bytes[packet.bth_offset()..packet.payload_offset()].to_vec();
            let place = format!("lost: at {}[{number}]: {why}", lab.sim.node_name(node));
            lost.push((tapped.at.as_nanos(), headers, place));
        }
    }
    for host in 0..lab.hosts.len() {
        // Drops the packet readers of queue pairs that the collector does not capture yet, so that it captures no
        // further queue pair.
        while let Some((_, _, reader)) = lab.devices.poll_selected() {
            drop(reader);
        }
        let qps: Vec<_> = lab.device(host).hca().queue_pairs().map(|(qp, _)| qp).collect();
        for qp in qps {
            lab.device(host).hca().end_trace(qp).ok();
        }
        lab.device(host).hca().end_gsi_trace().ok();
    }
    collect(&mut lab, &mut collector, &mut file);
    collector.end(lab.sim.now());
    collector.output(&mut file);
    for counted in collector.counted() {
        let known = counted.captured.plus(counted.overwritten).plus(counted.unwritten);
        assert_eq!(known, counted.noted, "{}", counted.name);
        assert_eq!(counted.overwritten.all(), 0, "{}", counted.name);
    }
    (file, lost)
}

/// Returns the loss reports in a capture file, and the number of frames of each interface.
fn lost_in(file: &[u8]) -> (Vec<Lost>, BTreeMap<String, u64>) {
    let mut file = CaptureFile::new(file, &[]).expect("the file is a capture file");
    let (mut lost, mut by_interface) = (Vec::new(), BTreeMap::new());
    while let Some(item) = file.next_item().expect("the file consists of complete blocks") {
        let Item::Frame(frame) = item else { continue };
        let content = frame.content.expect("every frame contains an RDMA packet");
        let headers = content.packet.bytes()
            [content.packet.bth_offset()..content.packet.payload_offset()]
            .to_vec();
        let (time, interface) = (frame.time.expect("every frame has a time"), frame.interface);
        let news: Vec<_> =
            frame.comments.iter().filter(|it| it.starts_with("lost: ")).cloned().collect();
        let name = file
            .interface(interface)
            .and_then(|it| it.name.clone())
            .expect("every interface has a name");
        assert_eq!(news.len(), usize::from(name.ends_with(" lost")), "losses at {name}: {news:?}");
        *by_interface.entry(name).or_default() += 1;
        lost.extend(news.into_iter().map(|news| (time, headers.clone(), news)));
    }
    (lost, by_interface)
}

#[test]
fn lost_packets_are_captured_with_port_and_reason() {
    let runs = std::env::var("IBFABRIC_CAMPAIGNS")
        .map_or(4, |runs| runs.parse().expect("`IBFABRIC_CAMPAIGNS` is a number"));
    let mut reasons = BTreeMap::new();
    for seed in 1..=runs {
        let (file, mut expected) = campaign(seed);
        let (mut found, by_interface) = lost_in(&file);
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "seed {seed}");
        assert!(by_interface.len() > 12, "{by_interface:?}");
        for (.., why) in expected {
            let why = why.split("]: ").last().unwrap_or_default().to_owned();
            *reasons.entry(why).or_insert(0) += 1;
        }
    }
    let all: u64 = reasons.values().sum();
    assert!(all > 20 * runs, "{reasons:?}");
    for why in ["lost by a fault", "damaged by a fault", "the link is down"] {
        assert!(reasons.contains_key(why), "{reasons:?}");
    }
}

#[test]
fn runs_with_the_same_seed_have_equal_captures() {
    let (first, _) = campaign(7);
    let (second, _) = campaign(7);
    assert!(first == second, "the captures of {} and {} bytes differ", first.len(), second.len());
    assert!(first != campaign(8).0, "captures with different seeds are equal");
}
