use crate::event::Event;
use crate::sim::Sim;
use ib_topology::PortId;
use ib_types::{Instant, VirtualLane};
use ib_wire::mad::sm::{SlToVl, VlArbitration, VlArbitrationEntry, VlCap};

use crate::lab::{self, lid, node, port};
use crate::options::Options;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn entry(vl: u8, weight: u8) -> VlArbitrationEntry {
    VlArbitrationEntry { lane: VirtualLane::new(vl).unwrap(), weight }
}

/// Entries of a VL arbitration table: VL and weight.
type Weights<'a> = &'a [(u8, u8)];

/// Writes the VL arbitration tables of a port.
fn arbitrate(sim: &mut Sim, at: PortId, (high, low): (Weights<'_>, Weights<'_>), limit: u8) {
    let table = |entries: &[(u8, u8)]| {
        let mut table = VlArbitration::zeroed();
        for (own, &(vl, weight)) in table.entries.iter_mut().zip(entries) {
            *own = entry(vl, weight);
        }
        table
    };
    let (kind, ports) = (sim.node(sim.port(at).node).kind, sim.node(sim.port(at).node).ports);
    let state = sim.port_mut(at);
    state.info.vl_high_limit = limit;
    let empty = VlArbitration::zeroed();
    state.tables_mut(kind, ports).arbitration.blocks = [table(low), empty, table(high), empty];
}

/// Sends packets of 1000 bytes from h1 to h2 on each VL of `vls`. When `of` packets in total have
/// arrived, returns the number of arrived packets of each VL.
fn shares(high: Weights<'_>, low: Weights<'_>, limit: u8, vls: &[u8], of: u64) -> Vec<u64> {
    let fabric = lab::fabric(&[("h1", 1), ("h2", 1)], &["h1.1 h2.1"]);
    let mut sim = lab::ready(&fabric, Options { vl_buffer: 1 << 20, ..Options::default() });
    let (from, to) = (port(&sim, "h1.1"), port(&sim, "h2.1"));
    sim.open(to);
    arbitrate(&mut sim, from, (high, low), limit);
    // The link is idle, so the first packet is sent without arbitration. It is not counted.
    let first = lab::data(&sim, from, 2, vls[0], 1000);
    sim.send_packet(from, first);
    for _ in 0..of {
        for &vl in vls {
            let packet = lab::data(&sim, from, 2, vl, 1000);
            sim.send_packet(from, packet);
        }
    }
    lab::run_checked(&mut sim, at((of + 1) * 1024 + 200));
    sim.receive_packet(to).unwrap();
    let mut counts = vec![0; vls.len()];
    while let Some(packet) = sim.receive_packet(to) {
        let index = vls.iter().position(|&vl| vl == packet.sl.get()).unwrap();
        counts[index] += 1;
    }
    assert_eq!(counts.iter().sum::<u64>(), of);
    lab::run_checked(&mut sim, Instant::NEVER);
    lab::check_settled(&sim);
    counts
}

#[test]
fn vls_share_a_link_by_their_weights() {
    // Weights are in units of 64 bytes, so a weight of 16 lasts for one packet of 1024 bytes.
    assert_eq!(shares(&[], &[(0, 16), (1, 48)], 0, &[0, 1], 80), [20, 60]);
    assert_eq!(shares(&[], &[(0, 16), (1, 16), (2, 32)], 0, &[0, 1, 2], 80), [20, 20, 40]);
    // A table can have several entries for one VL.
    assert_eq!(shares(&[], &[(0, 16), (1, 16), (0, 32)], 0, &[0, 1], 80), [60, 20]);
    // A VL in neither table is served when no other VL is waiting.
    assert_eq!(shares(&[], &[(0, 16)], 0, &[0, 1], 80), [80, 0]);
}

