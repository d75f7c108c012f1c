use crate::sim::Sim;
use ib_link::Remote;
use ib_types::Instant;
use ib_wire::mad::pm::{CounterSelect, PortCounters};
use ib_wire::mad::sm::{LinearForwardingBlock, SwitchInfo};
use ib_wire::mad::{Attribute, AttributeId};

use super::*;
use crate::counters::Counters;
use crate::ids::ClientId;
use crate::lab::{self, lid, node, port, run, two_switches as made};
use crate::options::Options;

/// Reads PortCounters of port 2 of s1. If `reset` is true, first sets all counters to zero.
fn port_counters(sim: &mut Sim, client: ClientId, reset: bool) -> PortCounters {
    let mut mad = lab::performance(if reset { Method::SET } else { Method::GET }, PortCounters::ID);
    let mut request = PortCounters::zeroed();
    request.port_select = 2;
    request.counter_select = CounterSelect(if reset { 0xffff } else { 0 });
    mad.set_attribute(&request);
    let remote = Remote::gsi(lid(sim, "s1"));
    lab::answer(sim, client, remote, mad).attribute().unwrap()
}

#[test]
fn console_sets_a_counter_in_both_attributes() {
    let mut sim = made();
    let client = lab::client(&mut sim, "h1");
    for reset in [false, true] {
        let at = port(&sim, "s1.2");
        sim.port_mut(at).counters.xmit_data = 70_000;
        sim.port_mut(at).counters.rcv_data = 80_000;
        port_counters(&mut sim, client, reset);
        run(&mut sim, "PerformanceSet s1[2] PortCounters.PortXmitData=5");
        let shown = port_counters(&mut sim, client, false);
        let full = sim.counters(at);
        assert_eq!((shown.xmit_data, full.xmit_data), (5, 5), "both attributes show the value");
        let others = (shown.rcv_data, full.rcv_data);
        assert_eq!(others, (if reset { 0 } else { 80_000 }, 80_000), "other counters are kept");
        sim.port_mut(at).counters.xmit_data += 3;
        assert_eq!(
            port_counters(&mut sim, client, false).xmit_data,
            8,
            "counting continues from 5"
        );
    }
}

#[test]
fn clear_resets_counters_that_were_written() {
    let mut sim = made();
    let client = lab::client(&mut sim, "h1");
    let at = port(&sim, "s1.2");
    sim.port_mut(at).counters.symbol_errors = 9;
    port_counters(&mut sim, client, true);
    run(&mut sim, "Clear s1[2]");
    assert_eq!(sim.counters(at), Counters::default());
    assert_eq!(port_counters(&mut sim, client, false).symbol_errors, 0);
}

/// Configures s2 and h2 as a subnet manager does, and lets them count errors.
fn configure(sim: &mut Sim) {
    let client = lab::client(sim, "h1");
    for name in ["s2.0", "h2.1"] {
        let at = port(sim, name);
        let info = &mut sim.port_mut(at).info;
        (info.m_key_lease_period, info.vl_high_limit) = (7, 3);
    }
    let mut info = SwitchInfo::zeroed();
    (info.linear_fdb_top, info.default_port, info.life_time) = (9, 2, 17);
    (info.default_multicast_primary_port, info.default_multicast_not_primary_port) = (1, 2);
    assert_eq!(lab::set(sim, client, &[1, 2], (&info, 0)).0.0, 0);
    sim.detach(client);
    for name in ["s2", "h2"] {
        run(sim, &format!("PerformanceSet {name}[1] PortCounters.SymbolErrorCounter=9"));
        run(sim, &format!("MKey {name} 0x55 1"));
    }
}

/// Checks that s2 and h2 have the state of an unconfigured fabric, except for the states of their
/// links.
fn check_fresh(sim: &Sim) {
    let fresh = Sim::new(&lab::row(2), Options::default());
    for name in ["s2", "h2"] {
        let (own, other) = (sim.node(node(&fresh, name)), fresh.node(node(&fresh, name)));
        if let (Some(own), Some(other)) = (&own.switch, &other.switch) {
            assert_eq!(own.info, other.info);
            assert_eq!((&own.linear, &own.multicast), (&other.linear, &other.multicast));
        }
        for number in 0..=own.ports {
            let at = port(&fresh, &format!("{name}.{number}"));
            let (mut own, other) = (sim.port_info(at), fresh.port_info(at));
            (own.port_state, own.phys_state) = (other.port_state, other.phys_state);
            (own.link_width_active, own.link_speed_active) =
                (other.link_width_active, other.link_speed_active);
            assert_eq!(own, other, "{name}[{number}]");
            assert_eq!(sim.counters(at), Counters::default());
            assert!(sim.port(at).tables.is_none() && sim.port(at).short_base.is_none());
        }
    }
}