#[test]
fn high_priority_is_served_first_up_to_its_limit() {
    assert_eq!(shares(&[(0, 16)], &[(1, 16)], 255, &[0, 1], 60), [60, 0], "255 is no limit");
    assert_eq!(shares(&[(0, 16)], &[(1, 16)], 0, &[0, 1], 60), [30, 30], "the VLs alternate");
    // A limit of two units of 4 KiB lets eight high-priority packets of 1024 bytes pass before each
    // low-priority packet.
    assert_eq!(shares(&[(0, 16)], &[(1, 16)], 2, &[0, 1], 90), [80, 10]);
}

/// Returns a fabric in which s1 has no credits to send to h2. Also returns the port of h1, and the
/// port of s1 that leads to h2. `life` and `stall` are `HOQLife` and `VLStallCount` of that port of
/// s1.
fn stuck(life: u8, stall: u8) -> (Sim, PortId, PortId) {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let (from, out) = (port(&sim, "h1.1"), port(&sim, "s1.4"));
    let state = sim.port_mut(out);
    (state.info.hoq_life, state.info.vl_stall_count) = (life, stall);
    state.credits = Some(Box::new([0; 15]));
    (sim, from, out)
}

fn send(sim: &mut Sim, from: PortId, level: u8, payload: usize) {
    let dlid = lid(sim, "h2");
    let packet = lab::data(sim, from, dlid, level, payload);
    sim.send_packet(from, packet);
}

#[test]
fn packet_beyond_the_switch_lifetime_is_dropped() {
    let (mut sim, from, out) = stuck(20, 3);
    let s1 = node(&sim, "s1");
    sim.node_mut(s1).switch.as_mut().unwrap().info.life_time = 1;
    for _ in 0..4 {
        send(&mut sim, from, 0, 1000);
    }
    // The first packet arrives at 1224 ns, the others at intervals of 1024 ns. Each has a switch
    // lifetime limit of 8192 ns. Consecutive drops due to this limit do not stall the VL.
    for number in 1..=4 {
        let dropped = 1224 + (number - 1) * 1024 + 8192;
        sim.run_until(at(dropped - 1));
        assert_eq!(sim.counters(out).lifetime_discards, number - 1);
        sim.run_until(at(dropped));
        assert_eq!(sim.counters(out).lifetime_discards, number);
    }
    let counters = sim.counters(out);
    assert_eq!((counters.xmit_discards, counters.hoq_life_discards), (4, 0));
    assert_eq!(lab::lost(&sim, "life_time"), 4);
    assert!((sim.net.flights.len() == 0));
    // A packet that becomes the head of its queue late can exceed the switch lifetime limit before
    // the head-of-queue limit.
    let (mut sim, from, out) = stuck(1, 0);
    sim.node_mut(s1).switch.as_mut().unwrap().info.life_time = 1;
    send(&mut sim, from, 0, 1000);
    send(&mut sim, from, 0, 1000);
    sim.run_until(at(1224 + 1024 + 8192));
    let counters = sim.counters(out);
    assert_eq!((counters.hoq_life_discards, counters.lifetime_discards), (1, 1));
    // A HOQLife value above 19 means that there is no limit.
    let (mut sim, from, out) = stuck(20, 0);
    send(&mut sim, from, 0, 1000);
    sim.run_until(at(10_000_000_000));
    assert_eq!(sim.counters(out).xmit_discards, 0);
}

#[test]
fn packet_beyond_the_head_of_queue_lifetime_is_dropped() {
    let (mut sim, from, out) = stuck(1, 0);
    for _ in 0..3 {
        send(&mut sim, from, 0, 1000);
    }
    // The first packet arrives at 1224 ns and expires after 8192 ns. Then the next packet becomes
    // the head.
    for (number, dropped) in [(1u64, 1224 + 8192), (2, 1224 + 2 * 8192), (3, 1224 + 3 * 8192)] {
        sim.run_until(at(dropped - 1));
        assert_eq!(sim.counters(out).hoq_life_discards, number - 1);
        sim.run_until(at(dropped));
        assert_eq!(sim.counters(out).hoq_life_discards, number);
    }
    let counters = sim.counters(out);
    assert_eq!((counters.xmit_discards, counters.xmit_packets), (3, 0));
    assert_eq!(
        counters.xmit_wait,
        3 * 8192 / 8,
        "the wait time ends when the last packet is dropped"
    );
    sim.run_until(at(1_000_000));
    assert_eq!(sim.counters(out).xmit_wait, 3 * 8192 / 8);
    assert_eq!(lab::lost(&sim, "head_of_queue"), 3);
    assert!((sim.net.flights.len() == 0));
}

#[test]
fn lifetime_above_19_is_unlimited() {
    let (mut sim, from, out) = stuck(20, 0);
    send(&mut sim, from, 0, 1000);
    sim.run_until(at(u64::MAX - 1));
    assert_eq!(sim.counters(out).xmit_discards, 0);
    assert_eq!(sim.net.flights.len(), 1);
}

#[test]
fn shorter_packet_after_a_dropped_one_is_sent() {
    let (mut sim, from, out) = stuck(1, 0);
    sim.port_mut(out).credits.as_mut().unwrap()[0] = 3;
    send(&mut sim, from, 0, 1000);
    send(&mut sim, from, 0, 100);
    sim.run_until(at(1_000_000));
    let counters = sim.counters(out);
    assert_eq!((counters.xmit_discards, counters.xmit_packets), (1, 1));
}

#[test]
fn vl_stalls_after_consecutive_drops() {
    let (mut sim, from, out) = stuck(1, 2);
    for _ in 0..5 {
        send(&mut sim, from, 0, 1000);
        send(&mut sim, from, 1, 1000);
    }
    sim.port_mut(out).credits.as_mut().unwrap()[1] = 1000;
    // The second drop stalls VL 0, so that all waiting and arriving packets of VL 0 are dropped.
    let stalled = 1224 + 2 * 8192;
    sim.run_until(at(stalled));
    assert_eq!(sim.counters(out).hoq_life_discards, 5);
    assert_eq!(sim.counters(out).xmit_packets, 5, "VL 1 is not stalled");
    sim.port_mut(out).credits.as_mut().unwrap()[0] = 1000;
    send(&mut sim, from, 0, 1000);
    sim.run_until(at(stalled + 8 * 8192 - 1));
    assert_eq!(
        sim.counters(out).hoq_life_discards,
        6,
        "VL 0 is still stalled although it has credits"
    );
    sim.run_until(at(stalled + 8 * 8192));
    send(&mut sim, from, 0, 1000);
    sim.run_until(at(1_000_000));
    assert_eq!(sim.counters(out).xmit_packets, 6);
    assert_eq!(sim.counters(out).hoq_life_discards, 6);
}

#[test]
fn each_vl_has_at_most_one_head_timer() {
    let (mut sim, from, out) = stuck(10, 0);
    sim.port_mut(out).credits = None;
    for round in 0..200u64 {
        send(&mut sim, from, 0, 1000);
        send(&mut sim, from, 0, 1000);
        sim.run_until(at((round + 1) * 2500));
    }
    let timers = sim.net.clock.events().filter(|event| matches!(event, Event::Timer(_))).count();
    assert!(timers <= 1, "{timers}");
}