#[test]
fn power_loss_resets_a_node() {
    let mut sim = made();
    configure(&mut sim);
    run(&mut sim, "Power s2 off");
    run(&mut sim, "Power h2 off");
    run(&mut sim, "Power s2 on");
    run(&mut sim, "Power h2 on");
    check_fresh(&sim);
}

#[test]
fn clear_resets_a_node_and_removes_cables_and_faults() {
    let mut sim = made();
    configure(&mut sim);
    run(&mut sim, "Fault s2 loss=0.5");
    run(&mut sim, "IgnoreLft s2 all");
    run(&mut sim, "Misroute s2 1 2");
    run(&mut sim, "Clear s2");
    run(&mut sim, "Clear h2");
    check_fresh(&sim);
    let s2 = node(&sim, "s2");
    let lies = &sim.node(s2).switch.as_ref().unwrap().deviations;
    assert!(!lies.ignores_all && lies.misrouted.is_empty());
    for number in 0..=4 {
        let at = port(&sim, &format!("s2.{number}"));
        assert!(sim.peer(at).is_none() && sim.port(at).faults.is_none());
    }
}

#[test]
fn link_faults_and_request_loss_are_removed_separately() {
    let mut sim = made();
    run(&mut sim, "Error s1[3] 100 0x11");
    run(&mut sim, "Fault s1[3] loss=0.5 delay=5us");
    run(&mut sim, "Fault s1[3] none");
    let at = port(&sim, "s1.3");
    let faults = sim.port(at).faults.clone().expect("`Fault` does not change the loss of requests");
    assert_eq!((faults.loss, faults.delay.as_nanos()), (0.0, 0));
    assert_eq!(faults.unanswered, 100.0);
    assert_eq!(faults.unanswered_attribute, Some(AttributeId::NODE_INFO));
    run(&mut sim, "Fault s1[3] loss=0.5");
    run(&mut sim, "Error s1[3] 0");
    let faults = sim.port(at).faults.clone().expect("`Error` does not change the loss of packets");
    assert_eq!((faults.unanswered, faults.loss), (0.0, 0.5));
    run(&mut sim, "Fault s1[3] none");
    assert!(sim.port(at).faults.is_none());
}

#[test]
fn ignored_lft_write_is_acknowledged() {
    let mut sim = made();
    run(&mut sim, "IgnoreLft s1 3");
    let client = lab::client(&mut sim, "h1");
    let sent = LinearForwardingBlock { ports: [2; 64] };
    let (status, echo) = lab::set(&mut sim, client, &[1], (&sent, 3));
    assert_eq!((status.0, echo), (0, sent));
    let (_, mad) = lab::get(&mut sim, client, &[1], (AttributeId::LINEAR_FORWARDING, 3));
    assert_eq!(mad.attribute(), Some(LinearForwardingBlock { ports: [0xff; 64] }));
}

#[test]
fn reordering_has_a_default_maximum_delay() {
    let mut sim = made();
    run(&mut sim, "Fault s1[2] reorder=0.5");
    let (from, to, dlid) = (port(&sim, "h1.1"), port(&sim, "h2.1"), lid(&sim, "h2"));
    sim.open(to);
    for number in 0..100 {
        let mut packet = lab::data(&sim, from, dlid, 0, 4);
        if let crate::Payload::Transport(bytes) = &mut packet.payload {
            bytes[12] = number;
        }
        sim.send_packet(from, packet);
    }
    lab::run_checked(&mut sim, Instant::NEVER);
    let came: Vec<u8> = std::iter::from_fn(|| sim.receive_packet(to))
        .map(|packet| match packet.payload {
            crate::Payload::Transport(bytes) => bytes[12],
            crate::Payload::Mad(_) => unreachable!("data was sent"),
        })
        .collect();
    assert_eq!(came.len(), 100);
    assert!(!came.is_sorted());
}