/// Returns a cycle of four switches with a host each. Every host sends to the host two switches
/// further, always in the same direction. With a dateline, packets change to VL 1 on the link from
/// s4 to s1. `life` is `HOQLife` of all switch ports.
fn ring(dateline: bool, life: u8) -> Sim {
    let names = ["1", "2", "3", "4"];
    let hosts = names.map(|n| format!("h{n}"));
    let switches = names.map(|n| format!("s{n}"));
    let nodes: Vec<(&str, u8)> = hosts
        .iter()
        .map(|name| (name.as_str(), 1))
        .chain(switches.iter().map(|name| (name.as_str(), 3)))
        .collect();
    let fabric = lab::fabric(
        &nodes,
        &[
            "h1.1 s1.3",
            "h2.1 s2.3",
            "h3.1 s3.3",
            "h4.1 s4.3",
            "s1.2 s2.1",
            "s2.2 s3.1",
            "s3.2 s4.1",
            "s4.2 s1.1",
        ],
    );
    let mut sim = lab::ready(&fabric, Options { vl_buffer: 4224, ..Options::default() });
    for (index, switch) in switches.iter().enumerate() {
        let id = node(&sim, switch);
        for (other, host) in hosts.iter().enumerate() {
            let dlid = lid(&sim, host);
            lab::set_route(&mut sim, id, dlid, if other == index { 3 } else { 2 });
        }
        for number in 1..=3 {
            let at = sim.fabric().port_id(id, number);
            let kind = sim.node(id).kind;
            let state = sim.port_mut(at);
            state.info.hoq_life = life;
            state.info.operational_vls = if dateline { VlCap::VL0_1 } else { VlCap::VL0 };
            // Packets of h3 and h4 have SL 1 and cross the dateline, the link from s4 to s1. From
            // there on, they use VL 1. All other packets use VL 0.
            let vl = |value| VirtualLane::new(value).unwrap();
            let all = |value| SlToVl { lanes: [vl(value); 16] };
            state.tables_mut(kind, 3).sl_to_vl = vec![all(0); 4];
            if dateline && (index == 3 || index == 0) && number == 2 {
                let mut table = all(0);
                table.lanes[1] = vl(1);
                state.tables_mut(kind, 3).sl_to_vl = vec![table; 4];
            }
        }
        let end = port(&sim, &format!("h{}.1", index + 1));
        sim.port_mut(end).info.operational_vls = VlCap::VL0;
        let kind = sim.node(sim.port(end).node).kind;
        let vl = VirtualLane::new(0).unwrap();
        sim.port_mut(end).tables_mut(kind, 1).sl_to_vl = vec![SlToVl { lanes: [vl; 16] }];
        sim.open(end);
    }
    for _ in 0..30 {
        for (index, host) in hosts.iter().enumerate() {
            let from = port(&sim, &format!("{host}.1"));
            let dlid = lid(&sim, &hosts[(index + 2) % 4]);
            let level = u8::from(dateline && index >= 2);
            let packet = lab::data(&sim, from, dlid, level, 2000);
            sim.send_packet(from, packet);
        }
    }
    sim
}

fn arrived(sim: &mut Sim) -> usize {
    (1..=4)
        .map(|n| {
            let at = port(sim, &format!("h{n}.1"));
            std::iter::from_fn(|| sim.receive_packet(at)).count()
        })
        .sum()
}

#[test]
fn cycle_with_one_vl_deadlocks() {
    let mut sim = ring(false, 20);
    lab::run_checked(&mut sim, at(10_000_000));
    let first = arrived(&mut sim);
    assert!(first < 120, "{first}");
    assert!(sim.net.flights.len() >= 8, "packets block each other");
    assert_eq!(sim.next_at(), None, "no event is queued");
    assert_eq!(first + sim.net.flights.len(), 120);
}

#[test]
fn head_of_queue_lifetime_breaks_the_deadlock() {
    let mut sim = ring(false, 4);
    lab::run_checked(&mut sim, at(1_000_000_000));
    let arrived = arrived(&mut sim);
    let dropped = lab::lost(&sim, "head_of_queue") as usize;
    assert!(dropped > 0);
    assert_eq!(arrived + dropped, 120);
    lab::check_settled(&sim);
}

#[test]
fn cycle_with_a_dateline_does_not_deadlock() {
    let mut sim = ring(true, 20);
    lab::run_checked(&mut sim, at(10_000_000));
    assert_eq!(arrived(&mut sim), 120);
    lab::check_settled(&sim);
}
